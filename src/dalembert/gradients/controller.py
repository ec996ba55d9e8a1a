"""A controller as part of a run that is differentiated: what it sees at a knot, and how its answer changes with that.

Its derivatives are given by the user, or are central differences (fourth order) of the controller by what it reads of the simulation,
nothing else. So it must say the same for the same knot: one that remembers what it saw before is found out.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import ControlError, GradientError
from dalembert.formulations.derivatives import Cotangents
from dalembert.formulations.engine import Inputs
from dalembert.mechanism.forces import Path
from dalembert.mechanism.mechanism import Body, JointElement
from dalembert.simulation.controls import coupling_count, one_knot, put_input
from dalembert.simulation.paths import path_motion
from dalembert.simulation.record import Controlled, Record
from dalembert.simulation.targets import target_rates

#: step of the differences (m, rad; m/s and rad/s, and more of fast ones)
STEP = 1e-3
OFFSETS = ((1.0, 8.0 / 12.0), (-1.0, -8.0 / 12.0), (2.0, -1.0 / 12.0), (-2.0, 1.0 / 12.0))
#: relative difference from which on two answers are not the same
SAME = 1e-9

#: what a controller can see, by name, as arrays of one knot
Values = dict[str, np.ndarray]
POSE = ("position", "orientation")
MOTION = ("velocity", "angular_velocity")


def controlled(record: Record) -> Controlled:
    """The controller that a record's run is differentiated through."""
    if record.control is None:
        raise GradientError("this run is not differentiated through a controller")
    return record.control


class Seen:
    """A simulation as a controller sees it at one knot; notes what is read, by name and number of body or joint."""

    def __init__(self, record: Record, time: float, values: Values) -> None:
        self._record, self._values, self.read = record, values, set()
        self.time, self.mechanism, self.formulation = time, record.mechanism, controlled(record).formulation

    def _whole(self, name: str) -> np.ndarray:
        self.read.update((name, i) for i in range(len(self._values[name])))
        return self._values[name].copy()

    @property
    def position(self) -> np.ndarray:
        return self._whole("position")

    @property
    def orientation(self) -> np.ndarray:
        return self._whole("orientation")

    @property
    def velocity(self) -> np.ndarray:
        return self._whole("velocity")

    @property
    def angular_velocity(self) -> np.ndarray:
        return self._whole("angular_velocity")

    def _of_joint(self, kind: str, name: str) -> np.ndarray:
        element = self.mechanism[name]
        if not isinstance(element, JointElement):
            raise GradientError(f"{element!r} is no joint")
        self.read.add((kind, element.index))
        return self._values[kind][element.index, : element.type.freedom].copy()

    def coordinates(self, joint: str) -> np.ndarray:
        return self._of_joint("coordinate", joint)

    def rates(self, joint: str) -> np.ndarray:
        return self._of_joint("rate", joint)

    def path_length(self, path: str) -> float:
        return self._path(path, POSE)[0]

    def path_rate(self, path: str) -> float:
        return self._path(path, (*POSE, *MOTION))[1]

    def _path(self, name: str, names: tuple[str, ...]) -> tuple[float, float]:
        element, values = self.mechanism[name], self._values
        if not isinstance(element, Path):
            raise GradientError(f"{element!r} is no path or cable")
        self.read.update((what, body.index) for what in names for body in element.bodies if body.index >= 0)
        return path_motion(element, values["position"], values["orientation"], np.concatenate([values["velocity"], values["angular_velocity"]], axis=1))

    def energies(self) -> tuple[float, float]:
        self.read.update((("kinetic", 0), ("potential", 0)))
        kinetic, potential = float(self._values["kinetic"][0]), float(self._values["potential"][0])
        return kinetic + potential, kinetic

    def energy(self) -> float:
        return self.energies()[0]

    def __getattr__(self, name: str) -> Any:
        raise GradientError(
            f"a controller that reads sim.{name} cannot be differentiated; it may read time, position, orientation, velocity, angular_velocity, "
            "coordinates, rates, path_length, path_rate and energies. Or let its inputs count as given: sim.run(..., control_derivative=None)."
        )


class Controller:
    """The controller of a record's run."""

    def __init__(self, record: Record, coordinates: np.ndarray) -> None:
        self.record, self.control, self.coordinates = record, controlled(record), coordinates
        self.mechanism = record.mechanism
        self.bodies, self.joints, self.couplings = len(self.mechanism.bodies), len(self.mechanism.joints), coupling_count(self.mechanism)
        self.given = callable(self.control.derivative)

    # ---- what it sees

    def inputs_before(self, knot: int) -> Inputs:
        """Inputs that were held when the controller was asked at a knot: those of the step before."""
        inputs = self.record.inputs
        if knot == 0:
            return one_knot(self.mechanism, self.control.inputs, inputs.target[0])
        parts = (
            inputs.wrench[knot - 1] if len(inputs.wrench) else np.zeros((self.bodies, 6)),
            inputs.joint[knot - 1] if len(inputs.joint) else np.zeros((self.joints, 6)),
            inputs.tension[knot - 1] if len(inputs.tension) else np.zeros(self.couplings),
        )
        return Inputs(parts[0][None], parts[1][None], np.ascontiguousarray(inputs.target[knot : knot + 1]), np.zeros((0, 0, self.joints, 6)), parts[2][None])

    def target_rates(self, knot: int) -> np.ndarray:
        """(joints, 6) rates of targets as the controller saw them."""
        return target_rates(self.mechanism, self.control.targets if knot > 0 or self.control.moved else {}, self.control.times(knot))

    def felt(self, knot: int) -> Inputs:
        """``inputs_before``, with what contacts exert at the knot as it was known then."""
        return self.record.engine.as_seen(self.record.recording, self.inputs_before(knot), knot, self.coordinates[knot])[1]

    def seen(self, knot: int) -> Values:
        """What the controller saw at a knot of the run."""
        recording, inputs = self.record.engine.as_seen(self.record.recording, self.inputs_before(knot), knot, self.coordinates[knot])
        one = type(recording)(*(array[knot : knot + 1].copy() for array in recording))
        return self.record.engine.seen(one, inputs, self.target_rates(knot), self.coordinates[knot])

    # ---- what it says

    def ask(self, knot: int, values: Values) -> tuple[np.ndarray, np.ndarray, set]:
        """Its answer as one vector (wrenches, joint forces, tensions, targets), which entries it gave, and what it read."""
        seen = Seen(self.record, self.control.times(knot), values)
        answer = self.control.function(seen)
        return *self.laid_out(knot, answer), seen.read

    def laid_out(self, knot: int, answer: Mapping[str, Any] | None) -> tuple[np.ndarray, np.ndarray]:
        tables = np.zeros((1, self.bodies, 6)), np.zeros((1, self.joints, 6)), np.zeros((1, self.couplings))
        marks = np.full((1, self.bodies, 6), False), np.full((1, self.joints, 6), False), np.full((1, self.couplings), False)
        target, aimed = np.zeros((self.joints, 6)), np.full((self.joints, 6), False)
        for name, value in (answer or {}).items():
            given: Any = value(self.control.times(knot + self.record.engine.input_node)) if callable(value) else value
            targets = put_input(self.mechanism, name, given, tables, 0)
            element = self.mechanism[name]
            if isinstance(element, Body):
                marks[0][0, element.index] = True
            elif isinstance(element, Path):
                marks[2][0, self.couplings - len(self.mechanism.paths) + self.mechanism.paths.index(element)] = True
            else:
                forced = [i for i, drive in enumerate(element.type.drive) if drive == "force"]
                marks[1][0, element.index, forced] = True
                for i, number in targets.items():
                    target[element.index, i], aimed[element.index, i] = number, True
        return _flat(*(t[0] for t in tables), target), _flat(*(m[0] for m in marks), aimed)

    def recorded(self, knot: int) -> np.ndarray:
        """The inputs that the run took from it."""
        inputs = self.record.inputs
        after = self.inputs_before(knot + 1)
        return _flat(after.wrench[0], after.joint[0], after.tension[0], inputs.target[knot + 1])

    # ---- derivatives

    def pull(self, knot: int, bar: np.ndarray) -> tuple[Cotangents, np.ndarray]:
        """From the cotangent of its answer to that of what it saw; and which entries it gave."""
        values = self.seen(knot)
        answer, gave, read = self.ask(knot, values)
        self._check(knot, answer, gave)
        weights = np.where(gave, bar, 0.0)
        bars = {name: np.zeros_like(value) for name, value in values.items()}
        bars["orientation"] = np.zeros((self.bodies, 3))
        if self.given:
            self._pull_given(knot, values, weights, bars)
        elif np.any(weights):
            for name, index in sorted(read):
                for c in range(bars[name][index].size if bars[name].ndim > 1 else 1):
                    slope = self._slope(knot, values, name, index, c, weights)
                    if bars[name].ndim > 1:
                        bars[name][index, c] = slope
                    else:
                        bars[name][index] = slope
        cotangents = Cotangents(
            bars["position"][None], bars["orientation"][None], np.concatenate([bars["velocity"], bars["angular_velocity"]], axis=1)[None],
            bars["coordinate"][None], bars["rate"][None], np.array([[bars["kinetic"][0], bars["potential"][0]]]), np.zeros((1, self.joints, 6)),
        )
        return cotangents, gave

    def _check(self, knot: int, answer: np.ndarray, gave: np.ndarray) -> None:
        recorded = np.where(gave, self.recorded(knot), 0.0)
        if not np.allclose(recorded, answer, rtol=SAME, atol=SAME * max(1.0, float(np.abs(recorded).max(initial=0.0)))):
            raise GradientError(
                f"the controller of {self.mechanism.name!r} says something else than in the run when it is asked about t = {self.control.times(knot):.6g} s again: "
                "it has a memory of its own, and what it sees of one knot is not all that its answer depends on. Let its inputs count as given: "
                "sim.run(..., control_derivative=None)."
            )

    def _slope(self, knot: int, values: Values, name: str, index: int, c: int, weights: np.ndarray) -> float:
        """How the weighed answer changes with one number that it saw."""
        at = values[name][index, c] if values[name].ndim > 1 else values[name][index]
        size = STEP * (max(1.0, abs(float(at))) if name not in POSE else 1.0)
        total = 0.0
        for offset, weight in OFFSETS:
            moved = values[name].copy()
            if name == "orientation":
                moved[index] = _turned(moved[index], offset * size, c)
            elif moved.ndim > 1:
                moved[index, c] += offset * size
            else:
                moved[index] += offset * size
            total += weight / size * float(weights @ self.ask(knot, {**values, name: moved})[0])
        return total

    def _pull_given(self, knot: int, values: Values, weights: np.ndarray, bars: Values) -> None:
        """The same by the user's derivatives."""
        for rows, parts in self.derivatives(knot, values):
            for name, slope in parts.items():
                bar = np.tensordot(weights[rows], slope, axes=1)
                if name == "energy":
                    bars["kinetic"] += bar
                    bars["potential"] += bar
                else:
                    bars[name] += bar.reshape(bars[name].shape)

    def derivatives(self, knot: int, values: Values) -> list[tuple[np.ndarray, Values]]:
        """The user's derivatives, checked: places of an input in the answer, and slopes (numbers of the input, ...) by what is seen."""
        answer = self.control.derivative(Seen(self.record, self.control.times(knot), values))
        if not isinstance(answer, Mapping):
            raise ControlError(f"control_derivative must return a dict {{input: {{what is read: array}}}}, got {type(answer).__name__}")
        shapes = {
            **dict.fromkeys((*POSE, *MOTION), (self.bodies, 3)), "coordinate": (self.joints, 6), "rate": (self.joints, 6),
            **dict.fromkeys(("kinetic", "potential", "energy"), ()),
        }
        found = []
        for name, parts in answer.items():
            rows = np.flatnonzero(self.places(name))
            checked = {}
            for what, slope in parts.items():
                if what not in shapes:
                    raise ControlError(f"the derivative of {name!r} is by {what!r}; choose from {', '.join(shapes)}")
                array = np.asarray(slope, dtype=float)
                if array.shape == shapes[what] and len(rows) == 1:
                    array = array[None]
                if array.shape != (len(rows), *shapes[what]):
                    raise ControlError(f"the derivative of {name!r} by {what!r} must have shape {(len(rows), *shapes[what])}, got {array.shape}")
                checked[what] = array
            found.append((rows, checked))
        return found

    def places(self, name: str) -> np.ndarray:
        """Where the numbers of an input stand in the answer, as a mask."""
        if name not in self.mechanism:
            raise ControlError(f"control_derivative has an input {name!r}, which {self.mechanism.name!r} does not have")
        element, nothing = self.mechanism[name], np.zeros(0)
        if isinstance(element, Body):
            size: Any = np.zeros(6)
        elif isinstance(element, JointElement):
            size = np.zeros(sum(d == "force" or s is not None or d == "motion" for d, s in zip(element.type.drive, element.type.servo)))  # type: ignore[arg-type]
        else:
            size = 0.0 if isinstance(element, Path) else nothing
        return self.laid_out(0, {name: size})[1]

    # ---- forwards

    def push(self, knot: int, values: Callable[[float], Values], size: float, offsets: Any) -> np.ndarray:
        """The tangent of its answer where ``values(step)`` is what it sees ``step`` along the change of the run: by differences of the whole."""
        total = np.zeros(len(self.laid_out(0, {})[0]))
        if self.given:
            base = values(0.0)
            tangent = {name: sum(weight / size * _minus(values(offset * size)[name], base[name], name) for offset, weight in offsets) for name in base}
            for rows, parts in self.derivatives(knot, base):
                for name, slope in parts.items():
                    seen = tangent["kinetic"] + tangent["potential"] if name == "energy" else tangent[name]
                    total[rows] += slope.reshape(len(rows), -1) @ np.ravel(seen)
            return total
        for offset, weight in offsets:
            total += weight / size * self.ask(knot, values(offset * size))[0]
        return total


def differenced(record: Record) -> tuple[str, ...]:
    """What gradients of a run take by differences of functions in Python: the controller, laws, potentials and constraints, by name."""
    mechanism = record.mechanism
    found = ["controller"] if record.control is not None and not callable(record.control.derivative) else []
    return (*found, *(element.name for element in (*mechanism.force_laws, *mechanism.constraints, *mechanism.penalties)))


def _minus(moved: np.ndarray, base: np.ndarray, name: str) -> np.ndarray:
    if name != "orientation":
        return moved - base
    return (Rotation.from_quat(base, scalar_first=True).inv() * Rotation.from_quat(moved, scalar_first=True)).as_rotvec()


def _turned(q: np.ndarray, angle: float, axis: int) -> np.ndarray:
    return (Rotation.from_quat(q, scalar_first=True) * Rotation.from_rotvec(angle * np.eye(3)[axis])).as_quat(scalar_first=True)


def _flat(*parts: np.ndarray) -> np.ndarray:
    return np.concatenate([np.ravel(part) for part in parts])
