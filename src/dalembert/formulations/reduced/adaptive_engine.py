"""What runs a mechanism in joint coordinates by SciPy's ODE solvers: dense output onto the knots, events, impacts at limits."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dalembert.errors import ModelError, StepFailure
from dalembert.formulations.derivatives import Adjoint, Cotangents, Forward, InputBars
from dalembert.formulations.engine import Inputs, Readings, Samples, Source
from dalembert.formulations.maximal.recording import Recording, new_recording
from dalembert.formulations.reduced.adaptive import arrive, begin, bounce, end, lay_out, limit_force, rate_of_change
from dalembert.formulations.reduced.explicit import LARGEST_GAP, write_knot
from dalembert.formulations.reduced.explicit_engine import FlowEngine
from dalembert.formulations.reduced.moments import Moment
from dalembert.formulations.reduced.options import Reduced
from dalembert.formulations.reduced.start import beyond
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.touching import Touching
from dalembert.model.tree import HELD, POINT

#: parts of a solver's step at whose ends events are looked at
LOOKS = 4
#: how near (m or rad) a coordinate is to an end that it rests on
AT_END = 1e-12
#: impacts within one step of a run that count as endless
MOST_IMPACTS = 1000
#: how often the rate of change may be asked for within one step of a run, some seconds of computing
MOST_WORK = 20_000
#: methods whose steps are bounded by the fastest rate of a mechanism, however little moves at it
EXPLICIT = ("RK23", "RK45", "DOP853")


class Limit(NamedTuple):
    """An end of a joint's direction: its node, where it is (m or rad), +1 for a lower and -1 for an upper end."""

    name: str
    node: int
    place: float
    side: float
    restitution: float


class Move(NamedTuple):
    """What happened at an end: when (s from the first knot), the solver's vector before and after it, whether it was an impact, and one that
    bounced, and what rests on ends from then on.
    """

    time: float
    limit: Limit
    before: np.ndarray
    after: np.ndarray
    hits: bool
    bounces: bool
    held: tuple[Limit, ...]


class Noted(NamedTuple):
    """An event: when, which, and the pose then."""

    time: float
    name: str
    position: np.ndarray
    orientation: np.ndarray


@dataclass
class RunLog:
    """What a run writes down: its knots, its events, the length of its solver's last step (s), and where that stands."""

    knots: Recording
    events: list[Noted] = field(default_factory=list)
    stride: float | None = None
    path: Path | None = None


class AdaptiveEngine(FlowEngine):
    """A mechanism integrated by one of SciPy's methods, with steps chosen by ``rtol`` and ``atol``."""

    def __init__(self, mechanism: Mechanism, options: Reduced) -> None:
        super().__init__(mechanism, options)
        self.layout, self.size = lay_out(self.tree.nodes)
        self.limits = self._limits(mechanism)
        self.ended: Noted | None = None
        self.outcome: tuple[int, float] = (0, 0.0)
        #: length (s) of the solver's last step, where a step of the run took too many of them
        self.crept: float | None = None

    def takes_limits(self, mechanism: Mechanism) -> bool:
        """Limits of joints are taken; contacts and friction are not."""
        rough = any(joint.type.bearing is not None or any(f > 0.0 for f in joint.type.friction) for joint in mechanism.joints)  # type: ignore[union-attr]
        return not (rough or mechanism.contact_points or Touching(mechanism).any)

    def _limits(self, mechanism: Mechanism) -> list[Limit]:
        found = []
        for joint in mechanism.joints:
            for direction, ends in enumerate(joint.type.limits):
                places = [(place, side) for place, side in zip(ends, (1.0, -1.0)) if np.isfinite(place)]
                if not places:
                    continue
                nodes = np.flatnonzero((self.tree.nodes["joint"] == joint.index) & (self.tree.nodes["direction"] == direction))
                if len(nodes) == 0 or self.tree.nodes["kind"][nodes[0]] == POINT or joint.type.directions[direction][0] == "ball":
                    raise ModelError(
                        f"Reduced: method={self.options.method!r} takes limits along slides and turns of the tree; those of joint {joint.name!r} "
                        "turn freely or close a loop. Choose an implicit method such as 'bdf2'."
                    )
                what = f" direction {direction}" if joint.type.freedom > 1 else ""
                for place, side in places:
                    name = f"{'lower' if side > 0 else 'upper'} limit of {joint.name!r}{what}"
                    found.append(Limit(name, int(nodes[0]), float(place), side, float(joint.type.restitution)))
        return found

    # ---- recording

    def new_recording(self, knots: int) -> Any:
        """Room for a run."""
        return RunLog(new_recording(knots, *self.sizes))

    def record(self, numbers: np.ndarray, recording: RunLog | Recording, knot: int) -> None:
        """Write the state into a recording."""
        self.write_knot(numbers, recording.knots if isinstance(recording, RunLog) else recording, knot)

    def read(self, recording: Any, inputs: Inputs, knots: int, dt: float, coordinate: np.ndarray) -> Readings:
        """The first ``knots`` knots of a recording, and its events."""
        readings, events = super().read(recording.knots, inputs, knots, dt, coordinate), recording.events
        if not (events or self.limits or self.options.events):
            return readings
        names = tuple(dict.fromkeys(event.name for event in events))
        shapes = self.sizes[0]
        readings.values.update(
            event_time=np.array([event.time for event in events]), event_kind=np.array([names.index(event.name) for event in events], dtype=np.int64),
            event_position=np.array([event.position for event in events]).reshape(-1, shapes, 3),
            event_orientation=np.array([event.orientation for event in events]).reshape(-1, shapes, 4),
        )
        return Readings(readings.values, readings.providers, readings.touching, readings.least_norm, names, readings.glance)

    # ---- running

    def advance(self, numbers: np.ndarray, recording: Any, source: Source, first: int, count: int, dt: float) -> int:
        """Integrate over ``count`` intervals of ``dt``. Returns how many succeeded; fewer where an event ends the run."""
        self.whole, self.ended, self.crept = dt, None, None
        if first == 0 or recording.path is None or recording.path.knot != first or recording.path.source is not source:
            recording.path = Path(self, numbers, source, first, dt, recording, alone=count == 1)
        path: Path = recording.path
        for done in range(count):
            before, path.moves = (None, []) if self.tape is None else (numbers.copy(), [])
            held = tuple(path.held.values())
            if not path.to_knot(numbers, first + done + 1):
                recording.path = None
                return done
            if before is not None:
                self._keep(self.tape, before, numbers, source, first + done, dt, held, path.moves)
            if path.alone:
                recording.path = None
                if done + 1 < count:
                    path = recording.path = Path(self, numbers, source, first + done + 1, dt, recording, alone=False)
        return count

    # ---- derivatives

    def as_seen(self, recording: Any, inputs: Inputs, knot: int, coordinate: np.ndarray) -> tuple[Recording, Inputs]:
        return recording.knots, inputs

    def _keep(
        self, tape: Any, before: np.ndarray, after: np.ndarray, source: Source, step: int, dt: float, held: tuple[Limit, ...], moves: list[Move],
    ) -> None:
        """Write an interval into a tape."""
        from dalembert.formulations.reduced.adaptive_steps import keep_interval

        keep_interval(self, tape, before, after, source, step, dt, held, moves)

    def model_of(self, mechanism: Mechanism) -> Any:
        from dalembert.formulations.reduced.adaptive_steps import AdaptiveBuilt

        built = super().model_of(mechanism)
        return AdaptiveBuilt(built.model, built.tree, self._limits(mechanism))

    def adjoint(self, recording: Any, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, cotangents: Cotangents) -> Adjoint:
        """A backward pass over the first ``knots`` knots of a run."""
        from dalembert.formulations.reduced.adaptive_steps import AdaptiveAdjoint, AdaptiveSteps

        return AdaptiveAdjoint(AdaptiveSteps(self), self, recording.knots, inputs, knots, dt, coordinates, cotangents)

    def forward(
        self, recording: Any, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, models: Sequence[Any], step: float, change: InputBars,
    ) -> Forward:
        """A forward pass over the first ``knots`` knots of a run."""
        from dalembert.formulations.reduced.adaptive_steps import AdaptiveForward, AdaptiveSteps

        return AdaptiveForward(AdaptiveSteps(self), self, recording.knots, inputs, knots, dt, coordinates, models, step, change)

    # ---- failures

    def failure(self, time: float, dt: float) -> StepFailure:
        """The error for the interval that ``advance`` stopped in."""
        if self.ended is not None:
            return StepFailure(f"the event {self.ended.name!r} ended the motion of {self.mechanism.name!r} at t = {self.ended.time:.6g} s")
        if self.crept is not None:
            stiff = "A stiff spring or damper or a light body asks for that: " if self.options.method in EXPLICIT else ""
            other = "use method='Radau' or 'bdf2', or" if self.options.method in EXPLICIT else "Use"
            return StepFailure(
                f"the step at t = {time:.6g} s of {self.mechanism.name!r} with dt = {dt:g} s takes more than {MOST_WORK:,} evaluations by {self.options.method!r}, "
                f"whose own steps there are of {self.crept:.2g} s. {stiff}{other} a larger rtol and atol, or a smaller dt, if it shall go on like that."
            )
        return super().failure(time, dt)


class Path:
    """A solver on its way: the last step that it made, with dense output, and what happens at its end.

    Times count from the first knot of the run. ``alone``: it ends at the next knot, where inputs may change or loops are closed.
    """

    def __init__(
        self, engine: AdaptiveEngine, numbers: np.ndarray, source: Source, first: int, dt: float, log: RunLog, alone: bool,
    ) -> None:
        self.engine, self.source, self.dt, self.log, self.knot = engine, source, dt, log, first
        self.time, self.stride = first * dt, log.stride if first > 0 else None
        self.tree = engine.tree.nodes
        self.tree["driven"][self.tree["driven"] == HELD] = 0
        sample = source.samples(first, 1, (0.0,))
        self.steady = sample if len(sample.motion) == 0 and sample.per == 0 else None
        self.alone = alone or engine.closed or not self._uniform(source, first)
        self.last = first + 1 if self.alone else source.end
        self.work_done = 0
        self.y, self.rate = np.zeros(engine.size), np.zeros(engine.size)
        engine.enter(begin, True, engine.flow(sample), engine.layout, sample, engine.view(numbers), self.y)
        self.coordinates = engine.view(numbers).joints["coordinate"].copy()
        self.held: dict[int, Limit] = {}
        #: what happened since the last knot
        self.moves: list[Move] = []
        self.solver: Any = None
        self.dense: Callable[[float], np.ndarray] | None = None
        self.begin_time, self.happens = self.time, None
        self._rest()

    def _uniform(self, source: Source, first: int) -> bool:
        """Whether the inputs are the same in all steps to come, or functions of time."""
        if self.steady is None:
            return True
        ahead = source.samples(first, source.end - first, (0.0,))
        return all(len(table) == 0 or bool(np.all(table == table[:1])) for table in (ahead.wrench, ahead.joint, ahead.tension))

    # ---- the right-hand side

    def samples(self, time: float) -> Samples:
        """Inputs and targets at a time."""
        if self.steady is not None:
            return self.steady
        step = min(max(int(time / self.dt), 0), self.source.end - 1)
        return self.source.samples(step, 1, (time / self.dt - step,))

    def _call(self, kernel: Any, time: float, y: np.ndarray, *more: Any) -> Any:
        samples = self.samples(time)
        return self.engine.enter(kernel, True, self.engine.flow(samples), self.engine.layout, samples, y, *more)

    def change(self, time: float, y: np.ndarray) -> np.ndarray:
        """The rate of change of the vector; not a number where there is none."""
        self.work_done += 1
        fine = self._call(rate_of_change, time, np.ascontiguousarray(y), self.rate)
        return self.rate.copy() if fine else np.full(len(y), np.nan)

    # ---- on the way

    def to_knot(self, numbers: np.ndarray, knot: int) -> bool:
        """Write the state at a knot. False where the solver fails or an event ends the run before."""
        time, impacts = knot * self.dt, 0
        while self.time < time - 1e-12 * self.dt:
            if self.happens is not None:
                impacts += 1
                if not self.happens():
                    return False
                self.happens = None
            if self.work_done > MOST_WORK:
                self.engine.crept = self.stride
                return False
            if impacts > MOST_IMPACTS or not self._step():
                self.engine.outcome = (1, np.nan)
                return False
        y = np.ascontiguousarray(self.y if self.dense is None or time >= self.time else self.dense(time))
        knots, samples, before = self.log.knots, self.samples(time), numbers.copy()
        gap = self.engine.enter(
            end, True, self.engine.flow(samples), self.engine.layout, samples, y, self.engine.view(numbers), self.dt, knots, knot,
        )
        self.engine.outcome = (0, float(gap))
        if not gap < LARGEST_GAP:
            numbers[:] = before
            self.engine.passed = beyond(self.engine.mechanism, self.engine.tree, self.engine.own.nodes)
            if len(samples.motion):
                self.engine.asked = before, samples.motion[0, [0, 0], 0].copy()
            return False
        self.coordinates = self.engine.view(numbers).joints["coordinate"].copy()
        knots.substeps[knot], knots.iterations[knot] = 1, self.work_done
        self.work_done, self.knot, self.log.stride = 0, knot, self.stride
        return True

    def _step(self) -> bool:
        """One step of the solver, cut short where something happens."""
        if self.solver is None:
            import scipy.integrate as integrate

            options, bound = self.engine.options, self.last * self.dt
            kind = getattr(integrate, options.method)
            first = None if self.stride is None else min(self.stride, 0.999 * (bound - self.time))
            self.solver = kind(self.change, self.time, self.y, bound, rtol=max(options.rtol, 100 * np.finfo(float).eps), atol=options.atol, first_step=first)
        if self.solver.status != "running":
            return False
        self.solver.step()
        if self.solver.status == "failed" or not np.all(np.isfinite(self.solver.y)):
            return False
        start, self.time, self.y = self.time, float(self.solver.t), self.solver.y.copy()
        self.stride = float(getattr(self.solver, "h_abs", self.solver.step_size) or self.solver.step_size)
        self.dense = self.solver.dense_output()
        self._look(start)
        return True

    def _look(self, start: float) -> None:
        """Find the first thing that happens within the step from ``start``; events of users that do not end the run are noted."""
        watched: list[tuple[str, Callable[[float], float], float | None, Callable[[float], bool] | None]] = []
        for limit in self.engine.limits:
            if limit.node in self.held:
                if self.held[limit.node] is limit:
                    watched.append((f"leaving the {limit.name}", lambda t, limit=limit: self._push(t, limit), None, lambda t, limit=limit: self._leave(t, limit)))
            else:
                watched.append((limit.name, lambda t, limit=limit: self._gap(t, limit), None, lambda t, limit=limit: self._meet(t, limit)))
        for event in self.engine.options.events:
            name = getattr(event, "__name__", repr(event))
            terminal = bool(getattr(event, "terminal", False))
            action = (lambda t, name=name: self._finish(t, name)) if terminal else None
            watched.append((name, lambda t, event=event: float(event(self.moment(t))), float(getattr(event, "direction", 0.0)), action))
        if not watched:
            return
        times = np.linspace(start, self.time, LOOKS + 1)
        found = []
        for name, function, direction, action in watched:
            values = [function(t) for t in times]
            for k in range(LOOKS):
                span = function, times[k], times[k + 1], values[k], values[k + 1]
                when = self._end_met(*span) if direction is None else self._root(*span, direction)
                if when is not None:
                    found.append((when, name, action))
                    if action is not None:
                        break
        for when, name, action in sorted(found, key=lambda item: item[0]):
            if action is None:
                self._note(when, name)
                continue
            assert self.dense is not None
            self.y, self.time = self.dense(when), when
            self.happens = partial(action, when)
            return

    @staticmethod
    def _root(function: Callable[[float], float], a: float, b: float, at_a: float, at_b: float, direction: float) -> float | None:
        """When a function changes sign between two times, None if it does not; towards ``direction`` only, where that is not zero."""
        from scipy.optimize import brentq

        if (at_a < 0.0 <= at_b and direction >= 0.0) or (at_a > 0.0 >= at_b and direction <= 0.0):
            found: Any = brentq(function, a, b, xtol=1e-15, rtol=1e-14)  # type: ignore[arg-type]
            return float(found)
        return None

    def _end_met(self, function: Callable[[float], float], a: float, b: float, at_a: float, at_b: float) -> float | None:
        """The same for what falls to zero and may begin there: a short flight off an end and back to it is found, too."""
        if at_a > 0.0 or at_b >= 0.0:
            return self._root(function, a, b, at_a, at_b, -1.0)
        for k in range(1, 40):
            middle, after = a + (b - a) * 0.5**k, a + (b - a) * 0.5 ** (k - 1)
            value = function(middle)
            if value > 0.0:
                return self._root(function, middle, after, value, function(after), -1.0)
        return a if at_a == 0.0 else None

    # ---- what happens

    def _at(self, time: float) -> np.ndarray:
        return np.ascontiguousarray(self.y if self.dense is None or time >= self.time else self.dense(time))

    def _gap(self, time: float, limit: Limit) -> float:
        return limit.side * (float(self._at(time)[self.engine.layout[limit.node, 0]]) - limit.place)

    def _push(self, time: float, limit: Limit) -> float:
        return limit.side * float(self._call(limit_force, time, self._at(time), limit.node))

    def _meet(self, time: float, limit: Limit) -> bool:
        """An impact; what comes slowly stays."""
        rate = limit.side * float(self.y[self.engine.layout[limit.node, 1]])
        self._note(time, limit.name)
        slow = -rate < self.engine.options.resting_speed
        before, self.y = self.y.copy(), np.ascontiguousarray(self.y)
        if rate < 0.0:
            self.strike(limit, 0.0 if slow else limit.restitution)
        self._again()
        if slow or limit.restitution == 0.0:
            self._hold(limit)
        self.moves.append(Move(time, limit, before, self.y.copy(), rate < 0.0, not slow, tuple(self.held.values())))
        return True

    def strike(self, limit: Limit, restitution: float) -> None:
        """The impact itself."""
        self._call(bounce, self.time, self.y, limit.node, limit.place, restitution)

    def _hold(self, limit: Limit) -> None:
        """Keep a direction at its end as long as that pushes."""
        self.tree["driven"][limit.node] = HELD
        self.engine.own.nodes["a"][limit.node] = 0.0
        y = self.y
        y[self.engine.layout[limit.node, 0]], y[self.engine.layout[limit.node, 1]] = limit.place, 0.0
        if self._push(self.time, limit) > 0.0:
            self.held[limit.node] = limit
        else:
            self.tree["driven"][limit.node] = 0

    def _leave(self, time: float, limit: Limit) -> bool:
        del self.held[limit.node]
        self.tree["driven"][limit.node] = 0
        self._again()
        self.moves.append(Move(time, limit, self.y.copy(), self.y.copy(), False, False, tuple(self.held.values())))
        return True

    def _finish(self, time: float, name: str) -> bool:
        self._note(time, name)
        self.engine.ended = self.log.events[-1]
        return False

    def _rest(self) -> None:
        """Hold what rests on an end at the start."""
        for limit in self.engine.limits:
            if abs(self._gap(self.time, limit)) < AT_END and abs(self.y[self.engine.layout[limit.node, 1]]) < AT_END:
                self._hold(limit)

    def _again(self) -> None:
        """The solver begins anew from here."""
        self.solver, self.dense, self.stride = None, None, None

    # ---- what is noted

    def moment(self, time: float) -> Moment:
        """The mechanism at a time of the last step."""
        self._call(arrive, time, self._at(time))
        knots = new_recording(1, *self.engine.sizes)
        write_knot(self.engine.flow(), self.engine.view(self.engine._new_state()), knots, 0)
        return Moment(self.engine, float(self.source.times(time / self.dt)), knots, self.coordinates)

    def _note(self, time: float, name: str) -> None:
        moment = self.moment(time)
        self.log.events.append(Noted(moment.time, name, moment.position, moment.orientation))
