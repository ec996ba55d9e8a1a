"""A satellite unfolds its solar wing: twelve panels on a lattice of struts, seven motors for a single freedom.

The drives must agree, as they do here by formula; the satellite floats, so that its momentum stays zero while the wing
swings out. Writes a page that shows the run to out/solar_wing.html and a picture to out/solar_wing.png.
"""
from pathlib import Path

import numpy as np

import dalembert as da

satellite = da.zoo.solar_panel_satellite()
motion = da.zoo.deployment(duration=8.0)
simulation = da.Simulation(satellite, da.Implicit(dt=0.02, method="bdf2"))
found = simulation.redundancy()
print(f"{found.driven_rows} drives, {found.driven_rank} of them independent; {found.rows - found.rank} of {found.rows} joint rows are redundant")

for joint, target in motion.items():
    simulation.set_target(joint, target)
run = simulation.run(8.0)

momentum = run.momentum()
drift = max(np.abs(momentum.linear).max(), np.abs(momentum.angular - momentum.angular[0]).max())
missed = max(abs(run.joint(joint).coordinates[-1] - target(8.0)) for joint, target in motion.items())
turned = np.degrees(2 * np.arccos(np.clip(np.abs(run.body("bus").orientation[-1, 0]), 0, 1)))
torque = max(np.abs(run.joint(joint).actuation).max() for joint in motion)
print(f"the bus turned by {turned:.1f} degrees to make up for the wing; the motors need {torque:.2f} N m at the most")
print(f"drives missed by {missed:.1e} rad, momentum changed by {drift:.1e} N s or N m s, loops open by {run.constraint_violation().max():.1e}")

Path("out").mkdir(exist_ok=True)
run.to_html("out/solar_wing.html")
run.snapshot("out/solar_wing.png", time=5.0, azimuth=-70, elevation=20)
if not (missed < 1e-9 and run.constraint_violation().max() < 1e-9 and drift < 1e-2):
    raise SystemExit("the wing did not unfold as it should")
