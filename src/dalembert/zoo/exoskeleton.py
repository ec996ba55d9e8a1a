"""An arm in an exoskeleton with four motors and two cuffs (Variational 5.4), and its tracking controller (Algorithm 8)."""
from __future__ import annotations

from collections.abc import Callable
from math import cos, pi, sin

import numpy as np

from dalembert.checks import POSITIVE, checked, choices
from dalembert.errors import ModelError
from dalembert.mechanism.joints import Planar, Revolute, Spherical
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.shapes import Box, Capsule, Cylinder
from dalembert.zoo.links import rod_between

#: stiffness (N m/rad) and damping (N m s/rad) of the motors' controllers at a scale of 1 (Variational, Algorithm 8)
GAINS = {"flexion": (100.0, 10.0), "elbow": (50.0, 5.0)}
#: what the patient's own elbow does against its motion: stiffness (N m/rad) towards the straight arm, and damping (N m s/rad)
PATIENTS = {"healthy": (0.0, 0.1), "spastic": (1.5, 1.0)}

UPPER, FORE = 0.30, 0.38  # upper arm; forearm with the hand, m
UPPER_CUFF, FORE_CUFF = 0.18, 0.20  # from the joint above, m
RAIL = 0.25  # of the exoskeleton along the forearm, m
ASIDE = 0.08  # the exoskeleton lies so far outside of the arm, m


@checked(scale=POSITIVE)
def exoskeleton(*, patient: str = "healthy", scale: float = 1.0, misalignment: float = 0.02) -> Mechanism:
    """An arm that hangs from the world, and an exoskeleton beside it that two cuffs tie to it: two loops that share links.

    The arm has a ball as shoulder and a hinge as elbow, about y; the exoskeleton has three motors at the shoulder ("rotation" about z,
    "abduction" about x, "flexion" about -y) and one at the elbow ("elbow" about y). Its centres lie ``misalignment`` (m) before and above those
    of the arm. Each cuff leaves two slides and a turn in the plane of the limb, with springs and dampers. ``patient``: "healthy", or "spastic", whose
    elbow is stiff. The gains of the tracking controller, times ``scale``, are springs and dampers of the motors; ``exoskeleton_tracking``
    adds the rest. It starts as the wanted motion does. x points forwards, y outwards; the paper gives no dimensions.
    """
    if patient not in PATIENTS:
        raise ModelError(f"exoskeleton: patient must be one of {', '.join(map(repr, PATIENTS))}, got {patient!r}; {choices(patient, PATIENTS)}")
    mechanism = Mechanism(f"exoskeleton on a {patient} arm")
    shoulder, elbow, hand = np.zeros(3), np.array([0.0, 0.0, -UPPER]), np.array([0.0, 0.0, -UPPER - FORE])
    shift = np.array([misalignment, ASIDE, misalignment])
    upper = rod_between(mechanism, "upper arm", shoulder, elbow, mass=2.0, radius=0.045)
    fore = rod_between(mechanism, "forearm", elbow, hand, mass=1.5, radius=0.035)
    yoke = mechanism.body("rotation yoke", Box(size=(0.04, 0.04, 0.04), mass=0.5), position=shift + np.array([0.0, 0.0, 0.1]))
    arch = mechanism.body("abduction arch", Box(size=(0.04, 0.04, 0.04), mass=0.5), position=shift + np.array([-0.1, 0.0, 0.0]))
    upper_rail = rod_between(mechanism, "upper rail", shift, shift + elbow, mass=0.8, radius=0.012)
    fore_rail = rod_between(mechanism, "fore rail", shift + elbow, shift + elbow + np.array([0.0, 0.0, -RAIL]), mass=0.4, radius=0.010)

    stiffness, damping = PATIENTS[patient]
    mechanism.joint("arm shoulder", Spherical(damping=0.1), mechanism.world, upper, at=shoulder)
    mechanism.joint("arm elbow", Revolute(axis="y", stiffness=stiffness, damping=damping), upper, fore, at=elbow)
    chain = [("rotation", "z", mechanism.world, yoke, shift), ("abduction", "x", yoke, arch, shift),
             ("flexion", "-y", arch, upper_rail, shift), ("elbow", "y", upper_rail, fore_rail, shift + elbow)]
    for name, axis, parent, child, at in chain:
        gains = np.array(GAINS.get(name, GAINS["flexion"])) * (scale if name in GAINS else 1.0)  # the other two hold their angle
        mechanism.joint(name, Revolute(axis=axis, stiffness=gains[0], damping=gains[1], drive="force"), parent, child, at=at)
    cuff = Planar(normal="y", stiffness=(1000.0, 1000.0, 10.0), damping=(50.0, 50.0, 0.5))
    mechanism.joint("upper cuff", cuff, upper_rail, upper, at=(0.0, 0.0, -UPPER_CUFF))
    mechanism.joint("fore cuff", cuff, fore_rail, fore, at=elbow + np.array([0.0, 0.0, -FORE_CUFF]))

    flexed, bent, rate = *exoskeleton_aims(0.0), 0.25 * pi
    mechanism.start("flexion", flexed, rate=rate)
    mechanism.start("elbow", bent, rate=rate)
    mechanism.start("arm shoulder", (0.0, -flexed, 0.0), rate=(0.0, -rate, 0.0))
    mechanism.start("arm elbow", bent, rate=rate)
    _dress(mechanism)
    return mechanism


@checked
def exoskeleton_aims(time: float) -> tuple[float, float]:
    """Wanted angles (rad) of shoulder flexion and elbow at ``time`` (s)."""
    return 0.25 * pi * (sin(time) + 1.0), 0.25 * pi * (sin(time) - 1.0)


@checked(scale=POSITIVE)
def exoskeleton_tracking(*, scale: float = 1.0) -> dict[str, Callable[[float], float]]:
    """Torques (N m) by motor over time, for ``Simulation.set_input``: what the springs and dampers of ``exoskeleton`` lack of Algorithm 8."""
    def torque(motor: int, gains: tuple[float, float]) -> Callable[[float], float]:
        return lambda time: scale * (gains[0] * exoskeleton_aims(time)[motor] + gains[1] * 0.25 * pi * cos(time))

    return {name: torque(motor, GAINS[name]) for motor, name in enumerate(GAINS)}


def _dress(mechanism: Mechanism) -> None:
    """What it looks like: limbs, rails, motors and cuffs."""
    skin, light, dark, soft = (0.87, 0.72, 0.6, 1.0), (0.74, 0.78, 0.84, 1.0), (0.2, 0.22, 0.26, 1.0), (0.35, 0.55, 0.75, 1.0)
    for body, length, radius, colour in (("upper arm", UPPER, 0.045, skin), ("forearm", FORE, 0.035, skin), ("upper rail", UPPER, 0.012, light), ("fore rail", RAIL, 0.01, light)):
        mechanism.visual(body, Capsule(radius=radius, length=length, mass=1.0, axis="x"), colour=colour)
    for rail, length in (("upper rail", UPPER), ("fore rail", RAIL)):
        mechanism.visual(rail, Cylinder(radius=0.03, length=0.04, mass=1.0, axis="y"), position=(-0.5 * length, 0.0, 0.0), colour=dark)
    for arm, length, along in (("upper arm", UPPER, UPPER_CUFF), ("forearm", FORE, FORE_CUFF)):
        mechanism.visual(arm, Cylinder(radius=0.052, length=0.06, mass=1.0, axis="x"), position=(along - 0.5 * length, 0.0, 0.0), colour=soft)
