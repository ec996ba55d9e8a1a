"""Velocity servos: their speed, their bound, their derivatives, in every formulation."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert import zoo

ALL = pytest.mark.parametrize("make", [da.Variational, da.Implicit, da.Reduced], ids=["variational", "implicit", "reduced"])
INERTIA = 0.5 * 1.0 * 0.1**2


def wheel(**servo: float) -> da.Mechanism:
    made = da.Mechanism("wheel", gravity=(0, 0, 0))
    made.body("rotor", da.Cylinder(radius=0.1, length=0.02, mass=1.0))
    made.joint("axle", da.Revolute(axis="z", servo=da.Servo.velocity(**servo)), "world", "rotor")
    return made


def winch(damping: float) -> da.Mechanism:
    made = da.Mechanism("winch")
    made.body("load", da.Box(size=(0.1, 0.1, 0.1), mass=2.0))
    made.joint("rope", da.Prismatic(axis="z", servo=da.Servo.velocity(damping=damping, target=0.5, bound=40.0)), "world", "load")
    return made


@ALL
def test_it_speeds_up_by_its_bound_and_stays_at_its_target(make):
    """Torque 0.05 N m on 0.005 kg m^2: 10 rad/s^2, so that it is at 3 rad/s after 0.3 s."""
    run = da.Simulation(wheel(damping=2.0, target=3.0, bound=0.05), make(dt=0.001)).run(1.0)
    axle = run.joint("axle")
    early, late = (run.time > 0.01) & (run.time < 0.29), run.time > 0.35
    np.testing.assert_allclose(axle.rates[early], 0.05 / INERTIA * run.time[early], atol=0.011)
    np.testing.assert_allclose(axle.rates[late], 3.0, atol=1e-4)
    np.testing.assert_allclose(axle.actuation[early], 0.05, rtol=1e-9)
    assert np.abs(axle.actuation).max() <= 0.05 * (1.0 + 1e-12)


@ALL
@pytest.mark.parametrize("damping", [200.0, 1e7], ids=["soft", "stiff"])
def test_under_load_it_lags_by_load_over_damping(make, damping):
    run = da.Simulation(winch(damping), make(dt=0.01)).run(1.0)
    assert run.joint("rope").rates[-1] == pytest.approx(0.5 - 2.0 * 9.81 / damping, abs=1e-7)
    assert run.joint("rope").actuation[-1] == pytest.approx(2.0 * 9.81, rel=1e-3)


def test_a_load_above_the_bound_falls():
    heavy = winch(200.0)
    heavy.change("load", mass=8.0)
    run = da.Simulation(heavy, da.Reduced(dt=0.01)).run(0.5)
    assert run.joint("rope").rates[-1] == pytest.approx(-(9.81 - 40.0 / 8.0) * 0.5, rel=1e-6)


@ALL
def test_targets_are_rates_in_every_way_of_giving_them(make):
    sim = da.Simulation(wheel(damping=2.0, bound=1.0), make(dt=0.002))
    for given in (dict(target=20.0), dict(rate=-20.0), dict(rate=lambda t: 5.0 * np.sin(t)), dict(target=([0.0, 1.0, 2.0], [0.0, 3.0, 3.0]))):
        sim.reset()
        sim.set_target("axle", **given)
        run = sim.run(1.0)
        wanted = given.get("target", given.get("rate"))
        end = wanted(1.0) if callable(wanted) else 3.0 if isinstance(wanted, tuple) else wanted
        assert run.joint("axle").rates[-1] == pytest.approx(end, abs=0.02)
    sim.reset()
    run = sim.run(0.5, control=lambda sim: {"axle": 2.0 + sim.time})
    assert run.joint("axle").rates[-1] == pytest.approx(2.5, abs=0.02)


def test_methods_agree():
    servo = da.Servo.velocity(damping=0.5, target=4.0, bound=1.5)
    linkage = zoo.four_bar_chain(1)
    name = linkage.joints[0].name
    linkage.change(name, drive=None, servo=servo)
    ends = []
    for formulation in (
        da.Variational(dt=5e-4), da.Implicit(dt=1e-3), da.Implicit(dt=1e-3, method="sdirk2"), da.Implicit(dt=2e-4, method="semi_implicit"),
        da.Reduced(dt=1e-3), da.Reduced(dt=1e-3, method="linearly_implicit"), da.Reduced(dt=1e-3, method="rk4"),
    ):
        ends.append(float(da.Simulation(linkage, formulation).run(0.5).joint(name).coordinates[-1]))
    np.testing.assert_allclose(ends, ends[4], atol=5e-3)


@ALL
@pytest.mark.parametrize("parameter", ["axle.servo_damping", "axle.servo_bound"])
def test_gradients(make, parameter):
    """At 0.5 s: the bound counted until the target was near, the damping since."""
    def end(change: float, tape: bool = False) -> da.Trajectory:
        sim = da.Simulation(wheel(damping=0.02, target=3.0, bound=0.0473), make(dt=0.01))
        sim.set_parameters({parameter: sim.parameters()[parameter].value + change})
        return sim.run(0.5, tape=tape)

    step = 1e-6
    for what, name in (("coordinates", "coordinate"), ("rates", "rate")):
        run = end(0.0, tape=True)
        weights = np.zeros((len(run), 1, 6))
        weights[-1, 0, 0] = 1.0
        found = run.vjp({name: weights}, parameters=[parameter])[parameter]
        differences = (getattr(end(step).joint("axle"), what)[-1] - getattr(end(-step).joint("axle"), what)[-1]) / (2.0 * step)
        assert abs(differences) > 1e-3
        assert found == pytest.approx(differences, rel=1e-5)


def test_linear_systems_take_the_rate_as_input():
    """I w' = d (target - w)."""
    sim = da.Simulation(wheel(damping=2.0, target=0.0), da.Variational(dt=0.001))
    linear = sim.linearise(inputs=["axle"])
    assert linear.A[1, 1] == pytest.approx(-2.0 / INERTIA)
    assert linear.B[1, 0] == pytest.approx(2.0 / INERTIA)


def test_files_and_copies_keep_them(tmp_path):
    made = wheel(damping=2.0, target=3.0, bound=0.05)
    made.save(tmp_path / "wheel.toml")
    assert da.load(tmp_path / "wheel.toml")["axle"].type.servo == made["axle"].type.servo == made.copy()["axle"].type.servo


def test_what_makes_no_sense_is_said():
    with pytest.raises(da.ModelError, match="follows a rate has damping alone"):
        da.Servo(stiffness=3.0, damping=1.0, follows="rate")
    with pytest.raises(da.ModelError, match="follows a rate has damping alone"):
        da.Servo.velocity(damping=0.0)
    with pytest.raises(da.ModelError, match="'position' or 'rate'"):
        da.Servo(stiffness=3.0, follows="force")
    sim = da.Simulation(wheel(damping=2.0), da.Variational(dt=0.01))
    with pytest.raises(da.ModelError, match="velocity servo, whose target is a rate"):
        sim.set_target("axle", acceleration=1.0)


@ALL
def test_a_position_servo_within_its_bound_goes_half_way_round(make):
    """A target that is far away is no error of a servo: its torque is bounded."""
    made = da.Mechanism("turret", gravity=(0, 0, 0))
    made.body("rotor", da.Cylinder(radius=0.1, length=0.02, mass=1.0))
    made.joint("axle", da.Revolute(axis="z", servo=da.Servo(stiffness=2.0, damping=0.2, bound=0.1)), "world", "rotor")
    sim = da.Simulation(made, make(dt=0.005))
    sim.set_target("axle", 6.0)
    run = sim.run(4.0)
    assert run.joint("axle").coordinates[-1] == pytest.approx(6.0, abs=1e-3)
    assert np.abs(run.joint("axle").actuation).max() <= 0.1 * (1.0 + 1e-12)
