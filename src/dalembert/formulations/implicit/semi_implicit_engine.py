"""What steps a mechanism by semi-implicit Euler."""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from dalembert.errors import StepFailure
from dalembert.formulations.derivatives import Adjoint, Cotangents, Forward, InputBars
from dalembert.formulations.engine import Inputs, KernelCall, Source, Start
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
from dalembert.formulations.maximal.tape import Tape
from dalembert.kernels.ahead import prepare
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.records import Model
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

    def record_call(self, numbers: np.ndarray, recording: Recording) -> KernelCall | None:
        return KernelCall(record, (self.model, self.view(numbers), recording, 0), 0)

    def _arguments(self, numbers: np.ndarray, recording: Recording, inputs: Inputs, first: int, count: int, dt: float) -> Any:
        return self.model, self.view(numbers), inputs, self.step_options, self.graph.work, self.own, recording, first, count, dt

    def kernel_call(self, numbers: np.ndarray, recording: Recording, source: Source, count: int, dt: float) -> KernelCall | None:
        return KernelCall(run_steps, self._arguments(numbers, recording, source.window(0, count), 0, count, dt), 0)

    def run(self, numbers: np.ndarray, recording: Recording, inputs: Inputs, first: int, count: int, dt: float) -> int:
        arguments = self._arguments(numbers, recording, inputs, first, count, dt)
        if self.tape is None:
            done, size = run_steps(*arguments)
        else:
            from dalembert.formulations.implicit.semi_implicit_tape import tape_steps

            self.tape.reserve(count)
            done, size = tape_steps(*arguments, *self.tape.place)
            self.tape.count += int(done)
        self.outcome = (SOLVED if done == count else SINGULAR, float(size))
        return int(done)

    # ---- derivatives

    def start_velocity(self, numbers: np.ndarray) -> np.ndarray:
        """(n, 6) velocities of a state's momenta."""
        bodies, fixed = self.view(numbers).bodies, self.model.bodies[:-1]
        spin = np.einsum("nij,nj->ni", fixed["inertia_inverse"].reshape(-1, 3, 3), bodies["l"])
        return np.concatenate([bodies["p"] / fixed["mass"][:, None], spin], axis=1)

    def new_tape(self, steps: int) -> Tape:
        """Room for what some steps leave behind."""
        from dalembert.formulations.implicit.semi_implicit_tape import new_tape

        return Tape(partial(new_tape, *self.sizes), steps)

    def adjoint(self, recording: Recording, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, cotangents: Cotangents) -> Adjoint:
        """A backward pass over the first ``knots`` knots of a run."""
        from dalembert.formulations.implicit.semi_implicit_derivative import SemiImplicitAdjoint

        return SemiImplicitAdjoint(self, recording, inputs, knots, dt, coordinates, cotangents)

    def forward(
        self, recording: Recording, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, models: Sequence[Model], step: float,
        change: InputBars,
    ) -> Forward:
        """A forward pass over the first ``knots`` knots of a run."""
        from dalembert.formulations.implicit.semi_implicit_derivative import SemiImplicitForward

        return SemiImplicitForward(self, recording, inputs, knots, dt, coordinates, models, step, change)

    def failure(self, time: float, dt: float) -> StepFailure:
        """The error for the step that ``run`` stopped at."""
        return StepFailure(
            f"the step at t = {time:.6g} s of {self.mechanism.name!r} leads to velocities beyond all measure. "
            "Use a smaller dt, or a stabilization below 1."
        )
