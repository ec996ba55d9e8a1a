"""A door on two hinges: five of the ten rows are redundant; and one on a single hinge with friction."""
from __future__ import annotations

from dataclasses import replace

from dalembert.checks import choices
from dalembert.errors import ModelError
from dalembert.mechanism.bearings import Bearing
from dalembert.mechanism.joints import Joint, Revolute, Spherical
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.shapes import Box
from dalembert.zoo.links import sized

HINGES: dict[str, Joint] = {"revolute": Revolute(axis="z"), "spherical": Spherical()}
HINGE_BEARING = Bearing(friction=0.2, radius=0.01, length=1.5, thrust=0.008)


@sized
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
        raise ModelError(f"door: hinge must be one of {', '.join(map(repr, HINGES))}, got {hinge!r}; {choices(hinge, HINGES)}")
    mechanism = Mechanism("door")
    shape = Box(size=(width, thickness, height), mass=mass)
    leaf = mechanism.body("door", shape, position=(0.5 * width, 0.0, 0.5 * height))
    for name, z in zip(("lower", "upper"), hinge_heights):
        mechanism.joint(name, HINGES[hinge], mechanism.world, leaf, at=(0.0, 0.0, z))
    mechanism.start("door", linear=(0.0, 0.5 * width * rate, 0.0), angular=(0.0, 0.0, rate))
    return mechanism


@sized
def rubbing_door(
    *,
    width: float = 0.9,
    mass: float = 30.0,
    bearing: Bearing = HINGE_BEARING,
    rate: float = 0.2,
) -> Mechanism:
    """A door of ``width`` (m) and ``mass`` (kg) on one long hinge that carries its weight and its tilting moment, with friction.

    It turns with ``rate`` (rad/s) and stops when mu (r m g width / length + thrust m g) has taken its spin. Body "leaf", joint "hinge".
    """
    mechanism = Mechanism("rubbing door")
    mechanism.body("leaf", Box(size=(width, 0.04, 2.0), mass=mass), position=(0.5 * width, 0.0, 1.0))
    mechanism.joint("hinge", replace(HINGES["revolute"], bearing=bearing), mechanism.world, "leaf", at=(0.0, 0.0, 1.0))
    mechanism.start("hinge", rate=rate)
    return mechanism
