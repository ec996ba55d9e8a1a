"""A whole character on its two fixed feet: 22 drives, eight of them for the six freedoms of the pelvis, fourteen above it.

The legs are those of ``walker_legs`` without their covers; waist and neck turn, roll and pitch, an arm has three
drives at the shoulder and one at the elbow. 38 bodies, 45 joints, 236 rows and 7 loops, as Quaternion's table 5 has them.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import pi

import numpy as np
from numpy.typing import ArrayLike

from dalembert.mechanism.joints import Drive, Fixed, Free, Revolute
from dalembert.mechanism.mechanism import Body, Mechanism
from dalembert.mechanism.shapes import Box, Cylinder, Ellipsoid, Shape
from dalembert.zoo.drives import DriveMotion
from dalembert.zoo.figure import Gesture, figure_motion
from dalembert.zoo.links import sized
from dalembert.zoo.walker import SIDES, WalkerDesign, add_leg, dance, leg_drives, walker_motion

#: drives above the pelvis, by what they swing like in ``character_motion``
GESTURES = {
    "waist yaw": Gesture(0.0, 0.25, 2.0, 0.3), "waist roll": Gesture(0.0, 0.08, 2.0, 1.2), "waist pitch": Gesture(0.08, 0.10, 1.0),
    "neck yaw": Gesture(0.0, 0.40, 2.0, 2.0), "neck pitch": Gesture(0.05, 0.15, 1.0, 0.5), "neck roll": Gesture(0.0, 0.15, 2.0, 0.8),
    "left shoulder pitch": Gesture(0.3, 0.6, 2.0), "left shoulder roll": Gesture(0.35, 0.25, 2.0, 0.5),
    "left arm yaw": Gesture(0.0, 0.3, 2.0, 1.0), "left elbow": Gesture(0.8, 0.4, 1.0),
    "right shoulder pitch": Gesture(0.3, 0.6, 2.0, pi), "right shoulder roll": Gesture(0.35, 0.25, 2.0, 0.5 + pi),
    "right arm yaw": Gesture(0.0, 0.3, 2.0, 1.0 + pi), "right elbow": Gesture(0.8, 0.4, 1.0, pi),
}


@sized
def character(
    design: WalkerDesign | None = None, *, drive: Drive = "motion", passive: Sequence[str] = (), legs: bool = True,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
) -> Mechanism:
    """A full-body character in its reference pose, x forward, y to its left (in the spirit of Quaternion, Figs. 10 to 12, tables 4 to 6).

    Driven: per leg as in ``walker_legs`` ("left ankle drive", "left knee drive", ...); "waist yaw", "waist roll", "waist pitch", "neck yaw",
    "neck pitch", "neck roll"; per side, "left ..." and "right ...": "shoulder pitch", "shoulder roll", "arm yaw", "elbow", all in rad.
    ``drive``: "motion", "force" or None; ``passive``: names of drives that are joints without one. Without ``legs`` the pelvis is
    led by the joint "lead", a free one whose six directions are driven by motion.
    """
    design = WalkerDesign() if design is None else design
    drives = leg_drives(drive, passive, tuple(GESTURES))
    mechanism = Mechanism("character" if legs else "upper body", gravity=gravity)
    at = (0.0, 0.0, design.pelvis_height)
    base = mechanism.body("base", Box(size=(0.6, 0.7, 0.04), mass=45.0), position=(0.0, 0.0, -0.02)) if legs else None
    pelvis = mechanism.body("pelvis", Box(size=(0.2, 0.34, 0.2), mass=10.0), position=at)
    if base is None:
        mechanism.joint("lead", Free(drive="motion"), mechanism.world, pelvis, at=at)
    else:
        mechanism.joint("ground", Fixed(), mechanism.world, base, at=(0.0, 0.0, -0.04))
        for name, side in SIDES.items():
            add_leg(mechanism, name, 0.5 * side * design.spacing, base, pelvis, design, drives)
    _add_upper_body(mechanism, pelvis, design.pelvis_height, drives)
    return mechanism


def _add_upper_body(mechanism: Mechanism, pelvis: Body, height: float, drives: Mapping[str, Drive]) -> None:
    """Waist, chest, neck and head, and the arms that hang from the shoulders."""

    def link(joint: str, axis: str, parent: Body, body: str, shape: Shape, hinge: ArrayLike, centre: ArrayLike) -> Body:
        child = mechanism.body(body, shape, position=np.add(centre, (0.0, 0.0, height)))
        mechanism.joint(joint, Revolute(axis=axis, drive=drives[joint]), parent, child, at=np.add(hinge, (0.0, 0.0, height)))
        return child

    waist, neck = (0.0, 0.0, 0.18), (0.0, 0.0, 0.60)
    table = link("waist yaw", "z", pelvis, "turntable", Cylinder(radius=0.1, length=0.04, mass=1.5), (0.0, 0.0, 0.11), (0.0, 0.0, 0.13))
    cross = link("waist roll", "x", table, "waist cross", Box(size=(0.06, 0.06, 0.06), mass=0.8), waist, waist)
    chest = link("waist pitch", "y", cross, "chest", Box(size=(0.2, 0.3, 0.3), mass=11.0), waist, (0.0, 0.0, 0.38))
    turn = link("neck yaw", "z", chest, "neck", Cylinder(radius=0.04, length=0.06, mass=0.5), (0.0, 0.0, 0.53), (0.0, 0.0, 0.56))
    yoke = link("neck pitch", "y", turn, "neck yoke", Box(size=(0.04, 0.05, 0.03), mass=0.25), neck, neck)
    link("neck roll", "x", yoke, "head", Ellipsoid(semi_axes=(0.1, 0.08, 0.12), mass=3.0), neck, (0.02, 0.0, 0.72))
    for name, side in SIDES.items():
        shoulder, elbow = (0.0, 0.21 * side, 0.47), (0.0, 0.24 * side, 0.19)
        outwards = "x" if side > 0 else "-x"
        swing = link(f"{name} shoulder pitch", "-y", chest, f"{name} shoulder", Box(size=(0.07, 0.06, 0.07), mass=0.8), (0.0, 0.17 * side, 0.47), shoulder)
        lift = link(f"{name} shoulder roll", outwards, swing, f"{name} shoulder yoke", Box(size=(0.06, 0.06, 0.08), mass=0.6), shoulder, (0.0, 0.24 * side, 0.45))
        upper = link(f"{name} arm yaw", "z" if side > 0 else "-z", lift, f"{name} upper arm", Cylinder(radius=0.04, length=0.22, mass=1.6), (0.0, 0.24 * side, 0.40), (0.0, 0.24 * side, 0.30))
        link(f"{name} elbow", "-y", upper, f"{name} forearm", Cylinder(radius=0.03, length=0.28, mass=1.1), elbow, (0.0, 0.24 * side, 0.05))


@sized
def character_motion(
    pose: Callable[[float], tuple[np.ndarray, np.ndarray]] = dance, design: WalkerDesign | None = None, *,
    start: float = 1.0, gestures: Mapping[str, Gesture] = GESTURES,
) -> DriveMotion:
    """Targets of the 22 drives over time: the pelvis moves as ``pose`` says, the rest swings by its gesture, fully after ``start`` (s)."""
    return walker_motion(pose, design) | figure_motion(start=start, gestures=gestures)
