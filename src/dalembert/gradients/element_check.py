"""Derivatives of a mechanism's elements against differences, one by one: rows of joints, gears and constraints, laws of users."""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.model.assembly import constraint_rows, row_values
from dalembert.model.placement import Placement

if TYPE_CHECKING:
    from dalembert.simulation.simulation import Simulation

#: displacements (m, rad, or part of a length or rate) of the differences
STEP = 1e-5
#: by which part derivatives may miss differences; what is below the second counts as none
RIGHT, NOTHING = 1e-5, 1e-7
#: random changes of the pose that rows and laws are differenced along
CHANGES = 3


def element_errors(sim: Simulation) -> Iterator[tuple[str, float]]:
    """Elements by what they are and their name, with the part by which their derivatives miss differences, at the simulation's pose."""
    placement = Placement.of(sim.mechanism)
    numbers = sim.state.numbers
    placement.work.joints["target"] = sim._engine.targets(numbers)
    placement.put(*sim._engine.pose(numbers), sim._engine.coordinates(numbers))
    yield from _rows(placement)
    yield from _path_laws(sim)
    yield from _potentials(sim)


def _rows(placement: Placement) -> Iterator[tuple[str, float]]:
    """Joints that lock something, gears and constraints: gradients of their rows."""
    rows = constraint_rows(placement)
    if not rows.owners:
        return
    G, kept, random, errors = rows.matrix(), placement.keep(), np.random.default_rng(0), {}
    for _ in range(CHANGES):
        change = random.normal(size=(placement.sizes[0], 6))
        values = []
        for sign in (1.0, -1.0):
            placement.put(*_moved(kept[0]["x"][:-1], kept[0]["q"][:-1], sign * STEP * change))
            values.append(row_values(placement, {}))
            placement.restore(kept)
        along, differences = G @ change.ravel(), (values[0] - values[1]) / (2.0 * STEP)
        size = np.sqrt(np.asarray(G.multiply(G).sum(axis=1)).ravel()) + NOTHING
        for owner, off in zip(rows.owners, np.abs(along - differences) / size):
            errors[owner] = max(errors.get(owner, 0.0), float(off))
    for owner, off in errors.items():
        yield f"rows of {owner!r}", off


def _moved(position: np.ndarray, orientation: np.ndarray, change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Poses moved by displacements (world) and rotation vectors (body axes)."""
    turned = Rotation.from_quat(orientation, scalar_first=True) * Rotation.from_rotvec(change[:, 3:])
    return position + change[:, :3], turned.as_quat(scalar_first=True)


def _path_laws(sim: Simulation) -> Iterator[tuple[str, float]]:
    """Laws of paths that give their own derivatives (force, K, D, energy); K is by the length, D by the rate, the energy has the force as its slope at rest."""
    for path in sim.mechanism.paths:
        if path.law is None:
            continue
        length, rate = float(sim.path_length(path.name)), float(sim.path_rate(path.name))

        def law(length: float, rate: float, function: Any = path.law) -> np.ndarray:
            return np.atleast_1d(np.asarray(function(length, rate), dtype=float)).ravel()

        here = law(length, rate)
        if here.size < 4:  # it is differenced anyway
            continue
        by_length, by_rate = STEP * max(abs(length), 1e-3), STEP * max(abs(rate), 1.0)
        slopes = (law(length + by_length, rate) - law(length - by_length, rate)) / (2.0 * by_length)
        fades = (law(length, rate + by_rate) - law(length, rate - by_rate)) / (2.0 * by_rate)
        stores = (law(length + by_length, 0.0)[3] - law(length - by_length, 0.0)[3]) / (2.0 * by_length)
        pairs = ((here[1], slopes[0]), (here[2], fades[0]), (law(length, 0.0)[0], stores))
        yield f"law of path {path.name!r}", max(_apart(given, differenced, here[0] / max(abs(length), 1e-3)) for given, differenced in pairs)


def _potentials(sim: Simulation) -> Iterator[tuple[str, float]]:
    """Laws with an energy and a function: at rest the wrenches are its negative gradient."""
    for law in sim.mechanism.force_laws:
        if law.function is None or law.energy is None:
            continue
        indices = [body.index for body in law.bodies]
        position, orientation = sim.position[indices], sim.orientation[indices]
        wrench = np.asarray(law.function(position, orientation, np.zeros((len(indices), 6))), dtype=float).reshape(len(indices), 6)
        random, worst = np.random.default_rng(0), 0.0
        for _ in range(CHANGES):
            change = random.normal(size=(len(indices), 6))
            ends = [float(np.asarray(law.energy(*_moved(position, orientation, sign * STEP * change)))) for sign in (1.0, -1.0)]
            worst = max(worst, _apart(-float(np.sum(wrench * change)), (ends[0] - ends[1]) / (2.0 * STEP), float(np.abs(wrench).max())))
        yield f"wrench of {law.name!r}", worst


def _apart(given: float, differenced: float, size: float) -> float:
    """By which part a derivative misses a difference; ``size``: what is small beside it counts little."""
    return abs(given - differenced) / max(abs(given), abs(differenced), abs(size), NOTHING)
