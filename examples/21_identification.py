"""Damping, dry friction, a rotor's inertia and a load, found from a noisy recording of an arm that swings.

The recording comes from another method at a fifth of the step, with noise of 3 mrad on both angles, a hundred times a second. The adjoint
gives the derivative of the sum of squares by all five numbers, also through the moments at which friction holds; BFGS finds
them from guesses that are off by a factor of two. Draws the recording with the fit, and the numbers by iteration, out/identification.png,
and writes out/identification.html.
"""
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import dalembert as da
from dalembert.view.plots import COLOURS, add_legend, finish_axis, finished, new_figure

DURATION, NOISE = 1.5, 0.003  # s, rad
TRUE = {"shoulder.damping": 0.08, "shoulder.friction": 0.25, "elbow.damping": 0.03, "elbow.armature": 0.02, "lower.mass": 0.7}
UNITS = ("N m s/rad", "N m", "N m s/rad", "kg m^2", "kg")
JOINTS = ("shoulder", "elbow")

arm = da.Mechanism("arm")
arm.body("upper", da.Rod(length=0.5, mass=1.0, radius=0.03), position=(0, 0, -0.25))
arm.body("lower", da.Rod(length=0.4, mass=0.4, radius=0.03), position=(0, 0, -0.7))
arm.joint("shoulder", da.Revolute(axis="y", damping=0.16, friction=0.12), arm.world, "upper", at=(0, 0, 0))
arm.joint("elbow", da.Revolute(axis="y", damping=0.06, armature=0.01, drive="force"), "upper", "lower", at=(0, 0, -0.5))
arm.start("shoulder", 1.2)


def push(sim: da.Simulation) -> None:
    """The torque of the motor, which is known (N m)."""
    sim.set_input("elbow", lambda time: 1.5 * np.sin(4.0 * time + 2.0 * time**2))


def angles(run: da.Trajectory) -> np.ndarray:
    return np.column_stack([run.joint(name).coordinates for name in JOINTS])


real = da.Simulation(arm, da.Implicit(dt=0.002))
real.set_parameters(TRUE)
push(real)
recording = angles(real.run(DURATION))[::5]
recording += NOISE * np.random.default_rng(1).normal(size=recording.shape)


def distance(run: da.Trajectory):
    """Half the sum of squares of what the angles are off, in units of the noise, with its derivative by the joints' coordinates."""
    off = (angles(run) - recording) / NOISE
    weights = np.zeros((len(run), 2, 6))
    weights[:, :, 0] = off / NOISE
    return 0.5 * np.sum(off**2), {"coordinate": weights}


f = da.value_and_gradient(arm, da.Variational(dt=0.01), DURATION, list(TRUE), distance, setup=push)
history = [f.x0]


def objective(factors: np.ndarray) -> tuple[float, np.ndarray]:
    """Of the logarithms of the numbers by their guesses: none becomes negative, and all are of one size."""
    numbers = f.x0 * np.exp(factors)
    value, gradient = f(numbers)
    return value, gradient * numbers


found = minimize(objective, np.zeros(5), jac=True, method="BFGS", callback=lambda x: history.append(f.x0 * np.exp(x)), options={"gtol": 1.0})
numbers = history[-1]
run, true = f.run(numbers), np.array(list(TRUE.values()))
rest = np.sqrt(np.mean((angles(run) - recording) ** 2))
print(f"{found.nit} iterations; what is left is {1e3 * rest:.2f} mrad, the noise is {1e3 * NOISE:.2f} mrad")
print("                        guess     found      true")
for name, *values, unit in zip(TRUE, f.x0, numbers, true, UNITS):
    print(f"{name:20}" + "".join(f"{value:10.4f}" for value in values) + f"  {unit}")

Path("out").mkdir(exist_ok=True)
figure = new_figure("out/identification.png", height=3.2)
left, right = figure.subplots(1, 2)
for k, name in enumerate(JOINTS):
    left.plot(run.time, recording[:, k], ".", markersize=2, color=COLOURS[k])
    left.plot(run.time, angles(run)[:, k], color=COLOURS[k], linewidth=1, label=name)
for k, name in enumerate(TRUE):
    right.plot(np.array(history)[:, k] / true[k], color=COLOURS[k], label=name)
finish_axis(left, "angle / rad")
finish_axis(right, "found by true")
left.set_xlabel("time / s")
right.set_xlabel("iteration")
add_legend(left)
add_legend(right)
finished(figure, "an arm's numbers from a noisy recording", "out/identification.png")
run.to_html("out/identification.html")
if not (np.abs(numbers / true - 1.0).max() < 0.06 and rest < 1.2 * NOISE):
    raise SystemExit("the numbers were not found")
