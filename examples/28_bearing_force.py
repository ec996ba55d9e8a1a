"""The force in a bearing: a rotor whose mass sits beside its axis shakes its two bearings.

The closed form is m e w^2, shared by the bearings as a beam shares its load, and turning with the rotor. The first bearing holds a point
of the shaft, the second lets it slide along the axis. All formulations read the same forces.
Writes out/bearing_force.png and out/bearing_force.html.
"""
from pathlib import Path

import numpy as np

import dalembert as da

MASS, OFFSET, SPEED, SPAN, PLACE = 2.0, 0.003, 100.0, 0.4, 0.1  # kg, m, rad/s, m between bearings, m from the first one

rotor = da.Mechanism("rotor", gravity=(0, 0, 0))
body = rotor.body("rotor", da.Cylinder(radius=0.1, length=0.02, mass=MASS, axis="y"), position=(OFFSET, PLACE, 0))
rotor.joint("fixed bearing", da.Spherical(), rotor.world, body, at=(0, 0, 0))
rotor.joint("loose bearing", da.Slot(axis="y"), rotor.world, body, at=(0, SPAN, 0))

shares = {"loose bearing": PLACE / SPAN, "fixed bearing": 1.0 - PLACE / SPAN}
worst = 0.0
print(f"m e w^2 = {MASS * OFFSET * SPEED**2:.1f} N at {SPEED * 30 / np.pi:.0f} turns a minute")
for formulation in (da.Variational(dt=2e-4), da.Implicit(dt=2e-4), da.Reduced(dt=2e-4)):
    sim = da.Simulation(rotor, formulation)
    sim.set_velocity("rotor", angular=(0, SPEED, 0))
    run = sim.run(0.1)
    out = run.body("rotor").position - (0.0, PLACE, 0.0)  # from the axis to the mass, wherever it has turned to
    needed = -MASS * SPEED**2 * out
    misses = {name: np.abs(run.joint(name).force - share * needed).max() for name, share in shares.items()}
    worst = max(worst, *misses.values())
    print(f"{type(formulation).__name__:12}" + ", ".join(f"{name} {share * MASS * OFFSET * SPEED**2:.1f} N within {misses[name]:.1e} N" for name, share in shares.items()))
Path("out").mkdir(exist_ok=True)
run.plot("forces", names=("fixed bearing", "loose bearing"), path="out/bearing_force.png")
run.to_html("out/bearing_force.html")
if not worst < 0.05:
    raise SystemExit("a bearing carries another force than the closed form says")
