"""What torque turns a four-bar at constant speed? The motor's torque over a turn, checked by the balance of power.

The crank follows its angle exactly, and the trajectory says what that takes: torque times speed is what the energy gains.
Writes out/four_bar_torque.png and out/four_bar_torque.html.
"""
from pathlib import Path

import numpy as np

import dalembert as da

SPEED = 6.0  # rad/s
A, B, C, D = (0, 0, 0), (0, 0, 0.15), (0.5, 0, 0.35), (0.45, 0, 0)

linkage = da.Mechanism("four-bar with a motor")
for name, p, q, mass in (("crank", A, B, 0.5), ("coupler", B, C, 1.5), ("rocker", C, D, 1.0)):
    linkage.body(name, da.Rod.between(p, q, radius=0.015, mass=mass))
linkage.joint("motor", da.Revolute(axis="y", drive="motion"), "world", "crank", at=A)
linkage.joint("B", da.Revolute(axis="y"), "crank", "coupler", at=B)
linkage.joint("C", da.Revolute(axis="y"), "coupler", "rocker", at=C)
linkage.joint("D", da.Revolute(axis="y"), "world", "rocker", at=D)

sim = da.Simulation(linkage, da.Implicit(dt=1e-3))
sim.set_joint("motor", 0.0, rate=SPEED)
sim.set_target("motor", lambda t: SPEED * t)
run = sim.run(2 * np.pi / SPEED)

torque, energy = run.joint("motor").actuation, run.energy().total
power = np.gradient(energy, run.time)
miss = np.abs(torque * SPEED - power)[2:-2].max() / np.abs(power).max()
print(f"torque from {torque.min():.2f} to {torque.max():.2f} N m, {np.trapezoid(torque, dx=SPEED * 1e-3):+.1e} J of work in a turn")
print(f"torque times speed is what the energy gains, within {miss:.1e}; the loop stays closed within {run.constraint_violation().max():.0e} m")
Path("out").mkdir(exist_ok=True)
run.plot("forces", names=("motor",), path="out/four_bar_torque.png")
run.to_html("out/four_bar_torque.html")
if not miss < 2e-3:
    raise SystemExit("the torque does not account for the energy")
