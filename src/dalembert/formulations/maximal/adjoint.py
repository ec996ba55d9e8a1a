"""A backward pass in maximal coordinates: what both formulations share, from cotangents at knots to bars of numbers by name."""
from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dalembert.errors import GradientError
from dalembert.formulations.derivatives import Cotangents, InputBars, StartBars
from dalembert.formulations.engine import Inputs
from dalembert.formulations.maximal.bars import new_bars
from dalembert.formulations.maximal.force_cotangents import ForceCotangents
from dalembert.formulations.maximal.named_bars import named_bar
from dalembert.formulations.maximal.pull_forces_at_knots import ForceBars
from dalembert.formulations.maximal.pull_knot import pull_start_rates
from dalembert.formulations.maximal.recording import Recording
from dalembert.formulations.maximal.tape import Tape
from dalembert.mechanism.parameters import owners
from dalembert.model.functions import watched
from dalembert.model.pose import joint_rates


class KnotBars(NamedTuple):
    """Cotangents of states at knots, of the inputs they are read with, and of the rates of driven directions."""

    body: np.ndarray  # (N, n, numbers of a body's state)
    spin: np.ndarray  # (N, joints, 6)
    push: np.ndarray  # (N, n, 6)
    input: np.ndarray  # (N, joints, 6)
    target: np.ndarray  # (N, joints, 6)
    rate: np.ndarray  # (N, joints, 6)
    tension: np.ndarray  # (N, couplings)


class MaximalAdjoint:
    """A backward pass; formulations say how steps and readings are pulled back. ``width``: numbers of a body's state."""

    width: int

    def __init__(self, engine: Any, recording: Recording, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, cotangents: Cotangents) -> None:
        self.engine, self.model, self.mechanism = engine, engine.model, engine.mechanism
        self.recording, self.given, self.knots, self.dt, self.coordinates = recording, inputs, knots, dt, coordinates
        bodies, joints, couplings = engine.sizes
        self.cotangents = _filled(cotangents, knots, bodies, joints)
        self.reads = any(len(getattr(cotangents, name)) for name in ("velocity", "coordinate", "rate", "energy", "force"))
        self.forces = ForceCotangents(self, None, engine.drive_weight) if len(cotangents.force) else None
        self.pulled: ForceBars | None = None
        self.bars = new_bars(self.model)
        steps = knots - 1
        self.inputs = InputBars(np.zeros((steps, bodies, 6)), np.zeros((steps, joints, 6)), np.zeros((knots, joints, 6)), np.zeros((steps, couplings)))
        self.at_end = False
        #: (numbers of steps, bars (..., joints, 6)) of targets that were taken between knots
        self.inside: list[tuple[np.ndarray, np.ndarray]] = []
        self.owners = owners(engine.mechanism)

    @cached_property
    def prescribed(self) -> np.ndarray:
        """(2, N, joints, 6) rates and accelerations of driven directions, as readings take them."""
        return self.engine._reader(Recording(*(array[: self.knots] for array in self.recording)), self.given, self.dt, self.coordinates[0]).prescribed()

    def new_knots(self, count: int) -> KnotBars:
        """Zeros for some knots."""
        bodies, joints, couplings = self.engine.sizes
        return KnotBars(np.zeros((count, bodies, self.width)), *(np.zeros((count, *shape)) for shape in (
            (joints, 6), (bodies, 6), (joints, 6), (joints, 6), (joints, 6), (couplings,),
        )))

    def segment(self, tape: Tape, first: int, last: int) -> None:
        """Go back from knot ``last`` to knot ``first``; ``tape.steps`` count knots from ``first``."""
        count = last - first + (0 if self.at_end else 1)
        with watched(self.mechanism):
            self.pulled = self._pull_forces(tape, first, first + count) if self.forces is not None else None
            knots = self.read(first, first + count)
            if self.pulled is not None:
                for name in ("push", "input", "target", "rate", "tension"):
                    getattr(knots, name)[:count] += getattr(self.pulled, name)
            if not self.at_end:
                self.add_state(knots, count - 1)
                self.at_end = True
            self._take_knots(knots, first, count)
            entries = self.pull(tape, knots, first)
        self._take(tape.table(), first, *entries)

    def _take(self, steps: tuple[np.ndarray, np.ndarray, np.ndarray], first: int, push: np.ndarray, joint: np.ndarray, target: np.ndarray, tension: np.ndarray) -> None:
        """Add the bars of substeps' inputs (``steps``: their ``Tape.table``) to those of their steps; ``target`` (substeps, times, joints, 6) at ``nodes``."""
        knots, starts, lengths = steps
        at = first + knots
        add = _add_slice if len(at) == at[-1] - at[0] + 1 else _add_groups
        add(self.inputs.wrench, at, push)
        add(self.inputs.joint, at, joint)
        add(self.inputs.tension, at, tension)
        for node, bar in zip(self.nodes, np.moveaxis(target, 1, 0)) if np.any(target) else ():
            share = (starts + lengths * node)[:, None, None]
            between = (share[:, 0, 0] > 1e-12) & (share[:, 0, 0] < 1.0 - 1e-12)
            if np.any(between) and np.any(bar[between]):
                self.inside.append((at[between] + share[between, 0, 0], bar[between]))
            add(self.inputs.target, at, (1.0 - share) * bar)
            add(self.inputs.target, at + 1, share * bar)

    #: fractions of a substep at which its targets are taken
    nodes: tuple[float, ...] = (1.0,)

    def _take_knots(self, knots: KnotBars, first: int, count: int) -> None:
        """Add what readings have to say of inputs: those of the step that begins at a knot, the last one's at the end."""
        if not self.reads:
            return
        inner = min(count, self.knots - 1 - first)
        for table, bars in ((self.inputs.wrench, knots.push), (self.inputs.joint, knots.input), (self.inputs.tension, knots.tension)):
            table[first : first + inner] += bars[:inner]
            table[-1] += bars[inner:count].sum(axis=0)
        self.inputs.target[first : first + count] += knots.target[:count]
        if np.any(knots.rate):
            self._differences(first, knots.rate[:count], 0)
        if self.pulled is not None and np.any(self.pulled.acceleration):
            self._differences(first, self.pulled.acceleration, 1)

    def _differences(self, first: int, bars: np.ndarray, order: int) -> None:
        """Bars of rates (``order`` 0) or accelerations of driven directions, by the targets that they are differences of
        (``Reader.prescribed``), where no function of time says better what they are.
        """
        if len(self.given.stage) >= self.knots:
            bars = np.where(np.isnan(self.given.stage[first : first + len(bars), order]), bars, 0.0)
        if np.any(self.ball & np.any(bars, axis=0)):
            raise GradientError("velocities of a motion-driven free rotation cannot be differentiated by its target yet: use positions and orientations")
        weights = rate_weights if order == 0 else acceleration_weights
        for i, bar in enumerate(bars):
            for knot, weight in weights(first + i, self.knots, self.dt).items():
                self.inputs.target[knot] += weight * bar

    # ---- forces

    def weigh_forces(self, weights: Any, drive_weight: float | None) -> None:
        """The norm in which forces of redundant rows are least, before any segment."""
        if self.forces is not None:
            self.forces = ForceCotangents(self, weights, self.engine.drive_weight if drive_weight is None else drive_weight)

    def _pull_forces(self, tape: Tape, first: int, last: int) -> ForceBars:
        """Cotangents of forces at some knots as those of what they were read from."""
        assert self.forces is not None
        self.check_forces()
        known = self.recorded_forces(first, last)
        knots = np.arange(first, last)
        held = (knots == 0) | (self.knots == 2)
        return self.forces.pull(first, last, known, held, np.ascontiguousarray(self.damped(tape, first, last, known)))

    def check_forces(self) -> None:
        """Raise GradientError for forces that have no derivative."""
        if self.engine.exact and self.knots == 2 and np.any(self.model.joints["driven"]) and len(self.given.stage) == 0:
            raise GradientError("forces of a single step with prescribed motion cannot be differentiated: run more steps")

    def recorded_forces(self, first: int, last: int) -> np.ndarray:
        """(knots,) whether the forces at a knot are those that a step recorded."""
        return np.zeros(last - first, dtype=bool)

    def damped(self, tape: Tape, first: int, last: int, known: np.ndarray) -> np.ndarray:
        """(knots, n, 6) velocities that dampers see at knots."""
        assert self.forces is not None
        return self.forces.reading["velocity"][first:last]

    def inputs_at(self, first: int, last: int) -> Inputs:
        """The inputs that some knots are read with: those of the steps that begin there, the last one's at the end."""
        given = self.given
        at = np.minimum(np.arange(first, last), max(len(given.wrench), len(given.joint), len(given.tension), 1) - 1)
        return given._replace(
            wrench=given.wrench[at] if len(given.wrench) else given.wrench, joint=given.joint[at] if len(given.joint) else given.joint,
            target=given.target[first:last], tension=given.tension[at] if len(given.tension) else given.tension,
        )

    @property
    def ball(self) -> np.ndarray:
        from dalembert.model.records import BALL

        return (self.model.joints["driven"] != 0) & (self.model.joints["free_kind"] == BALL)

    def add_seen(self, knot: int, cotangents: Cotangents, inputs: Inputs, rates: np.ndarray) -> KnotBars:
        """Add what a controller saw at the knot that the pass has got to, weighted, to the cotangent of the state there; returns all bars.

        ``inputs``: those of the step before, which it was read with; ``rates`` (joints, 6): of driven directions, NaN for their own.
        """
        with watched(self.mechanism):
            knots = self.read_seen(knot, cotangents, inputs, rates)
        self.add_state(knots, 0)
        unknown = np.isnan(rates) & (self.model.joints["driven"] != 0)
        if np.any(np.abs(knots.rate[0][unknown]) > 1e-9 * max(1.0, float(np.abs(cotangents.velocity).max(initial=0.0)))):
            raise GradientError(
                f"the controller of {self.mechanism.name!r} reads velocities that depend on how fast its own targets move, which cannot be differentiated: "
                "let targets be functions of time, or let it read coordinates"
            )
        self.inputs.target[knot] += knots.target[0]
        if knot > 0:
            self.inputs.wrench[knot - 1] += knots.push[0]
            self.inputs.joint[knot - 1] += knots.input[0]
            self.inputs.tension[knot - 1] += knots.tension[0]
        return knots

    def read_seen(self, knot: int, cotangents: Cotangents, inputs: Inputs, rates: np.ndarray) -> KnotBars:
        """Cotangents of the state at a knot from those of what a controller saw there."""
        raise NotImplementedError

    def part(self, first: int, last: int) -> Cotangents:
        """The cotangents at some knots, those of forces as those of poses and velocities."""
        part = Cotangents(*(np.ascontiguousarray(array[first:last]) for array in self.cotangents))
        if self.pulled is None:
            return part
        return part._replace(
            position=part.position + self.pulled.pose[..., :3], orientation=part.orientation + self.pulled.pose[..., 3:],
            velocity=part.velocity + self.pulled.velocity,
        )

    # ---- what formulations say

    def read(self, first: int, last: int) -> KnotBars:
        """Cotangents of states at knots ``first`` to ``last - 1`` from what is read there."""
        raise NotImplementedError

    def pull(self, tape: Tape, knots: KnotBars, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Pull the state's cotangent back over a tape. Returns, per substep, bars of wrenches, joint inputs, targets (times), tensions."""
        raise NotImplementedError

    def add_state(self, knots: KnotBars, index: int) -> None:
        """Add the cotangents at a knot to that of the state."""
        bodies = self.bars.bodies["after"][:-1]
        bodies[:, : self.width] += knots.body[index]
        self.bars.joints["after"] += knots.spin[index]

    # ---- the state's own cotangent

    @property
    def state_size(self) -> int:
        """Numbers of the tangent of a state."""
        bodies, joints, _ = self.engine.sizes
        return bodies * self.width + 6 * joints

    def put_state(self, bar: np.ndarray) -> None:
        """Begin with a cotangent of the state at the end."""
        bodies = self.engine.sizes[0] * self.width
        self.bars.bodies["after"][:-1, : self.width] = bar[:bodies].reshape(-1, self.width)
        self.bars.joints["after"] = bar[bodies:].reshape(-1, 6)

    def take_state(self) -> np.ndarray:
        """The cotangent of the state where the pass has got to."""
        return np.concatenate([self.bars.bodies["after"][:-1, : self.width].ravel(), self.bars.joints["after"].ravel()])

    # ---- the start and numbers by name

    def start_rates(self, velocity: np.ndarray) -> np.ndarray:
        """(joints, 6) along the free directions at the first knot, with the reading work placed there."""
        rates = np.zeros((self.engine.sizes[1], 6))
        joint_rates(self.model, self.placed().work, np.concatenate([velocity, np.zeros((1, 6))]), rates)
        return rates

    def placed(self) -> Any:
        """The mechanism at the first knot."""
        return self.engine._place(self.recording.position[0], self.recording.orientation[0], self.coordinates[0])

    def start(self) -> StartBars:
        raise NotImplementedError

    def momentum_start(self) -> StartBars:
        """Where momenta are the state: momenta and spins of the start are those of its velocities."""
        fixed, bars = self.model.bodies[:-1], self.bars.bodies[:-1]
        momentum = self.recording.momentum[0]
        velocity = np.concatenate([
            momentum[:, :3] / fixed["mass"][:, None], np.einsum("nij,nj->ni", fixed["inertia_inverse"].reshape(-1, 3, 3), momentum[:, 3:]),
        ], axis=1)
        after = bars["after"]
        bars["mass"] += np.einsum("ni,ni->n", after[:, 6:9], velocity[:, :3])
        bars["inertia"] += np.einsum("ni,nj->nij", after[:, 9:12], velocity[:, 3:]).reshape(-1, 9)
        bars["u"], bars["du"] = velocity, 0.0
        bars["x"], bars["phi"] = after[:, :3], after[:, 3:6]
        work = self.placed().work
        pull_start_rates(self.model, work, self.bars, self.start_rates(velocity), False)
        turned = np.einsum("nij,nj->ni", fixed["inertia"].reshape(-1, 3, 3), after[:, 9:12])
        moving = np.concatenate([fixed["mass"][:, None] * after[:, 6:9], turned], axis=1) + bars["du"]
        return StartBars(np.concatenate([bars["x"], bars["phi"]], axis=1), moving)

    def parameter(self, name: str) -> np.ndarray | None:
        """Cotangent of a number by name."""
        return named_bar(self.mechanism, self.model, self.bars, name, self.owners)


def _add_slice(target: np.ndarray, at: np.ndarray, values: np.ndarray) -> None:
    """``np.add.at`` for consecutive indices."""
    target[at[0] : at[-1] + 1] += values


def _add_groups(target: np.ndarray, at: np.ndarray, values: np.ndarray) -> None:
    """``np.add.at`` for indices that do not fall."""
    starts = np.flatnonzero(np.diff(at, prepend=at[0] - 1))
    target[at[starts]] += np.add.reduceat(values, starts)


def rate_weights(knot: int, knots: int, dt: float) -> dict[int, float]:
    """Which targets the rate of a driven direction at a knot is made of: central differences, carried on to the ends."""
    if knots == 2:
        return {0: -1.0 / dt, 1: 1.0 / dt}

    def inner(k: int) -> dict[int, float]:
        return {k - 1: -0.5 / dt, k + 1: 0.5 / dt}

    if 0 < knot < knots - 1:
        return inner(knot)
    if knots == 3:
        return inner(1)
    one, two = (1, 2) if knot == 0 else (knots - 2, knots - 3)
    found: dict[int, float] = {}
    for k, factor in ((one, 2.0), (two, -1.0)):
        for target, weight in inner(k).items():
            found[target] = found.get(target, 0.0) + factor * weight
    return found


def acceleration_weights(knot: int, knots: int, dt: float) -> dict[int, float]:
    """The same of its acceleration: second differences, carried on to the ends; two knots tell nothing."""
    if knots == 2:
        return {}

    def inner(k: int) -> dict[int, float]:
        return {k - 1: 1.0 / dt**2, k: -2.0 / dt**2, k + 1: 1.0 / dt**2}

    if 0 < knot < knots - 1:
        return inner(knot)
    if knots == 3:
        return inner(1)
    one, two = (1, 2) if knot == 0 else (knots - 2, knots - 3)
    found: dict[int, float] = {}
    for k, factor in ((one, 2.0), (two, -1.0)):
        for target, weight in inner(k).items():
            found[target] = found.get(target, 0.0) + factor * weight
    return found


def _filled(cotangents: Cotangents, knots: int, bodies: int, joints: int) -> Cotangents:
    """Zeros, which take no room, for the kinds of which there are none."""
    shapes = Cotangents((bodies, 3), (bodies, 3), (bodies, 6), (joints, 6), (joints, 6), (2,), (joints, 6))  # type: ignore[arg-type]
    return Cotangents(*(np.ascontiguousarray(given) if len(given) else np.broadcast_to(0.0, (knots, *shape)) for given, shape in zip(cotangents, shapes)))
