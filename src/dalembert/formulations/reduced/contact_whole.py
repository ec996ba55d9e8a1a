"""Derivatives of runs with contacts whose steps have no equations that could be pulled back: whole steps, by differences.

Coordinate maps, charts that change, bearings whose friction follows their load, the paper's programs. A step is
differenced so closely that what touches in it stays the same, and backward and forward passes share the Jacobian of a step by its state.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dalembert.errors import GradientError
from dalembert.formulations.derivatives import InputBars
from dalembert.formulations.engine import Inputs
from dalembert.formulations.maximal.forward import OFFSETS, STEP, check_finite
from dalembert.formulations.reduced.sensitivities import Tangent
from dalembert.formulations.reduced.stepwise import Change, Snapshot, StageSteps
from dalembert.formulations.reduced.stepwise_derivative import RATES, StepwiseAdjoint, StepwiseForward
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.records import Model
from dalembert.model.tree import FOLLOWER, Tree

if TYPE_CHECKING:
    from dalembert.formulations.reduced.contact_engine import ContactEngine

#: of the steps of differences, beside those of smooth steps: what counts as closed in steps of stages (``contact_stages.CLOSED``) stays so within some 1e-8 m
REACH = 4e-6
#: of what decides nothing of the kind: rates, forces, masses; all numbers where programs are solved or nothing can close
WIDE = 2e-3


class WholeBuilt(NamedTuple):
    """A mechanism as the kernels of joint coordinates take it, and its engine."""

    model: Model
    tree: Tree
    engine: ContactEngine


class ContactSteps(StageSteps):
    """Steps with contacts, by engines of mechanisms beside one."""

    def __init__(self, engine: ContactEngine) -> None:
        super().__init__(engine)
        # what bounces looks back to the knot before the last one, whatever the method
        self.knots = "", "1"
        self.base: Any = WholeBuilt(engine.model, engine.tree, engine)
        self.recording = engine.new_recording(2)
        #: Jacobians of steps by their states, by tape and entry
        self.jacobians: dict[tuple[int, int], np.ndarray] = {}

    def _view(self, numbers: np.ndarray) -> Any:
        parts, begin = [], 0
        for dtype, count in self.engine._layout():
            end = begin + count * dtype.itemsize // 8
            parts.append(numbers[begin:end].view(dtype))
            begin = end
        return self.engine.state_type(*parts)

    def moved(self, state: Snapshot, offset: float, nodes: np.ndarray, maps: np.ndarray, here: Any) -> Snapshot:
        """Nodes that follow maps go along: rows of contacts are taken where they stand."""
        beside = super().moved(state, offset, nodes, maps, here)
        for record, element in zip(self.engine.maps.maps, self.engine.mechanism.maps) if len(state.maps) else ():
            places = slice(int(record["first"]), int(record["first"] + record["count"]))
            own = self.engine.maps.nodes[record["first_entry"] : record["first_entry"] + record["entries"]]
            for knot, by_map in zip(self.knots, maps):
                if not np.any(by_map[:, places]):
                    continue
                y, rates = beside.maps[f"y{knot}"][places], beside.maps[f"v{knot}"][places]
                beside.nodes[f"q{knot}"][own, 0], beside.nodes[f"v{knot}"][own, 0] = element.values(y), element.slopes(y) @ rates
        return beside

    def make(self, tape: Any, entry: int, state: Snapshot, offset: float, change: Change | None, here: Any) -> Snapshot | None:
        numbers, inputs = tape.arrays.before[entry].copy(), self.inputs(tape, entry, offset, change)
        begun = self._view(numbers)
        begun.nodes[:], begun.maps[:] = state.nodes, state.maps
        engine = here.engine
        if engine.run_plain(numbers, self.recording, inputs, 0, 1, float(tape.arrays.length[entry])) != 1:
            return None
        after = self._snapshot(numbers)
        return self.in_own_axes(after, here)

    def jacobian(self, tape: Any, entry: int, free: np.ndarray) -> np.ndarray:
        """(numbers after, numbers before) of the step, with those that it does not depend on; ``free``: which nodes' numbers it does."""
        key = id(tape), entry
        if key not in self.jacobians:
            before, after = self.before(tape, entry), self.after(tape, entry)
            nodes, maps = self.flat(before, before)
            columns = np.zeros((nodes.size + maps.size, nodes.size + maps.size))
            places = [*np.flatnonzero(free.ravel()), *range(nodes.size, nodes.size + maps.size)]
            rates = np.concatenate([np.broadcast_to(np.arange(2)[None, :, None, None], nodes.shape).ravel(), np.broadcast_to(np.arange(2)[None, :, None], maps.shape).ravel()])
            for place in places:
                unit = np.zeros(len(columns))
                unit[place] = 1.0
                by_node, by_map = unit[: nodes.size].reshape(nodes.shape), unit[nodes.size :].reshape(maps.shape)
                step = STEP * (WIDE * RATES if rates[place] else self.engine.reach_beside[0])
                for offset, weight in OFFSETS:
                    ended = self.make(tape, entry, self.moved(before, offset * step, by_node, by_map, self.base), 0.0, None, self.base)
                    if ended is None or not np.array_equal(ended.nodes["chart"], after.nodes["chart"]):
                        raise GradientError(f"a step of {self.engine.mechanism.name!r} has no neighbours to be differentiated with")
                    columns[:, place] += weight / step * np.concatenate([part.ravel() for part in self.flat(ended, after)])
            self.jacobians[key] = columns
        return self.jacobians[key]


class WholeAdjoint(StepwiseAdjoint):
    """A backward pass over whole steps with contacts."""

    steps: ContactSteps

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        if self.forces is not None:
            raise GradientError(f"joint forces of {self.mechanism.name!r} cannot be differentiated, as whole steps with contacts are differenced in it: use other outputs")

    @property
    def _parts(self) -> tuple[str, ...]:
        return "after", "older"

    def _pull_state(self, made: Any) -> None:
        bars = np.concatenate([made.nodes.ravel(), made.maps.ravel()]) @ self.steps.jacobian(made.tape, made.entry, self.free)
        self._put_bars(bars[: made.nodes.size].reshape(made.nodes.shape), bars[made.nodes.size :].reshape(made.maps.shape))

    def _difference(self, function: Any, step: float) -> float:
        return super()._difference(function, WIDE * step)

    def unread(self, name: str) -> bool:
        return not name.endswith(".armature")


class WholeForward(StepwiseForward):
    """A forward pass over whole steps with contacts; ``models`` are ``WholeBuilt``."""

    steps: ContactSteps

    def __init__(
        self, steps: ContactSteps, engine: Any, recording: Any, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, models: Sequence[Any],
        step: float, change: InputBars, free: np.ndarray,
    ) -> None:
        self.beside, self.free = {id(one.model): one for one in models}, free
        super().__init__(steps, engine, recording, inputs, knots, dt, coordinates, models, step, change)

    def built(self, model: Model) -> Any:
        return self.beside.get(id(model), self.steps.base)

    def advance(self, tape: Any, index: int, step: Any, knot: int) -> None:
        steps, change = self.steps, self._change(knot, step)
        begun, reference = steps.before(tape, index), steps.after(tape, index)
        if self.maps is None:
            self.maps = self._begin_maps(begun)
        nodes = np.stack([np.stack([part.q, part.v]) for part in (self.state, self.older)])
        still = np.zeros_like(nodes), np.zeros_like(self.maps)

        def made(offset: float, built: Any) -> np.ndarray:
            here = self.built(built)
            after = steps.make(tape, index, steps.moved(begun, offset, *still, here), offset, change, here)
            if after is None:
                raise GradientError(f"the step at knot {knot} of {self.mechanism.name!r} has no neighbours to be differentiated with")
            return np.concatenate([part.ravel() for part in steps.flat(after, reference)])

        size = max(0.1 * np.abs(change.aims).max(initial=0.0), *(1e-3 * np.abs(part).max(initial=0.0) for part in (change.push, change.force, change.tension)))
        self.reach = WIDE
        found = steps.jacobian(tape, index, self.free) @ np.concatenate([nodes.ravel(), self.maps.ravel()]) + self.difference(made, size)
        self.reach = 1.0
        found = check_finite(found, self.mechanism.name)
        by_node, self.maps = found[: nodes.size].reshape(nodes.shape), found[nodes.size :].reshape(self.maps.shape)
        self.older, self.state = Tangent(*by_node[1]), Tangent(*by_node[0])
        self.values = reference.nodes

    def outputs(self) -> dict[str, np.ndarray]:
        """All but forces of joints."""
        return {name: values for name, values in super().outputs().items() if name not in ("force", "torque")}


def whole_built(engine: ContactEngine, mechanism: Mechanism) -> WholeBuilt:
    """Another mechanism with its engine."""
    other = type(engine)(mechanism, engine.options)
    return WholeBuilt(other.model, other.tree, other)


def step_numbers(engine: ContactEngine) -> np.ndarray:
    """(2, 2, nodes, 3) which numbers of the nodes at the last two knots steps depend on."""
    nodes = engine.tree.nodes
    free = (np.arange(3) < nodes["count"][:, None]) & (nodes["driven"] != FOLLOWER)[:, None]
    return np.broadcast_to(free, (2, 2, len(nodes), 3))
