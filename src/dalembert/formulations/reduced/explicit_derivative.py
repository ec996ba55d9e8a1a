"""Backward and forward passes over a run by rates of change."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import GradientError
from dalembert.formulations.engine import Samples
from dalembert.formulations.maximal.adjoint import KnotBars
from dalembert.formulations.maximal.forward import check_finite
from dalembert.formulations.maximal.recording import new_recording
from dalembert.formulations.maximal.stage_adjoint import LOOSE
from dalembert.formulations.reduced.derivative import ReducedAdjoint
from dalembert.formulations.reduced.explicit import FLOW_STATE, FlowState, run_steps
from dalembert.formulations.reduced.explicit_tape import STAGE, pull_step
from dalembert.formulations.reduced.forward import Flow, FlowScratch, new_flow
from dalembert.formulations.reduced.maps import OWN_STATE
from dalembert.formulations.reduced.sensitivities import Built, ReducedForward, Tangent, conjugated
from dalembert.formulations.reduced.state import JOINT_STATE, NODE_STATE, ReducedState, Scratch

#: what both kinds of states have
COMMON = FLOW_STATE.names or ()


def state_of(nodes: np.ndarray) -> np.ndarray:
    """Nodes of a state by rates of change as those of one by stages, with nothing before it."""
    found = np.zeros(len(nodes), NODE_STATE)
    found["turn1"][:, 0] = 1.0
    for name in COMMON:
        found[name] = nodes[name]
    return found


class ExplicitAdjoint(ReducedAdjoint):
    """The state is coordinates and rates at one knot."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.stages = np.zeros((4, len(self.node_bars)), STAGE)
        self.nodes = tuple(self.engine.fractions)

    @property
    def own(self) -> Scratch:
        return self.engine.placing

    def _states(self, knots: np.ndarray) -> np.ndarray:
        arrays, count = self.tape.arrays, self.tape.count
        return np.array([state_of(arrays.nodes[knot] if knot < count else arrays.end[count - 1]) for knot in knots])

    def pull(self, tape: Any, knots: KnotBars, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        engine, (bodies, joints, couplings), count, worst = self.engine, self.engine.sizes, tape.count, 0.0
        pushes, inputs, tensions = np.zeros((count, bodies, 6)), np.zeros((count, joints, 6)), np.zeros((count, couplings))
        targets = np.zeros((count, len(self.nodes), joints, 6))
        for entry in reversed(range(count)):
            samples = tape.samples[entry]
            state = FlowState(tape.arrays.nodes[entry], tape.arrays.joints[entry], np.zeros(engine.clock_size))
            left = pull_step(
                engine.flow(samples), self.stage, state, samples, engine.step_options.method, self.dt, engine.scratch.sums, self.stages, self.bars,
                self.node_bars, pushes[entry], inputs[entry], targets[entry], tensions[entry],
            )
            if not 0.0 <= left < LOOSE:
                raise GradientError(f"the step at knot {first + tape.steps[entry].knot} of {self.mechanism.name!r} cannot be differentiated: its equations are singular")
            worst = max(worst, left)
            self.node_bars["after"] += knots.body[tape.steps[entry].knot]
        return pushes, inputs, targets, tensions


class ExplicitForward(ReducedForward):
    """Steps are differenced as they are."""

    def begin(self, pose: np.ndarray, velocity: np.ndarray, target: np.ndarray) -> None:
        self.scratches: dict[int, FlowScratch] = {}
        super().begin(pose, velocity, target)

    @property
    def own(self) -> Scratch:
        return self.engine.placing

    def fresh(self) -> Any:
        nodes, joints = len(self.engine.tree.nodes), self.engine.sizes[1]
        return ReducedState(np.zeros(nodes, NODE_STATE), np.zeros(joints, JOINT_STATE), np.zeros(0, OWN_STATE), np.zeros(self.engine.clock_size))

    def advance(self, tape: Any, index: int, step: Any, knot: int) -> None:
        engine, arrays = self.engine, tape.arrays
        bodies, joints, couplings = engine.sizes
        samples, fractions = tape.samples[index], np.array(engine.fractions)
        rows = max(samples.per, 1)
        given = [np.zeros((rows, *shape)) + (table if len(table) else 0.0) for table, shape in (
            (samples.wrench, (bodies, 6)), (samples.joint, (joints, 6)), (samples.tension, (couplings,)),
        )]
        push, force, _, tension = self.inputs_of(knot, 0.0)
        aims = np.stack([self.inputs_of(knot, share)[2] for share in fractions])
        recording = new_recording(2, *engine.sizes)
        self.values = state_of(arrays.nodes[index])

        def made(offset: float, built: Any) -> np.ndarray:
            here = self.built(built)
            beside = self.moved(self.values, offset, here)
            nodes = np.zeros(len(beside), FLOW_STATE)
            for name in COMMON:
                nodes[name] = beside[name]
            state = FlowState(nodes, arrays.joints[index].copy(), np.zeros(engine.clock_size))
            motion = samples.motion.copy()
            if len(motion):
                motion[0, :, 0] += offset * aims
            moved = Samples(given[0] + offset * push, given[1] + offset * force, given[2] + offset * tension, motion, samples.per)
            flow = Flow(here.model, here.tree.nodes, engine.work, self._scratch(here), engine.ties, True, True, engine.closed)
            done, _ = run_steps(flow, state, moved, engine.step_options, engine.scratch, recording, 0, 1, self.dt)
            if done != 1:
                raise GradientError(f"the step at knot {knot} of {self.mechanism.name!r} has no neighbours to be differentiated with")
            after, turns = state_of(state.nodes), self.frames(here)
            after["turn"][self.vectors] = conjugated(turns, after["turn"][self.vectors])
            after["v"][self.vectors] = np.einsum("nij,nj->ni", turns, after["v"][self.vectors])
            return after

        reference = made(0.0, self.model)
        size = max(self._size(), 0.1 * np.abs(aims).max(initial=0.0), *(1e-3 * np.abs(part).max(initial=0.0) for part in (push, force, tension)))
        found = self.difference(lambda offset, built: self.flat(made(offset, built), reference), size) * np.ones((2, len(reference), 3))
        self.state, self.values = Tangent(*check_finite(found, self.mechanism.name)), reference

    def _scratch(self, here: Built) -> FlowScratch:
        if id(here.model) not in self.scratches:
            self.scratches[id(here.model)] = new_flow(here.tree.nodes)
        return self.scratches[id(here.model)]
