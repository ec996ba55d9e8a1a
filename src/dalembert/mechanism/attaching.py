"""One mechanism as a part of another: its elements under other names, moved with the world that they were built in."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import ModelError

#: lists of a mechanism whose elements stand in the world as a whole, and what becomes of them when it is moved
STANDING = ("grounds", "obstacles", "terrains")
#: lists whose functions see places in the world
SEEING = ("force_laws", "constraints")
#: lists of elements that others refer to, in an order in which each comes after those that it refers to
REFERRED = (
    "bodies", "joints", "couplings", "maps", "paths", "strands", "point_forces", "drags", "penalties", *SEEING, *STANDING, "colliders", "contact_points", "sensors",
)


def attach(mechanism: Any, other: Any, prefix: str, position: np.ndarray, orientation: np.ndarray, owner: Any) -> dict[str, Any]:
    """Add all elements of another mechanism, whose world stands at ``position`` (3,) with ``orientation`` (4,) and gives way to ``owner``."""
    place = Place(position, orientation, owner)
    _check(mechanism, other, prefix, place)
    return _add(mechanism, other, prefix, place)


class Place:
    """Where another mechanism's world stands here, and what its elements are joined to instead of it. ``turn`` (3, 3)."""

    def __init__(self, position: np.ndarray, orientation: np.ndarray, owner: Any) -> None:
        self.position, self.turn, self.owner = position, _matrix(orientation), owner
        self._from_owner = _matrix(owner.orientation).T

    @property
    def moved(self) -> bool:
        return bool(np.any(self.position != 0.0) or np.any(self.turn != np.eye(3)))

    def point(self, point: np.ndarray) -> np.ndarray:
        """A point of the other world in this one."""
        return self.position + self.turn @ point

    def orientation(self, orientation: np.ndarray) -> np.ndarray:
        return _quaternion(self.turn @ _matrix(orientation))

    def on_owner(self, point: np.ndarray) -> np.ndarray:
        """A point of the other world in coordinates of what replaces it."""
        return self._from_owner @ (self.point(point) - self.owner.position)

    def frame_on_owner(self, frame: np.ndarray) -> np.ndarray:
        return self._from_owner @ self.turn @ frame


def _matrix(orientation: np.ndarray) -> np.ndarray:
    return Rotation.from_quat(np.array(orientation), scalar_first=True).as_matrix()


def _quaternion(matrix: np.ndarray) -> np.ndarray:
    return Rotation.from_matrix(matrix).as_quat(scalar_first=True)


def _check(mechanism: Any, other: Any, prefix: str, place: Place) -> None:
    """Refuse, before anything is added, what cannot be attached."""
    taken = [name for name in other._names if name != "world" and prefix + name in mechanism._names]
    if taken:
        raise ModelError(f"attach: {mechanism.name!r} has a {prefix + taken[0]!r} already; choose another prefix")
    if place.moved or place.owner is not mechanism.world:
        for kind in SEEING:
            for element in getattr(other, kind):
                raise ModelError(f"attach: {element!r} is a function of places in the world, which would see others; attach {other.name!r} without moving it")
        if other.terrains:
            raise ModelError(f"attach: {other.terrains[0]!r} cannot be moved; attach {other.name!r} without moving it")
    if place.owner is not mechanism.world:
        for element in (*other.grounds, *other.obstacles):
            raise ModelError(f"attach: {element!r} stands in the world and cannot be put on {place.owner!r}")
    if mechanism.terrains and other.terrains:
        raise ModelError(f"attach: {mechanism.name!r} has the height field {mechanism.terrains[0].name!r} already")


def _add(mechanism: Any, other: Any, prefix: str, place: Place) -> dict[str, Any]:
    here: dict[int, Any] = {id(other.world): place.owner}
    found: dict[str, Any] = {}
    for kind in REFERRED:
        into = getattr(mechanism, kind)
        for element in getattr(other, kind):
            changes: dict[str, Any] = _standing(kind, element, place, other.world)
            for entry in fields(element):
                value = changes.get(entry.name, getattr(element, entry.name))
                if id(value) in here:
                    changes[entry.name] = here[id(value)]
                elif isinstance(value, tuple) and any(id(part) in here for part in value):
                    changes[entry.name] = tuple(here.get(id(part), part) for part in value)
            if hasattr(element, "index"):
                changes["index"] = len(into)
            if hasattr(element, "name"):
                changes["name"] = prefix + element.name
            new = replace(element, **changes)
            here[id(element)] = new
            into.append(new)
            if hasattr(new, "name"):
                mechanism._names[new.name] = found[element.name] = new
    for body, wrench in other.wrenches.items():
        mechanism.wrenches[prefix + body] = np.concatenate([place.turn @ wrench[:3], wrench[3:]])
    for names, law in other.pair_laws.items():
        mechanism.pair_laws[frozenset(prefix + name for name in names)] = _law(law, prefix, other, place)
    mechanism.initial_joints |= {prefix + name: value for name, value in other.initial_joints.items()}
    for name, (linear, angular) in other.initial_velocities.items():
        mechanism.initial_velocities[prefix + name] = (None if linear is None else place.turn @ np.asarray(linear, dtype=float), angular)
    for name, actuator in other.actuators.items():
        arms = {prefix + pulled: arm for pulled, arm in actuator.arms.items()}
        mechanism.actuators[prefix + name] = replace(actuator, name=prefix + actuator.name, arms=arms)
    for name, looks in other.visuals.items():
        at_home = name == other.world.name
        owner = place.owner.name if at_home else prefix + name
        moved = [replace(v, position=place.on_owner(v.position), orientation=_quaternion(place.frame_on_owner(_matrix(v.orientation)))) for v in looks] if at_home else looks
        mechanism.visuals.setdefault(owner, []).extend(moved)
    mechanism.report.extend(f"{prefix}{line}" for line in other.report)
    return found


def _standing(kind: str, element: Any, place: Place, world: Any) -> dict[str, Any]:
    """What of an element changes since the world that it was built in stands elsewhere."""
    how = MOVES.get(kind)
    return {} if how is None else how(element, place, world)


def _pose(element: Any, place: Place, _: Any) -> dict[str, Any]:
    position, orientation = place.point(element.position), place.orientation(element.orientation)
    for array in (position, orientation):
        array.flags.writeable = False
    return dict(position=position, orientation=orientation)


def _parent(joint: Any, place: Place, world: Any) -> dict[str, Any]:
    if joint.parent is not world:
        return {}
    return dict(point_parent=place.on_owner(joint.point_parent), frame_parent=place.frame_on_owner(joint.frame_parent))


def _points(element: Any, place: Place, world: Any) -> dict[str, Any]:
    return dict(points=np.array([place.on_owner(p) if body is world else p for body, p in zip(element.bodies, element.points)]))


def _force(element: Any, place: Place, _: Any) -> dict[str, Any]:
    return {} if element.follows else dict(force=place.turn @ element.force)


def _plane(element: Any, place: Place, _: Any) -> dict[str, Any]:
    normal = place.turn @ element.normal
    return dict(normal=normal, offset=element.offset + float(normal @ place.position))


def _ground(element: Any, place: Place, others: Any) -> dict[str, Any]:
    return dict(_plane(element, place, others), velocity=place.turn @ element.velocity, friction_direction=_turned(element.friction_direction, place))


def _obstacle(element: Any, place: Place, others: Any) -> dict[str, Any]:
    return dict(_pose(element, place, others), friction_direction=_turned(element.friction_direction, place))


def _turned(direction: tuple[float, ...] | None, place: Place) -> tuple[float, ...] | None:
    """A direction of the other world in this one."""
    return tuple((place.turn @ direction).tolist()) if direction is not None and place.moved else direction


def _law(law: Any, prefix: str, other: Any, place: Place) -> Any:
    """The law of a pair, whose direction of friction is that of a body here, or of the world."""
    if law.direction_of is None:
        return law
    stands = any(law.direction_of == element.name for kind in STANDING for element in getattr(other, kind))
    return replace(law, direction_of=prefix + law.direction_of, friction_direction=_turned(law.friction_direction, place) if stands else law.friction_direction)


#: by list, how elements follow the world that they were built in
MOVES: dict[str, Callable[[Any, Place, Any], dict[str, Any]]] = {
    "bodies": _pose, "obstacles": _obstacle, "joints": _parent, "paths": _points, "strands": _points, "point_forces": _force, "penalties": _plane,
    "grounds": _ground,
}
