"""The last step of a simulation as a trajectory of two knots: from the states at its ends alone, or made once more to be read whole."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dalembert.formulations.engine import Engine, Knot, Readings
from dalembert.mechanism.mechanism import Mechanism
from dalembert.simulation.controls import InputTables
from dalembert.simulation.state import State
from dalembert.simulation.targets import Target
from dalembert.simulation.trajectory import Trajectory, read_trajectory

#: series that states tell by themselves
KNOWN = frozenset({"velocity", "angular_velocity", "coordinate", "rate"})


class LastStep(NamedTuple):
    """Where the last step began, the targets that were followed there, and its inputs: a row of tables."""

    state: State
    followed: Mapping[str, Target]
    tables: InputTables
    row: int
    dt: float


def seen(
    engine: Engine, mechanism: Mechanism, formulation: str, last: LastStep | None, state: State, knot_at: Callable[[State, Mapping[str, Target]], Knot], knot: Knot,
) -> Trajectory:
    """Poses, velocities and coordinates at the ends of the last step; at one knot where there was none. ``knot``: what is read at the second."""
    states = [state] if last is None else [last.state, state]
    position, orientation = (np.stack(values) for values in zip(*(engine.pose(s.numbers) for s in states)))

    def known() -> Mapping[str, np.ndarray]:
        knots = [knot] if last is None else [knot_at(last.state, last.followed), knot]
        velocity = np.stack([k.velocity for k in knots])
        coordinate = np.stack([engine.coordinates(s.numbers) for s in states])
        return dict(velocity=velocity[..., :3], angular_velocity=velocity[..., 3:], rate=np.stack([k.rate for k in knots]), coordinate=coordinate)

    readings = Readings(dict(position=position, orientation=orientation), ((KNOWN, known),))
    return read_trajectory(mechanism, formulation, np.array([s.time for s in states]), readings)


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
