"""A forward pass over a run of the BDF and DIRK methods."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import GradientError
from dalembert.formulations.implicit.adjoint import open_stage
from dalembert.formulations.implicit.derivative import product, relative
from dalembert.formulations.implicit.equations import Stage
from dalembert.formulations.implicit.state import Scratch
from dalembert.formulations.implicit.tape import evaluate_stage, recall_stage
from dalembert.formulations.maximal.bars import new_bars
from dalembert.formulations.maximal.forward import PASSES, VelocityForward, check_finite, turned
from dalembert.formulations.maximal.tape import Tape
from dalembert.model.records import Model


class ImplicitForward(VelocityForward):
    """The tangent of a state is (x, q, v, w) per body, additive, and the rates of reflected inertias, at the last two knots."""

    #: passes for bounds of friction that follow from the unknowns
    more_passes: int = 0

    def loads(self, mu: np.ndarray, change: np.ndarray) -> float:
        """How large a change of impulses (joints, 6) is beside themselves, where friction follows from them."""
        return 0.0

    def begin(self, pose: np.ndarray, velocity: np.ndarray, target: np.ndarray) -> None:
        start = self.recording
        self.bars = new_bars(self.model)
        self.entry = 0
        q = start.orientation[0]
        speeds = self.speeds(start.momentum[0])
        zero = np.zeros((len(q), 1))
        dq = product(q, np.concatenate([zero, 0.5 * pose[:, 3:]], axis=1))
        dw = product(dq, np.concatenate([zero, 0.5 * speeds[:, 3:]], axis=1)) + product(q, np.concatenate([zero, 0.5 * velocity[:, 3:]], axis=1))
        self.state = np.concatenate([pose[:, :3], dq, velocity[:, :3], dw], axis=1)

        def rates(step: float, model: Model) -> np.ndarray:
            place = start.position[0] + step * pose[:, :3], turned(q, step * pose[:, 3:])
            return np.where(self.model.joints["armature"] > 0.0, self.rates_at(model, *place, self.coordinates[0], speeds + step * velocity), 0.0)

        size = max(np.abs(pose).max(initial=0.0), 0.1 * np.abs(velocity).max(initial=0.0))
        self.rate = self.difference(rates, size) * np.ones((self.engine.sizes[1], 6))
        self.older, self.older_rate = np.zeros_like(self.state), np.zeros_like(self.rate)
        self.values = np.concatenate([start.position[0], q, speeds[:, :3], product(q, np.concatenate([zero, 0.5 * speeds[:, 3:]], axis=1))], axis=1)
        self.velocity = np.zeros((self.knots, len(q), 6))
        self.note(0)

    def note(self, knot: int) -> None:
        q, w, dq, dw = self.values[:, 3:7], self.values[:, 10:14], self.state[:, 3:7], self.state[:, 10:14]
        e, a = relative(q, dq), relative(q, w)
        self.tangent.position[knot], self.orientation[knot] = self.state[:, :3], 2.0 * e[:, 1:]
        self.velocity[knot, :, :3] = self.state[:, 7:10]
        self.velocity[knot, :, 3:] = 2.0 * (relative(q, dw) - product(e, a))[:, 1:]
        momentum = self.engine.momentum_of(self.velocity[knot])
        self.tangent.momentum[knot] = momentum

    def segment(self, tape: Tape, first: int, last: int) -> None:
        self.entry = 0
        super().segment(tape, first, last)

    def advance(self, tape: Tape, index: int, step: Any, knot: int) -> None:
        arrays, tableau = tape.arrays, self.engine.tableau
        count, order = int(arrays.kind[self.entry, 1]), int(arrays.kind[self.entry, 2])
        dt = float(arrays.clock[self.entry, 1])
        slopes, rate_slopes = [], []
        end, rate = self.state, self.rate
        for number in range(count):
            entry = self.entry + number
            gamma = float(arrays.clock[entry, 0])
            newer, older = (4.0 / 3.0, -1.0 / 3.0) if order == 2 else (1.0, 0.0)
            yp, rp = newer * self.state + older * self.older, newer * self.rate + older * self.older_rate
            for j in range(number):
                yp, rp = yp + dt * tableau.a[number, j] * slopes[j], rp + dt * tableau.a[number, j] * rate_slopes[j]
            node = 1.0 if order else tableau.c[number]
            dv, dw, r = self._stage(tape, entry, knot, step.start + step.length * node, gamma, yp, rp)
            end, rate = np.concatenate([yp[:, :3] + gamma * dv, yp[:, 3:7] + gamma * dw, dv, dw], axis=1), r
            slopes.append(np.concatenate([dv, dw, (dv - yp[:, 7:10]) / gamma, (dw - yp[:, 10:]) / gamma], axis=1))
            rate_slopes.append((r - rp) / gamma)
        if not order and not tableau.stiffly_accurate:
            end = self.state + dt * sum(b * k for b, k in zip(tableau.b, slopes))
            rate = self.rate + dt * sum(b * k for b, k in zip(tableau.b, rate_slopes))
        self.values = self._after(arrays, self.entry, count, order, dt)
        self.older, self.older_rate, self.state, self.rate = self.state, self.rate, end, rate
        self.entry += count

    def _after(self, arrays: Any, entry: int, count: int, order: int, dt: float) -> np.ndarray:
        """The state after a step."""
        tableau, last = self.engine.tableau, arrays.bodies[entry + count - 1]
        gamma = arrays.clock[entry + count - 1, 0]
        if order or tableau.stiffly_accurate:
            return np.concatenate([last["xp"] + gamma * last["vs"], last["qp"] + gamma * last["ws"], last["vs"], last["ws"]], axis=1)
        end = np.concatenate([last[name] for name in ("x", "q", "v", "w")], axis=1)
        for number in range(count):
            body, share = arrays.bodies[entry + number], arrays.clock[entry + number, 0]
            end = end + dt * tableau.b[number] * np.concatenate([body["vs"], body["ws"], (body["vs"] - body["vp"]) / share, (body["ws"] - body["wp"]) / share], axis=1)
        return end

    # ---- what may touch: nothing here

    @property
    def own(self) -> Scratch:
        """The scratch of the graph that a stage is differentiated on."""
        return self.engine.own

    def open_nodes(self, tape: Tape, entry: int) -> None:
        """Begin a stage: which nodes are part of it."""

    def recall(self, tape: Tape, entry: int) -> None:
        """Put a stage into work and scratch."""
        recall_stage(self.model, self.graph.work, self.own, tape.arrays, entry)

    def move_nodes(self, tape: Tape, entry: int, offset: float, yp: np.ndarray, tangent: np.ndarray, model: Model) -> None:
        """Numbers of the nodes of a model, where their rows are taken, and their impulses (nodes, 3), so far along their tangents."""

    def evaluate(self, stage: Stage) -> bool:
        """The equations at what is in work and scratch."""
        return evaluate_stage(stage)

    def open(self, stage: Stage) -> bool:
        """Factor Newton's matrix at the solution."""
        return open_stage(stage, self.bars)

    def hold(self) -> None:
        """Take what was just evaluated as the stage itself."""

    def node_values(self, model: Model, gamma: float) -> np.ndarray:
        """(nodes, 3) what the nodes look at."""
        return np.zeros((0, 3))

    #: numbers of what nodes exert in a stage, and their tangents in the last one
    exerts: int = 0
    exerted: np.ndarray = np.zeros(0)

    def node_forces(self, gamma: float) -> np.ndarray:
        """(``exerts``,) what the nodes exert."""
        return np.zeros(0)

    def node_rows(self, values: np.ndarray, tangent: np.ndarray, gamma: float) -> np.ndarray:
        """(nodes, 3) their rows, linearised, from tangents of ``node_values`` and of the impulses."""
        return np.zeros((0, 3))

    def close_nodes(self) -> None:
        """A stage is done."""

    def _stage(self, tape: Tape, entry: int, knot: int, share: float, gamma: float, yp: np.ndarray, rp: np.ndarray) -> tuple[np.ndarray, ...]:
        """Tangents of v, w and of the rates of rotors at the end of a stage."""
        self.open_nodes(tape, entry)
        arrays, engine, work, own = tape.arrays, self.engine, self.graph.work, self.own
        bodies, joints, ties = arrays.bodies[entry], arrays.joints[entry], arrays.couplings[entry]
        push, given, target, tension = self.inputs_of(knot, share)
        n, rows, couplings = engine.sizes
        du, dmu, dtie, dnode = np.zeros((n, 7)), np.zeros((rows, 6)), np.zeros(couplings), np.zeros((len(self.touching), 3))
        whole = 3 * len(dnode) + 7 * n + 12 * rows + couplings + self.exerts
        moving = self.model.joints["armature"] > 0.0

        def evaluate(offset: float, model: Model) -> np.ndarray:
            self.recall(tape, entry)
            at = own.bodies
            at["xp"], at["qp"] = bodies["xp"] + offset * yp[:, :3], bodies["qp"] + offset * yp[:, 3:7]
            at["vp"], at["wp"] = bodies["vp"] + offset * yp[:, 7:10], bodies["wp"] + offset * yp[:, 10:]
            at["v"], at["w"] = bodies["vs"] + offset * du[:, :3], bodies["ws"] + offset * du[:, 3:]
            work.bodies["push"][:-1] = bodies["push"] + offset * push
            work.joints["mu"] = joints["mu"] + offset * dmu
            work.joints["input"], work.joints["target"] = joints["input"] + offset * given, joints["target"] + offset * target
            work.couplings["mu"], work.couplings["input"] = ties["mu"] + offset * dtie, ties["input"] + offset * tension
            if len(own.axles):
                own.axles["rp"] = joints["rp"] + offset * rp
            self.move_nodes(tape, entry, offset, yp, dnode, model)
            if not self.evaluate(Stage(model, work, own, gamma, engine.compliance)):
                raise GradientError(f"the step at knot {knot} of {self.mechanism.name!r} has no neighbours to be differentiated with")
            own_rates = np.where(moving, own.axles["r"], 0.0) if len(own.axles) else np.zeros((rows, 6))
            residuals = np.concatenate([work.bodies["r"][:-1], at["unit"][:, None]], axis=1)
            parts = self.node_values(model, gamma), residuals, np.where(self.rows, work.joints["r"], 0.0), work.couplings["r"], own_rates, self.node_forces(gamma)
            return np.concatenate([np.ravel(part) for part in parts])

        speed = max(1.0, np.abs(bodies["vs"]).max(initial=0.0), np.abs(bodies["ws"]).max(initial=0.0))
        size = max(np.abs(yp[:, :7]).max(initial=0.0), np.abs(yp[:, 7:]).max(initial=0.0) / speed, np.abs(target).max(initial=0.0))
        size = max(size, 1e-3 * np.abs(push).max(initial=0.0), 1e-3 * np.abs(given).max(initial=0.0), 1e-3 * np.abs(tension).max(initial=0.0))
        self.recall(tape, entry)
        self.move_nodes(tape, entry, 0.0, yp, dnode, self.model)
        self.evaluate(Stage(self.model, work, own, gamma, engine.compliance))
        self.hold()
        for _ in range(PASSES + self.more_passes):
            nodes, left, right, tied, _, _ = self._split(self.difference(evaluate, size) * np.ones(whole))
            self.recall(tape, entry)
            self.move_nodes(tape, entry, 0.0, yp, dnode, self.model)
            if not self.open(Stage(self.model, work, own, gamma, engine.compliance)):
                raise GradientError(f"the step at knot {knot} of {self.mechanism.name!r} cannot be differentiated: its equations are singular")
            scale = max(np.abs(du).max(initial=0.0), np.abs(dmu).max(initial=0.0), 1e-300)
            found = self.solve(left, right, tied, self.node_rows(nodes, dnode, gamma))
            q = own.bodies["qp"] + gamma * own.bodies["w"]
            dw = product(q, np.concatenate([found[0][:, 6:], found[0][:, 3:6]], axis=1))
            du, dmu, dtie = du - np.concatenate([found[0][:, :3], dw], axis=1), dmu - found[1], dtie - found[2]
            dnode = dnode - found[3]
            size = max(size, np.abs(du).max(initial=0.0) / speed, self.loads(joints["mu"], dmu))
            if max(np.abs(part).max(initial=0.0) for part in found) < 1e-11 * scale:
                break
        after = check_finite(self.difference(evaluate, size) * np.ones(whole), self.mechanism.name)
        self.close_nodes()
        *_, rates, self.exerted = self._split(after)
        return du[:, :3], du[:, 3:], rates

    def _split(self, values: np.ndarray) -> tuple[np.ndarray, ...]:
        n, rows, couplings = self.engine.sizes
        nodes, a, b, c, d, e = np.split(values, np.cumsum([3 * len(self.touching), 7 * n, 6 * rows, couplings, 6 * rows]))
        return nodes.reshape(-1, 3), a.reshape(n, 7), b.reshape(-1, 6), c, d.reshape(-1, 6), e
