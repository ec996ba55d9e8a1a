"""Derivatives of runs by SciPy's methods: those of the continuous motion, from knot to knot and from impact to impact.

What such a method does depends on what it meets, and its solution on its tolerances. So it is the motion that is differentiated, not the method: from a
state beside one of the run, a piece between knots and impacts is integrated to rounding, for differences of sixth order. An impact moves in time: with
B what it does to a state y, f its rate of change before and after it, and the gap and its rate as they were, a neighbour y goes to
B(y + t f_before) - t f_after, t = -gap(y) / rate, whose derivative is the saltation matrix. So gradients are those of the run to the run's own tolerance.
"""
from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dalembert.formulations.derivatives import InputBars
from dalembert.formulations.engine import Inputs, Samples, Source
from dalembert.formulations.maximal.recording import new_recording
from dalembert.formulations.maximal.tape import Step
from dalembert.formulations.reduced.explicit import FLOW_STATE, FlowState
from dalembert.formulations.reduced.maps import OWN_STATE
from dalembert.formulations.reduced.stepwise import COMMON, Change, FlowSteps, Snapshot, filled, state_of
from dalembert.formulations.reduced.stepwise_derivative import StepwiseAdjoint, StepwiseForward
from dalembert.model.records import Model
from dalembert.model.tree import HELD, POINT, Tree

if TYPE_CHECKING:
    from dalembert.formulations.reduced.adaptive_engine import AdaptiveEngine, Limit, Move, Path

#: the method of pieces beside those of a run, and its tolerances
METHOD, RTOL, ATOL = "DOP853", 1e-13, 1e-15
#: fractions of a piece between which changes of targets are interpolated (Chebyshev)
MOMENTS = tuple(float(share) for share in 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, 6)))
#: numbers of limits, which no equation of a motion between impacts has
BOUNDS = ("lower", "upper", "restitution")


class AdaptiveBuilt(NamedTuple):
    """A mechanism as the kernels of joint coordinates take it, with the ends of its joints."""

    model: Model
    tree: Tree
    limits: list[Limit]


class Piece(NamedTuple):
    """A part of an interval: where its inputs come from, which step of these it is part of, from which fraction of that on and for how long (fractions),
    which ends (numbers in the list of these) are rested on in it, and after it.
    """

    source: Any
    step: int
    start: float
    length: float
    held: tuple[int, ...]
    after: tuple[int, ...]
    #: the end that is struck, in an impact, which takes no time; and whether it bounces
    struck: int = -1
    bounces: bool = False


def keep_interval(
    engine: AdaptiveEngine, tape: Any, before: np.ndarray, after: np.ndarray, source: Source, step: int, dt: float, held: Sequence[Limit], moves: Sequence[Move],
) -> None:
    """Write an interval into a tape, in pieces where something happened in it; ``held``: ends that are rested on at its beginning."""
    begun = engine.view(before.copy())
    nodes, joints, start = begun.nodes.copy(), begun.joints.copy(), 0.0

    def number(limits: Sequence[Limit]) -> tuple[int, ...]:
        return tuple(engine.limits.index(limit) for limit in limits)

    def keep(piece: Piece, end: np.ndarray) -> np.ndarray:
        tape.keep(FlowState(nodes, joints, begun.clock), piece, dt)
        tape.arrays.end[tape.count] = end
        tape.count += 1
        tape.steps.append(Step(step, piece.start, piece.length))
        return end

    for move in moves:
        time = min(max(move.time / dt - step, start), 1.0)
        nodes = keep(Piece(source, step, start, time - start, number(held), number(held)), nodes_of(engine, move.before))
        if move.hits:
            struck = Piece(source, step, time, 0.0, number(held), number(move.held), engine.limits.index(move.limit), move.bounces)
            nodes = keep(struck, nodes_of(engine, move.after))
        start, held = time, move.held
    keep(Piece(source, step, start, 1.0 - start, number(held), number(held)), engine.view(after).nodes.copy())


def nodes_of(engine: AdaptiveEngine, y: np.ndarray) -> np.ndarray:
    """The nodes of a solver's vector."""
    found = np.zeros(len(engine.tree.nodes), FLOW_STATE)
    found["turn"][:, 0] = 1.0
    for node, state, (first, rate) in zip(engine.tree.nodes, found, engine.layout):
        count = int(node["count"])
        if node["kind"] == POINT:
            state["turn"] = y[first : first + 4] / np.linalg.norm(y[first : first + 4])
        else:
            state["q"][:count] = y[first : first + count]
        state["v"][:count] = y[rate : rate + count]
    return found


class Beside:
    """The inputs of one piece, as if it were a step, moved along a change."""

    end = 1

    def __init__(self, piece: Piece, sizes: tuple[int, int, int], offset: float, change: Change | None) -> None:
        self.piece, self.sizes, self.offset, self.change = piece, sizes, offset, change

    def times(self, steps: Any) -> Any:
        return self.piece.source.times(self.piece.step + self.piece.start + self.piece.length * steps)

    def window(self, first: int, count: int) -> Inputs:
        return self.piece.source.window(self.piece.step + first, count)

    def part(self, step: int, start: float, length: float) -> Inputs:
        return self.piece.source.part(self.piece.step + step, start, length)

    def samples(self, first: int, count: int, fractions: Sequence[float]) -> Samples:
        piece, (bodies, joints, couplings), change = self.piece, self.sizes, self.change
        samples = piece.source.samples(piece.step, 1, [piece.start + piece.length * fraction for fraction in fractions])
        # all of them, zeros too: nothing of another piece's stays in the work
        rows = max(samples.per, 1)
        wrench, joint = filled(samples.wrench, rows, (bodies, 6)), filled(samples.joint, rows, (joints, 6))
        tension, motion = filled(samples.tension, rows, (couplings,)), samples.motion.copy()
        if change is not None:
            wrench, joint, tension = wrench + self.offset * change.push, joint + self.offset * change.force, tension + self.offset * change.tension
            if len(motion):
                motion[0] += self.offset * np.einsum("fm,m...->f...", interpolation(np.asarray(fractions)), change.aims)
        return Samples(wrench, joint, tension, motion, samples.per)


def interpolation(fractions: np.ndarray) -> np.ndarray:
    """(fractions, moments): weights of the values at ``MOMENTS`` in the polynomial through these."""
    nodes = np.array(MOMENTS)
    others = ~np.eye(len(nodes), dtype=bool)
    return np.array([[np.prod((f - nodes[o]) / (node - nodes[o])) for node, o in zip(nodes, others)] for f in fractions])


class AdaptiveSteps(FlowSteps):
    """Pieces of the continuous motion."""

    def __init__(self, engine: AdaptiveEngine) -> None:
        super().__init__(engine)
        driven = engine.tree.nodes["driven"]
        driven[driven == HELD] = 0  # as the run left it
        self.base: Any = AdaptiveBuilt(engine.model, engine.tree, engine.limits)
        #: engines of other mechanisms by model, which are kept with them
        self.twins: dict[int, tuple[Any, Model]] = {}
        #: rates of change before and after impacts, and the gap's, by tape and entry
        self.slopes: dict[tuple[int, int], tuple[np.ndarray, np.ndarray, float]] = {}

    @property
    def moments(self) -> tuple[float, ...]:
        return MOMENTS

    def twin(self, here: AdaptiveBuilt) -> Any:
        """An engine of another mechanism that watches no ends."""
        if id(here.model) not in self.twins:
            engine = copy(self.engine)
            tree = here.tree._replace(nodes=here.tree.nodes.copy())
            engine.model, engine.tree, engine.own, engine.limits = here.model, tree, engine.new_scratch(tree.nodes, here.model), []
            engine.tape, engine._views, engine._entries = None, (None, None), {}
            self.twins[id(here.model)] = engine, here.model
        return self.twins[id(here.model)][0]

    def make(self, tape: Any, entry: int, state: Snapshot, offset: float, change: Change | None, here: Any) -> Snapshot | None:
        engine, piece = self.twin(here), tape.samples[entry]
        slopes = self._slopes(tape, entry) if piece.struck >= 0 else None
        numbers, path = self._path(tape, entry, state, offset, change, here)
        if slopes is None:
            if not carry(path, path.dt):
                return None
        else:
            before, after, rate = slopes
            limit = here.limits[piece.struck]
            later = (limit.place - path.y[engine.layout[limit.node, 0]]) / rate
            path.y = path.y + later * before
            strike(path, here, piece)
            path.y, path.time = path.y - later * after, path.dt
        if not path.to_knot(numbers, 1):
            return None
        nodes = engine.view(numbers).nodes.copy()
        return self.in_own_axes(Snapshot(state_of(nodes), np.zeros(0, OWN_STATE)), here)

    def _path(self, tape: Any, entry: int, state: Snapshot, offset: float, change: Change | None, here: AdaptiveBuilt) -> tuple[np.ndarray, Path]:
        """A way that begins at a state, with the ends that are rested on in a piece."""
        from dalembert.formulations.reduced.adaptive_engine import Path, RunLog

        engine, piece = self.twin(here), tape.samples[entry]
        numbers = engine._new_state()
        begun: FlowState = engine.view(numbers)
        for name in COMMON:
            begun.nodes[name] = state.nodes[name]
        begun.joints[:] = tape.arrays.joints[entry]
        log, source = RunLog(new_recording(2, *engine.sizes)), Beside(piece, engine.sizes, offset, change)
        path = Path(engine, numbers, source, 0, (piece.length or 1.0) * tape.dt, log, alone=True)
        for index in piece.held:
            rest(path, here.limits[index])
        return numbers, path

    def _slopes(self, tape: Any, entry: int) -> tuple[np.ndarray, np.ndarray, float]:
        key = id(tape), entry
        if key not in self.slopes:
            piece, base = tape.samples[entry], self.base
            _, path = self._path(tape, entry, self.before(tape, entry), 0.0, None, base)
            before, limit = path.change(0.0, path.y), base.limits[piece.struck]
            rate = float(path.y[path.engine.layout[limit.node, 1]])
            strike(path, base, piece)
            self.slopes[key] = before, path.change(0.0, path.y), rate
        return self.slopes[key]


def rest(path: Path, limit: Limit) -> None:
    """Keep a direction at its end."""
    at, along = path.engine.layout[limit.node]
    path.tree["driven"][limit.node] = HELD
    path.engine.own.nodes["a"][limit.node] = 0.0
    path.y[at], path.y[along] = limit.place, 0.0


def strike(path: Path, here: AdaptiveBuilt, piece: Piece) -> None:
    """An impact, after which some directions rest at their ends."""
    limit = here.limits[piece.struck]
    path.y = np.ascontiguousarray(path.y)
    path.strike(limit, limit.restitution if piece.bounces else 0.0)
    for index in piece.after:
        rest(path, here.limits[index])


def carry(path: Path, time: float) -> bool:
    """Integrate to a time; False when that fails."""
    from scipy.integrate import solve_ivp

    if time > path.time:
        found = solve_ivp(path.change, (path.time, time), path.y, method=METHOD, rtol=RTOL, atol=ATOL)
        if not found.success or not np.all(np.isfinite(found.y[:, -1])):
            return False
        path.time, path.y = time, np.ascontiguousarray(found.y[:, -1])
    return True


class AdaptiveAdjoint(StepwiseAdjoint):
    """A backward pass, by ends of joints and their restitution too."""

    def unread(self, name: str) -> bool:
        return name.rpartition(".")[2] in BOUNDS


class AdaptiveForward(StepwiseForward):
    """``models`` are ``AdaptiveBuilt``."""

    def __init__(
        self, steps: AdaptiveSteps, engine: Any, recording: Any, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, models: Sequence[Any],
        step: float, change: InputBars,
    ) -> None:
        self.beside = {id(one.model): one for one in models}
        super().__init__(steps, engine, recording, inputs, knots, dt, coordinates, models, step, change)

    def built(self, model: Model) -> Any:
        return self.beside.get(id(model), self.steps.base)
