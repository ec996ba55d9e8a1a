"""Tops: a symmetric body with one point held."""
from __future__ import annotations

from math import cos, pi, sin

import numpy as np

from dalembert.mechanism.joints import Spherical
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.shapes import Composite, Cylinder
from dalembert.zoo.links import sized, turn_about


@sized
def heavy_top(*, spin: float = 150.0, precession: float = -4.61538) -> Mechanism:
    """The heavy top of Bruls and Cardona (2010): 15 kg, 1 m from the held point, its axis along the body's y axis.

    ``spin`` (rad/s) about y and ``precession`` (rad/s) about z at the start, with the axis horizontal. Body "top",
    joint "tip" at the origin.
    """
    mechanism = Mechanism("heavy top")
    top = mechanism.body("top", mass=15.0, inertia=np.diag([0.234375, 0.46875, 0.234375]), position=(0.0, 1.0, 0.0))
    mechanism.joint("tip", Spherical(), mechanism.world, top)
    mechanism.start("top", linear=(-precession, 0.0, 0.0), angular=(0.0, spin, precession))
    return mechanism


@sized
def spinning_top(*, spin: float = 120.0, tilt: float = pi / 9, precession: float = 0.0) -> Mechanism:
    """A toy top on its tip that precesses and nods (in the spirit of Quaternion, Fig. 5).

    A disc of 0.2 kg and 40 mm radius, 50 mm up a light stem of 80 mm. ``spin`` (rad/s) about the top's own axis, which
    leans by ``tilt`` (rad) towards +x; ``precession`` (rad/s) about the vertical at the start: with none, the top falls
    at first and draws cusps. Body "top" with z along its axis, joint "tip" at the origin.
    """
    shape = Composite(parts=[
        (Cylinder(radius=0.04, length=0.012, mass=0.2), (0.0, 0.0, 0.05)),
        (Cylinder(radius=0.003, length=0.08, mass=0.02), (0.0, 0.0, 0.04)),
    ])
    height = float(shape.center_of_mass[2])
    mechanism = Mechanism("spinning top")
    axis = np.array([sin(tilt), 0.0, cos(tilt)])
    top = mechanism.body("top", shape, position=height * axis, orientation=turn_about("y", tilt))
    mechanism.joint("tip", Spherical(), mechanism.world, top)
    turning = np.array([-precession * sin(tilt), 0.0, precession * cos(tilt) + spin])  # the vertical is (-sin, 0, cos) in body axes
    mechanism.start("top", linear=np.cross((0.0, 0.0, precession), height * axis), angular=turning)
    return mechanism
