"""What steps a mechanism in joint coordinates by rates of change."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError, StepFailure
from dalembert.formulations.derivatives import Adjoint, Cotangents, Forward, InputBars
from dalembert.formulations.engine import Inputs, KernelCall, Samples, Source, Start
from dalembert.formulations.maximal import examples
from dalembert.formulations.maximal.recording import Recording
from dalembert.formulations.maximal.tape import Step
from dalembert.formulations.reduced.explicit import (
    FLOW_STATE,
    FRACTIONS,
    KKT_ACCELERATION,
    KKT_VELOCITY,
    LARGEST_GAP,
    LARGEST_RATE,
    LINEARLY_IMPLICIT,
    RK4,
    SEMI_IMPLICIT,
    SUM,
    FlowState,
    StepOptions,
    StepScratch,
    record,
    run_steps,
)
from dalembert.formulations.reduced.forward import Flow, FlowScratch, new_flow
from dalembert.formulations.reduced.linearly_implicit import new_soft
from dalembert.formulations.reduced.maps import OWN_STATE
from dalembert.formulations.reduced.options import Reduced
from dalembert.formulations.reduced.start import Starter, beyond
from dalembert.formulations.reduced.state import JOINT_STATE, NODE_STATE, ReducedState, new_scratch
from dalembert.formulations.reduced.ties import CLOSED, KEPT, build_ties
from dalembert.formulations.reduced.tree_engine import TreeEngine
from dalembert.kernels.ahead import prepare
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.compile import new_work
from dalembert.model.records import Model
from dalembert.model.tree import SPLINE, build_tree

if TYPE_CHECKING:
    from dalembert.formulations.reduced.explicit_tape import ExplicitTape

KINDS = {
    "rk4": RK4, "semi_implicit": SEMI_IMPLICIT, "linearly_implicit": LINEARLY_IMPLICIT, "kkt_velocity": KKT_VELOCITY, "kkt_acceleration": KKT_ACCELERATION,
}


class FlowEngine(TreeEngine):
    """What engines share that step by rates of change: a state of coordinates and rates, with quaternions for free rotations."""

    exact_motion = True
    state_type, joint_state = FlowState, JOINT_STATE
    tape: Any

    def __init__(self, mechanism: Mechanism, options: Reduced) -> None:
        if mechanism.touches and not self.takes_limits(mechanism):
            raise ModelError(
                f"Reduced: {mechanism.name!r} has contacts, limits or dry friction, which do not go with method={options.method!r}; "
                "choose an implicit method such as 'bdf2', for limits alone one of solve_ivp's such as 'RK45', or leave them out, from a model "
                "file with load(..., contacts=False, limits=False)"
            )
        prepare(examples.reading)
        super().__init__(mechanism, options)
        self.tree = build_tree(mechanism, self.model)
        self.ties = build_ties(mechanism, self.model, self.tree)
        self.own = self.new_scratch(self.tree.nodes, self.model)
        self.model = self.model._replace(splines=self.tree.splines)
        nodes = len(self.tree.nodes)
        self.placing = new_scratch(nodes, len(self.own.splines))
        self.starter = Starter(mechanism, self.model, self.tree, self.placing, np.zeros(nodes, np.int64), False)
        self.work = new_work(self.model)
        self.work.bodies["node"][:-1] = self.tree.node_of
        #: joints that a failed step would have led beyond their splines
        self.passed = ""
        #: wrenches act on bodies whatever the inputs; rows stay closed
        self.loaded = bool(len(self.ties.rows) or len(self.model.loads) or np.any(self.model.bodies["wrench"]))
        self.closed = bool(np.isin(self.ties.rows["kind"], (CLOSED, KEPT)).any())

    def new_scratch(self, nodes: np.ndarray, model: Model) -> FlowScratch:
        """Room for forward dynamics of a tree's nodes."""
        scratch = new_flow(nodes)
        for at, node in zip(scratch.nodes, nodes):
            if node["kind"] == SPLINE and node["count"] == 2:
                at["extra"][3] = model.joints["armature"][node["joint"], node["direction"] + 1]
        return scratch

    def whole_state(self) -> ReducedState:
        """A state with nothing in it, as methods with stages have it."""
        return ReducedState(np.zeros(len(self.tree.nodes), NODE_STATE), np.zeros(self.sizes[1], JOINT_STATE), np.zeros(0, OWN_STATE), np.zeros(self.clock_size))

    def takes_limits(self, mechanism: Mechanism) -> bool:
        """Whether what is bounded in a mechanism is for this method."""
        return False

    def flow(self, samples: Samples | None = None) -> Flow:
        """The mechanism in motion under inputs."""
        pushed, forced = (False, False) if samples is None else (len(samples.wrench) > 0, len(samples.joint) > 0)
        return Flow(self.model, self.tree.nodes, self.work, self.own, self.ties, self.loaded or pushed, forced, self.closed)

    # ---- states

    def _layout(self) -> tuple[tuple[np.dtype, int], ...]:
        return (FLOW_STATE, len(self.tree.nodes)), (JOINT_STATE, self.sizes[1]), (np.dtype("f8"), self.clock_size)

    def _begin(self, state: Any, start: Start, rates: np.ndarray) -> None:
        whole = ReducedState(np.zeros(len(state.nodes), NODE_STATE), state.joints, np.zeros(0, OWN_STATE), state.clock)
        self.starter.start(start, whole)
        for name in ("q", "v", "turn"):
            state.nodes[name] = whole.nodes[name]

    def write_knot(self, numbers: np.ndarray, recording: Recording, knot: int) -> None:
        """Poses, momenta, coordinates and rates of a state."""
        record(self.flow(), self.view(numbers), recording, knot)

    def record(self, numbers: np.ndarray, recording: Any, knot: int) -> None:
        """Write the state into a recording."""
        self.write_knot(numbers, recording, knot)

    def record_call(self, numbers: np.ndarray, recording: Recording) -> KernelCall | None:
        return None if self.reads_tree else KernelCall(record, (self.flow(), self.view(numbers), recording, 0), 0)

    # ---- derivatives

    def new_tape(self, steps: int) -> ExplicitTape:
        """Room for what some steps leave behind."""
        from dalembert.formulations.reduced.explicit_tape import ExplicitTape

        return ExplicitTape(len(self.tree.nodes), self.sizes[1], steps)

    def keep_end(self, tape: Any, numbers: np.ndarray, step: Step) -> None:
        """Write the end of a step that was made into a tape."""
        tape.arrays.end[tape.count] = self.view(numbers).nodes
        tape.count += 1
        tape.steps.append(step)

    # ---- failures

    def failure(self, time: float, dt: float) -> StepFailure:
        """The error for the step that ``advance`` stopped at."""
        where, gap = f"the step at t = {time:.6g} s of {self.mechanism.name!r}", self.outcome[1]
        unmet = self.unmet()
        if unmet is not None:
            return StepFailure(f"{where} has no solution: {unmet}")
        if np.isinf(gap):
            return StepFailure(f"{where} leads beyond a spline: {self.passed}. Stop the run before, or give the spline more control frames.")
        if np.isfinite(gap) and gap > LARGEST_GAP:
            return StepFailure(f"{where} leaves {self.open_row()} open by {gap:.3g} m or rad. Use a smaller dt, or an implicit method such as 'bdf2'.")
        return StepFailure(
            f"{where} leads to velocities beyond {LARGEST_RATE:g} m/s or rad/s with method={self.options.method!r}. Use a smaller dt, or an implicit method such as 'bdf2'."
        )

    def open_row(self) -> str:
        """Name of the row that is open furthest."""
        rows = self.ties.rows
        row = rows[int(np.argmax(np.where(np.isin(rows["kind"], (CLOSED, KEPT)), np.abs(rows["r"]), 0.0)))]
        if row["kind"] == CLOSED:
            return f"row {int(row['part'])} of joint {self.mechanism.joints[int(row['index'])].name!r}, which closes a loop,"
        return f"coupling {self.mechanism.couplings[int(row['index'])].name!r}"


class ExplicitEngine(FlowEngine):
    """A mechanism stepped by rates of change at fixed moments of every step."""

    def __init__(self, mechanism: Mechanism, options: Reduced) -> None:
        super().__init__(mechanism, options)
        self.fractions = FRACTIONS.get(options.method, (0.0, 1.0))
        self.step_options = StepOptions(KINDS[options.method], options.stabilization, options.method == "linearly_implicit")
        count = len(self.tree.nodes)
        self.scratch = StepScratch(np.zeros(count, SUM), new_soft(count))

    def advance(self, numbers: np.ndarray, recording: Recording, source: Source, first: int, count: int, dt: float) -> int:
        """Advance by ``count`` steps of ``dt``, those that are too long in parts. Returns how many succeeded."""
        self.whole, done = dt, 0
        while done < count:
            stride = count - done if self.tape is None else 1
            made = self._whole_steps(numbers, recording, source, first + done, stride, dt)
            done += made
            if made == stride:
                continue
            if not self._divide(numbers, recording, source, first + done, dt):
                break
            done += 1
        return done

    def _whole_steps(self, numbers: np.ndarray, recording: Recording, source: Source, first: int, count: int, dt: float) -> int:
        before, samples = numbers.copy(), source.samples(first, count, self.fractions)
        done = self._run(numbers, samples, recording, first, count, Step(first, 0.0, 1.0), dt)
        if done < count:  # the kernel stops in the middle of a step: do again what came before it
            numbers[:] = before
            if done > 0:
                self._run(numbers, samples, recording, first, done, Step(first, 0.0, 1.0), dt)
            if self.closed and len(samples.motion):
                self.asked = numbers.copy(), samples.motion[done, [0, -1], 0].copy()
        return done

    def _divide(self, numbers: np.ndarray, recording: Recording, source: Source, step: int, dt: float) -> bool:
        """Make a step in the fewest of 2, 4, ... parts that are not too long, or in the most, however long they are.

        False, and the state as it was, where none succeed, and for methods that say themselves that a step is too long for them.
        """
        options, most = self.step_options, self.options.max_halvings
        if not options.watched:
            return False
        if any(self._parts(numbers, recording, source, step, 1 << halving, dt) for halving in range(1, most + 1)):
            return True
        self.step_options = options._replace(watched=False)
        try:
            return self._parts(numbers, recording, source, step, 1 << most, dt)
        finally:
            self.step_options = options

    def _parts(self, numbers: np.ndarray, recording: Recording, source: Source, step: int, count: int, dt: float) -> bool:
        before, mark = numbers.copy(), None if self.tape is None else self.tape.mark()
        for part in range(count):
            samples = source.samples(step, 1, tuple((part + fraction) / count for fraction in self.fractions))
            if self._run(numbers, samples, recording, step, 1, Step(step, part / count, 1.0 / count), dt) == 0:
                numbers[:] = before
                if self.tape is not None:
                    self.tape.go_back(mark)
                return False
        recording.substeps[step + 1] = recording.iterations[step + 1] = count
        return True

    def _arguments(self, numbers: np.ndarray, samples: Samples, recording: Recording, first: int, count: int, dt: float) -> Any:
        return self.flow(samples), self.view(numbers), samples, self.step_options, self.scratch, recording, first, count, dt

    def kernel_call(self, numbers: np.ndarray, recording: Recording, source: Source, count: int, dt: float) -> KernelCall | None:
        arguments = self._arguments(numbers, source.samples(0, count, self.fractions), recording, 0, count, dt)
        return KernelCall(run_steps, arguments, 0, stops=False)

    def _run(self, numbers: np.ndarray, samples: Samples, recording: Recording, first: int, count: int, step: Step, dt: float) -> int:
        """``count`` steps like ``step``, of which there is one with a tape. Returns how many succeeded; where fewer did, the state is lost."""
        if self.tape is not None:
            self.tape.keep(self.view(numbers), samples, dt)
        done, gap = self.enter(run_steps, count == 1, *self._arguments(numbers, samples, recording, first, count, step.length * dt))
        if done < count:
            self.outcome, self.passed = (0, float(gap)), beyond(self.mechanism, self.tree, self.own.nodes)
        if self.tape is not None:
            if done == 0:
                self.tape.samples.pop()
            else:
                self.keep_end(self.tape, numbers, step)
        return int(done)

    # ---- derivatives

    @property
    def pulls(self) -> bool:
        """Whether the equations of its steps can be pulled back; steps are differenced as a whole otherwise."""
        return self.options.method in ("rk4", "semi_implicit") and not self.closed and not np.any(self.tree.nodes["driven"])

    def adjoint(self, recording: Any, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, cotangents: Cotangents) -> Adjoint:
        """A backward pass over the first ``knots`` knots of a run."""
        from dalembert.formulations.reduced.explicit_derivative import ExplicitAdjoint
        from dalembert.formulations.reduced.stepwise import FlowSteps
        from dalembert.formulations.reduced.stepwise_derivative import StepwiseAdjoint

        arguments = self, recording, inputs, knots, dt, coordinates, cotangents
        return ExplicitAdjoint(*arguments) if self.pulls else StepwiseAdjoint(FlowSteps(self), *arguments)

    def forward(
        self, recording: Any, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, models: Sequence[Any], step: float, change: InputBars,
    ) -> Forward:
        """A forward pass over the first ``knots`` knots of a run."""
        from dalembert.formulations.reduced.stepwise import FlowSteps
        from dalembert.formulations.reduced.stepwise_derivative import StepwiseForward

        return StepwiseForward(FlowSteps(self), self, recording, inputs, knots, dt, coordinates, models, step, change)
