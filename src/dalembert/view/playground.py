"""A running simulation in a browser: drag a body to pull on it, move targets and forces of joints by sliders."""
from __future__ import annotations

import time as clock
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dalembert.errors import DalembertError, ModelError
from dalembert.mechanism.mechanism import JointElement
from dalembert.simulation.simulation import Control, Simulation
from dalembert.simulation.state import State
from dalembert.simulation.trajectory import Trajectory, rotate
from dalembert.view.arrows import Arrows
from dalembert.view.plots import COLOURS
from dalembert.view.scene import ORANGE, build_scene
from dalembert.view.stage import Viewer, literal, viser_module

#: largest rate of a target that a slider moves, rad/s or m/s: one that jumps would be a blow
TARGET_RATE = 2.0
#: the pull's spring and damper per mass of the mechanism (1/s^2, 1/s), and the most that a step of a light body can take
PULL, CALM = 40.0, 4.0
#: s of the simulation that a picture may fall behind before time is given up
PATIENCE = 0.2


#: the state that a reset goes back to, by name, and points of the live curve
START, CURVE_POINTS = "the start", 400


class Grip(NamedTuple):
    """A hand on a body: where it holds (3,) in body coordinates, and where it pulls that to (3,) in the world."""

    body: int
    point: np.ndarray
    to: np.ndarray


class Playground(Viewer):
    """Runs a simulation as fast as the clock. ``running``, ``speed``, ``sliders``, ... are the page's controls."""

    def __init__(self, simulation: Simulation, port: int, ranges: Mapping[str, tuple[float, float]], control: Control | None = None) -> None:
        viser_module()
        self.control = control
        self.simulation, self.mechanism, self.ranges = simulation, simulation.mechanism, ranges
        for name in ranges:
            if not isinstance(self.mechanism[name], JointElement):
                raise ModelError(f"ranges= is for joints, and {name!r} is {self.mechanism[name]!r}")
        super().__init__(build_scene(self.mechanism, simulation.position, simulation.orientation), self.mechanism.name, port)
        gui = self.server.gui
        self.running = gui.add_checkbox("run", True)
        self.speed = gui.add_slider("speed", 0.05, 2.0, 0.05, 1.0)
        with gui.add_folder("time"):
            self.reset, self.single = gui.add_button("reset"), gui.add_button("one step")
            self.keep, self.kept = gui.add_button("keep this state"), gui.add_dropdown("kept states", (START,))
            self.back = gui.add_button("go back to it")
        self.states: dict[str, State] = {START: simulation.state}
        self._asked: list[str] = []  # by the page's thread, done by the clock's
        for button, wish in ((self.reset, "reset"), (self.single, "step"), (self.keep, "keep"), (self.back, "back")):
            button.on_click(lambda _, wish=wish: self.ask(wish))
        self.reading = gui.add_markdown("")
        self.message = gui.add_markdown("Drag a body to pull on it; drag elsewhere to turn the view.")
        self.sliders: dict[tuple[str, int], Any] = {}
        led = [joint.name for joint in self.mechanism.joints] if control is not None else simulation.commanded
        driven = [(joint, k) for joint in self.mechanism.joints if joint.name not in led for k, drive in enumerate(joint.type.drive) if drive is not None]  # type: ignore[arg-type]
        if driven:
            with gui.add_folder("joints"):
                for joint, k in driven:
                    self.sliders[joint.name, k] = self._slider(gui, joint, k)
        self.add_choices(bool(self.mechanism.joints), self.mechanism.touches)
        self._targets = {key: slider.value for key, slider in self.sliders.items()}
        self.grip: Grip | None = None
        for body, meshes in self.stage.meshes.items():
            if 0 <= body < len(self.mechanism.bodies):
                for mesh in meshes:
                    mesh.on_drag("left")(self._hand(body))
        self._curve = self._add_curve(gui)
        self._owed, self._pace = 0.0, 1.0
        self._last: Trajectory | None = None

    # ---- what the user does

    def _slider(self, gui: Any, joint: JointElement, k: int) -> Any:
        """A slider for one driven direction: targets over its range, half a turn or the mechanism's size; forces up to its weight."""
        drives, (kind, _) = joint.type.drive, joint.type.directions[k]
        follows = drives[k] == "motion"  # type: ignore[index]
        slides = kind in ("slide", "distance")
        here = round(float(self.simulation.coordinates(joint.name)[k]), 6) + 0.0 if follows else 0.0
        if follows:
            reach = self.stage.scene.size if slides else np.pi
            low, high = self.ranges.get(joint.name, (here - reach, here + reach))
        else:
            weight = self.mechanism.mass * float(np.linalg.norm(np.asarray(self.mechanism.gravity))) or 10.0
            high = weight if slides else 0.5 * weight * self.stage.scene.size
            low = -high
        unit = ("m" if slides else "rad") if follows else ("N" if slides else "N m")
        name = joint.name if len(drives) == 1 else f"{joint.name} [{k}]"  # type: ignore[arg-type]
        low, high = (float(f"{end:.3g}") for end in (min(low, here), max(high, here)))
        return gui.add_slider(f"{name} / {unit}", min(low, here), max(high, here), (high - low) / 1000, here)

    def _hand(self, body: int) -> Any:
        """What a drag with the mouse on a body does."""
        async def drag(event: Any) -> None:
            if event.phase == "end":
                self.grip = None
            elif event.phase == "start" or self.grip is None or self.grip.body != body:
                self.pull(self.mechanism.bodies[body].name, at=event.start_position, to=event.end_position)
            else:
                self.grip = self.grip._replace(to=np.asarray(event.end_position))
        return drag

    def pull(self, body: str, *, at: Any, to: Any) -> None:
        """Take hold of a body at a point of the world and pull that point to another (m), until ``grip`` is None again."""
        index = self.mechanism[body].index
        inverse = self.simulation.orientation[index] * np.array([1.0, -1.0, -1.0, -1.0])
        self.grip = Grip(index, rotate(inverse, np.asarray(at, dtype=float) - self.simulation.position[index]), np.asarray(to, dtype=float))

    def _hold(self, grip: Grip) -> tuple[np.ndarray, np.ndarray]:
        """Where a grip holds, and the wrench it exerts: a damped spring that no body is too light for."""
        body, dt = self.mechanism.bodies[grip.body], self.simulation.formulation.dt
        turn = self.simulation.orientation[grip.body]
        arm = rotate(turn, grip.point)
        at = self.simulation.position[grip.body] + arm
        speed = self.simulation.velocity[grip.body] + rotate(turn, np.cross(self.simulation.angular_velocity[grip.body], grip.point))
        across = np.cross(np.eye(3), grip.point)
        felt = 1.0 / np.linalg.eigvalsh(np.eye(3) / body.mass + across @ np.linalg.inv(body.inertia) @ across.T)[-1]  # the least mass, of all directions
        spring, damper = min(PULL * self.mechanism.mass, 0.2 * felt / dt**2), min(CALM * self.mechanism.mass, 0.3 * felt / dt)
        force = spring * (grip.to - at) - damper * speed
        return at, np.concatenate([force, rotate(turn * np.array([1.0, -1.0, -1.0, -1.0]), np.cross(arm, force))])

    def inputs(self) -> dict[str, Any]:
        """What the sliders, the controller and the hand ask for, as a controller returns it."""
        most = TARGET_RATE * self.simulation.formulation.dt
        answer: dict[str, Any] = dict(self.control(self.simulation)) if self.control is not None else {}
        for (name, k), slider in self.sliders.items():
            value = slider.value
            if self.mechanism[name].type.drive[k] == "motion":
                value = self._targets[name, k] + float(np.clip(slider.value - self._targets[name, k], -most, most))
                self._targets[name, k] = value
            answer.setdefault(name, []).append(value)
        grip = self.grip
        if grip is not None:
            body = self.mechanism.bodies[grip.body].name
            answer[body] = answer.get(body, 0.0) + self._hold(grip)[1]
        return answer

    def ask(self, wish: str) -> None:
        """Have something done before the next picture: "reset", one "step", "keep" the state, or go "back" to the chosen one."""
        self._asked.append(wish)

    def _do(self, wish: str) -> None:
        simulation = self.simulation
        if wish == "step":
            self.running.value = False
            self._steps(1)
        elif wish == "keep":
            name = f"t = {simulation.time:.3f} s"
            self.states[name] = simulation.state
            self.kept.options, self.kept.value = tuple(self.states), name
        else:
            simulation.restore(self.states[START if wish == "reset" else self.kept.value])
            self.failure, self._last, self.grip, self._owed = None, None, None, 0.0
            self.message.content = ""
            for (name, k), slider in self.sliders.items():
                if self.mechanism[name].type.drive[k] == "motion":
                    slider.value = self._targets[name, k] = float(simulation.coordinates(name)[k])
            self._history.clear()

    # ---- curves

    def _add_curve(self, gui: Any) -> Any:
        """Energy, or a joint's first coordinate, of the last seconds."""
        viser = viser_module()
        self.shown = gui.add_dropdown("curve", ("energy / J", *(f"{j.name} / {'m' if j.type.directions[0][0] in ('slide', 'distance') else 'rad'}" for j in self.mechanism.joints if j.type.freedom)))
        self.shown.on_update(lambda _: self._history.clear())
        self._history: deque[tuple[float, float]] = deque(maxlen=CURVE_POINTS)
        return gui.add_uplot(
            (np.zeros(1), np.zeros(1)), (viser.uplot.Series(label="time / s"), viser.uplot.Series(label="value", stroke=COLOURS[0], width=2)),
            scales={"x": viser.uplot.Scale(time=False)}, legend=viser.uplot.Legend(show=False), aspect=1.8,
        )

    def _trace(self) -> None:
        name = self.shown.value.rpartition(" / ")[0]
        value = self.simulation.energy() if self.shown.value == "energy / J" else float(self.simulation.coordinates(name)[0])
        self._history.append((self.simulation.time, value))
        times, values = (np.array(numbers) for numbers in zip(*self._history))
        self._curve.data = times, values

    # ---- what the clock does

    def advance(self, seconds: float) -> None:
        while self._asked:
            self._do(self._asked.pop(0))
        if self.running.value and self.failure is None:
            self._run(seconds)
        simulation = self.simulation
        self.draw(simulation.position, simulation.orientation)
        grip = self.grip
        self.stage.arrows("pull", np.zeros((0, 2, 3)) if grip is None else np.stack([self._hold(grip)[0], grip.to])[None], ORANGE)
        if self._last is not None and (self.axes.value or self.forces.value or self.contacts.value):
            self.draw_arrows(Arrows(self._last, self.stage.scene.size), len(self._last) - 2)

    def _run(self, seconds: float) -> None:
        dt = self.simulation.formulation.dt
        self._owed = min(self._owed + seconds * self.speed.value, PATIENCE)
        steps = int(self._owed / dt)
        if steps == 0:
            return
        self._owed -= steps * dt
        self._steps(steps)

    def _steps(self, steps: int) -> None:
        dt, tick = self.simulation.formulation.dt, clock.perf_counter()
        try:
            self._last = self.simulation.run(steps * dt, control=lambda _: self.inputs(), progress=False)
        except DalembertError as error:
            self.failure = error
            self.message.content = f"**stopped**: {literal(str(error))}"
            return
        if len(self._last) <= steps:
            raise KeyboardInterrupt
        self._pace += 0.05 * (steps * dt / (clock.perf_counter() - tick) - self._pace)
        self.reading.content = f"t = {self.simulation.time:.2f} s, {self._pace:.3g} times real time is possible"
        self._trace()


def view_simulation(simulation: Simulation, *, port: int, block: bool, browser: bool | None, ranges: Mapping[str, tuple[float, float]], control: Control | None = None) -> Viewer:
    """Serve a running simulation."""
    return Playground(simulation, port, ranges, control).serve(block, browser)
