"""What steps a mechanism in joint coordinates."""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from dalembert.errors import StepFailure
from dalembert.formulations.derivatives import Adjoint, Cotangents, Forward, InputBars
from dalembert.formulations.engine import Inputs, KernelCall, Source, Start
from dalembert.formulations.implicit.tableaus import MULTISTEP, TABLEAUS
from dalembert.formulations.maximal.recording import Recording
from dalembert.formulations.maximal.tape import Tape
from dalembert.formulations.maximal.taut import taut
from dalembert.formulations.reduced.maps import OWN_STATE, begin_watch, build_maps, check_maps, start_maps, trouble
from dalembert.formulations.reduced.options import Reduced
from dalembert.formulations.reduced.start import Starter, beyond, chart_numbers, node_name
from dalembert.formulations.reduced.state import JOINT_STATE, NODE_STATE, ReducedState, new_scratch
from dalembert.formulations.reduced.step import StepOptions, record, run_steps
from dalembert.formulations.reduced.ties import CLOSED, KEPT, build_ties
from dalembert.formulations.reduced.tree_engine import TreeEngine
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.compile import new_work
from dalembert.model.compile_forces import coupling_names
from dalembert.model.tree import AXIS, FOLLOWER, POINT, SPLINE, build_tree
from dalembert.solvers.outcomes import SINGULAR, SOLVED, TOO_FAST
from dalembert.solvers.redundant import COMPLIANCE


class ReducedEngine(TreeEngine):
    """A mechanism stepped in the coordinates of its spanning trees."""

    target_error = 1e-13
    state_type, joint_state = ReducedState, JOINT_STATE
    lingers = True

    def __init__(self, mechanism: Mechanism, options: Reduced) -> None:
        super().__init__(mechanism, options)
        self.tree = build_tree(mechanism, self.model)
        self.maps = build_maps(mechanism, self.tree)
        self.ties = build_ties(mechanism, self.model, self.tree, self.maps)
        self.one_start = options.method in MULTISTEP
        self.tableau = TABLEAUS.get(options.method, TABLEAUS["sdirk2"])
        self.nodes = tuple(self.tableau.c)
        self.input_node = 1.0 if options.method in MULTISTEP else 0.5
        self.step_options = StepOptions(
            COMPLIANCE, options.tolerance, options.max_iterations, MULTISTEP.get(options.method, 0), self.tableau,
        )
        self.own = new_scratch(len(self.tree.nodes), int(np.count_nonzero(self.tree.nodes["kind"] == SPLINE)), self.maps)
        self.model = self.model._replace(splines=self.tree.splines)
        self.tree.nodes["switch"] = options.switch_charts
        charts = chart_numbers(mechanism, self.tree, options.rotations)
        self.starter = Starter(mechanism, self.model, self.tree, self.own, charts, options.switch_charts)
        self.trouble = "", "none", ""
        self.work = new_work(self.model)
        self.work.bodies["node"][:-1] = self.tree.node_of

    # ---- states

    def _layout(self) -> tuple[tuple[np.dtype, int], ...]:
        return (NODE_STATE, len(self.tree.nodes)), (JOINT_STATE, self.sizes[1]), (OWN_STATE, len(self.maps.own)), (np.dtype("f8"), self.clock_size)

    def _begin(self, state: ReducedState, start: Start, rates: np.ndarray) -> None:
        self.starter.start(start, state)
        start_maps(self.mechanism, start, rates, state.maps)

    # ---- running

    def write_knot(self, numbers: np.ndarray, recording: Recording, knot: int) -> None:
        """Poses, momenta, coordinates and rates of a state."""
        record(self.model, self.tree.nodes, self.own, self.view(numbers), recording, knot)

    def record(self, numbers: np.ndarray, recording: Recording, knot: int) -> None:
        """Write the state into a recording."""
        record(self.model, self.tree.nodes, self.own, self.view(numbers), recording, knot)

    def record_call(self, numbers: np.ndarray, recording: Recording) -> KernelCall | None:
        return None if self.reads_tree else KernelCall(record, (self.model, self.tree.nodes, self.own, self.view(numbers), recording, 0), 0)

    def _arguments(self, numbers: np.ndarray, recording: Recording, inputs: Inputs, first: int, count: int, dt: float) -> Any:
        return (
            self.model, self.tree.nodes, self.view(numbers), inputs, self.step_options, self.work, self.own, self.ties, recording, first, count, dt,
        )

    def kernel_call(self, numbers: np.ndarray, recording: Recording, source: Source, count: int, dt: float) -> KernelCall | None:
        if self.mechanism.maps:  # which Python watches over
            return None
        return KernelCall(run_steps, self._arguments(numbers, recording, source.window(0, count), 0, count, dt), 1)

    def run(self, numbers: np.ndarray, recording: Recording, inputs: Inputs, first: int, count: int, dt: float) -> int:
        begin_watch(self.maps, self.view(numbers).maps)
        arguments = self._arguments(numbers, recording, inputs, first, count, dt)
        if self.tape is None:
            outcome, done, size = self.enter(run_steps, count == 1, *arguments)
        elif not self.pulls:
            outcome, done, size = self._run_whole(self.tape, numbers, recording, inputs, first, count, dt)
        else:
            from dalembert.formulations.reduced.tape import tape_steps

            self.tape.reserve(count)
            outcome, done, size, used = tape_steps(*arguments, *self.tape.place)
            self.tape.count += int(used)
        self.outcome = (int(outcome), float(size))
        check_maps(self.mechanism, self.maps)
        if outcome != SOLVED:
            self.note_asked(numbers, inputs, int(done), dt)
            self.note_trouble()
        return int(done)

    # ---- derivatives

    @property
    def pulls(self) -> bool:
        """Whether the equations of its stages can be pulled back; steps are differenced as a whole otherwise."""
        return not self.mechanism.maps and not (self.options.switch_charts and bool(np.any(self.starter.charts)))

    def _run_whole(self, tape: Any, numbers: np.ndarray, recording: Recording, inputs: Inputs, first: int, count: int, dt: float) -> tuple[int, int, float]:
        """``run_steps`` step by step, each kept as a whole."""
        from dalembert.formulations.reduced.stepwise import inputs_of_step

        outcome, size = SOLVED, 0.0
        for index in range(count):
            before, one = numbers.copy(), inputs_of_step(inputs, index)
            outcome, made, size = run_steps(
                self.model, self.tree.nodes, self.view(numbers), one, self.step_options, self.work, self.own, self.ties, recording, first + index, 1, dt,
            )
            if made == 0:
                return outcome, index, size
            tape.keep(before, numbers, one, dt)
        return outcome, count, size

    def whole_state(self) -> ReducedState:
        """A state with nothing in it."""
        return self.view(self._new_state())

    def model_of(self, mechanism: Mechanism) -> Any:
        built = super().model_of(mechanism)
        built.tree.nodes["driven"][self.maps.nodes] = FOLLOWER
        built.tree.nodes["switch"] = self.options.switch_charts
        return built

    def new_tape(self, steps: int) -> Tape:
        """Room for what some steps leave behind."""
        if not self.pulls:
            from dalembert.formulations.reduced.stepwise import StepTape

            return StepTape(len(self._new_state()), steps)
        from dalembert.formulations.reduced.tape import new_tape

        each = 1 if self.options.method == "bdf1" else len(self.tableau.b)
        bodies, joints, couplings = self.sizes
        return Tape(partial(new_tape, len(self.tree.nodes), bodies, joints, couplings, len(self.ties.rows)), steps, each)

    def adjoint(self, recording: Recording, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, cotangents: Cotangents) -> Adjoint:
        """A backward pass over the first ``knots`` knots of a run."""
        from dalembert.formulations.reduced.derivative import ReducedAdjoint

        arguments = self, recording, inputs, knots, dt, coordinates, cotangents
        if self.pulls:
            return ReducedAdjoint(*arguments)
        from dalembert.formulations.reduced.stepwise import StageSteps
        from dalembert.formulations.reduced.stepwise_derivative import StepwiseAdjoint

        return StepwiseAdjoint(StageSteps(self), *arguments)

    def forward(
        self, recording: Recording, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, models: Sequence[Any], step: float, change: InputBars,
    ) -> Forward:
        """A forward pass over the first ``knots`` knots of a run."""
        from dalembert.formulations.reduced.sensitivities import ReducedForward

        arguments = self, recording, inputs, knots, dt, coordinates, models, step, change
        if self.pulls:
            return ReducedForward(*arguments)
        from dalembert.formulations.reduced.stepwise import StageSteps
        from dalembert.formulations.reduced.stepwise_derivative import StepwiseForward

        return StepwiseForward(StageSteps(self), *arguments)

    def coordinate_names(self) -> tuple[str, ...]:
        """Of the coordinates of its states: joints, or bodies without one, with a number where they have several."""
        owners = [node_name(self.mechanism, self.tree, i) for i, node in enumerate(self.tree.nodes) for _ in range(node["count"])]
        places = [owners[:k].count(name) for k, name in enumerate(owners)]
        return tuple(f"{name}[{place}]" if owners.count(name) > 1 else name for name, place in zip(owners, places))

    def step_matrices(self, tape: Tape) -> tuple[np.ndarray, np.ndarray]:
        """(N, s, s) and (N, s, n): states after each substep by those before it, and by forces along the coordinates held over it."""
        from dalembert.formulations.reduced.step_matrices import step_matrices

        return step_matrices(self, tape)

    # ---- failures

    def note_trouble(self) -> None:
        """Keep what is wrong with the last try, in words: its scratch serves other ends later."""
        self.trouble = beyond(self.mechanism, self.tree, self.own.nodes), self.worst_coordinate(), self.fastest_turn()

    def failure(self, time: float, dt: float) -> StepFailure:
        """The error for the step that ``run`` stopped at."""
        outcome, size = self.outcome
        where = f"the step at t = {time:.6g} s of {self.mechanism.name!r}"
        passed, worst, turning = self.trouble
        unmet = self.unmet()
        if unmet is not None:
            return StepFailure(f"{where} has no solution: {unmet}")
        mapped = trouble(self.mechanism, self.maps)
        if mapped is not None:
            return StepFailure(f"{where} has no solution: {mapped}")
        if passed:
            return StepFailure(f"{where} leads beyond a spline: {passed}. Stop the run before, or give the spline more control frames.")
        if outcome == TOO_FAST:
            return StepFailure(
                f"{where} has no solution with dt = {dt:g} s or {1 << self.options.max_halvings} substeps: {turning}, too far for one of "
                "these to tell where it comes out. Use a smaller dt.")
        stopped = taut(self, dt / (1 << self.options.max_halvings))
        if stopped is not None:
            return StepFailure(f"{where} has no solution: {stopped}")
        reason = "a pivot is singular" if outcome == SINGULAR else "Newton did not converge"
        return StepFailure(
            f"{where} has no solution with dt = {dt:g} s or {1 << self.options.max_halvings} substeps: {reason}; "
            f"worst is {worst}, residual {size:.3g} m/s. Use a smaller dt, or check the model and its targets there."
        )

    def worst_coordinate(self) -> str:
        """Name of the coordinate with the largest residual of the last try."""
        ties = self.ties.rows
        closed = np.where(np.isin(ties["kind"], (CLOSED, KEPT)), np.abs(ties["r"]), 0.0)
        if closed.max(initial=0.0) > self.options.tolerance * self.whole:
            row = ties[int(np.argmax(closed))]
            if row["kind"] == CLOSED:
                return f"row {int(row['part'])} of joint {self.mechanism.joints[int(row['index'])].name!r}, which closes a loop"
            return f"coupling {coupling_names(self.mechanism)[int(row['index'])]!r}"
        size = np.abs(self.own.nodes["g"] * self.own.nodes["scale"]).max(axis=1, initial=0.0)
        index = int(np.argmax(np.where(np.isfinite(size), size, np.inf)))
        return f"{'joint' if self.tree.nodes['joint'][index] >= 0 else 'body'} {node_name(self.mechanism, self.tree, index)!r}"

    def fastest_turn(self) -> str:
        """The joint or body of the last try that turns fastest, in words."""
        speed = np.linalg.norm(self.own.nodes["v"], axis=1) * np.isin(self.tree.nodes["kind"], (AXIS, POINT))
        index = int(np.argmax(speed))
        return f"{'joint' if self.tree.nodes['joint'][index] >= 0 else 'body'} {node_name(self.mechanism, self.tree, index)!r} turns at {speed[index]:.6g} rad/s"
