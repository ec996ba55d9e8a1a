"""What steps a mechanism by the BDF and DIRK methods."""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from dalembert.errors import StepFailure
from dalembert.formulations.derivatives import Adjoint, Cotangents, Forward, InputBars
from dalembert.formulations.engine import Inputs, KernelCall, Source, Start
from dalembert.formulations.implicit.equations import BODY, Stage
from dalembert.formulations.implicit.options import Implicit
from dalembert.formulations.implicit.state import (
    BODY_STATE,
    JOINT_STATE,
    ImplicitState,
    counted_joints,
    new_scratch,
    record,
)
from dalembert.formulations.implicit.step import StepOptions, newton, run_steps
from dalembert.formulations.implicit.tableaus import MULTISTEP, TABLEAUS
from dalembert.formulations.maximal import examples
from dalembert.formulations.maximal.engine import MaximalEngine
from dalembert.formulations.maximal.graph import Graph, build_graph
from dalembert.formulations.maximal.recording import Recording, new_recording
from dalembert.formulations.maximal.substeps import SMALLEST
from dalembert.formulations.maximal.tape import Tape
from dalembert.formulations.maximal.taut import taut
from dalembert.kernels.ahead import Jobs, prepare
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.records import Model
from dalembert.model.targets import largest_moves
from dalembert.solvers.outcomes import SINGULAR, SOLVED, TOO_FAST

#: how many times the work of a factorisation exact Newton may cost
EXACT_NEWTON = 6.0


def example_stage() -> Stage:
    """A stage of nothing."""
    model, work = examples.model_and_work()
    return Stage(model, work, new_scratch(0, 0, np.zeros((0, 2), np.int64), work.schedule), 0.0, 0.0)


def ahead() -> Jobs:
    """The longest part of a step, and what reads a run."""
    yield newton.part, (example_stage(), 0.0, 0)
    yield from examples.reading()


class ImplicitEngine(MaximalEngine):
    """A mechanism stepped by BDF or DIRK methods.

    Forces are read by acceleration-level solves: multipliers of stages and first steps do not converge.
    """

    exact = True
    #: what a step is too long for
    too_fast = "a body turns by more than a radian even in the shortest"
    state_type, body_state, joint_state = ImplicitState, BODY_STATE, JOINT_STATE
    lingers = True
    jobs = staticmethod(ahead)

    def __init__(self, mechanism: Mechanism, options: Implicit) -> None:
        prepare(self.jobs)
        super().__init__(mechanism, options)
        self.one_start = options.method in MULTISTEP
        self.tableau = TABLEAUS.get(options.method, TABLEAUS["sdirk2"])
        self.nodes = tuple(self.tableau.c)
        self.input_node = 1.0 if options.method in MULTISTEP else 0.5
        self.step_options = StepOptions(
            self.compliance, options.tolerance, options.max_iterations, MULTISTEP.get(options.method, 0), self.tableau,
        )
        bodies, joints, _ = self.sizes
        axles = joints if np.any(self.model.joints["armature"] > 0.0) else 0
        self.own = new_scratch(bodies, axles, self.graph.edges, self.graph.work.schedule)
        self.own = self.own._replace(counted=self._counted())

    def _build(self) -> Graph:
        """The graph with edges between joined bodies, for exact Newton, unless these cost too much fill.

        Without them the change of a joint's force with the pose of the other body is left to the iteration.
        """
        plain, exact = build_graph(self.model, BODY), build_graph(self.model, BODY, couple_bodies=True)
        return exact if exact.structure.work < EXACT_NEWTON * plain.structure.work else plain

    def _counted(self) -> np.ndarray:
        """(joints,) whose coordinates the equations of a stage ask for."""
        return counted_joints(self.model)

    # ---- states

    def _begin(self, state: ImplicitState, start: Start, rates: np.ndarray) -> None:
        bodies, half = state.bodies, 0.5 * start.velocity[:, 3:]
        w, u = start.orientation[:, :1], start.orientation[:, 1:]
        bodies["x"], bodies["q"], bodies["v"] = start.position, start.orientation, start.velocity[:, :3]
        bodies["w"][:, 0] = -np.sum(u * half, axis=1)
        bodies["w"][:, 1:] = w * half + np.cross(u, half)
        state.joints["rate"] = np.where(self.model.joints["armature"] > 0.0, rates, 0.0)

    def pose(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions (n, 3) and orientations (n, 4)."""
        recording = new_recording(1, *self.sizes)  # as runs write it, to the bit
        self.record(numbers, recording, 0)
        return recording.position[0], recording.orientation[0]

    # ---- running

    def record(self, numbers: np.ndarray, recording: Recording, knot: int) -> None:
        record(self.model, self._general(numbers), recording, knot)

    def record_call(self, numbers: np.ndarray, recording: Recording) -> KernelCall | None:
        return KernelCall(record, (self.model, self._general(numbers), recording, 0), 0)

    def _general(self, numbers: np.ndarray) -> ImplicitState:
        """The state as the general step takes it."""
        return self.view(numbers)

    def _arguments(self, numbers: np.ndarray, recording: Recording, inputs: Inputs, first: int, count: int, dt: float) -> Any:
        return self.model, self._general(numbers), inputs, self.step_options, self.graph.work, self.own, recording, first, count, dt

    def kernel_call(self, numbers: np.ndarray, recording: Recording, source: Source, count: int, dt: float) -> KernelCall | None:
        return KernelCall(run_steps, self._arguments(numbers, recording, source.window(0, count), 0, count, dt), 1)

    def run(self, numbers: np.ndarray, recording: Recording, inputs: Inputs, first: int, count: int, dt: float) -> int:
        arguments = self._arguments(numbers, recording, inputs, first, count, dt)
        if self.tape is None:
            outcome, done, size = self.enter(run_steps, count == 1, *arguments)
        else:
            from dalembert.formulations.implicit.tape import tape_steps

            self.tape.reserve(count)
            outcome, done, size, used = tape_steps(*arguments, *self.tape.place)
            self.tape.count += int(used)
        return self._note(numbers, outcome, done, size, inputs, dt)

    def _note(self, numbers: np.ndarray, outcome: int, done: int, size: float, inputs: Inputs, dt: float) -> int:
        """Keep how a run ended, and for ``failure`` the state and the targets of a step that failed: the whole one, unless steps are chosen by their error."""
        self.outcome = (int(outcome), float(size))
        if outcome != SOLVED:
            self.note_asked(numbers, inputs, int(done), dt)
        return int(done)

    def step_error(self, dt: float) -> float:
        """Estimated error (m) of the poses of the step just made: their distance from those of the embedded method."""
        bodies, count = self.own.bodies, len(self.tableau.b)
        weights = dt * (self.tableau.b - self.tableau.embedded)
        moved = np.einsum("s,nsc->nc", weights, bodies["kx"][:, :count])
        turned = np.einsum("s,nsc->nc", weights, bodies["kq"][:, :count]) * 2.0 * self.model.bodies["length"][:-1, None]
        return float(max(np.max(np.linalg.norm(part, axis=1)) for part in (moved, turned)))

    # ---- derivatives

    def new_tape(self, steps: int) -> Tape:
        """Room for what some steps leave behind."""
        from dalembert.formulations.implicit.tape import new_tape

        each = 1 if self.options.method == "bdf1" else len(self.tableau.b)
        return Tape(partial(new_tape, *self.sizes), steps, each)

    def start_velocity(self, numbers: np.ndarray) -> np.ndarray:
        """(n, 6) velocities of a state, omega = 2 vec(q^-1 q')."""
        from dalembert.formulations.implicit.derivative import relative

        bodies = self.view(numbers).bodies
        return np.concatenate([bodies["v"], 2.0 * relative(bodies["q"], bodies["w"])[:, 1:]], axis=1)

    def adjoint(self, recording: Recording, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, cotangents: Cotangents) -> Adjoint:
        """A backward pass over the first ``knots`` knots of a run."""
        from dalembert.formulations.implicit.derivative import ImplicitAdjoint

        return ImplicitAdjoint(self, recording, inputs, knots, dt, coordinates, cotangents)

    def forward(
        self, recording: Recording, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, models: Sequence[Model], step: float,
        change: InputBars,
    ) -> Forward:
        """A forward pass over the first ``knots`` knots of a run."""
        from dalembert.formulations.implicit.forward import ImplicitForward

        return ImplicitForward(self, recording, inputs, knots, dt, coordinates, models, step, change)

    # ---- failures

    def _moves(self) -> str:
        """What the drives that move most do in the failed step."""
        moves = "" if self.asked is None else largest_moves(self.placement(self.asked[0]), *self.asked[1])
        return f"; drives move {moves} in it" if moves else ""

    def failure(self, time: float, dt: float) -> StepFailure:
        """The error for the step that ``run`` stopped at."""
        outcome, size = self.outcome
        where = f"the step at t = {time:.6g} s of {self.mechanism.name!r}"
        if outcome == SOLVED:
            return StepFailure(
                f"{where} does not reach an accuracy of {self.options.accuracy:g} m even in steps of {SMALLEST * dt:.3g} s. "
                "Ask for less accuracy, or check for jumps of forces and targets there."
            )
        unmet = self.unmet()
        if unmet is not None:
            return StepFailure(f"{where} has no solution: {unmet}")
        moves = self._moves()
        stopped = None if moves else taut(self, dt / (1 << self.options.max_halvings))
        if stopped is not None:
            return StepFailure(f"{where} has no solution: {stopped}")
        reasons = {SINGULAR: "a pivot block is singular", TOO_FAST: self.too_fast}
        reason = reasons.get(outcome, "Newton did not converge")
        return StepFailure(
            f"{where} has no solution with dt = {dt:g} s or {1 << self.options.max_halvings} substeps: {reason}; "
            f"worst is {self.worst_row()}, residual {size:.3g} m/s{moves}. Use a smaller dt, or check the model and its targets there."
        )
