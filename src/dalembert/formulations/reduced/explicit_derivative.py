"""A backward pass over a run by rates of change, of trees without prescribed motion."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import GradientError
from dalembert.formulations.maximal.adjoint import KnotBars
from dalembert.formulations.maximal.stage_adjoint import LOOSE
from dalembert.formulations.reduced.derivative import ReducedAdjoint
from dalembert.formulations.reduced.explicit import FlowState
from dalembert.formulations.reduced.explicit_tape import STAGE, pull_step
from dalembert.formulations.reduced.state import Scratch
from dalembert.formulations.reduced.stepwise import state_of


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
