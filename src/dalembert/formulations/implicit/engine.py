"""What steps a mechanism by the implicit methods: in general, fully constrained, and by the baseline."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import StepFailure
from dalembert.formulations.implicit import kinematic, semi_implicit
from dalembert.formulations.implicit.stage import SINGULAR, SOLVED, STAGE
from dalembert.formulations.implicit.step import run_steps
from dalembert.formulations.implicit.tableaus import MULTISTEP, TABLEAUS
from dalembert.formulations.maximal.engine import Inputs, MaximalEngine, Recording
from dalembert.formulations.maximal.redundancy import analyse_redundancy
from dalembert.formulations.maximal.series import Motion
from dalembert.formulations.maximal.substeps import SMALLEST
from dalembert.formulations.maximal.system import System, build_system
from dalembert.formulations.maximal.targets import largest_moves, unmet_targets
from dalembert.linalg import WIDTH, analyse
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.records import AXLE

if TYPE_CHECKING:
    from dalembert.formulations.implicit import Implicit

BODY = 7  # unknowns of a body: v and q'
#: how many times the work of a factorisation exact Newton may cost
EXACT_NEWTON = 6.0


class KnotReader(MaximalEngine):
    """Reads knots whose velocities and forces are those of the steps themselves."""

    exact = True


class ImplicitEngine(MaximalEngine):
    """A mechanism's records, graph and state, stepped by BDF or DIRK methods."""

    exact = True

    def __init__(self, mechanism: Mechanism, options: Implicit) -> None:
        super().__init__(mechanism, options.dt)
        self.options = options
        self.one_start = options.method in MULTISTEP
        self.tableau = TABLEAUS.get(options.method, TABLEAUS["sdirk2"])
        self.nodes = tuple(self.tableau.c)
        bodies, joints, couplings = self.sizes
        if np.any(self.records.joints["armature"] > 0.0):
            self.records = self.records._replace(axles=np.zeros(joints, AXLE))
        self.stages = np.zeros(bodies, STAGE)
        self.impulse, self.coupling_impulse = np.zeros((joints, 6)), np.zeros(couplings)
        self.row_residual, self.coupling_residual = np.zeros((joints, 6)), np.zeros(couplings)
        self.scratch = np.zeros((13, 12))
        self.asked = np.repeat(self.records.joints["target"][None], 2, axis=0)
        self._reader = KnotReader(mechanism, options.dt)

    def _build(self) -> System:
        """The graph with edges between joined bodies, for exact Newton, unless these cost too much fill.

        Without them the change of a joint's force with the pose of the other body is left to the iteration.
        """
        work = build_system(self.records, BODY).structure.work
        exact = build_system(self.records, BODY, couple_bodies=True)
        return exact if exact.structure.work < EXACT_NEWTON * work else build_system(self.records, BODY)

    def start(self, position: np.ndarray, orientation: np.ndarray, velocity: np.ndarray) -> None:
        super().start(position, orientation, velocity)
        stages, half = self.stages, 0.5 * velocity[:, 3:]
        stages["x0"], stages["q0"], stages["v0"] = position, orientation, velocity[:, :3]
        w, u = orientation[:, :1], orientation[:, 1:]
        stages["w0"][:, 0] = -np.sum(u * half, axis=1)
        stages["w0"][:, 1:] = w * half + np.cross(u, half)
        if len(self.records.axles):
            inertia = self.records.joints["armature"]
            self.records.axles["r0"] = np.divide(self.records.joints["spin"], inertia, out=np.zeros_like(inertia), where=inertia > 0.0)

    def state(self) -> tuple[np.ndarray, ...]:
        return *super().state(), self.stages.copy(), self.records.axles.copy()

    def restore(self, state: tuple[np.ndarray, ...]) -> None:
        super().restore(state[:-2])
        self.stages[:], self.records.axles[:] = state[-2:]

    def read_knot(self) -> tuple[Motion, Recording]:
        reader = self._reader
        reader.records.bodies[["x", "q", "p", "l", "force", "torque"]] = self.records.bodies[["x", "q", "p", "l", "force", "torque"]]
        for name in ("coordinate", "input", "target", "rate", "acceleration"):
            reader.records.joints[name] = self.records.joints[name]
        reader.clock[:] = self.clock
        return reader.read_knot()

    def run(self, recording: Recording, inputs: Inputs, first: int, count: int, dt: float) -> int:
        options, system = self.options, self.system
        outcome, done, size = run_steps(
            self.records, self.stages, system.edges, system.blocks, system.structure.schedule, system.vector, self.impulse,
            self.coupling_impulse, self.row_residual, self.coupling_residual, self.scratch, self.clock, self.base_load, recording,
            inputs, self.tableau, MULTISTEP.get(options.method, 0), first, count, dt, self.compliance, options.tolerance,
            options.max_iterations,
        )
        return self._note(outcome, done, size, inputs, dt)

    def _note(self, outcome: int, done: int, size: float, inputs: Inputs, dt: float) -> int:
        """Keep what a failed step was asked for, and how it ended."""
        self.outcome = (int(outcome), float(size))
        if outcome != SOLVED and (dt == self.dt or self.options.accuracy is not None):
            self.asked = inputs.target[done : done + 2].copy()
        return int(done)

    def step_error(self, dt: float) -> float:
        """Estimated error (m) of the poses of the step just made: their distance from those of the embedded method."""
        stages, count = self.stages, len(self.tableau.b)
        weights = dt * (self.tableau.b - self.tableau.embedded)
        moved = np.einsum("s,nsc->nc", weights, stages["kx"][:, :count])
        turned = np.einsum("s,nsc->nc", weights, stages["kq"][:, :count]) * 2.0 * self.records.bodies["length"][:-1, None]
        return float(max(np.max(np.linalg.norm(part, axis=1)) for part in (moved, turned)))

    @property
    def solved(self) -> bool:
        return self.outcome[0] == SOLVED

    def _moves(self) -> str:
        """What the drives that move most do in the failed step."""
        moves = largest_moves(self, *self.asked)
        return f"; drives move {moves} in it" if moves else ""

    def failure(self, time: float) -> StepFailure:
        """The error for the step that ``run`` stopped at."""
        outcome, size = self.outcome
        unmet = unmet_targets(self, self.asked[1])
        if unmet is not None:
            return StepFailure(f"the step at t = {time:.6g} s of {self.mechanism.name!r} has no solution: {unmet}")
        reason = "a pivot block is singular" if outcome == SINGULAR else "Newton did not converge"
        self.records.joints["r"] = self.row_residual
        if outcome == SOLVED:
            return StepFailure(
                f"the step at t = {time:.6g} s of {self.mechanism.name!r} does not reach an accuracy of {self.options.accuracy:g} m "
                f"even in steps of {SMALLEST * self.options.dt:.3g} s. Ask for less accuracy, or check for jumps of forces and targets there."
            )
        return StepFailure(
            f"the step at t = {time:.6g} s of {self.mechanism.name!r} has no solution with dt = {self.options.dt:g} s or "
            f"{1 << self.options.max_halvings} substeps: {reason}; worst is {self.worst_row()}, residual {size:.3g} m/s"
            f"{self._moves()}. Use a smaller dt, or check the model and its targets there."
        )


class KinematicEngine(ImplicitEngine):
    """A fully constrained mechanism: poses from the drives, then velocities, then forces."""

    def __init__(self, mechanism: Mechanism, options: Implicit) -> None:
        super().__init__(mechanism, options)
        self.freedom = analyse_redundancy(self).freedom
        world, joints = self.sizes[0], self.records.joints
        pairs = [(int(j["parent"]), int(j["child"])) for j in joints]
        edges = np.array([p for p in pairs if world not in p], dtype=np.int64).reshape(-1, 2)
        self.graph = analyse([6] * world, edges)
        self.between = np.array([[-1, -1] if world in (a, b) else [self.graph.block(a, b), self.graph.block(b, a)] for a, b in pairs])
        self.graph_blocks, self.graph_vector = self.graph.new_blocks(), self.graph.new_vector()
        self.path = np.zeros((world, kinematic.ORDERS + 1, WIDTH))
        self.path_sizes = np.zeros(self.path.shape[1:])
        self.pulled = np.zeros((len(joints), 6))
        self.soft = np.where(joints["row_direction"] >= 0, 1.0 / options.drive_weight, 1.0)

    @property
    def applies(self) -> bool:
        """True when the drives determine the pose."""
        return self.freedom == 0 and not self.mechanism.couplings

    def state(self) -> tuple[np.ndarray, ...]:
        return *super().state(), self.path.copy(), self.path_sizes.copy()

    def restore(self, state: tuple[np.ndarray, ...]) -> None:
        super().restore(state[:-2])
        self.path[:], self.path_sizes[:] = state[-2:]

    def run(self, recording: Recording, inputs: Inputs, first: int, count: int, dt: float) -> int:
        options = self.options
        outcome, done, size = kinematic.run_steps(
            self.records, self.stages, self.path, self.path_sizes, self.soft, self.graph_blocks, self.graph.schedule, self.graph_vector, self.graph.diagonal,
            self.between, self.impulse, self.coupling_impulse, self.row_residual, self.coupling_residual, self.pulled, self.clock,
            self.base_load, recording, inputs, MULTISTEP[options.method], first, count, dt, options.tolerance, options.max_iterations,
        )
        return self._note(outcome, done, size, inputs, dt)

    def failure(self, time: float) -> StepFailure:
        """The error for targets that no pose can meet, or none within a step."""
        if self.outcome[0] == kinematic.SINGULAR:
            reason = "the drives hardly hold it in that pose. Avoid the pose, or use solver='general'."
        else:
            reason = unmet_targets(self, self.asked[1]) or f"none was found from the pose before{self._moves()}. Use smaller steps or smoother targets."
        return StepFailure(f"the step at t = {time:.6g} s of {self.mechanism.name!r} has no solution: {reason}")


class SemiImplicitEngine(MaximalEngine):
    """The same mechanism stepped by semi-implicit Euler."""

    exact = True

    def __init__(self, mechanism: Mechanism, options: Implicit) -> None:
        super().__init__(mechanism, options.dt)
        self.options = options
        bodies, joints, couplings = self.sizes
        self.scratch = (
            np.zeros((bodies, 6)), np.zeros((bodies + 1, 6)), np.zeros((joints, 6)), np.zeros(couplings), np.zeros((joints, 6)), np.zeros(couplings),
        )

    def run(self, recording: Recording, inputs: Inputs, first: int, count: int, dt: float) -> int:
        system = self.system
        done, size = semi_implicit.run_steps(
            self.records, system.blocks, system.structure.schedule, system.vector, self.clock, self.base_load, recording, inputs,
            first, count, dt, self.options.stabilization, self.compliance, *self.scratch,
        )
        self.outcome = (SOLVED if done == count else SINGULAR, float(size))
        return int(done)

    def failure(self, time: float) -> StepFailure:
        """The error for the step that ``run`` stopped at."""
        return StepFailure(
            f"the step at t = {time:.6g} s of {self.mechanism.name!r} leads to velocities that are not finite. "
            "Use a smaller dt, or a stabilization below 1."
        )
