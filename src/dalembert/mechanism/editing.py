"""Mechanisms from mechanisms: copies, single elements changed, and one attached to another."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dalembert.checks import (
    NAME,
    NOTHING,
    NUMBER,
    TEXT,
    checked,
    choices,
    coefficient,
    numbers,
    shown,
    unit_quaternion,
    vector,
)
from dalembert.errors import ModelError
from dalembert.mechanism.exchange import exchange

if TYPE_CHECKING:
    from dalembert.mechanism.mechanism import Body, Mechanism

#: lists of a mechanism whose elements stand in the world as a whole, and what becomes of them when it is moved
STANDING = ("grounds", "obstacles", "terrains")
#: lists whose functions see places in the world
SEEING = ("force_laws", "constraints")
#: lists of elements that others refer to, in an order in which each comes after those that it refers to
REFERRED = (
    "bodies", "joints", "couplings", "maps", "paths", "strands", "point_forces", "drags", "penalties", *SEEING, *STANDING, "colliders", "contact_points",
)


class Editor:
    """The part of ``Mechanism`` that makes mechanisms from mechanisms."""

    name: str

    @checked(name=NAME | NOTHING)
    def copy(self, name: str | None = None) -> Any:
        """A mechanism of its own with the same elements; later changes of either do not reach the other."""
        twin = self.snapshot()  # type: ignore[attr-defined]
        twin.name = self.name if name is None else name
        return twin

    def change(self, element: Any, **changes: Any) -> Any:
        """Change an element that was built before, by what it was built with, and return it: ``change("elbow", damping=0.2)``.

        Joints take the arguments of their type, or another ``type`` of joint; bodies ``mass``, ``inertia``, ``shape`` (with its mass and
        inertia, unless they are given) and ``collide``; other elements their numbers. Everything else stays, points of joints too. Handles of the old element
        are no longer good: take the new one. Simulations that exist keep what they were made with.
        """
        from dalembert.mechanism.mechanism import Body, JointElement

        name = element if isinstance(element, str) else getattr(element, "name", None)
        old = self[name]  # type: ignore[index]
        if old is self.world:  # type: ignore[attr-defined]
            raise ModelError("the world cannot be changed")
        if not changes:
            return old
        if isinstance(old, Body):
            new = _changed_body(old, changes)
        elif isinstance(old, JointElement):
            new = _changed_joint(old, changes)
        else:
            new = _changed(old, changes)
        exchange(self, old, new)
        return new

    def without_contacts(self) -> Any:
        """A copy in which nothing touches: no grounds, obstacles, terrains, colliders and contact points."""
        twin = self.copy()
        for kind in (*STANDING, "colliders"):
            for element in getattr(twin, kind):
                del twin._names[element.name]
            getattr(twin, kind).clear()
        twin.contact_points.clear()
        twin.pair_laws.clear()
        for body in [body for body in twin.bodies if body.collide]:
            exchange(twin, body, replace(body, collide=False))
        return twin

    def without_limits(self) -> Any:
        """A copy whose joints have no limits, no dry friction and no bearings that rub."""
        twin = self.copy()
        for joint in [joint for joint in twin.joints if joint.type.bounded]:
            exchange(twin, joint, replace(joint, type=replace(joint.type, limits=None, friction=0.0, bearing=None)))
        return twin

    @checked(prefix=TEXT)
    def attach(
        self, other: Mechanism, *, prefix: str = "", on: Body | str | None = None, position: ArrayLike = (0.0, 0.0, 0.0),
        orientation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
    ) -> dict[str, Any]:
        """Add all that another mechanism consists of, its names with a ``prefix``; returns {its name: the element here}.

        Its world comes to stand at ``position`` (m) with ``orientation`` (a quaternion) in this mechanism's reference pose. What it
        joins to its world is joined to the body ``on`` instead, if one is given. Its gravity counts no longer. The other mechanism
        stays as it is, and may be attached again.
        """
        from dalembert.mechanism.mechanism import Mechanism

        if not isinstance(other, Mechanism):
            raise ModelError(f"attach needs a Mechanism, got {shown(other)}")
        owner = self.world if on is None else self._body(on, "attach")  # type: ignore[attr-defined]
        place = _Place(vector(position, 3, "attach: position"), unit_quaternion(orientation, "attach: orientation"), owner)
        _check(self, other, prefix, place)
        return _add(self, other, prefix, place)


# ---- changing


def _changed_body(body: Any, changes: dict[str, Any]) -> Any:
    from dalembert.mechanism.shapes import Shape, check_inertia, check_mass

    known = ("mass", "inertia", "shape", "collide")
    _refuse(body, changes, known)
    shape = changes.get("shape", body.shape)
    if shape is not None and not isinstance(shape, Shape):
        raise ModelError(f"body {body.name!r}: shape must be one of dalembert's shapes, got {shown(shape)}")
    if changes.get("collide", body.collide) and shape is None:
        raise ModelError(f"body {body.name!r} has no shape to collide with: give it one, or use contact_point")
    formed = {} if "shape" not in changes or shape is None else dict(mass=shape.mass, inertia=shape.inertia)
    given = {**formed, **changes}
    if "mass" in given:
        given["mass"] = check_mass(given["mass"], body.name)
    if "inertia" in given:
        given["inertia"] = check_inertia(given["inertia"], body.name)
        given["inertia"].flags.writeable = False
    return replace(body, **given)


def _changed_joint(joint: Any, changes: dict[str, Any]) -> Any:
    from dalembert.mechanism.joints import Joint

    kind = changes.pop("type", joint.type)
    if not isinstance(kind, Joint):
        raise ModelError(f"joint {joint.name!r}: the type must be a joint such as dalembert.Revolute(), got {shown(kind)}")
    if kind.has_rows != joint.type.has_rows:
        raise ModelError(f"joint {joint.name!r} cannot become a {type(kind).__name__}: its frames are placed in another way. Build it anew.")
    _refuse(joint, changes, [entry.name for entry in fields(kind) if entry.init])
    try:
        return replace(joint, type=replace(kind, **changes))
    except ModelError as error:
        raise ModelError(f"joint {joint.name!r}: {error}") from None


def _changed(element: Any, changes: dict[str, Any]) -> Any:
    from dalembert.mechanism.parameters import SIGNED, TABLE

    _refuse(element, changes, list(TABLE.get(type(element), {})))
    given: dict[str, Any] = {}
    for name, value in changes.items():
        old, what = getattr(element, name), f"{element!r}: {name}"
        if isinstance(old, np.ndarray):
            given[name] = numbers(*old.shape)(value, what)
        else:
            given[name] = NUMBER(value, what) if name in SIGNED else coefficient(value, what, 1.0 if name == "restitution" else np.inf)
    return replace(element, **given)


def _refuse(element: Any, changes: dict[str, Any], known: Any) -> None:
    for name in changes:
        if name not in known:
            raise ModelError(f"{element!r} has no {name!r} to change; {choices(name, known)}")


# ---- attaching


class _Place:
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


def _check(mechanism: Any, other: Any, prefix: str, place: _Place) -> None:
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


def _add(mechanism: Any, other: Any, prefix: str, place: _Place) -> dict[str, Any]:
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
        mechanism.pair_laws[frozenset(prefix + name for name in names)] = law
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


def _standing(kind: str, element: Any, place: _Place, world: Any) -> dict[str, Any]:
    """What of an element changes since the world that it was built in stands elsewhere."""
    how = MOVES.get(kind)
    return {} if how is None else how(element, place, world)


def _pose(element: Any, place: _Place, _: Any) -> dict[str, Any]:
    position, orientation = place.point(element.position), place.orientation(element.orientation)
    for array in (position, orientation):
        array.flags.writeable = False
    return dict(position=position, orientation=orientation)


def _parent(joint: Any, place: _Place, world: Any) -> dict[str, Any]:
    if joint.parent is not world:
        return {}
    return dict(point_parent=place.on_owner(joint.point_parent), frame_parent=place.frame_on_owner(joint.frame_parent))


def _points(element: Any, place: _Place, world: Any) -> dict[str, Any]:
    return dict(points=np.array([place.on_owner(p) if body is world else p for body, p in zip(element.bodies, element.points)]))


def _force(element: Any, place: _Place, _: Any) -> dict[str, Any]:
    return {} if element.follows else dict(force=place.turn @ element.force)


def _plane(element: Any, place: _Place, _: Any) -> dict[str, Any]:
    normal = place.turn @ element.normal
    return dict(normal=normal, offset=element.offset + float(normal @ place.position))


#: by list, how elements follow the world that they were built in
MOVES: dict[str, Callable[[Any, _Place, Any], dict[str, Any]]] = {
    "bodies": _pose, "obstacles": _pose, "joints": _parent, "paths": _points, "strands": _points, "point_forces": _force, "penalties": _plane,
    "grounds": _plane,
}
