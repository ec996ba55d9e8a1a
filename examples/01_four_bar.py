"""A four-bar linkage swings freely for ten seconds: the loop stays closed and the energy stays.

Three rods and the ground form a loop of four hinges. Writes out/four_bar.html, a page that shows the motion, a picture to
out/four_bar.png and the energies to out/four_bar_energy.png.
"""
from pathlib import Path
from time import perf_counter

import numpy as np

import dalembert as da

A, B, C, D = np.array([[0, 0, 0], [0, -0.1, -0.3], [0, 0.6, -0.6], [0, 0.8, 0]])

linkage = da.Mechanism("four-bar linkage")


def link(name: str, start: np.ndarray, end: np.ndarray):
    length = float(np.linalg.norm(end - start))
    return linkage.body(name, da.Rod(length=length, radius=0.02, mass=2.0 * length, axis=tuple(end - start)), position=(start + end) / 2)


crank, coupler, rocker = link("crank", A, B), link("coupler", B, C), link("rocker", C, D)
linkage.joint("A", da.Revolute(axis="x"), linkage.world, crank, at=A)
linkage.joint("B", da.Revolute(axis="x"), crank, coupler, at=B)
linkage.joint("C", da.Revolute(axis="x"), coupler, rocker, at=C)
linkage.joint("D", da.Revolute(axis="x"), linkage.world, rocker, at=D)


def swing() -> da.Trajectory:
    simulation = da.Simulation(linkage, da.Variational(dt=0.01))
    simulation.set_joint("A", 0.0, rate=3.0)
    return simulation.run(10.0)


print("starting ...", flush=True)
tick = perf_counter()
swing()
start_time = perf_counter() - tick

tick = perf_counter()
trajectory = swing()
run_time = perf_counter() - tick

energy = trajectory.energy()
drift = np.abs(energy.total - energy.total[0]).max() / np.ptp(energy.kinetic)
violation = trajectory.constraint_violation().max()
Path("out").mkdir(exist_ok=True)
trajectory.plot("energy", path="out/four_bar_energy.png")
trajectory.snapshot("out/four_bar.png", time=0.3, show="axes")
trajectory.to_html("out/four_bar.html")

print(f"first run, with compiling or loading the kernels   {start_time:.2f} s")
print(f"second run                                         {run_time:.3f} s, {(len(trajectory) - 1) / run_time:,.0f} steps/s")
print(f"largest energy error, of the kinetic energy        {drift:.1e}")
print(f"largest constraint violation                       {violation:.1e} m or rad")
print("a page to open in a browser                        out/four_bar.html")

if not (violation < 1e-9 and drift < 1e-2):
    raise SystemExit("the loop opened or the energy drifted")
