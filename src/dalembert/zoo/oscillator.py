"""A mass on a spring along a line, with or without a damper."""
from __future__ import annotations

from dalembert.mechanism.joints import Prismatic
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.shapes import Box
from dalembert.zoo.links import sized


@sized
def mass_spring(
    *, mass: float = 2.0, stiffness: float = 50.0, damping: float = 0.0, displacement: float = 0.1, rate: float = 0.0
) -> Mechanism:
    """A box on a slide along x, without gravity: m x'' + c x' + k x = 0.

    ``mass`` in kg, ``stiffness`` in N/m, ``damping`` in N s/m, released at ``displacement`` (m) with ``rate`` (m/s).
    Body "mass", joint "slide".
    """
    mechanism = Mechanism("mass on a spring", gravity=(0.0, 0.0, 0.0))
    box = mechanism.body("mass", Box(size=(0.1, 0.1, 0.1), mass=mass))
    mechanism.joint("slide", Prismatic(axis="x", stiffness=stiffness, damping=damping), mechanism.world, box)
    mechanism.start("slide", displacement, rate=rate)
    return mechanism


@sized
def damped_oscillator(*, mass: float = 2.0, stiffness: float = 50.0, damping: float = 3.0, displacement: float = 0.1) -> Mechanism:
    """``mass_spring`` with a damper that leaves it underdamped (15 % of critical)."""
    return mass_spring(mass=mass, stiffness=stiffness, damping=damping, displacement=displacement)
