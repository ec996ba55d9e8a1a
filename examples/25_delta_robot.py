"""A Delta robot: three driven arms and six thin rods hold a tool that never turns. Inverse kinematics of a closed chain.

The tool draws a square. Angles of the three arms come from ``solve_pose``; the parallelograms are redundant, which is no special
case. The rods have a ball joint at each end, and spin about themselves as they like. Writes out/delta_robot.html.
"""
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

import dalembert as da

robot = da.Mechanism("Delta robot")
tool = robot.body("tool", da.Cylinder(radius=0.06, length=0.02, mass=0.5), position=(0, 0, -0.5))
for k in range(3):
    turn = Rotation.from_euler("z", 120 * k, degrees=True)
    hip, elbow, wrist = (turn.apply(p) for p in ((0.15, 0, 0), (0.35, 0, -0.05), (0.05, 0, -0.5)))
    side = turn.apply((0, 0.05, 0))
    arm = robot.body(f"arm {k}", da.Rod.between(hip, elbow, radius=0.015, mass=0.3))
    robot.joint(f"motor {k}", da.Revolute(axis="y", drive="motion"), robot.world, arm, at=hip, frame=turn.as_quat(scalar_first=True))
    for sign in (-1, 1):
        rod = robot.body(f"rod {k}{'+' if sign > 0 else '-'}", da.Rod.between(elbow + sign * side, wrist + sign * side, radius=0.006, mass=0.05))
        robot.joint(f"{rod.name} elbow", da.Spherical(), arm, rod, at=elbow + sign * side)
        robot.joint(f"{rod.name} wrist", da.Spherical(), rod, tool, at=wrist + sign * side)

corners = np.array([(0.1, 0.1), (-0.1, 0.1), (-0.1, -0.1), (0.1, -0.1), (0.1, 0.1)])
times = np.linspace(0.0, 2.0, 41)
pieces, share = np.divmod(2.0 * times, 1.0)
start, end = corners[np.minimum(pieces.astype(int), 4)], corners[np.minimum(pieces.astype(int) + 1, 4)]
path = np.column_stack([start + (3 * share**2 - 2 * share**3)[:, None] * (end - start), np.full(41, -0.5)])

sim = da.Simulation(robot, da.Variational(dt=0.005))
poses = [sim.solve_pose(aims=[da.Aim(body="tool", position=place)]) for place in path]
for k in range(3):
    sim.set_joint(f"motor {k}", poses[0][f"motor {k}"])
    sim.set_target(f"motor {k}", (times, np.array([pose[f"motor {k}"][0] for pose in poses])))
run = sim.run(2.0)

seen = run.body("tool")
miss = np.linalg.norm(seen.position[::10] - path, axis=1).max()
tilt = Rotation.from_quat(seen.orientation, scalar_first=True).magnitude().max()
torque = max(np.abs(run.joint(f"motor {k}").actuation).max() for k in range(3))
print(f"the tool is within {miss:.1e} m of the square at its times, tilts by {tilt:.1e} rad; torques up to {torque:.2f} N m")
Path("out").mkdir(exist_ok=True)
run.to_html("out/delta_robot.html")
if not (miss < 1e-6 and tilt < 1e-6 and run.constraint_violation().max() < 1e-8):
    raise SystemExit("the tool left its path")
