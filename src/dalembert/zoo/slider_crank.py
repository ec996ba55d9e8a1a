"""The slider-crank: rotation into translation, through two dead centres per turn."""
from __future__ import annotations

from math import cos, sin, sqrt

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import ModelError
from dalembert.mechanism.joints import Prismatic, Revolute
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.shapes import Box
from dalembert.zoo.links import rod_between, sized


@sized
def slider_crank(
    *,
    crank: float = 0.15,
    rod: float = 0.45,
    angle: float = 0.5,
    rate: float = 20.0,
    crank_mass: float = 0.6,
    rod_mass: float = 0.9,
    slider_mass: float = 0.5,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
) -> Mechanism:
    """A crank at the origin, a connecting rod and a slider on the x axis, in the x-z plane.

    ``crank`` and ``rod``: lengths in m; masses in kg. The crank starts ``angle`` (rad) above the x axis and turns
    upwards at ``rate`` (rad/s). The slider is at r cos(angle) + sqrt(l^2 - r^2 sin(angle)^2). Bodies "crank", "rod",
    "slider"; joints "bearing", "crank pin", "wrist pin" (axes along -y, so that upwards is positive) and "guide",
    whose coordinates are zero in the starting pose.
    """
    if not rod > crank > 0.0:
        raise ModelError(f"slider_crank: the rod ({rod:g} m) must be longer than the crank ({crank:g} m)")
    pin = np.array([crank * cos(angle), 0.0, crank * sin(angle)])
    wrist = np.array([pin[0] + sqrt(rod**2 - pin[2] ** 2), 0.0, 0.0])
    hinge = Revolute(axis="-y")
    mechanism = Mechanism("slider-crank", gravity=gravity)
    arm = rod_between(mechanism, "crank", (0.0, 0.0, 0.0), pin, mass=crank_mass, radius=0.015)
    link = rod_between(mechanism, "rod", pin, wrist, mass=rod_mass, radius=0.01)
    slider = mechanism.body("slider", Box(size=(0.08, 0.05, 0.05), mass=slider_mass), position=wrist)
    mechanism.joint("bearing", hinge, mechanism.world, arm, at=(0.0, 0.0, 0.0))
    mechanism.joint("crank pin", hinge, arm, link, at=pin)
    mechanism.joint("wrist pin", hinge, link, slider, at=wrist)
    mechanism.joint("guide", Prismatic(axis="x"), mechanism.world, slider, at=wrist)
    mechanism.start("bearing", rate=rate)
    return mechanism
