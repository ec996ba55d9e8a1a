"""From a mechanism's gears, paths, constraints and forces to records."""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dalembert.mechanism.forces import Constraint, Path
from dalembert.mechanism.maps import CoordinateMap
from dalembert.mechanism.mechanism import Body, Coupling, Mechanism
from dalembert.model.functions import address_of
from dalembert.model.records import (
    CABLE,
    CONSTRAINT,
    COUPLING,
    DRAG,
    FUNCTION,
    GEAR,
    LEG,
    LOAD,
    MAPPED,
    PATH,
    PENALTY,
    POINT,
    POINT_FORCE,
    SPRING,
    USER_LAW,
    USER_LOAD,
)


@dataclass
class Shared:
    """Lists that all elements share: their bodies, the points of paths, the joint coordinates of maps. ``world``: the index of the world."""

    world: int
    ends: list[int] = field(default_factory=list)
    points: list[tuple[int, int, np.ndarray]] = field(default_factory=list)
    legs: list[tuple[int, int, tuple[int, int], float]] = field(default_factory=list)

    def add(self, record: np.void, bodies: tuple[Body, ...]) -> list[int]:
        """Give an element its different bodies that move; returns the place of each body among them (-1 for the world)."""
        distinct = list(dict.fromkeys(b.index for b in bodies if b.index >= 0))
        record["first"], record["ends"] = len(self.ends), len(distinct)
        self.ends += distinct
        return [distinct.index(b.index) if b.index >= 0 else -1 for b in bodies]

    def point_records(self) -> np.ndarray:
        """The points of all paths."""
        records = np.zeros(len(self.points), POINT)
        for record, (slot, body, point) in zip(records, self.points):
            record["slot"], record["body"], record["point"] = slot, body if body >= 0 else self.world, point
        return records

    def leg_records(self) -> np.ndarray:
        """The joint coordinates of all maps."""
        records = np.zeros(len(self.legs), LEG)
        for record, leg in zip(records, self.legs):
            record["joint"], record["direction"], record["slot"], record["weight"] = leg
        return records


def compile_couplings(mechanism: Mechanism, shared: Shared) -> np.ndarray:
    """Gears, then rows of coordinate maps, then those of users' constraints, then paths."""
    rows = [(element, row) for element in mechanism.constraints for row in range(element.rows)]
    mapped = [(element, row) for element in mechanism.maps for row in followers(element)]
    records = np.zeros(len(mechanism.couplings) + len(mapped) + len(rows) + len(mechanism.paths), COUPLING)
    rest = iter(records)
    for gear in mechanism.couplings:
        _write_gear(next(rest), gear, shared)
    for element, row in mapped:
        _write_map(next(rest), element, row, shared)
    for element, row in rows:
        _write_constraint(next(rest), element, row, shared)
    for path in mechanism.paths:
        _write_path(next(rest), path, shared)
    return records


def followers(element: CoordinateMap) -> list[int]:
    """Places of the map's coordinates that follow from the ones that y is read from."""
    pilots = element.pilots
    return [i for i in range(len(element.joints)) if i not in pilots]


def coupling_names(mechanism: Mechanism) -> list[str]:
    """A name per coupling, in the order of their records."""
    rows = [(c.name, row, c.rows) for c in mechanism.constraints for row in range(c.rows)]
    return [
        *(c.name for c in mechanism.couplings), *(f"{m.name}[{row}]" for m in mechanism.maps for row in followers(m)),
        *(name if count == 1 else f"{name}[{row}]" for name, row, count in rows),
        *(p.name for p in mechanism.paths),
    ]


def _write_gear(record: np.void, gear: Coupling, shared: Shared) -> None:
    record["kind"], record["law"], record["ratio"], record["offset"] = GEAR, CONSTRAINT, gear.ratio, gear.offset
    record["joint"] = gear.first.index, gear.second.index
    record["direction"] = gear.first_direction, gear.second_direction
    record["slot"] = shared.add(record, tuple(b for joint in (gear.first, gear.second) for b in (joint.parent, joint.child)))


def _write_map(record: np.void, element: CoordinateMap, row: int, shared: Shared) -> None:
    """One coordinate of a map as a function of those that y is read from: linear in them, or by a call."""
    record["kind"], record["law"], record["row"] = MAPPED, CONSTRAINT, row
    pilots = element.pilots
    weights = np.zeros(len(pilots))
    if element.function is None:
        weights = np.linalg.solve(element.matrix[list(pilots)].T, element.matrix[row])
        record["offset"] = element.offset[row] - weights @ element.offset[list(pilots)]
    else:
        record["function"] = address_of(element)
    places = (row, *pilots)
    slots = shared.add(record, tuple(b for i in places for b in (element.joints[i].parent, element.joints[i].child)))
    record["first_leg"], record["legs"] = len(shared.legs), len(places)
    for k, (place, weight) in enumerate(zip(places, (1.0, *weights))):
        shared.legs.append((element.joints[place].index, element.directions[place], (slots[2 * k], slots[2 * k + 1]), float(weight)))


def _write_constraint(record: np.void, element: Constraint, row: int, shared: Shared) -> None:
    record["kind"], record["law"], record["row"], record["function"] = FUNCTION, CONSTRAINT, row, address_of(element)
    shared.add(record, element.bodies)


def _write_path(record: np.void, path: Path, shared: Shared) -> None:
    record["kind"], record["law"] = PATH, USER_LAW if path.law is not None else CABLE if path.pulls else SPRING
    record["stiffness"], record["damping"], record["rest"] = path.stiffness, path.damping, path.rest
    if path.law is not None:
        record["law_function"] = address_of(path)
    record["first_point"], record["points"] = len(shared.points), len(path.points)
    slots = shared.add(record, path.bodies)
    shared.points += [(slot, body.index, point) for slot, body, point in zip(slots, path.bodies, path.points)]


def compile_loads(mechanism: Mechanism, shared: Shared) -> np.ndarray:
    """Point forces, drags, penalties, then users' laws. Their numbers: see forces/bodies.py."""
    single = [
        *((POINT_FORCE, f.body, False, [*f.point, *f.force, float(f.follows)]) for f in mechanism.point_forces),
        *((DRAG, d.body, True, [d.linear, d.angular]) for d in mechanism.drags),
        *((PENALTY, p.body, True, [*p.point, *p.normal, p.offset, p.stiffness, p.damping, p.friction, p.tangential]) for p in mechanism.penalties),
    ]
    records = np.zeros(len(single) + len(mechanism.force_laws), LOAD)
    for record, (kind, body, moving, numbers) in zip(records, single):
        record["kind"], record["body"], record["moving"] = kind, body.index, moving
        record["numbers"][: len(numbers)] = numbers
    for record, law in zip(records[len(single) :], mechanism.force_laws):
        record["kind"], record["function"], record["moving"] = USER_LOAD, address_of(law), law.function is not None
        shared.add(record, law.bodies)
    return records
