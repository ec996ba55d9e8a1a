"""A quadruped with the dimensions and masses of the Unitree A1, and the leg controller of Variational Algorithm 6."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.mechanism.joints import Revolute
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.shapes import Box, Capsule, Cylinder, Sphere
from dalembert.zoo.links import sized

#: stiffness (N m/rad) and damping (N m s/rad) of the joints' controllers
GAINS = {"hip": (100.0, 5.0), "thigh": (80.0, 4.0), "calf": (60.0, 3.0)}
#: x and y sides of the legs, and the phase of each: diagonal legs go together
LEGS = {"front right": (1.0, -1.0, 0.0), "front left": (1.0, 1.0, np.pi), "back right": (-1.0, -1.0, np.pi), "back left": (-1.0, 1.0, 0.0)}

SEGMENT = 0.2  # thigh and calf, m
FOOT = 0.02  # radius, m


@dataclass(frozen=True, kw_only=True)
class Gait:
    """Variational Algorithm 6: thigh = a1 cos(20 pi b t + phase) + d1, calf = a2 cos(20 pi b t + phase - pi/2) + d2."""

    b: float = 0.1
    a1: float = 0.0
    d1: float = 1.0
    a2: float = 0.0
    d2: float = -1.5

    def angles(self, time: float, phase: float) -> dict[str, float]:
        """Wanted angles (rad) of one leg's joints."""
        turn = 20.0 * np.pi * self.b * time + phase
        return {"hip": 0.0, "thigh": self.a1 * np.cos(turn) + self.d1, "calf": self.a2 * np.cos(turn - 0.5 * np.pi) + self.d2}


#: legs still
STANDING = Gait()
#: a trot
WALKING = Gait(b=0.2, a1=0.25, d1=0.8, a2=-0.3, d2=-1.5)


@sized
def quadruped(*, gait: Gait = STANDING, friction: float = 0.8, clearance: float = 0.0) -> Mechanism:
    """Trunk and four legs of hip, thigh and calf, feet ``clearance`` (m) above the ground in the pose that ``gait`` starts with.

    Bodies "trunk" and "front right thigh", ...; joints of the same names as the leg's bodies with " joint" appended. The
    proportional and derivative gains of the controller are springs and dampers of the joints; ``leg_controller`` adds the rest.
    """
    mechanism = Mechanism("quadruped")
    mechanism.ground(friction=friction)
    start = {leg: gait.angles(0.0, phase) for leg, (_, _, phase) in LEGS.items()}
    reach = max(SEGMENT * (np.cos(a["thigh"]) + np.cos(a["thigh"] + a["calf"])) for a in start.values())
    height = reach + FOOT + clearance
    mechanism.body("trunk", mass=4.713, inertia=np.diag([0.01684, 0.05658, 0.06479]), position=(0.0, 0.0, height))
    for leg, (x, y, _) in LEGS.items():
        hip = np.array([0.1805 * x, 0.047 * y, height])
        knee = hip + np.array([0.0, 0.0838 * y, 0.0])
        mechanism.body(f"{leg} hip", mass=0.696, inertia=np.diag([0.000469, 0.000807, 0.000553]), position=hip)
        mechanism.body(f"{leg} thigh", mass=1.013, inertia=np.diag([0.005529, 0.005139, 0.001368]), position=knee - (0.0, 0.0, 0.03))
        mechanism.body(f"{leg} calf", mass=0.226, inertia=np.diag([0.0042, 0.0042, 0.00004]), position=knee - (0.0, 0.0, SEGMENT + 0.12))
        chain = [("trunk", "hip", hip, "x"), (f"{leg} hip", "thigh", knee, "y"), (f"{leg} thigh", "calf", knee - (0.0, 0.0, SEGMENT), "y")]
        for parent, part, at, axis in chain:
            stiffness, damping = GAINS[part]
            kind = Revolute(axis=axis, stiffness=stiffness, damping=damping, drive="force")
            mechanism.joint(f"{leg} {part} joint", kind, parent, f"{leg} {part}", at=at)
            mechanism.start(f"{leg} {part} joint", start[leg][part])
        mechanism.contact_point(f"{leg} calf", point=(0.0, 0.0, 0.12 - SEGMENT), radius=FOOT)
    _dress(mechanism)
    return mechanism


def _dress(mechanism: Mechanism) -> None:
    """What it looks like."""
    light, dark = (0.74, 0.78, 0.84, 1.0), (0.2, 0.22, 0.26, 1.0)
    mechanism.visual("trunk", Capsule(radius=0.065, length=0.3, mass=1.0, axis="x"), colour=light)
    mechanism.visual("trunk", Box(size=(0.24, 0.15, 0.08), mass=1.0), colour=light)
    mechanism.visual("trunk", Sphere(radius=0.035, mass=1.0), position=(0.2, 0.0, 0.02), colour=dark)
    for leg in LEGS:
        mechanism.visual(f"{leg} hip", Cylinder(radius=0.046, length=0.08, mass=1.0, axis="x"), colour=dark)
        mechanism.visual(f"{leg} thigh", Capsule(radius=0.026, length=SEGMENT, mass=1.0), position=(0.0, 0.0, 0.03 - SEGMENT / 2), colour=light)
        mechanism.visual(f"{leg} thigh", Cylinder(radius=0.042, length=0.05, mass=1.0, axis="y"), position=(0.0, 0.0, 0.03), colour=dark)
        mechanism.visual(f"{leg} calf", Capsule(radius=0.014, length=SEGMENT, mass=1.0), position=(0.0, 0.0, 0.12 - SEGMENT / 2), colour=dark)


@sized
def leg_torques(gait: Gait = WALKING) -> dict[str, Callable[[float], float]]:
    """Torques (N m) by joint over time (s), for ``Simulation.set_input``: what the springs and dampers of ``quadruped`` lack of Algorithm 6."""

    def torque(part: str, phase: float) -> Callable[[float], float]:
        return lambda time: GAINS[part][0] * gait.angles(time, phase)[part]

    return {f"{leg} {part} joint": torque(part, phase) for leg, (_, _, phase) in LEGS.items() for part in GAINS}


@sized
def leg_controller(gait: Gait = WALKING) -> Callable[[Any], dict[str, float]]:
    """The controller of Variational Algorithm 6 for ``quadruped``: what its springs and dampers lack of the PD law."""
    torques = leg_torques(gait)
    return lambda sim: {joint: torque(sim.time) for joint, torque in torques.items()}
