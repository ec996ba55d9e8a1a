"""Forward sensitivities of contacts, limits and dry friction: what their nodes look at is differenced, their own rows are linearised.

Sliding velocities, forces, and gaps by the numbers of a model are differences of the kernels that a step is made of; complementarity
itself, far too sharp for differences, is Newton's own matrix (as everywhere in a forward pass). Where impulses are not unique, shares of
them follow slacks of some 1e-9 m/s, which the rounding of differenced gaps would drown: with the state, gaps change by their gradients at the
end of the step, of which only the pose there is differenced.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dalembert.contact.build import GroundList, build_limits
from dalembert.contact.clipped import find_clipped
from dalembert.contact.cone import node_matrix
from dalembert.contact.events import end_gap
from dalembert.contact.laws import coefficient_and_shares
from dalembert.contact.limits import limit_matrix
from dalembert.contact.nodes import limit_rate
from dalembert.contact.records import BALL_SUPPORT, CONE, CYLINDER, ELLIPSOID, PLANE, POLYHEDRON, Shapes
from dalembert.contact.shapes import PairList
from dalembert.contact.support import core_support
from dalembert.formulations.maximal.pull_bearings import find_bounds, note_bearings
from dalembert.formulations.maximal.pull_contacts import dot6, rises
from dalembert.kernels import inline, kernel
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.touching import Touching
from dalembert.model.compile import compile_model
from dalembert.model.placement import Placement
from dalembert.model.records import Model
from dalembert.spatial import so3
from dalembert.spatial.tuples import dot3, load3, load9, mat_t_mul, sub3

#: points nearer (m) than this to a corner are that corner
CORNER = 1e-10
#: features of contacts with grounds
FEATURES = ("point", "radius", "axis", "semi", "frame", "normal", "offset", "belt", "share", "restitution", "friction")


class TouchingModel(NamedTuple):
    """A mechanism's model with what may touch in it."""

    model: Model
    grounds: np.ndarray  # records of all contacts with grounds
    limits: np.ndarray
    pairs: PairList


def touching_model(mechanism: Mechanism) -> TouchingModel:
    """The records of a mechanism."""
    model, touching = compile_model(mechanism), Touching(mechanism)
    grounds = GroundList(mechanism, touching, 0, [])
    limits = build_limits(Placement.of(mechanism, model))
    return TouchingModel(model, grounds.contacts, limits, PairList(touching, grounds.weights, 0))


@kernel
def bound_again(scene, before, fall, dt):
    """Bounds that restitution asks for, with velocities (n + 1, 6) just before the knot and what they change by in half a step; rows must be in place."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0 and rises(contact.bounced, contact.bound):
            rate = dot6(contact.Ga[0], before[contact.a]) + dot6(contact.Gb[0], before[contact.b])
            contact.bound = contact.gap0 / dt - contact.granted * contact.restitution * rate
            if contact.bounced == 2:
                contact.bound += dot6(contact.Ga[0], fall[contact.a]) + dot6(contact.Gb[0], fall[contact.b])
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        rate = dot6(limit.Ga, before[limit.a]) + dot6(limit.Gb, before[limit.b])
        drop = dot6(limit.Ga, fall[limit.a]) + dot6(limit.Gb, fall[limit.b])
        for side in range(2):
            if limit.awake[side] != 0 and rises(limit.bounced[side], limit.bound[side]):
                sign = 1.0 if side == 0 else -1.0
                limit.bound[side] = end_gap(limit, side, limit.c0) / dt - sign * limit.granted * limit.restitution * rate
                if limit.bounced[side] == 2:
                    limit.bound[side] += sign * drop


@kernel
def read_nodes(scene, dt, values):
    """(nodes, 3) gap over dt less its bound and sliding velocity of what is awake, then both ends and rate of all limits."""
    count = 0
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            values[count, 0] = contact.gap / dt - contact.bound
            values[count, 1] = contact.eta[0]
            values[count, 2] = contact.eta[1]
            count += 1
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for side in range(2):
            values[count, side] = limit_rate(limit, side, dt, 0.0) if limit.awake[side] != 0 else 0.0
        values[count, 2] = limit.eta
        count += 1


class Held(NamedTuple):
    """Where a step ends: gradients of the gaps of what is awake, and of all limits' coordinates, by both bodies' poses; features of
    contacts whose gaps are linear in them, points against half-spaces; and the poses.
    """

    H: np.ndarray  # (contacts + limits, 2, 6)
    linear: np.ndarray  # (contacts,) whether the gap is linear in the features
    lever: np.ndarray  # (contacts, 3) gradient by the contact's point, body a's frame
    codes: np.ndarray  # (contacts, 4) planes that meet in it (``contact.clipped``), -1 first where it is a point of its shape
    point: np.ndarray  # (contacts, 3)
    level: np.ndarray  # (contacts,) radius and offset; and the offset of the side on which a point moves
    side: np.ndarray  # (contacts,)
    x: np.ndarray  # (n + 1, 3)
    R: np.ndarray  # (n + 1, 9)


@inline
def moved(bodies, held, index, a, b):
    """What changes by the gradients ``H`` of a node, by how far its bodies are from the pose that is held."""
    total = 0.0
    for side in range(2):
        body = a if side == 0 else b
        total += dot3(load3(held.H[index, side]), sub3(load3(bodies[body].xn), load3(held.x[body])))
        turn = so3.log_matrix(mat_t_mul(load9(held.R[body]), load9(bodies[body].Rn)))
        total += dot3(load3(held.H[index, side, 3:]), turn)
    return total


@inline
def feature_gap(contact, shapes, held, index):
    """How a gap that is linear in its features changes with them. A point that moves over a side stays in its plane, whatever rounding makes of it."""
    lever, codes = load3(held.lever[index]), held.codes[index]
    d = sub3(load3(contact.point), load3(held.point[index]))
    gap = held.level[index] - contact.radius - contact.offset
    if codes[0] >= 0:
        f = load3(contact.axis)
        gap += dot3(lever, f) * (shapes.planes[codes[0], 3] - held.side[index] - dot3(f, d))
    return gap + dot3(lever, d)


@kernel
def gaps_beside(scene, bodies, held, dt, beside, values):
    """Gaps and ends of limits over dt less their bounds into ``values`` (nodes, 3), but for constants, by how far the pose at the end is from that held.

    Not ``beside``: of another model, and only of what is linear in its features.
    """
    count = 0
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake == 0:
            continue
        if beside or held.linear[count]:
            gap = feature_gap(contact, scene.shapes, held, count) if held.linear[count] else 0.0
            gap += moved(bodies, held, count, contact.a, contact.b)
            values[count, 0] = gap / dt - contact.bound
        count += 1
    if not beside:
        return
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        gap = moved(bodies, held, count, limit.a, limit.b)
        for side in range(2):
            if limit.awake[side] != 0:
                values[count, side] = (gap if side == 0 else -gap) / dt - limit.bound[side]
        count += 1


@kernel
def linear_rows(scene, S, values, impulses, laws, h, rows):
    """(nodes, 3) rows of the nodes, linearised, for tangents of ``read_nodes``, of impulses, and of coefficients of friction (nodes,)."""
    count = 0
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake == 0:
            continue
        w0, w00, w01, w11 = node_matrix(contact, S, contact.friction > 0.0)
        d, f, r = values[count], impulses[count], rows[count]
        r[0] = w0 * d[0] + S[0, 0] * f[0]
        r[1] = w00 * d[1] + w01 * d[2] + S[1, 0] * f[0] + S[1, 1] * f[1] + S[1, 2] * f[2]
        r[2] = w01 * d[1] + w11 * d[2] + S[2, 0] * f[0] + S[2, 1] * f[1] + S[2, 2] * f[2]
        if contact.friction > 0.0:
            more = laws[count] * contact.gamma / contact.friction
            r[1] += more * S[1, 0]
            r[2] += more * S[2, 0]
        count += 1
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        w0, w1, w2 = limit_matrix(limit, S)
        d, f, r = values[count], impulses[count], rows[count]
        # w1 weighs the coordinate, of which the room at the upper end is minus so much
        r[0] = w0 * d[0] + S[0, 0] * f[0]
        r[1] = -w1 * d[1] + S[1, 1] * f[1]
        r[2] = w2 * d[2] + S[2, 2] * f[2]
        if limit.bears != 0 and not limit.cap > 0.0:
            r[2] += h * laws[count] * (1.0 if limit.eta >= 0.0 else -1.0)
        elif limit.cap > 0.0:
            r[2] += h * laws[count] * (limit.eta - limit.beta / limit.cap * limit.psi) / (limit.cap + limit.weight * limit.psi)
        count += 1


def own_point(before: Shapes, after: Shapes, number: int, point: np.ndarray) -> np.ndarray:
    """A point (3,) of a shape on another one like it, at the same share of every size; in the body's frame. Corners are corners to the last digit."""
    old, new = before.geometries[number], after.geometries[number]
    d = point - old["position"]
    if old["form"] == POLYHEDRON:
        own = slice(int(old["first_corner"]), int(old["first_corner"]) + int(old["corners"]))
        away = np.abs(before.corners[own] - point).max(axis=1)
        if away.min() < CORNER:
            return after.corners[own][away.argmin()]
        frame = old["frame"].reshape(3, 3)
        part = np.divide(new["semi"], old["semi"], out=np.ones(3), where=old["semi"] > 0.0)
        d = frame @ (part * (frame.T @ d))
    elif old["form"] != ELLIPSOID and old["half"] > 0.0:
        along = (d @ old["axis"]) * old["axis"]
        d = new["half"] / old["half"] * along + (new["radius"] / old["radius"] if old["form"] in (CYLINDER, CONE) else 1.0) * (d - along)
    return new["position"] + d


def height(shape: np.ndarray, corners: np.ndarray, n: np.ndarray) -> float:
    """Support function (m) of a shape along a unit vector of its body's frame."""
    return float(np.dot(core_support(shape, corners, (float(n[0]), float(n[1]), float(n[2]))), n) + shape["skin"])


class TouchingNodes:
    """The nodes of a step in a forward pass: which are part of it, and their numbers for each model."""

    def __init__(self, engine: Any, models: Any, step: float, offsets: Any) -> None:
        self.engine, self.step, self.offsets = engine, step, offsets
        self.models = {id(one.model): one for one in models}
        self.order = models
        self.own = touching_model(engine.mechanism)
        self.section: Any = None

    def awake(self, found_at: np.ndarray) -> np.ndarray:
        """Indices of the solver's nodes of what is awake in the scene, and of all limits. ``found_at``: bodies where features were found."""
        scene = self.section.scene
        self.contacts = np.flatnonzero(scene.contacts["awake"])
        self.laws = self._laws()
        self.base = scene.contacts.copy()
        self.borne = scene.limits["bears"] != 0
        self.bounds: np.ndarray | None = None
        self.passes: list[tuple[np.ndarray, np.ndarray]] = []
        self.codes = np.zeros((len(scene.contacts), 4), np.int64)
        find_clipped(scene, found_at, self.codes)
        return np.concatenate([scene.contacts["node"][self.contacts], scene.limits["node"]]).astype(int)

    def _put_features(self, one: TouchingModel) -> None:
        """Features of pairs, as they were, with the shapes of a model: points keep their share of every size, half-spaces touch their shapes."""
        contacts, before, after = self.section.scene.contacts, self.own.pairs.shapes, one.pairs.shapes
        for pair in self.section.scene.shapes.pairs:
            for slot in range(int(pair["first"]), int(pair["first"]) + int(pair["slots"])):
                kept = self.base[slot]
                if not kept["awake"]:
                    continue
                ends = (int(pair["i"]), int(pair["j"]))
                first, second = ends if before.geometries["body"][ends[0]] == kept["a"] else ends[::-1]
                old, new = before.geometries[first], after.geometries[first]
                contacts["point"][slot] = own_point(before, after, first, kept["point"])
                contacts["radius"][slot] = kept["radius"] + (new["radius"] - old["radius"] if kept["radius"] > 0.0 else 0.0)
                contacts["semi"][slot] = new["semi"]
                old, new = before.geometries[second], after.geometries[second]
                if kept["kind"] == PLANE:
                    contacts["offset"][slot] = kept["offset"] + height(new, after.corners, kept["normal"]) - height(old, before.corners, kept["normal"])
                else:
                    contacts["point_b"][slot] = own_point(before, after, second, kept["point_b"])
                    contacts["radius_b"][slot] = kept["radius_b"] + new["radius"] - old["radius"]

    def _friction(self, one: TouchingModel) -> np.ndarray:
        """(nodes,) coefficients of friction of a model."""
        scene, standing = self.section.scene, self.section.standing
        found = np.zeros(len(scene.contacts))
        found[: len(standing)] = one.grounds["friction"][standing]
        for pair in scene.shapes.pairs:
            law = one.pairs._law(int(pair["i"]), int(pair["j"]))
            found[int(pair["first"]) : int(pair["first"]) + int(pair["slots"])] = coefficient_and_shares(law)[0]  # type: ignore[arg-type]
        return np.concatenate([found[self.contacts], one.limits["friction"]])

    def _laws(self) -> np.ndarray:
        """Tangents of the coefficients of friction."""
        total = np.zeros(len(self.contacts) + len(self.section.scene.limits))
        for (_, weight), one in zip(self.offsets, self.order):
            total += weight / self.step * self._friction(one)
        return total

    def hold(self, work: Any) -> None:
        """The step as it ends is the one that gaps are compared with."""
        self.resting, self.facing, self.signs = np.zeros(len(self.borne), bool), np.ones(len(self.borne)), np.ones((len(self.borne), 2))
        if self.borne.any():
            note_bearings(self.own.model, work, self.section.scene.limits, self.resting, self.facing, self.signs)
        bodies = work.bodies
        contacts, limits = self.section.scene.contacts[self.contacts], self.section.scene.limits
        lever = np.einsum("kji,kj->ki", bodies["Rn"][contacts["a"]].reshape(-1, 3, 3), contacts["n"])
        linear = (contacts["kind"] == PLANE) & (contacts["support"] == BALL_SUPPORT)
        H = np.concatenate([np.stack([nodes["Ha"], nodes["Hb"]], axis=1) for nodes in (contacts, limits)])
        codes, planes = self.codes[self.contacts], self.own.pairs.shapes.planes
        side = np.zeros(len(contacts))
        side[codes[:, 0] >= 0] = planes[codes[codes[:, 0] >= 0, 0], 3]
        level = contacts["radius"] + contacts["offset"]
        self.held = Held(H, linear, lever, codes, contacts["point"].copy(), level, side, bodies["xn"].copy(), bodies["Rn"].copy())

    def read(self, scene: Any, bodies: np.ndarray, dt: float, beside: bool) -> np.ndarray:
        """(nodes, 3) what nodes look at. ``beside``: of another state, not of another model."""
        values = np.zeros((len(self.contacts) + len(scene.limits), 3))
        read_nodes(scene, dt, values)
        gaps_beside(scene, bodies, self.held, dt, beside, values)
        return values

    def read_bounds(self, model: Model, work: Any, scene: Any, values: np.ndarray) -> None:
        """Bounds of bearings, as their loads say, into ``values`` (nodes, 3): in the place of ends, which they do not have."""
        if self.borne.any():
            bounds = np.zeros(len(scene.limits))
            find_bounds(model, work, scene.limits, self.resting, self.signs, bounds)
            values[len(self.contacts) :, 0][self.borne] = (bounds * self.facing)[self.borne]

    def loads(self, mu: np.ndarray, change: np.ndarray) -> float:
        """How large a change of the impulses (joints, 6) of bearings is beside themselves: bounds are lengths of loads, and not linear in them."""
        joints = np.unique(self.section.scene.limits["joint"][self.borne])
        return float((np.abs(change[joints]).max(axis=1, initial=0.0) / np.maximum(np.abs(mu[joints]).max(axis=1, initial=0.0), 1e-300)).max(initial=0.0))

    def with_bounds(self, values: np.ndarray, laws: np.ndarray, h: float) -> np.ndarray:
        """Tangents of the coefficients of friction (nodes,), with those of bounds of bearings over the time ``h`` that friction acts for.

        Bounds change with the unknowns, and these with them, both linearly: of the last passes the combination is taken that would leave nothing (Anderson).
        """
        if not self.borne.any():
            return laws
        rows = values[len(self.contacts) :, 0]
        found, rows[self.borne] = rows[self.borne].copy(), 0.0
        bounds = found
        if self.bounds is not None:
            # the first passes find the unknowns only so far: what is older than it takes is forgotten
            self.passes = [*self.passes, (self.bounds, found - self.bounds)][-1 - len(found) :]
            tried, left = np.array([one for one, _ in self.passes]), np.array([one for _, one in self.passes])
            shares = np.linalg.lstsq((left[:-1] - left[-1]).T, -left[-1], rcond=1e-9)[0] if len(left) > 1 else np.zeros(0)
            bounds = tried[-1] + left[-1] + shares @ (tried + left - tried[-1] - left[-1])[:-1]
        self.bounds, laws = bounds, laws.copy()
        laws[len(self.contacts) :][self.borne] += bounds / h
        return laws

    def put(self, offset: float, tangent: np.ndarray, model: Model) -> Any:
        """The scene with the numbers of a model and impulses moved along their tangents."""
        one, scene, standing = self.models.get(id(model), self.own), self.section.scene, self.section.standing
        contacts, limits = scene.contacts, scene.limits
        for name in FEATURES:
            if name != "friction":
                contacts[name][: len(standing)] = one.grounds[name][standing]
        for pair in scene.shapes.pairs:
            law = one.pairs._law(int(pair["i"]), int(pair["j"]))
            slots = slice(int(pair["first"]), int(pair["first"]) + int(pair["slots"]))
            contacts["restitution"][slots], contacts["share"][slots] = law.restitution, coefficient_and_shares(law)[1]  # type: ignore[union-attr, arg-type]
        self._put_features(one)
        for name in ("end", "restitution", "bearing"):
            limits[name] = one.limits[name]
        count = len(self.contacts)
        contacts["gamma"][self.contacts] += offset * tangent[:count, 0]
        contacts["beta"][self.contacts] += offset * tangent[:count, 1:]
        limits["gamma"] += offset * tangent[count:, :2]
        limits["beta"] += offset * tangent[count:, 2]
        return scene._replace(shapes=one.pairs.shapes._replace(pairs=scene.shapes.pairs))
