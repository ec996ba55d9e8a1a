"""A biped with the legs of Agility's Cassie: two closed loops in each, leaf springs in one of them, and feet like blades.

The achilles rod goes from the thigh to the tarsus and keeps the two nearly parallel while the knee bends; the plantar rod turns the foot
by a crank on the tarsus. Points and masses are those of the robot in the stance of its published model, rounded, with rods for slender links.
"""
from __future__ import annotations

import numpy as np

from dalembert.mechanism.forces import Servo
from dalembert.mechanism.joints import Revolute
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.shapes import Box, Capsule, Cylinder, Ellipsoid
from dalembert.zoo.drives import rod_ends
from dalembert.zoo.links import rod_between, sized

#: compact bodies: mass (kg), centre of mass (m) and principal inertia (kg m^2) on the left
BODIES = {
    "roll": (1.82, (-0.023, 0.135, 1.024), (0.00213, 0.00379, 0.00343)),
    "yaw": (1.17, (-0.049, 0.135, 0.972), (0.00244, 0.0028, 0.00084)),
    "thigh": (5.52, (-0.021, 0.171, 0.864), (0.0252, 0.0303, 0.0154)),
    "knee link": (0.944, (0.011, 0.134, 0.747), (0.0022, 0.0032, 0.0014)),
    "crank": (0.126, (-0.251, 0.113, 0.319), (0.00004, 0.00006, 0.00004)),
}
#: points of the leg on the left, m
HIP, KNEE, SHIN, ANKLE = (-0.049, 0.135, 0.916), (0.008, 0.135, 0.810), (0.005, 0.135, 0.734), (-0.260, 0.135, 0.389)
HEEL, HEEL_TIP, ACHILLES = (-0.292, 0.132, 0.378), (-0.319, 0.128, 0.495), (-0.049, 0.090, 0.916)
CRANK, CRANK_TIP, PLANTAR, TOE = (-0.247, 0.119, 0.323), (-0.287, 0.119, 0.284), (-0.060, 0.119, 0.018), (-0.020, 0.135, 0.057)
#: radius of the feet and half their length, m
FOOT, REACH = 0.02, 0.08
#: motors: stiffness (N m/rad) and damping (N m s/rad) of their control, largest torque (N m), inertia of the rotor (kg m^2), limits (rad), and
#: the torque that carries the weight in the stance (N m)
MOTORS = {
    "hip roll": (400.0, 15.0, 112.5, 0.038, (-0.26, 0.39), 0.0), "hip yaw": (300.0, 10.0, 112.5, 0.038, (-0.39, 0.39), 0.0),
    "hip pitch": (600.0, 20.0, 195.0, 0.093, (-1.3, 0.9), 5.5), "knee": (800.0, 25.0, 195.0, 0.093, (-0.5, 1.6), -38.9),
    "toe": (400.0, 12.0, 45.0, 0.012, (-0.9, 0.9), 1.0),
}
#: leaf springs: stiffness (N m/rad), damping (N m s/rad), and the torque that carries the weight in the stance (N m)
SPRINGS = {"shin": (1500.0, 5.0, -52.4), "heel": (1250.0, 5.0, -31.2)}


@sized
def biped(*, friction: float = 0.8, clearance: float = 0.0, springs: float = 1.0) -> Mechanism:
    """Pelvis and two closed legs, 23 bodies and 33 kg, feet ``clearance`` (m) above the ground.

    Bodies "pelvis" and, of each side, "left roll", "left yaw", "left thigh", "left knee link", "left shin", "left tarsus", "left heel spring", "left
    achilles rod", "left crank", "left plantar rod", "left foot". Motors are servos, "left hip roll", "left hip yaw", "left hip pitch", "left knee" and
    "left toe", whose targets hold the stance under the weight; all angles are zero there, and positive ones bend the knee. ``springs``: factor
    on the stiffness of the leaf springs. Twenty freedoms: six of the pelvis, five motors and two springs in each leg.
    """
    mechanism = Mechanism("biped")
    mechanism.ground(friction=friction)
    lift = np.array([0.0, 0.0, clearance])
    mechanism.body("pelvis", mass=10.33, inertia=np.diag([0.0858, 0.0492, 0.0863]), position=np.array([0.051, 0.0, 1.034]) + lift)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        _leg(mechanism, side, lift, np.array([1.0, sign, 1.0]), springs)
    _dress(mechanism)
    return mechanism


def _leg(mechanism: Mechanism, side: str, lift: np.ndarray, mirror: np.ndarray, springs: float) -> None:
    """One leg; ``mirror`` takes points of the left one to its side."""
    def at(point: tuple[float, float, float]) -> np.ndarray:
        return mirror * point + lift

    def motor(name: str, axis: str, sign: float = 1.0) -> Revolute:
        stiffness, damping, bound, armature, (low, high), load = MOTORS[name]
        servo = Servo(stiffness=stiffness, damping=damping, bound=bound, target=load / stiffness)
        return Revolute(axis=axis, servo=servo, armature=armature, limits=(low, high) if sign > 0.0 else (-high, -low))

    for part, (mass, centre, inertia) in BODIES.items():
        mechanism.body(f"{side} {part}", mass=mass, inertia=np.diag(inertia), position=at(centre))
    links = {"shin": (SHIN, ANKLE, 0.577, 0.025), "tarsus": (ANKLE, TOE, 0.782, 0.022), "heel spring": (HEEL, HEEL_TIP, 0.126, 0.012),
             "achilles rod": (ACHILLES, HEEL_TIP, 0.157, 0.008), "plantar rod": (CRANK_TIP, PLANTAR, 0.119, 0.007)}
    for part, (start, end, mass, radius) in links.items():
        rod_between(mechanism, f"{side} {part}", at(start), at(end), mass=mass, radius=radius)
    mechanism.body(f"{side} foot", Capsule(radius=FOOT, length=2.0 * REACH, mass=0.15, axis="x"), position=at((0.0, 0.135, FOOT)))
    hinge, across = Revolute(axis="y"), mirror[1]
    shin, heel = (Revolute(axis="y", stiffness=springs * k, damping=d, rest=load / (springs * k)) for k, d, load in SPRINGS.values())
    joints = [
        ("hip roll", motor("hip roll", "x", across), "pelvis", "roll", (0.021, 0.135, 1.006)), ("hip yaw", motor("hip yaw", "z", across), "roll", "yaw", (-0.049, 0.135, 1.006)),
        ("hip pitch", motor("hip pitch", "y"), "yaw", "thigh", HIP), ("knee", motor("knee", "y"), "thigh", "knee link", KNEE), ("shin flex", shin, "knee link", "shin", SHIN),
        ("ankle", hinge, "shin", "tarsus", ANKLE), ("heel flex", heel, "tarsus", "heel spring", HEEL), ("toe", motor("toe", "y"), "tarsus", "crank", CRANK),
        ("foot pivot", hinge, "tarsus", "foot", TOE),
    ]
    for name, kind, parent, child, point in joints:
        mechanism.joint(f"{side} {name}", kind, parent if parent == "pelvis" else f"{side} {parent}", f"{side} {child}", at=at(point))
    for rod, start, end, first, last in (("achilles", ACHILLES, HEEL_TIP, "thigh", "heel spring"), ("plantar", CRANK_TIP, PLANTAR, "crank", "foot")):
        top, bottom = rod_ends((0.0, 1.0, 0.0), at(end) - at(start))
        mechanism.joint(f"{side} {rod} top", top, f"{side} {first}", f"{side} {rod} rod", at=at(start))
        mechanism.joint(f"{side} {rod} end", bottom, f"{side} {rod} rod", f"{side} {last}", at=at(end))
    for x in (-REACH, REACH):
        mechanism.contact_point(f"{side} foot", point=(x, 0.0, 0.0), radius=FOOT)


def _dress(mechanism: Mechanism) -> None:
    """What it looks like."""
    light, dark, metal = (0.74, 0.78, 0.84, 1.0), (0.2, 0.22, 0.26, 1.0), (0.55, 0.57, 0.6, 1.0)
    mechanism.visual("pelvis", Ellipsoid(semi_axes=(0.15, 0.12, 0.13), mass=1.0), colour=light)
    mechanism.visual("pelvis", Box(size=(0.12, 0.3, 0.08), mass=1.0), position=(-0.05, 0.0, -0.03), colour=dark)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        centre = np.array(BODIES["thigh"][1])
        hip, knee = (np.array([1.0, sign, 1.0]) * (np.array(point) - centre) for point in (HIP, KNEE))
        mechanism.visual(f"{side} roll", Cylinder(radius=0.06, length=0.1, mass=1.0, axis="x"), colour=dark)
        mechanism.visual(f"{side} yaw", Cylinder(radius=0.05, length=0.09, mass=1.0), colour=light)
        mechanism.visual(f"{side} thigh", Cylinder(radius=0.06, length=0.1, mass=1.0, axis="y"), position=hip, colour=dark)
        mechanism.visual(f"{side} thigh", Cylinder(radius=0.06, length=0.1, mass=1.0, axis="y"), position=knee, colour=dark)
        mechanism.visual(f"{side} thigh", Capsule(radius=0.055, length=0.12, mass=1.0), position=0.5 * (hip + knee), colour=light)
        mechanism.visual(f"{side} knee link", Capsule(radius=0.03, length=0.08, mass=1.0), colour=metal)
        mechanism.visual(f"{side} crank", Cylinder(radius=0.03, length=0.03, mass=1.0, axis="y"), colour=metal)
