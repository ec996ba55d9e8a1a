"""Bricard's mechanism: a loop of six hinges that moves although counting says that it cannot."""
from __future__ import annotations

import numpy as np

from dalembert.mechanism.joints import Revolute
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.shapes import Box
from dalembert.zoo.links import sized, turn_from_x

POINTS = np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)], dtype=float)
AXES = ("y", "z", "x", "y", "z", "x")


@sized
def bricard(*, length: float = 1.0, width: float = 0.1, mass: float = 1.0, gravity: float = 9.81) -> Mechanism:
    """Five square rods and the ground along the edges of a cube (IFToMM benchmark A04), released at rest.

    ``length`` and ``width`` of a rod in m, ``mass`` in kg, ``gravity`` (m/s^2) along -y. The 30 rows of the six hinges
    have rank 29 on 30 velocities: one degree of freedom. Bodies "rod 1" to "rod 5", joints "hinge 1" to "hinge 6",
    from ground to ground.
    """
    mechanism = Mechanism("Bricard", gravity=(0.0, -gravity, 0.0))
    points = length * POINTS
    chain = [mechanism.world]
    for k in range(5):
        a, b = points[k], points[k + 1]
        shape = Box(size=(length, width, width), mass=mass)
        chain.append(mechanism.body(f"rod {k + 1}", shape, position=0.5 * (a + b), orientation=turn_from_x((b - a) / length)))
        mechanism.joint(f"hinge {k + 1}", Revolute(axis=AXES[k]), chain[k], chain[k + 1], at=a)
    mechanism.joint("hinge 6", Revolute(axis=AXES[5]), mechanism.world, chain[5], at=points[5])
    return mechanism
