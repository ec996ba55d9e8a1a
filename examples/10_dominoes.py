"""Dominoes on a curve: a push on the first, and each knocks over the next. Rigid contact with friction, no stiffness to tune.

Writes a page that shows the run to out/dominoes.html, a picture to out/dominoes.png and the gaps to out/dominoes_gaps.png.
"""
from pathlib import Path

import numpy as np

import dalembert as da

COUNT, SIZE = 14, (0.015, 0.045, 0.09)  # m: thick, wide, high

row = da.Mechanism("dominoes")
row.ground(friction=0.6)
for k in range(COUNT):
    angle = 0.11 * k
    place = (0.4 * np.sin(angle), 0.4 - 0.4 * np.cos(angle), SIZE[2] / 2)
    turn = (np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2))
    row.body(f"domino {k}", da.Box(size=SIZE, density=700.0), position=place, orientation=turn, collide=True)

simulation = da.Simulation(row, da.Variational(dt=0.002))
simulation.set_velocity("domino 0", linear=(0.1, 0, 0), angular=(0, 2.5, 0))
run = simulation.run(1.6)

upright = 1 - 2 * (run.orientation[:, :, 1] ** 2 + run.orientation[:, :, 2] ** 2)  # cosine of the tilt
falls = run.time[np.argmax(upright < 0.9, axis=0)]
speed = 0.4 * 0.11 * (COUNT - 4) / (falls[-3] - falls[1])
energy, gaps = run.energy_after().total, run.contacts().least_gap()
print(f"domino {COUNT - 1} falls after {falls[-1]:.2f} s; the wave goes at {speed:.2f} m/s")
print(f"least gap {gaps.min():.1e} m, energy lost {energy[0] - energy[-1]:.3f} J of {energy[0]:.3f} J")

Path("out").mkdir(exist_ok=True)
run.to_html("out/dominoes.html")
run.snapshot("out/dominoes.png", time=0.62 * falls[-1], azimuth=-80, elevation=24, show="contacts")
run.plot("gaps", path="out/dominoes_gaps.png", names=("domino 0", "domino 1"))
if not (np.all(np.diff(falls) > 0) and upright[-1].max() < 0.7 and gaps.min() > -1e-9 and np.diff(energy).max() < 1e-6):
    raise SystemExit("the dominoes did not fall as dominoes do")
