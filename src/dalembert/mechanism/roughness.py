"""How surfaces resist beyond one coefficient: friction along and across a direction, against spinning and rolling, and compliance."""
from __future__ import annotations

from dataclasses import dataclass, fields
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


def roughness(what: str, friction: Any, direction: Any, **given: Any) -> tuple[float, dict[str, Any]]:
    """Coefficient of friction (along ``direction``, where there is one), and the fields of ``Rough``, all checked."""
    along, across, unit = friction_of(friction, direction, what)
    numbers = {name: None if value is None else coefficient(value, f"{name} of {what}") for name, value in given.items()}
    return along, dict(friction_across=across, friction_direction=unit, **numbers)


@dataclass(frozen=True, eq=False, kw_only=True)
class Rough:
    """What a surface, or a pair of them, has besides a coefficient of friction and a restitution; None where nothing was said.

    With ``friction_direction`` (a unit vector) its ``friction`` is that along it and ``friction_across`` that across it. ``spin_friction`` and
    ``rolling_friction`` (m) bound torques, ``stiffness`` (N/m) and ``damping`` (N s/m) make contacts give way: see ``Mechanism.ground``.
    """

    friction_across: float | None = None
    friction_direction: tuple[float, float, float] | None = None
    spin_friction: float | None = None
    rolling_friction: float | None = None
    stiffness: float | None = None
    damping: float | None = None

    def __post_init__(self) -> None:
        if (self.friction_across is None) != (self.friction_direction is None):
            raise ModelError(f"{self!r}: friction_across and friction_direction go together; give friction=(along, across) where it is made")
        if self.damping is not None and self.stiffness is None:
            raise ModelError(f"{self!r}: damping is that of a compliant contact; give it a stiffness too")
        if self.stiffness is not None and not self.stiffness > 0.0:
            raise ModelError(f"{self!r}: stiffness must be positive, got {self.stiffness:g}; leave it out for a rigid contact")

    @property
    def rough(self) -> dict[str, Any]:
        """These fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(Rough)}
