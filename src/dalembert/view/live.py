"""The live view in a browser, with viser: a recorded run to play and scrub, or a running simulation to push about."""
from __future__ import annotations

import threading
import time as clock
from typing import Any

import numpy as np

from dalembert.errors import DalembertError, MissingExtraError
from dalembert.mechanism.mechanism import Mechanism
from dalembert.simulation import Simulation
from dalembert.trajectory import Trajectory
from dalembert.view.page import joint_arrows
from dalembert.view.scene import build_scene

RATE = 40.0  # pictures per second
PLOTTED = 400  # points of the energy plot
AXIS, FORCE = (25, 25, 25), (238, 102, 34)


class Stage:
    """A viser server that shows the bodies of a mechanism."""

    def __init__(self, source: Trajectory | Mechanism, title: str, position: np.ndarray, port: int) -> None:
        viser = _viser()
        scene = build_scene(source)
        self.server = viser.ViserServer(host="127.0.0.1", port=port, label=title, verbose=False)
        self.server.scene.set_up_direction("+z")
        self.radius = scene.extent(position)
        self.middle = 0.5 * (position.reshape(-1, 3).min(axis=0) + position.reshape(-1, 3).max(axis=0))
        spacing = float(10.0 ** np.round(np.log10(self.radius / 3.0)))
        floor = min(float(self.middle[2]) - self.radius, 0.0)
        self.server.scene.add_grid("/grid", width=40 * spacing, height=40 * spacing, cell_size=spacing, position=(0.0, 0.0, floor))
        self.frames = [self.server.scene.add_frame(f"/bodies/{i}", show_axes=False, axes_length=0.12 * self.radius, axes_radius=0.004 * self.radius)
                       for i in range(len(scene.bodies))]
        for k, part in enumerate(scene.parts):
            parent = f"/bodies/{part.body}" if part.body >= 0 else "/world"
            self.server.scene.add_mesh_simple(
                f"{parent}/part{k}", part.vertices, part.faces, color=tuple(int(255 * c) for c in part.colour[:3]),
                opacity=part.colour[3] if part.colour[3] < 1.0 else None, side="double",
            )
        camera = self.server.initial_camera
        camera.look_at = tuple(self.middle)
        camera.position = tuple(self.middle + 2.2 * self.radius * np.array([0.6, -0.75, 0.35]))

    def show(self, position: np.ndarray, orientation: np.ndarray) -> None:
        """Put the bodies at their poses, all at once."""
        with self.server.atomic():
            for frame, x, q in zip(self.frames, position, orientation):
                frame.position, frame.wxyz = x, q

    def segments(self, name: str, points: np.ndarray, colour: tuple[int, int, int], visible: bool) -> None:
        """Lines (n, 2, 3) from point to point, replacing those of the same name."""
        if len(points):
            self.server.scene.add_line_segments(f"/{name}", points.astype(np.float32), colour, thickness=0.008 * self.radius, visible=visible)


class Viewer:
    """A page that is being served. ``stop`` ends it."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.server = stage, stage.server
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.failure: Exception | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.get_port()}"

    def stop(self) -> None:
        """End the server and the thread that feeds it."""
        self._ended.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5.0)
        self.server.stop()

    def serve(self, block: bool) -> Viewer:
        """Feed the page until it is stopped (Ctrl-C when ``block``)."""
        print(f"showing {self.url}" + (" (Ctrl-C ends)" if block else ""), flush=True)
        if not block:
            self._thread = threading.Thread(target=self._loop, daemon=True)
            self._thread.start()
            return self
        try:
            self._loop()
        except KeyboardInterrupt:
            pass
        finally:
            self.stop()
        return self

    def _loop(self) -> None:
        last = clock.monotonic()
        while not self._ended.is_set():
            now = clock.monotonic()
            self.advance(now - last)
            last = now
            self._ended.wait(max(0.0, 1.0 / RATE - (clock.monotonic() - now)))

    def advance(self, seconds: float) -> None:
        """Show the next picture, ``seconds`` after the last one."""
        raise NotImplementedError


class Player(Viewer):
    """A recorded run: play, pause, speed, scrub, follow, frames, joint axes and forces, energy."""

    def __init__(self, trajectory: Trajectory, port: int) -> None:
        super().__init__(Stage(trajectory, trajectory.mechanism, trajectory.position, port))
        self.trajectory, gui = trajectory, self.server.gui
        start, end = float(trajectory.time[0]), float(trajectory.time[-1])
        step = max((end - start) / 2000, 1e-6)
        self.playing = gui.add_checkbox("play", True)
        self.speed = gui.add_slider("speed", 0.05, 5.0, 0.05, 1.0)
        self.time = gui.add_slider("time / s", start, max(end, start + step), step, start)
        self.follow = gui.add_dropdown("follow", ("nothing", *trajectory.bodies))
        self.body_frames = gui.add_checkbox("body frames", False)
        self.axes = gui.add_checkbox("joint axes", False)
        self.forces = gui.add_checkbox("joint forces", False)
        everything = np.arange(len(trajectory))
        self.arrows = joint_arrows(trajectory, everything)
        sizes = np.linalg.norm(self.arrows[:, :, 6:], axis=2)
        typical = float(np.percentile(sizes[sizes > 0.0], 90)) if (sizes > 0.0).any() else 1.0
        self.scale = 0.4 * self.stage.radius / typical
        self.energy = self._energy_plot(gui)
        self._last_target: np.ndarray | None = None
        self._plotted = -1.0

    def _energy_plot(self, gui: Any) -> Any:
        viser = _viser()
        chosen = np.unique(np.linspace(0, len(self.trajectory) - 1, PLOTTED).astype(int))
        energy = self.trajectory.energy()
        base = energy.potential.min()
        self._curves = (self.trajectory.time[chosen], energy.kinetic[chosen], energy.potential[chosen] - base, energy.total[chosen] - base)
        names = ("kinetic / J", "potential / J", "total / J")
        colours = ("#4477AA", "#EE6677", "#333333")
        series = (viser.uplot.Series(label="time / s"), *(viser.uplot.Series(label=n, stroke=c, width=2) for n, c in zip(names, colours)))
        return gui.add_uplot(self._curves, series, title="energy", scales={"x": viser.uplot.Scale(time=False)}, aspect=1.6)

    @property
    def knot(self) -> int:
        """Index of the knot that is shown."""
        return int(np.clip(np.searchsorted(self.trajectory.time, self.time.value), 0, len(self.trajectory) - 1))

    def advance(self, seconds: float) -> None:
        start, end = float(self.trajectory.time[0]), float(self.trajectory.time[-1])
        if self.playing.value:
            moved = self.time.value + seconds * self.speed.value
            self.time.value = start if moved > end else moved
        knot = self.knot
        self.stage.show(self.trajectory.position[knot], self.trajectory.orientation[knot])
        for frame in self.stage.frames:
            if frame.show_axes != self.body_frames.value:
                frame.show_axes = self.body_frames.value
        arrows = self.arrows[knot]
        at, axis, force = arrows[:, :3], arrows[:, 3:6], arrows[:, 6:]
        length = 0.15 * self.stage.radius
        self.stage.segments("axes", np.stack([at - length * axis, at + length * axis], axis=1), AXIS, self.axes.value)
        self.stage.segments("forces", np.stack([at, at + self.scale * force], axis=1), FORCE, self.forces.value)
        self._follow(knot)
        if abs(self.time.value - self._plotted) > 0.01 * (end - start):
            self._plotted = float(self.time.value)
            shown = self._curves[0] <= self._plotted
            self.energy.data = (self._curves[0], *(np.where(shown, c, np.nan) for c in self._curves[1:]))

    def _follow(self, knot: int) -> None:
        if self.follow.value == "nothing":
            self._last_target = None
            return
        target = self.trajectory.position[knot, self.trajectory.body(self.follow.value)]
        if self._last_target is not None:
            for client in self.server.get_clients().values():
                client.camera.position = client.camera.position + (target - self._last_target)
                client.camera.look_at = target
        self._last_target = target.copy()


class Playground(Viewer):
    """A running simulation: sliders for driven joints, a handle that pulls on a body."""

    def __init__(self, simulation: Simulation, port: int) -> None:
        super().__init__(Stage(simulation.mechanism, simulation.mechanism.name, simulation.position, port))
        self.simulation, gui, mechanism = simulation, self.server.gui, simulation.mechanism
        self.running = gui.add_checkbox("run", True)
        self.speed = gui.add_slider("speed", 0.05, 2.0, 0.05, 1.0)
        self.clock = gui.add_text("time / s", "0.00", disabled=True)
        self.sliders: dict[str, Any] = {}
        for joint in mechanism.joints:
            drives = joint.type.drive
            if joint.type.freedom == 1 and drives and drives[0] is not None:  # type: ignore[index]
                here = float(simulation.coordinates(joint.name)[0])
                weight = 0.5 * mechanism.mass * float(np.linalg.norm(np.asarray(mechanism.gravity))) * self.stage.radius or 10.0
                position = drives[0] == "position"  # type: ignore[index]
                low, high, value = (here - np.pi, here + np.pi, here) if position else (-weight, weight, 0.0)
                self.sliders[joint.name] = gui.add_slider(f"{joint.name} {'target' if position else 'force'}", low, high, (high - low) / 1000, value)
        self.pulled = gui.add_dropdown("pull", ("nothing", *(b.name for b in mechanism.bodies)))
        self.handle = self.server.scene.add_transform_controls("/pull", scale=0.25 * self.stage.radius, disable_rotations=True, visible=False)
        self.message = gui.add_markdown("")
        self.pulled.on_update(lambda _: self._grab())
        self._owed = 0.0
        self._targets = {n: s.value for n, s in self.sliders.items()}

    def _grab(self) -> None:
        grabbed = self.pulled.value != "nothing"
        if grabbed:
            self.handle.position = self.simulation.position[self.simulation.mechanism[self.pulled.value].index]
        self.handle.visible = grabbed

    def inputs(self) -> dict[str, Any]:
        """What the sliders and the handle ask for, as a controller returns it."""
        dt, answer = self.simulation.formulation.dt, {}
        for name, slider in self.sliders.items():
            joint = self.simulation.mechanism[name]
            if joint.type.drive[0] == "position":
                most = 2.0 * dt  # rad/s or m/s: a target that jumps would be a blow
                self._targets[name] += float(np.clip(slider.value - self._targets[name], -most, most))
                answer[name] = self._targets[name]
            else:
                answer[name] = slider.value
        if self.pulled.value != "nothing":
            body = self.simulation.mechanism[self.pulled.value]
            mass = self.simulation.mechanism.mass
            stretch = np.asarray(self.handle.position) - self.simulation.position[body.index]
            force = 40.0 * mass * stretch - 4.0 * mass * self.simulation.velocity[body.index]
            answer[body.name] = np.concatenate([force, np.zeros(3)])
        return answer

    def advance(self, seconds: float) -> None:
        if self.running.value and self.failure is None:
            self._owed = min(self._owed + seconds * self.speed.value, 0.2)
            dt = self.simulation.formulation.dt
            try:
                while self._owed >= dt and not self._ended.is_set():
                    self.simulation.step(self.inputs())
                    self._owed -= dt
            except DalembertError as error:
                self.failure = error
                self.message.content = f"stopped: {error}"
            self.clock.value = f"{self.simulation.time:.2f}"
        self.stage.show(self.simulation.position, self.simulation.orientation)


def view_trajectory(trajectory: Trajectory, *, port: int, block: bool) -> Viewer:
    """Serve a recorded run."""
    return Player(trajectory, port).serve(block)


def view_simulation(simulation: Simulation, *, port: int, block: bool) -> Viewer:
    """Serve a running simulation."""
    return Playground(simulation, port).serve(block)


def _viser() -> Any:
    try:
        import viser
        import viser.uplot
    except ImportError:
        raise MissingExtraError("the live view needs viser: pip install dalembert[view]") from None
    return viser
