"""From a mechanism to the records of its contacts with grounds and terrain, and of its limits."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial.transform import Rotation

from dalembert.contact.features import Geometry, _balls, ball_features, geometries, support_features
from dalembert.contact.laws import write_law
from dalembert.contact.records import CONTACT, ELLIPSOID_SUPPORT, FIELD, LIMIT, PLANE
from dalembert.errors import ModelError
from dalembert.mechanism.bearings import GEOMETRIES
from dalembert.mechanism.environment import ContactPoint, Ground, HeightField, PairLaw
from dalembert.mechanism.joints import Joint
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.touching import Surface, Touching
from dalembert.model.assembly import direction_inertias
from dalembert.model.placement import Placement

#: contacts beyond which only near ones become part of a step: with fewer, looking for them would cost more than it saves
CROWD = 128
#: distance (m) from a ground that always counts as near
MARGIN = 1e-3
#: rooms of a body within which a ground is listed: more than one, so that lists last longer
AHEAD = 2.0

#: a limit's impulses are measured by the inertia of its two bodies, or by this part of what their joints make of it, if that is more
LEAST = 0.1


def label_index(labels: list[str], a: str, b: str) -> int:
    """Index of a pair's label, which is added when it is new."""
    label = f"{a} / {b}"
    if label not in labels:
        labels.append(label)
    return labels.index(label)


def contact_weights(mechanism: Mechanism) -> np.ndarray:
    """(n,) the mass (kg) by which the impulses of a body's contacts are measured.

    A contact moves its body alone in some directions, and all that is joined to it in others: the geometric mean of the two.
    """
    mass = np.array([b.mass for b in mechanism.bodies])
    ends = np.array([(j.parent.index, j.child.index) for j in mechanism.joints if j.parent.index >= 0 and j.type.holds], dtype=int).reshape(-1, 2)
    graph = coo_matrix((np.ones(len(ends)), ends.T), shape=(len(mass), len(mass)))
    group = connected_components(graph, directed=False)[1]
    return np.sqrt(mass * np.bincount(group, weights=mass)[group])


class GroundList:
    """All contacts with grounds and terrain, of single points and of colliding shapes.

    Where there are many, only those that are near have to be part of a step; a list of them is valid while no body leaves
    its room.
    """

    def __init__(self, mechanism: Mechanism, touching: Touching, edges: int, labels: list[str]) -> None:
        self.mechanism, self.edges, self.labels = mechanism, edges, labels
        self.world, self.weights = len(mechanism.bodies), contact_weights(mechanism)
        self._found: list[np.ndarray] = []
        #: whose feature each contact is: a contact point or a geometry, the number of the feature, and the ground or terrain
        self.sources: list[tuple[ContactPoint | Geometry, int, Ground | HeightField]] = []
        self._parts: dict[int, int] = {}  # how many points each pair has so far
        around: list[Ground | HeightField] = [*mechanism.grounds, *mechanism.terrains]
        if mechanism.contact_points and not around:
            body = mechanism.contact_points[0].body.name
            raise ModelError(f"{mechanism.name!r} has no ground that the contact point of body {body!r} could touch; add one with ground()")
        for element, other in zip(around, touching.around):
            for point in mechanism.contact_points:
                surface = Surface(point.body.name, point.body.index, (point.body.name,))
                law = touching.law(surface, other)
                if law is not None:
                    if point.friction is not None:
                        law = replace(law, friction=point.friction, friction_across=None, friction_direction=None)
                    if point.restitution is not None:
                        law = replace(law, restitution=point.restitution)
                    self._add(_balls([point.point], point.radius), point, surface, element, law, other)
            for surface in touching.moving:
                law = touching.law(surface, other)
                if law is not None:
                    for geometry in geometries(surface):
                        features = support_features(geometry) if isinstance(element, Ground) else ball_features(geometry)
                        self._add(features, geometry, surface, element, law, other)
        self.contacts = np.concatenate(self._found) if self._found else np.zeros(0, CONTACT)
        self.reach = np.where(self.contacts["support"] == ELLIPSOID_SUPPORT, self.contacts["semi"].max(axis=1, initial=0.0), self.contacts["radius"])
        self.crowded = len(self.contacts) > CROWD

    def _add(
        self, features: np.ndarray, source: ContactPoint | Geometry, surface: Surface, element: Ground | HeightField, law: PairLaw, other: Surface,
    ) -> None:
        body = surface.body
        self.sources += [(source, number, element) for number in range(len(features))]
        if isinstance(element, Ground):
            features["kind"], features["normal"], features["offset"], features["belt"] = PLANE, element.normal, element.offset, element.velocity
        else:
            features["kind"] = FIELD
        owner = label_index(self.labels, self.mechanism.bodies[body].name, element.name)
        features["a"], features["b"], features["used"], features["owner"] = body, self.world, 1, owner
        features["part"] = self._parts.get(owner, 0) + np.arange(len(features))
        self._parts[owner] = self._parts.get(owner, 0) + len(features)
        write_law(features, law, surface, other, self.world)
        features["weight"] = self.weights[body]
        features["edges"] = np.where(features["friction"] > 0.0, self.edges, 0)
        self._found.append(features)

    @property
    def size(self) -> np.ndarray:
        """(n,) radius (m) about each body's centre of mass that holds what may touch a ground; zero where all are listed."""
        size = np.zeros(self.world)
        if self.crowded:
            np.maximum.at(size, self.contacts["a"], np.linalg.norm(self.contacts["point"], axis=1) + self.reach)
        return size

    def near(self, places: np.ndarray) -> np.ndarray:
        """Indices of the contacts that come near their ground while no body leaves its room; those with terrain always do.

        ``places`` (n, 8): poses and rooms (m).
        """
        contacts, body = self.contacts, self.contacts["a"]
        if not self.crowded:
            return np.arange(len(contacts))
        turns = Rotation.from_quat(places[:, 3:7], scalar_first=True).as_matrix()[body]
        points = places[body, :3] + np.einsum("nij,nj->ni", turns, contacts["point"])
        height = np.einsum("ni,ni->n", points, contacts["normal"]) - contacts["offset"] - self.reach
        return np.flatnonzero((contacts["kind"] == FIELD) | (height <= AHEAD * places[body, 7] + MARGIN))


def build_limits(placement: Placement) -> np.ndarray:
    """Records of all joint directions with limits or dry friction, weighed at the placement's pose; those of bearings come last."""
    mechanism = placement.mechanism
    bounded = [
        (element, i) for element in mechanism.joints for i, ends in enumerate(element.type.limits)
        if np.isfinite(ends).any() or element.type.friction[i] > 0.0  # type: ignore[index]
    ]
    borne = [(element, i) for element in mechanism.joints if element.type.bearing is not None for i in range(element.type.freedom)]
    limits = np.zeros(len(bounded) + len(borne), LIMIT)
    for limit, (element, i) in zip(limits, bounded + borne):
        joint = placement.model.joints[element.index]
        limit["joint"], limit["direction"], limit["a"], limit["b"] = element.index, i, joint["parent"], joint["child"]
    for limit, (element, i) in zip(limits, bounded):
        kind = element.type
        limit["end"], limit["restitution"], limit["friction"] = kind.limits[i], kind.restitution, kind.friction[i]  # type: ignore[index]
    for limit, (element, i) in zip(limits[len(bounded) :], borne):
        limit["end"] = -np.inf, np.inf
        _write_bearing(limit, element.type, i)
    if len(limits):
        alone, joined = direction_inertias(placement, [(element.index, i) for element, i in bounded + borne])
        limits["weight"] = np.maximum(alone, LEAST * joined)
    return limits


def _write_bearing(limit: np.void, kind: Joint, direction: int) -> None:
    """The geometry of a joint's bearing for one of its directions: the two pins of a universal joint are apart, others share."""
    bearing, (name, axis) = kind.bearing, kind.directions[direction]
    assert bearing is not None
    assert bearing.thrust is not None
    limit["bears"] = 1 + GEOMETRIES.index(kind.bears)
    limit["bearing"] = bearing.friction, bearing.radius, 1.0 / bearing.length, bearing.thrust
    pins = name in ("first", "second")
    limit["share"] = 1 if pins else kind.freedom
    limit["pin"] = axis if pins else "xyz".index((kind.turns or kind.slides)[0]) if kind.bears == "journal" else 2
