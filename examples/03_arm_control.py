"""A two-link arm under PD control with gravity compensation reaches for a pose and holds it.

The controller reads the joints before each step and returns their torques. Writes out/arm_coordinates.png.
"""
from pathlib import Path

import numpy as np

import dalembert as da

LENGTH, MASS, GRAVITY = 0.5, 1.5, 9.81
GOAL = {"shoulder": 2.0, "elbow": -0.8}  # rad; zero hangs down
STIFFNESS, DAMPING = {"shoulder": 120.0, "elbow": 40.0}, {"shoulder": 20.0, "elbow": 5.0}

arm = da.Mechanism("two-link arm")
rod = da.Rod(length=LENGTH, mass=MASS, radius=0.03)
upper = arm.body("upper", rod, position=(0, 0, -LENGTH / 2))
lower = arm.body("lower", rod, position=(0, 0, -3 * LENGTH / 2))
arm.joint("shoulder", da.Revolute(axis="x", drive="force"), arm.world, upper)
arm.joint("elbow", da.Revolute(axis="x", drive="force"), upper, lower, at=(0, 0, -LENGTH))


def gravity_torques(shoulder: float, elbow: float) -> dict[str, float]:
    """Torques in N m that hold the arm against its weight."""
    weight = MASS * GRAVITY * LENGTH
    lower = 0.5 * weight * np.sin(shoulder + elbow)
    return {"shoulder": 1.5 * weight * np.sin(shoulder) + lower, "elbow": lower}


def control(sim: da.Simulation) -> dict[str, float]:
    angle = {name: sim.coordinates(name)[0] for name in GOAL}
    rate = {name: sim.rates(name)[0] for name in GOAL}
    hold = gravity_torques(**angle)
    return {name: hold[name] + STIFFNESS[name] * (GOAL[name] - angle[name]) - DAMPING[name] * rate[name] for name in GOAL}


trajectory = da.Simulation(arm, da.Variational(dt=0.005)).run(4.0, control=control)

misses = {name: abs(trajectory.joint(name).coordinates[-1] - goal) for name, goal in GOAL.items()}
for name, goal in GOAL.items():
    joint = trajectory.joint(name)
    print(f"{name}: at {joint.coordinates[-1]:+.6f} rad, goal {goal:+.1f}, holds with {joint.actuation[-1]:+.3f} N m")

Path("out").mkdir(exist_ok=True)
trajectory.plot("coordinates", path="out/arm_coordinates.png")
if not max(misses.values()) < 1e-4:
    raise SystemExit("the arm did not reach its goal")
