"""Runs with contacts go on as if nothing had happened between them: neither chunks, nor reading, nor going back change what comes next."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

STEPS = 240


def heap() -> da.Mechanism:
    """Boxes that fall on one another and slide apart."""
    rng = np.random.default_rng(1)
    mechanism = da.Mechanism("heap")
    mechanism.ground(friction=0.3)
    for i in range(5):
        place = (*rng.uniform(-0.1, 0.1, 2), 0.2 + 0.25 * i)
        mechanism.body(f"box {i}", da.Box(size=(0.2, 0.15, 0.1), mass=1.0), position=place, orientation=rng.normal(size=4), collide=True)
        mechanism.start(f"box {i}", linear=rng.normal(size=3))
    return mechanism


def billiards() -> da.Mechanism:
    """Balls that bounce off one another and off walls."""
    rng = np.random.default_rng(2)
    mechanism = da.Mechanism("billiards")
    mechanism.ground(friction=0.2, restitution=0.5)
    for k, x in enumerate((-0.6, 0.6)):
        mechanism.obstacle(f"wall {k}", da.Box(size=(0.1, 2.0, 1.0), mass=1.0), position=(x, 0, 0.5), restitution=0.8)
    for i in range(9):
        mechanism.body(f"ball {i}", da.Sphere(radius=0.05, mass=0.2), position=(0.2 * (i % 3) - 0.2, 0.2 * (i // 3), 0.06), collide=True)
        for k in range(i):
            mechanism.contact_pair(f"ball {k}", f"ball {i}", restitution=0.8)
        mechanism.start(f"ball {i}", linear=(*(2.0 * rng.normal(size=2)), 0.5))
    return mechanism


def arm_on_stops() -> da.Mechanism:
    """A double pendulum with limits, dry friction and a foot that hits the ground."""
    mechanism = da.Mechanism("arm")
    mechanism.ground(friction=0.5, restitution=0.3)
    for i in range(2):
        mechanism.body(f"link {i}", da.Rod(length=0.5, radius=0.02, mass=1.0, axis="x"), position=(0.25 + 0.5 * i, 0, 0.6))
    mechanism.joint("shoulder", da.Revolute(axis="y", friction=0.05), mechanism.world, "link 0", at=(0, 0, 0.6))
    mechanism.joint("elbow", da.Revolute(axis="y", limits=(-0.4, 0.6), restitution=0.4), "link 0", "link 1", at=(0.5, 0, 0.6))
    mechanism.contact_point("link 1", point=(0.25, 0, 0), radius=0.02)
    return mechanism


SCENES = {"heap": (heap, 0.005), "billiards": (billiards, 0.005), "arm on stops": (arm_on_stops, 0.01)}


@pytest.fixture(params=[da.Variational, da.Implicit, da.Reduced], ids=["variational", "implicit", "reduced"])
def formulation(request):
    return request.param


@pytest.fixture(params=list(SCENES))
def begin(request, formulation):
    make, dt = SCENES[request.param]
    return lambda: da.Simulation(make(), formulation(dt=dt))


def joined_and_left(trajectory: da.Trajectory) -> int:
    """How often a pair begins or ends to touch."""
    series, changes = trajectory.contacts(), 0
    for pair in range(len(series.names)):
        touching = np.zeros(len(trajectory), bool)
        touching[series.knot[(series.pair == pair) & (series.normal_force > 1e-6)]] = True
        changes += int(np.count_nonzero(np.diff(touching.astype(int))))
    return changes


def test_runs_in_chunks_steps_and_after_going_back_are_the_same(begin):
    whole = begin()
    dt = whole.formulation.dt
    trajectory = whole.run(STEPS * dt)
    assert joined_and_left(trajectory) > 5

    chunked, kept = begin(), None
    for count in (1, 7, 50, 32, 60, 90):
        if count == 32:
            kept = chunked.state
        chunked.run(count * dt)
        assert np.isfinite(chunked.velocity).all()
        assert np.isfinite(chunked.energy())
    assert chunked.state == whole.state

    stepped = begin()
    for _ in range(STEPS):
        stepped.step()
    assert stepped.state == whole.state

    assert kept is not None
    for sim in (whole, begin()):  # one that has been elsewhere, and one that has been nowhere
        sim.restore(kept)
        again = sim.run(182 * dt)
        np.testing.assert_array_equal(again.position, trajectory.position[58:])
        np.testing.assert_array_equal(again.orientation, trajectory.orientation[58:])
        assert sim.state == chunked.state


def test_a_log_says_the_same_whatever_ran_before(begin):
    sim = begin()
    start, dt = sim.state, sim.formulation.dt
    first = sim.run(STEPS * dt).contacts()
    sim.restore(start)
    second = sim.run(STEPS * dt).contacts()
    assert first.names == second.names
    for name in ("knot", "pair", "part", "gap", "normal_force", "friction_force", "point", "normal"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@pytest.mark.parametrize("read", [lambda sim: sim.velocity, lambda sim: sim.energy(), lambda sim: sim.coordinates("rail")], ids=["velocity", "energy", "coordinates"])
def test_a_sliding_block_is_not_pushed_by_the_contact_of_the_last_run(formulation, read):
    ends = []
    for reads in (False, True):
        mechanism = da.Mechanism("sliding")
        mechanism.ground(friction=0.3)
        mechanism.body("block", da.Box(size=(0.2, 0.2, 0.1), mass=1.0), position=(0, 0, 0.05), collide=True)
        mechanism.body("cart", da.Box(size=(0.1,) * 3, mass=1.0), position=(0, 1, 1))
        mechanism.joint("rail", da.Prismatic(axis="x", friction=3.0), mechanism.world, "cart")
        for name in ("block", "cart"):
            mechanism.start(name, linear=(2.6, 0, 0))
        sim = da.Simulation(mechanism, formulation(dt=0.01))
        sim.run(0.2)
        if reads:
            read(sim)
        sim.run(1.0)
        ends.append(sim.position)
    np.testing.assert_array_equal(ends[0], ends[1])
    assert ends[0][0, 0] == pytest.approx(2.6**2 / (2 * 0.3 * 9.81), rel=5e-3)
    assert ends[0][1, 0] == pytest.approx(2.6**2 / (2 * 3.0), rel=5e-3)


def test_velocity_after_an_impact_in_the_last_step_is_that_of_the_way_back():
    mechanism = da.Mechanism("bounce")
    mechanism.ground(restitution=0.5)
    mechanism.body("ball", da.Sphere(radius=0.1, mass=1.0), position=(0, 0, 0.5), collide=True)
    sim = da.Simulation(mechanism, da.Variational(dt=0.001))
    speed = 0.0
    while sim.velocity[0, 2] <= 0.0:
        speed = sim.velocity[0, 2]
        sim.step()
    assert sim.velocity[0, 2] == pytest.approx(-0.5 * speed, rel=0.02)
    trajectory = sim.run(0.001)
    assert trajectory.velocity[0, 0, 2] == pytest.approx(-0.5 * speed, rel=0.02)
