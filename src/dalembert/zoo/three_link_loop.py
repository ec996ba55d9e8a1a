"""Three links in a loop with the world: the smallest closed mechanism that moves."""
from __future__ import annotations

from math import cos, pi, sin, sqrt

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import ModelError
from dalembert.mechanism.joints import Revolute
from dalembert.mechanism.mechanism import Mechanism
from dalembert.zoo.links import rod_between, sized


@sized
def three_link_loop(
    *, angle: float = pi / 4, span: float = 1.0, radius: float = 0.05, gravity: ArrayLike = (0.0, 0.0, -9.81)
) -> Mechanism:
    """Links of 1, sqrt(2)/2 and 1 m, with as many kg, that close a loop through the world (Variational, Fig. 7a).

    The paper leaves the pivots open: here they lie ``span`` (m) apart on the x axis, so that the four-bar of the x-z
    plane passes no singular pose when it swings. The first link starts at rest, ``angle`` (rad) below the horizontal;
    ``radius`` of the rods in m. Bodies "link 1" to "link 3", joints "joint 1" to "joint 4", all with axes along y.
    """
    lengths = (1.0, 0.5 * sqrt(2.0), 1.0)
    first = np.array([lengths[0] * cos(angle), 0.0, -lengths[0] * sin(angle)])
    last = np.array([span, 0.0, 0.0])
    points = [np.zeros(3), first, _corner(first, last, lengths[1], lengths[2]), last]
    mechanism = Mechanism("three-link loop", gravity=gravity)
    chain = [mechanism.world]
    for k, length in enumerate(lengths):
        chain.append(rod_between(mechanism, f"link {k + 1}", points[k], points[k + 1], mass=length, radius=radius))
        mechanism.joint(f"joint {k + 1}", Revolute(axis="y"), chain[k], chain[k + 1], at=points[k])
    mechanism.joint("joint 4", Revolute(axis="y"), mechanism.world, chain[3], at=last)
    return mechanism


def _corner(a: np.ndarray, b: np.ndarray, from_a: float, from_b: float) -> np.ndarray:
    """The lower of the points of the x-z plane at given distances from two others."""
    line = b - a
    apart = float(np.linalg.norm(line))
    along = (apart**2 + from_a**2 - from_b**2) / (2.0 * apart)
    if abs(along) > from_a:
        raise ModelError(f"three_link_loop: links of {from_a:g} and {from_b:g} m cannot bridge {apart:g} m; choose another angle or span")
    across = np.array([line[2], 0.0, -line[0]]) / apart
    return a + along * line / apart + sqrt(from_a**2 - along**2) * across * (-1.0 if across[2] > 0.0 else 1.0)
