"""Starts beyond the limits of joints are refused by name, and can be brought back."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

FORMULATIONS = [da.Variational(dt=0.005), da.Variational(dt=0.005, events="exact"), da.Implicit(dt=0.005), da.Reduced(dt=0.005)]


def arm(lower: float, upper: float) -> da.Mechanism:
    mechanism = da.Mechanism("arm")
    link = mechanism.body("link", da.Box(size=(0.1, 0.1, 0.5), mass=1.0), position=(0, 0, -0.25))
    mechanism.joint("hinge", da.Revolute(axis="y", limits=(lower, upper)), mechanism.world, link, at=(0, 0, 0))
    return mechanism


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=repr)
@pytest.mark.parametrize("runs", [False, True], ids=["start", "in motion"])
def test_a_state_beyond_the_limits(formulation, runs):
    """A state of a wider mechanism: refused at the first step, with joint, place and limits; nothing has moved; brought to the end, it runs."""
    wide, narrow = da.Simulation(arm(-2.0, 2.0), formulation), da.Simulation(arm(0.1, 0.5), formulation)
    wide.set_joint("hinge", 1.0)
    if runs:
        wide.run(0.02)
    narrow.restore(wide.state)
    here = narrow.coordinates("hinge")[0]
    with pytest.raises(da.LimitError, match=r"'hinge' at (1|0\.9\d+), its limits are 0\.1 and 0\.5") as caught:
        narrow.run(0.1)
    assert caught.value.beyond == [("hinge", pytest.approx(here - 0.5))]
    assert narrow.coordinates("hinge")[0] == here
    narrow.resolve_overlaps()
    assert narrow.coordinates("hinge")[0] == pytest.approx(0.5, abs=1e-9)
    values = narrow.run(0.5).joint("hinge").coordinates
    assert values.min() > 0.1 - 1e-7
    assert values.max() < 0.5 + 1e-7


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=repr)
def test_resting_on_an_end_is_no_start_beyond_it(formulation):
    sim = da.Simulation(arm(0.1, 0.5), formulation)
    sim.run(0.2)
    sim.set_joint("hinge", rate=0.0)
    sim.run(0.05)
    before = sim.position.copy()
    sim.resolve_overlaps()
    np.testing.assert_array_equal(sim.position, before)


def test_overlaps_that_limits_keep():
    """A ball in the ground that its slide does not let out: an error, and the simulation is as it was."""
    scene = da.Mechanism("stuck")
    scene.ground()
    ball = scene.body("ball", da.Sphere(radius=0.2, mass=1.0), position=(0, 0, 0.05), collide=True)
    scene.joint("slide", da.Prismatic(axis="z", limits=(-0.1, 0.1)), scene.world, ball)
    sim = da.Simulation(scene, da.Variational(dt=0.005))
    before = sim.position.copy()
    with pytest.raises(da.OverlapError, match="within the limits of its joints"):
        sim.resolve_overlaps()
    np.testing.assert_array_equal(sim.position, before)
