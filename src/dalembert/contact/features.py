"""The features by which a shape touches a half-space: balls, circles, ellipsoids and corners, in the body's frame."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from dalembert.contact.records import BALL_SUPPORT, BASE, CIRCLE_SUPPORT, CONTACT, ELLIPSOID_SUPPORT, TIP
from dalembert.errors import ModelError
from dalembert.mechanism.mechanism import rotation_matrix
from dalembert.mechanism.shapes import Box, Capsule, Composite, Cone, Cylinder, Ellipsoid, Shape, Sphere
from dalembert.mechanism.touching import Surface

#: points on each rim of a cylinder or a cone, on which it stands
RIM = 8


@dataclass(frozen=True, eq=False)
class Geometry:
    """A convex part of a surface, at ``position`` and with ``axes`` (columns) in its body's frame."""

    surface: Surface
    shape: Shape
    position: np.ndarray
    axes: np.ndarray

    @property
    def name(self) -> str:
        return self.surface.owner

    @property
    def body(self) -> int:
        """Index of the body, -1 for the world."""
        return self.surface.body

    @property
    def size(self) -> float:
        """Radius (m) about the body's centre of mass that holds the shape."""
        return float(np.linalg.norm(self.position)) + outer_radius(self.shape)


def geometries(surface: Surface) -> Iterator[Geometry]:
    """The convex parts of a surface."""
    assert surface.shape is not None
    yield from _parts(surface, surface.shape, surface.position, rotation_matrix(surface.orientation))


def _parts(surface: Surface, shape: Shape, position: np.ndarray, axes: np.ndarray) -> Iterator[Geometry]:
    if not isinstance(shape, Composite):
        yield Geometry(surface, shape, position, axes)
        return
    for part, where, orientation in shape.parts:
        offset = np.asarray(where) - shape.center_of_mass
        yield from _parts(surface, part, position + axes @ offset, axes @ rotation_matrix(orientation))


def corners(shape: Shape) -> np.ndarray:
    """(k, 3) corners of a polyhedron, in its frame."""
    if isinstance(shape, Box):
        return np.array(list(product((-0.5, 0.5), repeat=3))) * np.asarray(shape.size)
    return np.asarray(shape.corners)  # type: ignore[attr-defined]


def is_polyhedron(shape: Shape) -> bool:
    return isinstance(shape, Box) or hasattr(shape, "corners")


def outer_radius(shape: Shape) -> float:
    """Radius (m) of a ball about the shape's centre of mass that holds it."""
    if isinstance(shape, Sphere):
        return shape.radius
    if isinstance(shape, Capsule):
        return 0.5 * shape.length + shape.radius
    if isinstance(shape, Cylinder):
        return float(np.hypot(0.5 * shape.length, shape.radius))
    if isinstance(shape, Cone):
        return float(max(0.5 * TIP * shape.length, np.hypot(0.5 * BASE * shape.length, shape.radius)))
    if isinstance(shape, Ellipsoid):
        return float(max(shape.semi_axes))
    return float(np.linalg.norm(corners(shape), axis=1).max())


def inner_radius(shape: Shape) -> float:
    """Radius (m) of a ball about the shape's centre of mass that it holds: less than half of its thickness."""
    if isinstance(shape, Sphere | Capsule):
        return shape.radius
    if isinstance(shape, Cylinder):
        return float(min(0.5 * shape.length, shape.radius))
    if isinstance(shape, Cone):
        return float(0.5 * shape.length * min(-BASE, TIP * shape.radius / np.hypot(shape.radius, shape.length)))
    if isinstance(shape, Ellipsoid):
        return float(min(shape.semi_axes))
    if isinstance(shape, Box):
        return 0.5 * float(min(shape.size))
    return float(np.min(shape.faces[:, 3]))  # type: ignore[attr-defined]


def support_features(geometry: Geometry) -> np.ndarray:
    """(k,) contact records that hold the features of a shape, with nothing said about what they touch."""
    shape, p, R = geometry.shape, geometry.position, geometry.axes
    if isinstance(shape, Sphere):
        return _balls([p], shape.radius)
    if isinstance(shape, Capsule):
        half = 0.5 * shape.length * (R @ np.asarray(shape.axis, dtype=float))
        return _balls([p - half, p + half], shape.radius)
    if isinstance(shape, Ellipsoid):
        records = _blank(1)
        records["support"], records["point"], records["semi"], records["frame"] = ELLIPSOID_SUPPORT, p, shape.semi_axes, R.ravel()
        return records
    if isinstance(shape, Cylinder):
        axis = R @ np.asarray(shape.axis, dtype=float)
        return _rims([p - 0.5 * shape.length * axis, p + 0.5 * shape.length * axis], shape.radius, axis)
    if isinstance(shape, Cone):
        axis = R @ np.asarray(shape.axis, dtype=float)
        half = 0.5 * shape.length * axis
        return np.concatenate([_rims([p + BASE * half], shape.radius, axis), _balls([p + TIP * half], 0.0)])
    if is_polyhedron(shape):
        return _balls(list(p + corners(shape) @ R.T), 0.0)
    raise ModelError(f"{geometry.name!r}: a {type(shape).__name__} cannot collide")


def _blank(count: int) -> np.ndarray:
    records = np.zeros(count, CONTACT)
    records["node"] = records["diagonal"] = -1
    for name in ("block_na", "block_an", "block_nb", "block_bn"):
        records[name] = -1
    records["frame"] = np.eye(3).ravel()
    return records


def _balls(points: list[np.ndarray], radius: float) -> np.ndarray:
    records = _blank(len(points))
    records["support"], records["point"], records["radius"] = BALL_SUPPORT, points, radius
    return records


def _rims(centres: list[np.ndarray], radius: float, axis: np.ndarray) -> np.ndarray:
    """Circles across an axis, and the points on them that stand for them where they lie flat."""
    circles = _blank(len(centres))
    circles["support"], circles["radius"], circles["axis"], circles["point"] = CIRCLE_SUPPORT, radius, axis, centres
    side = np.linalg.svd(axis[None])[2][1:]
    around = 2.0 * np.pi * np.arange(RIM) / RIM
    points = _balls([c + radius * (np.cos(t) * side[0] + np.sin(t) * side[1]) for c in centres for t in around], 0.0)
    points["rim"], points["axis"] = 1, axis
    return np.concatenate([circles, points])


def ball_features(geometry: Geometry) -> np.ndarray:
    """The features of a shape that are balls or corners: those that touch a height field."""
    records = support_features(geometry)
    if (records["support"] == ELLIPSOID_SUPPORT).any():
        raise ModelError(f"{geometry.name!r}: an ellipsoid cannot touch a height field; give its body contact points with a radius")
    return records[records["support"] == BALL_SUPPORT]
