"""A forward pass over a run of the variational integrator."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import GradientError
from dalembert.formulations.maximal.bars import new_bars
from dalembert.formulations.maximal.forward import PASSES, MaximalForward, check_finite, turn_between, turned
from dalembert.formulations.maximal.tape import Tape
from dalembert.formulations.variational.adjoint import open_interval
from dalembert.formulations.variational.equations import Interval
from dalembert.formulations.variational.tape import evaluate_interval, recall_interval, spins_after
from dalembert.model.records import CONSTRAINT, Model


class VariationalForward(MaximalForward):
    """The tangent of a state is (x, phi, p, l, along) per body and the momenta of reflected inertias."""

    def begin(self, pose: np.ndarray, velocity: np.ndarray, target: np.ndarray) -> None:
        bodies = self.engine.sizes[0]
        self.bars = new_bars(self.model)
        momentum, self.spin = self.momenta_at_start(pose, velocity)
        self.state = np.concatenate([pose, momentum, np.zeros((bodies, 6))], axis=1)
        self.note(0)

    def note(self, knot: int) -> None:
        self.tangent.position[knot], self.orientation[knot] = self.state[:, :3], self.state[:, 3:6]
        self.tangent.momentum[knot], self.tangent.spin[knot] = self.state[:, 6:12], self.spin

    def momentum_at(self, knot: int) -> Any:
        return lambda step, model: self.recording.momentum[knot] + step * self.tangent.momentum[knot]

    def advance(self, tape: Tape, index: int, step: Any, knot: int) -> None:
        arrays, engine = tape.arrays, self.engine
        before, dt = arrays.clock[index]
        bodies, joints, ties = arrays.bodies[index], arrays.joints[index], arrays.couplings[index]
        push, given, target, tension = self.inputs_of(knot, step.start + step.length)
        h = 0.5 * (before + dt)
        longer, later = self.longer[1], 0.5 * (self.longer[0] + self.longer[1])
        n, rows, couplings = engine.sizes
        self.open_nodes(tape, index)
        work = self.graph.work
        du, dmu, dtie, dnode = np.zeros((n, 6)), np.zeros((rows, 6)), np.zeros(couplings), np.zeros((len(self.touching), 3))

        def evaluate(offset: float, model: Model) -> np.ndarray:
            self.recall(tape, index)
            at = work.bodies[:-1]
            at["x"] = bodies["x"] + offset * self.state[:, :3]
            at["q"] = turned(bodies["q"], offset * self.state[:, 3:6])
            at["p"], at["l"] = bodies["p"] + offset * self.state[:, 6:9], bodies["l"] + offset * self.state[:, 9:12]
            at["along"] = bodies["along"] + offset * self.state[:, 12:]
            at["v"], at["w"] = bodies["v"] + offset * du[:, :3], bodies["w"] + offset * du[:, 3:]
            at["push"] = bodies["push"] + offset * push
            rows = work.joints
            rows["spin"], rows["mu"] = joints["spin"] + offset * self.spin, joints["mu"] + offset * dmu
            rows["input"], rows["target"] = joints["input"] + offset * given, joints["target"] + offset * target
            work.couplings["mu"], work.couplings["input"] = ties["mu"] + offset * dtie, ties["input"] + offset * tension
            self.move_nodes(offset, dnode, model)
            length, kick = dt + offset * longer, h + offset * later
            if not self.evaluate(Interval(model, work, length, kick, engine.compliance)):
                raise GradientError(f"the step at knot {knot} of {self.mechanism.name!r} has no neighbours to be differentiated with")
            return np.concatenate([self.node_values(model, length, kick).ravel(), self._after(model, length, reference)])

        self.recall(tape, index)
        self.move_nodes(0.0, dnode, self.model)
        self.evaluate(Interval(self.model, work, dt, h, engine.compliance))
        self.hold()
        reference = work.bodies["qn"][:-1].copy()
        speed = max(1.0, np.abs(bodies["v"]).max(initial=0.0), np.abs(bodies["w"]).max(initial=0.0))
        lighter = self.speeds(self.state[:, 6:12])
        size = max(np.abs(self.state[:, :6]).max(initial=0.0), np.abs(lighter).max(initial=0.0) / speed)
        size = max(size, 1e-3 * np.abs(push).max(initial=0.0), 1e-3 * np.abs(given).max(initial=0.0), 1e-3 * np.abs(tension).max(initial=0.0), np.abs(target).max(initial=0.0))
        size = max(size, abs(longer) / dt, abs(later) / h)
        for _ in range(PASSES + self.more_passes):
            nodes, left, right, tied, _ = self._split(self.difference(evaluate, size))
            self.recall(tape, index)
            if not self.open(Interval(self.model, work, dt, h, engine.compliance)):
                raise GradientError(f"the step at knot {knot} of {self.mechanism.name!r} cannot be differentiated: its equations are singular")
            found = self.solve(left, right, tied, self.node_rows(nodes, dnode, h))
            du, dmu, dtie, dnode = du - found[0], dmu - found[1], dtie - found[2], dnode - found[3]
            size = max(size, np.abs(du).max(initial=0.0) / speed, self.loads(joints["mu"], dmu))
            # impulses have another unit, and what is left of them is divided by the step in forces
            if all(np.abs(part).max(initial=0.0) <= 1e-12 * np.abs(whole).max(initial=0.0) for part, whole in zip(found, (du, dmu, dtie))):
                break
        nodes, *_, after = self._split(check_finite(self.difference(evaluate, size), self.mechanism.name))
        self.note_nodes(nodes, step, knot)
        state, spin = np.split(after, [18 * n])
        self.state, self.spin = state.reshape(n, 18), spin.reshape(-1, 6)
        if step.start == 0.0:
            self.tangent.row_force[knot], self.tangent.coupling_force[knot] = dmu / h, dtie / h

    #: tangents of the lengths (s) of the interval before and of the interval itself
    longer: tuple[float, float] = (0.0, 0.0)

    #: passes for bounds of friction that follow from the unknowns
    more_passes: int = 0

    def loads(self, mu: np.ndarray, change: np.ndarray) -> float:
        """How large a change of impulses (joints, 6) is beside themselves, where friction follows from them."""
        return 0.0

    # ---- what may touch: nothing here

    def open_nodes(self, tape: Tape, index: int) -> None:
        """Begin an entry: which nodes are part of it."""

    def recall(self, tape: Tape, index: int) -> None:
        """Put an entry into the work."""
        recall_interval(self.model, self.graph.work, tape.arrays, index)

    def move_nodes(self, offset: float, tangent: np.ndarray, model: Model) -> None:
        """Numbers of the nodes of a model, and their impulses (nodes, 3) so far along their tangents."""

    def hold(self) -> None:
        """Take what was just evaluated as the step itself."""

    def evaluate(self, interval: Interval) -> bool:
        """The equations at what is in the work."""
        return evaluate_interval(interval)

    def open(self, interval: Interval) -> bool:
        """Factor Newton's matrix at the solution."""
        return open_interval(interval, self.bars)

    def node_values(self, model: Model, dt: float, h: float) -> np.ndarray:
        """(numbers,) what the nodes look at, and their forces."""
        return np.zeros(0)

    def node_rows(self, values: np.ndarray, tangent: np.ndarray, h: float) -> np.ndarray:
        """(nodes, 3) their rows, linearised, from tangents of ``node_values`` and of the impulses."""
        return np.zeros((0, 3))

    def note_nodes(self, values: np.ndarray, step: Any, knot: int) -> None:
        """Keep the tangents of forces that are read at knots."""

    def _after(self, model: Model, dt: float, reference: np.ndarray) -> np.ndarray:
        """Residuals and the next state, one after the other; orientations relative to those of the run."""
        work = self.graph.work
        at, rows = work.bodies[:-1], work.joints
        J = model.bodies["inertia"][:-1].reshape(-1, 3, 3)
        Jw = np.einsum("nij,nj->ni", J, at["w"])
        p = model.bodies["mass"][:-1, None] * at["v"]
        l = 0.5 * dt * (at["s"][:, None] * Jw - np.cross(at["w"], Jw))
        along = np.zeros((len(p), 6))
        for coupling, tie in zip(model.couplings, work.couplings):
            if coupling["law"] != CONSTRAINT:
                for e in range(int(coupling["first"]), int(coupling["first"] + coupling["ends"])):
                    along[model.ends[e]] += tie["mu"] * work.ends["H"][e]
        spin = np.zeros((len(rows), 6))
        spins_after(model, work, dt, spin)
        near = turn_between(reference, at["qn"])
        residuals = np.where(self.rows, rows["r"], 0.0)
        parts = at["r"], residuals, work.couplings["r"], np.concatenate([at["xn"], near, p + along[:, :3], l + along[:, 3:], along], axis=1), spin
        return np.concatenate([np.ravel(part) for part in parts])

    #: how many ``node_values`` there are
    numbers: int = 0

    def _split(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        n, rows, couplings = self.engine.sizes
        whole = values * np.ones(self.numbers + 24 * n + 12 * rows + couplings)
        nodes, a, b, c, d = np.split(whole, np.cumsum([self.numbers, 6 * n, 6 * rows, couplings]))
        return nodes, a.reshape(n, 6), b.reshape(-1, 6), c, d
