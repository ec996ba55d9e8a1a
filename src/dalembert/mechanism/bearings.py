"""Bearings: what a joint's surfaces look like where they rub, so that its friction follows from the load that it carries."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalembert.checks import NOT_NEGATIVE, POSITIVE, POSITIVE_OR_INFINITE, check_fields

#: how joints bear their loads; a joint says which in ``Joint.bears``
GEOMETRIES = ("journal", "ball", "plate")


@dataclass(frozen=True, kw_only=True)
class Bearing:
    """Dry friction in proportion to what a joint carries (RedMax 2.11): ``friction`` is Coulomb's coefficient.

    ``radius`` (m): of the pin, the ball or the plate, or half the width of a guide. ``length`` (m): of a pin or a guide; tilting
    moments press on its two ends, and an infinite one carries them without friction. ``thrust`` (m): mean radius of the collar
    that carries a pin's axial force, ``radius`` by default.

    With N the load on a surface, friction is at most ``friction`` N along a slide and ``friction`` ``radius`` N about an axis:

    - pins and guides (revolute, prismatic, cylindrical, helical, pin in slot, both pins of a universal joint): their ends carry
      F/2 + M x a / length and F/2 - M x a / length across the axis a, the collar the force along it; a guide holds a torque
      about its axis at its width;
    - balls (spherical, slot, point on a plane): N is the size of the force;
    - plates (planar, rectangular): N is the larger of the force across the plate and the tilting moment over ``radius``.

    Where a joint slides and turns at once, or turns about any axis, friction opposes the motion as a whole.
    """

    friction: float
    radius: float
    length: float = np.inf
    thrust: float | None = None

    def __post_init__(self) -> None:
        if self.thrust is None:
            object.__setattr__(self, "thrust", self.radius)
        check_fields(self, friction=NOT_NEGATIVE, radius=POSITIVE, length=POSITIVE_OR_INFINITE, thrust=NOT_NEGATIVE)
