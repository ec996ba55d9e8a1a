"""A quadruped trots: twelve motors follow a gait, rigid feet with friction carry it, and the ground says how.

Writes a page that shows the run to out/quadruped.html, a picture with the feet's forces to out/quadruped.png, the gaps
and forces of the feet to out/quadruped_gaps.png.
"""
from pathlib import Path

import numpy as np

import dalembert as da

GAIT = da.zoo.Gait(b=0.2, a1=0.25, d1=0.8, a2=-0.3, d2=-1.5)

robot = da.zoo.quadruped(gait=GAIT)
run = da.Simulation(robot, da.Variational(dt=0.005)).run(4.0, control=da.zoo.leg_controller(GAIT))

way, contacts = run.body("trunk").position[:, 0], run.contacts()
steady = run.time > 1.0  # the gait has settled by then
weight = 9.81 * robot.mass
carried = contacts.total_force()[steady, 2].mean()
feet = np.linalg.norm(contacts.friction_force, axis=1) - 0.8 * contacts.normal_force
print(f"it walked {way[-1] - way[0]:.2f} m in {run.time[-1]:.0f} s; the ground carries {carried:.1f} N of {weight:.1f} N on average")
print(f"least gap {contacts.least_gap().min():.1e} m; friction beyond its cone by {max(feet.max(), 0):.1e} N")

Path("out").mkdir(exist_ok=True)
run.to_html("out/quadruped.html")
run.snapshot("out/quadruped.png", time=2.05, show="contacts")
run.plot("gaps", path="out/quadruped_gaps.png")
if not (way[-1] - way[0] > 0.5 and abs(carried - weight) < 0.03 * weight and feet.max() < 1e-6):
    raise SystemExit("the quadruped does not walk")
