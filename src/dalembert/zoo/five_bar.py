"""A five-bar linkage: two motors on the ground move one point in a plane, as in plotters and pick-and-place machines."""
from __future__ import annotations

import numpy as np

from dalembert.mechanism.joints import Drive, Revolute
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.sensors import PointMotion
from dalembert.mechanism.shapes import Rod, Sphere
from dalembert.zoo.drives import meeting
from dalembert.zoo.links import rod_between, sized


@sized
def five_bar(*, span: float = 0.2, arm: float = 0.25, rod: float = 0.35, mass: float = 0.3, radius: float = 0.012, damping: float = 0.05, drive: Drive = "force") -> Mechanism:
    """Two arms of length ``arm`` (m) on motors ``span`` apart, two forearms of length ``rod`` that meet in a hinge, all in the x-y plane.

    Bodies "left arm", "right arm", "left forearm", "right forearm" of ``mass`` (kg per m); joints "left motor", "right motor" with ``drive`` and
    ``damping`` (N m s/rad), "left elbow", "right elbow" and "tip", axes along z; gravity is along -z. The sensor "tip motion" gives where the hinge
    at the tip is, and its velocity. It starts with both arms turned outwards by 0.4 rad from the y axis.
    """
    mechanism = Mechanism("five-bar linkage")
    pivots = {"left": np.array([-0.5 * span, 0.0, 0.0]), "right": np.array([0.5 * span, 0.0, 0.0])}
    elbows = {side: pivots[side] + arm * np.array([(-1.0 if side == "left" else 1.0) * np.sin(0.4), np.cos(0.4), 0.0]) for side in pivots}
    tip = np.array([*meeting((elbows["left"][0], elbows["left"][1]), rod, (elbows["right"][0], elbows["right"][1]), rod, 1.0), 0.0])
    for side, pivot in pivots.items():
        rod_between(mechanism, f"{side} arm", pivot, elbows[side], mass=mass * arm, radius=radius)
        rod_between(mechanism, f"{side} forearm", elbows[side], tip, mass=mass * rod, radius=0.8 * radius)
        mechanism.joint(f"{side} motor", Revolute(axis="z", drive=drive, damping=damping), mechanism.world, f"{side} arm", at=pivot)
        mechanism.joint(f"{side} elbow", Revolute(axis="z"), f"{side} arm", f"{side} forearm", at=elbows[side])
    mechanism.joint("tip", Revolute(axis="z"), "left forearm", "right forearm", at=tip)
    mechanism.visual("left forearm", Rod(length=rod, mass=1.0, radius=0.8 * radius, axis="x"))
    mechanism.visual("left forearm", Sphere(radius=1.6 * radius, mass=1.0), position=(0.5 * rod, 0.0, 0.0), colour=(0.8, 0.3, 0.2, 1.0))
    mechanism.sensor("tip motion", PointMotion(point=(0.5 * rod, 0.0, 0.0)), "left forearm")
    return mechanism
