"""A door on two hinges: five of the ten rows are redundant."""
from __future__ import annotations

from dalembert.errors import ModelError
from dalembert.mechanism.joints import Joint, Revolute, Spherical
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.shapes import Box

HINGES: dict[str, Joint] = {"revolute": Revolute(axis="z"), "spherical": Spherical()}


def door(
    hinge: str = "revolute",
    *,
    height: float = 2.0,
    width: float = 0.9,
    thickness: float = 0.04,
    mass: float = 30.0,
    hinge_heights: tuple[float, float] = (0.25, 1.75),
    rate: float = 0.0,
) -> Mechanism:
    """A door in the x-z plane that turns about the z axis, with ``rate`` (rad/s) at the start.

    ``height``, ``width``, ``thickness`` and ``hinge_heights`` in m, ``mass`` in kg; ``hinge``: "revolute" or
    "spherical". Body "door", joints "lower" and "upper". How the hinges share the load is up to the least norm.
    """
    if hinge not in HINGES:
        raise ModelError(f"door: hinge must be one of {', '.join(map(repr, HINGES))}, got {hinge!r}")
    mechanism = Mechanism("door")
    shape = Box(size=(width, thickness, height), mass=mass)
    leaf = mechanism.body("door", shape, position=(0.5 * width, 0.0, 0.5 * height))
    for name, z in zip(("lower", "upper"), hinge_heights):
        mechanism.joint(name, HINGES[hinge], mechanism.world, leaf, at=(0.0, 0.0, z))
    mechanism.start("door", linear=(0.0, 0.5 * width * rate, 0.0), angular=(0.0, 0.0, rate))
    return mechanism
