"""An excavator's arm: three hydraulic cylinders, each a loop of its own, dig and lift a load.

Cylinders are slides between two bodies with a pin at each end, driven to lengths that inverse kinematics of the bucket's tip gives. Their forces are checked by the
balance of power. Writes out/excavator.png and out/excavator.html.
"""
from pathlib import Path

import numpy as np

import dalembert as da

arm = da.Mechanism("excavator")
links = {"boom": ((0, 0, 0.5), (2.5, 0, 1.5), 300.0), "stick": ((2.5, 0, 1.5), (3.5, 0, 0.2), 150.0), "bucket": ((3.5, 0, 0.2), (3.2, 0, -0.3), 80.0)}
for name, (p, q, mass) in links.items():
    arm.body(name, da.Rod.between(p, q, radius=0.06, mass=mass))
arm.body("load", da.Sphere(radius=0.15, mass=200.0), position=(3.2, 0, -0.3))
arm.joint("load on bucket", da.Fixed(), "bucket", "load", at=(3.2, 0, -0.3))
for name, parent, child in (("boom pin", "world", "boom"), ("stick pin", "boom", "stick"), ("bucket pin", "stick", "bucket")):
    arm.joint(name, da.Revolute(axis="y"), parent, child, at=links[child][0])


def cylinder(name: str, parent: str, foot: tuple, child: str, head: tuple) -> None:
    """A barrel on one pin, a rod on the other, and a slide between them that takes a length."""
    p, q = np.array(foot), np.array(head)
    barrel = arm.body(f"{name} barrel", da.Rod.between(p, p + 0.6 * (q - p), radius=0.05, mass=20.0))
    rod = arm.body(f"{name} rod", da.Rod.between(p + 0.4 * (q - p), q, radius=0.03, mass=12.0))
    arm.joint(f"{name} foot", da.Revolute(axis="y"), parent, barrel, at=p)
    arm.joint(f"{name} head", da.Revolute(axis="y"), child, rod, at=q)
    arm.joint(name, da.Prismatic(axis=tuple(q - p), drive="motion"), barrel, rod, at=p)


cylinder("boom cylinder", "world", (0.4, 0, 0.2), "boom", (1.3, 0, 0.95))
cylinder("stick cylinder", "boom", (1.2, 0, 1.3), "stick", (2.35, 0, 1.75))
cylinder("bucket cylinder", "stick", (2.8, 0, 1.4), "bucket", (3.75, 0, 0.3))
arm.joint("base on ground", da.Fixed(), "world", arm.body("base", da.Box(size=(0.8, 0.6, 0.5), mass=500.0), position=(0.1, 0, 0.2)), at=(0, 0, 0))
names = ("boom cylinder", "stick cylinder", "bucket cylinder")

sim = da.Simulation(arm, da.Implicit(dt=0.005))
times, tip = np.linspace(0, 3, 31), np.array([3.2, 0, -0.3])
way = tip + np.column_stack([-0.25 * (1 - np.cos(2 * np.pi * times / 3)), 0 * times, 0.9 * (1 - np.cos(np.pi * times / 3)) / 2])
lengths = [sim.solve_pose({"bucket cylinder": 0.0}, aims=[da.Aim(body="load", position=place)]) for place in way]
for name in names:
    sim.set_target(name, (times, np.array([float(found[name][0]) for found in lengths])))
run = sim.run(3.0)

power = np.sum([run.joint(name).actuation * run.joint(name).rates for name in names], axis=0)
gained = run.energy().total - run.energy().total[0]
work = np.concatenate([[0.0], np.cumsum(0.5 * (power[1:] + power[:-1])) * 0.005])
miss = np.abs(work - gained).max() / np.abs(gained).max()
print("forces up to", ", ".join(f"{np.abs(run.joint(name).actuation).max() / 1000:.1f} kN ({name})" for name in names))
print(f"the load is lifted by {run.body('load').position[-1, 2] + 0.3:.4f} m; the cylinders' work is the energy gained within {miss:.1e}")
Path("out").mkdir(exist_ok=True)
run.snapshot("out/excavator.png", time=1.5)
run.to_html("out/excavator.html")
if not (miss < 1e-3 and abs(run.body("load").position[-1, 2] - 0.6) < 1e-3):
    raise SystemExit("the work does not add up")
