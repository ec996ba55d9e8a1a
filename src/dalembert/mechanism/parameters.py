"""The numbers of a mechanism by name: "elbow.damping", "upper.mass", "gravity"; listed with units, and changed in a copy.

What a kind of element has is a row of ``TABLE``; bodies and joints have functions of their own. Changing a number makes its
element anew, so that all checks of the builder apply.
"""
from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dalembert.checks import coefficient, shown
from dalembert.checks import numbers as finite
from dalembert.errors import ModelError
from dalembert.mechanism.environment import Collider, ContactPoint, Ground, HeightField, Obstacle, PairLaw
from dalembert.mechanism.exchange import exchange
from dalembert.mechanism.forces import Drag, Path, Penalty, PointForce
from dalembert.mechanism.mechanism import Body, Coupling, JointElement, Mechanism
from dalembert.mechanism.roughness import OPTIONAL
from dalembert.mechanism.shapes import check_inertia, check_mass


@dataclass(frozen=True)
class Parameter:
    """A value (a number or an array) with its unit."""

    value: Any
    unit: str


#: parameters of joints per free direction, with units for distances and for angles
ALONG = {
    "stiffness": ("N/m", "N m/rad"), "damping": ("N s/m", "N m s/rad"), "rest": ("m", "rad"), "armature": ("kg", "kg m^2"),
    "friction": ("N", "N m"), "lower": ("m", "rad"), "upper": ("m", "rad"),
}
#: the same of servos, per direction that has one
SERVO = {"servo_stiffness": ("N/m", "N m/rad"), "servo_damping": ("N s/m", "N m s/rad"), "servo_bound": ("N", "N m")}
#: the same of bearings
BEARING = {"bearing_friction": "", "bearing_radius": "m", "bearing_length": "m", "bearing_thrust": "m"}
ENDS = ("lower", "upper")
#: parameters that may be infinite
UNBOUNDED = (*ENDS, "servo_bound", "bearing_length")

_TOUCH = {"friction": "", "restitution": ""}
_ROUGH = {**_TOUCH, **OPTIONAL}
#: names and units of what other elements have
TABLE: dict[type, dict[str, str]] = {
    Coupling: {"ratio": "", "offset": "m or rad"},
    Path: {"stiffness": "N/m", "damping": "N s/m", "rest": "m", "points": "m"},
    PointForce: {"force": "N"},
    Drag: {"linear": "N s/m", "angular": "N m s/rad"},
    Penalty: {"offset": "m", "stiffness": "N/m", "damping": "N s/m", "friction": "", "tangential": "N s/m"},
    Ground: {**_ROUGH, "offset": "m", "velocity": "m/s"}, Obstacle: {**_ROUGH, "position": "m"}, HeightField: _TOUCH, Collider: {**_TOUCH, "position": "m"},
    ContactPoint: {**_TOUCH, "point": "m", "radius": "m"}, PairLaw: _ROUGH,
}
#: of these, those that may be negative
SIGNED = ("ratio", "offset", "force", "points", "point", "position", "velocity")
#: sizes of shapes that touch, m; mass and inertia of a body stay what they are
SIZES = ("radius", "length", "size", "semi_axes")
#: points of joints on either body, from its centre of mass, in body axes
POINTS = {"point_parent": "m", "point_child": "m"}
#: changes of what was built: turns of a joint's axes on either body (rotation vectors), a move of a body's centre of mass; in body axes
SHIFTS: dict[type, dict[str, str]] = {JointElement: {"turn_parent": "rad", "turn_child": "rad"}, Body: {"centre_of_mass": "m"}}
#: geometry of joints
GEOMETRY = (*POINTS, *SHIFTS[JointElement])


def list_parameters(mechanism: Mechanism, *, shifts: bool = False, only: Collection[str] | None = None) -> dict[str, Parameter]:
    """All parameters of a mechanism by name; with ``shifts`` also those that are changes of what was built, and zero: a body's
    ``centre_of_mass`` (everything on it stays where it is) and turns of a joint's axes. ``only``: of elements with these names.
    """
    found = {"gravity": Parameter(np.array(mechanism.gravity, dtype=float), "m/s^2")}
    for owner, element in owners(mechanism).items():
        if only is not None and owner not in only:
            continue
        found |= {f"{owner}.{name}": parameter for name, parameter in _of(mechanism, element).items()}
        if shifts:
            found |= {f"{owner}.{name}": Parameter(np.zeros(3), unit) for name, unit in SHIFTS.get(type(element), {}).items()}
    return found


def with_parameters(mechanism: Mechanism, values: Mapping[str, ArrayLike], *, checked: bool = True) -> Mechanism:
    """A copy of a mechanism with other values. Raises ModelError for an unknown name or a value that makes no sense.

    ``checked=False``: inertias may be such as no body has, which differences need beside those of thin ones.
    """
    known = list_parameters(mechanism, shifts=True)
    copy = mechanism.snapshot()
    for name, value in values.items():
        if name not in known:
            near = [n for n in known if n.startswith(f"{str(name).rpartition('.')[0]}.")]
            raise ModelError(f"{mechanism.name!r} has no parameter {name!r}; it has: {', '.join(sorted(near or known))}")
        numbers = _checked(name, value, known[name].value)
        owner, _, what = name.rpartition(".")
        if name == "gravity":
            copy.gravity = numbers
        else:
            _change(copy, owner, owners(copy)[owner], what, numbers, checked)
    return copy


def _checked(name: str, value: ArrayLike, old: Any) -> Any:
    """The value as a float or an array of the old one's shape; one number stands for all."""
    shape = np.shape(old)
    given = finite(infinite=name.rpartition(".")[2] in UNBOUNDED)(value, f"parameter {name!r}")
    try:
        numbers = np.array(np.broadcast_to(given, shape))
    except ValueError:
        raise ModelError(f"parameter {name!r} must be {'a number' if not shape else f'numbers of shape {shape}'}, got {shown(value)}") from None
    return numbers if shape else float(numbers)


def owners(mechanism: Mechanism) -> dict[str, Any]:
    """All that has parameters, by the name that stands before the dot.

    Contact points go by their body and their number on it ("foot contact 0"), laws of pairs by both names ("foot and ground").
    """
    m = mechanism
    named = (
        *m.bodies, *m.joints, *m.couplings, *m.paths, *m.point_forces, *m.drags, *m.penalties, *m.grounds, *m.obstacles, *m.terrains, *m.colliders,
    )
    owners: dict[str, Any] = {element.name: element for element in named}
    count: dict[str, int] = {}
    for point in m.contact_points:
        number = count[point.body.name] = count.get(point.body.name, -1) + 1
        owners.setdefault(f"{point.body.name} contact {number}", point)
    for names, law in m.pair_laws.items():
        owners.setdefault(" and ".join(sorted(names)), law)
    return owners


def _of(mechanism: Mechanism, element: Any) -> dict[str, Parameter]:
    """An element's parameters; those that leave the word to another element are not there."""
    if isinstance(element, Body):
        wrench = mechanism.wrenches.get(element.name, np.zeros(6))
        return dict(
            mass=Parameter(element.mass, "kg"), inertia=Parameter(element.inertia.copy(), "kg m^2"),
            force=Parameter(wrench[:3].copy(), "N"), torque=Parameter(wrench[3:].copy(), "N m"), **(sizes_of(element) if element.collide else {}),
        )
    if isinstance(element, JointElement):
        return _of_joint(element)
    if (isinstance(element, Path) and element.law is not None) or (isinstance(element, PairLaw) and not element.collide):
        return {}
    values = {name: (getattr(element, name), unit) for name, unit in TABLE[type(element)].items()}
    found = {name: Parameter(np.copy(value) if np.ndim(value) else value, unit) for name, (value, unit) in values.items() if value is not None}
    return found | (sizes_of(element) if isinstance(element, Collider | Obstacle) else {})


def sizes_of(element: Any) -> dict[str, Parameter]:
    """The sizes of the shape by which a body, collider or obstacle touches."""
    values = {name: getattr(element.shape, name, None) for name in SIZES}
    return {name: Parameter(np.array(value, dtype=float) if np.ndim(value) else float(value), "m") for name, value in values.items() if value is not None}


def resized(shape: Any, name: str, value: Any) -> Any:
    """A shape with another size, of the same mass."""
    return replace(shape, **{name: tuple(value) if np.ndim(value) else value}, density=None)


def _of_joint(element: JointElement) -> dict[str, Parameter]:
    kind, found = element.type, {}

    def add(name: str, values: Any, units: tuple[str, str], directions: list[int]) -> None:
        kinds = [kind.directions[i][0] for i in directions]
        # along a spline lengths are numbers of pieces
        words = dict.fromkeys(units[1].replace("/rad", "").replace("rad", "") if k == "spline" else units[k not in ("slide", "distance")] for k in kinds)
        found[name] = Parameter(float(values[0]) if len(values) == 1 else np.array(values, dtype=float), ", ".join(words))

    for name, units in ALONG.items() if kind.freedom else ():
        values = [ends[ENDS.index(name)] for ends in kind.limits] if name in ENDS else getattr(kind, name)
        add(name, values, units, list(range(kind.freedom)))
    followed = [i for i, servo in enumerate(kind.servo) if servo is not None]  # type: ignore[arg-type]
    for name, units in SERVO.items() if followed else ():
        add(name, [getattr(kind.servo[i], name.removeprefix("servo_")) for i in followed], units, followed)  # type: ignore[index]
    if kind.bearing is not None:
        found |= {name: Parameter(getattr(kind.bearing, name.removeprefix("bearing_")), unit) for name, unit in BEARING.items()}
    if kind.freedom:
        found["restitution"] = Parameter(kind.restitution, "")
    found |= {name: Parameter(getattr(kind, name), "m") for name in ("pitch", "length") if getattr(kind, name, None) is not None}
    return found | {name: Parameter(getattr(element, name).copy(), unit) for name, unit in POINTS.items()}


def _change(mechanism: Mechanism, owner: str, element: Any, name: str, value: Any, checked: bool) -> None:
    """Put an element with another value in the place of the old one."""
    if isinstance(element, Body) and name in ("force", "torque"):
        wrench = mechanism.wrenches.get(owner, np.zeros(6)).copy()
        wrench[:3] = value if name == "force" else wrench[:3]
        wrench[3:] = value if name == "torque" else wrench[3:]
        mechanism.wrenches[owner] = wrench
        return
    if isinstance(element, Body) and name == "centre_of_mass":
        _move_centre(mechanism, element, value)
        return
    if isinstance(element, Body) and name == "inertia":
        new: Any = replace(element, inertia=_read_only(check_inertia(value, owner) if checked else np.array(value)))
    elif isinstance(element, Body | Collider | Obstacle) and name in SIZES:
        new = replace(element, shape=resized(element.shape, name, value))
    elif isinstance(element, Body):
        new = replace(element, mass=check_mass(value, owner))
    elif isinstance(element, JointElement) and name.startswith("turn_"):
        frame = name.replace("turn", "frame")
        new = replace(element, **{frame: Rotation.from_rotvec(value).as_matrix() @ getattr(element, frame)})
    elif isinstance(element, JointElement) and name in GEOMETRY:
        new = replace(element, **{name: value})
    elif isinstance(element, JointElement):
        new = replace(element, type=_with(element, name, value))
    elif name in SIGNED:
        new = replace(element, **{name: _read_only(np.array(value)) if name in ("points", "point", "position", "velocity") else value})
    else:
        new = replace(element, **{name: coefficient(value, f"{owner}.{name}", 1.0 if name == "restitution" else np.inf)})
    if isinstance(element, PairLaw):
        mechanism.pair_laws.update({names: new for names, law in mechanism.pair_laws.items() if law is element})
    else:
        exchange(mechanism, element, new)


def _move_centre(mechanism: Mechanism, body: Body, shift: np.ndarray) -> None:
    """Move a body's centre of mass by ``shift`` (body axes), with everything else on it, and what it looks like, staying where it is."""
    if body.collide:
        raise ModelError(f"the centre of mass of {body.name!r} cannot be moved by itself: the shape by which it touches is placed from it. Use a collider.")
    moved = replace(body, position=body.position + Rotation.from_quat(body.orientation, scalar_first=True).apply(shift))
    exchange(mechanism, body, moved)
    for joint in list(mechanism.joints):
        changes = {f"point_{end}": getattr(joint, f"point_{end}") - shift for end in ("parent", "child") if getattr(joint, end) is moved}
        if changes:
            exchange(mechanism, joint, replace(joint, **changes))
    for path in list(mechanism.paths):
        if any(end is moved for end in path.bodies):
            points = np.array([p - shift if end is moved else p for end, p in zip(path.bodies, path.points)])
            exchange(mechanism, path, replace(path, points=points))
    for load in (*mechanism.point_forces, *mechanism.penalties, *mechanism.contact_points):
        if load.body is moved:
            exchange(mechanism, load, replace(load, point=np.asarray(load.point) - shift))
    for collider in list(mechanism.colliders):
        if collider.body is moved:
            exchange(mechanism, collider, replace(collider, position=np.asarray(collider.position) - shift))
    if body.name in mechanism.visuals:
        mechanism.visuals[body.name] = [replace(v, position=np.asarray(v.position) - shift) for v in mechanism.visuals[body.name]]


def _read_only(array: np.ndarray) -> np.ndarray:
    """Simulations and trajectories share it."""
    array.flags.writeable = False
    return array


def _with(element: JointElement, name: str, value: Any) -> Any:
    """A joint type with another value."""
    kind = element.type
    try:
        if name in ENDS:
            ends = np.array(kind.limits, dtype=float)
            ends[:, ENDS.index(name)] = value
            return replace(kind, limits=tuple((float(a), float(b)) for a, b in ends))
        if name in SERVO:
            numbers = iter(np.atleast_1d(value))
            gain = name.removeprefix("servo_")
            return replace(kind, servo=tuple(servo if servo is None else replace(servo, **{gain: next(numbers)}) for servo in kind.servo))  # type: ignore[union-attr]
        if name in BEARING:
            return replace(kind, bearing=replace(kind.bearing, **{name.removeprefix("bearing_"): value}))  # type: ignore[type-var]
        return replace(kind, **{name: tuple(np.atleast_1d(value)) if name in ALONG else value})
    except ModelError as error:
        raise ModelError(f"joint {element.name!r}: {error}") from None
