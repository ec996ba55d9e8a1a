"""Bearings whose friction feeds itself: what slides in one stops at once, or has no motion, and then the step that fails says so."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

FORMULATIONS = {
    "variational": lambda dt: da.Variational(dt=dt), "bdf1": lambda dt: da.Implicit(dt=dt, method="bdf1"), "bdf2": lambda dt: da.Implicit(dt=dt),
    "reduced": lambda dt: da.Reduced(dt=dt),
}


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


@pytest.mark.parametrize("name", FORMULATIONS)
def test_what_slides_in_a_bearing_that_jams_stops_at_once(name):
    """Friction takes the slides away, turns them into a turn, and takes energy out: alike in all formulations, whatever the step."""
    ends = []
    for dt in (0.003, 0.00075):
        sim = da.Simulation(plate(0.005), FORMULATIONS[name](dt))
        sim.set_joint("joint", rate=(-0.111, -0.246, -0.0649))
        run = sim.run(0.03)
        rates, energy = run.joint("joint").rates, run.energy().total
        assert np.abs(rates[1:, :2]).max() < 1e-3
        assert np.all(np.diff(energy[1:]) < 1e-3 * (energy[0] - energy[-1]))
        assert energy[1] < energy[0]
        ends.append(run.position[-1, 0])
    assert np.linalg.norm(ends[1] - (0.28904, -0.48085, -0.75528)) < 1.2e-4


def test_a_bearing_that_jams_is_named():
    """Here not even a stop is a motion."""
    for formulation in (da.Variational(dt=0.001), da.Implicit(dt=0.001), da.Reduced(dt=0.00006)):
        mechanism = da.Mechanism("plate")
        body = mechanism.body("body", mass=8.93, inertia=np.diag((0.13, 0.104, 0.0425)), position=(0.32, 0.551, 0.0678), orientation=(-1.57, 1.49, -0.126, -1.04))
        plate = da.Planar(normal=(-1.07, 1.48, 0.664), bearing=da.Bearing(friction=0.53, radius=0.00874, length=0.0417))
        mechanism.joint("joint", plate, mechanism.world, body, at=(0.154, 0.4, 0.0111))
        sim = da.Simulation(mechanism, formulation)
        sim.set_joint("joint", rate=(-0.329, -0.13, -2.32))
        with pytest.raises(da.StepFailure, match=r"Bearings can jam there.*'joint' \(by 6\.\d+\).*whatever dt"):
            sim.run(20.0 * formulation.dt)


def test_a_wide_bearing_slides():
    sim = da.Simulation(plate(0.2), da.Implicit(dt=0.011, method="bdf1"))
    sim.set_joint("joint", rate=(-0.111, -0.246, -0.0649))
    assert len(sim.run(0.11)) == 11
