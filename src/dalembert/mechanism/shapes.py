"""Solid shapes with their mass, centre of mass and inertia, and the checks that every mass and inertia passes.

A shape's body frame lies at its centre of mass. Lengths in m, masses in kg, densities in kg/m^3, inertias in kg m^2
about the centre of mass and in body axes.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import pi
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.checks import NUMBER, Rule, check_fields, numbers, unit_quaternion
from dalembert.errors import ModelError

AXES = {f"{sign}{letter}": factor * unit for sign, factor in (("", 1.0), ("+", 1.0), ("-", -1.0))
        for letter, unit in zip("xyz", np.eye(3))}

ASYMMETRY = 1e-9        # of the largest entry; more is taken for a mistake, less for rounding
TRIANGLE_SLACK = 1e-9   # of the largest principal moment; flat bodies sit exactly on the limit
DEFINITENESS = 1e-14    # of the largest principal moment; below it a moment is rounding noise

SHORTEST, LONGEST = 1e-50, 1e50  # lengths in m between which no volume or inertia leaves the range of floats
LIGHTEST = 1e-100  # kg

_NOT_GIVEN: Any = None


# checks

def _positive(value: Any, what: str, advice: str) -> float:
    found = NUMBER(value, what)
    if found <= 0:
        raise ModelError(f"{what} must be positive, got {found:g}: {advice}")
    return found


def _possible_mass(mass: Any, what: str) -> float:
    found = _positive(mass, what, "give a light body a small mass, or fix it to another body")
    if found < LIGHTEST:
        raise ModelError(f"{what} must be at least {LIGHTEST:g} kg, got {found:g}: its inertia would leave the range of floats")
    return found


def check_mass(mass: Any, name: str) -> float:
    """The mass of the body ``name`` (kg) if it is positive and finite, or a ModelError."""
    return _possible_mass(mass, f"body {name!r}: mass")


def check_inertia(inertia: Any, name: str) -> np.ndarray:
    """The inertia of the body ``name`` as a (3, 3) array if a real body can have it, or a ModelError.

    It must be finite, symmetric and positive definite, and no principal moment may exceed the sum of the other two.
    """
    return _possible_inertia(inertia, f"body {name!r}: inertia")


def _possible_inertia(inertia: Any, what: str) -> np.ndarray:
    J = numbers(3, 3)(inertia, what)
    largest = np.abs(J).max()
    if np.abs(J - J.T).max() > ASYMMETRY * largest:
        raise ModelError(f"{what} must be symmetric, got {J.tolist()}: give both products of inertia of each pair, with one sign")
    J = 0.5 * (J + J.T)
    moments = np.linalg.eigvalsh(J)
    if moments[0] <= DEFINITENESS * largest:
        raise ModelError(f"{what} must be positive definite, got principal moments {moments.tolist()}: "
                         "give a thin body a small thickness")
    if moments[2] - moments[1] - moments[0] > TRIANGLE_SLACK * moments[2]:
        raise ModelError(f"{what} belongs to no real body, since one principal moment exceeds the sum of the other two, "
                         f"got {moments.tolist()}: check units, and that it is taken about the centre of mass")
    return J


def as_axis(value: Any, what: str) -> np.ndarray:
    """A unit vector (3,) from "x", "y", "z", "-x", "-y", "-z" or from three numbers of any length but zero."""
    if isinstance(value, str):
        if value not in AXES:
            raise ModelError(f'{what} must be "x", "y", "z", "-x", "-y", "-z" or three numbers, got {value!r}')
        return AXES[value].copy()
    vector = numbers(3, largest=np.finfo(float).max)(value, what)
    largest = np.abs(vector).max()
    if largest == 0:
        raise ModelError(f"{what} must not be the zero vector: give it a direction")
    vector /= largest  # so that squares of tiny or huge entries stay in range
    return vector / np.linalg.norm(vector)


def principal_axes(inertia: Any) -> tuple[np.ndarray, np.ndarray]:
    """The principal moments, ascending (3,), and the orientation (4,) of the right-handed principal frame in the body frame.

    With R the matrix of that quaternion, inertia = R diag(moments) R^T. The largest entries of the first two axes are positive.
    """
    moments, R = np.linalg.eigh(numbers(3, 3)(inertia, "inertia"))
    for k in (0, 1):
        R[:, k] *= np.sign(R[np.argmax(np.abs(R[:, k])), k])
    R[:, 2] = np.cross(R[:, 0], R[:, 1])
    return moments, Rotation.from_matrix(R).as_quat(canonical=True, scalar_first=True)


# shapes

class Shape(ABC):
    """A solid body's form and how its mass is spread."""

    mass: float

    @property
    @abstractmethod
    def volume(self) -> float:
        """m^3."""

    @property
    @abstractmethod
    def inertia(self) -> np.ndarray:
        """(3, 3), kg m^2, about the centre of mass, in body axes."""

    @property
    def center_of_mass(self) -> np.ndarray:
        """(3,), m, in the frame in which the shape is described."""
        return np.zeros(3)

    def principal(self) -> tuple[np.ndarray, np.ndarray]:
        """The principal moments, ascending (3,), and the orientation (4,) of the principal frame in the body frame."""
        return principal_axes(self.inertia)


@dataclass(frozen=True)
class Placed:
    """A shape with the ``position`` (m) of its centre of mass, for all that takes a shape at a place; its axes are those of the frame it is in."""

    shape: Shape
    position: tuple[float, float, float]

    def __post_init__(self) -> None:
        check_fields(self)


def unplaced(shape: Any, position: Any, what: str) -> tuple[Any, Any]:
    """A shape and where it is to be: the place that it brings, or the one given, or the origin."""
    if isinstance(shape, Placed):
        if position is not None:
            raise ModelError(f"{what}: the shape brings its own position, {shape.position}: leave position= out")
        return shape.shape, shape.position
    return shape, (0.0, 0.0, 0.0) if position is None else position


def _ends(first: Any, second: Any, what: str) -> tuple[np.ndarray, tuple[float, float, float]]:
    """The way (m) from one point to another, and the middle."""
    a, b = numbers(3)(first, f"{what}: the first point"), numbers(3)(second, f"{what}: the second point")
    x, y, z = (0.5 * (a + b)).tolist()
    return b - a, (x, y, z)


@dataclass(frozen=True, kw_only=True)
class Primitive(Shape):
    """A homogeneous shape: takes either ``mass`` or ``density``, and has both."""

    mass: float = _NOT_GIVEN
    density: float = field(default=_NOT_GIVEN, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check_geometry()
        name = type(self).__name__
        if (self.mass is None) == (self.density is None):
            found = "neither" if self.mass is None else f"mass={self.mass!r} and density={self.density!r}"
            raise ModelError(f"{name}: give either mass= or density=, got {found}")
        if self.mass is None:
            self._set("density", self._positive("density", "give it in kg/m^3, such as 7800 for steel"))
            self._set("mass", self.density * self.volume)
        else:
            self._set("mass", _possible_mass(self.mass, f"{name}: mass"))
            self._set("density", self.mass / self.volume)
        _possible_inertia(self.inertia, f"{name}: inertia")

    @property
    def inertia(self) -> np.ndarray:
        return self.mass * self._inertia_per_mass()

    @abstractmethod
    def _check_geometry(self) -> None:
        """Put lengths and directions into their final form, or raise a ModelError."""

    @abstractmethod
    def _inertia_per_mass(self) -> np.ndarray:
        """(3, 3), m^2."""

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _positive(self, name: str, advice: str) -> float:
        return _positive(getattr(self, name), f"{type(self).__name__}: {name}", advice)

    def _check_length(self, name: str) -> None:
        self._set(name, float(self._lengths(name, NUMBER)))

    def _check_lengths(self, name: str) -> None:
        self._set(name, tuple(self._lengths(name, numbers(3)).tolist()))

    def _lengths(self, name: str, rule: Rule) -> np.ndarray:
        what = f"{type(self).__name__}: {name}"
        lengths = np.asarray(rule(getattr(self, name), what))
        if not ((lengths >= SHORTEST) & (lengths <= LONGEST)).all():
            raise ModelError(f"{what} must be positive and between {SHORTEST:g} and {LONGEST:g} m, got {lengths.tolist()}: "
                             "a thin body needs a small thickness, since its inertia must not vanish")
        return lengths


@dataclass(frozen=True, kw_only=True)
class Box(Primitive):
    """A box with edges ``size`` = (x, y, z) along the body axes."""

    size: Sequence[float]

    @classmethod
    def from_corners(cls, first: Any, second: Any, *, mass: float | None = None, density: float | None = None) -> Placed:
        """The box between two opposite corners (3,), m, at its place."""
        way, middle = _ends(first, second, "Box.from_corners")
        return Placed(cls(size=np.abs(way), mass=mass, density=density), middle)  # type: ignore[arg-type]

    def _check_geometry(self) -> None:
        self._check_lengths("size")

    @property
    def volume(self) -> float:
        x, y, z = self.size
        return x * y * z

    def _inertia_per_mass(self) -> np.ndarray:
        x, y, z = self.size
        return np.diag([y * y + z * z, x * x + z * z, x * x + y * y]) / 12


@dataclass(frozen=True, kw_only=True)
class Ellipsoid(Primitive):
    """An ellipsoid with ``semi_axes`` = (a, b, c) along the body axes."""

    semi_axes: Sequence[float]

    def _check_geometry(self) -> None:
        self._check_lengths("semi_axes")

    @property
    def volume(self) -> float:
        a, b, c = self.semi_axes
        return 4 / 3 * pi * a * b * c

    def _inertia_per_mass(self) -> np.ndarray:
        a, b, c = self.semi_axes
        return np.diag([b * b + c * c, a * a + c * c, a * a + b * b]) / 5


@dataclass(frozen=True, kw_only=True)
class Sphere(Primitive):
    """A solid ball."""

    radius: float

    def _check_geometry(self) -> None:
        self._check_length("radius")

    @property
    def volume(self) -> float:
        return 4 / 3 * pi * self.radius**3

    def _inertia_per_mass(self) -> np.ndarray:
        return 0.4 * self.radius**2 * np.eye(3)


@dataclass(frozen=True, kw_only=True)
class _Axial(Primitive):
    """A solid of revolution about ``axis``: "x", "y", "z", "-x", ... or three numbers; kept as a unit vector."""

    radius: float
    length: float
    axis: str | Sequence[float] = "z"

    @classmethod
    def between(cls, first: Any, second: Any, *, radius: float, mass: float | None = None, density: float | None = None) -> Placed:
        """The shape from one point (3,) to another, m, at its place: its axis leads from the first to the second."""
        way, middle = _ends(first, second, f"{cls.__name__}.between")
        length = float(np.linalg.norm(way))
        if length == 0.0:
            raise ModelError(f"{cls.__name__}.between: the two points are one, {middle}: give it a length")
        made = cls(radius=radius, length=length, axis=way, mass=mass, density=density)  # type: ignore[arg-type]
        x, y, z = (np.asarray(middle) + made.center_of_mass).tolist()
        return Placed(made, (x, y, z))

    def _check_geometry(self) -> None:
        self._check_length("radius")
        self._check_length("length")
        self._set("axis", tuple(as_axis(self.axis, f"{type(self).__name__}: axis").tolist()))

    @abstractmethod
    def _moments_per_mass(self) -> tuple[float, float]:
        """About the axis and across it, m^2."""

    def _inertia_per_mass(self) -> np.ndarray:
        along, across = self._moments_per_mass()
        axis = np.asarray(self.axis, dtype=float)
        projector = np.outer(axis, axis)
        return along * projector + across * (np.eye(3) - projector)


@dataclass(frozen=True, kw_only=True)
class Cylinder(_Axial):
    """A solid cylinder about ``axis``, "z" unless given, ``length`` from end to end."""

    @property
    def volume(self) -> float:
        return pi * self.radius**2 * self.length

    def _moments_per_mass(self) -> tuple[float, float]:
        return self.radius**2 / 2, (3 * self.radius**2 + self.length**2) / 12


@dataclass(frozen=True, kw_only=True)
class Rod(Cylinder):
    """A solid cylinder under the name that it has as a link, lying along ``axis``, "z" unless given."""


@dataclass(frozen=True, kw_only=True)
class Capsule(_Axial):
    """A cylinder of ``length`` about ``axis``, "z" unless given, with a half ball on each end: length + 2 radius in all."""

    @property
    def volume(self) -> float:
        return pi * self.radius**2 * (self.length + 4 / 3 * self.radius)

    def _moments_per_mass(self) -> tuple[float, float]:
        r, l = self.radius, self.length
        cylinder = l / (l + 4 / 3 * r)  # share of the mass; the half balls have the rest
        balls = 1 - cylinder
        along = cylinder * r * r / 2 + balls * 2 / 5 * r * r
        across = cylinder * (3 * r * r + l * l) / 12 + balls * (2 / 5 * r * r + l * l / 4 + 3 / 8 * l * r)
        return along, across


@dataclass(frozen=True, kw_only=True)
class Cone(_Axial):
    """A solid cone: its tip lies along ``axis``, "z" unless given, ``length`` from the middle of its base, a disc of ``radius``.

    It is described from the middle between the two, with its centre of mass a quarter of the length from the base.
    """

    @property
    def volume(self) -> float:
        return pi / 3 * self.radius**2 * self.length

    @property
    def center_of_mass(self) -> np.ndarray:
        return -0.25 * self.length * np.asarray(self.axis, dtype=float)

    def _moments_per_mass(self) -> tuple[float, float]:
        return 3 / 10 * self.radius**2, 3 / 80 * (4 * self.radius**2 + self.length**2)


@dataclass(frozen=True, kw_only=True)
class Composite(Shape):
    """Shapes joined rigidly: ``parts`` are (shape, position, orientation), (shape, position) or shapes with a place, all in one frame.

    A position is that of the part's centre of mass (m); an orientation is a quaternion, scalar first, part to common frame.
    The body frame has the axes of that frame and its origin at the common centre of mass. Where parts overlap, both count.
    """

    parts: Sequence[Any]
    mass: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            parts = [(part.shape, part.position) if isinstance(part, Placed) else tuple(part) for part in self.parts]
        except TypeError:
            raise ModelError(f"Composite: parts must be a list of (shape, position, orientation), got {self.parts!r}") from None
        if not parts:
            raise ModelError("Composite: parts must not be empty: give at least one (shape, position, orientation)")
        object.__setattr__(self, "parts", tuple(_check_part(k, part) for k, part in enumerate(parts)))
        object.__setattr__(self, "mass", sum(shape.mass for shape, _, _ in self.parts))
        _possible_inertia(self.inertia, "Composite: inertia")

    @property
    def volume(self) -> float:
        return sum(shape.volume for shape, _, _ in self.parts)

    @property
    def center_of_mass(self) -> np.ndarray:
        return np.sum([shape.mass * np.array(position) for shape, position, _ in self.parts], axis=0) / self.mass

    @property
    def inertia(self) -> np.ndarray:
        center = self.center_of_mass
        J = np.zeros((3, 3))
        for shape, position, orientation in self.parts:
            R = Rotation.from_quat(orientation, scalar_first=True).as_matrix()
            d = position - center
            J += R @ shape.inertia @ R.T + shape.mass * (d @ d * np.eye(3) - np.outer(d, d))
        return 0.5 * (J + J.T)


def _check_part(index: int, part: tuple[Any, ...]) -> tuple[Shape, tuple[float, ...], tuple[float, ...]]:
    what = f"Composite: parts[{index}]"
    if len(part) not in (2, 3) or not isinstance(part[0], Shape):
        raise ModelError(f"{what} must be (shape, position, orientation) or (shape, position), got {part!r}")
    position = numbers(3)(part[1], f"{what}: position")
    orientation = unit_quaternion(part[2] if len(part) == 3 else (1, 0, 0, 0), f"{what}: orientation")
    return part[0], tuple(position.tolist()), tuple(orientation.tolist())
