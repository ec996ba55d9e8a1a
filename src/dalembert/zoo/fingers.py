"""Fingers of three bones in a plane: one angle that bends them all (RedMax 2.6), and a tendon that pulls them."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dalembert.mechanism.joints import Revolute
from dalembert.mechanism.mechanism import Body, Mechanism
from dalembert.mechanism.shapes import Box
from dalembert.zoo.links import sized

#: bones from the knuckle to the tip, m and kg
LENGTHS, MASSES, THICKNESS = (0.05, 0.03, 0.02), (0.06, 0.03, 0.015), 0.014


def _bones(mechanism: Mechanism, stiffness: float, damping: float) -> list[Body]:
    """Bones along x in the reference pose, on the joints "knuckle", "middle" and "end", which bend down."""
    bodies, last, reach = [], mechanism.world, 0.0
    for name, joint, length, mass in zip(("proximal", "intermediate", "distal"), ("knuckle", "middle", "end"), LENGTHS, MASSES):
        bone = mechanism.body(name, Box(size=(length, THICKNESS, THICKNESS), mass=mass), position=(reach + 0.5 * length, 0.0, 0.0))
        mechanism.joint(joint, Revolute(axis="y", stiffness=stiffness, damping=damping), last, bone, at=(reach, 0.0, 0.0))
        bodies.append(bone)
        last, reach = bone, reach + length
    return bodies


@sized
def curling_finger(
    *, bend: Sequence[float] = (1.0, 0.9, 0.6), curvature: Sequence[float] = (0.0, 0.0, 0.0), curl: float = 0.2, rate: float = 0.0,
    stiffness: float = 0.0, damping: float = 0.0,
) -> Mechanism:
    """A finger that one angle bends: the coordinate map "curl" sets each joint to bend y + curvature y^2.

    Without ``curvature`` the map is a matrix, with it a function, which no model file can hold. ``curl`` (rad) and ``rate`` (rad/s): where it starts; ``stiffness`` (N m/rad)
    and ``damping`` (N m s/rad) of every joint. Bodies "proximal", "intermediate", "distal", joints "knuckle", "middle", "end".
    """
    mechanism = Mechanism("curling finger")
    _bones(mechanism, stiffness, damping)
    joints, first, second = ["knuckle", "middle", "end"], np.array(bend, dtype=float), np.array(curvature, dtype=float)
    if second.any():
        mechanism.coordinate_map(
            "curl", joints, function=lambda y: first * y[0] + second * y[0] ** 2, jacobian=lambda y: first + 2.0 * second * y[0])
    else:
        mechanism.coordinate_map("curl", joints, matrix=first)
    mechanism.start("curl", curl, rate=rate)
    return mechanism


@sized
def cable_finger(
    *, cable: float = 2e4, rest: float = 0.0, stiffness: float = 0.02, damping: float = 2e-4, pull: float = 0.0, lever: float = 0.008,
) -> Mechanism:
    """A finger that a tendon closes against springs in its joints: the cable "tendon" runs ``lever`` (m) below their axes.

    ``cable`` (N/m) and how far it is pulled in, ``pull`` (m); ``stiffness`` (N m/rad) and ``damping`` (N m s/rad) of the joints,
    which are straight at ``rest`` (rad). A controller may add to the tendon's tension. No gravity.
    """
    mechanism = Mechanism("cable-driven finger", gravity=(0.0, 0.0, 0.0))
    bones = _bones(mechanism, stiffness, damping)
    for joint in ("knuckle", "middle", "end"):
        mechanism.start(joint, rest)
    # guides on both sides of every joint keep the tendon's lever about it
    guides: list[tuple[Body, tuple[float, float, float]]] = [(mechanism.world, (-0.02, 0.0, -lever)), (mechanism.world, (-0.2 * LENGTHS[2], 0.0, -lever))]
    reach = 0.0
    for bone, length in zip(bones, LENGTHS):
        guides += [(bone, (reach + 0.2 * LENGTHS[2], 0.0, -lever)), (bone, (reach + length - 0.2 * LENGTHS[2], 0.0, -lever))]
        reach += length
    straight = float(sum(np.linalg.norm(np.diff([np.array(point) for _, point in guides], axis=0), axis=1)))
    mechanism.cable("tendon", guides, stiffness=cable, length=straight - pull, drive="force")
    return mechanism
