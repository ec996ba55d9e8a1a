"""The last step of a simulation: the states at its ends as sensors see them, or a trajectory of two knots, for which it is made once more."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dalembert.formulations.engine import Engine, Knot
from dalembert.mechanism.mechanism import Mechanism
from dalembert.simulation.controls import InputTables
from dalembert.simulation.state import State
from dalembert.simulation.targets import Target
from dalembert.simulation.trajectory import Trajectory, read_trajectory, rotate


class LastStep(NamedTuple):
    """Where the last step began, the targets that were followed there, and its inputs: a row of tables."""

    state: State
    followed: Mapping[str, Target]
    tables: InputTables
    row: int
    dt: float


class Now:
    """The current knot, and on demand the one before it, as far as states tell them: what sensors ask of a trajectory."""

    def __init__(self, mechanism: Mechanism, engine: Engine, states: Sequence[State], knots: Sequence[Knot]) -> None:
        self.time, self._mechanism, self._engine, self._states, self._knots = np.array([s.time for s in states]), mechanism, engine, states, knots

    def __len__(self) -> int:
        return len(self._knots)

    def _get(self, name: str) -> np.ndarray:
        """(N, joints, 6) coordinates or rates."""
        return np.array([knot.rate for knot in self._knots]) if name == "rate" else np.array([self._engine.coordinates(s.numbers) for s in self._states])

    def body(self, name: str) -> BodyNow:
        """Pose and velocities of a body."""
        i = self._mechanism[name].index
        poses, velocity = [self._engine.pose(s.numbers) for s in self._states], np.array([knot.velocity[i] for knot in self._knots])
        return BodyNow(np.array([x[i] for x, _ in poses]), np.array([q[i] for _, q in poses]), velocity[:, :3], velocity[:, 3:])

    def point(self, name: str, point: np.ndarray) -> np.ndarray:
        """(N, 3) where a point of a body is."""
        body = self.body(name)
        return body.position + rotate(body.orientation, np.broadcast_to(point, (len(self), 3)))


class BodyNow(NamedTuple):
    """A body at some knots: (N, 3), (N, 4), (N, 3) in the world, (N, 3) in its axes."""

    position: np.ndarray
    orientation: np.ndarray
    velocity: np.ndarray
    angular_velocity: np.ndarray


def made_again(engine: Any, mechanism: Mechanism, formulation: str, last: LastStep | None, state: State) -> Trajectory:
    """The last step whole, made once more from where it began; without one, the knot."""
    begun = state if last is None else last.state
    numbers, recording, dt = begun.numbers.copy(), engine.new_recording(2), begun.clock[2] if last is None else last.dt
    engine.record(numbers, recording, 0)
    start = engine.coordinates(numbers)
    if last is None:
        times, knots = np.array([state.time]), 1
        inputs = InputTables(mechanism, engine, {}, {}, engine.targets(numbers), 1, lambda steps: state.time + steps * dt, False)
    else:
        times, knots = np.array([begun.time, state.time]), 2
        inputs = last.tables.only(last.row)
        tape, engine.tape = getattr(engine, "tape", None), None
        try:
            engine.advance(numbers, recording, inputs, 0, 1, dt)
        finally:
            engine.tape = tape
    return read_trajectory(mechanism, formulation, times, engine.read(recording, inputs.recorded(knots - 1), knots, dt, start))
