"""Point masses on massless rods, exactly: a distance constraint through the centre of mass never turns its body."""
from __future__ import annotations

from math import cos, pi, sin, sqrt

from dalembert.checks import POSITIVE, checked, number
from dalembert.mechanism.joints import Distance
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.shapes import Sphere
from dalembert.zoo.links import sized


@sized
def simple_pendulum(*, angle: float = -0.5 * pi, rate: float = 0.0, length: float = 1.0, mass: float = 1.0, gravity: float = 9.81) -> Mechanism:
    """The point-mass pendulum of IFToMM benchmark A01 in the x-y plane, gravity along -y.

    ``angle`` (rad) from hanging, positive towards +x, and its ``rate`` (rad/s); ``length`` of the massless rod in m,
    ``mass`` in kg, ``gravity`` in m/s^2. The mass is the ball "bob", whose radius is of no effect, since the rod, the
    distance constraint "rod", pulls at its centre.
    """
    mechanism = Mechanism("simple pendulum", gravity=(0.0, -gravity, 0.0))
    radial = (sin(angle), -cos(angle), 0.0)
    _bob(mechanism, tuple(length * r for r in radial), mass, 0.05 * length)
    speed = length * rate
    mechanism.start("bob", linear=(speed * cos(angle), speed * sin(angle), 0.0))
    return mechanism


@checked(angle=number("lie between 0 and pi/2", above=0.0, most=0.5 * pi - 1e-9), length=POSITIVE, mass=POSITIVE, gravity=POSITIVE)
def conical_pendulum(*, angle: float = pi / 6, length: float = 1.0, mass: float = 1.0, gravity: float = 9.81) -> Mechanism:
    """A point mass that circles the vertical z axis at a constant ``angle`` (rad) from it, starting at +x towards +y.

    It goes round at sqrt(g / (L cos(angle))) rad/s and pulls its rod with m g / cos(angle). ``length`` in m, ``mass``
    in kg, ``gravity`` in m/s^2. Body "bob", distance constraint "rod".
    """
    mechanism = Mechanism("conical pendulum", gravity=(0.0, 0.0, -gravity))
    _bob(mechanism, (length * sin(angle), 0.0, -length * cos(angle)), mass, 0.05 * length)
    turning = sqrt(gravity / (length * cos(angle)))
    mechanism.start("bob", linear=(0.0, turning * length * sin(angle), 0.0))
    return mechanism


def _bob(mechanism: Mechanism, position: tuple[float, ...], mass: float, radius: float) -> None:
    bob = mechanism.body("bob", Sphere(radius=radius, mass=mass), position=position)
    mechanism.joint("rod", Distance(), mechanism.world, bob, at=((0.0, 0.0, 0.0), position))
