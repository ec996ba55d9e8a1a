"""Damping, dry friction, a rotor's inertia and a load, found from a noisy recording of an arm that swings.

The recording comes from another method at a fifth of the step, with noise of 3 mrad on both angles, a hundred times a second. BFGS finds all five numbers from
guesses that are off by a factor of two; the adjoint gives the gradient, also through friction that holds. Writes out/identification.png and out/identification.html.
"""
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import dalembert as da

NOISE = 0.003  # rad
TRUE = {"shoulder.damping": 0.08, "shoulder.friction": 0.25, "elbow.damping": 0.03, "elbow.armature": 0.02, "lower.mass": 0.7}

arm = da.Mechanism("arm")
arm.body("upper", da.Rod(length=0.5, mass=1.0, radius=0.03), position=(0, 0, -0.25))
arm.body("lower", da.Rod(length=0.4, mass=0.4, radius=0.03), position=(0, 0, -0.7))
arm.joint("shoulder", da.Revolute(axis="y", damping=0.16, friction=0.12), arm.world, "upper", at=(0, 0, 0))
arm.joint("elbow", da.Revolute(axis="y", damping=0.06, armature=0.01, drive="force"), "upper", "lower", at=(0, 0, -0.5))
arm.start("shoulder", 1.2)


def push(sim: da.Simulation) -> None:
    sim.set_input("elbow", lambda time: 1.5 * np.sin(4.0 * time + 2.0 * time**2))  # N m: the torque of the motor is known


def angles(run: da.Trajectory) -> np.ndarray:
    return np.column_stack([run.joint(name).coordinates for name in ("shoulder", "elbow")])


def distance(run: da.Trajectory):
    """Half the sum of squares of what the angles are off, in units of the noise, with its derivative by the joints' coordinates."""
    off = (angles(run) - recording) / NOISE
    return 0.5 * np.sum(off**2), {"coordinate": np.pad(off[..., None] / NOISE, ((0, 0), (0, 0), (0, 5)))}


real = da.Simulation(arm, da.Implicit(dt=0.002))
real.set_parameters(TRUE)
push(real)
recording = angles(real.run(1.5))[::5] + NOISE * np.random.default_rng(1).normal(size=(151, 2))
f = da.value_and_gradient(arm, da.Variational(dt=0.01), 1.5, list(TRUE), distance, setup=push)


def objective(factors: np.ndarray) -> tuple[float, np.ndarray]:
    """Of the logarithms of the numbers by their guesses: none becomes negative, and all are of one size."""
    value, gradient = f(f.x0 * np.exp(factors))
    return value, gradient * f.x0 * np.exp(factors)


found = f.x0 * np.exp(minimize(objective, np.zeros(5), jac=True, method="BFGS", options={"gtol": 1.0}).x)
run = f.run(found)
print(*(f"{name:20} guessed {g:.3f}, found {n:.4f}, true {t:.4f}" for g, n, (name, t) in zip(f.x0, found, TRUE.items())), sep="\n")
Path("out").mkdir(exist_ok=True)
figure = run.plot("coordinates")
figure.axes[0].plot(run.time, recording, "k.", markersize=2)
figure.savefig("out/identification.png", dpi=200)
run.to_html("out/identification.html")
if not (np.abs(found / list(TRUE.values()) - 1.0).max() < 0.06 and np.sqrt(np.mean((angles(run) - recording) ** 2)) < 1.2 * NOISE):
    raise SystemExit("the numbers were not found")
