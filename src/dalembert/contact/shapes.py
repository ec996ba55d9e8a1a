"""Colliding shapes as arrays for the narrow phase, and the list of near pairs that the broad phase keeps up to date."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.contact.build import label_index
from dalembert.contact.distance import core_distance, unit
from dalembert.contact.features import (
    Geometry,
    _blank,
    corners,
    geometries,
    inner_radius,
    is_polyhedron,
    outer_radius,
    support_features,
)
from dalembert.contact.laws import write_law
from dalembert.contact.records import CONE, CYLINDER, ELLIPSOID, GEOMETRY, PAIR, POLYHEDRON, ROUND, Shapes
from dalembert.contact.rounded import is_smooth
from dalembert.errors import ModelError
from dalembert.kernels import kernel
from dalembert.mechanism.environment import PairLaw
from dalembert.mechanism.shapes import Box, Capsule, Cone, Cylinder, Ellipsoid, Sphere
from dalembert.mechanism.touching import Touching
from dalembert.spatial.tuples import load3, load9, sub3

#: corners of a clipped face at most
ROOM = 64
#: most contact points of a pair of polyhedra, and of a pair with a cylinder, a cone or an ellipsoid
SLOTS, GENERAL_SLOTS = 8, 12
#: part of the shapes' thickness, and length (m), from which a pair counts as close
CLOSE, CLOSE_LENGTH = 0.02, 1e-4
_BOX_LOOPS = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def compile_shapes(found: Sequence[Geometry], world: int) -> Shapes:
    """The arrays of the narrow phase, with no pairs yet."""
    records = np.zeros(len(found), GEOMETRY)
    points: list[np.ndarray] = []
    planes: list[np.ndarray] = []
    loops: list[int] = []
    starts, edges = [0], []
    count = 0
    for record, g in zip(records, found):
        shape = g.shape
        record["body"] = g.body if g.body >= 0 else world
        record["position"], record["outer"], record["inner"] = g.position, outer_radius(shape), inner_radius(shape)
        record["frame"] = g.axes.ravel()
        if isinstance(shape, Capsule | Cylinder | Cone):
            axis = g.axes @ np.asarray(shape.axis, dtype=float)
            record["half"], record["axis"], record["frame"] = 0.5 * shape.length, axis, _turn_to(axis).ravel()
        if isinstance(shape, Sphere | Capsule):
            record["form"], record["radius"], record["skin"] = ROUND, shape.radius, shape.radius
        elif isinstance(shape, Cylinder | Cone):
            record["form"], record["radius"] = CONE if isinstance(shape, Cone) else CYLINDER, shape.radius
        elif isinstance(shape, Ellipsoid):
            record["form"], record["semi"] = ELLIPSOID, shape.semi_axes
        elif is_polyhedron(shape):
            record["form"] = POLYHEDRON
            record["semi"] = 0.5 * np.asarray(shape.size) if isinstance(shape, Box) else 0.0
            own = g.position + corners(shape) @ g.axes.T
            faces = _BOX_LOOPS if isinstance(shape, Box) else shape.loops  # type: ignore[attr-defined]
            record["first_corner"], record["corners"] = count, len(own)
            record["first_face"], record["faces"] = len(planes), len(faces)
            rims = set()
            for loop in faces:
                n = np.cross(own[loop[1]] - own[loop[0]], own[loop[2]] - own[loop[1]])
                n /= np.linalg.norm(n)
                if isinstance(shape, Box):  # to the last digit, whatever the sizes: rounding would decide how impulses are shared
                    n = np.sign(n @ g.axes[:, np.argmax(np.abs(n @ g.axes))]) * g.axes[:, np.argmax(np.abs(n @ g.axes))]
                planes.append(np.append(n, n @ own[loop[0]]))
                loops += [count + k for k in loop]
                starts.append(len(loops))
                rims |= {tuple(sorted((count + a, count + b))) for a, b in zip(loop, (*loop[1:], loop[0]))}
            record["first_edge"], record["edges"] = len(edges), len(rims)
            edges += sorted(rims)
            points.append(own)
            count += len(own)
        else:
            raise ModelError(f"{g.name!r}: a {type(shape).__name__} cannot collide")
        record["swing"] = np.linalg.norm(g.position) + record["outer"] - record["skin"]
    return Shapes(
        np.zeros(0, PAIR), records, np.concatenate(points) if points else np.zeros((0, 3)), np.array(planes).reshape(-1, 4),
        np.array(loops, dtype=np.int64), np.array(starts, dtype=np.int64), np.array(edges, dtype=np.int64).reshape(-1, 2), np.zeros((2, ROOM, 3)),
    )


def _turn_to(axis: np.ndarray) -> np.ndarray:
    """A rotation that takes z to a unit vector."""
    u = np.linalg.svd(axis[None])[2][1]
    return np.column_stack([u, np.cross(axis, u), axis])


@kernel
def sweep(low, high, order, found):
    """Pairs of boxes (n, 3) that overlap, by sweeping along x in the given order; returns how many (-1: no room)."""
    count = 0
    n = order.shape[0]
    for a in range(n):
        i = order[a]
        for b in range(a + 1, n):
            j = order[b]
            if low[j, 0] > high[i, 0]:
                break
            if low[j, 1] <= high[i, 1] and low[i, 1] <= high[j, 1] and low[j, 2] <= high[i, 2] and low[i, 2] <= high[j, 2]:
                if count == found.shape[0]:
                    return -1
                found[count, 0] = min(i, j)
                found[count, 1] = max(i, j)
                count += 1
    return count


def overlapping(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """(k, 2) pairs of boxes that overlap (sweep and prune)."""
    order = np.argsort(low[:, 0], kind="stable")
    room = 8 * len(low) + 64
    while True:
        found = np.zeros((room, 2), np.int64)
        count = int(sweep(low, high, order, found))
        if count >= 0:
            return found[:count]
        room *= 4


@kernel
def leave_far(shapes, pairs, places, turns, near):
    """Tell which pairs (k, 2) of geometries cannot meet while no body leaves its room: those whose distance is larger than both rooms and what is close.

    ``places`` (n, 8): poses and rooms (m), the world last; ``turns`` (n, 9); ``near`` (k,): the answers.
    """
    geometries = shapes.geometries
    for k in range(pairs.shape[0]):
        ga = geometries[pairs[k, 0]]
        gb = geometries[pairs[k, 1]]
        a = places[ga.body]
        b = places[gb.body]
        reach = ga.skin + gb.skin + a[7] + b[7] + CLOSE * min(ga.inner, gb.inner) + CLOSE_LENGTH
        d = sub3(load3(a), load3(b))
        low, _, _, _ = core_distance(ga, gb, shapes.corners, load9(turns[ga.body]), load9(turns[gb.body]), d, unit(d, (0.0, 0.0, 1.0)), reach, shapes.work[1])
        near[k] = low <= reach


class PairList:
    """The shapes of a mechanism, and which pairs of them are near while no body leaves its room."""

    def __init__(self, touching: Touching, weights: np.ndarray, edges: int) -> None:
        self.touching, self.weights, self.edges = touching, weights, edges
        self.found = [g for surface in touching.paired for g in geometries(surface)]
        self._laws: dict[tuple[int, int], PairLaw | None] = {}
        self._pairs: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
        self.world = len(weights)
        self.shapes = compile_shapes(self.found, self.world)
        size = np.zeros(self.world)
        for g in self.found:
            if g.body >= 0:
                size[g.body] = max(size[g.body], g.size)
        self.size = size

    def _law(self, i: int, j: int) -> PairLaw | None:
        if (i, j) not in self._laws:
            self._laws[i, j] = self.touching.law(self.found[i].surface, self.found[j].surface)
        return self._laws[i, j]

    def near(self, places: np.ndarray) -> list[tuple[int, int]]:
        """Pairs of geometries that may meet while no body leaves its room. ``places`` (n, 8): poses and rooms (m)."""
        if not self.found:
            return []
        places = np.concatenate([places, [[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]]])  # the world comes last, as body -1
        turns = Rotation.from_quat(places[:, 3:7], scalar_first=True).as_matrix()
        body, position = np.array([g.body for g in self.found]), np.array([g.position for g in self.found])
        centres = places[body, :3] + np.einsum("nij,nj->ni", turns[body], position)
        reach = self.shapes.geometries["outer"] + places[body, 7]
        pairs = overlapping(centres - reach[:, None], centres + reach[:, None])
        d = centres[pairs[:, 0]] - centres[pairs[:, 1]]
        pairs = pairs[np.einsum("ni,ni->n", d, d) <= (reach[pairs[:, 0]] + reach[pairs[:, 1]]) ** 2]
        meeting = np.array(sorted((i, j) for i, j in pairs.tolist() if self._law(i, j) is not None), dtype=np.int64).reshape(-1, 2)
        near = np.zeros(len(meeting), np.bool_)
        leave_far(self.shapes, meeting, places, turns.reshape(-1, 9), near)
        return [(i, j) for i, j in meeting[near].tolist()]

    def slots(self, key: tuple[int, int]) -> int:
        """How many contact points a pair may have."""
        a, b = sorted((self.shapes.geometries[k] for k in key), key=lambda g: int(g["form"]))
        if a["form"] == ROUND and b["form"] == ROUND:
            return 5 if a["half"] > 0.0 and b["half"] > 0.0 else 1
        if a["form"] == ROUND and b["form"] == POLYHEDRON:
            return 7 if a["half"] > 0.0 else 1
        if is_smooth(a, b):
            return 1
        if b["form"] >= CYLINDER:
            return min(GENERAL_SLOTS, sum(len(support_features(self.found[k])) for k in key))
        return SLOTS

    def build(self, keys: list[tuple[int, int]], first: int, labels: list[str]) -> tuple[np.ndarray, Shapes]:
        """Contact records of a list of pairs, whose first one will have the index ``first``, and the shapes with them."""
        made = [self._made(key, labels) for key in keys]
        pairs = np.zeros(len(keys), PAIR)
        if not keys:
            return _blank(0), self.shapes._replace(pairs=pairs)
        records = _blank(sum(len(slots) for slots, _ in made))
        # as bytes: joined as records they would be compared field by field, which takes longer than all the rest
        np.concatenate([slots.view(np.uint8) for slots, _ in made], out=records.view(np.uint8))
        np.concatenate([pair.view(np.uint8) for _, pair in made], out=pairs.view(np.uint8))
        pairs["first"] = first + np.cumsum(pairs["slots"]) - pairs["slots"]
        return records, self.shapes._replace(pairs=pairs)

    def _made(self, key: tuple[int, int], labels: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Contact records of a pair and its own, which are kept for when it comes near again."""
        if key not in self._pairs:
            self._pairs[key] = self._make(key, labels)
        return self._pairs[key]

    def _make(self, key: tuple[int, int], labels: list[str]) -> tuple[np.ndarray, np.ndarray]:
        pair, forms = np.zeros(1, PAIR), self.shapes.geometries["form"]
        i, j = sorted(key, key=lambda k: int(forms[k]))
        a, b = self.found[i], self.found[j]
        law = self._law(i, j)
        assert law is not None
        slots = _blank(self.slots(key))
        pair["i"], pair["j"], pair["slots"] = i, j, len(slots)
        masses = [1.0 / self.weights[g.body] for g in (a, b) if g.body >= 0]
        slots["a"], slots["b"] = (g.body if g.body >= 0 else self.world for g in (a, b))
        slots["owner"] = label_index(labels, *(self.found[k].name for k in sorted(key)))
        slots["part"], slots["first"], slots["second"] = np.arange(len(slots)), i, j
        write_law(slots, law, a.surface, b.surface, self.world)
        slots["weight"] = 1.0 / sum(masses)
        slots["edges"] = np.where(slots["friction"] > 0.0, self.edges, 0)
        reach = [self.shapes.geometries["outer"][k] for k in (i, j)]
        pair["margin"] = 0.5 * min(reach) + 1e-3
        pair["close"] = pair["margin"] if law.stiffness is not None else CLOSE * min(self.shapes.geometries["inner"][k] for k in (i, j)) + CLOSE_LENGTH
        return slots, pair
