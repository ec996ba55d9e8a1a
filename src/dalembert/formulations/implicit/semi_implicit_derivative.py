"""Backward and forward passes over runs of semi-implicit Euler."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import GradientError
from dalembert.formulations.derivatives import Cotangents, StartBars
from dalembert.formulations.engine import Inputs
from dalembert.formulations.implicit.semi_implicit import SemiImplicitState, run_steps
from dalembert.formulations.implicit.semi_implicit_tape import pull_knots, pull_steps
from dalembert.formulations.maximal.adjoint import KnotBars, MaximalAdjoint
from dalembert.formulations.maximal.forward import MaximalForward, check_finite, turn_between, turned
from dalembert.formulations.maximal.recording import Recording, new_recording
from dalembert.formulations.maximal.tape import Tape
from dalembert.model.records import Model


class SemiImplicitAdjoint(MaximalAdjoint):
    """The state of a body is position, orientation and momenta: (x, phi, p, l)."""

    width = 12
    nodes = (0.0, 1.0)

    def read(self, first: int, last: int) -> KnotBars:
        return self._read(first, last, self.part(first, last), self.inputs_at(first, last))

    def read_seen(self, knot: int, cotangents: Cotangents, inputs: Inputs, rates: np.ndarray) -> KnotBars:
        return self._read(knot, knot + 1, cotangents, inputs)

    def _read(self, first: int, last: int, cotangents: Cotangents, inputs: Inputs) -> KnotBars:
        knots = self.new_knots(last - first)
        recording = Recording(*(array[first:last] for array in self.recording))
        pull_knots(
            self.model, self.engine.reading.work, recording, inputs, np.ascontiguousarray(self.coordinates[first:last]), cotangents, self.bars, knots,
            np.zeros((self.engine.sizes[1], 6)),
        )
        return knots

    def pull(self, tape: Tape, knots: KnotBars, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        (bodies, joints, couplings), count, engine = self.engine.sizes, tape.count, self.engine
        pushes, rows, tensions = np.zeros((count, bodies, 6)), np.zeros((count, 3, joints, 6)), np.zeros((count, couplings))
        begins = np.array([step.knot if step.start == 0.0 else -1 for step in tape.steps], dtype=np.int64)
        if not pull_steps(
            self.model, engine.graph.work, engine.own, engine.step_options, tape.arrays, count, self.bars, np.zeros((bodies + 1, 6)), knots, begins,
            pushes, rows, tensions,
        ):
            raise GradientError(f"a step of {self.mechanism.name!r} cannot be differentiated: the joints hold it in a singular pose")
        return pushes, rows[:, 0], rows[:, 1:], tensions

    def start(self) -> StartBars:
        return self.momentum_start()


class SemiImplicitForward(MaximalForward):
    """The tangent of a state is (x, phi, p, l) per body and the momenta of reflected inertias; steps are explicit, and differenced as a whole."""

    def begin(self, pose: np.ndarray, velocity: np.ndarray, target: np.ndarray) -> None:
        momentum, self.spin = self.momenta_at_start(pose, velocity)
        self.state = np.concatenate([pose, momentum], axis=1)
        self.note(0)

    def note(self, knot: int) -> None:
        self.tangent.position[knot], self.orientation[knot] = self.state[:, :3], self.state[:, 3:6]
        self.tangent.momentum[knot] = self.state[:, 6:]

    def momentum_at(self, knot: int) -> Any:
        return lambda step, model: self.recording.momentum[knot] + step * self.tangent.momentum[knot]

    def advance(self, tape: Tape, index: int, step: Any, knot: int) -> None:
        arrays, engine = tape.arrays, self.engine
        dt = float(arrays.clock[index, 0])
        bodies, joints = arrays.bodies[index], arrays.joints[index]
        push, given, target, tension = self.inputs_of(knot, step.start)
        targets = np.stack([target, self.inputs_of(knot, step.start + step.length)[2]])
        sizes = engine.sizes
        reference: list[np.ndarray] = []

        def evaluate(offset: float, model: Model) -> np.ndarray:
            state = SemiImplicitState(bodies.copy(), joints.copy(), np.zeros(3))
            at = state.bodies
            at["x"] += offset * self.state[:, :3]
            at["q"] = turned(at["q"], offset * self.state[:, 3:6])
            at["p"] += offset * self.state[:, 6:9]
            at["l"] += offset * self.state[:, 9:]
            state.joints["spin"] += offset * self.spin
            inputs = Inputs(
                (arrays.push[index] + offset * push)[None], (arrays.input[index] + offset * given)[None], arrays.target[index] + offset * targets,
                np.zeros((0, 0, sizes[1], 6)), (arrays.tension[index] + offset * tension)[None],
            )
            done, _ = run_steps(model, state, inputs, engine.step_options, engine.graph.work, engine.own, new_recording(2, *sizes), 0, 1, dt)
            if not done:
                raise GradientError(f"the step at knot {knot} of {self.mechanism.name!r} has no neighbours to be differentiated with")
            if not reference:
                reference.append(at["q"].copy())
            return np.concatenate([
                np.concatenate([at["x"], turn_between(reference[0], at["q"]), at["p"], at["l"]], axis=1).ravel(), state.joints["spin"].ravel(),
            ])

        evaluate(0.0, self.model)
        fixed = self.model.bodies[:-1]
        moving = np.abs(self.state[:, 6:9] / fixed["mass"][:, None]).max(initial=0.0)
        size = max(np.abs(self.state[:, :6]).max(initial=0.0), 0.1 * moving, 0.1 * np.abs(self.state[:, 9:]).max(initial=0.0), np.abs(targets).max(initial=0.0))
        size = max(size, 1e-3 * np.abs(push).max(initial=0.0), 1e-3 * np.abs(given).max(initial=0.0), 1e-3 * np.abs(tension).max(initial=0.0))
        n = sizes[0]
        found = check_finite(self.difference(evaluate, size) * np.ones(12 * n + 6 * sizes[1]), self.mechanism.name)
        self.state, self.spin = found[: 12 * n].reshape(n, 12), found[12 * n :].reshape(-1, 6)
