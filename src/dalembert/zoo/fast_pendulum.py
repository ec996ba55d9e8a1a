"""The fast pendulum: without gravity it turns steadily, however far that is in a step."""
from __future__ import annotations

from dalembert.mechanism.joints import Revolute
from dalembert.mechanism.mechanism import Mechanism
from dalembert.zoo.links import rod_between, sized


@sized
def fast_pendulum(rate: float = 50.0, *, length: float = 1.0, mass: float = 1.0, radius: float = 0.05, pinned: bool = True) -> Mechanism:
    """A rod along +x that turns freely about y at ``rate`` (rad/s) around the origin, without gravity (Quaternion, Fig. 6).

    ``length`` and ``radius`` in m, ``mass`` in kg. Body "rod", joint "hinge", whose angle is rate * time exactly. Without
    ``pinned`` the same rod starts with the same velocities but flies off, turning steadily about its centre of mass.
    """
    mechanism = Mechanism("fast pendulum", gravity=(0.0, 0.0, 0.0))
    rod = rod_between(mechanism, "rod", (0.0, 0.0, 0.0), (length, 0.0, 0.0), mass=mass, radius=radius)
    if pinned:
        mechanism.joint("hinge", Revolute(axis="y"), mechanism.world, rod, at=(0.0, 0.0, 0.0))
    mechanism.start("rod", linear=(0.0, 0.0, -0.5 * length * rate), angular=(0.0, rate, 0.0))
    return mechanism
