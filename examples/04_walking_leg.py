"""Theo Jansen's walking leg: a motor turns the crank by a given angle over time, three loops lead the foot along.

Reads the motor's torque and draws the motion: out/walking_leg.png, and out/walking_leg.html, a page that shows it.
"""
from math import pi
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import dalembert as da

PERIOD = 2.0  # s per turn of the crank


def meet(p: np.ndarray, r: float, q: np.ndarray, s: float) -> np.ndarray:
    """The point at distance r from p and s from q, on the left on the way from p to q."""
    d = float(np.linalg.norm(q - p))
    x = (d * d + r * r - s * s) / (2 * d)
    along = (q - p) / d
    return p + x * along + np.sqrt(r * r - x * x) * np.array([-along[1], along[0]])


# Jansen's "holy numbers", in metres: where the hinges are at the start, in the y-z plane
P = {"crank": np.zeros(2), "frame": np.array([-0.380, -0.078]), "pin": np.array([0.150, 0.0])}
P["top"] = meet(P["frame"], 0.415, P["pin"], 0.500)
P["back"] = meet(P["frame"], 0.401, P["top"], 0.558)
P["low"] = meet(P["pin"], 0.619, P["frame"], 0.393)
P["knee"] = meet(P["low"], 0.367, P["back"], 0.394)
P["foot"] = meet(P["low"], 0.490, P["knee"], 0.657)
AT = {name: np.array([0.0, *yz]) for name, yz in P.items()}

BODIES = {
    "crank arm": ["crank", "pin"], "upper rod": ["pin", "top"], "lower rod": ["pin", "low"], "swing": ["frame", "low"],
    "back rod": ["back", "knee"], "shoulder": ["frame", "top", "back"], "shin": ["low", "knee", "foot"],
}
HINGES = [
    ("crank arm", "upper rod", "pin"), ("crank arm", "lower rod", "pin"), ("world", "swing", "frame"),
    ("world", "shoulder", "frame"), ("upper rod", "shoulder", "top"), ("lower rod", "swing", "low"),
    ("swing", "shin", "low"), ("shoulder", "back rod", "back"), ("back rod", "shin", "knee"),
]

leg = da.Mechanism("walking leg")
for name, points in BODIES.items():
    sides = [(AT[a], AT[b]) for a, b in zip(points, points[1:] + points[:1] if len(points) > 2 else points[1:])]
    lengths = [float(np.linalg.norm(b - a)) for a, b in sides]
    rods = [(da.Rod(length=l, radius=0.01, mass=l, axis=tuple(b - a)), (a + b) / 2) for l, (a, b) in zip(lengths, sides)]
    shape = da.Composite(parts=rods)
    leg.body(name, shape, position=shape.center_of_mass)
leg.joint("motor", da.Revolute(axis="x", drive="motion"), leg.world, "crank arm", at=AT["crank"])
for parent, child, point in HINGES:
    leg.joint(f"{parent} - {child}", da.Revolute(axis="x"), parent, child, at=AT[point])


def crank_angle(t: float) -> float:
    """From rest to a steady turn within half a second, in rad."""
    return 2 * pi / PERIOD * (t * t if t < 0.5 else t - 0.25)


simulation = da.Simulation(leg, da.Variational(dt=PERIOD / 400))
simulation.set_target("motor", crank_angle)
trajectory = simulation.run(2 * PERIOD + 0.25)  # two turns
motor = trajectory.joint("motor")
paths = {(b, p): trajectory.point(b, AT[p] - leg[b].position)[:, 1:] for b, points in BODIES.items() for p in points}
last_turn = np.arange(len(trajectory) - 401, len(trajectory))


def draw() -> Figure:
    """The leg at some moments of the last turn with the path of its foot; the torque over the crank's angle."""
    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    for moment in [*last_turn[:-40:40], last_turn[-45]]:
        shade = 1.0 if moment == last_turn[-45] else 0.14
        for name, points in BODIES.items():
            colour = "#EE6677" if name == "crank arm" else "#4477AA"
            corners = np.array([paths[name, point][moment] for point in points])
            left.fill(*corners.T, facecolor=(colour, 0.25 * shade), edgecolor=(colour, shade), linewidth=1.8, joinstyle="round")
            left.plot(*corners.T, "o", color="white", markeredgecolor=colour, markersize=3.5, alpha=shade)
    left.plot(*paths["shin", "foot"][last_turn].T, color="#228833", linewidth=2.0)
    left.plot(*np.array([P["crank"], P["frame"]]).T, "^", color="#333333", markersize=9, zorder=0)
    left.set(aspect="equal", xlabel="y / m", ylabel="z / m")
    turned = np.degrees(motor.coordinates[last_turn] - 2 * pi)
    right.plot(turned, motor.actuation[last_turn], color="#EE6677", linewidth=1.8)
    right.set(xlabel="crank angle / degrees", ylabel="motor torque / N m", xticks=range(0, 361, 60))
    right.grid(color="#DDDDDD", linewidth=0.6)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    return figure


Path("out").mkdir(exist_ok=True)
draw().savefig("out/walking_leg.png", dpi=200)
trajectory.to_html("out/walking_leg.html")

energy = trajectory.energy().total
work = np.trapezoid(motor.actuation * motor.rates, trajectory.time)
print(f"motor torque from {motor.actuation.min():.2f} to {motor.actuation.max():.2f} N m")
print(f"work of the motor {work:.4f} J, energy gained {energy[-1] - energy[0]:.4f} J")
print(f"largest constraint violation {trajectory.constraint_violation().max():.1e} m or rad")
if not abs(work - (energy[-1] - energy[0])) < 1e-3 * np.ptp(energy):
    raise SystemExit("the motor's work is not the energy gained")
