"""A small walker learns to walk: random search for its gait, on all cores.

A trunk with two legs in a plane, on rigid ground with friction. Each leg swings as its motor says; amplitude, pace, the lead of one leg before the other and the
lean of both are drawn at random, 48 gaits, and the farthest walk within two seconds is kept; who falls has lost. Draws all gaits and the walk, out/walker_search.png.
"""
from pathlib import Path

import numpy as np

import dalembert as da
from dalembert.view.plots import COLOURS, INK, finish_axis, finished, new_figure

TIME, LEGS = 2.0, ("front", "back")
GAITS = {"amplitude": (0.1, 0.5), "pace": (1.0, 3.0), "lead": (0.0, 2 * np.pi), "lean": (-0.3, 0.3)}  # rad, Hz, rad, rad
METHOD = da.Variational(dt=0.01)


def walker() -> da.Mechanism:
    made = da.Mechanism("walker")
    made.ground(friction=0.8)
    trunk = made.body("trunk", da.Box(size=(0.5, 0.2, 0.1), mass=4.0), position=(0, 0, 0.45))
    made.joint("plane", da.Planar(normal="y"), made.world, trunk, at=(0, 0, 0.45))
    for name, x in zip(LEGS, (0.2, -0.2)):
        leg = made.body(name, da.Capsule(radius=0.03, length=0.34, mass=0.5), position=(x, 0, 0.23))
        made.joint(f"{name} hip", da.Revolute(axis="y", servo=da.Servo(stiffness=150.0, damping=3.0)), trunk, leg, at=(x, 0, 0.42))
        made.contact_point(trunk, point=(1.25 * x, 0, -0.05))
        made.contact_point(trunk, point=(1.25 * x, 0, 0.05))
        made.contact_point(leg, point=(0, 0, -0.17), radius=0.03)
    return made


def gait(parameters, generator):
    """The controller of a gait: the legs swing from rest, growing within a third of a second."""
    amplitude, pace, lead, lean = (parameters[name] for name in GAITS)

    def control(sim: da.Simulation) -> dict[str, float]:
        grown = min(1.0, 3 * sim.time)
        return {f"{name} hip": grown * (lean + amplitude * np.sin(2 * np.pi * pace * sim.time + k * lead)) for k, name in enumerate(LEGS)}

    return control


def walk(run: da.Trajectory) -> dict[str, object]:
    """How far the trunk came, forwards or backwards, if it did not fall, and its path."""
    path, pitch = run.body("trunk").position[:, [0, 2]], run.joint("plane").coordinates[:, 2]
    standing = np.cumsum(np.abs(pitch) > 0.5) == 0
    path[~standing] = np.nan
    return {"distance": abs(path[-1, 0]) if standing[-1] else 0.0, "path": path, "fell": not standing[-1]}


def search(samples: int = 48, **settings) -> da.Ensemble:
    return da.run_many(walker(), METHOD, TIME, parameters=GAITS, controls=gait, reduce=walk, samples=samples, seed=4, **settings)


if __name__ == "__main__":
    ensemble = search()
    distance = ensemble.results["distance"]
    best, fell = int(np.nanargmax(distance)), ensemble.results["fell"]
    print(f"{int(ensemble.successful.sum())} gaits, {int(fell.sum())} falls; the best one goes {distance[best]:.2f} m in {TIME:g} s:", {k: round(v, 3) for k, v in ensemble[best].parameters.items()})
    Path("out").mkdir(exist_ok=True)
    figure = new_figure("out/walker_search.png", height=3.2)
    left, right = figure.subplots(1, 2)
    drawn = left.scatter(ensemble.parameters["lead"], ensemble.parameters["amplitude"], c=distance, cmap="viridis", s=18)
    figure.colorbar(drawn, ax=left, label="distance / m")
    left.set(xlabel="lead / rad", ylabel="amplitude / rad")
    for path in ensemble.results["path"][ensemble.successful]:
        right.plot(*path.T, color=COLOURS[0], alpha=0.3)
        right.plot(*path[np.isfinite(path[:, 0])][-1:].T, ".", color=COLOURS[0], alpha=0.6)
    finish_axis(right, "height of the trunk / m")
    right.plot(*ensemble.results["path"][best].T, color=COLOURS[1], linewidth=2)
    right.set_xlabel("way / m", color=INK)
    finished(figure, "forty-eight gaits of a small walker", "out/walker_search.png")
    if not (ensemble.successful.mean() > 0.9 and distance[best] > 0.5 and not fell[best]):
        raise SystemExit("it does not walk")
