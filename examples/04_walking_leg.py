"""Theo Jansen's walking leg, its crank turned at a given angle over time: the motor's torque, and the foot's path.

Ten bars, two of them pairs that form rigid triangles, one motor. Writes out/walking_leg.png and out/walking_leg_forces.png.
"""
from math import pi
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import dalembert as da

# Jansen's "holy numbers" in cm; points by intersecting circles around points that are known already
HOLY = dict(a=38.0, b=41.5, c=39.3, d=40.1, e=55.8, f=39.4, g=36.7, h=65.7, i=49.0, j=50.0, k=61.9, l=7.8, m=15.0)
L = {name: 0.01 * length for name, length in HOLY.items()}


def meet(p: np.ndarray, r: float, q: np.ndarray, s: float) -> np.ndarray:
    """The point at distance r from p and s from q, to the left on the way from p to q."""
    d = float(np.linalg.norm(q - p))
    x = (d * d + r * r - s * s) / (2 * d)
    along, across = (q - p) / d, np.array([-(q - p)[1], (q - p)[0]]) / d
    return p + x * along + np.sqrt(r * r - x * x) * across


P: dict[str, np.ndarray] = {"crank": np.zeros(2), "frame": np.array([-L["a"], -L["l"]])}
P["pin"] = np.array([L["m"], 0.0])
P["top"] = meet(P["frame"], L["b"], P["pin"], L["j"])
P["back"] = meet(P["frame"], L["d"], P["top"], L["e"])
P["low"] = meet(P["pin"], L["k"], P["frame"], L["c"])
P["knee"] = meet(P["low"], L["g"], P["back"], L["f"])
P["foot"] = meet(P["low"], L["i"], P["knee"], L["h"])
AT = {name: np.array([0.0, y, z]) for name, (y, z) in P.items()}

leg = da.Mechanism("walking leg")
BARS: dict[str, tuple[str, ...]] = {
    "crank arm": ("crank", "pin"), "upper rod": ("pin", "top"), "lower rod": ("pin", "low"), "shoulder": ("frame", "top", "back"),
    "swing": ("frame", "low"), "back rod": ("back", "knee"), "shin": ("low", "knee", "foot"),
}


def rod(start: np.ndarray, end: np.ndarray) -> tuple[da.Rod, np.ndarray]:
    length = float(np.linalg.norm(end - start))
    return da.Rod(length=length, radius=0.01, mass=length, axis=end - start), (start + end) / 2


bodies = {}
for name, corners in BARS.items():
    pairs = [(AT[corners[i]], AT[corners[i - 1]]) for i in range(len(corners))][: 1 if len(corners) == 2 else 3]
    shape = da.Composite(parts=[rod(*pair) for pair in pairs])
    bodies[name] = leg.body(name, shape, position=shape.center_of_mass)

leg.joint("motor", da.Revolute(axis="x", drive="position"), leg.world, bodies["crank arm"], at=AT["crank"])
for name, parent, child, point in [
    ("pin to top", "crank arm", "upper rod", "pin"), ("pin to low", "crank arm", "lower rod", "pin"),
    ("frame to shoulder", "world", "shoulder", "frame"), ("frame to swing", "world", "swing", "frame"), ("top", "upper rod", "shoulder", "top"),
    ("low to swing", "lower rod", "swing", "low"), ("back", "shoulder", "back rod", "back"), ("knee", "back rod", "shin", "knee"), ("low to shin", "swing", "shin", "low"),
]:
    leg.joint(name, da.Revolute(axis="x"), parent, child, at=AT[point])

PERIOD = 2.0  # s per turn
simulation = da.Simulation(leg, da.Variational(dt=PERIOD / 400))


def angle(t: float) -> float:
    """Of the crank: from rest to a steady turn within half a second."""
    rise = 0.5
    return 2 * pi / PERIOD * (t * t / (2 * rise) if t < rise else t - rise / 2)


simulation.set_target("motor", angle)
trajectory = simulation.run(2 * PERIOD)
motor = trajectory.joint("motor")
print(np.unique(trajectory.substeps), trajectory.constraint_violation().max())

# what the motor puts in is what the leg has gained
energy = trajectory.energy().total
work = np.trapezoid(motor.actuation * motor.rates, trajectory.time)
print(work, energy[-1]-energy[0], np.ptp(energy))
