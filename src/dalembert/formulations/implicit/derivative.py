"""A backward pass over a run of the BDF and DIRK methods."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.formulations.derivatives import Cotangents, StartBars
from dalembert.formulations.engine import Inputs
from dalembert.formulations.implicit.tape import (
    BODY_STAGES,
    JOINT_STAGES,
    ImplicitTape,
    StageBars,
    pull_knots,
    pull_steps,
)
from dalembert.formulations.maximal.adjoint import KnotBars
from dalembert.formulations.maximal.pull_knot import pull_start_rates
from dalembert.formulations.maximal.stage_adjoint import StageAdjoint
from dalembert.formulations.maximal.tape import Tape


class ImplicitAdjoint(StageAdjoint):
    """The state of a body is position, quaternion and their rates: (x, q, v, w), at the last two knots."""

    width = 14

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        bodies, joints, _ = self.engine.sizes
        self.steps = StageBars(np.zeros(bodies, BODY_STAGES), np.zeros(joints, JOINT_STAGES))
        self.first: np.ndarray | None = None

    def read_on(self, tape: Tape, first: int, count: int) -> KnotBars:
        """Cotangents of the states at ``count`` knots from ``first`` on, whose states the tape holds."""
        states = knot_states(getattr(tape, "run", tape), self.engine.tableau, count)
        self.first = states[0]
        return self._read(states, first, self.part(first, first + count))

    def read_seen(self, knot: int, cotangents: Cotangents, inputs: Inputs, rates: np.ndarray) -> KnotBars:
        return self._read(knot_states(self.tape, self.engine.tableau, 1), knot, cotangents)

    def _read(self, states: np.ndarray, first: int, cotangents: Cotangents) -> KnotBars:
        """What is read at knots from ``first`` on with states (knots, n, 14)."""
        knots, last = self.new_knots(len(states)), first + len(states)
        if any(np.any(part) for part in cotangents):
            pull_knots(
                self.model, self.engine.reading.work, states, self.given.target[first:last], self.coordinates[first:last], cotangents, self.bars,
                knots, np.zeros((self.engine.sizes[1], 6)),
            )
        return knots

    def read(self, first: int, last: int) -> KnotBars:
        return self.read_on(self.tape, first, last - first)

    def pull_stages(
        self, tape: Tape, knots: KnotBars, begins: np.ndarray, pushes: np.ndarray, rows: np.ndarray, tensions: np.ndarray,
    ) -> float:
        """All stages of a tape; returns the worst residual of their equations."""
        engine = self.engine
        return pull_steps(
            self.model, engine.graph.work, engine.own, engine.compliance, engine.tableau, tape.arrays, tape.count, self.bars, self.steps, knots, begins,
            pushes, rows, tensions,
        )

    @property
    def looks_back(self) -> bool:
        """Whether a step depends on the knot before the one that it begins at."""
        return self.engine.options.method == "bdf2"

    @property
    def state_size(self) -> int:
        return super().state_size * (2 if self.looks_back else 1)

    def put_state(self, bar: np.ndarray) -> None:
        half = super().state_size
        super().put_state(bar[:half])
        if len(bar) > half:
            bodies = 14 * self.engine.sizes[0]
            self.steps.bodies["older"] = bar[half : half + bodies].reshape(-1, 14)
            self.steps.joints["older"] = bar[half + bodies :].reshape(-1, 6)

    def take_state(self) -> np.ndarray:
        here = super().take_state()
        if not self.looks_back:
            return here
        return np.concatenate([here, self.steps.bodies["older"].ravel(), self.steps.joints["older"].ravel()])

    def start(self) -> StartBars:
        """Quaternion rates and rates of rotors of the start are those of its velocities."""
        bars, after = self.bars.bodies[:-1], self.bars.bodies["after"][:-1]
        assert self.first is not None
        q, velocity = self.first[:, 3:7], np.zeros((len(bars), 6))
        half = relative(q, self.first[:, 10:14])
        velocity[:, :3], velocity[:, 3:] = self.first[:, 7:10], 2.0 * half[:, 1:]
        # w = q (0, omega / 2) with q turned on by (0, phi / 2)
        turned = conjugated(q, after[:, 10:14])
        bars["u"], bars["du"], bars["x"] = velocity, 0.0, after[:, :3]
        by_turn = np.concatenate([np.zeros((len(q), 1)), half[:, 1:]], axis=1)
        bars["phi"] = 0.5 * conjugated(q, after[:, 3:7])[:, 1:] + 0.5 * product(turned, by_turn * [1.0, -1.0, -1.0, -1.0])[:, 1:]
        pull_start_rates(self.model, self.placed().work, self.bars, self.start_rates(velocity), True)
        moving = np.concatenate([after[:, 7:10], 0.5 * turned[:, 1:]], axis=1) + bars["du"]
        return StartBars(np.concatenate([bars["x"], bars["phi"]], axis=1), moving)


def product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Products of quaternions (..., 4)."""
    a, u, b, v = p[..., :1], p[..., 1:], q[..., :1], q[..., 1:]
    return np.concatenate([a * b - np.sum(u * v, axis=-1, keepdims=True), a * v + b * u + np.cross(u, v)], axis=-1)


def conjugated(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """p* q."""
    return product(p * [1.0, -1.0, -1.0, -1.0], q)


def relative(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """p^-1 q."""
    return conjugated(p, q) / np.sum(p * p, axis=-1, keepdims=True)


def knot_states(tape: Tape, tableau: Any, count: int) -> np.ndarray:
    """(knots, n, 14) states at the knots that a tape begins and ends steps at, the first ``count`` of them."""
    arrays: ImplicitTape = tape.arrays
    bodies, kind = arrays.bodies[: tape.count], arrays.kind[: tape.count]
    begins = np.flatnonzero(kind[:, 0] == 0)
    at_knot = [entry for entry, step in zip(begins, tape.steps) if step.start == 0.0]
    parts = [np.concatenate([bodies[name][at_knot] for name in ("x", "q", "v", "w")], axis=-1)]
    if count > len(at_knot):
        stages = int(kind[-1, 1])
        last = bodies[-1]
        gamma, dt = arrays.clock[tape.count - 1]
        if kind[-1, 2] > 0 or tableau.stiffly_accurate:
            parts.append(np.concatenate([last["xp"] + gamma * last["vs"], last["qp"] + gamma * last["ws"], last["vs"], last["ws"]], axis=-1)[None])
        else:
            end = np.concatenate([last[name] for name in ("x", "q", "v", "w")], axis=-1)
            for number in range(stages):
                body, share = bodies[tape.count - stages + number], arrays.clock[tape.count - stages + number, 0]
                slopes = body["vs"], body["ws"], (body["vs"] - body["vp"]) / share, (body["ws"] - body["wp"]) / share
                end = end + dt * tableau.b[number] * np.concatenate(slopes, axis=-1)
            parts.append(end[None])
    return np.ascontiguousarray(np.concatenate(parts)[:count])
