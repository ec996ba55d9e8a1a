"""Whole steps beside those of a run, and the tape of a run whose steps are differentiated as a whole.

Loops and prescribed motion in explicit methods, steps that are made with derivatives of forces, coordinate maps and charts that change have no
equations here that could be pulled back. But a step is a function of the state before it, of its inputs and of the mechanism's numbers,
and its kernel is at hand: ``Steps`` makes steps beside one, for differences of sixth order.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dalembert.formulations.engine import Inputs, Samples
from dalembert.formulations.maximal.forward import turn_between, turned
from dalembert.formulations.maximal.recording import new_recording
from dalembert.formulations.maximal.tape import Tape
from dalembert.formulations.reduced import explicit, step
from dalembert.formulations.reduced.explicit import FLOW_STATE, FlowState
from dalembert.formulations.reduced.forward import Flow, FlowScratch
from dalembert.formulations.reduced.maps import OWN_STATE
from dalembert.formulations.reduced.sensitivities import Built, conjugated
from dalembert.formulations.reduced.state import NODE_STATE, ReducedState
from dalembert.model.tree import POINT
from dalembert.solvers.outcomes import SOLVED

#: what states by rates of change and by stages both have
COMMON = FLOW_STATE.names or ()


class Snapshot(NamedTuple):
    """A state: records of the nodes (``NODE_STATE``) and of the numbers of coordinate maps (``OWN_STATE``)."""

    nodes: np.ndarray
    maps: np.ndarray


class Change(NamedTuple):
    """What is added to the inputs of a step; ``aims`` (moments, 3, joints, 6): to targets, their rates and accelerations."""

    push: np.ndarray
    force: np.ndarray
    tension: np.ndarray
    aims: np.ndarray


class StepArrays(NamedTuple):
    """Per step (first axis): the numbers of the state before and after it, and its length."""

    before: np.ndarray
    after: np.ndarray
    length: np.ndarray


class StepTape(Tape):
    """A tape of whole steps with their inputs, of the stages of BDF and DIRK methods."""

    def __init__(self, numbers: int, room: int) -> None:
        super().__init__(lambda count: StepArrays(np.zeros((count, numbers)), np.zeros((count, numbers)), np.zeros(count)), room)
        self.inputs: list[Inputs] = []

    def go_back(self, mark: tuple[int, ...]) -> None:
        super().go_back(mark)
        del self.inputs[mark[0] :]

    def cut(self, first: int, last: int) -> None:
        self.inputs = self.inputs[first:last]

    def keep(self, before: np.ndarray, after: np.ndarray, inputs: Inputs, dt: float) -> None:
        """A step that was made."""
        self.reserve(1)
        self.arrays.before[self.count], self.arrays.after[self.count], self.arrays.length[self.count] = before, after, dt
        self.inputs.append(inputs)
        self.count += 1


def inputs_of_step(inputs: Inputs, index: int) -> Inputs:
    """The inputs of one step by themselves."""
    def one(table: np.ndarray) -> np.ndarray:
        return table[index : index + 1].copy() if len(table) else table

    stage = inputs.stage[min(index, len(inputs.stage) - 1)][None].copy() if len(inputs.stage) else inputs.stage
    return Inputs(one(inputs.wrench), one(inputs.joint), inputs.target[index : index + 2].copy(), stage, one(inputs.tension))


def filled(table: np.ndarray, rows: int, shape: tuple[int, ...]) -> np.ndarray:
    """Inputs per row, zeros where there are none."""
    return np.zeros((rows, *shape)) + (table if len(table) else 0.0)


class Steps:
    """Steps beside those of a tape, of an engine and of other mechanisms (``Built``) with its tree."""

    #: knots that a state looks back at
    knots: tuple[str, ...] = ("",)

    def __init__(self, engine: Any) -> None:
        self.engine, self.base = engine, Built(engine.model, engine.tree)
        nodes = engine.tree.nodes
        self.vectors = np.flatnonzero((nodes["kind"] == POINT) & (engine.starter.charts == 0))
        self.recording = new_recording(2, *engine.sizes)

    # ---- states as vectors: (knots, 2, nodes, 3) coordinates and rates, free rotations as turns; (knots, 2, maps) numbers of maps and their rates

    def flat(self, state: Snapshot, reference: Snapshot) -> tuple[np.ndarray, np.ndarray]:
        nodes, maps = [], []
        for knot in self.knots:
            q = state.nodes[f"q{knot}"].copy()
            q[self.vectors] = turn_between(reference.nodes[f"turn{knot}"][self.vectors], state.nodes[f"turn{knot}"][self.vectors])
            nodes.append(np.stack([q, state.nodes[f"v{knot}"]]))
            maps.append(np.stack([state.maps[f"y{knot}"], state.maps[f"v{knot}"]]))
        return np.stack(nodes), np.stack(maps)

    def moved(self, state: Snapshot, offset: float, nodes: np.ndarray, maps: np.ndarray, here: Built) -> Snapshot:
        """A state ``offset`` along a change of its vectors, as another mechanism has it."""
        beside, own, back = state.nodes.copy(), state.maps.copy(), np.swapaxes(self.frames(here), 1, 2)
        for knot, by_node, by_map in zip(self.knots, nodes, maps):
            q, v, turn = f"q{knot}", f"v{knot}", f"turn{knot}"
            beside[q] += offset * by_node[0]
            beside[v] += offset * by_node[1]
            beside[q][self.vectors] = 0.0
            beside[turn][self.vectors] = conjugated(back, turned(beside[turn][self.vectors], offset * by_node[0][self.vectors]))
            beside[v][self.vectors] = np.einsum("nij,nj->ni", back, beside[v][self.vectors])
            own[f"y{knot}"] += offset * by_map[0]
            own[f"v{knot}"] += offset * by_map[1]
        return Snapshot(beside, own)

    def frames(self, here: Built) -> np.ndarray:
        """Rotations (vectors, 3, 3) from the axes that free rotations of another mechanism are written in to those of the engine's."""
        own, other = (tree.nodes["frame"][self.vectors].reshape(-1, 3, 3) for tree in (self.base.tree, here.tree))
        return own @ np.swapaxes(other, 1, 2)

    def in_own_axes(self, state: Snapshot, here: Built) -> Snapshot:
        """A state of another mechanism with its free rotations written in the axes of the engine's."""
        turns = self.frames(here)
        for knot in self.knots:
            state.nodes[f"turn{knot}"][self.vectors] = conjugated(turns, state.nodes[f"turn{knot}"][self.vectors])
            state.nodes[f"v{knot}"][self.vectors] = np.einsum("nij,nj->ni", turns, state.nodes[f"v{knot}"][self.vectors])
        return state

    # ---- what methods say

    @property
    def moments(self) -> tuple[float, ...]:
        """Fractions of a step at which its targets are taken."""
        raise NotImplementedError

    def before(self, tape: Any, entry: int) -> Snapshot:
        raise NotImplementedError

    def after(self, tape: Any, entry: int) -> Snapshot:
        raise NotImplementedError

    def make(self, tape: Any, entry: int, state: Snapshot, offset: float, change: Change | None, here: Built) -> Snapshot | None:
        """The state after a step of the tape from another state, with inputs moved along a change; None where there is none."""
        raise NotImplementedError


class FlowSteps(Steps):
    """Of explicit methods: every input is one number for the whole of a step."""

    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self.scratches: dict[int, FlowScratch] = {}

    @property
    def moments(self) -> tuple[float, ...]:
        return tuple(self.engine.fractions)

    def before(self, tape: Any, entry: int) -> Snapshot:
        return Snapshot(state_of(tape.arrays.nodes[entry]), np.zeros(0, OWN_STATE))

    def after(self, tape: Any, entry: int) -> Snapshot:
        return Snapshot(state_of(tape.arrays.end[entry]), np.zeros(0, OWN_STATE))

    def make(self, tape: Any, entry: int, state: Snapshot, offset: float, change: Change | None, here: Built) -> Snapshot | None:
        engine, samples, (bodies, joints, couplings) = self.engine, tape.samples[entry], self.engine.sizes
        nodes = np.zeros(len(state.nodes), FLOW_STATE)
        for name in COMMON:
            nodes[name] = state.nodes[name]
        flowing = FlowState(nodes, tape.arrays.joints[entry].copy(), np.zeros(engine.clock_size))
        if change is not None:
            rows, motion = max(samples.per, 1), samples.motion.copy()
            if len(motion):
                motion[0] += offset * change.aims
            samples = Samples(
                filled(samples.wrench, rows, (bodies, 6)) + offset * change.push, filled(samples.joint, rows, (joints, 6)) + offset * change.force,
                filled(samples.tension, rows, (couplings,)) + offset * change.tension, motion, samples.per,
            )
        if id(here.model) not in self.scratches:
            self.scratches[id(here.model)] = engine.new_scratch(here.tree.nodes, here.model)
        flow = Flow(here.model, here.tree.nodes, engine.work, self.scratches[id(here.model)], engine.ties, True, True, engine.closed)
        options, dt = engine.step_options._replace(watched=False), tape.dt * tape.steps[entry].length
        done, _ = explicit.run_steps(flow, flowing, samples, options, engine.scratch, self.recording, 0, 1, dt)
        return None if done != 1 else self.in_own_axes(Snapshot(state_of(nodes), np.zeros(0, OWN_STATE)), here)


class StageSteps(Steps):
    """Of BDF and DIRK methods."""

    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self.knots = ("", "1") if engine.options.method == "bdf2" else ("",)

    @property
    def moments(self) -> tuple[float, ...]:
        return 1.0, *self.engine.tableau.c

    def _view(self, numbers: np.ndarray) -> ReducedState:
        parts, begin = [], 0
        for dtype, count in self.engine._layout():
            end = begin + count * dtype.itemsize // 8
            parts.append(numbers[begin:end].view(dtype))
            begin = end
        return ReducedState(*parts)

    def _snapshot(self, numbers: np.ndarray) -> Snapshot:
        state = self._view(numbers.copy())
        return Snapshot(state.nodes, state.maps)

    def before(self, tape: Any, entry: int) -> Snapshot:
        return self._snapshot(tape.arrays.before[entry])

    def after(self, tape: Any, entry: int) -> Snapshot:
        return self._snapshot(tape.arrays.after[entry])

    def inputs(self, tape: Any, entry: int, offset: float, change: Change | None) -> Inputs:
        """The inputs of a step, moved along a change."""
        inputs, (bodies, joints, couplings) = tape.inputs[entry], self.engine.sizes
        if change is None:
            return inputs
        target, stage = inputs.target.copy(), inputs.stage.copy()
        target[1] += offset * change.aims[0, 0]
        if len(stage):
            stage[0] += offset * change.aims[1:, 0]
        return Inputs(
            filled(inputs.wrench, 1, (bodies, 6)) + offset * change.push, filled(inputs.joint, 1, (joints, 6)) + offset * change.force, target, stage,
            filled(inputs.tension, 1, (couplings,)) + offset * change.tension,
        )

    def make(self, tape: Any, entry: int, state: Snapshot, offset: float, change: Change | None, here: Built) -> Snapshot | None:
        engine, inputs = self.engine, self.inputs(tape, entry, offset, change)
        begun = self._view(tape.arrays.before[entry].copy())
        begun.nodes[:], begun.maps[:] = state.nodes, state.maps
        outcome, _, _ = step.run_steps(
            here.model, here.tree.nodes, begun, inputs, engine.step_options, engine.work, engine.own, engine.ties, self.recording, 0, 1,
            float(tape.arrays.length[entry]),
        )
        return None if outcome != SOLVED else self.in_own_axes(Snapshot(begun.nodes, begun.maps), here)


def state_of(nodes: np.ndarray) -> np.ndarray:
    """Nodes of a state by rates of change as those of one by stages, with nothing before it."""
    found = np.zeros(len(nodes), NODE_STATE)
    found["turn1"][:, 0] = 1.0
    for name in COMMON:
        found[name] = nodes[name]
    return found

