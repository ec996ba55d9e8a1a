"""Convex shapes, and how far apart they are by coal and by support functions in NumPy: nothing here was part of the simulation.

coal says how far; where it says that two overlap, or nothing (its search for depths fails at times), the largest separation along any direction
that can be found from there has the last word: two shapes that a plane separates do not overlap.
"""
from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert.mechanism.shapes import Shape

KINDS = ("sphere", "capsule", "box", "cylinder", "cone", "ellipsoid", "hull")

#: position, rotation matrix and shape
Placed = tuple[np.ndarray, np.ndarray, Shape]


def random_shape(kind: str, random: np.random.Generator) -> Shape:
    """A shape of some centimetres or decimetres."""
    if kind == "sphere":
        return da.Sphere(radius=random.uniform(0.03, 0.15), mass=1.0)
    if kind == "capsule":
        return da.Capsule(radius=random.uniform(0.02, 0.1), length=random.uniform(0.05, 0.3), mass=1.0, axis=random.normal(size=3).tolist())
    if kind == "box":
        return da.Box(size=random.uniform(0.05, 0.3, size=3).tolist(), mass=1.0)
    if kind == "cylinder":
        return da.Cylinder(radius=random.uniform(0.03, 0.15), length=random.uniform(0.05, 0.3), mass=1.0, axis=random.normal(size=3).tolist())
    if kind == "cone":
        return da.Cone(radius=random.uniform(0.03, 0.15), length=random.uniform(0.05, 0.3), mass=1.0, axis=random.normal(size=3).tolist())
    if kind == "ellipsoid":
        return da.Ellipsoid(semi_axes=random.uniform(0.03, 0.2, size=3).tolist(), mass=1.0)
    if kind == "large hull":
        ball = random.normal(size=(80, 3))
        return da.Convex(points=ball / np.linalg.norm(ball, axis=1)[:, None] * random.uniform(0.03, 0.2, size=3), mass=1.0)
    return da.Convex(points=0.1 * random.normal(size=(random.integers(5, 16), 3)), mass=1.0)


def half_thickness(shape: Shape) -> float:
    """Radius (m) of a ball about the centre of mass that lies inside."""
    if isinstance(shape, da.Sphere | da.Capsule):
        return shape.radius
    if isinstance(shape, da.Box):
        return 0.5 * min(shape.size)
    if isinstance(shape, da.Cylinder):
        return min(shape.radius, 0.5 * shape.length)
    if isinstance(shape, da.Cone):
        return min(0.25 * shape.length, 0.75 * shape.length * shape.radius / float(np.hypot(shape.radius, shape.length)))
    if isinstance(shape, da.Ellipsoid):
        return min(shape.semi_axes)
    assert isinstance(shape, da.Convex)
    return float(shape.faces[:, 3].min())


def support(shape: Shape, u: np.ndarray) -> float:
    """How far a shape reaches along a unit vector of its frame."""
    if isinstance(shape, da.Sphere):
        return shape.radius
    if isinstance(shape, da.Capsule):
        return 0.5 * shape.length * float(abs(u @ np.asarray(shape.axis, dtype=float))) + shape.radius
    if isinstance(shape, da.Cylinder):
        along = float(u @ np.asarray(shape.axis, dtype=float))
        return 0.5 * shape.length * abs(along) + shape.radius * float(np.linalg.norm(np.cross(u, np.asarray(shape.axis, dtype=float))))
    if isinstance(shape, da.Cone):
        along = float(u @ np.asarray(shape.axis, dtype=float))
        return max(0.75 * shape.length * along, shape.radius * float(np.linalg.norm(np.cross(u, np.asarray(shape.axis, dtype=float)))) - 0.25 * shape.length * along)
    if isinstance(shape, da.Ellipsoid):
        return float(np.linalg.norm(np.asarray(shape.semi_axes) * u))
    if isinstance(shape, da.Box):
        return float(0.5 * np.abs(u) @ np.asarray(shape.size))
    assert isinstance(shape, da.Convex)
    return float((shape.corners @ u).max())


def separation(a: Placed, b: Placed, n: np.ndarray) -> float:
    """How far two shapes are separated along a unit vector from b to a."""
    return float(n @ (a[0] - b[0]) - support(a[2], -a[1].T @ n) - support(b[2], b[1].T @ n))


def best_separation(a: Placed, b: Placed, n: np.ndarray) -> float:
    """The largest separation along directions next to ``n``."""
    across = np.linalg.svd(n[None])[2][1:]

    def negative(x: np.ndarray) -> float:
        m = n + x @ across
        return -separation(a, b, m / np.linalg.norm(m))

    found = separation(a, b, n)
    for size in (1e-2, 1e-4, 1e-6):
        simplex = size * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        found = max(found, -minimize(negative, np.zeros(2), method="Nelder-Mead", options=dict(xatol=1e-11, fatol=1e-15, maxiter=400, initial_simplex=simplex)).fun)
    return found


@cache
def coal_request() -> Any:
    coal = pytest.importorskip("coal")
    request = coal.DistanceRequest()
    request.gjk_tolerance, request.epa_tolerance = 1e-12, 1e-10
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    return request


_known: dict[int, tuple[Shape, Any, np.ndarray]] = {}


def coal_shape(shape: Shape) -> tuple[Any, np.ndarray]:
    """The same shape in coal, and its orientation in the body's frame."""
    coal = pytest.importorskip("coal")
    if id(shape) in _known and _known[id(shape)][0] is shape:
        return _known[id(shape)][1:]
    turn = np.eye(3)
    if isinstance(shape, da.Sphere):
        made = coal.Sphere(shape.radius)
    elif isinstance(shape, da.Capsule | da.Cylinder | da.Cone):
        made = getattr(coal, type(shape).__name__)(shape.radius, shape.length)
        turn = Rotation.align_vectors([shape.axis], [[0.0, 0.0, 1.0]])[0].as_matrix()
    elif isinstance(shape, da.Ellipsoid):
        made = coal.Ellipsoid(*shape.semi_axes)
    elif isinstance(shape, da.Box):
        made = coal.Box(*shape.size)
    else:
        assert isinstance(shape, da.Convex)
        points = coal.StdVec_Vec3s()
        for corner in shape.corners:
            points.append(corner)
        made = coal.Convex.convexHull(points, False, "Qt")
    _known.clear() if len(_known) > 1000 else None
    _known[id(shape)] = shape, made, turn
    return made, turn


def by_coal(a: Placed, b: Placed) -> tuple[float, np.ndarray]:
    """(signed distance, direction from b to a) by coal alone; the distance is infinite where coal has no answer."""
    coal = pytest.importorskip("coal")
    placed = []
    for x, R, shape in (a, b):
        made, turn = coal_shape(shape)
        middle = shape.center_of_mass if isinstance(shape, da.Cone) else np.zeros(3)  # coal has cones from half their length
        placed += [made, coal.Transform3s(R @ turn, np.asarray(x - R @ middle, dtype=float))]
    result = coal.DistanceResult()
    distance = float(coal.distance(*placed, coal_request(), result))
    n = -np.asarray(result.normal, dtype=float).ravel()
    if abs(distance) > 1e3 or not np.isfinite(n).all() or not 0.9 < np.linalg.norm(n) < 1.1:
        d = a[0] - b[0]
        return np.inf, d / np.linalg.norm(d)
    return distance, n / np.linalg.norm(n)


def least_distance(a: Placed, b: Placed, worry: float = -1e-9) -> float:
    """Distance (m), or minus the depth, of two shapes; coal is believed above ``worry``."""
    distance, n = by_coal(a, b)
    if np.isfinite(distance) and distance > worry:
        return distance
    best = best_separation(a, b, n)
    return best if not np.isfinite(distance) else max(best, distance)
