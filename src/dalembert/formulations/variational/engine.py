"""What steps a mechanism by the variational integrator."""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf
from typing import Any, NamedTuple

import numpy as np

from dalembert.errors import StepFailure
from dalembert.formulations.derivatives import Adjoint, Cotangents, Forward, InputBars
from dalembert.formulations.engine import Inputs, KernelCall, Source, Start
from dalembert.formulations.maximal import examples
from dalembert.formulations.maximal.engine import MaximalEngine
from dalembert.formulations.maximal.recording import Recording
from dalembert.formulations.maximal.tape import Tape
from dalembert.formulations.maximal.taut import no_motion
from dalembert.formulations.variational.equations import Interval
from dalembert.formulations.variational.options import Variational
from dalembert.formulations.variational.state import BODY_STATE, JOINT_STATE, VariationalState
from dalembert.formulations.variational.step import newton, record, run_steps
from dalembert.formulations.variational.strain import MOST
from dalembert.kernels.ahead import Jobs, prepare
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.records import Model
from dalembert.solvers.outcomes import NOT_CONVERGED, SINGULAR, TOO_FAST


class StepOptions(NamedTuple):
    """What a step takes besides model, state and inputs. ``strain``: share of the kinetic energy that joints may give or take in it."""

    compliance: float
    tolerance: float
    max_iterations: int
    strain: float


def ahead() -> Jobs:
    """The longest part of a step, and what reads a run."""
    yield newton.part, (Interval(*examples.model_and_work(), 0.0, 0.0, 0.0), 0.0, 0)
    yield from examples.reading()


class VariationalEngine(MaximalEngine):
    """A mechanism stepped by the variational integrator."""

    state_type, body_state, joint_state = VariationalState, BODY_STATE, JOINT_STATE
    lingers = keeps_energy = True

    def __init__(self, mechanism: Mechanism, options: Variational) -> None:
        prepare(ahead)
        super().__init__(mechanism, options)
        self.step_options = StepOptions(self.compliance, options.tolerance, options.max_iterations, MOST)

    def _begin(self, state: VariationalState, start: Start, rates: np.ndarray) -> None:
        momentum = self.momentum_of(start.velocity)
        state.bodies["x"], state.bodies["q"] = start.position, start.orientation
        state.bodies["p"], state.bodies["l"] = momentum[:, :3], momentum[:, 3:]
        state.joints["spin"] = self.model.joints["armature"] * rates

    def record(self, numbers: np.ndarray, recording: Recording, knot: int) -> None:
        state = self.view(numbers)
        recording.position[knot], recording.orientation[knot] = state.bodies["x"], state.bodies["q"]
        recording.momentum[knot, :, :3], recording.momentum[knot, :, 3:] = state.bodies["p"], state.bodies["l"]
        recording.step_before[knot], recording.spin[knot] = state.clock[0], state.joints["spin"]

    def record_call(self, numbers: np.ndarray, recording: Recording) -> KernelCall | None:
        return KernelCall(record, (self.model, self.view(numbers), recording, 0), 0)

    def watch(self, on: bool) -> None:
        self.step_options = self.step_options._replace(strain=MOST if on else inf)

    def _arguments(self, numbers: np.ndarray, recording: Recording, inputs: Inputs, first: int, count: int, dt: float) -> Any:
        return self.model, self.view(numbers), inputs, self.step_options, self.graph.work, recording, first, count, dt

    def kernel_call(self, numbers: np.ndarray, recording: Recording, source: Source, count: int, dt: float) -> KernelCall | None:
        return KernelCall(run_steps, self._arguments(numbers, recording, source.window(0, count), 0, count, dt), 1)

    def run(self, numbers: np.ndarray, recording: Recording, inputs: Inputs, first: int, count: int, dt: float) -> int:
        arguments = self._arguments(numbers, recording, inputs, first, count, dt)
        if self.tape is None:
            outcome, done, size = self.enter(run_steps, count == 1, *arguments)
        else:
            from dalembert.formulations.variational.tape import tape_steps

            self.tape.reserve(count)
            outcome, done, size = tape_steps(*arguments, *self.tape.place)
            self.tape.count += int(done)
        self.outcome = (int(outcome), float(size))
        if done < count:
            self.note_asked(numbers, inputs, int(done), dt)
        return int(done)

    def residuals(self, numbers: np.ndarray, recording: Recording, inputs: Inputs, dt: float) -> np.ndarray:
        """Residuals (m/s) of the first guess and after each Newton iteration of the step from a state, which stays as it is: it is stopped after none, one, ..."""
        found = []
        for most in range(self.step_options.max_iterations + 1):
            options = self.step_options._replace(max_iterations=most)
            arguments = self.model, self.view(numbers.copy()), inputs, options, self.graph.work, recording, 0, 1, dt
            _, done, size = self.enter(run_steps, True, *arguments)
            found.append(float(size))
            if done:
                break
        return np.array(found)

    # ---- derivatives

    def start_velocity(self, numbers: np.ndarray) -> np.ndarray:
        """(n, 6) velocities of a state's momenta."""
        bodies, fixed = self.view(numbers).bodies, self.model.bodies[:-1]
        spin = np.einsum("nij,nj->ni", fixed["inertia_inverse"].reshape(-1, 3, 3), bodies["l"])
        return np.concatenate([bodies["p"] / fixed["mass"][:, None], spin], axis=1)

    def new_tape(self, steps: int) -> Tape:
        """Room for what some steps leave behind."""
        from dalembert.formulations.variational.tape import new_tape

        return Tape(partial(new_tape, *self.sizes), steps)

    def adjoint(self, recording: Recording, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, cotangents: Cotangents) -> Adjoint:
        """A backward pass over the first ``knots`` knots of a run."""
        from dalembert.formulations.variational.derivative import VariationalAdjoint

        return VariationalAdjoint(self, recording, inputs, knots, dt, coordinates, cotangents)

    def forward(
        self, recording: Recording, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, models: Sequence[Model], step: float,
        change: InputBars,
    ) -> Forward:
        """A forward pass over the first ``knots`` knots of a run."""
        from dalembert.formulations.variational.forward import VariationalForward

        return VariationalForward(self, recording, inputs, knots, dt, coordinates, models, step, change)

    # ---- failures

    def _taut(self, kick: float) -> str | None:
        """Why no motion goes on from the knot of the last try, if that is the reason, after a kick (s)."""
        work = self.graph.work
        bodies = work.bodies[:-1]
        momentum = np.concatenate([bodies["p"], bodies["l"]], axis=1) + kick * bodies["load"]
        return no_motion(self, self._place(bodies["x"], bodies["q"], work.joints["coordinate"]), momentum)

    def failure(self, time: float, dt: float) -> StepFailure:
        """The error for the step that ``run`` stopped at."""
        outcome, size = self.outcome
        parts = 1 << self.options.max_halvings
        where = f"the step at t = {time:.6g} s of {self.mechanism.name!r} has no solution with dt = {dt:g} s or {parts} substeps"
        if outcome == TOO_FAST:
            body, spin = self.fastest_body()
            return StepFailure(
                f"{where}: body {body!r} spins at {spin:.4g} rad/s, more than a substep of {dt / parts:.3g} s can follow. "
                "Use a smaller dt or more max_halvings."
            )
        unmet = self.unmet()
        if unmet is not None:
            return StepFailure(f"{where}: {unmet}")
        taut = self._taut(dt / parts)
        if taut is not None:
            return StepFailure(f"{where}: {taut}")
        reason = {NOT_CONVERGED: "Newton did not converge", SINGULAR: "a pivot block is singular"}.get(outcome, "unknown")
        return StepFailure(f"{where}: {reason}; worst is {self.worst_row()}, residual {size:.3g} m/s. Use a smaller dt, or check the model there.")
