"""Backward and forward passes over a run whose steps are differentiated as a whole, by differences of sixth order.

What is read at knots is pulled back exactly, as everywhere. A backward pass makes some steps per number of the state, of the driven directions and,
when these are asked for, of wrenches and of the mechanism's numbers.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dalembert.errors import GradientError
from dalembert.formulations.beside import mechanisms_beside
from dalembert.formulations.derivatives import InputBars, StartBars
from dalembert.formulations.maximal.adjoint import KnotBars
from dalembert.formulations.maximal.forward import OFFSETS, STEP, check_finite
from dalembert.formulations.maximal.tape import Step
from dalembert.formulations.reduced.derivative import ReducedAdjoint
from dalembert.formulations.reduced.sensitivities import Built, ReducedForward, Tangent
from dalembert.formulations.reduced.state import Scratch
from dalembert.formulations.reduced.stepwise import Change, Snapshot, Steps
from dalembert.mechanism.parameters import list_parameters, with_parameters
from dalembert.model.tree import FOLLOWER

#: of a step of rates, forces and tensions, beside that of coordinates
RATES, FORCES = 10.0, 100.0
#: numbers that must not be negative: where they are zero, differences of sixth order go to one side, by steps of so many units
POSITIVE, AWAY = ("stiffness", "damping", "linear", "angular", "tangential"), 0.05
ONE_SIDED = (-49.0 / 20.0, 6.0, -7.5, 20.0 / 3.0, -3.75, 1.2, -1.0 / 6.0)


class Made(NamedTuple):
    """A step that a pass went back over: its tape and entry there, the states at both ends, and the bars at the later one."""

    tape: Any
    entry: int
    knot: int
    before: Snapshot
    after: Snapshot
    nodes: np.ndarray
    maps: np.ndarray


class LateBars:
    """``InputBars`` whose wrenches are found when they are asked for: there are many, and they are asked for rarely."""

    def __init__(self, owner: StepwiseAdjoint, bars: InputBars) -> None:
        self.owner, self._wrench = owner, bars.wrench
        self.joint, self.target, self.tension = bars.joint, bars.target, bars.tension

    @property
    def wrench(self) -> np.ndarray:
        self.owner.pull_wrenches()
        return self._wrench


class StepwiseAdjoint(ReducedAdjoint):
    """The state is coordinates and rates of nodes, and of numbers of coordinate maps."""

    def __init__(self, steps: Steps, *arguments: Any) -> None:
        self.steps = steps
        super().__init__(*arguments)
        self.map_bars = np.zeros((len(steps.knots), 2, len(steps.engine.own.maps.own) if hasattr(steps.engine.own, "maps") else 0))
        #: numbers of the state that steps depend on: (knots, 2, nodes, 3)
        nodes = self.engine.tree.nodes
        free = (np.arange(3) < nodes["count"][:, None]) & (nodes["driven"] != FOLLOWER)[:, None]
        self.free = np.broadcast_to(free, (len(steps.knots), 2, len(nodes), 3))
        self.made: list[Made] = []
        self.inputs: Any = LateBars(self, self.inputs)
        #: steps whose wrenches were pulled back, once these are asked for
        self.wrenched, self.asked = 0, False
        #: (step, fraction of it, order, bars (joints, 6)) of rates and accelerations of targets
        self.moving: list[tuple[int, float, int, np.ndarray]] = []
        self.nodes = steps.moments
        joints = self.engine.model.joints
        self.aimed = np.argwhere((joints["driven"] != 0) | (joints["follows"] != 0))
        self.forced = np.array(
            [(j.index, i) for j in self.mechanism.joints for i, drive in enumerate(j.type.drive) if drive == "force"], dtype=int,
        ).reshape(-1, 2)

    @property
    def own(self) -> Scratch:
        return getattr(self.engine, "placing", None) or self.engine.own

    def _states(self, knots: np.ndarray) -> np.ndarray:
        tape = self.tape
        starts = [entry for entry, step in enumerate(tape.steps) if step.start == 0.0]
        return np.array([
            self.steps.before(tape, starts[knot]).nodes if knot < len(starts) else self.steps.after(tape, tape.count - 1).nodes for knot in knots
        ])

    # ---- bars of the state

    def _bars(self) -> tuple[np.ndarray, np.ndarray]:
        """Those of nodes (knots, 2, nodes, 3) and of maps."""
        nodes = np.stack([self.node_bars[part].reshape(-1, 2, 3).swapaxes(0, 1) for part in ("after", "older")[: len(self.steps.knots)]])
        return nodes, self.map_bars.copy()

    def _put_bars(self, nodes: np.ndarray, maps: np.ndarray) -> None:
        for part, bar in zip(("after", "older"), nodes):
            self.node_bars[part] = bar.swapaxes(0, 1).reshape(-1, 6)
        self.map_bars[:] = maps

    def add_state(self, knots: KnotBars, index: int) -> None:
        super().add_state(knots, index)
        self._fold(self.steps.before(self.tape, 0) if self.at_end else self.steps.after(self.tape, self.tape.count - 1))

    def _fold(self, state: Snapshot) -> None:
        """Bars of nodes that follow maps become those of the maps' numbers: q = phi(y), q' = Phi y'."""
        for places, nodes, slopes, turning in self._followers(state):
            q, v = self.node_bars["after"][nodes, 0], self.node_bars["after"][nodes, 3]
            self.map_bars[0, 0, places] += slopes.T @ q + turning.T @ v
            self.map_bars[0, 1, places] += slopes.T @ v
            self.node_bars["after"][nodes] = 0.0

    def _followers(self, state: Snapshot) -> Any:
        """Of every map: where its numbers are, its nodes, slopes (nodes, numbers) and how rates of the nodes change with the numbers."""
        if not len(state.maps):
            return
        for record, element in zip(self.engine.maps.maps, self.mechanism.maps):
            places = slice(int(record["first"]), int(record["first"] + record["count"]))
            nodes = self.engine.maps.nodes[record["first_entry"] : record["first_entry"] + record["entries"]]
            y, v = state.maps["y"][places], state.maps["v"][places]
            yield places, nodes, element.slopes(y), np.einsum("ikl,l->ik", element.curvatures(y), v)

    @property
    def state_size(self) -> int:
        return super().state_size + self.map_bars[: len(self._parts)].size

    def put_state(self, bar: np.ndarray) -> None:
        count = super().state_size
        super().put_state(bar[:count])
        self.map_bars[: len(self._parts)] = bar[count:].reshape(self.map_bars[: len(self._parts)].shape)

    def take_state(self) -> np.ndarray:
        return np.concatenate([super().take_state(), self.map_bars[: len(self._parts)].ravel()])

    # ---- steps

    def pull(self, tape: Any, knots: KnotBars, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        (bodies, joints, couplings), count = self.engine.sizes, tape.count
        forces, tensions = np.zeros((count, joints, 6)), np.zeros((count, couplings))
        targets = np.zeros((count, len(self.nodes), joints, 6))
        for entry in reversed(range(count)):
            covered = tape.steps[entry]
            made = Made(tape, entry, first + covered.knot, self.steps.before(tape, entry), self.steps.after(tape, entry), *self._bars())
            self.made.append(made)
            self._pull_state(made)
            for joint, direction in self.forced:
                forces[entry, joint, direction] = self._along(made, self._input("force", (joint, direction)), FORCES)
            for index in range(couplings):
                tensions[entry, index] = self._along(made, self._input("tension", (index,)), FORCES)
            self._pull_targets(made, targets[entry], covered)
            if covered.start == 0.0:
                self.node_bars["after"] += knots.body[covered.knot]
                self._fold(made.before)
        if self.asked:
            self.pull_wrenches()
        return np.zeros((count, bodies, 6)), forces, targets, tensions

    def _weighed(self, made: Made, offset: float, nodes: np.ndarray | None, maps: np.ndarray | None, change: Change | None, here: Built) -> float:
        """The state after a step beside one, weighed with its bars."""
        steps = self.steps
        zero = np.zeros_like(made.nodes) if nodes is None else nodes
        begun = steps.moved(made.before, offset, zero, np.zeros_like(made.maps) if maps is None else maps, here)
        ended = steps.make(made.tape, made.entry, begun, offset, change, here)
        if ended is None or not np.array_equal(ended.nodes["chart"], made.after.nodes["chart"]):
            raise GradientError(f"the step at knot {made.knot} of {self.mechanism.name!r} has no neighbours to be differentiated with")
        by_node, by_map = steps.flat(ended, made.after)
        return float(np.sum(made.nodes * by_node) + np.sum(made.maps * by_map))

    def _pull_state(self, made: Made) -> None:
        nodes, maps = np.zeros_like(made.nodes), np.zeros_like(made.maps)
        for place in np.argwhere(self.free):
            unit = np.zeros_like(nodes)
            unit[tuple(place)] = 1.0
            nodes[tuple(place)] = self._difference(lambda h, unit=unit: self._weighed(made, h, unit, None, None, self.steps.base), STEP * (RATES if place[1] else 1.0))
        for place in np.ndindex(maps.shape):
            unit = np.zeros_like(maps)
            unit[place] = 1.0
            maps[place] = self._difference(lambda h, unit=unit: self._weighed(made, h, None, unit, None, self.steps.base), STEP * (RATES if place[1] else 1.0))
        self._put_bars(nodes, maps)

    def _difference(self, function: Callable[[float], float], step: float) -> float:
        return sum(weight / step * function(offset * step) for offset, weight in OFFSETS)

    def _along(self, made: Made, change: Change, size: float) -> float:
        return self._difference(lambda h: self._weighed(made, h, None, None, change, self.steps.base), STEP * size)

    def _input(self, name: str, place: tuple[int, ...]) -> Change:
        bodies, joints, couplings = self.engine.sizes
        change = Change(np.zeros((bodies, 6)), np.zeros((joints, 6)), np.zeros(couplings), np.zeros((len(self.nodes), 3, joints, 6)))
        getattr(change, name)[tuple(place)] = 1.0
        return change

    def _pull_targets(self, made: Made, targets: np.ndarray, covered: Step) -> None:
        """Bars of targets at the moments of a step; those of rates are bars of the targets at the knots, and with those of accelerations kept for tables."""
        exact = self.engine.exact_motion
        for joint, direction in self.aimed:
            for moment, share in enumerate(self.nodes):
                targets[moment, joint, direction] = self._along(made, self._input("aims", (moment, 0, joint, direction)), 1.0)
                for order in (1, 2) if exact else ():
                    bar = self._along(made, self._input("aims", (moment, order, joint, direction)), RATES**order)
                    whole = np.zeros_like(targets[0])
                    whole[joint, direction] = bar
                    self.moving.append((made.knot, covered.start + covered.length * share, order, whole))
                    if order == 1:
                        self.inputs.target[made.knot + 1, joint, direction] += bar / self.dt
                        self.inputs.target[made.knot, joint, direction] -= bar / self.dt

    def pull_wrenches(self) -> None:
        """Bars of wrenches of the steps that were not yet asked."""
        pending, self.wrenched, self.asked = self.made[self.wrenched :], len(self.made), True
        for made in pending:
            for place in np.ndindex(self.engine.sizes[0], 6):
                self.inputs._wrench[made.knot][place] += self._along(made, self._input("push", place), FORCES)

    # ---- numbers of the mechanism

    def parameter(self, name: str) -> np.ndarray | None:
        read = super().parameter(name)
        if read is None:
            if not self.unread(name):
                return None
            read = np.zeros(np.shape(list_parameters(self.mechanism, shifts=True)[name].value))
        value = np.asarray(list_parameters(self.mechanism, shifts=True)[name].value, dtype=float)
        found = np.zeros(value.shape)
        for place in np.ndindex(value.shape):
            unit = np.zeros(value.shape)
            unit[place] = 1.0
            if name.endswith(".inertia"):
                unit = 0.5 * (unit + unit.T)
            found[place] = self._by_number(name, unit)
        return read + found

    def unread(self, name: str) -> bool:
        """Whether steps depend on a number that no reading knows."""
        return False

    def _by_number(self, name: str, unit: np.ndarray) -> float:
        value = np.asarray(list_parameters(self.mechanism, shifts=True)[name].value, dtype=float)
        if name.rpartition(".")[2] in POSITIVE and not np.any(value[unit != 0.0]):
            beside = [self.engine.model_of(with_parameters(self.mechanism, {name: value + k * AWAY * unit})) for k in range(len(ONE_SIDED))]
            return sum(weight / AWAY * self._weighed(made, 0.0, None, None, None, model) for weight, model in zip(ONE_SIDED, beside) for made in self.made)
        models, step = mechanisms_beside(self.mechanism, {name: unit}, self.engine.model_of, getattr(self.engine, "reach_beside", (1.0, 1.0)))
        return sum(
            weight / step * self._weighed(made, 0.0, None, None, None, model) for (_, weight), model in zip(OFFSETS, models) for made in self.made
        )

    # ---- the start

    def start(self) -> StartBars:
        """Numbers of maps are those that put their nodes nearest to where they are, by least squares."""
        if self.made:
            for places, nodes, slopes, turning in self._followers(self.made[-1].before):
                back = np.linalg.pinv(slopes).T
                v = back @ self.map_bars[:, 1, places].sum(axis=0)
                self.node_bars["after"][nodes, 3] += v
                self.node_bars["after"][nodes, 0] += back @ (self.map_bars[:, 0, places].sum(axis=0) - turning.T @ v)
        return super().start()


class StepwiseForward(ReducedForward):
    """Steps are differenced as they are."""

    def __init__(self, steps: Steps, *arguments: Any) -> None:
        self.steps = steps
        super().__init__(*arguments)

    @property
    def own(self) -> Scratch:
        return getattr(self.engine, "placing", None) or self.engine.own

    def fresh(self) -> Any:
        return self.engine.whole_state()

    def begin(self, pose: np.ndarray, velocity: np.ndarray, target: np.ndarray) -> None:
        self.maps = None
        super().begin(pose, velocity, target)

    def _begin_maps(self, state: Snapshot) -> np.ndarray:
        """Tangents (knots, 2, maps) of the numbers of maps at the start, from those of their nodes."""
        found = np.zeros((len(self.steps.knots), 2, len(state.maps)))
        for record, element in zip(self.engine.maps.maps, self.mechanism.maps) if len(state.maps) else ():
            places = slice(int(record["first"]), int(record["first"] + record["count"]))
            nodes = self.engine.maps.nodes[record["first_entry"] : record["first_entry"] + record["entries"]]
            y, v = state.maps["y"][places], state.maps["v"][places]
            back = np.linalg.pinv(element.slopes(y))
            found[:, 0, places] = back @ self.state.q[nodes, 0]
            found[:, 1, places] = back @ (self.state.v[nodes, 0] - np.einsum("ikl,k,l->i", element.curvatures(y), found[0, 0, places], v))
        return found

    def advance(self, tape: Any, index: int, step: Any, knot: int) -> None:
        steps = self.steps
        begun, reference = steps.before(tape, index), steps.after(tape, index)
        if self.maps is None:
            self.maps = self._begin_maps(begun)
        change = self._change(knot, step)
        nodes = np.stack([np.stack([part.q, part.v]) for part in (self.state, self.older)][: len(steps.knots)])
        maps = self.maps

        def made(offset: float, built: Any) -> np.ndarray:
            here = self.built(built)
            after = steps.make(tape, index, steps.moved(begun, offset, nodes, maps, here), offset, change, here)
            if after is None:
                raise GradientError(f"the step at knot {knot} of {self.mechanism.name!r} has no neighbours to be differentiated with")
            by_node, by_map = steps.flat(after, reference)
            return np.concatenate([by_node.ravel(), by_map.ravel()])

        size = max(
            self._size(), 1.0 / RATES * np.abs(maps).max(initial=0.0), 0.1 * np.abs(change.aims).max(initial=0.0),
            *(1e-3 * np.abs(part).max(initial=0.0) for part in (change.push, change.force, change.tension)),
        )
        found = check_finite(self.difference(made, size) * np.ones(nodes.size + maps.size), self.mechanism.name)
        by_node = found[: nodes.size].reshape(nodes.shape)
        self.maps = found[nodes.size :].reshape(maps.shape)
        self.older, self.state = Tangent(*by_node[1]) if len(by_node) > 1 else self.older, Tangent(*by_node[0])
        self.values = reference.nodes

    def _change(self, knot: int, step: Any) -> Change:
        """Tangents of the inputs of a step, of its targets with their rates and accelerations."""
        push, force, _, tension = self.inputs_of(knot, 0.0)
        shares = [step.start + step.length * share for share in self.steps.moments]
        aims = np.zeros((len(shares), 3, *self.change.target.shape[1:]))
        for moment, share in enumerate(shares):
            aims[moment, 0] = self.inputs_of(knot, share)[2]
            if self.engine.exact_motion:
                aims[moment, 1] = (self.change.target[knot + 1] - self.change.target[knot]) / self.dt
                if self.curve is not None:
                    for order in (1, 2):
                        aims[moment, order] = self.curve(knot, share, order)
        return Change(push, force, tension, aims)
