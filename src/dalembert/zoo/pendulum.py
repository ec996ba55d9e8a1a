"""Chains of rods that swing from the world: the yardstick for trees."""
from __future__ import annotations

from numpy.typing import ArrayLike

from dalembert.checks import choices
from dalembert.errors import ModelError
from dalembert.mechanism.joints import Joint, Revolute, Spherical
from dalembert.mechanism.mechanism import Mechanism
from dalembert.zoo.links import at_least_one, rod_between, sized

JOINTS: dict[str, Joint] = {"revolute": Revolute(axis="y"), "spherical": Spherical()}


@sized
def pendulum(
    n: int = 1,
    joint: str = "revolute",
    *,
    length: float = 1.0,
    mass: float = 1.0,
    radius: float = 0.05,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
) -> Mechanism:
    """A chain of ``n`` rods, horizontal along +x and at rest, its first end pinned to the world at the origin.

    ``joint``: "revolute" (axes y, a planar chain) or "spherical"; ``length`` and ``radius`` of a rod in m, ``mass`` in kg.
    Bodies "link 1", ..., joints "joint 1", ...; a revolute angle is positive downwards. The links of 1 m and 1 kg are
    those of Variational, section 5 (Figs. 8 and 11).
    """
    if joint not in JOINTS:
        raise ModelError(f"pendulum: joint must be one of {', '.join(map(repr, JOINTS))}, got {joint!r}; {choices(joint, JOINTS)}")
    n = at_least_one(n, "pendulum: n")
    chain = Mechanism("pendulum" if n == 1 else f"pendulum of {n} links", gravity=gravity)
    before = chain.world
    for k in range(n):
        link = rod_between(chain, f"link {k + 1}", (k * length, 0, 0), ((k + 1) * length, 0, 0), mass=mass, radius=radius)
        chain.joint(f"joint {k + 1}", JOINTS[joint], before, link, at=(k * length, 0, 0))
        before = link
    return chain


@sized
def double_pendulum(
    *, length: float = 1.0, mass: float = 1.0, radius: float = 0.05, gravity: ArrayLike = (0.0, 0.0, -9.81)
) -> Mechanism:
    """Two equal rods from horizontal (Variational, Fig. 7b): the smallest chaotic mechanism. Arguments as for ``pendulum``."""
    chain = pendulum(2, length=length, mass=mass, radius=radius, gravity=gravity)
    chain.name = "double pendulum"
    return chain
