"""A chain of links that closes a loop with the world: what a single loop costs (Linear-time, figure 5b)."""
from __future__ import annotations

from math import pi

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import ModelError
from dalembert.mechanism.mechanism import Mechanism
from dalembert.zoo.links import at_least_one, rod_between, sized
from dalembert.zoo.pendulum import JOINTS


@sized
def n_link_loop(
    n: int = 5, joint: str = "revolute", *, length: float = 1.0, mass: float = 1.0, radius: float = 0.05, gravity: ArrayLike = (0.0, 0.0, -9.81),
) -> Mechanism:
    """``n`` rods, from three on, that are the sides of a regular polygon in the x-z plane but for the first, which is the world's.

    The pivots lie at the origin and ``length`` (m) below it, the chain lies to the side of +x and falls from rest. ``joint``: "revolute" (axes y; three
    redundant rows) or "spherical". Bodies "link 1", ..., joints "joint 1", ... and the one that closes the loop, of number n + 1.
    """
    if joint not in JOINTS:
        raise ModelError(f"n_link_loop: joint must be one of {', '.join(map(repr, JOINTS))}, got {joint!r}")
    if at_least_one(n, "n_link_loop: n") < 3:
        raise ModelError(f"n_link_loop: {n} links and the world are rigid; a loop that moves has 3 or more")
    turns = 2.0 * pi / (n + 1) * np.arange(n)
    sides = length * np.stack([np.sin(turns + 2.0 * pi / (n + 1)), np.zeros(n), np.cos(turns + 2.0 * pi / (n + 1))], axis=1)
    corners = np.concatenate([np.zeros((1, 3)), np.cumsum(sides, axis=0)])
    loop = Mechanism(f"loop of {n} links", gravity=gravity)
    before = loop.world
    for k in range(n):
        link = rod_between(loop, f"link {k + 1}", corners[k], corners[k + 1], mass=mass, radius=radius)
        loop.joint(f"joint {k + 1}", JOINTS[joint], before, link, at=corners[k])
        before = link
    loop.joint(f"joint {n + 1}", JOINTS[joint], loop.world, before, at=corners[n])
    return loop
