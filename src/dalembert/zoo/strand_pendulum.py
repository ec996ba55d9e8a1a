"""A pendulum that carries a strand of point masses and springs (RedMax 2.7)."""
from __future__ import annotations

from math import cos, sin

import numpy as np

from dalembert.mechanism.joints import Revolute
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.shapes import Box
from dalembert.zoo.links import sized


@sized
def strand_pendulum(
    *, length: float = 1.0, mass: float = 1.0, angle: float = 0.6, points: int = 7, strand_length: float = 0.6, strand_mass: float = 0.3,
    stiffness: float = 20.0, damping: float = 0.0, anchor: bool = False,
) -> Mechanism:
    """A rod that swings about y, released at ``angle`` (rad) with a strand that hangs straight down from its end.

    ``length`` (m) and ``mass`` (kg) of the rod; ``stiffness`` (N/m) and ``damping`` (N s/m) of the strand as a whole, which has
    ``points`` of which the first is on the rod; ``anchor``: its last point is on the world. Body "rod", joint "pivot", strand "tail".
    """
    mechanism = Mechanism("strand on a pendulum")
    along = np.array([-sin(angle), 0.0, -cos(angle)])
    turn = (cos(0.5 * angle), 0.0, sin(0.5 * angle), 0.0)
    rod = mechanism.body("rod", Box(size=(0.04 * length, 0.04 * length, length), mass=mass), position=0.5 * length * along, orientation=turn)
    mechanism.joint("pivot", Revolute(axis="y"), mechanism.world, rod)
    places = length * along + np.linspace(0.0, strand_length, points)[:, None] * np.array([0.0, 0.0, -1.0])
    held = {0: rod, -1: mechanism.world} if anchor else {0: rod}
    mechanism.strand("tail", places, mass=strand_mass, stiffness=stiffness, damping=damping, attach=held)
    return mechanism
