"""Triangles of shapes and meshes: vertices, faces, normals for smooth shading, and meshes with fewer of them."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.mechanism.convex import Convex
from dalembert.mechanism.environment import HeightField
from dalembert.mechanism.shapes import Box, Capsule, Composite, Cone, Cylinder, Ellipsoid, Shape, Sphere
from dalembert.mechanism.visuals import Mesh

#: faces that meet at a flatter angle than this are shaded as one smooth surface
CREASE = np.cos(np.radians(40.0))
ROUND = 32  # corners of a circle, where there are not too many of them
COILS, TURN, WIRE = 8, 12, 6  # of a spring: coils, points per coil, corners of the wire

Triangles = tuple[np.ndarray, np.ndarray]


def triangles(geometry: Shape | Mesh, share: float = 1.0, sides: int = ROUND) -> list[Triangles]:
    """Vertices (n, 3) and faces (m, 3) of a geometry; meshes keep about a ``share`` of their faces, circles have ``sides``."""
    if isinstance(geometry, Mesh):
        return [simplified(geometry.vertices.astype(float), geometry.faces, max(200, int(share * len(geometry.faces))))]
    if isinstance(geometry, Composite):
        answer = []
        for shape, position, orientation in geometry.parts:
            turn = Rotation.from_quat(orientation, scalar_first=True).as_matrix()
            answer += [(v @ turn.T + np.asarray(position) - geometry.center_of_mass, f) for v, f in triangles(shape, share, sides)]
        return answer
    if isinstance(geometry, Box):
        corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]) * np.array(geometry.size)
        quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
        return [(corners, _fans(quads))]
    if isinstance(geometry, Sphere):
        return [_lathe(*_arc(geometry.radius, 0.0, sides), sides)]
    if isinstance(geometry, Ellipsoid):
        vertices, faces = _lathe(*_arc(1.0, 0.0, sides), sides)
        return [(vertices * np.array(geometry.semi_axes), faces)]
    if isinstance(geometry, Capsule):
        return [_along(_lathe(*_arc(geometry.radius, geometry.length, sides), sides), geometry.axis)]
    if isinstance(geometry, Cylinder):
        r, h = geometry.radius, geometry.length / 2
        return [_along(_lathe(np.array([0.0, r, r, 0.0]), np.array([-h, -h, h, h]), sides), geometry.axis)]
    if isinstance(geometry, Cone):
        r, h = geometry.radius, geometry.length / 4
        return [_along(_lathe(np.array([0.0, r, 0.0]), np.array([-h, -h, 3 * h]), sides), geometry.axis)]
    if isinstance(geometry, Convex):
        return [(geometry.corners, _fans(geometry.loops))]
    raise TypeError(f"no triangles are known for {geometry!r}")


def terrain(field: HeightField, finer: int = 3) -> Triangles:
    """The smooth surface of a height field, ``finer`` points per point of its grid each way."""
    from dalembert.contact.terrain import height

    frame = np.concatenate([field.origin, field.spacing])
    x, y = (field.origin[k] + field.spacing[k] * np.linspace(0, n - 1, finer * (n - 1) + 1) for k, n in enumerate(field.heights.shape))
    vertices = np.array([(a, b, height(field.heights, frame, a, b)[0]) for a in x for b in y])
    corner = np.arange(len(x) * len(y)).reshape(len(x), len(y))
    quads = np.stack([corner[:-1, :-1], corner[1:, :-1], corner[1:, 1:], corner[:-1, 1:]], axis=-1).reshape(-1, 4)
    return vertices, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])


def rod(radius: float) -> Triangles:
    """A rod along z from 0 to 1."""
    return _lathe(np.array([0.0, radius, radius, 0.0]), np.array([0.0, 0.0, 1.0, 1.0]))


def coil(radius: float) -> Triangles:
    """A coil spring of that radius along z from 0 to 1, with straight ends on the axis."""
    turn = 2 * np.pi * np.linspace(0.0, COILS, COILS * TURN + 1)
    ring = np.stack([radius * np.cos(turn), radius * np.sin(turn), np.linspace(0.15, 0.85, len(turn))], axis=1)
    path = np.concatenate([[[0, 0, 0], [0, 0, 0.1]], ring, [[0, 0, 0.9], [0, 0, 1.0]]])
    around = 2 * np.pi * np.arange(WIRE) / WIRE
    out = path * [1.0, 1.0, 0.0] / radius
    out[np.linalg.norm(out, axis=1) < 0.5] = [1.0, 0.0, 0.0]
    wire = 0.16 * radius * (np.cos(around)[None, :, None] * out[:, None] + np.sin(around)[None, :, None] * np.array([0.0, 0.0, 1.0]))
    wire[[0, 1, -2, -1]] = 0.16 * radius * np.stack([np.cos(around), np.sin(around), 0 * around], axis=1)
    wire[..., 2] *= 0.5  # the spring is stretched to its length, a few times its radius
    return (path[:, None] + wire).reshape(-1, 3), _tube(len(path), WIRE)


def arrow(start: np.ndarray, end: np.ndarray, radius: float, head: bool = True) -> Triangles:
    """An arrow from point to point, or a rod without its head."""
    length = float(np.linalg.norm(end - start))
    tip = min(6.0 * radius, 0.5 * length) if head else 0.0
    wide = min(2.6 * radius, 0.6 * tip) if head else 0.0
    radii, heights = ([0, radius, radius, wide, 0], [0, 0, length - tip, length - tip, length]) if head else ([0, radius, radius, 0], [0, 0, length, length])
    vertices, faces = _along(_lathe(np.array(radii, dtype=float), np.array(heights, dtype=float)), (end - start) / length)
    return vertices + start, faces


def _fans(loops: Iterable[Sequence[int]]) -> np.ndarray:
    """Triangles of convex polygons, each given by its corners in order."""
    return np.array([(loop[0], b, c) for loop in loops for b, c in pairwise(loop[1:])])


def _arc(radius: float, length: float, sides: int) -> tuple[np.ndarray, np.ndarray]:
    """Radii and heights along the profile of a capsule (a ball, with length zero)."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, sides // 2 + 1 + (length > 0.0))
    lift = np.where(np.arange(len(angle)) < len(angle) / 2, -length / 2, length / 2) if length > 0.0 else 0.0
    return radius * np.cos(angle), radius * np.sin(angle) + lift


def _lathe(radii: np.ndarray, heights: np.ndarray, sides: int = ROUND) -> Triangles:
    """A profile turned about z."""
    turn = 2 * np.pi * np.arange(sides) / sides
    rings = [np.outer(radii, np.cos(turn)), np.outer(radii, np.sin(turn)), np.repeat(heights[:, None], sides, axis=1)]
    vertices, faces = np.stack(rings, axis=2).reshape(-1, 3), _tube(len(radii), sides)
    ring = faces // sides
    flat = (radii[ring] <= 1e-12).sum(axis=1) > 1  # two corners on the axis are one
    return vertices, faces[~flat]


def _tube(rings: int, corners: int) -> np.ndarray:
    """Triangles between rings of points, one ring after the other."""
    i, k = np.meshgrid(np.arange(rings - 1), np.arange(corners), indexing="ij")
    a, b = i * corners + k, i * corners + (k + 1) % corners
    c, d = b + corners, a + corners
    return np.stack([a, b, c, a, c, d], axis=-1).reshape(-1, 3)


def _along(mesh: Triangles, axis: object) -> Triangles:
    z = np.asarray(axis, dtype=float)
    helper = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = np.cross(helper, z)
    x /= np.linalg.norm(x)
    return mesh[0] @ np.stack([x, np.cross(z, x), z]), mesh[1]


def simplified(vertices: np.ndarray, faces: np.ndarray, most: int) -> Triangles:
    """A mesh of about ``most`` triangles at the most: vertices in one cell of a grid become one."""
    if len(faces) <= most:
        return vertices, faces
    low, size = vertices.min(axis=0), float(np.ptp(vertices, axis=0).max())
    cells = max(4, int(np.sqrt(most) * 1.5))
    while True:
        cell = np.floor((vertices - low) / max(size, 1e-12) * cells).astype(np.int64)
        key = (cell[:, 0] * (cells + 1) + cell[:, 1]) * (cells + 1) + cell[:, 2]
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        sums, counts = np.zeros((len(first), 3)), np.bincount(inverse)
        np.add.at(sums, inverse, vertices)
        corners = inverse[faces]
        corners = corners[(corners[:, 0] != corners[:, 1]) & (corners[:, 1] != corners[:, 2]) & (corners[:, 2] != corners[:, 0])]
        low_corner, middle, high = np.sort(corners, axis=1).T
        _, keep = np.unique((low_corner * len(first) + middle) * len(first) + high, return_index=True)
        if len(keep) <= most or cells <= 4:
            return sums / counts[:, None], corners[np.sort(keep)]
        cells = int(cells * 0.8)


def shaded(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vertices, normals and faces, with vertices doubled along creases."""
    if not len(faces):
        return vertices, np.zeros_like(vertices), faces
    _, first, inverse = np.unique(np.round(vertices, 9), axis=0, return_index=True, return_inverse=True)
    vertices, faces = vertices[first], inverse.reshape(-1)[faces]
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    area = np.cross(b - a, c - a)
    size = np.linalg.norm(area, axis=1)
    faces, area, size = faces[size > 1e-18], area[size > 1e-18], size[size > 1e-18]
    if not len(faces):
        return vertices, np.zeros_like(vertices), faces
    unit = area / size[:, None]
    corner_vertex = faces.ravel()
    corner_face = np.repeat(np.arange(len(faces)), 3)
    order = np.argsort(corner_vertex, kind="stable")
    starts = np.searchsorted(corner_vertex[order], np.arange(len(vertices) + 1))
    counts = np.diff(starts)
    # all pairs of corners at one vertex
    repeats = counts[corner_vertex]
    left = np.repeat(np.arange(len(corner_vertex)), repeats)
    within = np.arange(len(left)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    right = order[starts[corner_vertex[left]] + within]
    near = np.einsum("ij,ij->i", unit[corner_face[left]], unit[corner_face[right]]) > CREASE
    normals = np.zeros((len(corner_vertex), 3))
    np.add.at(normals, left[near], area[corner_face[right[near]]])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    keys = np.concatenate([corner_vertex[:, None], np.round(normals * 200).astype(np.int64)], axis=1)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return vertices[corner_vertex[first]], normals[first], inverse.reshape(-1, 3)
