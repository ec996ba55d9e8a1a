"""A backward pass over a run with resolved impact times. What depends on the lengths of steps comes from a forward pass over these alone."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dalembert.errors import GradientError
from dalembert.formulations.derivatives import Cotangents, InputBars
from dalembert.formulations.engine import Inputs
from dalembert.formulations.maximal.adjoint import KnotBars
from dalembert.formulations.maximal.bars import new_bars
from dalembert.formulations.maximal.forward import OFFSETS
from dalembert.formulations.maximal.recording import Recording
from dalembert.formulations.maximal.tape import Tape
from dalembert.formulations.maximal.touching_tape import TouchingTape
from dalembert.formulations.variational.contact_derivative import ContactAdjoint
from dalembert.formulations.variational.contact_tape import pull_contact_steps
from dalembert.formulations.variational.derivative import LOOSE
from dalembert.formulations.variational.event_forward import EventForward
from dalembert.formulations.variational.event_maps import Event, Maps, blow_along, blow_by_velocity, blow_slopes, packed
from dalembert.formulations.variational.tape import pull_knots
from dalembert.mechanism.parameters import list_parameters, with_parameters

#: steps of differences: of poses (m, rad), of velocities (parts of the fastest, at least 1 m/s), of numbers (parts of them)
POSE, SPEED, PART = 1e-3, 1e-2, 2e-3


def slope(function: Callable[[float], Any], step: float) -> Any:
    """Sixth-order difference."""
    return sum(weight / step * function(offset * step) for offset, weight in OFFSETS)


class EventAdjoint(ContactAdjoint):
    """``ContactAdjoint`` with impacts between the steps."""

    def __init__(self, engine: Any, recording: Any, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, cotangents: Cotangents) -> None:
        super().__init__(engine, recording, inputs, knots, dt, coordinates, cotangents)
        if len(cotangents.force):
            raise GradientError("forces of runs with events=\"exact\" cannot be differentiated yet: use poses, velocities and energies")
        nothing = InputBars(*(np.zeros_like(table) for table in self.inputs))
        self.lengths = EventForward(engine, recording, inputs, knots, dt, coordinates, [], 1.0, nothing)
        #: functions of a model, whose derivatives are parts of those by its numbers
        self.by_model: list[Callable[[Any], float]] = []
        #: functions of a change of what is closed at an impact
        self.by_closed: list[tuple[Maps, Callable[[np.ndarray], float]]] = []

    def pull(self, tape: Tape, knots: KnotBars, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        assert isinstance(tape, TouchingTape)
        if not tape.events:
            return super().pull(tape, knots, first)
        knots = knots._replace(input=self.turned(first, knots.input)[0])
        (bodies, joints, couplings), count, engine = self.engine.sizes, tape.count, self.engine
        entries = np.zeros((count, bodies, 6)), np.zeros((count, 2, joints, 6)), np.zeros((count, couplings))
        begins = np.array([step.knot if step.start == 0.0 else -1 for step in tape.steps], dtype=np.int64)
        push = np.concatenate([knots.push, np.zeros((len(knots.push), 1, 6))], axis=1)
        # one more than there are knots, for what lasts before impacts
        felt = knots._replace(push=np.concatenate([push, push[:1] * 0.0]), input=np.concatenate([knots.input, knots.input[:1] * 0.0]))
        spare, final = len(knots.push), tape.steps[-1].knot + 1
        after: dict[int, list[Event]] = {}
        for event in tape.events:
            after.setdefault(event.entry, []).append(event)
        moving = {tape.steps[event.entry - 1].knot for event in tape.events if event.timed}
        varies = [step.knot in moving for step in tape.steps]
        late = before_next = 0.0
        self.lengths.sections = list(engine.sections(tape))
        self.lengths.state, self.lengths.spin = np.zeros((bodies, 18)), np.zeros((joints, 6))
        self.lengths.bars = new_bars(self.model)
        impulses = self._impulses(tape, begins, first)
        for section, touch in self.sections(tape):
            for entry in range(section.end - 1, section.begin - 1, -1):
                step, ends = tape.steps[entry], np.full(count, -1, dtype=np.int64)
                knot = first + step.knot
                felt.push[spare], felt.input[spare] = 0.0, 0.0
                closes = step.start + step.length > 1.0 - 1e-12
                late = 0.0 if closes else late
                if entry == count - 1 and len(knots.push) > final:
                    felt.push[spare], felt.input[spare] = felt.push[final], felt.input[final]
                    ends[entry] = spare
                # what follows the entry: impacts, and how long it is
                length = before_next
                before_next = 0.0
                maps: Maps | None = None
                for event in reversed(after.get(entry + 1, [])):
                    maps, bar = self.strike(event, first, felt, spare)
                    length, ends[entry] = bar, spare
                if closes and varies[entry] and maps is None:
                    length += self.read_length(knot + 1)
                if varies[entry]:
                    by = self.by_length(tape, entry, step, knot, (0.0, 1.0), knots if step.start == 0.0 else None, step.knot)
                    length += by
                    if maps is not None and maps.event.timed:
                        self.time(maps, tape, entry, step, knot, length + late, (first, felt, spare))
                    else:
                        late -= step.length / (1.0 - step.start) * (length + late)
                if entry > 0 and varies[entry - 1] and tape.arrays.clock[entry, 0] > 0.0:
                    before_next = self.by_length(tape, entry, step, knot, (1.0, 0.0), knots if step.start == 0.0 else None, step.knot)
                worst = pull_contact_steps(
                    self.model, section.graph.work, section.scene, engine.compliance, tape.arrays, section.kept, section.first, entry, entry + 1,
                    self.bars, touch, felt, begins, ends, engine.options.resting_speed, *impulses, *entries,
                )
                if not 0.0 <= worst < LOOSE:
                    raise GradientError(f"a step of {self.mechanism.name!r} cannot be differentiated: its equations are singular there (residual {worst:.2g})")
        for event in reversed(after.get(0, [])):
            self.strike(event, first, felt, spare)
        return entries[0], entries[1][:, 0], entries[1][:, 1:2], entries[2]

    # ---- lengths

    def by_length(
        self, tape: Tape, entry: int, step: Any, knot: int, longer: tuple[float, float], knots: KnotBars | None, at: int,
    ) -> float:
        """The bar of the length of a step, or of the one before it, through the state after it and through the forces that are read at its knot."""
        lengths = self.lengths
        state, spin = lengths.by_length(tape, entry, step, knot, longer)
        after = self.bars.bodies["after"][:-1, : self.width]
        bar = float(np.sum(after * state) + np.sum(self.bars.joints["after"] * spin))
        if knots is not None:
            bar += float(np.sum(knots.push[at] * lengths.felt[0][knot]) + np.sum(knots.input[at] * lengths.felt[1][knot]))
        return bar

    def read_length(self, knot: int) -> float:
        """The bar of the length of the step before a knot through what is read there."""
        part = Cotangents(*(np.ascontiguousarray(array[knot : knot + 1]) for array in self.cotangents))
        if not (np.any(part.velocity) or np.any(part.rate) or np.any(part.energy)):
            return 0.0
        one = Recording(*(array[knot : knot + 1].copy() for array in self.recording))
        inputs, rates = self.inputs_at(knot, knot + 1), self.prescribed[0, knot]
        before = float(one.step_before[0])

        def value(change: float) -> float:
            one.step_before[0] = before + change
            seen = self.engine.seen(one, inputs, rates, self.coordinates[knot])
            moving = np.concatenate([seen["velocity"], seen["angular_velocity"]], axis=1)
            return float(np.sum(part.velocity[0] * moving) + np.sum(part.rate[0] * seen["rate"]) + part.energy[0, 0] * seen["kinetic"][0])

        return slope(value, 1e-2 * before)

    def time(self, maps: Maps, tape: Tape, entry: int, step: Any, knot: int, bar: float, before: tuple[int, KnotBars, int]) -> None:
        """The moment of an event, with the bar of the length of the step before it: onto the state at its end, and onto the model.

        ``before``: as ``close`` takes them.
        """
        event, zero = maps.event, np.zeros((self.engine.sizes[0], 6))
        if event.way is not None:
            weight = -bar / self.lengths.closing(tape, entry, step, knot, event) * event.way
            v, here = event.blows[0].before, maps.closed(zero)[0]

            def along(change: np.ndarray) -> float:
                return float(weight @ change[: here.rows.size].reshape(here.rows.shape)[event.ended] @ v)

            gradient = self.pose_slopes(maps, lambda pose: float(weight @ maps.closed(pose)[0].rows[event.ended] @ v))
            self.bars.bodies["after"][:-1, :6] += gradient
            self.by_closed.append((maps, along))
            self.close(maps, before[0], (weight @ here.rows[event.ended]).reshape(-1, 6), *before[1:])
            return
        gradient = self.pose_slopes(maps, lambda pose: float(maps.closed(pose)[1][event.ended]))
        rate = float(np.sum(gradient * self.lengths.by_length(tape, entry, step, knot, (0.0, 1.0))[0][:, :6]))
        weight = -bar / rate
        self.bars.bodies["after"][:-1, :6] += weight * gradient
        self.by_model.append(lambda one: weight * float(maps.closed(zero, one)[1][event.ended]))

    def pose_slopes(self, maps: Maps, function: Callable[[np.ndarray], Any]) -> np.ndarray:
        """(n, 6, ...) derivatives of a function of a change of the pose."""
        change = np.zeros((self.engine.sizes[0], 6))
        found = np.zeros((*change.shape, *np.shape(function(change))))
        for i in range(found.shape[0]):
            for c in range(6):
                def value(offset: float, i: int = i, c: int = c) -> Any:
                    change[i, c] = offset
                    try:
                        return function(change)
                    finally:
                        change[i, c] = 0.0

                found[i, c] = slope(value, POSE)
        return found

    # ---- impacts

    def strike(self, event: Event, first: int, felt: KnotBars, spare: int) -> tuple[Maps, float]:
        """From the cotangent of the state just after an impact to that before it. Returns the bar of the length of the step before it.

        Bars of the forces that last until then are added to ``felt`` at ``spare``.
        """
        n, maps = self.engine.sizes[0], Maps(self.engine, event)
        bars, zero = self.bars.bodies["after"][:-1], np.zeros((self.engine.sizes[0], 6))
        momentum, spin = bars[:, 6:12].copy(), self.bars.joints["after"].copy()
        after = (event.blows[-1].after if event.blows else self.lengths._plain(maps, event)).reshape(n, 6)

        def begins(pose: np.ndarray, velocity: np.ndarray, one: Any = None) -> float:
            moving, turning = maps.begin(pose, velocity, one)
            return float(np.sum(momentum * moving) + np.sum(spin * turning))

        pose = self.pose_slopes(maps, lambda change: begins(change, after)) if np.any(self.model.joints["armature"]) else zero.copy()
        velocity = self.speed_slopes(lambda change: begins(zero, after + change.reshape(n, 6)), after)
        self.by_model.append(lambda one: begins(zero, after, one))
        here, _ = maps.closed(zero)
        by_pose = self.pose_slopes(maps, lambda change: packed(maps.closed(change)[0])) if event.blows else []
        for blow in reversed(event.blows):
            slopes, moved = blow_slopes(blow, here)
            weights = -np.linalg.lstsq(slopes.T, moved.T @ velocity, rcond=1e-13)[0]
            given, both = velocity, np.concatenate([weights, velocity])

            def along(change: np.ndarray, blow: Any = blow, both: np.ndarray = both) -> float:
                return float(both @ blow_along(blow, here, change))

            pose = pose + np.array([[along(part) for part in body] for body in by_pose])
            velocity = given + weights @ blow_by_velocity(blow, here)
            self.by_closed.append((maps, along))
        bars[:, :6] += pose
        bars[:, 6:18], self.bars.joints["after"][:] = 0.0, 0.0
        return maps, self.close(maps, first, velocity.reshape(n, 6), felt, spare)

    def speed_slopes(self, function: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
        """(6n,) derivatives of a function of a change of the velocities."""
        found, change = np.zeros(at.size), np.zeros(at.size)
        step = SPEED * max(1.0, float(np.abs(at).max(initial=0.0)))
        for i in range(at.size):
            def value(offset: float, i: int = i) -> float:
                change[i] = offset
                try:
                    return function(change)
                finally:
                    change[i] = 0.0

            found[i] = slope(value, step)
        return found

    def close(self, maps: Maps, first: int, velocity: np.ndarray, felt: KnotBars, spare: int) -> float:
        """Velocities just before an impact, weighed with (n, 6), onto the state there. Returns the bar of the length of the step before."""
        event, bars = maps.event, self.bars
        bodies, joints, couplings = self.engine.sizes
        zero = np.zeros((bodies, 18)), np.zeros((joints, 6))
        if maps.before == 0.0:
            def plain(change: np.ndarray) -> float:
                state = np.zeros((bodies, 18))
                state[:, 6:12] = change.reshape(bodies, 6)
                return float(np.sum(velocity * maps.velocity(state, zero[1], 0.0, maps.wrench, maps.along, event.inputs, None)))

            momentum = np.concatenate([maps.state.bodies["p"], maps.state.bodies["l"]], axis=1)
            bars.bodies["after"][:-1, 6:12] += self.speed_slopes(plain, momentum).reshape(bodies, 6)
            self.by_model.append(lambda one: float(np.sum(velocity * maps.velocity(*zero, 0.0, maps.wrench, maps.along, event.inputs, one))))
            return 0.0
        one, knots = maps.recording(*zero, 0.0), self.new_knots(1)
        cotangents = Cotangents(*(np.zeros((1, *array.shape[1:])) for array in self.cotangents))
        cotangents.velocity[0] = velocity
        pushed = event.inputs._replace(wrench=event.inputs.wrench + maps.wrench, joint=event.inputs.joint + maps.along)
        scratch = np.zeros((2, bodies + 1, 6)), np.zeros((bodies + 1, 6)), np.zeros((joints, 6)), np.zeros(couplings), np.zeros((joints, 6))
        if not pull_knots(
            self.model, self.engine.reading.work, self.engine.compliance, one, pushed, maps.state.joints["coordinate"][None].copy(),
            event.rates[None].copy(), 0, 1, cotangents, bars, knots, scratch,
        ):
            raise GradientError(f"an impact of {self.mechanism.name!r} cannot be differentiated: the joints hold it in a singular pose")
        bars.bodies["after"][:-1, : self.width] += knots.body[0]
        bars.joints["after"] += knots.spin[0]
        felt.push[spare, :-1] += knots.push[0]
        felt.input[spare] += knots.input[0]
        at = min(first + event.knot, len(self.inputs.wrench) - 1)
        self.inputs.wrench[at] += knots.push[0]
        self.inputs.joint[at] += knots.input[0]
        self.inputs.tension[at] += knots.tension[0]
        return slope(
            lambda change: float(np.sum(velocity * maps.velocity(*zero, change, maps.wrench, maps.along, event.inputs, None))), 1e-2 * maps.before,
        )

    # ---- numbers

    def parameter(self, name: str) -> np.ndarray | None:
        found = super().parameter(name)
        if not self.by_model or name == "gravity":
            return found
        here = np.asarray(list_parameters(self.mechanism, shifts=True)[name].value, dtype=float)
        impacts: list[Maps] = []
        for maps, _ in self.by_closed:
            if not any(maps is other for other in impacts):
                impacts.append(maps)
        zero = np.zeros((self.engine.sizes[0], 6))
        more, scale = np.zeros(here.shape), float(np.abs(here).max(initial=0.0)) or 0.05
        for index in np.ndindex(here.shape):
            step = PART * (float(np.sqrt(here[index[0], index[0]] * here[index[1], index[1]])) if name.endswith(".inertia") else scale)

            def value(offset: float, index: Any = index) -> np.ndarray:
                beside = here.copy()
                beside[index] += offset
                if name.endswith(".inertia"):
                    beside = 0.5 * (beside + beside.T)
                one = self.engine.model_of(with_parameters(self.mechanism, {name: beside}, checked=False))
                functions = [np.atleast_1d(sum(function(one) for function in self.by_model))]
                return np.concatenate([*functions, *(packed(maps.closed(zero, one)[0]) for maps in impacts)])

            if name.endswith((".restitution", ".friction")):  # which they are linear in, and which have ends
                high = min(step, 1.0 - float(here[index])) if name.endswith("restitution") else step
                low = max(-step, -float(here[index]))
                found_slopes = (value(high) - value(low)) / (high - low)
            else:
                found_slopes = slope(value, step)
            more[index], begin = found_slopes[0], 1
            for maps in impacts:
                size = len(packed(maps.closed(zero)[0]))
                change = found_slopes[begin : begin + size]
                more[index] += sum(along(change) for other, along in self.by_closed if other is maps)
                begin += size
        if found is None:
            return more if np.any(more) else None
        return found + more
