"""The points of tables of targets as parameters: "elbow.target_points", as ``set_target("elbow", (times, points))`` has them.

A table is a cubic spline, linear in its points: their bar is that of the targets at the times where a run took them.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dalembert.simulation.record import Record
from dalembert.simulation.targets import Table, turns_freely


def tables_of(record: Record) -> dict[str, Table]:
    """Tables that joints of a run followed, by joint; those of free rotations are no splines of numbers."""
    functions = getattr(record.source, "functions", {})
    return {name: f for name, f in functions.items() if isinstance(f, Table) and not turns_freely(record.mechanism[name])}


def pull_points(record: Record, adjoint: Any, joint: str) -> np.ndarray:
    """The bar of a table's points, of the shape of its values."""
    table, element = tables_of(record)[joint], record.mechanism[joint]
    index, free, times = element.index, element.type.freedom, record.source.times
    knots = table.basis(times(np.arange(record.steps + 1)))
    total = knots.T @ adjoint.inputs.target[:, index, :free]
    # targets between knots were put on straight lines between these
    for places, bars in getattr(adjoint, "inside", ()):
        first = np.floor(places).astype(int)
        share = (places - first)[:, None]
        bend = table.basis(times(places)) - (1.0 - share) * knots[first] - share * knots[first + 1]
        total += bend.T @ bars[:, index, :free]
    # and their rates were those of these lines
    for first, share, order, bars in getattr(adjoint, "moving", ()):
        line = (knots[first + 1] - knots[first]) / record.dt if order == 1 else 0.0
        total += np.outer(table.basis(times(np.array([first + share])), order)[0] - line, bars[index, :free])
    return total.reshape(table.shape)


def push_points(record: Record, change: Mapping[str, np.ndarray]) -> tuple[np.ndarray, Callable[[float, int], np.ndarray]]:
    """Tangents of targets (N, joints, 6) at the knots, and at any number of steps, of them or their rates or accelerations (order 1, 2), along changes of
    tables' points by joint.
    """
    joints, times, tables = len(record.mechanism.joints), record.source.times, tables_of(record)

    def at(places: Any, order: int = 0) -> np.ndarray:
        targets = np.zeros((len(places), joints, 6))
        for name, value in change.items():
            element = record.mechanism[name]
            targets[:, element.index, : element.type.freedom] += tables[name].basis(times(places), order) @ value.reshape(len(value), -1)
        return targets

    return at(np.arange(record.steps + 1)), lambda place, order: at(np.array([place]), order)[0]
