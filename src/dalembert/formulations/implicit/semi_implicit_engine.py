"""What steps a mechanism by semi-implicit Euler."""
from __future__ import annotations

import numpy as np

from dalembert.errors import StepFailure
from dalembert.formulations.engine import Inputs, Start
from dalembert.formulations.implicit.options import Implicit
from dalembert.formulations.implicit.semi_implicit import (
    BODY_STATE,
    JOINT_STATE,
    SemiImplicitState,
    StepOptions,
    new_scratch,
    record,
    run_steps,
)
from dalembert.formulations.maximal import examples
from dalembert.formulations.maximal.engine import MaximalEngine
from dalembert.formulations.maximal.recording import Recording
from dalembert.kernels.ahead import prepare
from dalembert.mechanism.mechanism import Mechanism
from dalembert.solvers.outcomes import SINGULAR, SOLVED


class SemiImplicitEngine(MaximalEngine):
    """A mechanism stepped by semi-implicit Euler."""

    exact = True
    state_type, body_state, joint_state = SemiImplicitState, BODY_STATE, JOINT_STATE

    def __init__(self, mechanism: Mechanism, options: Implicit) -> None:
        prepare(examples.reading)
        super().__init__(mechanism, options)
        self.step_options = StepOptions(self.compliance, options.stabilization)
        self.own = new_scratch(*self.sizes)

    def _begin(self, state: SemiImplicitState, start: Start, rates: np.ndarray) -> None:
        momentum = self.momentum_of(start.velocity)
        state.bodies["x"], state.bodies["q"] = start.position, start.orientation
        state.bodies["p"], state.bodies["l"] = momentum[:, :3], momentum[:, 3:]
        state.joints["spin"] = self.model.joints["armature"] * rates

    def record(self, numbers: np.ndarray, recording: Recording, knot: int) -> None:
        record(self.model, self.view(numbers), recording, knot)

    def run(self, numbers: np.ndarray, recording: Recording, inputs: Inputs, first: int, count: int, dt: float) -> int:
        done, size = run_steps(
            self.model, self.view(numbers), inputs, self.step_options, self.graph.work, self.own, recording, first, count, dt,
        )
        self.outcome = (SOLVED if done == count else SINGULAR, float(size))
        return int(done)

    def failure(self, time: float, dt: float) -> StepFailure:
        """The error for the step that ``run`` stopped at."""
        return StepFailure(
            f"the step at t = {time:.6g} s of {self.mechanism.name!r} leads to velocities that are not finite. "
            "Use a smaller dt, or a stabilization below 1."
        )
