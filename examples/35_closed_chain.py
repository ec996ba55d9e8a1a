"""Inverse kinematics of a closed chain: two motors on the ground lead the tip of a five-bar linkage around a circle.

``solve_pose`` finds the angles of the motors, with the loop closed; the closed form (where two circles meet) says whether they are
right. The motors then follow them, and the trajectory says what torques that takes. Writes out/closed_chain.html.
"""
from pathlib import Path

import numpy as np

import dalembert as da

SPAN, ARM, ROD, TURN = 0.2, 0.25, 0.35, 2.0  # m, s

plotter = da.zoo.five_bar(span=SPAN, arm=ARM, rod=ROD, drive="motion")
sim = da.Simulation(plotter, da.Variational(dt=0.005))
times = np.linspace(0.0, TURN, 81)
angle = 2.0 * np.pi * times / TURN
circle = np.column_stack([0.1 * np.sin(angle), 0.42 + 0.1 * np.cos(angle), np.zeros(len(times))])

tip = (0.5 * ROD, 0, 0)  # of the left forearm, from its centre of mass
poses = [sim.solve_pose(aims=[da.Aim(body="left forearm", point=tip, position=place)]) for place in circle]


def closed_form(side: float) -> np.ndarray:
    """Angles of the left (-1) or right (1) motor from their start, 0.4 rad outwards of the y axis; elbows point outwards."""
    away = circle[:, :2] - (0.5 * side * SPAN, 0.0)
    distance = np.linalg.norm(away, axis=1)
    inner = np.arccos((ARM**2 + distance**2 - ROD**2) / (2.0 * ARM * distance))
    return np.arctan2(away[:, 1], away[:, 0]) - side * inner - (0.5 * np.pi - 0.4 * side)


off = 0.0
for name, side in (("left motor", -1.0), ("right motor", 1.0)):
    found = np.array([pose[name][0] for pose in poses])
    off = max(off, np.abs(found - closed_form(side)).max())
    sim.set_joint(name, found[0])
    sim.set_target(name, (times, found))
run = sim.run(TURN)

miss = np.linalg.norm(run.point("left forearm", tip)[::5] - circle, axis=1).max()
torque = max(np.abs(run.joint(f"{side} motor").actuation).max() for side in ("left", "right"))
print(f"angles are within {off:.1e} rad of the closed form, the tip within {miss:.1e} m of the circle; torques up to {torque:.2f} N m")
Path("out").mkdir(exist_ok=True)
run.to_html("out/closed_chain.html")
if not (off < 1e-8 and miss < 1e-8 and run.constraint_violation().max() < 1e-8):
    raise SystemExit("the tip left the circle")
