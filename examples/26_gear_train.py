"""A gear train: a motor turns a drum over two stages of gears, 1 : 12 in all, and winds up a weight.

The motor's inertia counts 144 times at the drum: the closed form of the acceleration has it, and the simulation does too. The
forces between the teeth are read off. Writes out/gear_train.html.
"""
from pathlib import Path

import numpy as np

import dalembert as da

TORQUE, RADIUS, LOAD, DURATION = 1.8, 0.1, 20.0, 3.0  # N m, m of the drum, kg, s

train = da.Mechanism("gear train")
wheels = {"motor": (0.05, 1.0, 0.0), "idler": (0.15, 3.0, 0.22), "drum": (0.2, 8.0, 0.6)}  # radius / m, mass / kg, place / m
for name, (radius, mass, place) in wheels.items():
    train.body(name, da.Cylinder(radius=radius, length=0.05, mass=mass, axis="y"), position=(place, 0, 1))
    train.joint(f"{name} shaft", da.Revolute(axis="y", drive="force" if name == "motor" else None), train.world, name, at=(place, 0, 1))
train.body("load", da.Box(size=(0.2, 0.2, 0.2), mass=LOAD), position=(0.8, 0, 0))
train.joint("lift", da.Prismatic(axis="z"), train.world, "load", at=(0.8, 0, 0))
train.gear("first stage", "motor shaft", "idler shaft", ratio=-3.0)  # wheels in mesh turn against one another
train.gear("second stage", "idler shaft", "drum shaft", ratio=-4.0)
train.gear("rope", "lift", "drum shaft", ratio=RADIUS)

sim = da.Simulation(train, da.Variational(dt=0.0005))
sim.set_input("motor shaft", TORQUE)
run = sim.run(DURATION)

spin = {name: 0.5 * mass * radius**2 for name, (radius, mass, _) in wheels.items()}
inertia = spin["motor"] * 144 + spin["idler"] * 16 + spin["drum"] + LOAD * RADIUS**2  # at the drum
acceleration = (12 * TORQUE - LOAD * 9.81 * RADIUS) / inertia
lifted = run.joint("lift").coordinates
closed = 0.5 * RADIUS * acceleration * run.time**2
tooth = np.abs(run.coupling_force("second stage"))[1:-1]
print(f"{lifted[-1]:+.4f} m after {DURATION:g} s, closed form {closed[-1]:+.4f} m; the motor has turned {run.joint('motor shaft').coordinates[-1] / 2 / np.pi:.1f} times")
print(f"torque between idler and drum {tooth.mean():.3f} N m at the idler, that of the closed form {abs(TORQUE * 3 - acceleration * 4 * (spin['idler'] + 9 * spin['motor'])):.3f} N m")
Path("out").mkdir(exist_ok=True)
run.to_html("out/gear_train.html")
if not np.abs(lifted - closed).max() < 1e-3 * closed[-1]:
    raise SystemExit("the weight is not where the closed form has it")
