"""A swing door with a spring and a damper: how far does it swing through, for any stiffness and damping?

A grid of 12 stiffnesses and 12 dampings, a run each, and a map of the overshoot, with the line of critical damping. Each run is compared with
the closed form. Draws out/damper_map.png.
"""
from pathlib import Path

import numpy as np

import dalembert as da
from dalembert.view.plots import INK, finished, new_figure

OPEN, TIME = 1.2, 12.0  # rad, s
door = da.Mechanism("swing door", gravity=(0, 0, 0))
door.body("leaf", da.Box(size=(0.9, 0.04, 2.0), mass=30.0), position=(0.45, 0, 0))
door.joint("hinge", da.Revolute(axis="z", stiffness=20.0, damping=10.0), door.world, "leaf", at=(0, 0, 0))
inertia = door["leaf"].inertia[2, 2] + 30.0 * 0.45**2


def swings_through(run: da.Trajectory) -> float:
    """How far beyond its rest the door goes, of what it was opened; between the knots by a parabola."""
    angle = run.joint("hinge").coordinates
    k = int(np.argmin(angle))
    if not 0 < k < len(angle) - 1:
        return 0.0
    before, here, after = angle[k - 1 : k + 2]
    return max(0.0, -(here - (after - before) ** 2 / (8 * (after - 2 * here + before))) / OPEN)


ensemble = da.run_many(
    door, da.Variational(dt=0.02), TIME, starts={"hinge": OPEN}, reduce=swings_through,
    parameters={"hinge.stiffness": np.linspace(5.0, 60.0, 12), "hinge.damping": np.linspace(1.0, 50.0, 12)},
)
overshoot = ensemble.results["value"].reshape(ensemble.shape)
stiffness, damping = ensemble.axes.values()
ratio = damping / (2 * np.sqrt(stiffness[:, None] * inertia))
exact = np.where(ratio < 1, np.exp(-np.pi * ratio / np.sqrt(np.maximum(1 - ratio**2, 1e-12))), 0.0)
print(f"{len(ensemble)} runs; the overshoot goes from {100 * overshoot.min():.1f} to {100 * overshoot.max():.1f} %, off by {100 * np.abs(overshoot - exact).max():.2f} % at most")

Path("out").mkdir(exist_ok=True)
figure = new_figure("out/damper_map.png", height=3.8)
axis = figure.subplots()
drawn = axis.pcolormesh(stiffness, damping, 100 * overshoot.T, shading="nearest", cmap="viridis")
axis.contour(stiffness, damping, 100 * overshoot.T, levels=[1, 5, 20, 50], colors="white", linewidths=0.8)
axis.plot(stiffness, 2 * np.sqrt(stiffness * inertia), color="#EE6677", linewidth=2)
axis.annotate("critical damping", (15, 2 * np.sqrt(15 * inertia)), xytext=(6, 34), textcoords="data", color="#EE6677", fontweight="bold")
axis.set(xlabel="stiffness / N m/rad", ylabel="damping / N m s/rad", ylim=(damping[0], damping[-1]))
axis.tick_params(colors=INK)
figure.colorbar(drawn, ax=axis, label="overshoot / %")
finished(figure, "how far a door swings through", "out/damper_map.png")
if not (ensemble.successful.all() and np.abs(overshoot - exact).max() < 2e-3):
    raise SystemExit("the door swings otherwise")
