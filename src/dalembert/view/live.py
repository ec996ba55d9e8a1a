"""A recorded run in a browser, live: play, pause, speed, scrub, follow, frames, axes, forces, and the energies at the cursor."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.simulation.trajectory import Trajectory
from dalembert.view.arrows import Arrows
from dalembert.view.plots import COLOURS
from dalembert.view.plots import INK as DARK
from dalembert.view.scene import build_scene, ordinary_speed
from dalembert.view.stage import Viewer, viser_module

PLOTTED = 400  # points of the energy plot


class Player(Viewer):
    """Shows a trajectory. ``playing``, ``speed``, ``time``, ``follow``, ``forces``, ... are the page's controls."""

    def __init__(self, trajectory: Trajectory, port: int) -> None:
        viser_module()
        super().__init__(build_scene(trajectory), trajectory.mechanism, port)
        self.trajectory, gui = trajectory, self.server.gui
        self.arrows = Arrows(trajectory, self.stage.scene.size)
        self.start, self.end = float(trajectory.time[0]), float(trajectory.time[-1])
        step = max((self.end - self.start) / 2000, 1e-6)
        self.playing = gui.add_checkbox("play", True)
        usual = ordinary_speed(self.end - self.start)
        self.speed = gui.add_slider("speed", 0.05 * usual, 5.0 * usual, 0.05 * usual, usual)
        self.time = gui.add_slider("time / s", self.start, max(self.end, self.start + step), step, self.start)
        self.add_choices(bool(trajectory.joints) and trajectory.model is not None, self.arrows.touching)
        with gui.add_folder("energy"):
            self.energy = self._energy_plot(gui)
            self.readings = gui.add_markdown("")
        self._plotted = np.nan

    def _energy_plot(self, gui: Any) -> Any:
        viser = viser_module()
        chosen = np.unique(np.linspace(0, len(self.trajectory) - 1, PLOTTED).astype(int))
        energy = self.trajectory.energy()
        base = energy.potential.min()
        self._energies = {"kinetic": energy.kinetic, "potential": energy.potential - base, "total": energy.total - base}
        self._curves = (self.trajectory.time[chosen], *(e[chosen] for e in self._energies.values()))
        colours = (*COLOURS[:2], DARK)
        series = (
            viser.uplot.Series(label="time / s"), *(viser.uplot.Series(label=f"{n} / J", stroke=c, width=2, spanGaps=True) for n, c in zip(self._energies, colours)),
            viser.uplot.Series(label="now", stroke="#00000080", width=1),
        )
        low, high = float(np.min(self._curves[1:])), float(np.max(self._curves[1:]))
        margin = 0.05 * (high - low) or 1.0
        scales = {"x": viser.uplot.Scale(time=False), "y": viser.uplot.Scale(range=(low - margin, high + margin))}
        return gui.add_uplot(self._with_cursor(self.start), series, scales=scales, legend=viser.uplot.Legend(show=False), aspect=1.6)

    def _with_cursor(self, time: float) -> tuple[np.ndarray, ...]:
        """The curves, and a line from bottom to top at a time: two more points at that time, which only the line has."""
        times, *values = self._curves
        here = int(np.searchsorted(times, time, side="right"))
        ends = [float(np.min(values)), float(np.max(values))]
        line = np.insert(np.full(len(times), np.nan), [here, here], ends)
        return (np.insert(times, [here, here], [time, time]), *(np.insert(v, [here, here], [np.nan, np.nan]) for v in values), line)

    @property
    def knot(self) -> int:
        """Index of the knot that is shown."""
        return int(np.clip(np.searchsorted(self.trajectory.time, self.time.value - 1e-9), 0, len(self.trajectory) - 1))

    def advance(self, seconds: float) -> None:
        if self.playing.value:
            moved = self.time.value + seconds * self.speed.value
            self.time.value = self.start if moved > self.end else moved
        knot = self.knot
        self.draw(self.trajectory.position[knot], self.trajectory.orientation[knot])
        self.draw_arrows(self.arrows, knot)
        if not abs(self.time.value - self._plotted) <= 0.004 * (self.end - self.start):
            self._plotted = float(self.time.value)
            self.energy.data = self._with_cursor(self._plotted)
            self.readings.content = ", ".join(f"{name} {values[knot]:.4g} J" for name, values in self._energies.items())


def view_trajectory(trajectory: Trajectory, *, port: int, block: bool, browser: bool | None) -> Viewer:
    """Serve a recorded run."""
    return Player(trajectory, port).serve(block, browser)
