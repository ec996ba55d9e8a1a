"""Pairs with cylinders or ellipsoids: the direction between them from ``coal``, the features from the shapes themselves.

The direction is that of the nearest points at the start of the step. Each shape's support features that lie over the other
one are held against the half-space that touches the other one: with the direction fixed in a body such a gap is never more
than the distance, so that nothing overlaps at the end of the step.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.contact.features import Geometry, _balls, corners, is_polyhedron, support_features
from dalembert.contact.records import BALL_SUPPORT, CIRCLE_SUPPORT, ELLIPSOID_SUPPORT, FLATNESS, PLANE
from dalembert.contact.shapes import PairList
from dalembert.errors import MissingExtraError
from dalembert.mechanism.shapes import Box, Capsule, Cylinder, Ellipsoid, Sphere

#: features further than this part of the shape's size beside the other shape do not touch it
BESIDE = 2e-2
#: a flat face's normal is taken when its separation comes as near (m) as this to the nearest points' one
FLAT = 1e-5


def _coal() -> Any:
    try:
        import coal  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise MissingExtraError("contact between these shapes (cylinders, ellipsoids) needs coal: pip install dalembert[contact]") from None
    return coal


def _turn_to(axis: np.ndarray) -> np.ndarray:
    """A rotation that takes z to a unit vector."""
    u = np.linalg.svd(axis[None])[2][1]
    return np.column_stack([u, np.cross(axis, u), axis])


def _flat_normals(g: Geometry) -> list[np.ndarray]:
    """Outward normals of a shape's flat faces, in its body's frame."""
    if isinstance(g.shape, Cylinder):
        axis = g.axes @ np.asarray(g.shape.axis, dtype=float)
        return [axis, -axis]
    if isinstance(g.shape, Box):
        return [s * g.axes[:, k] for k in range(3) for s in (1.0, -1.0)]
    return [g.axes @ face[:3] for face in getattr(g.shape, "faces", ())]


class GeneralPairs:
    """Finds the features of pairs that the compiled narrow phase does not know."""

    def __init__(self, pairs: PairList) -> None:
        self.pairs = pairs
        self.coal = _coal()
        self.shapes = {k: self._shape(g) for k, g in enumerate(pairs.found)}
        self.request = self.coal.DistanceRequest()
        self.flat = {k: _flat_normals(g) for k, g in enumerate(pairs.found)}

    def _shape(self, g: Geometry) -> tuple[Any, np.ndarray]:
        coal, shape = self.coal, g.shape
        if isinstance(shape, Sphere):
            return coal.Sphere(shape.radius), g.axes
        if isinstance(shape, Capsule | Cylinder):
            kind = coal.Capsule if isinstance(shape, Capsule) else coal.Cylinder
            return kind(shape.radius, shape.length), g.axes @ _turn_to(np.asarray(shape.axis, dtype=float))
        if isinstance(shape, Ellipsoid):
            return coal.Ellipsoid(*shape.semi_axes), g.axes
        if isinstance(shape, Box):
            return coal.Box(*shape.size), g.axes
        points = coal.StdVec_Vec3s()
        for corner in corners(shape):
            points.append(corner)
        return coal.Convex.convexHull(points, False, "Qt"), g.axes

    def update(self, contacts: np.ndarray, pairs: np.ndarray, bodies: np.ndarray) -> None:
        """Write the features of all general pairs at the knot. Needs the bodies' rotations."""
        for pair in pairs:
            if pair["general"]:
                self._update(contacts[int(pair["first"]) : int(pair["first"]) + int(pair["slots"])], int(pair["i"]), int(pair["j"]), bodies)

    def _pose(self, k: int, bodies: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        g = self.pairs.found[k]
        body = g.body if g.body >= 0 else self.pairs.world
        R, x = bodies["R"][body].reshape(3, 3), bodies["x"][body]
        return R, x, body

    def _update(self, slots: np.ndarray, i: int, j: int, bodies: np.ndarray) -> None:
        coal = self.coal
        transforms = []
        for k in (i, j):
            R, x, _ = self._pose(k, bodies)
            transforms.append(coal.Transform3s(R @ self.shapes[k][1], x + R @ self.pairs.found[k].position))
        result = coal.DistanceResult()
        coal.distance(self.shapes[i][0], transforms[0], self.shapes[j][0], transforms[1], self.request, result)
        slots["used"] = 0
        n = -np.asarray(result.normal).ravel()  # from j to i
        if not np.isfinite(n).all() or np.linalg.norm(n) < 0.5:
            d = transforms[0].getTranslation() - transforms[1].getTranslation()
            n = d / np.linalg.norm(d)
        n = self._best(i, j, n, bodies)
        used = self._held(slots, i, j, n, bodies)
        used += self._held(slots[used:], j, i, -n, bodies)
        if used == 0:
            R, x, _ = self._pose(i, bodies)
            nearest = R.T @ (np.asarray(result.getNearestPoint1()).ravel() - x)
            self._write(slots[:1], _balls([nearest], 0.0), i, j, n, bodies)

    def _best(self, i: int, j: int, n: np.ndarray, bodies: np.ndarray) -> np.ndarray:
        """Of ``n`` and the normals of both shapes' flat faces, the direction with the largest separation; flat ones first.

        The separation along any direction is a lower bound of the distance; nearest points say little once shapes touch.
        """
        best, found = self._separation(i, j, n, bodies) - FLAT, n
        for k, sign in ((i, -1.0), (j, 1.0)):
            R = self._pose(k, bodies)[0]
            for normal in self.flat[k]:
                direction = sign * (R @ normal)
                value = self._separation(i, j, direction, bodies)
                if value > best:
                    best, found = value, direction
        return found

    def _separation(self, i: int, j: int, n: np.ndarray, bodies: np.ndarray) -> float:
        (Ri, xi, _), (Rj, xj, _) = self._pose(i, bodies), self._pose(j, bodies)
        return float(n @ (xi - xj)) - self._top(i, -Ri.T @ n) - self._top(j, Rj.T @ n)

    def _held(self, slots: np.ndarray, i: int, j: int, n: np.ndarray, bodies: np.ndarray) -> int:
        """Features of shape i over shape j, against the half-space that touches j; returns how many."""
        features = support_features(self.pairs.found[i])
        R, x, _ = self._pose(i, bodies)
        keep = [f for f in features if self._over(_lowest(f, R, n) + x, j, n, bodies)]
        keep = keep[: len(slots)]
        if keep:
            self._write(slots[: len(keep)], np.array(keep), i, j, n, bodies)
        return len(keep)

    def _over(self, point: np.ndarray, j: int, n: np.ndarray, bodies: np.ndarray) -> bool:
        """Whether a world point lies over shape j along n, not beside it."""
        coal = self.coal
        R, x, _ = self._pose(j, bodies)
        transform = coal.Transform3s(R @ self.shapes[j][1], x + R @ self.pairs.found[j].position)
        height = n @ (point - x) - self._top(j, R.T @ n)
        foot = point - max(height, 0.0) * n
        size = float(self.pairs.shapes.geometries["outer"][j])
        distance = coal.distance(coal.Sphere(1e-6), coal.Transform3s(np.eye(3), foot), self.shapes[j][0], transform, self.request, coal.DistanceResult())
        return distance < BESIDE * size

    def _top(self, j: int, n: np.ndarray) -> float:
        """Support function of shape j along ``n``, both in its body's frame."""
        g = self.pairs.found[j]
        if is_polyhedron(g.shape):
            return float(((g.position + corners(g.shape) @ g.axes.T) @ n).max())
        return max(-_height(f, -n) for f in support_features(g))

    def _write(self, slots: np.ndarray, features: np.ndarray, i: int, j: int, n: np.ndarray, bodies: np.ndarray) -> None:
        a, (Rj, _, b) = self._pose(i, bodies)[2], self._pose(j, bodies)
        for slot, feature in zip(slots, features):
            if slot["a"] != a:
                for first, second in (("block_na", "block_nb"), ("block_an", "block_bn")):
                    slot[first], slot[second] = int(slot[second]), int(slot[first])
            slot["a"], slot["b"], slot["kind"], slot["used"] = a, b, PLANE, 1
            for name in ("support", "point", "radius", "axis", "semi", "frame"):
                slot[name] = feature[name]
            slot["normal"], slot["offset"] = Rj.T @ n, self._top(j, Rj.T @ n)


def _height(feature: np.ndarray, n: np.ndarray) -> float:
    """Height of a feature's lowest point along ``n``, in its body's frame: ``geometry.lowest``, once, in Python."""
    c = float(n @ feature["point"])
    if feature["support"] == BALL_SUPPORT:
        return c - float(feature["radius"])
    if feature["support"] == CIRCLE_SUPPORT:
        return c - float(feature["radius"]) * float(np.sqrt(max(1.0 - float(n @ feature["axis"]) ** 2, 0.0) + FLATNESS**2))
    assert feature["support"] == ELLIPSOID_SUPPORT
    return c - float(np.linalg.norm(feature["semi"] * (feature["frame"].reshape(3, 3).T @ n)))


def _lowest(feature: np.ndarray, R: np.ndarray, n: np.ndarray) -> np.ndarray:
    """A feature's lowest point along a world direction, from the centre of mass."""
    local = R.T @ n
    p = feature["point"].copy()
    if feature["support"] == BALL_SUPPORT:
        p -= feature["radius"] * local
    elif feature["support"] == CIRCLE_SUPPORT:
        m = local - (local @ feature["axis"]) * feature["axis"]
        p -= feature["radius"] * m / np.sqrt(m @ m + FLATNESS**2)
    else:
        frame = feature["frame"].reshape(3, 3)
        scaled = feature["semi"] * (frame.T @ local)
        p -= frame @ (feature["semi"] * scaled) / np.linalg.norm(scaled)
    return R @ p
