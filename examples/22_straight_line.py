"""A four-bar linkage that draws a straight line: its lengths are found by the gradient of the drawn curve.

While the crank makes half a turn, a pen on the coupler shall move along a straight line at a constant speed. Unknown are
the distance of the pivots, the lengths of coupler and rocker and the place of the pen; the crank is 1 m long. The loop is closed
anew for each of the linkages, and differentiated with the rest. BFGS finds, from a rough first guess, what Karl Hoeken drew in 1926:
2, 2.5, 2.5 and 5. Draws both curves, out/straight_line.png, and writes a turn of the linkage to out/straight_line.html.
"""
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import dalembert as da
from dalembert.view.plots import COLOURS, FAINT, INK, add_legend, finish_axis, finished, new_figure

GUESS = {"ground": 2.4, "coupler": 2.3, "rocker": 2.9, "pen": 4.2}  # m
HOEKEN = {"ground": 2.0, "coupler": 2.5, "rocker": 2.5, "pen": 5.0}


def linkage(ground: float, coupler: float, rocker: float, pen: float) -> da.Mechanism:
    """In the x-z plane, with the crank upright. The bodies' x axes lie along the links."""
    mechanism = da.Mechanism("four-bar linkage", gravity=(0, 0, 0))
    crank_pin, foot = np.array([0.0, 0.0, 1.0]), np.array([ground, 0.0, 0.0])
    across = foot - crank_pin
    apart = float(np.linalg.norm(across))
    along = (coupler**2 - rocker**2 + apart**2) / (2.0 * apart)
    normal = np.array([-across[2], 0.0, across[0]]) / apart
    pin = crank_pin + along / apart * across + np.sqrt(coupler**2 - along**2) * normal
    tip = crank_pin + pen / coupler * (pin - crank_pin)
    for name, start, end in (("crank", np.zeros(3), crank_pin), ("coupler", crank_pin, tip), ("rocker", foot, pin)):
        half = 0.5 * np.arctan2(start[2] - end[2], end[0] - start[0])
        turn = (np.cos(half), 0.0, np.sin(half), 0.0)
        mechanism.body(name, da.Rod(length=float(np.linalg.norm(end - start)), mass=1.0, radius=0.04, axis="x"), position=0.5 * (start + end), orientation=turn)
    mechanism.body("pen", da.Sphere(radius=0.1, mass=0.1), position=tip, orientation=mechanism["coupler"].orientation)
    mechanism.joint("motor", da.Revolute(axis="-y", drive="motion"), mechanism.world, "crank", at=(0, 0, 0))
    mechanism.joint("crank pin", da.Revolute(axis="-y"), "crank", "coupler", at=crank_pin)
    mechanism.joint("pin", da.Revolute(axis="-y"), "coupler", "rocker", at=pin)
    mechanism.joint("foot", da.Revolute(axis="-y"), mechanism.world, "rocker", at=foot)
    mechanism.joint("holder", da.Fixed(), "coupler", "pen", at=tip)
    return mechanism


def drawing(run: da.Trajectory):
    """The mean square distance of the pen from where it shall be, with its derivative by positions."""
    wanted = np.column_stack([np.linspace(4.0, 0.0, len(run)), np.zeros(len(run)), np.full(len(run), 4.0)])
    miss, weights = run.body("pen").position - wanted, np.zeros_like(run.position)
    weights[:, run.bodies.index("pen")] = 2.0 * miss / len(run)
    return np.mean(np.sum(miss**2, axis=1)), {"position": weights}


# each length is the x component of one of these points
POINTS = {"ground": "foot.point_parent", "coupler": "pin.point_parent", "rocker": "pin.point_child", "pen": "holder.point_parent"}
method = da.Implicit(dt=1 / 36, solver="general")
f = da.value_and_gradient(
    linkage(**GUESS), method, 1.0, list(POINTS.values()), drawing, setup=lambda sim: sim.set_target("motor", lambda time: np.pi * time),
)
ALONG = np.kron(np.eye(4), [[1.0], [0.0], [0.0]])


def objective(change: np.ndarray) -> tuple[float, np.ndarray]:
    """Of changes of the four lengths."""
    value, gradient = f(f.x0 + ALONG @ change)
    return value, ALONG.T @ gradient


gradient = objective(np.zeros(4))[1]
differences = [(objective(1e-5 * unit)[0] - objective(-1e-5 * unit)[0]) / 2e-5 for unit in np.eye(4)]
error = np.abs(gradient - differences).max() / np.abs(gradient).max()
found = minimize(objective, np.zeros(4), jac=True, method="BFGS")
lengths = {name: length + change for (name, length), change in zip(GUESS.items(), found.x)}
print(f"{found.nit} iterations, error of the gradient by lengths {error:.0e}")
print("          " + "".join(f"{name:>10}" for name in GUESS) + "   mean miss")
for what, numbers in (("guess", GUESS), ("found", lengths), ("Hoeken", HOEKEN)):
    miss = np.sqrt(objective(np.array([numbers[name] - GUESS[name] for name in GUESS]))[0])
    print(f"{what:10}" + "".join(f"{number:8.3f} m" for number in numbers.values()) + f"{miss:10.3f} m")

Path("out").mkdir(exist_ok=True)
sims = {name: da.Simulation(linkage(**numbers), method) for name, numbers in (("guess", GUESS), ("found", lengths))}
figure = new_figure("out/straight_line.png", width=4.4, height=3.8)
axis = figure.subplots()
axis.axhline(4.0, color=FAINT)
for k, (name, sim) in enumerate(sims.items()):
    sim.set_target("motor", lambda time: np.pi * time)
    turn = sim.run(2.0)
    pen = turn.body("pen").position
    axis.plot(pen[:, 0], pen[:, 2], color=COLOURS[k], label=name)
    axis.plot(pen[:37:4, 0], pen[:37:4, 2], "o", markersize=3, color=COLOURS[k])
crank, _, rocker, tip = turn.position[18]  # half way; the middles of links
foot = np.array([lengths["ground"], 0.0, 0.0])
for start, end in ((np.zeros(3), 2.0 * crank), (2.0 * crank, tip), (foot, 2.0 * rocker - foot)):
    axis.plot(*zip(start[[0, 2]], end[[0, 2]]), color=INK, linewidth=1.0)
axis.plot([0, lengths["ground"]], [0, 0], "^", color=INK)
axis.set_aspect("equal")
finish_axis(axis, "z / m")
axis.set_xlabel("x / m")
add_legend(axis)
finished(figure, "curves of the pen, dots at equal times", "out/straight_line.png")
turn.to_html("out/straight_line.html")
near = max(abs(lengths[name] / HOEKEN[name] - 1.0) for name in HOEKEN)
if not (near < 0.03 and found.fun < 1e-3 and error < 1e-6):
    raise SystemExit("no straight line was found")
