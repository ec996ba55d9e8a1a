"""A cube dropped on the ground (Variational 5.1) and a cylinder with contact points on its base (Contact IV.A)."""
from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.shapes import Box, Cylinder
from dalembert.zoo.links import at_least_one, sized


@sized
def box_drop(
    *, size: float = 0.5, mass: float = 1.0, height: float = 0.4, orientation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
    friction: float = 0.5, restitution: float = 0.0,
) -> Mechanism:
    """A cube of ``size`` (m), its centre ``height`` + size/2 above the ground. Body "box"."""
    mechanism = Mechanism("box drop")
    mechanism.ground(friction=friction, restitution=restitution)
    mechanism.body("box", Box(size=(size,) * 3, mass=mass), position=(0.0, 0.0, height + 0.5 * size), orientation=orientation, collide=True)
    return mechanism


@sized
def contact_cylinder(
    contacts: int = 8, *, mass: float = 1.0, radius: float = 0.5, length: float = 0.1, height: float = 0.05, friction: float = 0.2,
) -> Mechanism:
    """An upright cylinder with ``contacts`` points on the rim of its base, dropped from ``height`` (m). Body "cylinder"."""
    mechanism = Mechanism("contact cylinder")
    mechanism.ground(friction=friction)
    mechanism.body("cylinder", Cylinder(radius=radius, length=length, mass=mass), position=(0.0, 0.0, height + 0.5 * length))
    for angle in 2.0 * np.pi * np.arange(at_least_one(contacts, "contact_cylinder: contacts")) / contacts:
        mechanism.contact_point("cylinder", point=(radius * np.cos(angle), radius * np.sin(angle), -0.5 * length))
    return mechanism
