"""What is read just before and just after impacts of jointed bodies: energies, rates, forces of limits and friction apart."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.formulations.engine import SHARES


def pendulum(stop: str, restitution: float) -> da.Mechanism:
    """A bob of 1 kg on a massless arm of 1 m, falling on a stop: an end of its joint, or a wall."""
    mechanism = da.Mechanism("pendulum")
    mechanism.body("bob", da.Sphere(radius=0.05, mass=1.0), position=(1, 0, 0), collide=stop == "wall")
    ends, bouncing = ((None, 1.2), restitution) if stop == "limit" else (None, 0.0)
    mechanism.joint("hinge", da.Revolute(axis="y", limits=ends, restitution=bouncing), mechanism.world, "bob", at=(0, 0, 0))
    if stop == "wall":
        mechanism.obstacle("wall", da.Box(size=(0.2, 2, 2), mass=1.0), position=(0.1, 0, -1.0))
        mechanism.contact_pair("bob", "wall", restitution=restitution)
    return mechanism


def first_impact(trajectory: da.Trajectory) -> int:
    """The knot at which the pendulum turns back."""
    way = np.diff(trajectory.joint("hinge").coordinates)
    return int(np.argmax((way[:-1] > 0.0) & (way[1:] < 0.0))) + 1


@pytest.mark.parametrize("stop", ["limit", "wall"])
def test_an_elastic_stop_takes_no_energy(stop):
    worst = []
    for dt in (0.01, 0.005, 0.0025):
        energy = da.Simulation(pendulum(stop, 1.0), da.Variational(dt=dt)).run(1.2).energy_after().total
        worst.append(np.abs(energy - energy[0]).max())
    assert worst[0] < 0.01
    assert worst[0] / worst[1] == pytest.approx(4.0, rel=0.15)
    assert worst[1] / worst[2] == pytest.approx(4.0, rel=0.15)


@pytest.mark.parametrize("stop", ["limit", "wall"])
def test_a_stop_leaves_the_square_of_its_restitution(stop):
    for dt in (0.01, 0.002):
        trajectory = da.Simulation(pendulum(stop, 0.5), da.Variational(dt=dt)).run(0.7)
        energy, knot = trajectory.energy_after(), first_impact(trajectory)
        before = energy.total[knot - 1] - energy.potential[knot]
        assert energy.kinetic[knot] / before == pytest.approx(0.25, abs=1.2 * dt)


def test_energy_after_knots_without_impacts_is_that_at_the_knots():
    mechanism = pendulum("limit", 0.0)
    mechanism.body("block", da.Box(size=(0.2, 0.2, 0.1), mass=2.0), position=(0, 3, 0.05), collide=True)
    mechanism.ground(friction=0.3, offset=0.0)
    mechanism.start("block", linear=(3.0, 0, 0))
    trajectory = da.Simulation(mechanism, da.Variational(dt=0.001)).run(0.3)
    np.testing.assert_allclose(trajectory.energy_after().total, trajectory.energy().total, atol=2e-3)
    # of second order at every knot between the start and the end
    np.testing.assert_allclose(trajectory.energy_after().total[1:-1], trajectory.energy().total[1:-1], atol=1e-4)


def test_rates_of_joints_with_and_without_springs_are_differences_of_coordinates():
    mechanism = da.Mechanism("two joints")
    for i in range(2):
        mechanism.body(f"link {i}", da.Rod(length=1.0, radius=0.02, mass=1.0, axis="x"), position=(0.5 + i, 0, 0))
    mechanism.joint("limited", da.Revolute(axis="y", limits=(-1.0, 1.0)), mechanism.world, "link 0", at=(0, 0, 0))
    mechanism.joint("sprung", da.Revolute(axis="y", stiffness=20.0), "link 0", "link 1", at=(1, 0, 0))
    dt = 0.001
    sim = da.Simulation(mechanism, da.Variational(dt=dt))
    trajectory = sim.run(0.8)
    assert trajectory.joint("limited").coordinates.max() == pytest.approx(1.0, abs=1e-9)
    for name in ("limited", "sprung"):
        series = trajectory.joint(name)
        np.testing.assert_allclose(series.rates[1:-1], np.gradient(series.coordinates, dt)[1:-1], atol=2e-3)
        assert sim.rates(name)[0] == pytest.approx(series.rates[-1], abs=1e-12)


def test_limits_and_dry_friction_are_told_apart():
    mechanism = da.Mechanism("cart")
    mechanism.body("cart", da.Box(size=(0.1,) * 3, mass=2.0))
    mechanism.joint("rail", da.Prismatic(axis="z", friction=5.0, limits=(-0.1, None)), mechanism.world, "cart")
    trajectory = da.Simulation(mechanism, da.Variational(dt=0.01)).run(1.0)
    share = trajectory._get("share")[-2, 0, 0]
    assert share[SHARES.index("friction")] + share[SHARES.index("limit")] == pytest.approx(2.0 * 9.81, rel=1e-6)
    falling = trajectory._get("share")[3, 0, 0]
    assert falling[SHARES.index("friction")] == pytest.approx(5.0, rel=1e-6)
    assert falling[SHARES.index("limit")] == pytest.approx(0.0, abs=1e-6)
