"""From a mechanism to the records of its contacts with grounds and terrain, and of its limits."""
from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.contact.features import _balls, ball_features, geometries, outer_radius, support_features
from dalembert.contact.records import CONTACT, FIELD, LIMIT, PLANE
from dalembert.errors import ModelError
from dalembert.mechanism.environment import Ground, HeightField, PairLaw
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.records import Records
from dalembert.mechanism.touching import Surface, Touching

#: contacts beyond which only near ones become part of a step: with fewer, looking for them would cost more than it saves
CROWD = 64
#: distance (m) from a ground that always counts as near
MARGIN = 1e-3


def label_index(labels: list[str], a: str, b: str) -> int:
    """Index of a pair's label, which is added when it is new."""
    label = f"{a} / {b}"
    if label not in labels:
        labels.append(label)
    return labels.index(label)


class GroundList:
    """All contacts with grounds and terrain, of single points and of colliding shapes, in groups: one per shape and ground.

    Where there are many, only those that are near have to be part of a step; a list of them is valid while no body leaves
    its room.
    """

    def __init__(self, mechanism: Mechanism, touching: Touching, records: Records, edges: int, labels: list[str]) -> None:
        self.mechanism, self.edges, self.labels = mechanism, edges, labels
        self.world = len(records.bodies) - 1
        self.groups: list[np.ndarray] = []
        self._parts: dict[int, int] = {}  # how many points each pair has so far
        self._planes: list[tuple[float, ...]] = []  # normal and offset; no normal for terrain, which is always near
        self._balls: list[tuple[float, ...]] = []  # centre (body frame) and radius that hold the group's shape
        around: list[Ground | HeightField] = [*mechanism.grounds, *mechanism.terrains]
        if mechanism.contact_points and not around:
            body = mechanism.contact_points[0].body.name
            raise ModelError(f"{mechanism.name!r} has no ground that the contact point of body {body!r} could touch; add one with ground()")
        for element, other in zip(around, touching.around):
            for point in mechanism.contact_points:
                surface = Surface(point.body.name, point.body.index, (point.body.name,))
                law = touching.law(surface, other)
                if law is not None:
                    law = PairLaw(
                        law.friction if point.friction is None else point.friction,
                        law.restitution if point.restitution is None else point.restitution, True,
                    )
                    self._add(_balls([point.point], point.radius), surface.body, element, law, (*point.point, point.radius))
            for surface in touching.moving:
                law = touching.law(surface, other)
                for geometry in geometries(surface) if law is not None else ():
                    features = support_features(geometry) if isinstance(element, Ground) else ball_features(geometry)
                    if len(features):
                        self._add(features, surface.body, element, law, (*geometry.position, outer_radius(geometry.shape)))
        self.planes, self.balls = np.array(self._planes).reshape(-1, 4), np.array(self._balls).reshape(-1, 4)
        self.bodies = np.array([int(g["a"][0]) for g in self.groups], dtype=np.int64)
        self.crowded = sum(len(g) for g in self.groups) > CROWD

    def _add(self, features: np.ndarray, body: int, element: Ground | HeightField, law: PairLaw | None, ball: tuple[float, ...]) -> None:
        assert law is not None
        if isinstance(element, Ground):
            features["kind"], features["normal"], features["offset"] = PLANE, element.normal, element.offset
        else:
            features["kind"] = FIELD
        owner = label_index(self.labels, self.mechanism.bodies[body].name, element.name)
        features["a"], features["b"], features["used"], features["owner"] = body, self.world, 1, owner
        features["part"] = self._parts.get(owner, 0) + np.arange(len(features))
        self._parts[owner] = int(features["part"][-1]) + 1
        features["friction"], features["restitution"], features["weight"] = law.friction, law.restitution, self.mechanism.bodies[body].mass
        features["edges"] = self.edges if law.friction > 0.0 else 0
        self.groups.append(features)
        self._planes.append((*element.normal, element.offset) if isinstance(element, Ground) else (0.0, 0.0, 0.0, 0.0))
        self._balls.append(ball)

    @property
    def size(self) -> np.ndarray:
        """(n,) radius (m) about each body's centre of mass that holds what may touch a ground; zero where all groups are listed."""
        size = np.zeros(self.world)
        if self.crowded:
            np.maximum.at(size, self.bodies, np.linalg.norm(self.balls[:, :3], axis=1) + self.balls[:, 3])
        return size

    def near(self, bodies: np.ndarray, places: np.ndarray) -> list[int]:
        """The groups that come near their ground while no body leaves its room."""
        if not self.crowded:
            return list(range(len(self.groups)))
        R = Rotation.from_quat(bodies["q"][:-1], scalar_first=True).as_matrix()[self.bodies]
        centres = bodies["x"][self.bodies] + np.einsum("nij,nj->ni", R, self.balls[:, :3])
        height = np.einsum("ni,ni->n", centres, self.planes[:, :3]) - self.planes[:, 3] - self.balls[:, 3]
        field = ~self.planes[:, :3].any(axis=1)
        return np.flatnonzero(field | (height <= places[self.bodies, 7] + MARGIN)).tolist()

    def build(self, groups: list[int]) -> np.ndarray:
        """Contact records of a list of groups, one after the other."""
        return np.concatenate([self.groups[k] for k in groups]) if groups else np.zeros(0, CONTACT)


def build_limits(mechanism: Mechanism, records: Records) -> np.ndarray:
    """Records of all joint directions with limits or dry friction. Needs the joints' rows at a pose."""
    from dalembert.formulations.maximal.assembly import direction_rows

    found = []
    for element in mechanism.joints:
        kind = element.type
        if not kind.bounded:
            continue
        joint = records.joints[element.index]
        gradients = np.zeros((kind.freedom, 12))
        direction_rows(records, element.index, gradients)
        for i, (lower, upper) in enumerate(kind.limits):
            friction = float(kind.friction[i])  # type: ignore[index, arg-type]
            if not (np.isfinite(lower) or np.isfinite(upper) or friction > 0.0):
                continue
            record = np.zeros(1, LIMIT)
            record["joint"], record["direction"], record["a"], record["b"] = element.index, i, joint["parent"], joint["child"]
            record["end"] = lower, upper
            record["restitution"], record["friction"] = kind.restitution, friction
            softness = 0.0
            for body, row in ((element.parent, gradients[i, :6]), (element.child, gradients[i, 6:])):
                if body.index >= 0:
                    softness += row[:3] @ row[:3] / body.mass + row[3:] @ np.linalg.solve(body.inertia, row[3:])
            record["weight"] = 1.0 / softness
            found.append(record)
    return np.concatenate(found) if found else np.zeros(0, LIMIT)
