"""The legs of a walking character, its feet fixed to the ground: eight drives for the six freedoms of the pelvis.

From the ground up a leg has an ankle roll (x) and pitch (y), a knee (-y), and a hip with pitch (y), roll (x) and yaw (z)
axes through one point; ankle roll and hip yaw are passive. Ankle pitch is driven by a crank on the shank, the knee by a
telescoping strut, hip pitch by a crank beside the hip, hip roll directly. Each linkage is a loop, and the two legs with the
ground are another: seven in all. ``walker_drives`` gives the eight coordinates of any pose of the pelvis in closed
form, so that they agree with one another to rounding.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import acos, asin, atan2, cos, hypot, pi, sin, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dalembert.checks import checked, choices, numbers
from dalembert.errors import ModelError
from dalembert.mechanism.joints import Drive, Fixed, Revolute
from dalembert.mechanism.mechanism import Body, Mechanism
from dalembert.mechanism.shapes import Box, Cylinder
from dalembert.zoo.drives import (
    DriveMotion,
    Plane,
    Point,
    crank_turn,
    plane,
    push_rod,
    smooth_step,
    strut,
    strut_stroke,
)
from dalembert.zoo.links import rod_between, sized

SIDES = {"left": 1.0, "right": -1.0}
DRIVES = ("ankle drive", "knee drive", "hip pitch drive", "hip roll")


@dataclass(frozen=True, kw_only=True)
class WalkerDesign:
    """Sizes in m, masses in kg, angles in rad. Linkage points are (up, forward) from their joint in the upright standing leg.

    ``knee_bend``: of the reference pose; ``spacing``: between the hips, and between the ankles. The ankle's and knee's
    points lie in the frame of the shank, the hip's in that of the pelvis.
    """

    shank: float = 0.40
    thigh: float = 0.42
    knee_bend: float = 0.7
    spacing: float = 0.24
    ankle_height: float = 0.11
    hip_drop: float = 0.08
    pelvis_mass: float = 24.0
    thigh_mass: float = 4.2
    shank_mass: float = 2.6
    foot_mass: float = 1.8
    ankle_crank: tuple[Point, Point] = ((0.24, -0.01), (0.24, -0.06))
    ankle_arm: Point = (0.0, -0.07)
    knee_strut: tuple[Point, Point] = ((-0.25, -0.05), (0.06, -0.08))
    hip_crank: tuple[Point, Point] = ((0.10, 0.02), (0.09, 0.09))
    hip_arm: Point = (-0.02, 0.08)

    @property
    def reference(self) -> tuple[float, float]:
        """Forward lean of shank and thigh (rad) in the reference pose, the hip straight above the ankle."""
        lean = atan2(self.thigh * sin(self.knee_bend), self.shank + self.thigh * cos(self.knee_bend))
        return lean, lean - self.knee_bend

    @property
    def hip_height(self) -> float:
        """Of the hip above the ankle in the reference pose."""
        return sqrt(self.shank**2 + self.thigh**2 + 2.0 * self.shank * self.thigh * cos(self.knee_bend))

    @property
    def pelvis_height(self) -> float:
        """Of the pelvis's centre above the ground in the reference pose."""
        return self.ankle_height + self.hip_height + self.hip_drop


@sized
def walker_legs(
    design: WalkerDesign | None = None, *, drive: Drive = "motion", passive: Sequence[str] = (), gravity: ArrayLike = (0.0, 0.0, -9.81),
) -> Mechanism:
    """Two legs between the ground and a pelvis (in the spirit of Quaternion, Figs. 10 and 11, tables 4 to 6).

    38 bodies and 45 joints: "base", "pelvis", and per side, "left ..." and "right ...", the chain "foot", "ankle",
    "shank", "thigh", "hip pitch bracket", "hip yaw bracket", the linkages, motors and covers. Driven per side:
    "ankle drive" (crank, rad), "knee drive" (strut, m), "hip pitch drive" (crank, rad), "hip roll" (rad). Passive joints
    of the chain: "ankle roll", "ankle pitch", "knee", "hip pitch", "hip yaw". ``drive``: "motion", "force" or None;
    ``passive``: names of drives that are joints without one.
    """
    design = WalkerDesign() if design is None else design
    drives = leg_drives(drive, passive)
    mechanism = Mechanism("walker legs", gravity=gravity)
    base = mechanism.body("base", Box(size=(0.6, 0.7, 0.04), mass=45.0), position=(0.0, 0.0, -0.02))
    mechanism.joint("ground", Fixed(), mechanism.world, base, at=(0.0, 0.0, -0.04))
    pelvis = mechanism.body("pelvis", Box(size=(0.2, 0.34, 0.2), mass=design.pelvis_mass), position=(0.0, 0.0, design.pelvis_height))
    for name, side in SIDES.items():
        y = 0.5 * side * design.spacing
        foot = mechanism.body(f"{name} foot", Box(size=(0.24, 0.1, 0.05), mass=design.foot_mass), position=(0.03, y, 0.025))
        mechanism.joint(f"{name} sole", Fixed(), base, foot, at=(0.03, y, 0.0))
        _dress_leg(mechanism, name, foot, add_leg(mechanism, name, y, foot, pelvis, design, drives), design)
    return mechanism


class Leg(NamedTuple):
    """Parts of a leg that carry something, and the planes of its linkages."""

    shank: Body
    thigh: Body
    pitch: Body
    yaw: Body
    shank_frame: Plane
    hip_frame: Plane
    knee_at: np.ndarray


def add_leg(mechanism: Mechanism, name: str, y: float, foot: Body, pelvis: Body, design: WalkerDesign, drives: Mapping[str, Drive]) -> Leg:
    """The chain from a foot to the pelvis with its three linkages; ``drives``: of the joints that may have one."""
    lean, thigh_lean = design.reference
    ankle_at = np.array([0.0, y, design.ankle_height])
    shank_frame = plane(ankle_at, (sin(lean), 0.0, cos(lean)), (cos(lean), 0.0, -sin(lean)))
    knee_at = shank_frame.point((design.shank, 0.0))
    knee_frame = Plane(knee_at, shank_frame.along, shank_frame.normal)
    hip_at = knee_at + design.thigh * np.array([sin(thigh_lean), 0.0, cos(thigh_lean)])
    hip_frame = plane(hip_at, (0.0, 0.0, 1.0), (1.0, 0.0, 0.0))

    ankle = mechanism.body(f"{name} ankle", Box(size=(0.05, 0.06, 0.04), mass=0.35), position=ankle_at)
    shank = rod_between(mechanism, f"{name} shank", ankle_at, knee_at, mass=design.shank_mass, radius=0.03)
    thigh = rod_between(mechanism, f"{name} thigh", knee_at, hip_at, mass=design.thigh_mass, radius=0.04)
    pitch = mechanism.body(f"{name} hip pitch bracket", Box(size=(0.08, 0.05, 0.12), mass=1.2), position=hip_frame.point((0.03, 0.0)))
    yaw = mechanism.body(f"{name} hip yaw bracket", Box(size=(0.07, 0.07, 0.04), mass=0.9), position=hip_frame.point((0.05, 0.0)))

    mechanism.joint(f"{name} ankle roll", Revolute(axis="x"), foot, ankle, at=ankle_at)
    mechanism.joint(f"{name} ankle pitch", Revolute(axis="y"), ankle, shank, at=ankle_at)
    mechanism.joint(f"{name} knee", Revolute(axis="-y"), shank, thigh, at=knee_at)
    mechanism.joint(f"{name} hip pitch", Revolute(axis="y"), thigh, pitch, at=hip_at)
    mechanism.joint(f"{name} hip roll", Revolute(axis="x", drive=drives[f"{name} hip roll"]), pitch, yaw, at=hip_at)
    mechanism.joint(f"{name} hip yaw", Revolute(axis="z"), yaw, pelvis, at=hip_at)

    push_rod(
        mechanism, f"{name} ankle drive", shank, ankle, shank_frame, pivot=design.ankle_crank[0], tip=design.ankle_crank[1],
        end=design.ankle_arm, drive=drives[f"{name} ankle drive"], mass=0.16, radius=0.006, aside=0.04,
    )
    start, end = (knee_frame.point(p) for p in design.knee_strut)
    strut(mechanism, f"{name} knee drive", shank, thigh, start, end, axis=(0.0, 1.0, 0.0), drive=drives[f"{name} knee drive"], mass=0.8, radius=0.018)
    push_rod(
        mechanism, f"{name} hip pitch drive", pitch, thigh, hip_frame, pivot=design.hip_crank[0], tip=design.hip_crank[1],
        end=design.hip_arm, drive=drives[f"{name} hip pitch drive"], mass=0.2, radius=0.007, planar=True, aside=0.05,
    )
    return Leg(shank, thigh, pitch, yaw, shank_frame, hip_frame, knee_at)


def _dress_leg(mechanism: Mechanism, name: str, foot: Body, leg: Leg, design: WalkerDesign) -> None:
    """Motors and covers."""
    hip, ankle = leg.hip_frame, leg.shank_frame
    parts = {
        "ankle motor": (leg.shank, Cylinder(radius=0.03, length=0.06, mass=0.7, axis="y"), ankle.point(design.ankle_crank[0])),
        "shank cover": (leg.shank, Cylinder(radius=0.055, length=0.3, mass=0.4), ankle.point((0.5 * design.shank, 0.0))),
        "thigh cover": (leg.thigh, Cylinder(radius=0.07, length=0.3, mass=0.6), 0.5 * (leg.knee_at + hip.origin)),
        "hip pitch motor": (leg.pitch, Cylinder(radius=0.035, length=0.07, mass=1.1, axis="y"), hip.point(design.hip_crank[0])),
        "hip roll motor": (leg.yaw, Cylinder(radius=0.035, length=0.07, mass=1.1, axis="x"), hip.point((0.0, -0.08))),
        "foot cover": (foot, Box(size=(0.26, 0.11, 0.06), mass=0.3), np.array([0.03, foot.position[1], 0.05])),
    }
    for part, (carrier, shape, at) in parts.items():
        body = mechanism.body(f"{name} {part}", shape, position=at)
        mechanism.joint(f"{name} {part} mount", Fixed(), carrier, body, at=at)


def leg_drives(drive: Drive, passive: Sequence[str], more: Sequence[str] = ()) -> dict[str, Drive]:
    """The drives of two legs, and ``more`` of them, by name; those of ``passive`` joints are None."""
    drives = dict.fromkeys((*(f"{side} {name}" for side in SIDES for name in DRIVES), *more), drive)
    if unknown := sorted(set(passive) - set(drives)):
        raise ModelError(f"passive must be names of drives, got {unknown[0]!r}; {choices(unknown[0], drives)}")
    return drives | dict.fromkeys(passive)


def leg_angles(position: ArrayLike, rotation: np.ndarray, side: float, design: WalkerDesign) -> dict[str, float]:
    """Coordinates (rad) of a leg's chain when the pelvis is displaced by ``position`` (3,) and turned by ``rotation`` (3, 3).

    ``position``: of the pelvis's centre from the reference pose, m; ``side``: 1 for the left leg, -1 for the right one.
    """
    l, t = design.shank, design.thigh
    hip = np.asarray(position, dtype=float) + rotation @ (0.0, 0.5 * side * design.spacing, -design.hip_drop)
    x, y, z = hip - (0.0, 0.5 * side * design.spacing, -design.hip_drop - design.hip_height)  # of the hip from the ankle
    cosine = (x * x + y * y + z * z - l * l - t * t) / (2.0 * l * t)
    if not -1.0 < cosine < 1.0:
        raise ModelError(f"walker: the pelvis at {np.asarray(position)} m is out of the {'left' if side > 0 else 'right'} leg's reach")
    bend = acos(cosine)
    roll = atan2(-y, z)
    lean = atan2(x, hypot(y, z)) + atan2(t * sin(bend), l + t * cos(bend))
    Q = Rotation.from_euler("x", -roll).as_matrix() @ rotation  # = Ry(pitch of the bracket) Rx(hip roll) Rz(hip yaw)
    pitch = atan2(Q[0, 2], Q[2, 2])
    first_lean, first_thigh = design.reference
    return {
        "ankle roll": roll,
        "ankle pitch": lean - first_lean,
        "knee": bend - design.knee_bend,
        "hip pitch": pitch - (lean - bend) + first_thigh,
        "hip roll": asin(-Q[1, 2]),
        "hip yaw": atan2(Q[1, 0], Q[1, 1]),
    }


@checked(position=numbers(3), rotation=numbers(3, 3))
def walker_drives(position: ArrayLike, rotation: np.ndarray, design: WalkerDesign | None = None) -> dict[str, float]:
    """Coordinates (m, rad) of the eight drives for a displacement (3,) and rotation (3, 3) of the pelvis from the reference pose."""
    design = WalkerDesign() if design is None else design
    values: dict[str, float] = {}
    for name, side in SIDES.items():
        angle = leg_angles(position, rotation, side, design)
        ankle = crank_turn(-angle["ankle pitch"], pivot=design.ankle_crank[0], tip=design.ankle_crank[1], end=design.ankle_arm)
        knee = strut_stroke(-angle["knee"], start=design.knee_strut[0], end=design.knee_strut[1])
        hip = crank_turn(-angle["hip pitch"], pivot=design.hip_crank[0], tip=design.hip_crank[1], end=design.hip_arm)
        values.update({f"{name} {drive}": value for drive, value in zip(DRIVES, (ankle, knee, hip, angle["hip roll"]))})
    return values


@sized
def dance(time: float, *, size: float = 1.0, period: float = 2.0, start: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Displacement (3,), m, and rotation (3, 3) of the pelvis: it sways, bobs and twists with ``period`` (s).

    From rest, growing to its full ``size`` within ``start`` (s); size 1 is 5 cm of sway and 9 degrees of twist.
    """
    beat = 2.0 * pi * time / period
    grown = size * smooth_step(time / start)
    displacement = grown * np.array([0.03 * sin(beat), 0.05 * sin(beat), -0.03 + 0.03 * cos(2.0 * beat)])
    twist = grown * np.array([0.08 * sin(beat + 0.6), 0.06 * sin(2.0 * beat), 0.16 * sin(beat + 1.2)])
    return displacement, Rotation.from_rotvec(twist).as_matrix()


@sized
def walker_motion(
    pose: Callable[[float], tuple[np.ndarray, np.ndarray]] = dance, design: WalkerDesign | None = None
) -> DriveMotion:
    """Targets of the eight drives over time that move the pelvis as ``pose`` says: (displacement, rotation) at a time in s."""

    @lru_cache(maxsize=20_000)  # eight drives ask for the same times
    def drives(time: float) -> dict[str, float]:
        return walker_drives(*pose(time), design)

    def target(name: str) -> Callable[[float], float]:
        return lambda time: drives(time)[name]

    return {f"{side} {drive}": target(f"{side} {drive}") for side in SIDES for drive in DRIVES}
