"""A shoulder whose blade glides along a curve on the ribs, with an arm on it (Lee and Terzopoulos 2008; RedMax 2.4.12)."""
from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.mechanism.joints import Revolute, Spherical
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.moving_joints import SplineCurve
from dalembert.mechanism.shapes import Box, Capsule
from dalembert.zoo.links import sized


@sized
def spline_shoulder(*, ribs: float = 0.14, stiffness: float = 4.0, damping: float = 0.3, raised: float = 1.0) -> Mechanism:
    """A shoulder blade on ribs of radius ``ribs`` (m), held by a spring (N m per unit of the curve), with an arm that starts ``raised`` (rad).

    Bodies "blade", "upper arm" and "forearm"; joints "girdle", a spline curve, "shoulder", a ball, and "elbow", a hinge. For
    ``Reduced``: a spline is no set of equations between two bodies.
    """
    mechanism = Mechanism("shoulder on a spline")
    angles = np.linspace(-0.5, 1.1, 8)  # round the ribs, from low to raised
    frames = []
    for angle in angles:
        # the blade turns with the ribs, and tips the faster the higher it is
        turn = Rotation.from_rotvec((-angle, 0.0, 0.0)) * Rotation.from_rotvec((0.0, 0.15 * (angle + 0.5) ** 2, 0.0))
        frames.append([0.0, ribs * np.cos(angle), 1.4 * ribs * np.sin(angle), *turn.as_quat(scalar_first=True)])
    curve = SplineCurve(frames, stiffness=stiffness, damping=damping, rest=1.5)
    home = curve.motion(np.zeros(1))
    outwards = home[:3, :3] @ np.array([0.0, 0.02, 0.0])
    centre, turn = home[:3, 3] + outwards, Rotation.from_matrix(home[:3, :3]).as_quat(scalar_first=True)
    blade = mechanism.body("blade", Box(size=(0.1, 0.02, 0.14), mass=0.4), position=centre, orientation=turn)
    mechanism.joint("girdle", curve, mechanism.world, blade)
    ball = centre + home[:3, :3] @ np.array([0.0, 0.02, 0.06])
    upper = mechanism.body("upper arm", Capsule(length=0.3, radius=0.035, mass=2.0), position=ball - (0.0, 0.0, 0.15))
    lower = mechanism.body("forearm", Capsule(length=0.26, radius=0.03, mass=1.2), position=ball - (0.0, 0.0, 0.43))
    mechanism.joint("shoulder", Spherical(damping=0.05), blade, upper, at=ball)
    mechanism.joint("elbow", Revolute(axis="x", damping=0.03), upper, lower, at=ball - (0.0, 0.0, 0.3))
    mechanism.start("girdle", 1.5)
    mechanism.start("shoulder", (raised, 0.0, 0.0))
    mechanism.start("elbow", 0.6)
    return mechanism
