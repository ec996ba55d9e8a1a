"""How surfaces resist beyond one coefficient: friction along and across a direction, against spinning and rolling, and compliance."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.checks import NUMBERS, coefficient, vector
from dalembert.errors import ModelError

#: names of the numbers of a surface that are there only where they were given, with units
OPTIONAL = {"friction_across": "", "spin_friction": "m", "rolling_friction": "m", "stiffness": "N/m", "damping": "N s/m"}


def friction_of(friction: Any, direction: Any, what: str) -> tuple[float, float | None, tuple[float, float, float] | None]:
    """Coefficient of friction (along ``direction``), that across it, and the direction as a unit vector; None where friction is the same all around."""
    if np.size(NUMBERS(friction, f"friction of {what}")) == 1 and np.ndim(friction) == 0:
        if direction is not None:
            raise ModelError(f"{what}: friction_direction is for friction=(along, across), got friction={friction!r}")
        return coefficient(friction, f"friction of {what}"), None, None
    if direction is None:
        raise ModelError(f"{what}: friction=(along, across) needs friction_direction=, a vector along which the first one holds; got friction={friction!r}")
    along, across = vector(friction, 2, f"friction of {what}")
    found = vector(direction, 3, f"friction_direction of {what}")
    length = float(np.linalg.norm(found))
    if length < 1e-12:
        raise ModelError(f"friction_direction of {what} must not be zero")
    found = found if abs(length - 1.0) < 1e-12 else found / length
    return coefficient(along, f"friction of {what}"), coefficient(across, f"friction of {what}"), tuple(found.tolist())


def check_sides(element: Any) -> None:
    """Friction across a direction is said of what has one."""
    if (element.friction_across is None) != (element.friction_direction is None):
        raise ModelError(f"{element!r}: friction_across and friction_direction go together; give friction=(along, across) where it is made")


def check_sizes(element: Any) -> None:
    """Damping is that of something with a stiffness."""
    if element.damping is not None and element.stiffness is None:
        raise ModelError(f"{element!r}: damping is that of a compliant contact; give it a stiffness too")
    if element.stiffness is not None and not element.stiffness > 0.0:
        raise ModelError(f"{element!r}: stiffness must be positive, got {element.stiffness:g}; leave it out for a rigid contact")


def numbers_of(what: str, **given: Any) -> dict[str, float | None]:
    """Optional numbers by name, checked; None where they were not given."""
    return {name: None if value is None else coefficient(value, f"{name} of {what}") for name, value in given.items()}
