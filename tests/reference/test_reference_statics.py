"""Reactions where redundant hinges share a load: equilibrium always; how they share it is the least norm's choice."""
from __future__ import annotations

import numpy as np
import pytest
from published import problem, simulate

from dalembert import zoo

STATICS = problem("static_redundant_reactions")
DOOR = STATICS["parameters"]["door"]


@pytest.mark.parametrize("hinge", ["revolute", "spherical"])
def test_door_hangs_in_equilibrium(hinge: str) -> None:
    """Forces and torques of the hinges balance the weight to 1e-9 N and N m, and do not change in time."""
    trajectory = simulate(zoo.door(hinge), 0.01, 1.0, tolerance=1e-14)
    weight = np.array([0.0, 0.0, -DOOR["m"] * DOOR["g"]])
    force, torque = weight, np.cross(DOOR["com"], weight)
    for name, z in zip(("lower", "upper"), DOOR["hinge_z"]):
        joint = trajectory.joint(name)
        force = force + joint.force
        torque = torque + joint.torque + np.cross((0.0, 0.0, z), joint.force)
    np.testing.assert_allclose(force, 0.0, atol=1e-9)
    np.testing.assert_allclose(torque, 0.0, atol=1e-9)
