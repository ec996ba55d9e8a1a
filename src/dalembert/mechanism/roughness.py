"""How surfaces resist what moves on them beyond one coefficient: friction along and across a direction, against spinning and rolling."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.checks import NUMBERS, coefficient, vector
from dalembert.errors import ModelError

#: names of the numbers of a surface that are there only where they were given, with units
OPTIONAL = {"friction_across": "", "spin_friction": "m", "rolling_friction": "m"}


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


def lever(value: Any, what: str) -> float | None:
    """A coefficient of friction against spinning or rolling (m), or None."""
    return None if value is None else coefficient(value, what)
