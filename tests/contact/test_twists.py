"""Friction against spinning and rolling: torques about the normal of a contact and across it, bounded by its normal force."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dalembert as da

G, R, C = 9.81, 0.1, 0.002
FORMULATIONS = [da.Variational(dt=0.005), da.Variational(dt=0.005, cone="linear"), da.Implicit(dt=0.005), da.Implicit(dt=0.005, method="sdirk2"), da.Reduced(dt=0.005)]
WORDS = [f"{type(f).__name__} {f.cone} {getattr(f, 'method', '')}" for f in FORMULATIONS]


def ball(gravity=(0, 0, -G), linear=(0, 0, 0), angular=(0, 0, 0), **law) -> da.Mechanism:
    mechanism = da.Mechanism("ball", gravity=gravity)
    mechanism.ground(friction=0.5, **law)
    mechanism.body("ball", da.Sphere(radius=R, mass=1.0), position=(0, 0, R), collide=True)
    mechanism.start("ball", linear=linear, angular=angular)
    return mechanism


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=WORDS)
def test_a_spinning_ball_stops(formulation):
    """(2/5) m r^2 domega/dt = -c m g: it stops after 2 r^2 omega / (5 c g)."""
    run = da.Simulation(ball(angular=(0, 0, 5.0), spin_friction=C), formulation).run(1.5)
    spin = run.angular_velocity[:, 0, 2]
    stops = 0.4 * R**2 * 5.0 / (C * G)
    assert spin == pytest.approx(np.maximum(5.0 * (1.0 - run.time / stops), 0.0), abs=0.025 if isinstance(formulation, da.Implicit) else 1e-5 + 2.5 * C * G / R**2 * formulation.dt)
    assert abs(spin[-1]) < 1e-9
    assert np.abs(run.position[:, 0, :2]).max() < 1e-9
    assert np.diff(run.energy().total).max() < 1e-9


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=WORDS)
def test_a_rolling_ball_stops_and_stays(formulation):
    """It is braked by (5/7) c g / r, by a friction force of (5/7) c m g / r."""
    run = da.Simulation(ball(linear=(0.16, 0.12, 0), angular=(-1.2, 1.6, 0), rolling_friction=C), formulation).run(2.0)
    braked = 5.0 / 7.0 * C * G / R
    stops = 0.2 / braked
    speed = run.velocity[:, 0] @ (0.8, 0.6, 0.0)
    assert speed == pytest.approx(np.maximum(0.2 - braked * run.time, 0.0), abs=1e-5 + braked * formulation.dt)
    assert speed[-1] == pytest.approx(0.0, abs=1e-9)
    assert run.position[-1, 0] == pytest.approx((0.8 * 0.1 * stops, 0.6 * 0.1 * stops, R), abs=1e-4 if "sdirk2" in str(formulation) else 1e-5)
    force = run.contacts().total_force()[100]
    assert force == pytest.approx((-0.8 * braked, -0.6 * braked, G), rel=2e-3)
    assert np.diff(run.energy().total).max() < 1e-9


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=WORDS)
def test_a_ball_rests_on_slopes_below_c_over_r(formulation):
    for part in (0.95, 1.05):
        slope = np.arctan(part * C / R)
        run = da.Simulation(ball(gravity=(G * np.sin(slope), 0, -G * np.cos(slope)), rolling_friction=C), formulation).run(0.5)
        rolls = 5.0 / 7.0 * G * (np.sin(slope) - C / R * np.cos(slope))
        assert run.velocity[-1, 0, 0] == pytest.approx(max(0.5 * rolls, 0.0), abs=1.5e-6)


def test_a_ball_that_spins_and_rolls_loses_both_by_themselves():
    run = da.Simulation(ball(linear=(0.2, 0, 0), angular=(0, 2.0, 4.0), rolling_friction=C, spin_friction=2.0 * C), da.Variational(dt=0.005)).run(0.4)
    assert run.velocity[-1, 0, 0] == pytest.approx(0.2 - 5.0 / 7.0 * C * G / R * 0.4, abs=1e-5)
    spin = Rotation.from_quat(run.orientation[-1, 0], scalar_first=True).apply(run.angular_velocity[-1, 0])[2]
    assert spin == pytest.approx(4.0 - 2.0 * C * G / (0.4 * R**2) * 0.4, abs=1e-4)


def test_a_ball_between_others_and_a_falling_one():
    """Pairs of bodies, and contacts that begin within a run: the energy never rises."""
    mechanism = da.Mechanism("billiards")
    mechanism.ground(friction=0.3, rolling_friction=0.001, spin_friction=0.001)
    for i, x in enumerate((0.0, 0.25, 0.46)):
        mechanism.body(f"ball {i}", da.Sphere(radius=R, mass=1.0), position=(x, 0.02 * i, R + (0.05 if i == 2 else 0.0)), collide=True)
    mechanism.contact_pair("ball 0", "ball 1", friction=0.3, restitution=0.5, spin_friction=0.002, rolling_friction=0.002)
    mechanism.start("ball 0", linear=(1.0, 0, 0), angular=(0, 10.0, 5.0))
    run = da.Simulation(mechanism, da.Variational(dt=0.005)).run(3.0)
    assert np.diff(run.energy_after().total).max() < 1e-8
    assert run.contacts().least_gap().min() > -1e-8
    assert np.abs(run.contacts().of("ball 0", "ball 1").normal_force).max() > 1.0


def test_blows_brake_as_forces_do():
    """A ball that falls down and stays there: what it loses is c times the momentum of the blow, and then c m g."""
    mechanism = da.Mechanism("ball")
    mechanism.ground(friction=0.5, spin_friction=C)
    mechanism.body("ball", da.Sphere(radius=R, mass=1.0), position=(0, 0, R + 0.05), collide=True)
    mechanism.start("ball", angular=(0, 0, 30.0))
    run = da.Simulation(mechanism, da.Variational(dt=0.002)).run(0.5)
    fall = np.sqrt(0.1 / G)
    lost = 0.4 * R**2 * (30.0 - run.angular_velocity[-1, 0, 2])
    assert lost == pytest.approx(C * (G * fall + G * (0.5 - fall)), rel=5e-3)
    impulse = float(run.contacts().total_force()[:, 2].sum()) * 0.002
    assert lost == pytest.approx(C * impulse, rel=5e-3)


def test_levers_are_kept_and_changed(tmp_path):
    mechanism = ball(angular=(0, 0, 5.0), spin_friction=C)
    mechanism.contact_pair("ball", "ground", spin_friction=0.5 * C, rolling_friction=0.25 * C)
    for name in ("ball.json", "ball.toml"):
        mechanism.save(tmp_path / name)
        again = da.load(tmp_path / name)
        assert (again["ground"].spin_friction, again["ground"].rolling_friction) == (C, None)
        assert again.pair_laws == mechanism.pair_laws
    sim = da.Simulation(ball(angular=(0, 0, 5.0), spin_friction=C), da.Variational(dt=0.005))
    sim.set_parameters({"ground.spin_friction": 2.0 * C})
    assert sim.run(0.3).angular_velocity[-1, 0, 2] == pytest.approx(5.0 - 2.0 * C * G / (0.4 * R**2) * 0.3, abs=1e-4)


def test_what_does_not_take_them_says_so():
    mechanism = ball(rolling_friction=C)
    with pytest.raises(da.GradientError, match="rolling_friction of a contact cannot be differentiated, and 'ground'"):
        da.Simulation(mechanism, da.Variational(dt=0.01)).run(0.1, tape=True)
    for formulation in (da.Variational(dt=0.01, events="exact"), da.Reduced(dt=0.01, method="linearly_implicit")):
        with pytest.raises(da.ModelError, match="does not take rolling_friction of 'ground'"):
            da.Simulation(mechanism, formulation).run(0.1)
    with pytest.raises(da.ModelError, match="rolling_friction"):
        ball(rolling_friction=-1.0)
