"""The numbers of a mechanism by name: "elbow.damping", "upper.mass", "gravity"; listed with units, and changed in a copy.

A kind of element is a row of ``TABLE``: what its parameters are called, and their units. Changing one makes the element
anew, so that all checks of the builder apply.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import ModelError
from dalembert.mechanism.environment import Ground, HeightField, Obstacle, coefficient
from dalembert.mechanism.mechanism import Body, Coupling, JointElement, Mechanism, vector
from dalembert.mechanism.shapes import check_inertia, check_mass


@dataclass(frozen=True)
class Parameter:
    """A value (a number or an array) with its unit."""

    value: Any
    unit: str


#: parameters of joints per free direction, with units for distances and for angles
_ALONG = {
    "stiffness": ("N/m", "N m/rad"), "damping": ("N s/m", "N m s/rad"), "rest": ("m", "rad"), "armature": ("kg", "kg m^2"),
    "friction": ("N", "N m"), "lower": ("m", "rad"), "upper": ("m", "rad"),
}
_UNITS = {
    "mass": "kg", "inertia": "kg m^2", "force": "N", "torque": "N m", "gravity": "m/s^2", "restitution": "", "friction": "",
    "ratio": "", "offset": "m or rad", "pitch": "m", "length": "m",
}


def list_parameters(mechanism: Mechanism) -> dict[str, Parameter]:
    """All parameters of a mechanism by name."""
    found = {"gravity": Parameter(np.array(mechanism.gravity, dtype=float), _UNITS["gravity"])}
    for element in _elements(mechanism):
        for name, value, unit in _of(mechanism, element):
            found[f"{element.name}.{name}"] = Parameter(value, unit)
    return found


def with_parameters(mechanism: Mechanism, values: Mapping[str, ArrayLike]) -> Mechanism:
    """A copy of a mechanism with other values. Raises ModelError for an unknown name or a value that makes no sense."""
    known = list_parameters(mechanism)
    copy = mechanism.snapshot()
    for name, value in values.items():
        if name not in known:
            element = name.rsplit(".", 1)[0]
            near = ", ".join(sorted(n for n in known if n.startswith(f"{element}."))) or ", ".join(sorted(known))
            raise ModelError(f"{mechanism.name!r} has no parameter {name!r}; it has: {near}")
        numbers = _checked(name, value, known[name].value)
        if name == "gravity":
            copy.gravity = numbers
            continue
        owner, _, what = name.rpartition(".")
        _change(copy, copy[owner], what, numbers)
    return copy


def _checked(name: str, value: ArrayLike, old: Any) -> Any:
    """The value as a float or an array of the old one's shape; one number stands for all."""
    shape = np.shape(old)
    try:
        numbers = np.array(np.broadcast_to(np.asarray(value, dtype=float), shape))
    except (TypeError, ValueError):
        raise ModelError(f"parameter {name!r} must be {'a number' if not shape else f'numbers of shape {shape}'}, got {value!r}") from None
    unbounded = name.endswith((".lower", ".upper"))
    if np.any(np.isnan(numbers)) or (not unbounded and not np.all(np.isfinite(numbers))):
        raise ModelError(f"parameter {name!r} must be finite, got {value!r}")
    return numbers if shape else float(numbers)


def _elements(mechanism: Mechanism) -> list[Any]:
    return [*mechanism.bodies, *mechanism.joints, *mechanism.couplings, *mechanism.grounds, *mechanism.obstacles, *mechanism.terrains]


def _of(mechanism: Mechanism, element: Any) -> list[tuple[str, Any, str]]:
    """Names, values and units of an element's parameters."""
    if isinstance(element, Body):
        wrench = mechanism.wrenches.get(element.name, np.zeros(6))
        values = dict(mass=element.mass, inertia=element.inertia.copy(), force=wrench[:3].copy(), torque=wrench[3:].copy())
        return [(name, value, _UNITS[name]) for name, value in values.items()]
    if isinstance(element, JointElement):
        return _of_joint(element)
    names = ("ratio", "offset") if isinstance(element, Coupling) else ("friction", "restitution")
    return [(name, getattr(element, name), _UNITS[name]) for name in names]


def _of_joint(element: JointElement) -> list[tuple[str, Any, str]]:
    kind = element.type
    found: list[tuple[str, Any, str]] = []
    if kind.freedom:
        straight = [name in ("slide", "distance") for name, _ in kind.directions]
        ends = np.array(kind.limits, dtype=float)
        for name, units in _ALONG.items():
            values = ends[:, ("lower", "upper").index(name)] if name in ("lower", "upper") else np.array(getattr(kind, name), dtype=float)
            unit = ", ".join(dict.fromkeys(units[0] if s else units[1] for s in straight))
            found.append((name, float(values[0]) if len(values) == 1 else values, unit))
        found.append(("restitution", kind.restitution, ""))
    found += [(name, getattr(kind, name), _UNITS[name]) for name in ("pitch", "length") if getattr(kind, name, None) is not None]
    return found


def _change(mechanism: Mechanism, element: Any, name: str, value: Any) -> None:
    """Put an element with another value in the place of the old one."""
    if isinstance(element, Body) and name in ("force", "torque"):
        wrench = mechanism.wrenches.get(element.name, np.zeros(6)).copy()
        wrench[:3] = vector(value, 3, f"{element.name}.force") if name == "force" else wrench[:3]
        wrench[3:] = vector(value, 3, f"{element.name}.torque") if name == "torque" else wrench[3:]
        mechanism.wrenches[element.name] = wrench
        return
    if isinstance(element, Body):
        new: Any = replace(element, **{name: check_mass(value, element.name) if name == "mass" else check_inertia(value, element.name)})
    elif isinstance(element, JointElement):
        new = replace(element, type=_with(element, name, value))
    elif isinstance(element, Ground | Obstacle | HeightField):
        new = replace(element, **{name: coefficient(value, f"{element.name}.{name}", 1.0 if name == "restitution" else np.inf)})
    else:
        new = replace(element, **{name: value})
    _exchange(mechanism, element, new)


def _with(element: JointElement, name: str, value: Any) -> Any:
    """A joint type with another value."""
    kind = element.type
    try:
        if name in ("lower", "upper"):
            ends = np.array(kind.limits, dtype=float)
            ends[:, ("lower", "upper").index(name)] = value
            return replace(kind, limits=tuple((float(a), float(b)) for a, b in ends))
        return replace(kind, **{name: tuple(np.atleast_1d(value)) if name in _ALONG else value})
    except ModelError as error:
        raise ModelError(f"joint {element.name!r}: {error}") from None


def _exchange(mechanism: Mechanism, old: Any, new: Any) -> None:
    """Put ``new`` wherever the mechanism, or one of its elements, refers to ``old``."""
    mechanism._names[new.name] = new
    for entry in fields(mechanism):
        held = getattr(mechanism, entry.name)
        if isinstance(held, list):
            for i, item in enumerate(held):
                if item is old:
                    held[i] = new
                elif is_dataclass(item) and not isinstance(item, type):
                    changes = {f.name: new for f in fields(item) if getattr(item, f.name) is old}
                    if changes:
                        _exchange(mechanism, item, replace(item, **changes)) if hasattr(item, "name") else held.__setitem__(i, replace(item, **changes))
