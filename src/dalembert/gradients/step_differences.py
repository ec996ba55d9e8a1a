"""A and B of one step in independent coordinates, by fourth-order differences of the step itself."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dalembert.formulations.engine import Start
from dalembert.gradients.chart import Chart
from dalembert.gradients.coordinates import coordinate_rows, deviations
from dalembert.gradients.curved import STENCIL, reaches
from dalembert.gradients.situation import InputPlace, Situation

#: rad, or part of the bodies' reach, by which coordinates are moved; the same per second of rates
DISPLACEMENT, CHANGE = 1e-3, 1e-2


def difference_step(situation: Situation, chart: Chart, places: Sequence[InputPlace]) -> tuple[np.ndarray, np.ndarray]:
    """A (2 d, 2 d) and B (2 d, inputs) of the step that starts from a situation with nothing before it."""
    stepper = _Stepper(situation, chart)
    count = len(chart.coordinates)
    A, B = np.zeros((2 * count, 2 * count)), np.zeros((2 * count, len(places)))
    lengths = np.array([1.0 if c.turns else stepper.length for c in chart.coordinates])
    sizes = np.concatenate([DISPLACEMENT * lengths, CHANGE * np.maximum(lengths, np.abs(stepper.rates))])
    for column, size in enumerate(sizes):
        for steps, weight in STENCIL:
            moved = np.zeros(2 * count)
            moved[column] = steps * size
            A[:, column] += weight / size * stepper.end(moved)
    for column, place in enumerate(places):
        size = stepper.input_size(place)
        for steps, weight in STENCIL:
            B[:, column] += weight / size * stepper.end(np.zeros(2 * count), place, steps * size)
    return A, B


class _Stepper:
    """Makes one step from states near a situation."""

    def __init__(self, situation: Situation, chart: Chart) -> None:
        self.situation, self.chart = situation, chart
        self.placement = chart.placement
        self.velocity = situation.start.velocity.ravel()
        self.rows, self.rates = chart.G @ self.velocity, chart.J @ self.velocity
        self.length = float(reaches(self.placement.model).mean())
        self.recording = situation.engine.new_recording(2)
        self.reference = None
        self.reference = self._advance(np.zeros(2 * len(self.rates)), None, 0.0)

    def input_size(self, place: InputPlace) -> float:
        """An input that changes the step about as much as other displacements do."""
        if place.kind == "target":
            return DISPLACEMENT
        mass = float(self.placement.model.bodies["mass"][:-1].sum())
        return CHANGE * mass * self.length * min(1.0, self.length) / self.situation.dt

    def end(self, moved: np.ndarray, place: InputPlace | None = None, amount: float = 0.0) -> np.ndarray:
        """(2 d,) coordinates and rates at the end, less those of the step from the situation itself."""
        bodies, joints, rates = self._advance(moved, place, amount)
        assert self.reference is not None
        there = self.reference
        return np.concatenate([deviations(self.chart.coordinates, (bodies, joints), there[:2]), rates - there[2]])

    def _advance(self, moved: np.ndarray, place: InputPlace | None, amount: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
        if engine.advance(numbers, self.recording, tables, 0, 1, situation.dt) < 1:
            raise engine.failure(situation.time, situation.dt)
        knot = engine.knot(numbers, tables.window(0, 1), np.full((placement.sizes[1], 6), np.nan))
        placement.put(*engine.pose(numbers), engine.coordinates(numbers))
        rates = coordinate_rows(placement, chart.coordinates) @ knot.velocity.ravel()
        return *(array.copy() for array in placement.keep()), rates  # type: ignore[return-value]
