"""What a run can be differentiated by, by name: numbers of the mechanism, the start, inputs and targets per step."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.errors import GradientError
from dalembert.mechanism.environment import Collider, ContactPoint, Ground, Obstacle
from dalembert.mechanism.forces import Path
from dalembert.mechanism.mechanism import Body, JointElement, Mechanism
from dalembert.mechanism.parameters import list_parameters

#: of the start: coordinates and rates of joints; velocities of bodies
START_JOINT = ("start", "start_rate")
START_BODY = ("start_velocity", "start_angular_velocity")
#: per step: forces, wrenches and tensions; targets at the knots
PER_STEP = ("input", "target")
#: of tables that targets follow
POINTS = "target_points"
#: numbers of the mechanism that change where it starts
PLACING = ("point_parent", "point_child", "turn_parent", "turn_child", "centre_of_mass", "ratio", "offset", "length", "pitch")
#: elements whose numbers do not, of the same names
STANDING = (Ground, Obstacle, Collider, ContactPoint)
#: and those that change its first velocities, where it does not start at rest
WEIGHING = ("mass", "inertia")


@dataclass(frozen=True)
class Name:
    """A name that was understood. ``kind``: "model", "start" or "input"."""

    text: str
    kind: str
    owner: str
    what: str
    shape: tuple[int, ...]


def read_names(mechanism: Mechanism, steps: int, names: Iterable[str], tables: Mapping[str, tuple[int, ...]] | None = None) -> list[Name]:
    """Names of parameters, checked. Raises GradientError for one that does not exist. ``tables``: shapes of targets' tables by joint."""
    if isinstance(names, str):
        raise GradientError(f"parameters must be a list of names, got the single string {names!r}")
    names = list(names)
    known = list_parameters(mechanism, shifts=True, only={name.rpartition(".")[0] for name in names if isinstance(name, str)})
    tabled = {f"{joint}.{POINTS}": Name(f"{joint}.{POINTS}", "input", joint, POINTS, shape) for joint, shape in (tables or {}).items()}
    return [tabled[name] if name in tabled else _read(mechanism, steps, known, name) for name in names]


def element_of(mechanism: Mechanism, owner: str) -> Any:
    """What a name before the dot stands for; None for nothing."""
    if owner not in mechanism:
        return None
    return mechanism[owner]


def _read(mechanism: Mechanism, steps: int, known: dict, name: str) -> Name:
    if not isinstance(name, str):
        raise GradientError(f"the name of a parameter is a string, got {name!r}")
    owner, _, what = name.rpartition(".")
    if name in known:
        return Name(name, "model", owner, what, np.shape(known[name].value))
    element = element_of(mechanism, owner)
    if isinstance(element, JointElement) and element.type.freedom:
        free = element.type.freedom
        if what in START_JOINT:
            return Name(name, "start", owner, what, (free,) if free > 1 else ())
        forced = [i for i, drive in enumerate(element.type.drive) if drive == "force"]  # type: ignore[arg-type]
        if what == "input" and forced:
            return Name(name, "input", owner, what, (steps, len(forced)) if len(forced) > 1 else (steps,))
        if what == "target" and element.type.follows:
            return Name(name, "input", owner, what, (steps + 1, free) if free > 1 else (steps + 1,))
    if isinstance(element, Body) and element is not mechanism.world:
        if what in START_BODY:
            return Name(name, "start", owner, what, (3,))
        if what == "input":
            return Name(name, "input", owner, what, (steps, 6))
    if isinstance(element, Path) and what == "input" and element.drive is not None:
        return Name(name, "input", owner, what, (steps,))
    raise GradientError(f"{mechanism.name!r} has no parameter {name!r} to differentiate by; it has: {', '.join(_near(mechanism, known, owner))}")


def _near(mechanism: Mechanism, known: dict, owner: str) -> list[str]:
    """Names that were perhaps meant."""
    near = [name for name in known if name.startswith(f"{owner}.")]
    element = element_of(mechanism, owner)
    if isinstance(element, JointElement):
        near += [f"{owner}.{what}" for what in START_JOINT if element.type.freedom]
        near += [f"{owner}.input"] * ("force" in element.type.drive) + [f"{owner}.target"] * element.type.follows  # type: ignore[operator]
    elif isinstance(element, Body):
        near += [f"{owner}.{what}" for what in (*START_BODY, "input")]
    if near:
        return sorted(near)
    return ["gravity", *sorted({name.rpartition(".")[0] for name in list_parameters(mechanism) if "." in name})[:20]]


def all_names(mechanism: Mechanism, *, start: bool = True, inputs: bool = False) -> list[str]:
    """Names of all numbers that a run of a mechanism can be differentiated by."""
    names = []
    for name, parameter in list_parameters(mechanism, shifts=True).items():
        owner, _, what = name.rpartition(".")
        element = element_of(mechanism, owner)
        if isinstance(element, Body) and what == "centre_of_mass" and element.collide:
            continue
        if isinstance(element, JointElement):
            if what in ("lower", "upper") and not np.all(np.isfinite(parameter.value)):
                continue
            if what == "friction" and not np.all(parameter.value):
                continue
            if what == "restitution" and not any(np.isfinite(ends).any() for ends in element.type.limits):
                continue
            if what == "armature" and not all(a > 0.0 for a in element.type.armature):  # type: ignore[union-attr]
                continue
            if what == "servo_bound" and not all(s is None or np.isfinite(s.bound) for s in element.type.servo):  # type: ignore[union-attr]
                continue
        names.append(name)
    for joint in mechanism.joints if start else ():
        names += [f"{joint.name}.{what}" for what in START_JOINT if joint.type.freedom and "motion" not in joint.type.drive]  # type: ignore[operator]
    if inputs:
        names += [f"{joint.name}.input" for joint in mechanism.joints if "force" in joint.type.drive]  # type: ignore[operator]
        names += [f"{joint.name}.target" for joint in mechanism.joints if joint.type.follows]
    return names
