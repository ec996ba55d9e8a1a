"""Straight links between two points: what most of the zoo is made of."""
from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dalembert.checks import POSITIVE, checked, whole
from dalembert.errors import ModelError
from dalembert.mechanism.mechanism import Body, Mechanism
from dalembert.mechanism.shapes import Rod

#: of a mechanism of the zoo: sizes and masses are positive, and there are some of what is counted
sized = checked(
    length=POSITIVE, mass=POSITIVE, radius=POSITIVE, arm=POSITIVE, rod_mass=POSITIVE, strand_length=POSITIVE, strand_mass=POSITIVE, span=POSITIVE, crank=POSITIVE,
    rod=POSITIVE, width=POSITIVE, springs=POSITIVE, **dict.fromkeys(("n", "segments", "links", "spheres", "contacts"), whole("a whole number from 1", least=1, most=10**6)),
    points=whole("a whole number from 2", least=2, most=10**6),
)


def turn_from_x(direction: np.ndarray) -> np.ndarray:
    """Quaternion (4,) of the shortest turn that takes the x axis to a unit vector; half a turn about y for -x."""
    w = 1.0 + direction[0]
    if w < 1e-12:
        return np.array([0.0, 0.0, 1.0, 0.0])
    q = np.array([w, 0.0, -direction[2], direction[1]])
    return q / np.linalg.norm(q)


def turn_about(axis: str, angle: float) -> np.ndarray:
    """Quaternion (4,) of a turn by ``angle`` (rad) about a coordinate axis."""
    return Rotation.from_euler(axis, angle).as_quat(scalar_first=True)


def rod_between(mechanism: Mechanism, name: str, start: ArrayLike, end: ArrayLike, *, mass: float, radius: float) -> Body:
    """A cylinder of ``radius`` (m) from one world point to another, lying along its body's x axis."""
    start, end, length = _span(name, start, end)
    shape = Rod(length=length, mass=mass, radius=radius, axis="x")
    return mechanism.body(name, shape, position=0.5 * (start + end), orientation=turn_from_x((end - start) / length))


def slender_rod_between(mechanism: Mechanism, name: str, start: ArrayLike, end: ArrayLike, *, mass: float) -> Body:
    """A uniform rod with m L^2/12 across exactly, along its body's x axis, and the axial inertia of a cylinder of L/20 radius.

    A rod without thickness has no inertia about itself; what it is given instead only matters to motions that spin it.
    """
    start, end, length = _span(name, start, end)
    across, along = mass * length**2 / 12.0, 0.5 * mass * (0.05 * length) ** 2
    inertia = np.diag([along, across, across])
    return mechanism.body(name, mass=mass, inertia=inertia, position=0.5 * (start + end), orientation=turn_from_x((end - start) / length))


def _span(name: str, start: ArrayLike, end: ArrayLike) -> tuple[np.ndarray, np.ndarray, float]:
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    length = float(np.linalg.norm(end - start))
    if length == 0.0:
        raise ModelError(f"link {name!r}: its two ends coincide at {start}; it needs a length")
    return start, end, length


def at_least_one(value: int, what: str) -> int:
    """A count that is a whole number of at least one, or a ModelError."""
    if int(value) != value or value < 1:
        raise ModelError(f"{what} must be a whole number of at least 1, got {value!r}")
    return int(value)
