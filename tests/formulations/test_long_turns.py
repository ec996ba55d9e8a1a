"""Wheels that turn for hours, and wheels that turn far within a step."""
from __future__ import annotations

import warnings

import numpy as np
import pytest

import dalembert as da

RATE = 100.0  # rad/s


def gears(ratio: float, armature: float = 0.0, turns: float = 0.0) -> da.Mechanism:
    """Two wheels, which have made a number of ``turns``."""
    made = da.Mechanism("gears", gravity=(0, 0, 0))
    made.body("a", da.Cylinder(radius=0.1, length=0.02, mass=1.0))
    made.body("b", da.Cylinder(radius=0.1, length=0.02, mass=1.0), position=(0.5, 0, 0))
    made.joint("fast", da.Revolute(axis="z", armature=armature), "world", "a")
    made.joint("slow", da.Revolute(axis="z"), "world", "b", at=(0.5, 0, 0))
    made.gear("gear", "fast", "slow", ratio=ratio)
    made.start("fast", 2.0 * np.pi * turns, rate=RATE)
    made.start("slow", 2.0 * np.pi * turns / ratio, rate=RATE / ratio)
    return made


@pytest.mark.parametrize("formulation", [da.Variational(dt=0.001), da.Implicit(dt=0.001), da.Reduced(dt=0.001)], ids=["variational", "implicit", "reduced"])
@pytest.mark.parametrize("armature", [0.0, 0.01], ids=["plain", "rotor"])
@pytest.mark.parametrize("ratio", [3.0, 1000.0, np.pi], ids=["3", "1000", "pi"])
def test_gears_hold_at_the_end_of_ten_hours(formulation, ratio, armature):
    """The last second of ten hours at 100 rad/s, which begins after 573,000 turns."""
    run = da.Simulation(gears(ratio, armature, 573_000.0), formulation).run(1.0)
    fast, slow = run.joint("fast"), run.joint("slow")
    np.testing.assert_allclose(fast.coordinates, ratio * slow.coordinates, rtol=0.0, atol=1e-9)
    # BDF2 to its order in Implicit; in Reduced to the rounding of the angle over the step
    np.testing.assert_allclose(fast.rates, ratio * slow.rates, rtol=0.0, atol={"Variational": 1e-8, "Implicit": 0.1, "Reduced": 1e-5}[type(formulation).__name__])
    assert (run.substeps[1:] == 1).all()
    assert run.iterations[2:].max() < 10


def test_gears_that_have_turned_for_long_move_as_those_that_have_not():
    first, later = (da.Simulation(gears(3.0, turns=turns), da.Variational(dt=0.001)).run(0.5) for turns in (0.0, 573_000.0))
    np.testing.assert_allclose(later.joint("fast").rates, first.joint("fast").rates, rtol=0.0, atol=1e-8)
    moved = later.joint("fast").coordinates - later.joint("fast").coordinates[0]
    np.testing.assert_allclose(moved, first.joint("fast").coordinates, rtol=0.0, atol=2e-9)


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [3.0, 1000.0])
def test_ten_hours(ratio):
    """36 million steps, of which each is run, every 100 s are looked at, and of every tenth such stretch all knots: three to five minutes."""
    sim = da.Simulation(gears(ratio), da.Variational(dt=0.001))
    for stretch in range(360):
        run = sim.run(100.0)
        assert sim.coordinates("fast")[0] == pytest.approx(ratio * sim.coordinates("slow")[0], rel=0.0, abs=1e-9)
        if stretch % 10 == 9:
            np.testing.assert_allclose(run.joint("fast").coordinates, ratio * run.joint("slow").coordinates, rtol=0.0, atol=1e-9)
    assert sim.time == pytest.approx(36_000.0)
    assert sim.rates("fast")[0] == pytest.approx(RATE, rel=1e-6)


def test_far_turns_are_warned_of_with_their_error_and_a_remedy():
    wheel = da.Mechanism("wheel", gravity=(0, 0, 0))
    wheel.body("rotor", da.Cylinder(radius=0.1, length=0.02, mass=1.0))
    wheel.joint("axle", da.Revolute(axis="z"), "world", "rotor")
    wheel.start("axle", rate=60.0)
    sim = da.Simulation(wheel, da.Variational(dt=0.01))
    with pytest.warns(da.TurnWarning, match="'rotor' turns by 0.64 rad within a step") as told:
        run = sim.run(1.0)
    ahead = run.joint("axle").coordinates[-1] / 60.0 - 1.0
    assert da.Variational.turn_error(float(np.arcsin(0.6))) == pytest.approx(ahead, rel=1e-6)
    assert f"{ahead:.2g}" in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error", da.TurnWarning)
        exact = da.Simulation(wheel, da.Reduced(dt=0.01)).run(1.0)
        da.Simulation(wheel, da.Variational(dt=0.002)).run(0.1)
    assert exact.joint("axle").coordinates[-1] == pytest.approx(60.0, abs=1e-9)
