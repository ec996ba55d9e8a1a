"""A cart on a rail with one pole or more on it: the usual first problem of control."""
from __future__ import annotations

from dalembert.mechanism.joints import Prismatic, Revolute
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.shapes import Box, Rod
from dalembert.zoo.links import at_least_one, sized


@sized
def cart_pole(links: int = 1, *, length: float = 1.0, mass: float = 0.1, angle: float = 0.0, damping: float = 0.0) -> Mechanism:
    """A cart of 1 kg on a rail along x, with ``links`` poles of ``length`` (m) and ``mass`` (kg), one on top of the other.

    Bodies "cart", "pole", "pole 2", ...; joints "rail", which takes a force, "hinge", "hinge 2", ... with ``damping`` (N m s/rad). Angles
    are zero where the poles stand on end, and positive towards +x; it starts at rest with the first at ``angle`` (rad).
    """
    links = at_least_one(links, "cart_pole: links")
    mechanism = Mechanism("cart and pole" if links == 1 else f"cart and {links} poles")
    mechanism.body("cart", Box(size=(0.4, 0.3, 0.2), mass=1.0))
    mechanism.joint("rail", Prismatic(axis="x", drive="force"), mechanism.world, "cart")
    below = "cart"
    for k in range(links):
        number = f" {k + 1}" if k else ""
        mechanism.body(f"pole{number}", Rod.between((0.0, 0.0, k * length), (0.0, 0.0, (k + 1) * length), radius=0.02 * length, mass=mass))
        mechanism.joint(f"hinge{number}", Revolute(axis="y", damping=damping), below, f"pole{number}", at=(0.0, 0.0, k * length))
        below = f"pole{number}"
    mechanism.start("hinge", angle)
    return mechanism
