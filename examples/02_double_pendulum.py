"""A chaotic double pendulum for a thousand seconds: the energy error stays in a band and does not grow.

Writes out/double_pendulum_energy.png.
"""
from pathlib import Path

import numpy as np

import dalembert as da

arm = da.Mechanism("double pendulum")
upper = arm.body("upper", da.Rod(length=1.0, mass=1.0, radius=0.05), position=(0, 0, -0.5))
lower = arm.body("lower", da.Rod(length=1.0, mass=1.0, radius=0.05), position=(0, 0, -1.5))
arm.joint("shoulder", da.Revolute(axis="x"), arm.world, upper, at=(0, 0, 0))
arm.joint("elbow", da.Revolute(axis="x"), upper, lower, at=(0, 0, -1))

simulation = da.Simulation(arm, da.Variational(dt=0.005))
simulation.set_joint("shoulder", np.pi / 2)
trajectory = simulation.run(1000.0)

energy = trajectory.energy().total
error = np.abs(energy - energy[0])
hundreds = [error[(trajectory.time >= t) & (trajectory.time <= t + 100)].max() for t in range(0, 1000, 100)]
print("largest energy error in J, for each 100 s:", *(f"{e:.1e}" for e in hundreds))
print(f"the elbow turned over {round(np.ptp(trajectory.joint('elbow').coordinates) / (2 * np.pi))} times")

Path("out").mkdir(exist_ok=True)
trajectory.plot("energy", path="out/double_pendulum_energy.png")
if not max(hundreds[-3:]) < 2 * max(hundreds[:3]):
    raise SystemExit("the energy error grows")
