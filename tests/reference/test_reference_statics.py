"""Reactions where redundant hinges share a load: equilibrium always; how they share it is the least norm's choice."""
from __future__ import annotations

import numpy as np
import pytest
from published import problem, simulate

from dalembert import zoo

STATICS = problem("static_redundant_reactions")
DOOR = STATICS["parameters"]["door"]



def imbalance(hinge: str) -> np.ndarray:
    """(N,) largest component of what is left of weight and reactions, in N and N m about the origin."""
    trajectory = simulate(zoo.door(hinge), 0.01, 1.0)
    weight = np.array([0.0, 0.0, -DOOR["m"] * DOOR["g"]])
    force, torque = np.tile(weight, (len(trajectory), 1)), np.tile(np.cross(DOOR["com"], weight), (len(trajectory), 1))
    for name, z in zip(("lower", "upper"), DOOR["hinge_z"]):
        joint = trajectory.joint(name)
        force += joint.force
        torque += joint.torque + np.cross((0.0, 0.0, z), joint.force)
    return np.abs(np.hstack([force, torque])).max(axis=1)


@pytest.mark.parametrize("hinge", ["revolute", "spherical"])
def test_door_hangs_in_equilibrium(hinge: str) -> None:
    """Forces and torques of the hinges balance the weight to 1e-9 N and N m."""
    assert imbalance(hinge)[1:-1].max() < 1e-9


@pytest.mark.parametrize("hinge", ["revolute", "spherical"])
def test_door_hangs_in_equilibrium_at_the_ends(hinge: str) -> None:
    """The same at the first and the last knot of a run."""
    assert imbalance(hinge)[[0, -1]].max() < 1e-9
