"""A large animatronic figure on a pedestal: 151 bodies, 198 joints, 47 loops, driven in every one of its 27 freedoms.

The figure stands upright, 1.9 m tall, x forward, y to its left, arms hanging with the palms inwards. Its waist leans on
two struts; shoulders and elbows, hips and knees are moved by struts, wrists, neck, jaw and thumbs by cranks with
push-rods; the feet are kept level by parallelograms from the pelvis over the knees. Four fingers of a hand close
together, pushed by one slide; crossed couplers bend each finger's outer joints with its first.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from math import pi, sin
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dalembert.mechanism.joints import Drive, Fixed, Prismatic, Revolute
from dalembert.mechanism.mechanism import Body, Mechanism
from dalembert.mechanism.shapes import Box, Cylinder, Ellipsoid, Shape
from dalembert.zoo.drives import DriveMotion, Plane, Point, plane, push_rod, rod_ends, smooth_step, strut
from dalembert.zoo.links import rod_between, sized

SIDES = {"left": 1.0, "right": -1.0}
X, Y, Z = np.eye(3)

# Heights above the ground and half widths, m.
WAIST, SHOULDER, NECK, NOD = 1.10, 1.45, 1.52, 1.60
HIP, KNEE, ANKLE, HIP_WIDTH = 0.95, 0.53, 0.11, 0.11
SHOULDER_WIDTH, UPPER_ARM, FOREARM = 0.24, 0.30, 0.26
# Phalanges of a finger, and the fingers' places across the palm from front to back, m.
PHALANGES, FINGERS = (0.045, 0.028, 0.022), {"index": 0.033, "middle": 0.011, "ring": -0.011, "little": -0.033}


@sized
def animatronic_figure(*, drive: Drive = "motion", gravity: ArrayLike = (0.0, 0.0, -9.81)) -> Mechanism:
    """The figure in its reference pose (in the spirit of Quaternion, Fig. 9, tables 4 to 6); masses from 0.3 g to 49.2 kg.

    Driven joints: "waist yaw", "waist left strut", "waist right strut", "neck yaw", "neck pitch drive",
    "neck roll drive", "jaw drive"; per side, "left ..." and "right ...": "shoulder pitch", "shoulder roll drive" (strut),
    "arm yaw", "elbow drive" (strut), "forearm yaw", "wrist drive", "grip", "thumb drive", "hip drive" (strut), "knee
    drive" (strut). Struts and the grip in m, positive when they lengthen and close; the others in rad. Mirrored
    coordinates move mirrored. ``drive``: "motion", "force" or None.
    """
    figure = Mechanism("animatronic figure", gravity=gravity)
    pelvis, chest = _add_torso(figure, drive)
    _add_head(figure, chest, drive)
    for name, side in SIDES.items():
        _add_leg(figure, name, side, pelvis, drive)
        forearm = _add_arm(figure, name, side, chest, drive)
        _add_hand(figure, name, side, forearm, drive)
    return figure


def _box(figure: Mechanism, name: str, at: ArrayLike, size: tuple[float, float, float], mass: float) -> Body:
    return figure.body(name, Box(size=size, mass=mass), position=at)


def _mount(figure: Mechanism, name: str, carrier: Body, shape: Shape, at: ArrayLike) -> None:
    """A part that is fixed to another: a shell, a motor."""
    figure.joint(f"{name} mount", Fixed(), carrier, figure.body(name, shape, position=at), at=at)


def _add_torso(figure: Mechanism, drive: Drive) -> tuple[Body, Body]:
    """Pedestal, pelvis and chest. The waist turns, then rolls and pitches on two struts."""
    waist = WAIST * Z
    base = _box(figure, "pedestal", (0.0, 0.0, 0.03), (0.9, 0.9, 0.06), 49.2)
    pelvis = _box(figure, "pelvis", (-0.02, 0.0, 0.98), (0.18, 0.26, 0.14), 14.0)
    table = figure.body("turntable", Cylinder(radius=0.12, length=0.04, mass=3.5), position=(0.0, 0.0, 1.05))
    cross = _box(figure, "waist cross", waist, (0.05, 0.05, 0.03), 0.8)
    chest = _box(figure, "chest", (0.0, 0.0, 1.32), (0.2, 0.34, 0.32), 16.0)
    figure.joint("ground", Fixed(), figure.world, base)
    figure.joint("post", Fixed(), base, pelvis, at=(-0.1, 0.0, 0.06))
    figure.joint("waist yaw", Revolute(axis="z", drive=drive), pelvis, table, at=(0.0, 0.0, 1.03))
    figure.joint("waist roll", Revolute(axis="x"), table, cross, at=waist)
    figure.joint("waist pitch", Revolute(axis="y"), cross, chest, at=waist)
    for name, side in SIDES.items():
        start, end = (-0.11, 0.10 * side, 1.06), (-0.10, 0.09 * side, 1.34)
        strut(figure, f"waist {name} strut", table, chest, start, end, axis=Y, drive=drive, mass=1.2, radius=0.02)
    _mount(figure, "pedestal cover", base, Cylinder(radius=0.42, length=0.03, mass=6.0), (0.0, 0.0, 0.075))
    _mount(figure, "waist motor", pelvis, Cylinder(radius=0.05, length=0.1, mass=2.8), (0.0, 0.0, 0.97))
    _mount(figure, "power unit", pelvis, Box(size=(0.08, 0.2, 0.12), mass=4.5), (-0.13, 0.0, 0.98))
    _mount(figure, "chest plate", chest, Box(size=(0.04, 0.38, 0.3), mass=2.4), (0.13, 0.0, 1.34))
    _mount(figure, "back plate", chest, Box(size=(0.04, 0.38, 0.34), mass=2.1), (-0.14, 0.0, 1.33))
    _mount(figure, "belly plate", cross, Box(size=(0.02, 0.2, 0.1), mass=0.5), (0.12, 0.0, WAIST))
    return pelvis, chest


def _add_head(figure: Mechanism, chest: Body, drive: Drive) -> None:
    """The neck turns, nods and tilts; the jaw opens."""
    nod, hinge = NOD * Z, np.array([0.02, 0.0, 1.66])
    neck = _box(figure, "neck", (0.0, 0.0, 1.55), (0.06, 0.06, 0.05), 0.7)
    yoke = _box(figure, "neck yoke", nod, (0.03, 0.05, 0.03), 0.25)
    head = figure.body("head", Ellipsoid(semi_axes=(0.09, 0.075, 0.11), mass=2.2), position=(0.01, 0.0, 1.71))
    jaw = _box(figure, "jaw", (0.07, 0.0, 1.63), (0.07, 0.08, 0.02), 0.12)
    figure.joint("neck yaw", Revolute(axis="z", drive=drive), chest, neck, at=NECK * Z)
    figure.joint("neck pitch", Revolute(axis="y"), neck, yoke, at=nod)
    figure.joint("neck roll", Revolute(axis="x"), yoke, head, at=nod)
    figure.joint("jaw hinge", Revolute(axis="y"), head, jaw, at=hinge)
    push_rod(
        figure, "neck pitch drive", neck, yoke, plane(nod, Z, X), pivot=(-0.06, -0.01), tip=(-0.06, -0.045), end=(0.0, -0.04),
        drive=drive, mass=0.05, radius=0.004,
    )
    push_rod(
        figure, "neck roll drive", yoke, head, plane(nod, Z, -Y), pivot=(-0.05, 0.0), tip=(-0.055, 0.03), end=(0.02, 0.035),
        drive=drive, mass=0.05, radius=0.004,
    )
    push_rod(
        figure, "jaw drive", head, jaw, plane(hinge, X, -Z), pivot=(-0.03, -0.06), tip=(-0.005, -0.07), end=(0.025, 0.005),
        drive=drive, mass=0.03, radius=0.003,
    )
    _mount(figure, "face", head, Ellipsoid(semi_axes=(0.03, 0.07, 0.09), mass=0.35), (0.09, 0.0, 1.72))
    _mount(figure, "skull cap", head, Ellipsoid(semi_axes=(0.09, 0.08, 0.04), mass=0.4), (0.0, 0.0, 1.80))


def _add_leg(figure: Mechanism, name: str, side: float, pelvis: Body, drive: Drive) -> None:
    """Hip and knee on struts; two parallelograms keep the foot level."""
    y = HIP_WIDTH * side
    hip, knee, ankle = (plane((0.0, y, z), -Z, X) for z in (HIP, KNEE, ANKLE))  # downwards, forwards
    thigh = rod_between(figure, f"{name} thigh", hip.origin, knee.origin, mass=5.5, radius=0.05)
    shank = rod_between(figure, f"{name} shank", knee.origin, ankle.origin, mass=3.4, radius=0.04)
    foot = _box(figure, f"{name} foot", (0.05, y, 0.09), (0.24, 0.09, 0.04), 1.3)
    plate = _box(figure, f"{name} knee plate", knee.origin, (0.14, 0.01, 0.04), 0.3)
    figure.joint(f"{name} hip", Revolute(axis=hip.axis), pelvis, thigh, at=hip.origin)
    figure.joint(f"{name} knee", Revolute(axis=-hip.axis), thigh, shank, at=knee.origin)
    figure.joint(f"{name} ankle", Revolute(axis=hip.axis), shank, foot, at=ankle.origin)
    figure.joint(f"{name} knee plate pin", Revolute(axis=hip.axis), thigh, plate, at=knee.origin)
    _coupler(figure, f"{name} upper level rod", pelvis, plate, hip.axis, hip.point((0.0, 0.06), 0.03), knee.point((0.0, 0.06), 0.03), 0.18)
    _coupler(figure, f"{name} lower level rod", plate, foot, hip.axis, knee.point((0.0, -0.05), 0.03), ankle.point((0.0, -0.05), 0.03), 0.18)
    strut(
        figure, f"{name} hip drive", pelvis, thigh, hip.point((-0.06, -0.10)), hip.point((0.20, -0.07)),
        axis=Y, drive=drive, mass=1.0, radius=0.02, pinned=True,
    )
    strut(
        figure, f"{name} knee drive", thigh, shank, knee.point((-0.28, -0.06)), knee.point((0.05, -0.07)),
        axis=Y, drive=drive, mass=1.0, radius=0.02, pinned=True,
    )
    _mount(figure, f"{name} hip armour", pelvis, Box(size=(0.12, 0.04, 0.14), mass=0.6), (0.0, 1.6 * y, HIP))
    _mount(figure, f"{name} thigh armour", thigh, Cylinder(radius=0.09, length=0.3, mass=1.4), hip.point((0.2, 0.0)))
    _mount(figure, f"{name} shin armour", shank, Cylinder(radius=0.07, length=0.3, mass=1.1), knee.point((0.2, 0.0)))
    _mount(figure, f"{name} boot", foot, Box(size=(0.28, 0.11, 0.08), mass=0.7), (0.05, y, 0.1))


def _coupler(figure: Mechanism, name: str, first: Body, second: Body, axis: np.ndarray, start: np.ndarray, end: np.ndarray, mass: float) -> None:
    """A rod with a pin at each end, in the plane across ``axis``."""
    rod = rod_between(figure, name, start, end, mass=mass, radius=0.015 * float(np.linalg.norm(end - start)))
    figure.joint(f"{name} first pin", Revolute(axis=axis), first, rod, at=start)
    figure.joint(f"{name} second pin", Revolute(axis=axis), rod, second, at=end)


def _add_arm(figure: Mechanism, name: str, side: float, chest: Body, drive: Drive) -> Body:
    """Shoulder pitch and roll, arm yaw, elbow and forearm yaw. Returns the part of the forearm that carries the hand."""
    shoulder = plane((0.0, SHOULDER_WIDTH * side, SHOULDER), -Z, side * Y)  # downwards, outwards
    elbow = plane(shoulder.point((UPPER_ARM, 0.0)), -Z, X)  # downwards, forwards
    middle = elbow.point((0.1, 0.0))
    swing = _box(figure, f"{name} shoulder", shoulder.origin, (0.08, 0.06, 0.08), 1.5)
    lift = _box(figure, f"{name} shoulder yoke", shoulder.point((0.05, 0.0)), (0.06, 0.06, 0.1), 1.1)
    upper = rod_between(figure, f"{name} upper arm", shoulder.point((0.1, 0.0)), elbow.origin, mass=2.3, radius=0.04)
    fore = rod_between(figure, f"{name} forearm", elbow.origin, middle, mass=1.1, radius=0.035)
    lower = rod_between(figure, f"{name} lower forearm", middle, elbow.point((FOREARM, 0.0)), mass=0.8, radius=0.03)
    figure.joint(f"{name} shoulder pitch", Revolute(axis="-y", drive=drive), chest, swing, at=shoulder.origin)
    figure.joint(f"{name} shoulder roll", Revolute(axis=shoulder.axis), swing, lift, at=shoulder.origin)
    figure.joint(f"{name} arm yaw", Revolute(axis=side * Z, drive=drive), lift, upper, at=shoulder.point((0.1, 0.0)))
    figure.joint(f"{name} elbow", Revolute(axis=elbow.axis), upper, fore, at=elbow.origin)
    figure.joint(f"{name} forearm yaw", Revolute(axis=side * Z, drive=drive), fore, lower, at=middle)
    strut(
        figure, f"{name} shoulder roll drive", swing, lift, shoulder.point((-0.10, 0.03)), shoulder.point((0.06, 0.06)),
        axis=shoulder.axis, drive=drive, mass=0.4, radius=0.014,
    )
    strut(
        figure, f"{name} elbow drive", upper, fore, elbow.point((-0.19, 0.03)), elbow.point((0.05, 0.04)),
        axis=elbow.axis, drive=drive, mass=0.4, radius=0.012,
    )
    _mount(figure, f"{name} shoulder motor", chest, Cylinder(radius=0.04, length=0.08, mass=1.6, axis="y"), shoulder.point((0.0, -0.09)))
    _mount(figure, f"{name} shoulder armour", lift, Ellipsoid(semi_axes=(0.09, 0.08, 0.09), mass=0.9), shoulder.point((0.0, 0.04)))
    _mount(figure, f"{name} arm motor", lift, Cylinder(radius=0.025, length=0.05, mass=0.5), shoulder.point((0.07, 0.0)))
    _mount(figure, f"{name} upper arm armour", upper, Cylinder(radius=0.06, length=0.16, mass=0.7), shoulder.point((0.18, 0.0)))
    _mount(figure, f"{name} forearm armour", lower, Cylinder(radius=0.05, length=0.12, mass=0.6), elbow.point((0.18, 0.0)))
    return lower


def _add_hand(figure: Mechanism, name: str, side: float, forearm: Body, drive: Drive) -> None:
    """Palm, four fingers on one slide, and a thumb on a crank."""
    wrist = plane((0.0, SHOULDER_WIDTH * side, SHOULDER - UPPER_ARM - FOREARM), -Z, -side * Y)  # downwards, inwards
    palm = _box(figure, f"{name} palm", wrist.point((0.05, 0.0)), (0.085, 0.022, 0.09), 0.35)
    figure.joint(f"{name} wrist", Revolute(axis=wrist.axis), forearm, palm, at=wrist.origin)
    push_rod(
        figure, f"{name} wrist drive", forearm, palm, wrist, pivot=(-0.09, 0.0), tip=(-0.092, -0.026), end=(0.005, -0.024),
        drive=drive, mass=0.03, radius=0.003,
    )
    _mount(figure, f"{name} hand plate", palm, Box(size=(0.08, 0.006, 0.08), mass=0.06), wrist.point((0.05, -0.018)))
    slide = _box(figure, f"{name} grip slide", wrist.point((0.04, -0.008)), (0.075, 0.006, 0.008), 0.02)
    figure.joint(f"{name} grip", Prismatic(axis=wrist.along, drive=drive), palm, slide, at=wrist.point((0.04, -0.008)))
    for finger, x in FINGERS.items():
        knuckle = Plane(wrist.point((0.095, 0.0)) + x * X, wrist.along, wrist.normal)
        first = _add_finger(figure, f"{name} {finger}", palm, knuckle)
        start, end = knuckle.point((-0.055, -0.008)), knuckle.point((0.004, -0.010))
        rod = rod_between(figure, f"{name} {finger} pull rod", start, end, mass=0.0006, radius=0.0007)
        swivel, ball = rod_ends(knuckle.axis, end - start)
        figure.joint(f"{name} {finger} pull rod foot", swivel, slide, rod, at=start)
        figure.joint(f"{name} {finger} pull rod head", ball, rod, first, at=end)
    thumb = plane(wrist.point((0.03, 0.0)) + 0.045 * X, (0.75, 0.0, -0.66), wrist.normal)
    _add_thumb(figure, name, palm, thumb, drive)


def _add_finger(figure: Mechanism, name: str, palm: Body, at: Plane) -> Body:
    """Three phalanges; crossed couplers bend the second against the palm, and the third against the first. Returns the first."""
    a, b, c = PHALANGES
    first = rod_between(figure, f"{name} first phalanx", at.point((0.0, 0.0)), at.point((a, 0.0)), mass=0.016, radius=0.008)
    second = rod_between(figure, f"{name} second phalanx", at.point((a, 0.0)), at.point((a + b, 0.0)), mass=0.009, radius=0.007)
    third = rod_between(figure, f"{name} third phalanx", at.point((a + b, 0.0)), at.point((a + b + c, 0.0)), mass=0.005, radius=0.006)
    figure.joint(f"{name} first knuckle", Revolute(axis=at.axis), palm, first, at=at.point((0.0, 0.0)))
    figure.joint(f"{name} second knuckle", Revolute(axis=at.axis), first, second, at=at.point((a, 0.0)))
    figure.joint(f"{name} third knuckle", Revolute(axis=at.axis), second, third, at=at.point((a + b, 0.0)))
    _cross(figure, f"{name} first coupler", palm, second, at, (0.0, -0.006), (a, 0.007), mass=0.0004)
    _cross(figure, f"{name} second coupler", first, third, at, (a, -0.005), (a + b, 0.006), mass=0.0003)
    return first


def _cross(figure: Mechanism, name: str, first: Body, second: Body, at: Plane, start: Point, end: Point, mass: float) -> None:
    _coupler(figure, name, first, second, at.axis, at.point(start, 0.006), at.point(end, 0.006), mass)


def _add_thumb(figure: Mechanism, name: str, palm: Body, at: Plane, drive: Drive) -> None:
    """Two phalanges with a crossed coupler, bent by a crank in the palm."""
    first = rod_between(figure, f"{name} thumb first phalanx", at.point((0.0, 0.0)), at.point((0.04, 0.0)), mass=0.018, radius=0.009)
    second = rod_between(figure, f"{name} thumb second phalanx", at.point((0.04, 0.0)), at.point((0.07, 0.0)), mass=0.010, radius=0.008)
    figure.joint(f"{name} thumb first knuckle", Revolute(axis=at.axis), palm, first, at=at.point((0.0, 0.0)))
    figure.joint(f"{name} thumb second knuckle", Revolute(axis=at.axis), first, second, at=at.point((0.04, 0.0)))
    _cross(figure, f"{name} thumb coupler", palm, second, at, (0.0, -0.006), (0.04, 0.007), mass=0.0004)
    push_rod(
        figure, f"{name} thumb drive", palm, first, at, pivot=(-0.04, 0.0), tip=(-0.04, -0.010), end=(0.003, -0.009),
        drive=drive, mass=0.006, radius=0.002, planar=True, aside=-0.006,
    )


# ---- motion

class Gesture(NamedTuple):
    """A swing of a drive: ``mean`` and ``amplitude`` in m or rad, ``period`` in s, ``phase`` in rad."""

    mean: float
    amplitude: float
    period: float
    phase: float = 0.0


#: by driven joint: the figure looks around, nods and talks, waves and beckons, and marches on the spot
GESTURES = {
    "waist yaw": Gesture(0.0, 0.35, 4.0),
    "waist left strut": Gesture(0.0, 0.018, 3.0, 0.4),
    "waist right strut": Gesture(0.0, 0.018, 3.0, 1.1),
    "neck yaw": Gesture(0.0, 0.5, 3.2, 1.0),
    "neck pitch drive": Gesture(0.05, 0.25, 1.6),
    "neck roll drive": Gesture(0.0, 0.2, 2.6, 2.0),
    "jaw drive": Gesture(0.15, 0.15, 0.7),
    "left shoulder pitch": Gesture(0.2, 0.5, 2.4),
    "left shoulder roll drive": Gesture(-0.012, 0.010, 3.0, 0.6),
    "left arm yaw": Gesture(0.0, 0.4, 2.0, 1.0),
    "left elbow drive": Gesture(-0.020, 0.015, 2.0),
    "left forearm yaw": Gesture(0.0, 0.6, 1.8),
    "left wrist drive": Gesture(0.0, 0.4, 1.2),
    "left grip": Gesture(0.0025, 0.0025, 1.5),
    "left thumb drive": Gesture(0.3, 0.3, 1.5),
    "left hip drive": Gesture(0.010, 0.020, 2.0),
    "left knee drive": Gesture(-0.020, 0.018, 2.0, 0.5),
    "right shoulder pitch": Gesture(0.5, 0.6, 2.8, 0.5),
    "right shoulder roll drive": Gesture(-0.025, 0.015, 2.2),
    "right arm yaw": Gesture(0.0, 0.5, 2.0),
    "right elbow drive": Gesture(-0.030, 0.020, 1.4, 0.8),
    "right forearm yaw": Gesture(0.0, 0.6, 1.5, 0.5),
    "right wrist drive": Gesture(0.0, 0.4, 1.0, 1.0),
    "right grip": Gesture(0.0025, 0.0025, 1.1, 0.7),
    "right thumb drive": Gesture(0.3, 0.3, 1.1, 0.7),
    "right hip drive": Gesture(0.010, 0.020, 2.0, pi),
    "right knee drive": Gesture(-0.020, 0.018, 2.0, 0.5 + pi),
}


@sized
def figure_motion(*, start: float = 1.0, gestures: Mapping[str, Gesture] = GESTURES) -> DriveMotion:
    """Targets of the 27 drives over time: each swings as its gesture says, from rest, fully after ``start`` (s).

    There are as many drives as degrees of freedom, so that any targets within the linkages' reach are consistent.
    """

    def target(gesture: Gesture) -> Callable[[float], float]:
        mean, amplitude, period, phase = gesture
        return lambda time: smooth_step(time / start) * (mean + amplitude * sin(2.0 * pi * time / period + phase))

    return {name: target(gesture) for name, gesture in gestures.items()}
