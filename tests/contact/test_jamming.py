"""Bearings whose friction feeds itself have no sliding motion: a step that fails there says so."""
from __future__ import annotations

import pytest

import dalembert as da


def plate(radius: float) -> da.Mechanism:
    """A light body on a plate of a given radius, its weight far beside it."""
    mechanism = da.Mechanism("plate")
    body = mechanism.body(
        "body", mass=0.00782, inertia=((4.94e-05, 0.0, 0.0), (0.0, 6.15e-05, 0.0), (0.0, 0.0, 0.000107)), position=(0.288, -0.482, -0.755),
        orientation=(2.03, -1.64, 0.071, -0.114),
    )
    bearing = da.Bearing(friction=0.379, radius=radius, length=0.1)
    mechanism.joint("joint", da.Planar(normal=(1.98, 0.273, -1.06), bearing=bearing), mechanism.world, body, at=(0.389, -0.554, -0.676), frame=(0.518, -0.0602, -2.22, 1.58))
    return mechanism


def test_a_bearing_that_jams_is_named():
    sim = da.Simulation(plate(0.005), da.Implicit(dt=0.003, method="bdf1"))
    sim.set_joint("joint", rate=(-0.111, -0.246, -0.0649))
    with pytest.raises(da.StepFailure, match=r"Bearings can jam there.*'joint' \(by 14\.\d+\).*a smaller dt does not help"):
        sim.run(0.03)


def test_a_wide_bearing_slides():
    sim = da.Simulation(plate(0.2), da.Implicit(dt=0.011, method="bdf1"))
    sim.set_joint("joint", rate=(-0.111, -0.246, -0.0649))
    assert len(sim.run(0.11)) == 11
