"""Mechanisms from mechanisms: copies, single elements changed; ``attaching.py`` has how one becomes part of another."""
from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

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
from dalembert.mechanism.attaching import STANDING, attach
from dalembert.mechanism.exchange import exchange
from dalembert.mechanism.sensors import Sensor, errors_of

if TYPE_CHECKING:
    from dalembert.mechanism.mechanism import Body, Mechanism

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
        inertia, unless they are given) and ``collide``; sensors ``noise``, ``bias`` and ``seed``; other elements their numbers. Everything else stays, points of joints too. Handles of the old element
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
        elif isinstance(old, Sensor):
            _refuse(old, changes, ("noise", "bias", "seed"))
            new = replace(old, **errors_of(old.name, len(old.noise), **{"noise": old.noise, "bias": old.bias, "seed": old.seed, **changes}))
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
        for sensor in [sensor for sensor in twin.sensors if sensor.other is not None and twin._names.get(sensor.other.name) is not sensor.other]:
            del twin._names[sensor.name]
            twin.sensors.remove(sensor)
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
        return attach(self, other, prefix, vector(position, 3, "attach: position"), unit_quaternion(orientation, "attach: orientation"), owner)


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
