"""Links that hang on several joints in a row: light bodies between the joints, whose mass and inertia change no motion.

A hinge leaves points on its axis, and inertia alike about its axis, d (1 - a a^T), the same for both bodies that it joins.
So the light body next to a link takes such a share of the link's mass and inertia across the joint between them, and the one
next to the parent takes the same from the parent: with two hinges it has inertia about every axis. Where nothing can be taken
it gets a tiny mass, and about an axis of its own 1e-8 of the link's inertia.
"""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.io.robot import Link, LinkJoint, Robot

#: part of a link's mass and of its smallest moment of inertia that its light bodies may take
SHARE, MOMENT = 1e-3, 0.05
#: inertia about every axis that a light body has in any case, relative to the link's largest moment
TINY = 1e-8
#: mass of a light body that can take none, relative to its link's: with joints that only turn, and with slides, which need more to be solved well
TINY_MASS, TINY_SLIDE = 1e-10, 1e-6


@dataclass
class Light:
    """A body between two joints of a link: ``inertia`` (3, 3) in the link's axes, ``position`` in the world."""

    mass: float
    inertia: np.ndarray
    position: np.ndarray
    #: links that its mass was taken from, with the share of each
    givers: dict[str, float]


def split(links: dict[int, Link], robot: Robot) -> dict[int, list[Light]]:
    """The light bodies of every link with several joints; what they take is gone from the links afterwards."""
    takers = Counter(link.parent for link in links.values() if len(link.joints) > 1 and link.parent in links)
    part = 1.0 / (1 + max(takers.values(), default=0))
    return {i: _lights(link, links.get(link.parent), part, robot) for i, link in links.items() if len(link.joints) > 1}


def _lights(link: Link, parent: Link | None, part: float, robot: Robot) -> list[Light]:
    chain = link.joints
    moments = np.linalg.eigvalsh(link.inertia)
    tiny = min(TINY * float(moments[-1]), MOMENT * float(moments[0])) * np.eye(3)
    lights = [Light(0.0, tiny.copy(), after.anchor, {}) for after in chain[1:]]
    link.inertia = link.inertia - len(lights) * tiny
    first, last = lights[0], lights[-1]
    last.inertia = last.inertia + _take_inertia(link, chain[-1], link.rotation, part)
    first.inertia = first.inertia + (
        _take_inertia(parent, chain[0], link.rotation, part) if parent is not None else MOMENT * float(moments[0]) * _alike(chain[0], link.rotation))
    for k, light in enumerate(lights):
        point = chain[k + 1].anchor
        if all(joint.keeps(point) for joint in chain[k + 1 :]):
            _take_mass(light, link, point, part / len(lights))
        elif k == 0 and chain[0].keeps(chain[0].anchor) and parent is not None:
            _take_mass(light, parent, chain[0].anchor, part)
        elif k == 0 and chain[0].keeps(chain[0].anchor):
            light.mass, light.position = SHARE * link.mass, chain[0].anchor
        else:
            light.mass = (TINY_SLIDE if any(joint.kind in ("slide", "planar", "free") for joint in chain) else TINY_MASS) * link.mass
            robot.report.append(f"link {link.name!r}: a body of {light.mass:.3g} kg was added between its joints {chain[k].name!r} and {chain[k + 1].name!r}")
    return lights


def _alike(joint: LinkJoint, rotation: Rotation) -> np.ndarray:
    """Unit inertia, in a link's axes, that turns with both bodies of a joint alike."""
    if joint.kind == "slide":
        return np.eye(3)
    axis = rotation.inv().apply(joint.axis)
    return np.eye(3) - np.outer(axis, axis) if joint.kind == "hinge" else np.zeros((3, 3))


def _take_inertia(giver: Link, joint: LinkJoint, rotation: Rotation, part: float) -> np.ndarray:
    """Inertia for a light body with the axes ``rotation``, taken from a link across a joint."""
    amount = part * MOMENT * float(np.linalg.eigvalsh(giver.inertia)[0])
    giver.inertia = giver.inertia - amount * _alike(joint, giver.rotation)
    return amount * _alike(joint, rotation)


def _take_mass(light: Light, giver: Link, point: np.ndarray, part: float) -> None:
    """A point mass that both bodies carry alike, taken from a link."""
    reach = float(np.linalg.norm(point - giver.center)) ** 2
    share = part * min(SHARE * giver.mass, MOMENT * float(np.linalg.eigvalsh(giver.inertia)[0]) / max(reach, 1e-12))
    left = giver.mass - share
    center = (giver.mass * giver.center - share * point) / left
    shift, arm = (giver.rotation.inv().apply(v) for v in (giver.center - center, point - center))
    giver.inertia = giver.inertia + moved(giver.mass, shift) - moved(share, arm)
    giver.mass, giver.center = left, center
    light.mass, light.position = light.mass + share, point
    light.givers[giver.name] = light.givers.get(giver.name, 0.0) + share


def moved(mass: float, offset: np.ndarray) -> np.ndarray:
    """Inertia of a point mass (Steiner)."""
    return mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
