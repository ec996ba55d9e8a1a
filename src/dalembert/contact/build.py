"""From a mechanism to the records of its contacts with the environment and of its limits."""
from __future__ import annotations

import numpy as np

from dalembert.contact.features import _balls, ball_features, geometries, support_features
from dalembert.contact.records import CONTACT, FIELD, LIMIT, PLANE
from dalembert.errors import ModelError
from dalembert.mechanism.environment import Ground, HeightField
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.records import Records
from dalembert.mechanism.touching import Surface, Touching


def label_index(labels: list[str], a: str, b: str) -> int:
    """Index of a pair's label, which is added when it is new."""
    label = f"{a} / {b}"
    if label not in labels:
        labels.append(label)
    return labels.index(label)


def build_contacts(mechanism: Mechanism, touching: Touching, records: Records, edges: int, labels: list[str]) -> np.ndarray:
    """Records of all contacts with grounds and terrain, of single points and of colliding shapes. ``labels`` grows."""
    world = len(records.bodies) - 1
    around: list[Ground | HeightField] = [*mechanism.grounds, *mechanism.terrains]
    if mechanism.contact_points and not around:
        body = mechanism.contact_points[0].body.name
        raise ModelError(f"{mechanism.name!r} has no ground that the contact point of body {body!r} could touch; add one with ground()")
    found: list[np.ndarray] = []
    counts: dict[int, int] = {}

    def add(features: np.ndarray, body: int, element: Ground | HeightField, friction: float, restitution: float) -> None:
        if isinstance(element, Ground):
            features["kind"], features["normal"], features["offset"] = PLANE, element.normal, element.offset
        else:
            features["kind"] = FIELD
        owner = label_index(labels, mechanism.bodies[body].name, element.name)
        features["a"], features["b"], features["used"], features["owner"] = body, world, 1, owner
        features["part"] = counts.get(owner, 0) + np.arange(len(features))
        counts[owner] = counts.get(owner, 0) + len(features)
        features["friction"], features["restitution"], features["weight"] = friction, restitution, mechanism.bodies[body].mass
        features["edges"] = edges if friction > 0.0 else 0
        found.append(features)

    for point in mechanism.contact_points:
        surface = Surface(point.body.name, point.body.index, (point.body.name,))
        for element, other in zip(around, touching.around):
            law = touching.law(surface, other)
            if law is not None:
                friction = law.friction if point.friction is None else point.friction
                restitution = law.restitution if point.restitution is None else point.restitution
                add(_balls([point.point], point.radius), surface.body, element, friction, restitution)
    for surface in touching.moving:
        for element, other in zip(around, touching.around):
            law = touching.law(surface, other)
            if law is None:
                continue
            for geometry in geometries(surface):
                features = support_features(geometry) if isinstance(element, Ground) else ball_features(geometry)
                if len(features):
                    add(features, surface.body, element, law.friction, law.restitution)
    return np.concatenate(found) if found else np.zeros(0, CONTACT)


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
