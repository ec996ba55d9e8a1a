"""What there is to draw: triangles with normals and a colour for each body, from shapes and meshes."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.shapes import Box, Capsule, Composite, Cylinder, Ellipsoid, Shape, Sphere
from dalembert.mechanism.visuals import Mesh, Visual, _inertia_box, visuals_of
from dalembert.trajectory import Trajectory
from dalembert.view.plots import COLOURS

#: triangles of a whole scene that pages and pictures are made of
MOST_TRIANGLES = 60_000
#: faces that meet at a flatter angle than this are shaded as one smooth surface
CREASE = np.cos(np.radians(40.0))
ROUND = 24  # corners of a circle


@dataclass(frozen=True)
class Part:
    """Triangles of one colour on one body (-1: the world), in body coordinates from the centre of mass."""

    body: int
    vertices: np.ndarray  # (n, 3) float32
    normals: np.ndarray  # (n, 3) float32
    faces: np.ndarray  # (m, 3) int32
    colour: tuple[float, float, float, float]


@dataclass(frozen=True)
class Scene:
    """All parts of a mechanism, and its size."""

    parts: list[Part]
    bodies: tuple[str, ...]

    def extent(self, position: np.ndarray) -> float:
        """Radius (m) around the middle of the positions (..., 3) that holds everything."""
        flat = position.reshape(-1, 3)
        spread = float(np.linalg.norm(np.ptp(flat, axis=0))) / 2 if len(flat) else 0.0
        reach = max((float(np.linalg.norm(p.vertices, axis=1).max(initial=0.0)) for p in self.parts if p.body >= 0), default=0.0)
        return max(spread + reach, 1e-3)


def build_scene(source: Trajectory | Mechanism, most_triangles: int = MOST_TRIANGLES) -> Scene:
    """The scene of a mechanism or of a trajectory; bodies of a trajectory without a model are boxes of their inertia."""
    mechanism = source if isinstance(source, Mechanism) else source.model
    drawn: list[tuple[int, list[Visual]]]
    if mechanism is not None:
        drawn = [(body.index, visuals_of(mechanism, body)) for body in (mechanism.world, *mechanism.bodies)]
        bodies = tuple(b.name for b in mechanism.bodies)
    else:
        assert isinstance(source, Trajectory)
        drawn = [(i, [Visual(*_inertia_box(m, J))]) for i, (m, J) in enumerate(zip(source.mass, source.inertia))]
        bodies = source.bodies
    faces = sum(len(v.geometry.faces) for _, visuals in drawn for v in visuals if isinstance(v.geometry, Mesh))
    share = min(1.0, most_triangles / max(faces, 1))
    parts = []
    for body, visuals in drawn:
        groups: dict[tuple[float, float, float, float], list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}
        for visual in visuals:
            colour = visual.colour or (*_rgb(COLOURS[body % len(COLOURS)]), 1.0)
            turn = Rotation.from_quat(visual.orientation, scalar_first=True).as_matrix()
            for vertices, corners in _triangles(visual.geometry, share):
                vertices, normals, corners = shaded(vertices, corners)
                groups.setdefault(colour, []).append((vertices @ turn.T + visual.position, normals @ turn.T, corners))
        for colour, pieces in groups.items():
            offsets = np.cumsum([0, *(len(v) for v, _, _ in pieces)])
            parts.append(Part(
                body, np.concatenate([v for v, _, _ in pieces]).astype(np.float32), np.concatenate([n for _, n, _ in pieces]).astype(np.float32),
                np.concatenate([f + o for (_, _, f), o in zip(pieces, offsets)]).astype(np.int32), colour,
            ))
    return Scene([p for p in parts if len(p.faces)], bodies)


def _rgb(word: str) -> tuple[float, float, float]:
    return int(word[1:3], 16) / 255, int(word[3:5], 16) / 255, int(word[5:7], 16) / 255


def _triangles(geometry: Shape | Mesh, share: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Vertices and faces of a geometry."""
    if isinstance(geometry, Mesh):
        return [simplified(geometry.vertices.astype(float), geometry.faces, max(200, int(share * len(geometry.faces))))]
    if isinstance(geometry, Composite):
        answer = []
        for shape, position, orientation in geometry.parts:
            turn = Rotation.from_quat(orientation, scalar_first=True).as_matrix()
            answer += [(v @ turn.T + np.asarray(position) - geometry.center_of_mass, f) for v, f in _triangles(shape, share)]
        return answer
    if isinstance(geometry, Box):
        corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]) * np.array(geometry.size)
        quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
        return [(corners, np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]))]
    if isinstance(geometry, Sphere):
        return [_lathe(*_arc(geometry.radius, 0.0))]
    if isinstance(geometry, Ellipsoid):
        vertices, faces = _lathe(*_arc(1.0, 0.0))
        return [(vertices * np.array(geometry.semi_axes), faces)]
    if isinstance(geometry, Capsule):
        return [_along(_lathe(*_arc(geometry.radius, geometry.length)), geometry.axis)]
    if isinstance(geometry, Cylinder):
        r, h = geometry.radius, geometry.length / 2
        return [_along(_lathe(np.array([0.0, r, r, 0.0]), np.array([-h, -h, h, h])), geometry.axis)]
    return []


def _arc(radius: float, length: float) -> tuple[np.ndarray, np.ndarray]:
    """Radii and heights along the profile of a capsule (a ball, with length zero)."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, ROUND // 2 + 1 + (length > 0.0))
    lift = np.where(np.arange(len(angle)) < len(angle) / 2, -length / 2, length / 2) if length > 0.0 else 0.0
    return radius * np.cos(angle), radius * np.sin(angle) + lift


def _lathe(radii: np.ndarray, heights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A profile turned about z."""
    turn = 2 * np.pi * np.arange(ROUND) / ROUND
    vertices = np.stack([np.outer(radii, np.cos(turn)), np.outer(radii, np.sin(turn)), np.repeat(heights[:, None], ROUND, axis=1)], axis=2).reshape(-1, 3)
    faces = []
    for i in range(len(radii) - 1):
        for k in range(ROUND):
            a, b, c, d = i * ROUND + k, i * ROUND + (k + 1) % ROUND, (i + 1) * ROUND + (k + 1) % ROUND, (i + 1) * ROUND + k
            if radii[i] > 1e-12:
                faces.append((a, b, c if radii[i + 1] > 1e-12 else d))
            if radii[i + 1] > 1e-12:
                faces.append((a, c, d))
    return vertices, np.array(faces)


def _along(mesh: tuple[np.ndarray, np.ndarray], axis: object) -> tuple[np.ndarray, np.ndarray]:
    z = np.asarray(axis, dtype=float)
    helper = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = np.cross(helper, z)
    x /= np.linalg.norm(x)
    return mesh[0] @ np.stack([x, np.cross(z, x), z]), mesh[1]


def simplified(vertices: np.ndarray, faces: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
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
        _, keep = np.unique(np.sort(corners, axis=1), axis=0, return_index=True)
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
