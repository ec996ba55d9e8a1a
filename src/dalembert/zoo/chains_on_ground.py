"""Chains that fall on the ground: a snake of rods (Contact IV.A) and a chain of spheres (Variational 5.2)."""
from __future__ import annotations

import numpy as np

from dalembert.mechanism.joints import Spherical
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.shapes import Sphere
from dalembert.zoo.links import at_least_one, rod_between, sized


@sized
def snake(links: int = 10, *, mass: float = 1.0, length: float = 1.0, radius: float = 0.05, height: float = 0.2, bend: float = 0.1, friction: float = 0.2) -> Mechanism:
    """``links`` rods on ball joints, in a zigzag that turns by ``bend`` (rad) at each joint, ``height`` (m) above the ground.

    Each rod has a contact point at its far end, the first one also at its near end. Bodies "link 1", ...
    """
    mechanism = Mechanism("snake")
    mechanism.ground(friction=friction)
    start = np.array([0.0, 0.0, height])
    before = None
    for k in range(1, at_least_one(links, "snake: links") + 1):
        turn = 0.5 * bend * (-1.0) ** k
        end = start + length * np.array([np.cos(turn), np.sin(turn), 0.0])
        body = rod_between(mechanism, f"link {k}", start, end, mass=mass, radius=radius)
        if before is None:
            mechanism.contact_point(body, point=(-0.5 * length, 0.0, 0.0))
        else:
            mechanism.joint(f"joint {k - 1}", Spherical(), before, body, at=start)
        mechanism.contact_point(body, point=(0.5 * length, 0.0, 0.0))
        start, before = end, body
    return mechanism


@sized
def sphere_chain(spheres: int = 10, *, mass: float = 1.0, radius: float = 0.25, height: float = 0.5, slope: float = 0.1, friction: float = 0.5) -> Mechanism:
    """``spheres`` in a row, each on a ball joint where it touches the next, rising by ``slope`` (rad) from ``height`` (m).

    Bodies "sphere 1", ...; spheres that no joint connects collide with one another.
    """
    mechanism = Mechanism("sphere chain")
    mechanism.ground(friction=friction)
    step = 2.0 * radius * np.array([np.cos(slope), 0.0, np.sin(slope)])
    start = np.array([0.0, 0.0, height + radius])
    before = None
    for k in range(at_least_one(spheres, "sphere_chain: spheres")):
        body = mechanism.body(f"sphere {k + 1}", Sphere(radius=radius, mass=mass), position=start + k * step, collide=True)
        if before is not None:
            mechanism.joint(f"joint {k}", Spherical(), before, body, at=start + (k - 0.5) * step)
        before = body
    return mechanism
