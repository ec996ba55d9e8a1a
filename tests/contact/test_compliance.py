"""Contacts that give way: a force of stiffness times penetration and damping times its rate, which never pulls."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

G, R, K = 9.81, 0.1, 1000.0
OMEGA = np.sqrt(K)
KINDS = [da.Variational, da.Implicit, da.Reduced]


def ball(gravity=G, height=R, velocity=0.0, damping: float | None = None, shape=None, stiffness: float | None = K, **law) -> da.Mechanism:
    mechanism = da.Mechanism("ball", gravity=(0, 0, -gravity))
    mechanism.ground(stiffness=stiffness, damping=damping, **law)
    mechanism.body("ball", shape or da.Sphere(radius=R, mass=1.0), position=(0, 0, height), collide=True)
    mechanism.start("ball", linear=(0, 0, velocity))
    return mechanism


@pytest.mark.parametrize("kind", KINDS)
def test_what_rests_sinks_in_by_its_weight_over_the_stiffness(kind):
    run = da.Simulation(ball(damping=20.0), kind(dt=0.002)).run(2.0)
    assert run.position[-1, 0, 2] == pytest.approx(R - G / K, abs=1e-9)
    assert run.contacts().total_force()[-3] == pytest.approx((0, 0, G), rel=1e-6, abs=1e-9)
    box = da.Box(size=(0.2, 0.2, 0.2), mass=1.0)  # on four points
    run = da.Simulation(ball(height=0.15, damping=30.0, shape=box, stiffness=5.0 * K), kind(dt=0.002)).run(1.5)
    assert run.position[-1, 0] == pytest.approx((0, 0, 0.1 - G / (20.0 * K)), abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damping", [None, 10.0])
def test_what_swings_on_it_does_so_to_second_order(kind, damping):
    d = damping or 0.0
    errors = []
    for dt in (0.004, 0.002, 0.001):
        run = da.Simulation(ball(height=R - G / K - 0.005, damping=damping), kind(dt=dt)).run(0.4)
        t, swing = run.time, np.sqrt(OMEGA**2 - 0.25 * d**2)
        exact = R - G / K - 0.005 * np.exp(-0.5 * d * t) * (np.cos(swing * t) + 0.5 * d / swing * np.sin(swing * t))
        errors.append(np.abs(run.position[:, 0, 2] - exact).max())
    assert errors[-1] < 5e-5
    assert np.log2(errors[0] / errors[1]) > 1.9
    assert np.log2(errors[1] / errors[2]) > 1.9


@pytest.mark.parametrize("kind", KINDS)
def test_a_ball_bounces_within_half_a_period(kind):
    """In contact for pi sqrt(m/k), and off with the speed that it came with."""
    speeds = []
    for dt in (0.002, 0.001):
        run = da.Simulation(ball(gravity=0.0, velocity=-1.0), kind(dt=dt)).run(0.15)
        t, half = run.time, np.pi / OMEGA
        exact = np.where(t < half, R - np.sin(OMEGA * t) / OMEGA, R + t - half)
        assert np.abs(run.position[:, 0, 2] - exact).max() < 70.0 * dt**2
        assert run.contacts().least_gap().min() == pytest.approx(-1.0 / OMEGA, rel=2e-3)
        speeds.append(run.velocity[-1, 0, 2])
    assert speeds[0] == pytest.approx(1.0, abs=2e-3)
    assert abs(speeds[1] - 1.0) < 0.3 * abs(speeds[0] - 1.0)
    assert max(speeds) < 1.0 + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_it_never_pulls(kind):
    """Damping that would hold back what leaves: beyond critical, a ball leaves before the gap opens, and contact is over."""
    run = da.Simulation(ball(gravity=0.0, velocity=-1.0, damping=1.5 * OMEGA), kind(dt=0.001)).run(0.3)
    assert run.contacts().of("ball", "ground").normal_force.min() >= 0.0
    assert run.velocity[-1, 0, 2] > 0.01
    assert np.diff(run.velocity[5:, 0, 2]).min() > -1e-9
    assert run.velocity[-1, 0, 2] ** 2 < 0.5


def test_friction_is_bounded_by_its_force():
    mechanism = ball(damping=20.0, height=0.05 - G / (4.0 * K), shape=da.Box(size=(0.3, 0.3, 0.1), mass=1.0), friction=0.3)
    mechanism.start("ball", linear=(1.0, 0, 0))
    run = da.Simulation(mechanism, da.Variational(dt=0.001)).run(0.6)
    assert run.position[-1, 0, 0] == pytest.approx(0.5 / (0.3 * G), rel=2e-2)
    assert np.abs(run.velocity[-1, 0]).max() < 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_of_bodies_give_way_and_others_do_not(kind):
    mechanism = da.Mechanism("pads")
    mechanism.ground()
    mechanism.body("plate", da.Box(size=(0.3, 0.3, 0.1), mass=1.0), position=(0, 0, 0.05), collide=True)
    mechanism.body("ball", da.Sphere(radius=R, mass=1.0), position=(0.01, 0, 0.22), collide=True)
    mechanism.body("brick", da.Box(size=(0.1, 0.1, 0.1), mass=1.0), position=(1.01, 0, 0.17), orientation=(1, 0.05, 0.02, 0.1), collide=True)
    mechanism.body("block", da.Box(size=(0.2, 0.2, 0.1), mass=1.0), position=(1, 0, 0.05), collide=True)
    mechanism.contact_pair("plate", "ball", stiffness=2000.0, damping=20.0)
    mechanism.contact_pair("brick", "block", stiffness=2000.0, damping=20.0)
    run = da.Simulation(mechanism, kind(dt=0.002)).run(2.0)
    assert run.position[-1, 0, 2] == pytest.approx(0.05, abs=1e-8)
    assert run.position[-1, 1, 2] == pytest.approx(0.2 - G / 2000.0, abs=1e-8)
    assert run.position[-1, 2, 2] == pytest.approx(0.15 - G / 8000.0, abs=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_step_does_not_resolve_gives_no_energy(kind):
    """Stiffness from soft to nearly rigid: nothing leaves faster than it came, and what rests is where a rigid contact would have it."""
    box = da.Box(size=(0.2, 0.2, 0.2), mass=1.0)
    for stiffness, damping in ((1e3, None), (1e4, None), (1e5, 30.0), (1e6, None), (1e7, 2e3), (1e9, None)):
        mechanism = ball(height=0.3, shape=box, stiffness=stiffness, damping=damping)
        run = da.Simulation(mechanism, kind(dt=0.004)).run(1.0)
        force = run.contacts().total_force()[:, 2]
        hit = int(np.argmax(force > 0.0))
        kinetic = 0.5 * np.sum(run.velocity[:, 0] ** 2, axis=1) + G * run.position[:, 0, 2]
        assert kinetic[hit:].max() < kinetic[0] * (1.0 + 1e-3)
        if stiffness >= 1e7:
            assert run.position[-1, 0, 2] == pytest.approx(0.1, abs=1e-6)
            assert np.abs(run.velocity[-1]).max() < 1e-4


def test_laws_are_kept_and_changed(tmp_path):
    mechanism = ball(damping=20.0)
    mechanism.contact_pair("ball", "ground", stiffness=500.0)
    for name in ("ball.json", "ball.toml"):
        mechanism.save(tmp_path / name)
        again = da.load(tmp_path / name)
        assert (again["ground"].stiffness, again["ground"].damping) == (K, 20.0)
        assert again.pair_laws == mechanism.pair_laws
    sim = da.Simulation(ball(damping=20.0), da.Variational(dt=0.002))
    sim.set_parameters({"ground.stiffness": 2.0 * K, "ground.damping": 60.0})
    assert sim.run(2.0).position[-1, 0, 2] == pytest.approx(R - 0.5 * G / K, abs=1e-8)


def test_what_does_not_take_them_says_so():
    with pytest.raises(da.GradientError, match="stiffness of a contact cannot be differentiated, and 'ground'"):
        da.Simulation(ball(), da.Variational(dt=0.01)).run(0.1, tape=True)
    for formulation in (da.Variational(dt=0.01, events="exact"), da.Reduced(dt=0.01, method="linearly_implicit")):
        with pytest.raises(da.ModelError, match="does not take stiffness of 'ground'"):
            da.Simulation(ball(), formulation).run(0.1)
    with pytest.raises(da.ModelError, match="give it a stiffness too"):
        ball(stiffness=None, damping=3.0)
    with pytest.raises(da.ModelError, match="stiffness must be positive"):
        ball(stiffness=0.0)
    assert da.Simulation(ball(height=R - 0.01), da.Variational(dt=0.01)).run(0.05).position[-1, 0, 2] < R  # it may start inside
