"""A forward pass over a run with resolved impact times: the step before an impact is as long as its gap says."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import GradientError
from dalembert.formulations.derivatives import InputBars
from dalembert.formulations.maximal.tape import Tape
from dalembert.formulations.maximal.touching_tape import TouchingTape
from dalembert.formulations.variational.contact_forward import ContactForward
from dalembert.formulations.variational.event_maps import Event, Maps, blow_along, blow_by_velocity, blow_slopes, packed
from dalembert.model.records import Model


class EventForward(ContactForward):
    """``ContactForward``, whose steps also change in length."""

    #: tangent of the length (s) of the last step
    last: float = 0.0

    def note(self, knot: int) -> None:
        super().note(knot)
        self.tangent.step_before[knot] = self.last

    def segment(self, tape: Tape, first: int, last: int) -> None:
        assert isinstance(tape, TouchingTape)
        self.sections = list(self.engine.sections(tape))
        after: dict[int, list[Event]] = {}
        for event in tape.events:
            after.setdefault(event.entry, []).append(event)
        for event in after.get(0, ()):
            self.strike(event, first)
            self.note(first)
        late = 0.0
        for index, step in enumerate(tape.steps):
            knot = first + step.knot
            late = 0.0 if step.start == 0.0 else late
            before = self.last if tape.arrays.clock[index, 0] > 0.0 else 0.0
            events = after.get(index + 1, ())
            if events and events[0].timed:
                longer = self.time_of(tape, index, step, knot, before, events[0])
            else:
                longer = -late * step.length / (1.0 - step.start)
            self.move(tape, index, step, knot, before, longer)
            late, self.last = late + longer, longer
            ends = step.start + step.length > 1.0 - 1e-12
            if ends:
                self.note(knot + 1)
            for event in events:
                self.strike(event, first)
                if ends:
                    self.last = 0.0
                    self.note(knot + 1)
        self.section = None

    def move(self, tape: Tape, index: int, step: Any, knot: int, before: float, longer: float) -> None:
        """Advance, with tangents of the lengths of the step before and of the step itself."""
        self.longer = before, longer
        try:
            self.advance(tape, index, step, knot)
        finally:
            self.longer = 0.0, 0.0

    def by_length(self, tape: Tape, index: int, step: Any, knot: int, longer: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
        """Tangents of the state after an entry by the lengths of the step before and of the step itself, all else given."""
        kept = self.state, self.spin, self.models, self.change, self.nodes.order
        self.state, self.spin, self.models = np.zeros_like(self.state), np.zeros_like(self.spin), []
        self.change, self.nodes.order = InputBars(*(np.zeros_like(table) for table in self.change)), []
        try:
            self.move(tape, index, step, knot, *longer)
            return self.state, self.spin
        finally:
            self.state, self.spin, self.models, self.change, self.nodes.order = kept

    def time_of(self, tape: Tape, index: int, step: Any, knot: int, before: float, event: Event) -> float:
        """The tangent of a step's length, from that of the gap at its end. The state's stays as it is."""
        kept = self.state, self.spin
        self.move(tape, index, step, knot, before, 0.0)
        change = self.gap_tangent(event, self.state[:, :6], True) if event.way is None else self.slide_tangent(event, knot, 0.0, True)
        self.state, self.spin = kept
        return -change / self.closing(tape, index, step, knot, event)

    def closing(self, tape: Tape, index: int, step: Any, knot: int, event: Event) -> float:
        """Derivative of what is zero at an event by the length of the step before it."""
        state, spin = self.by_length(tape, index, step, knot, (0.0, 1.0))
        if event.way is None:
            return self.gap_tangent(event, state[:, :6], False)
        kept, (self.state, self.spin) = (self.state, self.spin), (state, spin)
        try:
            return self.slide_tangent(event, knot, 1.0, False)
        finally:
            self.state, self.spin = kept

    def slide_tangent(self, event: Event, knot: int, last: float, models: bool) -> float:
        """The tangent of the velocity that is zero where a slide ends, from those of the state and of the length (s) of the step before.

        Without ``models`` those of the model and of inputs are none.
        """
        assert event.way is not None
        maps, pose = Maps(self.engine, event), self.state[:, :6]
        dv = self.velocity_tangent(maps, knot, last, models)

        def rows(offset: float, model: Model) -> np.ndarray:
            return maps.closed(offset * pose, self.one(model))[0].rows[event.ended]

        size = float(np.abs(pose).max(initial=0.0))
        turn = self.difference(rows, size) if models else self.along(rows, size)
        here, _ = maps.closed(0.0 * pose)
        return float(event.way @ (turn * np.ones((3, dv.size)) @ event.blows[0].before + here.rows[event.ended] @ dv))

    def gap_tangent(self, event: Event, pose: np.ndarray, models: bool) -> float:
        maps = Maps(self.engine, event)

        def gap(offset: float, model: Model) -> np.ndarray:
            return maps.closed(offset * pose, self.one(model))[1][event.ended : event.ended + 1]

        size = float(np.abs(pose).max(initial=0.0))
        found = self.difference(gap, size) if models else self.along(gap, size)
        return float(np.ravel(found)[0]) if np.size(found) else 0.0

    def one(self, model: Model) -> Any:
        """What may touch in a model; None for that of the run."""
        return self.nodes.models.get(id(model))

    def strike(self, event: Event, first: int) -> None:
        """The tangent of the state just after an impact from that before it."""
        maps, n, pose = Maps(self.engine, event), self.engine.sizes[0], self.state[:, :6]
        dv = self.velocity_tangent(maps, min(first + event.knot, self.knots - 2), self.last if event.entry else 0.0, True)
        here, _ = maps.closed(0.0 * pose)
        change_closed = self.difference(
            lambda offset, model: packed(maps.closed(offset * pose, self.one(model))[0]), float(np.abs(pose).max(initial=0.0)),
        ) * np.ones(len(packed(here)))
        for blow in event.blows:
            slopes, moved = blow_slopes(blow, here)
            found = blow_along(blow, here, change_closed)
            impulses = -np.linalg.lstsq(slopes, found[: len(slopes)] + blow_by_velocity(blow, here) @ dv, rcond=1e-13)[0]
            dv = dv + found[len(slopes) :] + moved @ impulses
        after = (event.blows[-1].after if event.blows else self._plain(maps, event)).reshape(n, 6)
        speeds, speed = dv.reshape(n, 6), self.speed_of(event)
        size = max(float(np.abs(pose).max(initial=0.0)), float(np.abs(dv).max(initial=0.0)) / speed, 1e-300)

        def begin(offset: float, model: Model) -> np.ndarray:
            momentum, turning = maps.begin(offset * pose, after + offset * speeds, self.one(model))
            return np.concatenate([momentum.ravel(), turning.ravel()])

        found = self.difference(begin, size)
        self.state = np.concatenate([pose, found[: 6 * n].reshape(n, 6), np.zeros((n, 6))], axis=1)
        self.spin = found[6 * n :].reshape(-1, 6)

    def speed_of(self, event: Event) -> float:
        """A measure (m/s) of velocities before an event."""
        return max(1.0, float(np.abs(event.blows[0].before).max(initial=0.0)) if event.blows else 1.0)

    def velocity_tangent(self, maps: Maps, knot: int, last: float, models: bool) -> np.ndarray:
        """(6n,) the tangent of velocities just before an event, from those of the state and of the length (s) of the step before."""
        state, spin, event, n = self.state, self.spin, maps.event, self.engine.sizes[0]
        change, given = self.change, event.inputs
        weight = 1.0 if models else 0.0
        wrench, along = self.lasts if event.entry else (np.zeros_like(maps.wrench), np.zeros_like(maps.along))
        speed = self.speed_of(event)
        size = max(float(np.abs(state[:, :6]).max(initial=0.0)), float(np.abs(self.speeds(state[:, 6:12])).max(initial=0.0)) / speed, 1e-300)
        if maps.before > 0.0:
            size = max(size, abs(last) / maps.before)

        def velocity(offset: float, model: Model) -> np.ndarray:
            by = weight * offset
            inputs = given._replace(
                wrench=given.wrench + by * change.wrench[knot], joint=given.joint + by * change.joint[knot], tension=given.tension + by * change.tension[knot],
            )
            return maps.velocity(
                offset * state, offset * spin, offset * last, maps.wrench + offset * wrench, maps.along + offset * along, inputs, self.one(model),
            )

        return ((self.difference if models else self.along)(velocity, size) * np.ones((n, 6))).ravel()

    def _plain(self, maps: Maps, event: Event) -> np.ndarray:
        zero = np.zeros((self.engine.sizes[0], 18))
        return maps.velocity(zero, np.zeros_like(maps.along), 0.0, maps.wrench, maps.along, event.inputs, None).ravel()

    def outputs(self) -> dict[str, np.ndarray]:
        found = super().outputs()
        if not all(np.all(np.isfinite(value)) for value in found.values()):
            raise GradientError(f"the run of {self.mechanism.name!r} cannot be differentiated: an impact just touches")
        return found
