"""A Stewart platform: six legs that stretch move a plate in all six directions. Inverse kinematics of closed chains, forces of the legs.

The plate shall circle and tilt. ``solve_pose`` finds the lengths of the legs for each moment, with no formula of the machine; they are
the targets of six motion drives. The forces that the drives then need carry the plate. Writes out/stewart_platform.html.
"""
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

import dalembert as da

HEIGHT = 1.2  # m
PLATE, ROD = 20.0, 0.5  # kg

platform = da.Mechanism("Stewart platform")
plate = platform.body("plate", da.Cylinder(radius=0.6, length=0.05, mass=PLATE), position=(0, 0, HEIGHT))
for k in range(6):
    side = (0.2, -0.2)[k % 2]
    near, far = 2 * np.pi / 3 * ((k + 1) // 2) + side, np.pi / 3 + 2 * np.pi / 3 * (k // 2) - side  # feet and tops in pairs, rad
    foot = np.array([np.cos(near), np.sin(near), 0.0])
    top = np.array([0.55 * np.cos(far), 0.55 * np.sin(far), HEIGHT])
    along = (top - foot) / np.linalg.norm(top - foot)
    turn = Rotation.align_vectors([along], [[0, 0, 1]])[0].as_quat(scalar_first=True)
    platform.body(f"tube {k}", da.Rod.between(foot, foot + 0.8 * along, radius=0.03, mass=ROD))
    platform.body(f"rod {k}", da.Rod.between(top - 0.8 * along, top, radius=0.02, mass=ROD))
    platform.joint(f"foot {k}", da.Universal(), platform.world, f"tube {k}", at=foot, frame=turn)
    platform.joint(f"leg {k}", da.Prismatic(axis="z", drive="motion"), f"tube {k}", f"rod {k}", at=foot, frame=turn)
    platform.joint(f"top {k}", da.Spherical(), f"rod {k}", plate, at=top)

sim = da.Simulation(platform, da.Implicit(dt=0.01))
times = np.linspace(0.0, 3.0, 61)
swing = 0.5 - 0.5 * np.cos(np.pi * np.minimum(times, 1.0))  # a soft begin
wanted = np.column_stack([0.2 * swing * np.sin(2 * times), 0.2 * swing * np.cos(2 * times), HEIGHT + 0.05 * swing * np.sin(4 * times)])
tilts = Rotation.from_euler("xy", np.column_stack([0.15 * swing * np.sin(2 * times), 0.15 * swing * np.cos(2 * times)]))
lengths = np.array([
    [pose[f"leg {k}"][0] for k in range(6)]
    for pose in (sim.solve_pose(aims=[da.Aim(body="plate", position=p, orientation=q)]) for p, q in zip(wanted, tilts.as_quat(scalar_first=True)))
])
for k in range(6):
    sim.set_target(f"leg {k}", (times, lengths[:, k]))
run = sim.run(3.0)

at = run.body("plate")
miss = np.abs(at.position[::5] - wanted).max()
turned = (Rotation.from_quat(at.orientation[::5], scalar_first=True) * tilts.inv()).magnitude().max()
forces = np.array([run.joint(f"leg {k}").actuation for k in range(6)])
standing = forces[:, 0] @ np.array([Rotation.from_matrix(platform[f"leg {k}"].frame_parent).apply((0, 0, 1))[2] for k in range(6)])
load = (PLATE + 6 * ROD) * 9.81
print(f"the plate is within {miss:.1e} m and {turned:.1e} rad of where it shall be; legs stretch by up to {np.abs(lengths).max():.2f} m")
print(f"forces of the legs from {forces.min():.0f} to {forces.max():.0f} N; at the start they lift {standing:.1f} N, plate and rods weigh {load:.1f} N")
Path("out").mkdir(exist_ok=True)
run.to_html("out/stewart_platform.html")
if not (miss < 1e-6 and turned < 1e-6 and run.constraint_violation().max() < 1e-9 and abs(standing / load - 1.0) < 0.01):
    raise SystemExit("the platform did not follow")
