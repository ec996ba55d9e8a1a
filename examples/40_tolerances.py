"""How exactly does a four-bar linkage turn its rocker, if every link is only as long as the workshop makes it?

A hundred and fifty linkages with link lengths of normal tolerance (0.2 mm) are built and turned by their crank through a quarter of a turn. The rocker's
angle of each is compared with the closed form, and the spread of all with linear theory. Draws out/tolerances.png, a histogram.
"""
from pathlib import Path

import numpy as np
from scipy import stats

import dalembert as da
from dalembert.view.plots import COLOURS, INK, add_legend, finish_axis, finished, new_figure

LENGTHS = dict(ground=0.40, crank=0.12, coupler=0.38, rocker=0.25)  # m
TOLERANCE = 2e-4  # m, standard deviation
TURN, TIME = np.pi / 2, 0.5  # rad of the crank, s


def rocker_angle(crank_angle, ground, crank, coupler, rocker):
    """Of the rocker, from the line between the fixed pivots (rad), in closed form."""
    y, z = crank * np.cos(crank_angle) - ground, crank * np.sin(crank_angle)
    far = np.hypot(y, z)
    return np.arctan2(z, y) - np.arccos((far**2 + rocker**2 - coupler**2) / (2 * far * rocker))


def linkage(ground: float, crank: float, coupler: float, rocker: float) -> da.Mechanism:
    """The linkage in the y-z plane, with the crank along y."""
    turned = rocker_angle(0.0, ground, crank, coupler, rocker)
    pins = np.array([(0, 0, 0), (0, crank, 0), (0, ground + rocker * np.cos(turned), rocker * np.sin(turned)), (0, ground, 0)])
    made = da.Mechanism("four-bar")
    for name, a, b in zip(("crank", "coupler", "rocker"), pins, pins[1:]):
        length = float(np.linalg.norm(b - a))
        made.body(name, da.Rod(length=length, radius=0.005, mass=length, axis=tuple(b - a)), position=(a + b) / 2)
    for name, parent, child, pin in (("motor", "world", "crank", 0), ("pin", "crank", "coupler", 1), ("wrist", "coupler", "rocker", 2), ("output", "world", "rocker", 3)):
        made.joint(name, da.Revolute(axis="x", drive="motion" if name == "motor" else None), parent, child, at=pins[pin])
    return made


def turn(sim: da.Simulation, lengths: dict[str, float]) -> None:
    sim.set_target("motor", lambda time: TURN * 0.5 * (1 - np.cos(np.pi * time / TIME)))


def output(run: da.Trajectory) -> float:
    return run.joint("output").coordinates[-1]


drawn = {name: stats.norm(length, TOLERANCE) for name, length in LENGTHS.items()}
ensemble = da.run_many(linkage, da.Implicit(dt=TIME / 10), TIME, parameters=drawn, samples=150, seed=1, prepare=turn, reduce=output)
angles, lengths = np.degrees(ensemble.results["value"]), ensemble.parameters
exact = np.degrees(rocker_angle(TURN, **lengths) - rocker_angle(0.0, **lengths))
slopes = [(rocker_angle(TURN, **up) - rocker_angle(0.0, **up) - rocker_angle(TURN, **LENGTHS) + rocker_angle(0.0, **LENGTHS)) / 1e-6 for up in ({**LENGTHS, n: LENGTHS[n] + 1e-6} for n in LENGTHS)]
expected = np.degrees(TOLERANCE * np.linalg.norm(slopes))
print(f"{len(ensemble)} linkages: {angles.mean():.3f} degrees, standard deviation {angles.std():.4f}, by linear theory {expected:.4f}")
print(f"largest difference from the closed form: {np.abs(angles - exact).max():.1e} degrees")

Path("out").mkdir(exist_ok=True)
figure = new_figure("out/tolerances.png", height=3.2)
axis = figure.subplots()
axis.hist(angles, bins=25, density=True, color=COLOURS[0], alpha=0.7, label="150 linkages")
x = np.linspace(angles.min(), angles.max(), 200)
axis.plot(x, stats.norm.pdf(x, angles.mean(), expected), color=COLOURS[1], label="linear theory")
axis.set_xlabel("turn of the rocker / degrees", color=INK)
finish_axis(axis, "density / 1/degree")
add_legend(axis)
finished(figure, "a four-bar linkage with links of 0.2 mm tolerance", "out/tolerances.png")
if not (ensemble.successful.all() and np.abs(angles - exact).max() < 1e-6 and abs(angles.std() / expected - 1) < 0.15):
    raise SystemExit("the linkages do not turn as they should")
