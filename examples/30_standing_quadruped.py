"""A quadruped on servos: eight motors with bounded torque let it crouch and rise on its four rigid feet.

Targets of the servos come from the kinematics of a leg. Sensors on the feet say what each carries: in rest, the weight in all.
Writes out/standing_quadruped.png and out/standing_quadruped.html.
"""
from pathlib import Path

import numpy as np

import dalembert as da

LINK, LOW, HIGH, BOUND = 0.25, 0.32, 0.44, 40.0  # m, m, m, N m

robot = da.Mechanism("quadruped on servos")
robot.ground(friction=0.8)
robot.body("trunk", da.Box(size=(0.6, 0.25, 0.1), mass=12.0), position=(0, 0, HIGH))
servo = da.Servo(stiffness=600.0, damping=30.0, bound=BOUND)
bend = np.arccos(HIGH / (2 * LINK))  # of the thigh from the vertical, knees to the front
for x in (-0.22, 0.22):
    for y in (-0.15, 0.15):
        leg, hip = f"{'front' if x > 0 else 'rear'} {'left' if y > 0 else 'right'}", np.array([x, y, HIGH])
        knee, foot = hip + LINK * np.array([np.sin(bend), 0, -np.cos(bend)]), np.array([x, y, 0.02])
        robot.body(f"{leg} thigh", da.Rod.between(hip, knee, radius=0.02, mass=0.8))
        robot.body(f"{leg} shank", da.Rod.between(knee, foot, radius=0.015, mass=0.3))
        robot.joint(f"{leg} hip", da.Revolute(axis="y", servo=servo), "trunk", f"{leg} thigh", at=hip)
        robot.joint(f"{leg} knee", da.Revolute(axis="y", servo=servo), f"{leg} thigh", f"{leg} shank", at=knee)
        shank = robot[f"{leg} shank"]
        robot.contact_point(shank, point=foot - shank.position, radius=0.02)
        robot.sensor(f"{leg} foot", da.ContactForce(), shank, other="ground")


def height(t: float) -> float:
    """Down within a second, up within another one, then still."""
    return HIGH - (HIGH - LOW) * 0.5 * (1 - np.cos(np.pi * min(t, 2.0)))


def targets(sim: da.Simulation) -> dict[str, float]:
    turn = np.arccos(height(sim.time + 0.005) / (2 * LINK)) - bend
    return {joint.name: turn * (-1 if "hip" in joint.name else 2) for joint in robot.joints}


sim = da.Simulation(robot, da.Variational(dt=0.005))
run = sim.run(3.0, control=targets)

level, tilt = run.body("trunk").position[:, 2], np.abs(run.body("trunk").orientation[:, 1:]).max()
feet = sum(run.sensor(s.name)["normal force"][-1] for s in robot.sensors)
most = max(np.abs(run.joint(j.name).actuation).max() for j in robot.joints)
print(f"the trunk goes down to {level.min():.3f} m and up to {level[-1]:.3f} m, tilts by {tilt:.3f}; torques up to {most:.1f} N m")
print(f"the feet carry {feet:.2f} N, the weight is {robot.mass * 9.81:.2f} N; no foot is below {run.contacts().gap.min():.0e} m")
Path("out").mkdir(exist_ok=True)
run.snapshot("out/standing_quadruped.png", time=1.0, show="contacts")
run.to_html("out/standing_quadruped.html")
if not (abs(level.min() - LOW) < 0.03 and abs(level[-1] - HIGH) < 0.02 and abs(feet - robot.mass * 9.81) < 0.1 and most <= BOUND + 1e-9):
    raise SystemExit("it does not stand as it shall")
