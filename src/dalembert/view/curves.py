"""Curves of a run for its page: coordinates, rates and forces of joints, contacts and sensors, each as a plot of one unit."""
from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dalembert.simulation.trajectory import Trajectory

#: numbers of all plots together at the most; those that come last are left out
MOST = 600_000
AXES = ("x", "y", "z")


class Plot(NamedTuple):
    """A plot by its title: curves by their labels, all of one ``unit``. ``values`` (frames, curves)."""

    title: str
    unit: str
    labels: tuple[str, ...]
    values: np.ndarray


def plots(trajectory: Trajectory, frames: np.ndarray, most: int = MOST) -> tuple[list[Plot], int]:
    """Plots at some knots, and how many were left out."""
    found, left, used = [], 0, 0
    for plot in (*_joints(trajectory, frames), *_contacts(trajectory, frames), *_sensors(trajectory, frames), *_forces(trajectory, frames)):
        used += plot.values.size
        if used > most:
            left += 1
        else:
            found.append(plot)
    return found, left


def _joints(trajectory: Trajectory, frames: np.ndarray) -> Iterator[Plot]:
    """Coordinates and rates, and what acts along them."""
    coordinate, rate, actuation = (trajectory._get(name) for name in ("coordinate", "rate", "actuation"))
    for words, values, unit_of in (
        ("coordinate", coordinate, lambda unit: unit), ("rate", rate, lambda unit: f"{unit}/s"), ("actuation", actuation, lambda unit: "N" if unit == "m" else "N m"),
    ):
        for i, (name, units) in enumerate(zip(trajectory.joints, trajectory.coordinate_units)):
            for unit in dict.fromkeys(units):
                chosen = [k for k, other in enumerate(units) if other == unit]
                labels = (words,) if len(units) == 1 else tuple(f"{words} {k}" for k in chosen)
                yield Plot(f"{name}: {words}", unit_of(unit), labels, values[frames, i][:, chosen])


def _forces(trajectory: Trajectory, frames: np.ndarray) -> Iterator[Plot]:
    for words, unit in (("force", "N"), ("torque", "N m")):
        values = trajectory._get(words)
        for i, name in enumerate(trajectory.joints):
            yield Plot(f"{name}: {words} in the joint", unit, AXES, values[frames, i])


def _contacts(trajectory: Trajectory, frames: np.ndarray) -> Iterator[Plot]:
    if not trajectory.can_touch:
        return
    log = trajectory.contacts()
    for index, label in enumerate(log.names):
        normal = np.zeros(len(trajectory))
        np.add.at(normal, log.knot[log.pair == index], log.normal_force[log.pair == index])
        if normal.any():
            yield Plot(f"{label}: contact force", "N", ("normal force",), normal[frames, None])


def _sensors(trajectory: Trajectory, frames: np.ndarray) -> Iterator[Plot]:
    for sensor in trajectory.model.sensors if trajectory.model is not None else ():
        series = trajectory.sensor(sensor.name)
        for unit in dict.fromkeys(series.units):
            chosen = [k for k, other in enumerate(series.units) if other == unit]
            yield Plot(f"{sensor.name} ({type(sensor.kind).__name__})", unit, tuple(series.channels[k] for k in chosen), series.values[frames][:, chosen])
