"""Cranks with push-rods and telescoping struts that drive a joint, their closed forms, and smooth starts for motions.

A planar linkage is laid out in a ``Plane``. Its closed forms speak of turns from the reference pose, so that what they
return are the coordinates of the driven joints.
"""
from __future__ import annotations

from collections.abc import Callable
from math import atan2, cos, hypot, pi, sin, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import ModelError
from dalembert.mechanism.joints import Drive, Joint, Prismatic, Revolute, Spherical, Universal
from dalembert.mechanism.mechanism import Body, Mechanism
from dalembert.zoo.links import rod_between

#: coordinates (m or rad) of driven joints as functions of time (s), for ``Simulation.set_target``
DriveMotion = dict[str, Callable[[float], float]]

Point = tuple[float, float]


def smooth_step(s: float) -> float:
    """From 0 to 1 as ``s`` does; three derivatives vanish at both ends, so that neither forces nor their rates jump."""
    s = min(max(s, 0.0), 1.0)
    return s**4 * (35.0 + s * (-84.0 + s * (70.0 - 20.0 * s)))


class Plane(NamedTuple):
    """A plane in the world: points are ``origin`` + a ``along`` + b ``normal``; turns go from ``along`` to ``normal``."""

    origin: np.ndarray
    along: np.ndarray
    normal: np.ndarray

    @property
    def axis(self) -> np.ndarray:
        """(3,) unit vector about which turns are positive."""
        return np.cross(self.along, self.normal)

    def point(self, at: Point, aside: float = 0.0) -> np.ndarray:
        """(3,) world point of plane coordinates (m), ``aside`` metres along the axis."""
        return self.origin + at[0] * self.along + at[1] * self.normal + aside * self.axis


def plane(origin: ArrayLike, along: ArrayLike, normal: ArrayLike) -> Plane:
    """A ``Plane`` from a point and two perpendicular directions."""
    first, second = np.asarray(along, dtype=float), np.asarray(normal, dtype=float)
    return Plane(np.asarray(origin, dtype=float), first / np.linalg.norm(first), second / np.linalg.norm(second))


# ---- building


def rod_ends(axis: ArrayLike, direction: ArrayLike) -> tuple[Joint, Joint]:
    """A universal and a ball joint for the ends of a rod along ``direction``: it cannot spin, and constrains only its length."""
    rod = np.asarray(direction, dtype=float) / np.linalg.norm(direction)
    first = np.asarray(axis, dtype=float) - rod * (rod @ np.asarray(axis, dtype=float))
    first /= np.linalg.norm(first)
    return Universal(axes=(first, np.cross(rod, first))), Spherical()


def push_rod(
    mechanism: Mechanism, name: str, frame: Body, output: Body, at: Plane, *, pivot: Point, tip: Point, end: Point,
    drive: Drive, mass: float, radius: float, planar: bool = False, aside: float = 0.0,
) -> None:
    """A crank on ``frame`` that moves ``output`` through a rod, all in the plane ``at``; the rod has half the crank's mass.

    The crank turns about ``pivot`` in the driven joint ``name``; the rod goes from its ``tip`` to ``end``, a point of
    the output. ``planar``: pins at both ends of the rod (three redundant rows), else a universal and a ball joint (none).
    """
    points = [at.point(p, aside) for p in (pivot, tip, end)]
    crank = rod_between(mechanism, f"{name} crank", points[0], points[1], mass=mass, radius=radius)
    rod = rod_between(mechanism, f"{name} rod", points[1], points[2], mass=0.5 * mass, radius=0.7 * radius)
    pins = (Revolute(axis=at.axis),) * 2 if planar else rod_ends(at.axis, points[2] - points[1])
    mechanism.joint(name, Revolute(axis=at.axis, drive=drive), frame, crank, at=points[0])
    mechanism.joint(f"{name} crank pin", pins[0], crank, rod, at=points[1])
    mechanism.joint(f"{name} rod end", pins[1], rod, output, at=points[2])


def strut(
    mechanism: Mechanism, name: str, frame: Body, output: Body, start: ArrayLike, end: ArrayLike, *, axis: ArrayLike,
    drive: Drive, mass: float, radius: float, pinned: bool = False,
) -> None:
    """A telescoping strut from a point of ``frame`` to a point of ``output``: a sleeve and a piston of half its mass.

    The driven joint ``name`` is the slide between the two, positive when it lengthens. The sleeve hangs in a universal
    joint whose first axis is ``axis``, or with ``pinned`` in a hinge about it; the piston ends in a ball.
    """
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    middle = 0.4 * start + 0.6 * end
    sleeve = rod_between(mechanism, f"{name} sleeve", start, middle, mass=mass, radius=radius)
    piston = rod_between(mechanism, f"{name} piston", middle, end, mass=0.5 * mass, radius=0.6 * radius)
    foot, head = rod_ends(axis, end - start)
    mechanism.joint(f"{name} foot", Revolute(axis=axis) if pinned else foot, frame, sleeve, at=start)
    mechanism.joint(name, Prismatic(axis=end - start, drive=drive), sleeve, piston, at=middle)
    mechanism.joint(f"{name} head", head, piston, output, at=end)


# ---- closed forms, in plane coordinates


def turned(point: Point, about: Point, angle: float) -> Point:
    """A plane point after a turn (rad)."""
    a, b = point[0] - about[0], point[1] - about[1]
    c, s = cos(angle), sin(angle)
    return about[0] + c * a - s * b, about[1] + s * a + c * b


def direction_of(start: Point, end: Point) -> float:
    """Angle (rad) of the line from one point to another, positive from the first axis to the second."""
    return atan2(end[1] - start[1], end[0] - start[0])


def distance(start: Point, end: Point) -> float:
    """Metres between two points."""
    return hypot(end[0] - start[0], end[1] - start[1])


def side_of(point: Point, start: Point, end: Point) -> float:
    """1 if a point lies to the left of the way from ``start`` to ``end``, else -1."""
    across = (end[0] - start[0]) * (point[1] - start[1]) - (end[1] - start[1]) * (point[0] - start[0])
    return 1.0 if across > 0.0 else -1.0


def meeting(first: Point, first_length: float, second: Point, second_length: float, side: float) -> Point:
    """Where links from two points meet, to the left (``side`` 1) or right (-1) of the way from the first to the second."""
    base = distance(first, second)
    along = 0.5 * (base + (first_length**2 - second_length**2) / base)
    square = first_length**2 - along**2
    if square < 0.0:
        raise ModelError(f"links of {first_length:g} m and {second_length:g} m cannot meet: their far ends are {base:g} m apart")
    u, v = (second[0] - first[0]) / base, (second[1] - first[1]) / base
    across = side * sqrt(square)
    return first[0] + along * u - across * v, first[1] + along * v + across * u


def crank_turn(turn: float, *, pivot: Point, tip: Point, end: Point, hinge: Point = (0.0, 0.0)) -> float:
    """Turn (rad) of a ``push_rod``'s crank when its output turns by ``turn`` (rad) about ``hinge``, both against the frame."""
    now = turned(end, hinge, turn)
    reached = meeting(pivot, distance(pivot, tip), now, distance(tip, end), side_of(tip, pivot, end))
    return (direction_of(pivot, reached) - direction_of(pivot, tip) + pi) % (2.0 * pi) - pi


def strut_stroke(turn: float, *, start: Point, end: Point, hinge: Point = (0.0, 0.0)) -> float:
    """Lengthening (m) of a ``strut`` when its output turns by ``turn`` (rad) about ``hinge`` against its frame."""
    return distance(start, turned(end, hinge, turn)) - distance(start, end)
