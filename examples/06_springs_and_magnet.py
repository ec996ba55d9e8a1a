"""A plate hangs on four springs above a magnet that pushes it away, and comes to rest where all forces balance.

The springs join two points, the air is a free joint that only damps, the magnet is a potential energy written as a
Python function. Writes out/plate.html, a page that shows the motion, a picture to out/plate.png and the energies to
out/plate_energy.png.
"""
from pathlib import Path

import numpy as np

import dalembert as da

MASS, STRENGTH = 2.0, 0.25  # kg, J m^3
MAGNET = np.array([0.1, 0.0, -0.6])

frame = da.Mechanism("plate on springs")
plate = frame.body("plate", da.Box(size=(0.6, 0.4, 0.02), mass=MASS))
corners = {f"spring {i}": np.array([x, y, 0.0]) for i, (x, y) in enumerate([(0.3, 0.2), (-0.3, 0.2), (-0.3, -0.2), (0.3, -0.2)])}
for name, corner in corners.items():
    frame.spring(name, frame.world, plate, at=(1.5 * corner + [0, 0, 0.5], corner), stiffness=60.0, length=0.4)
frame.joint("air", da.Free(damping=(4.0, 4.0, 4.0, 0.1, 0.1, 0.1)), frame.world, plate)  # N s/m and N m s/rad


def repulsion(position: np.ndarray, orientation: np.ndarray) -> float:
    """Energy of the plate's centre in the field of the magnet, in J."""
    return STRENGTH / float(np.linalg.norm(position - MAGNET)) ** 3


frame.potential("magnet", plate, repulsion)

simulation = da.Simulation(frame, da.Variational(dt=0.01))
simulation.set_velocity("plate", linear=(0.3, 0.2, 0.0), angular=(1.0, 0.0, 2.0))
trajectory = simulation.run(20.0)

offset = trajectory.position[-1, 0] - MAGNET
push = 3 * STRENGTH * offset / np.linalg.norm(offset) ** 5
springs = np.sum([trajectory.joint(name).force[-1] for name in corners], axis=0)
balance = springs + push + [0, 0, -9.81 * MASS]
speed = np.abs(trajectory.velocity[-1, 0]).max()
print(f"at rest at {np.round(trajectory.position[-1, 0], 4)} m, speed {speed:.1e} m/s")
print(f"springs {np.round(springs, 3)} N, magnet {np.round(push, 3)} N, left over {np.abs(balance).max():.1e} N")

Path("out").mkdir(exist_ok=True)
trajectory.plot("energy", path="out/plate_energy.png")
trajectory.snapshot("out/plate.png", time=0.3)
trajectory.to_html("out/plate.html")
if not (speed < 1e-4 and np.abs(balance).max() < 1e-3):
    raise SystemExit("the plate is not at rest in balance")
