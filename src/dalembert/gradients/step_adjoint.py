"""A and B of one step in independent coordinates, by the adjoint of the step: a backward pass for every number after it."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dalembert.errors import GradientError
from dalembert.formulations.derivatives import Cotangents, Differentiable
from dalembert.formulations.engine import Inputs
from dalembert.gradients.chart import Chart
from dalembert.gradients.coordinates import curved_coordinates
from dalembert.gradients.curved import numbers_at
from dalembert.gradients.situation import InputPlace, Situation


class Lap(NamedTuple):
    """A step that was made: its tape and recording, coordinates (2, joints, 6), and what the numbers after it are by pose and velocities (2 d, 6 n)."""

    tape: Any
    recording: Any
    coordinates: np.ndarray
    by_pose: np.ndarray
    by_velocity: np.ndarray


def adjoint_step(situation: Situation, chart: Chart, places: Sequence[InputPlace], settled: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """What ``difference_step`` finds, exactly; None where the formulation cannot differentiate its steps."""
    engine = situation.engine
    if not isinstance(engine, Differentiable) or np.any(situation.model.joints["driven"] != 0):
        return None
    try:
        laps = _advance(situation, chart, 2 if settled else 1)
    except GradientError:
        return None
    pose, velocity = _start_tangents(situation, chart)
    inputs = situation.tables().window(0, 1)
    Z, U = zip(*(_pull(situation, laps[: count + 1], inputs, pose, velocity, places) for count in range(len(laps))))
    if not settled:
        return Z[0], U[0]
    A = np.linalg.solve(Z[0].T, Z[1].T).T
    return A, U[1] - A @ U[0]


def _start_tangents(situation: Situation, chart: Chart) -> tuple[np.ndarray, np.ndarray]:
    """(6 n, 2 d) poses and velocities along the coordinates, at constant rates, and along the rates."""
    chart.placement.restore(chart.reference)
    chart.placement.evaluate()
    u, N = situation.start.velocity.ravel(), chart.motions
    held = chart.space.least(-numbers_at(chart.placement).rows.left(u) @ N)
    carried = held - N @ (chart.curved.left(u) @ N + chart.J @ held)
    return np.hstack([N, np.zeros_like(N)]), np.hstack([carried, N])


def _advance(situation: Situation, chart: Chart, count: int) -> list[Lap]:
    """Steps from a situation with nothing before it."""
    engine: Any = situation.engine
    numbers, tables, laps = engine.start(situation.start), situation.tables(), []
    placement = chart.placement
    for _ in range(count):
        tape, recording = engine.new_tape(1), engine.new_recording(2)
        engine.record(numbers, recording, 0)
        before, engine.tape = engine.coordinates(numbers), tape
        try:
            made = engine.advance(numbers, recording, tables, 0, 1, situation.dt)
        finally:
            engine.tape = None
        if made < 1:
            raise engine.failure(situation.time, situation.dt)
        after = engine.coordinates(numbers)
        knot = engine.knot(numbers, tables.window(0, 1), np.full((placement.sizes[1], 6), np.nan))
        position, orientation = engine.pose(numbers)
        placement.put(position, orientation, after)
        own = curved_coordinates(placement, numbers_at(placement), chart.coordinates)
        J, zero = own.gradient(), np.zeros((own.count, own.width))
        laps.append(Lap(tape, recording, np.stack([before, after]), np.vstack([J, own.left(knot.velocity.ravel())]), np.vstack([zero, J])))
    return laps


def _pull(
    situation: Situation, laps: Sequence[Lap], inputs: Inputs, pose: np.ndarray, velocity: np.ndarray, places: Sequence[InputPlace],
) -> tuple[np.ndarray, np.ndarray]:
    """Changes (2 d, 2 d) and (2 d, inputs) after the last of some steps by those at the start and by inputs held over all of them."""
    engine: Any = situation.engine
    bodies = len(situation.model.bodies) - 1
    last = laps[-1]
    Z, U = [], np.zeros((len(last.by_pose), len(places)))
    empty = np.zeros((0, 0, 0))
    for row, (by_pose, by_velocity) in enumerate(zip(last.by_pose.reshape(-1, bodies, 6), last.by_velocity.reshape(-1, bodies, 6))):
        bar, adjoint = None, None
        for lap in reversed(laps):
            weights = np.zeros((3, 2, bodies, 6))
            if lap is last:
                weights[0, 1, :, :3], weights[1, 1, :, :3], weights[2, 1] = by_pose[:, :3], by_pose[:, 3:], by_velocity
            cotangents = Cotangents(weights[0, ..., :3], weights[1, ..., :3], weights[2], empty, empty, np.zeros((0, 2)), empty)
            adjoint = engine.adjoint(lap.recording, inputs, 2, situation.dt, lap.coordinates, cotangents)
            if bar is not None:
                adjoint.put_state(bar)
            adjoint.segment(lap.tape, 0, 1)
            bar = adjoint.take_state()
            U[row] += [_of_input(adjoint.inputs, place) for place in places]
        assert adjoint is not None
        start = adjoint.start()
        Z.append(start.pose.ravel() @ pose + start.velocity.ravel() @ velocity)
    return np.array(Z), U


def _of_input(bars: Any, place: InputPlace) -> float:
    if place.kind == "tension":
        return float(bars.tension[:, place.element].sum())
    table = {"joint": bars.joint, "wrench": bars.wrench, "target": bars.target}[place.kind]
    return float(table[:, place.element, place.direction].sum())
