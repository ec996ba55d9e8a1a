"""A and B of one step in independent coordinates, by fourth-order differences of the step itself."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dalembert.formulations.engine import Start
from dalembert.gradients.chart import Chart
from dalembert.gradients.coordinates import coordinate_rows, deviations
from dalembert.gradients.curved import STENCIL, reaches
from dalembert.gradients.situation import InputPlace, Situation

#: rad, or part of the bodies' reach, by which coordinates are moved; the same per second of rates
DISPLACEMENT, CHANGE = 1e-3, 1e-2


class Knot(NamedTuple):
    """Where a step ended: records of bodies and joints, and rates (d,) of the coordinates."""

    bodies: np.ndarray
    joints: np.ndarray
    rates: np.ndarray


def difference_step(situation: Situation, chart: Chart, places: Sequence[InputPlace], settled: bool) -> tuple[np.ndarray, np.ndarray]:
    """A (2 d, 2 d) and B (2 d, inputs) of the step that starts from a situation with nothing before it.

    ``settled``: it is an equilibrium. Then all steps are alike, and those of a step within a run can be had: with Z1, Z2 the changes
    after one and two steps, A = Z2 Z1^-1, and B = Z2 - A Z1 of inputs that are held.
    """
    stepper = _Stepper(situation, chart, 2 if settled else 1)
    count = len(chart.coordinates)
    Z, U = np.zeros((stepper.laps, 2 * count, 2 * count)), np.zeros((stepper.laps, 2 * count, len(places)))
    lengths = np.array([1.0 if c.turns else stepper.length for c in chart.coordinates])
    sizes = np.concatenate([DISPLACEMENT * lengths, CHANGE * np.maximum(lengths, np.abs(stepper.rates))])
    for column, size in enumerate(sizes):
        for steps, weight in STENCIL:
            moved = np.zeros(2 * count)
            moved[column] = steps * size
            Z[:, :, column] += weight / size * stepper.ends(moved)
    for column, place in enumerate(places):
        size = stepper.input_size(place)
        for steps, weight in STENCIL:
            U[:, :, column] += weight / size * stepper.ends(np.zeros(2 * count), place, steps * size)
    if not settled:
        return Z[0], U[0]
    A = np.linalg.solve(Z[0].T, Z[1].T).T
    return A, U[1] - A @ U[0]


class _Stepper:
    """Makes one or two steps (``laps``) from states near a situation."""

    def __init__(self, situation: Situation, chart: Chart, laps: int) -> None:
        self.situation, self.chart, self.laps = situation, chart, laps
        self.placement = chart.placement
        self.velocity = situation.start.velocity.ravel()
        self.rows, self.rates = chart.G @ self.velocity, chart.J @ self.velocity
        self.length = float(reaches(self.placement.model).mean())
        self.recording = situation.engine.new_recording(2)
        self.reference = self._advance(np.zeros(2 * len(self.rates)), None, 0.0)

    def input_size(self, place: InputPlace) -> float:
        """An input that changes the step about as much as other displacements do."""
        if place.kind == "target":
            return DISPLACEMENT
        mass = float(self.placement.model.bodies["mass"][:-1].sum())
        return CHANGE * mass * self.length * min(1.0, self.length) / self.situation.dt

    def ends(self, moved: np.ndarray, place: InputPlace | None = None, amount: float = 0.0) -> np.ndarray:
        """(laps, 2 d) coordinates and rates after each step, less those of steps from the situation itself."""
        return np.array([
            np.concatenate([deviations(self.chart.coordinates, here[:2], there[:2]), here.rates - there.rates])
            for here, there in zip(self._advance(moved, place, amount), self.reference)
        ])

    def _advance(self, moved: np.ndarray, place: InputPlace | None, amount: float) -> list[Knot]:
        situation, engine, chart, placement = self.situation, self.situation.engine, self.chart, self.placement
        count = len(self.rates)
        chart.move(moved[:count])
        velocity = chart.velocity(self.velocity, self.rows, self.rates + moved[count:])
        work, target = placement.work, situation.start.target.copy()
        if place is not None and place.kind == "target":
            target[place.element, place.direction] += amount
        numbers = engine.start(Start(
            work.bodies["x"][:-1].copy(), work.bodies["q"][:-1].copy(), velocity.reshape(-1, 6), work.joints["coordinate"].copy(), target,
        ))
        tables = situation.tables()
        if place is not None:
            if place.kind == "tension":
                tables.tension[:, place.element] += amount
            else:
                table = {"joint": tables.joint, "wrench": tables.wrench, "target": tables.target}[place.kind]
                table[:, place.element, place.direction] += amount
        knots = []
        for _ in range(self.laps):
            if engine.advance(numbers, self.recording, tables, 0, 1, situation.dt) < 1:
                raise engine.failure(situation.time, situation.dt)
            knot = engine.knot(numbers, tables.window(0, 1), np.full((placement.sizes[1], 6), np.nan))
            placement.put(*engine.pose(numbers), engine.coordinates(numbers))
            bodies, joints = placement.keep()
            knots.append(Knot(bodies, joints, coordinate_rows(placement, chart.coordinates) @ knot.velocity.ravel()))
        return knots
