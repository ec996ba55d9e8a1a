"""A convex polyhedron: the hull of points, or a closed convex mesh, with its mass properties."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, KDTree, QhullError

from dalembert.checks import NUMBERS, indices, numbers
from dalembert.errors import ModelError
from dalembert.mechanism.shapes import LONGEST, Primitive

#: triangles of a hull whose normals differ by less than this lie on one face
COPLANAR = 1e-9
#: part of its size by which a mesh's vertices may lie inside its hull
DENT = 1e-6


@dataclass(frozen=True, kw_only=True)
class Convex(Primitive):
    """The convex hull of ``points`` (n, 3), m, filled evenly; with ``triangles`` (k, 3), a mesh that must be convex itself.

    The body frame has the axes of the points' frame and its origin at the centre of mass.
    """

    points: Any
    triangles: Any = None
    corners: np.ndarray = field(init=False, repr=False, compare=False)
    """(c, 3) in the body frame."""
    faces: np.ndarray = field(init=False, repr=False, compare=False)
    """(f, 4): outward normal and distance from the centre of mass."""
    loops: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)
    """Corners of each face, counter-clockwise seen from outside."""

    def _check_geometry(self) -> None:
        points = _points(self.points)
        try:
            hull = ConvexHull(points)
        except (QhullError, ValueError):
            raise ModelError(f"Convex: the {len(points)} points span no volume; give at least four that do not lie in one plane") from None
        if self.triangles is not None:
            _check_mesh(points, indices(self.triangles, len(points), "Convex: triangles"), hull)
        corners = points[hull.vertices]
        volume, centre, second = _moments(points, hull)
        corners = corners - centre
        faces, loops = _faces(corners)
        for name, value in (("points", points), ("corners", corners), ("faces", faces), ("loops", loops)):
            self._set(name, value)
        self._set("_volume", volume)
        self._set("_centre", centre)
        self._set("_second", second)

    @property
    def volume(self) -> float:
        return self._volume  # type: ignore[attr-defined]

    @property
    def center_of_mass(self) -> np.ndarray:
        return self._centre.copy()  # type: ignore[attr-defined]

    def _inertia_per_mass(self) -> np.ndarray:
        second = self._second / self.volume  # type: ignore[attr-defined]
        return np.trace(second) * np.eye(3) - second

    def __hash__(self) -> int:
        return id(self)


def _points(value: Any) -> np.ndarray:
    if np.size(NUMBERS(value, "Convex: points")) == 0:
        raise ModelError("Convex: there are no points: the mesh is empty")
    points = numbers(None, 3)(value, "Convex: points")
    if np.abs(points).max() > LONGEST:
        raise ModelError(f"Convex: points must lie within {LONGEST:g} m, got {np.abs(points).max():g}")
    return points


def _check_mesh(points: np.ndarray, triangles: np.ndarray, hull: ConvexHull) -> None:
    """A ModelError unless the mesh is closed and all of it lies on its hull."""
    if triangles.size == 0:
        raise ModelError("Convex: the mesh has no triangles: it is empty")
    size = float(np.ptp(points, axis=0).max())
    used = points[np.unique(triangles)]
    depth = -(hull.equations[:, :3] @ used.T + hull.equations[:, 3:]).max(axis=0)
    middles = points[triangles].mean(axis=1)
    inside = -(hull.equations[:, :3] @ middles.T + hull.equations[:, 3:]).max(axis=0)
    worst = max(float(depth.max()), float(inside.max()))
    if worst > DENT * size:
        raise ModelError(
            f"Convex: the mesh is not convex: part of it lies {worst:.3g} m inside its hull. Leave out triangles= to use the hull, "
            "or make a Composite of convex parts."
        )


def _moments(points: np.ndarray, hull: ConvexHull) -> tuple[float, np.ndarray, np.ndarray]:
    """Volume, centre and second moments about it, from the tetrahedra over the hull's triangles."""
    inner = points[hull.vertices].mean(axis=0)
    a, b, c = (points[hull.simplices[:, k]] - inner for k in range(3))
    volumes = np.abs(np.einsum("ij,ij->i", a, np.cross(b, c))) / 6.0
    volume = float(volumes.sum())
    centre = (volumes[:, None] * (a + b + c)).sum(axis=0) / 4.0 / volume
    total = a + b + c
    second = sum(np.einsum("i,ij,ik->jk", volumes, p, p) for p in (a, b, c, total)) / 20.0
    return volume, inner + centre, second - volume * np.outer(centre, centre)


def _faces(corners: np.ndarray) -> tuple[np.ndarray, tuple[tuple[int, ...], ...]]:
    """Planes and corner loops of a hull's faces, triangles of one plane joined."""
    equations = ConvexHull(corners).equations
    tree, joined = KDTree(equations), np.zeros(len(equations), dtype=bool)
    planes: list[np.ndarray] = []
    for i, equation in enumerate(equations):
        if not joined[i]:
            planes.append(equation)
            joined[tree.query_ball_point(equation, COPLANAR * (1.0 + abs(equation[3])), p=np.inf)] = True
    size = float(np.abs(corners).max())
    loops = []
    for equation in planes:
        n = equation[:3]
        on = np.flatnonzero(np.abs(corners @ n + equation[3]) < 1e-9 * size + 1e-15)
        middle = corners[on].mean(axis=0)
        u = corners[on[0]] - middle
        u = u / np.linalg.norm(u)
        v = np.cross(n, u)
        d = corners[on] - middle
        loops.append(tuple(int(i) for i in on[np.argsort(np.arctan2(d @ v, d @ u))]))
    faces = np.array([[*p[:3], -p[3]] for p in planes])
    return faces, tuple(loops)
