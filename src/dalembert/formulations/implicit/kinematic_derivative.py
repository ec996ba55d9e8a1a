"""Backward and forward passes over runs of the kinematic solver; general steps among them are those of ``ImplicitAdjoint``."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import GradientError
from dalembert.formulations.implicit import tape as general
from dalembert.formulations.implicit.derivative import ImplicitAdjoint, product
from dalembert.formulations.implicit.equations import Stage
from dalembert.formulations.implicit.forward import ImplicitForward
from dalembert.formulations.implicit.kinematic_tape import KINEMATIC, TRAPEZOID, pull_steps
from dalembert.formulations.implicit.tape import evaluate_stage, recall_stage
from dalembert.formulations.maximal.adjoint import KnotBars
from dalembert.formulations.maximal.forward import check_finite
from dalembert.formulations.maximal.stage_adjoint import LOOSE
from dalembert.formulations.maximal.tape import Tape
from dalembert.model.least_norm import LeastNorm
from dalembert.model.placement import Placement
from dalembert.model.records import Model


class KinematicAdjoint(ImplicitAdjoint):
    """Forces that steps recorded are those at their ends."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        #: cotangents of forces at the first knot of the segment after, which the last step of a segment made
        self.carried = np.zeros((self.engine.sizes[1], 6))

    def recorded_forces(self, first: int, last: int) -> np.ndarray:
        recording = type(self.recording)(*(array[: self.knots] for array in self.recording))
        return self.engine.trusted(recording)[first:last]

    def _forces(self, tape: Tape, first: int) -> np.ndarray:
        """(entries, joints, 6) cotangents of forces that the tape's steps recorded."""
        forces = np.zeros((tape.count, self.engine.sizes[1], 6))
        if self.pulled is None:
            return forces
        known = self.recorded_forces(first, first + len(self.pulled.row))
        rows = np.where(known[:, None, None], self.pulled.row, 0.0)
        ends = general_ends(tape)
        for entry, step in zip(ends, tape.steps):
            if step.start + step.length > 1.0 - 1e-12:
                forces[entry] = rows[step.knot + 1] if step.knot + 1 < len(rows) else self.carried
        self.carried = rows[0]
        return forces

    def pull(self, tape: Tape, knots: KnotBars, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        (bodies, joints, couplings), count, engine = self.engine.sizes, tape.count, self.engine
        pushes, rows, tensions = np.zeros((count, bodies, 6)), np.zeros((count, 2, joints, 6)), np.zeros((count, couplings))
        begins, forces = self.begins(tape), self._forces(tape, first)
        kinematic = tape.arrays.kind[:count, 2] > KINEMATIC
        last = count
        while last > 0:
            begin = last
            while begin > 0 and kinematic[begin - 1] == kinematic[last - 1]:
                begin -= 1
            part = slice(begin, last)
            arrays = type(tape.arrays)(*(array[part] for array in tape.arrays))
            if kinematic[last - 1]:
                fine = pull_steps(
                    self.model, engine.graph.work, engine.scratch, engine.tableau, arrays, 0, last - begin, self.bars, self.steps, knots, begins[part],
                    forces[part], np.zeros((bodies, 6)), pushes[part], rows[part],
                )
            elif np.any(forces[part]):
                raise GradientError(
                    f"forces of {self.mechanism.name!r} at a knot where its drives hardly hold it cannot be differentiated: use solver='general'"
                )
            else:
                fine = 0.0 <= general.pull_steps(
                    self.model, engine.graph.work, engine.own, engine.compliance, engine.tableau, arrays, last - begin, self.bars, self.steps, knots,
                    begins[part], pushes[part], rows[part], tensions[part],
                ) < LOOSE
            if not fine:
                raise GradientError(f"a step of {self.mechanism.name!r} cannot be differentiated: its drives hardly hold it there")
            last = begin
        return self.by_step(tape, pushes, rows, tensions)


def general_ends(tape: Tape) -> np.ndarray:
    """The last entry of each of a tape's steps."""
    numbers, stages = tape.arrays.kind[: tape.count, 0], tape.arrays.kind[: tape.count, 1]
    return np.flatnonzero(numbers == stages - 1)


class KinematicForward(ImplicitForward):
    """Poses from the rows, velocities from the formula, forces by differences of the least-norm solution."""

    def advance(self, tape: Tape, index: int, step: Any, knot: int) -> None:
        arrays, entry = tape.arrays, self.entry
        order = int(arrays.kind[entry, 2])
        if order <= KINEMATIC:
            super().advance(tape, index, step, knot)
            return
        gamma = float(arrays.clock[entry, 0])
        newer, older = (4.0 / 3.0, -1.0 / 3.0) if order == KINEMATIC + 2 else (1.0, 0.0)
        yp, rp = newer * self.state + older * self.older, newer * self.rate + older * self.older_rate
        if order == TRAPEZOID:
            yp = yp.copy()
            yp[:, :7] += gamma * self.state[:, 7:]
        push, given, target, _ = self.inputs_of(knot, step.start + step.length)
        bodies = arrays.bodies[entry]
        position, q = bodies["xp"] + gamma * bodies["vs"], bodies["qp"] + gamma * bodies["ws"]
        pose = self._pose(arrays, entry, position, q, target)
        dq = product(q, np.concatenate([np.zeros((len(q), 1)), 0.5 * pose[:, 3:]], axis=1))
        dv, dw = (pose[:, :3] - yp[:, :3]) / gamma, (dq - yp[:, 3:7]) / gamma
        if order == TRAPEZOID:
            yp[:, 7:10], yp[:, 10:] = 0.5 * (self.state[:, 7:10] + dv), 0.5 * (self.state[:, 10:] + dw)
        rate, forces = self._forces(arrays, entry, gamma, yp, rp, dv, dw, push, given, target, order == TRAPEZOID)
        if step.start + step.length > 1.0 - 1e-12:
            self.tangent.row_force[knot + 1] = forces
        self.values = np.concatenate([position, q, bodies["vs"], bodies["ws"]], axis=1)
        self.older, self.older_rate = self.state, self.rate
        self.state, self.rate = np.concatenate([pose[:, :3], dq, dv, dw], axis=1), rate
        self.entry += 1

    def _pose(self, arrays: Any, entry: int, position: np.ndarray, q: np.ndarray, target: np.ndarray) -> np.ndarray:
        """(n, 6) tangent of the pose that the rows allow."""
        work, joints = self.engine.reading.work, arrays.joints[entry]
        place = position, q / np.linalg.norm(q, axis=1, keepdims=True)

        def opened(offset: float, model: Model) -> np.ndarray:
            placement = Placement(self.mechanism, model, work)
            work.joints["target"] = joints["target"] + offset * target
            placement.put(*place, joints["coordinate"])
            rows = placement.opened()[0]
            return rows[np.arange(6) < model.joints["locks"][:, None]]

        change = self.difference(opened, float(np.abs(target).max(initial=0.0)))
        placement = Placement(self.mechanism, self.model, work)
        work.joints["target"] = joints["target"]
        placement.put(*place, joints["coordinate"])
        soft = self.engine.scratch.normal.soft[np.arange(6) < self.model.joints["locks"][:, None]]
        system = LeastNorm(placement, 1.0 / soft)
        motion, _ = system.solve(system.G.T @ (soft * np.broadcast_to(change, (len(soft),))))
        return -check_finite(motion, self.mechanism.name).reshape(-1, 6)

    def _forces(self, arrays: Any, entry: int, gamma: float, yp: np.ndarray, rp: np.ndarray, dv: np.ndarray, dw: np.ndarray, push: np.ndarray,
                given: np.ndarray, target: np.ndarray, even: bool) -> tuple[np.ndarray, np.ndarray]:
        """Tangents of rotors' rates and of row forces at the end of a step."""
        work, own = self.engine.graph.work, self.engine.own
        bodies, joints = arrays.bodies[entry], arrays.joints[entry]
        moving = self.model.joints["armature"] > 0.0
        soft = self.engine.scratch.normal.soft

        def evaluate(offset: float, model: Model) -> np.ndarray:
            recall_stage(self.model, work, own, arrays, entry)
            at = own.bodies
            at["xp"], at["qp"] = bodies["xp"] + offset * yp[:, :3], bodies["qp"] + offset * yp[:, 3:7]
            at["vp"], at["wp"] = bodies["vp"] + offset * yp[:, 7:10], bodies["wp"] + offset * yp[:, 10:]
            at["v"], at["w"] = bodies["vs"] + offset * dv, bodies["ws"] + offset * dw
            work.bodies["push"][:-1] = bodies["push"] + offset * push
            work.joints["input"], work.joints["target"] = joints["input"] + offset * given, joints["target"] + offset * target
            work.joints["mu"] = 0.0
            if len(own.axles):
                own.axles["rp"] = joints["rp"] + offset * rp
            stage = Stage(model, work, own, gamma, 0.0)
            evaluate_stage(stage)
            if even and len(own.axles):
                past = 2.0 * joints["rp"] - self._rates_of(arrays, entry)  # r_p = (r_0 + r) / 2
                own.axles["rp"] = 0.5 * (past + offset * self.rate + own.axles["r"])
                evaluate_stage(stage)
            r = work.bodies["r"].copy()
            mu = np.zeros((len(joints), 6))
            for i, joint in enumerate(model.joints):
                for k in range(int(joint["locks"]), int(joint["rows"])):
                    mu[i, k] = -work.joints["r"][i, k]
                    r[joint["child"]] -= mu[i, k] * work.joints["Gc"][i, k]
                    r[joint["parent"]] -= mu[i, k] * work.joints["Gp"][i, k]
            held = np.arange(6) < model.joints["locks"][:, None]
            placement = Placement(self.mechanism, model, self.engine.reading.work)
            placement.work.joints["target"] = work.joints["target"]
            q = at["qp"] + gamma * at["w"]
            placement.put(at["xp"] + gamma * at["v"], q / np.linalg.norm(q, axis=1, keepdims=True), joints["coordinate"])
            mu[held] = LeastNorm(placement, 1.0 / soft[held]).solve(r[:-1].ravel())[1]
            rates = np.where(moving, own.axles["r"], 0.0) if len(own.axles) else np.zeros((len(joints), 6))
            return np.concatenate([rates.ravel(), mu.ravel() / gamma])

        speed = max(1.0, np.abs(bodies["vs"]).max(initial=0.0), np.abs(bodies["ws"]).max(initial=0.0))
        sizes = [np.abs(yp[:, :7]).max(initial=0.0), max(np.abs(part).max(initial=0.0) for part in (yp[:, 7:], dv, dw)) / speed, np.abs(target).max(initial=0.0)]
        size = max(*sizes, 1e-3 * np.abs(push).max(initial=0.0), 1e-3 * np.abs(given).max(initial=0.0))
        rows = len(joints)
        found = self.difference(evaluate, size) * np.ones(12 * rows)
        return found[: 6 * rows].reshape(-1, 6), found[6 * rows :].reshape(-1, 6)

    def _rates_of(self, arrays: Any, entry: int) -> np.ndarray:
        """(joints, 6) rates of rotors at the end of a taped step."""
        work, own = self.engine.graph.work, self.engine.own
        kept = own.axles.copy(), own.bodies.copy()
        recall_stage(self.model, work, own, arrays, entry)
        evaluate_stage(Stage(self.model, work, own, float(arrays.clock[entry, 0]), 0.0))
        rates = own.axles["r"].copy()
        own.axles[:], own.bodies[:] = kept
        return rates
