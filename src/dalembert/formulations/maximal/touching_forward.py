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
from dalembert.contact.cone import node_matrix
from dalembert.contact.events import end_gap
from dalembert.contact.limits import limit_matrix
from dalembert.contact.nodes import limit_rate
from dalembert.contact.records import BALL_SUPPORT, PLANE, ROUND
from dalembert.contact.shapes import PairList
from dalembert.formulations.maximal.pull_contacts import dot6, rises
from dalembert.kernels import inline, kernel
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.touching import Touching
from dalembert.model.compile import compile_model
from dalembert.model.placement import Placement
from dalembert.model.records import Model
from dalembert.spatial import so3
from dalembert.spatial.tuples import dot3, load3, load9, mat_t_mul, sub3

#: features of contacts with grounds
FEATURES = ("point", "radius", "axis", "semi", "frame", "normal", "offset", "restitution", "friction")


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
    """Where a step ends: gradients of the gaps of what is awake, and of all limits' coordinates, by both bodies' poses; of gaps by the
    contact's point, the point; and the poses.
    """

    H: np.ndarray  # (contacts + limits, 2, 6)
    lever: np.ndarray  # (contacts, 3) body a's frame
    point: np.ndarray  # (contacts, 3)
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


@kernel
def gaps_beside(scene, bodies, held, dt, values):
    """Gaps and ends of limits over dt less their bounds into ``values`` (nodes, 3), but for constants, by how far the pose at the end is from that held."""
    count = 0
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake == 0:
            continue
        gap = dot3(load3(held.lever[count]), sub3(load3(contact.point), load3(held.point[count])))
        gap += moved(bodies, held, count, contact.a, contact.b)
        values[count, 0] = gap / dt - contact.bound
        count += 1
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
        if limit.cap > 0.0:
            r[2] += h * laws[count] * (limit.eta - limit.beta / limit.cap * limit.psi) / (limit.cap + limit.weight * limit.psi)
        count += 1


class TouchingNodes:
    """The nodes of a step in a forward pass: which are part of it, and their numbers for each model."""

    def __init__(self, engine: Any, models: Any, step: float, offsets: Any) -> None:
        self.engine, self.step, self.offsets = engine, step, offsets
        self.models = {id(one.model): one for one in models}
        self.order = models
        self.own = touching_model(engine.mechanism)
        self.section: Any = None

    def awake(self) -> np.ndarray:
        """Indices of the solver's nodes of what is awake in the scene, and of all limits."""
        scene = self.section.scene
        self.contacts = np.flatnonzero(scene.contacts["awake"])
        self.laws = self._laws()
        self.added = self._added()
        return np.concatenate([scene.contacts["node"][self.contacts], scene.limits["node"]]).astype(int)

    def _added(self) -> list[tuple[int, str, int, float, np.ndarray]]:
        """Balls of round shapes in contacts that the watch added on the way, which are not looked for again: contact, side ("" or "_b"), geometry, radius, point."""
        scene, found = self.section.scene, []
        geometries = self.own.pairs.shapes.geometries
        for pair in scene.shapes.pairs:
            for slot in range(int(pair["first"]), int(pair["first"]) + int(pair["slots"])):
                contact = scene.contacts[slot]
                if contact["awake"] and contact["added"]:
                    sides = ("", "_b") if geometries["body"][pair["i"]] == contact["a"] else ("_b", "")
                    for side, geometry in zip(sides, (int(pair["i"]), int(pair["j"]))):
                        if geometries["form"][geometry] == ROUND:
                            found.append((slot, side, geometry, float(contact[f"radius{side}"]), contact[f"point{side}"].copy()))
        return found

    def _put_added(self, one: TouchingModel) -> None:
        """Round shapes of a model: balls stay at the same part of an axis."""
        contacts, before, after = self.section.scene.contacts, self.own.pairs.shapes.geometries, one.pairs.shapes.geometries
        for slot, side, geometry, radius, point in self.added:
            old, new = before[geometry], after[geometry]
            part = (point - old["position"]) @ old["axis"] / old["half"] if old["half"] > 0.0 else 0.0
            contacts[f"radius{side}"][slot] = radius + new["radius"] - old["radius"]
            contacts[f"point{side}"][slot] = point + new["position"] - old["position"] + part * (new["half"] * new["axis"] - old["half"] * old["axis"])

    def _friction(self, one: TouchingModel) -> np.ndarray:
        """(nodes,) coefficients of friction of a model."""
        scene, standing = self.section.scene, self.section.standing
        found = np.zeros(len(scene.contacts))
        found[: len(standing)] = one.grounds["friction"][standing]
        for pair in scene.shapes.pairs:
            law = one.pairs._law(int(pair["i"]), int(pair["j"]))
            found[int(pair["first"]) : int(pair["first"]) + int(pair["slots"])] = law.friction  # type: ignore[union-attr]
        return np.concatenate([found[self.contacts], one.limits["friction"]])

    def _laws(self) -> np.ndarray:
        """Tangents of the coefficients of friction."""
        total = np.zeros(len(self.contacts) + len(self.section.scene.limits))
        for (_, weight), one in zip(self.offsets, self.order):
            total += weight / self.step * self._friction(one)
        return total

    def hold(self, bodies: np.ndarray) -> None:
        """The step as it ends is the one that gaps are compared with."""
        contacts, limits = self.section.scene.contacts[self.contacts], self.section.scene.limits
        turned = np.einsum("kji,kj->ki", bodies["Rn"][contacts["a"]].reshape(-1, 3, 3), contacts["n"])
        lever = turned - np.einsum("ki,ki,kj->kj", turned, contacts["axis"], contacts["axis"])
        moving = (contacts["kind"] == PLANE) & (contacts["support"] == BALL_SUPPORT) & np.any(contacts["axis"], axis=1)
        H = np.concatenate([np.stack([nodes["Ha"], nodes["Hb"]], axis=1) for nodes in (contacts, limits)])
        self.held = Held(H, np.where(moving[:, None], lever, 0.0), contacts["point"].copy(), bodies["xn"].copy(), bodies["Rn"].copy())

    def read(self, scene: Any, bodies: np.ndarray, dt: float, beside: bool) -> np.ndarray:
        """(nodes, 3) what nodes look at. ``beside``: of another state, not of another model."""
        values = np.zeros((len(self.contacts) + len(scene.limits), 3))
        read_nodes(scene, dt, values)
        if beside:
            gaps_beside(scene, bodies, self.held, dt, values)
        return values

    def put(self, offset: float, tangent: np.ndarray, model: Model) -> Any:
        """The scene with the numbers of a model and impulses moved along their tangents."""
        one, scene, standing = self.models.get(id(model), self.own), self.section.scene, self.section.standing
        contacts, limits = scene.contacts, scene.limits
        for name in FEATURES:
            if name != "friction":
                contacts[name][: len(standing)] = one.grounds[name][standing]
        for pair in scene.shapes.pairs:
            law = one.pairs._law(int(pair["i"]), int(pair["j"]))
            contacts["restitution"][int(pair["first"]) : int(pair["first"]) + int(pair["slots"])] = law.restitution  # type: ignore[union-attr]
        self._put_added(one)
        limits["end"], limits["restitution"] = one.limits["end"], one.limits["restitution"]
        count = len(self.contacts)
        contacts["gamma"][self.contacts] += offset * tangent[:count, 0]
        contacts["beta"][self.contacts] += offset * tangent[:count, 1:]
        limits["gamma"] += offset * tangent[count:, :2]
        limits["beta"] += offset * tangent[count:, 2]
        return scene._replace(shapes=one.pairs.shapes._replace(pairs=scene.shapes.pairs))
