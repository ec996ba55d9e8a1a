"""What steps a mechanism in joint coordinates."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import StepFailure
from dalembert.formulations.engine import Inputs, Knot, Start
from dalembert.formulations.implicit.tableaus import MULTISTEP, TABLEAUS
from dalembert.formulations.maximal.engine import MaximalEngine
from dalembert.formulations.maximal.recording import Recording, new_recording
from dalembert.formulations.reduced.maps import OWN_STATE, begin_watch, build_maps, check_maps, start_maps, trouble
from dalembert.formulations.reduced.options import Reduced
from dalembert.formulations.reduced.reading import TreeReader
from dalembert.formulations.reduced.start import Starter, chart_numbers, node_name
from dalembert.formulations.reduced.state import JOINT_STATE, NODE_STATE, ReducedState, new_scratch
from dalembert.formulations.reduced.step import StepOptions, record, run_steps
from dalembert.formulations.reduced.ties import CLOSED, KEPT, build_ties
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.compile import new_work
from dalembert.model.compile_forces import coupling_names
from dalembert.model.tree import AXIS, POINT, SPLINE, build_tree
from dalembert.solvers.outcomes import SINGULAR, SOLVED, TOO_FAST
from dalembert.solvers.redundant import COMPLIANCE


class ReducedEngine(MaximalEngine):
    """A mechanism stepped in the coordinates of its spanning trees.

    Forces are read by acceleration-level solves on the graph of bodies and joints, as in ``Implicit``.
    """

    exact, needs_rows = True, False
    state_type, joint_state = ReducedState, JOINT_STATE

    def __init__(self, mechanism: Mechanism, options: Reduced) -> None:
        super().__init__(mechanism, options)
        self.tree = build_tree(mechanism, self.model)
        self.maps = build_maps(mechanism, self.tree)
        self.ties = build_ties(mechanism, self.model, self.tree, self.maps)
        self.one_start = options.method in MULTISTEP
        tableau = TABLEAUS.get(options.method, TABLEAUS["sdirk2"])
        self.nodes = tuple(tableau.c)
        self.input_node = 1.0 if options.method in MULTISTEP else 0.5
        self.step_options = StepOptions(
            COMPLIANCE, options.tolerance, options.max_iterations, MULTISTEP.get(options.method, 0), tableau,
        )
        self.own = new_scratch(len(self.tree.nodes), int(np.count_nonzero(self.tree.nodes["kind"] == SPLINE)), self.maps)
        self.model = self.model._replace(splines=self.tree.splines)
        self.tree.nodes["switch"] = options.switch_charts
        charts = chart_numbers(mechanism, self.tree, options.rotations)
        self.starter = Starter(mechanism, self.model, self.tree, self.own, charts, options.switch_charts)
        self.work = new_work(self.model)
        self.work.bodies["node"][:-1] = self.tree.node_of

    # ---- states

    def _layout(self) -> tuple[tuple[np.dtype, int], ...]:
        return (NODE_STATE, len(self.tree.nodes)), (JOINT_STATE, self.sizes[1]), (OWN_STATE, len(self.maps.own)), (np.dtype("f8"), self.clock_size)

    def _begin(self, state: ReducedState, start: Start, rates: np.ndarray) -> None:
        self.starter.start(start, state)
        start_maps(self.mechanism, start, rates, state.maps)

    @property
    def reads_tree(self) -> bool:
        """Whether the graph of bodies and joints does not know all joints, and the tree itself is read."""
        return not all(joint.type.has_rows for joint in self.mechanism.joints)

    def pose(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions (n, 3) and orientations (n, 4)."""
        recording = new_recording(1, *self.sizes)
        record(self.model, self.tree.nodes, self.own, self.view(numbers), recording, 0)
        return recording.position[0], recording.orientation[0]

    def coordinates(self, numbers: np.ndarray) -> np.ndarray:
        return self.view(numbers).joints["coordinate"].copy() if self.reads_tree else super().coordinates(numbers)

    def knot(self, numbers: np.ndarray, inputs: Inputs, rates: np.ndarray) -> Knot:
        if not self.reads_tree:
            return super().knot(numbers, inputs, rates)
        recording = new_recording(1, *self.sizes)
        record(self.model, self.tree.nodes, self.own, self.view(numbers), recording, 0)
        reader = self._reader(recording, inputs, self.whole, recording.coordinate[0])
        found = reader.velocities()
        velocity, rate = np.concatenate([found["velocity"][0], found["angular_velocity"][0]], axis=1), found["rate"][0]
        kinetic = 0.5 * float(np.sum(self.momentum_of(velocity) * velocity) + np.sum(self.model.joints["armature"] * rate**2))
        return Knot(velocity, rate, kinetic + float(reader.pose()["potential"][0]), kinetic)

    def _reader(self, recording: Recording, inputs: Inputs, dt: float, coordinate: np.ndarray, pushed: np.ndarray | None = None) -> Any:
        if not self.reads_tree:
            return super()._reader(recording, inputs, dt, coordinate, pushed)
        return TreeReader(
            self.mechanism, self.model, self.compliance, recording, inputs, dt, coordinate, self.exact, self.trusted(recording), pushed,
            tree=self.tree, ties=self.ties,
        )

    # ---- running

    def record(self, numbers: np.ndarray, recording: Recording, knot: int) -> None:
        record(self.model, self.tree.nodes, self.own, self.view(numbers), recording, knot)

    def run(self, numbers: np.ndarray, recording: Recording, inputs: Inputs, first: int, count: int, dt: float) -> int:
        begin_watch(self.maps, self.view(numbers).maps)
        outcome, done, size = self.enter(
            run_steps, count == 1, self.model, self.tree.nodes, self.view(numbers), inputs, self.step_options, self.work, self.own, self.ties, recording, first, count, dt,
        )
        self.outcome = (int(outcome), float(size))
        check_maps(self.mechanism, self.maps)
        if outcome != SOLVED:
            self.note_asked(numbers, inputs, int(done), dt)
        return int(done)

    # ---- failures

    def failure(self, time: float, dt: float) -> StepFailure:
        """The error for the step that ``run`` stopped at."""
        outcome, size = self.outcome
        where = f"the step at t = {time:.6g} s of {self.mechanism.name!r}"
        unmet = self.unmet()
        if unmet is not None:
            return StepFailure(f"{where} has no solution: {unmet}")
        mapped = trouble(self.mechanism, self.maps)
        if mapped is not None:
            return StepFailure(f"{where} has no solution: {mapped}")
        beyond = self.beyond()
        if beyond:
            return StepFailure(f"{where} leads beyond a spline: {beyond}. Stop the run before, or give the spline more control frames.")
        if outcome == TOO_FAST:
            return StepFailure(
                f"{where} has no solution with dt = {dt:g} s or {1 << self.options.max_halvings} substeps: {self.fastest_turn()}, too far for one of "
                "these to tell where it comes out. Use a smaller dt.")
        reason = "a pivot is singular" if outcome == SINGULAR else "Newton did not converge"
        return StepFailure(
            f"{where} has no solution with dt = {dt:g} s or {1 << self.options.max_halvings} substeps: {reason}; "
            f"worst is {self.worst_coordinate()}, residual {size:.3g} m/s. Use a smaller dt, or check the model and its targets there."
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

    def beyond(self) -> str:
        """Joints whose coordinates of the last try lie beyond their splines."""
        found = []
        for index in np.flatnonzero(self.tree.nodes["kind"] == SPLINE):
            node, x = self.tree.nodes[index], self.own.nodes["x"][index]
            ends, x = node["cells"][: node["count"]], x[: node["count"]]
            if not node["closed"] and (np.any(x < 0.0) or np.any(x > ends)):
                found.append(f"joint {node_name(self.mechanism, self.tree, index)!r} would be at {np.round(x, 6).tolist()}, and its spline goes from 0 to {ends.tolist()}")
        return "; ".join(found)
