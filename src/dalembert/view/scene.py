"""What there is to draw: triangles with normals and a colour for each body, from shapes and meshes; where they go, and how
far. Everything that shows a run, in a browser or in a file, draws this."""
from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from scipy.spatial import ConvexHull, QhullError
from scipy.spatial.transform import Rotation

from dalembert.mechanism.joints import Distance, PointSpring
from dalembert.mechanism.mechanism import Body, Mechanism
from dalembert.mechanism.shapes import Box, Sphere
from dalembert.mechanism.visuals import Mesh, Visual, inertia_box, visuals_of
from dalembert.simulation.trajectory import Trajectory, rotate
from dalembert.view.plots import COLOURS
from dalembert.view.triangles import ROUND, Triangles, arrow, coil, rod, shaded, terrain, triangles

#: triangles of a whole scene that pages and pictures are made of
MOST_TRIANGLES = 60_000
#: speeds for runs that are too short to be seen, which are those below so many seconds
SPEEDS, SHORTEST = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001), 2.0
#: knots that the room of a motion is taken from
SAMPLED = 60

Colour = tuple[float, float, float, float]
#: red, green, blue between 0 and 1, and opacity
STONE, STEEL, GHOST = (0.66, 0.68, 0.71, 1.0), (0.45, 0.47, 0.5, 1.0), (0.95, 0.55, 0.1, 0.45)
INK, ORANGE, MAGENTA = (0.13, 0.14, 0.16, 1.0), (0.93, 0.42, 0.12, 1.0), (0.78, 0.12, 0.5, 1.0)
AXES = ((0.85, 0.2, 0.2, 1.0), (0.2, 0.6, 0.25, 1.0), (0.2, 0.35, 0.85, 1.0))
#: towards the light, and the colour of the air
LIGHT = np.array([0.35, -0.5, 0.95]) / np.linalg.norm([0.35, -0.5, 0.95])
BACKGROUND = (0.957, 0.965, 0.976)
#: azimuth and elevation (degrees) of a camera unless told otherwise, and for motions that are flat along x, y or z
LOOK, FLAT_LOOKS, FLAT = (-55.0, 18.0), ((-28.0, 15.0), (-62.0, 15.0), (-65.0, 52.0)), 0.25


@dataclass(frozen=True)
class Part:
    """Triangles of one colour, in the coordinates of their owner: a body (from its centre of mass), a tie, or -1: the world."""

    owner: int
    vertices: np.ndarray  # (n, 3) float32
    normals: np.ndarray  # (n, 3) float32
    faces: np.ndarray  # (m, 3) int32
    colour: Colour


@dataclass(frozen=True)
class Tie:
    """A line between two points of bodies (body coordinates): a "spring", a "rod", a stretch of a "path" or of a "strand".

    ``radius`` (m): of a strand, whose thickness is its own.
    """

    bodies: tuple[Body, Body]
    points: tuple[np.ndarray, np.ndarray]
    kind: str
    colour: Colour = STEEL
    radius: float = 0.0

    def shape(self, size: float) -> Triangles:
        """Along z from 0 to 1, in a mechanism of that size (m)."""
        if self.kind == "strand":
            return rod(self.radius)
        return coil(0.05 * size) if self.kind == "spring" else rod((0.012 if self.kind == "rod" else 0.006) * size)


@dataclass(frozen=True)
class Scene:
    """All parts of a mechanism, and the room that its motion takes.

    ``owners``: bodies and, after them, ties (springs, rods without mass and paths, which reach from point to point).
    ``hull`` (n, 3): points whose hull holds the motion, around ``middle`` within ``radius``; ``size``: radius of the mechanism at
    the start, ``axis``: length of a body's axes in pictures; ``floor``: its height in m, None in space.
    """

    parts: list[Part]
    bodies: tuple[str, ...]
    ties: list[Tie]
    hull: np.ndarray
    middle: np.ndarray
    radius: float
    size: float
    axis: float
    floor: float | None

    def placed(self, position: np.ndarray, orientation: np.ndarray) -> np.ndarray:
        """(..., owners, 8): position, orientation (scalar first) and stretch along z, from the poses of the bodies."""
        poses = np.concatenate([position, orientation, np.ones((*position.shape[:-1], 1))], axis=-1)
        return np.concatenate([poses, *(_between(tie, position, orientation)[..., None, :] for tie in self.ties)], axis=-2)

    def hull_of(self, position: np.ndarray, orientation: np.ndarray) -> np.ndarray:
        """(n, 3) points whose hull holds everything at some poses (knots, bodies, 3) and (knots, bodies, 4)."""
        return _hull(self.parts, self.ties, position, orientation)

    @property
    def look(self) -> tuple[float, float]:
        """Azimuth and elevation (degrees) of a camera that does not see a flat motion edge-on."""
        extent = np.ptp(self.hull, axis=0)
        return FLAT_LOOKS[int(extent.argmin())] if extent.min() < FLAT * np.median(extent) else LOOK

    @property
    def spacing(self) -> float:
        """Of the lines on the floor: 1, 2 or 5 times a power of ten, in m."""
        wanted = self.radius / 4.0
        ten = 10.0 ** np.floor(np.log10(wanted))
        return float(ten * max(k for k in (1, 2, 5) if k * ten <= wanted * 1.0001))


def fitting_eye(points: np.ndarray, axes: np.ndarray, width: float, height: float) -> np.ndarray:
    """(3,) the nearest eye from which a camera sees all points.

    ``axes`` (3, 3): its right, its up and its back; ``width``, ``height``: tangents of half its angles of view.
    """
    u, v, w = axes @ points.T
    left, right = np.max(width * w - u), np.max(width * w + u)
    low, high = np.max(height * w - v), np.max(height * w + v)
    back = max((left + right) / (2 * width), (low + high) / (2 * height))
    return np.array([0.5 * (right - left), 0.5 * (high - low), back]) @ axes


def ordinary_speed(length: float) -> float:
    """How fast to show a run of that length (s): as it is, or slower if it would be over at once."""
    return next((speed for speed in SPEEDS if length / speed >= SHORTEST), SPEEDS[-1])


def build_scene(
    source: Trajectory | Mechanism, position: np.ndarray | None = None, orientation: np.ndarray | None = None, *, most_triangles: int = MOST_TRIANGLES,
) -> Scene:
    """The scene of a trajectory, or of a mechanism with its poses (..., bodies, 3) and (..., bodies, 4).

    Bodies of a trajectory without a model are boxes of their inertia.
    """
    mechanism = source if isinstance(source, Mechanism) else source.model
    if position is None or orientation is None:
        assert isinstance(source, Trajectory)
        position, orientation = source.position, source.orientation
    x, q = position.reshape(-1, *position.shape[-2:]), orientation.reshape(-1, *orientation.shape[-2:])
    if mechanism is None:
        assert isinstance(source, Trajectory)
        drawn = [(i, [Visual(*inertia_box(m, J))]) for i, (m, J) in enumerate(zip(source.mass, source.inertia))]
        bodies, ties, grounds, gravity = source.bodies, [], [], True
    else:
        drawn = [(body.index, list(visuals_of(mechanism, body))) for body in (mechanism.world, *mechanism.bodies)]
        drawn[0][1].extend(Visual(o.shape, o.position, o.orientation, STONE) for o in mechanism.obstacles)
        for point in mechanism.contact_points:
            if point.radius > 0.0:
                visuals = drawn[1 + point.body.index][1]
                visuals.append(Visual(Sphere(radius=point.radius, mass=1.0), point.point, np.array([1.0, 0.0, 0.0, 0.0]), visuals[0].colour))
        bodies, ties = tuple(b.name for b in mechanism.bodies), _ties(mechanism)
        grounds, gravity = mechanism.grounds, bool(np.any(mechanism.gravity))
    parts = _parts(drawn, most_triangles)
    if mechanism is not None:
        parts += [_part(-1, [terrain(field)], STONE) for field in mechanism.terrains]
    hull = _hull(parts, ties, x, q)
    (middle, radius), (_, size) = _ball(hull), _ball(_hull(parts, ties, x[:1], q[:1]))
    level = [g.offset for g in grounds if g.normal[2] > 1.0 - 1e-9]
    slopes = [_slope(g.normal, g.offset, middle, radius) for g in grounds if g.normal[2] <= 1.0 - 1e-9]
    for k, tie in enumerate(ties):
        parts.append(_part(len(bodies) + k, [tie.shape(size)], tie.colour))
    lowest = min(float(points[:, 2].min()) for points in (hull, *(slope.vertices for slope in slopes)))
    floor = max(level) if level else _floor(lowest, radius) if gravity else None
    return Scene([p for p in [*parts, *slopes] if len(p.faces)], bodies, ties, hull, middle, radius, size, min(0.16 * size, 0.5 * _grain(parts, size)), floor)


def collision_parts(mechanism: Mechanism | None, most_triangles: int = 30_000) -> list[Part]:
    """The shapes that touch, of bodies that are drawn in another way; none where they are too many."""
    bodies = [] if mechanism is None else [b for b in mechanism.bodies if mechanism.visuals.get(b.name)]
    drawn = [(b.index, [Visual(c.shape, c.position, c.orientation, GHOST) for c in mechanism.colliders if c.body is b]) for b in bodies]  # type: ignore[union-attr]
    parts = _parts([(owner, visuals) for owner, visuals in drawn if visuals], most_triangles)
    return parts if sum(len(part.faces) for part in parts) <= most_triangles else []


def _ties(mechanism: Mechanism) -> list[Tie]:
    """Springs and rods, then every stretch of every path, those of strands in their looks."""
    kinds = {PointSpring: "spring", Distance: "rod"}
    joints = [j for j in mechanism.joints if type(j.type) in kinds]
    ties = [Tie((j.parent, j.child), (j.point_parent, j.point_child), kinds[type(j.type)]) for j in joints]
    strands = {path: strand for strand in mechanism.strands for path in strand.paths}
    for path in mechanism.paths:
        strand = strands.get(path)
        kind, colour, radius = ("path", STEEL, 0.0) if strand is None else ("strand", strand.colour, strand.radius)
        ties += [Tie(bodies, points, kind, colour, radius) for bodies, points in zip(pairwise(path.bodies), pairwise(path.points))]
    return ties


def _floor(lowest: float, radius: float) -> float:
    """Height of the floor under a motion that knows of none: zero where that is near below it."""
    return 0.0 if -1e-6 * radius <= lowest <= radius else lowest - 0.15 * radius


def _parts(drawn: list[tuple[int, list[Visual]]], most_triangles: int) -> list[Part]:
    """One part for each body and colour; meshes share what triangles there are."""
    faces = sum(len(v.geometry.faces) for _, visuals in drawn for v in visuals if isinstance(v.geometry, Mesh))
    share = min(1.0, most_triangles / max(faces, 1))
    curved = sum(not isinstance(v.geometry, Mesh | Box) for _, visuals in drawn for v in visuals)
    sides = int(np.clip(np.sqrt(most_triangles / max(curved, 1)), 8, ROUND)) // 4 * 4
    parts, known = [], {}  # one mesh may stand for several links
    for owner, visuals in drawn:
        groups: dict[Colour, list[Triangles]] = {}
        for visual in visuals:
            colour = visual.colour or (STONE if owner < 0 else (*_rgb(COLOURS[owner % len(COLOURS)]), 1.0))
            turn = Rotation.from_quat(visual.orientation, scalar_first=True).as_matrix()
            if id(visual.geometry) not in known:
                known[id(visual.geometry)] = triangles(visual.geometry, share, sides)
            groups.setdefault(colour, []).extend((v @ turn.T + visual.position, f) for v, f in known[id(visual.geometry)])
        parts += [_part(owner, pieces, colour) for colour, pieces in groups.items()]
    return parts


def _part(owner: int, pieces: list[Triangles], colour: Colour) -> Part:
    meshes = [shaded(v, f) for v, f in pieces]
    offsets = np.cumsum([0, *(len(v) for v, _, _ in meshes)])
    return Part(
        owner, np.concatenate([v for v, _, _ in meshes]).astype(np.float32), np.concatenate([n for _, n, _ in meshes]).astype(np.float32),
        np.concatenate([f + o for (_, _, f), o in zip(meshes, offsets)]).astype(np.int32), colour,
    )


def arrow_parts(arrows: list[tuple[np.ndarray, np.ndarray, Colour, bool]], radius: float) -> list[Part]:
    """Arrows (start, end, colour, head) as parts of the world."""
    colours = dict.fromkeys(colour for _, _, colour, _ in arrows)
    return [_part(-1, [arrow(a, b, radius, head) for a, b, c, head in arrows if c == colour], colour) for colour in colours]


def _slope(normal: np.ndarray, offset: float, middle: np.ndarray, radius: float) -> Part:
    """A square of a half-space that is not level."""
    side = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
    side *= 1.2 * radius / np.linalg.norm(side)
    up = np.cross(normal, side)
    near = middle + (offset - normal @ middle) * normal
    corners = near + np.stack([-side - up, side - up, side + up, up - side])
    return _part(-1, [(corners, np.array([[0, 1, 2], [0, 2, 3]]))], STONE)


def _hull(parts: list[Part], ties: list[Tie], position: np.ndarray, orientation: np.ndarray) -> np.ndarray:
    """(n, 3) few points whose hull holds all bodies in all poses (a sample of them where they are many).

    What stands still counts where it is near: a base does, a plain that reaches to the horizon does not.
    """
    knots = np.unique(np.linspace(0, len(position) - 1, min(SAMPLED, len(position))).astype(int))
    cloud = [position[knots].reshape(-1, 3), *(_between(tie, position[knots], orientation[knots])[:, :3] for tie in ties)]
    for part in parts:
        if 0 <= part.owner < position.shape[1]:
            q, corners = np.repeat(orientation[knots, None, part.owner], 8, axis=1), np.broadcast_to(_corners(part), (len(knots), 8, 3))
            cloud.append((rotate(q, corners) + position[knots, None, part.owner]).reshape(-1, 3))
    moving = np.concatenate(cloud)
    low, high = moving.min(axis=0), moving.max(axis=0)
    for part in parts:
        if part.owner < 0 and (np.linalg.norm(_corners(part) - 0.5 * (low + high), axis=1) < np.linalg.norm(high - low)).all():
            cloud.append(_corners(part))
    points = np.concatenate(cloud)
    try:
        return points[ConvexHull(points).vertices]
    except (QhullError, ValueError):
        return points[np.unique(np.concatenate([points.argmin(axis=0), points.argmax(axis=0)]))]


def _ball(points: np.ndarray) -> tuple[np.ndarray, float]:
    """Middle and radius of the box around points."""
    low, high = points.min(axis=0), points.max(axis=0)
    return 0.5 * (low + high), max(float(np.linalg.norm(high - low)) / 2, 1e-3)


def _grain(parts: list[Part], size: float) -> float:
    """Half the size of an ordinary body."""
    return float(np.median([np.linalg.norm(np.ptp(p.vertices, axis=0)) / 2 for p in parts if p.owner >= 0] or [size]))


def _corners(part: Part) -> np.ndarray:
    """(8, 3) of the box around a part."""
    low, high = part.vertices.min(axis=0), part.vertices.max(axis=0)
    return np.where(np.array(list(product((False, True), repeat=3))), high, low).astype(float)


def _between(tie: Tie, position: np.ndarray, orientation: np.ndarray) -> np.ndarray:
    """(..., 8) the pose of a tie: at its first point, z towards the second one, stretched to there."""
    ends = []
    for body, point in zip(tie.bodies, tie.points):
        local = np.broadcast_to(point, (*position.shape[:-2], 3))
        ends.append(local if body.index < 0 else position[..., body.index, :] + rotate(orientation[..., body.index, :], local))
    across = ends[1] - ends[0]
    length = np.linalg.norm(across, axis=-1, keepdims=True)
    z = across / np.maximum(length, 1e-12)
    half = np.concatenate([1.0 + z[..., 2:], -z[..., 1:2], z[..., :1], np.zeros_like(length)], axis=-1)  # turns z towards ``across``
    half[half[..., 0] < 1e-9] = [0.0, 1.0, 0.0, 0.0]
    return np.concatenate([ends[0], half / np.linalg.norm(half, axis=-1, keepdims=True), np.maximum(length, 1e-9)], axis=-1)


def _rgb(word: str) -> tuple[float, float, float]:
    return int(word[1:3], 16) / 255, int(word[3:5], 16) / 255, int(word[5:7], 16) / 255
