"""Grounds whose surfaces move: what lies on them is carried along, and friction acts against what slides."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

MU, G = 0.4, 9.81
FORMULATIONS = [da.Variational(dt=0.01), da.Variational(dt=0.01, cone="linear"), da.Implicit(dt=0.01), da.Implicit(dt=0.01, method="sdirk2"), da.Reduced(dt=0.01)]


def luggage(velocity=(1.0, 0, 0), **shape) -> da.Mechanism:
    mechanism = da.Mechanism("luggage")
    mechanism.ground(friction=MU, velocity=velocity)
    mechanism.body("case", shape.get("shape", da.Box(size=(0.3, 0.2, 0.2), mass=5.0)), position=(0, 0, 0.1), collide=True)
    return mechanism


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=lambda f: f"{type(f).__name__} {f.cone} {getattr(f, 'method', '')}")
def test_a_case_is_carried_along(formulation):
    """It slides under the force mu m g until it is as fast as the belt, and then sticks to it."""
    run = da.Simulation(luggage(), formulation).run(1.0)
    stops = 1.0 / (MU * G)
    exact = np.where(run.time < stops, 0.5 * MU * G * run.time**2, run.time - 0.5 * stops)
    assert np.abs(run.position[:, 0, 0] - exact).max() < 1.5 * formulation.dt * MU * G * formulation.dt + 0.5 * formulation.dt * 1.0
    assert run.velocity[-1, 0] == pytest.approx((1.0, 0, 0), abs=1e-6)
    assert np.abs(run.position[:, 0, 2] - 0.1).max() < 1e-7
    slides = run.contacts().total_force()[5]
    assert slides == pytest.approx((MU * 5 * G, 0, 5 * G), rel=1e-4, abs=0.5)


def test_a_belt_uphill_carries_what_friction_can_hold():
    for slope, follows in ((20.0, True), (25.0, False)):
        up = np.array([np.cos(np.radians(slope)), 0, np.sin(np.radians(slope))])
        normal = np.array([-up[2], 0, up[0]])
        mechanism = da.Mechanism("belt")
        mechanism.ground(normal=normal, friction=MU, velocity=0.5 * up)
        mechanism.body("case", da.Box(size=(0.3, 0.2, 0.2), mass=5.0), position=0.1 * normal, orientation=(np.cos(-np.radians(slope) / 2), 0, np.sin(-np.radians(slope) / 2), 0), collide=True)
        run = da.Simulation(mechanism, da.Variational(dt=0.01)).run(4.0)
        along = float(run.velocity[-1, 0] @ up)
        assert along == pytest.approx(0.5, abs=1e-6) if follows else along < 0.0


def test_balls_spin_until_they_roll_on_the_belt():
    """A ball at rest on a belt speeds up to 2/7 of its velocity, whatever the friction."""
    mechanism = luggage(velocity=(0.7, 0, 0), shape=da.Sphere(radius=0.1, mass=1.0))
    run = da.Simulation(mechanism, da.Variational(dt=0.005)).run(1.0)
    assert run.velocity[-1, 0, 0] == pytest.approx(0.2, rel=1e-4)
    assert run.angular_velocity[-1, 0, 1] * 0.1 == pytest.approx(0.2 - 0.7, rel=1e-4)


@pytest.mark.parametrize("formulation", [da.Variational(dt=0.01), da.Implicit(dt=0.01, tolerance=1e-12), da.Reduced(dt=0.01)], ids=["variational", "implicit", "reduced"])
def test_gradients_by_the_velocity_of_a_belt(formulation):
    mechanism = da.Mechanism("ball")
    mechanism.ground(friction=0.9, velocity=(0.3, 0.1, 0))
    mechanism.body("ball", da.Sphere(radius=0.1, mass=1.0), position=(0, 0, 0.1), collide=True)
    found = da.validate_gradients(mechanism, formulation, ["ground.velocity", "ground.friction", "ball.mass"], steps=12, directions={"ground.velocity": (1.0, 2.0, 0.0)})
    assert np.isfinite(found.forward_error)
    assert found.forward_error < 1e-8, found
    assert found.difference_error < 1e-4, found


def test_belts_put_energy_in_without_a_warning(recwarn):
    run = da.Simulation(luggage(), da.Variational(dt=0.01)).run(1.0)
    assert run.energy().total[-1] > run.energy().total[0] + 2.0
    assert not [w for w in recwarn if issubclass(w.category, da.EnergyWarning)]


def test_belts_are_kept_attached_and_changed(tmp_path):
    mechanism = luggage(velocity=(0, 0.25, 0))
    mechanism.save(tmp_path / "belt.json")
    np.testing.assert_array_equal(da.load(tmp_path / "belt.json")["ground"].velocity, (0, 0.25, 0))
    turned = da.Mechanism("hall")
    turned.attach(mechanism, prefix="a ", orientation=(np.sqrt(0.5), 0, 0, np.sqrt(0.5)))
    np.testing.assert_allclose(turned["a ground"].velocity, (-0.25, 0, 0), atol=1e-15)
    sim = da.Simulation(mechanism, da.Variational(dt=0.01))
    sim.set_parameters({"ground.velocity": (0.5, 0, 0)})
    assert sim.run(2.0).velocity[-1, 0, 0] == pytest.approx(0.5, abs=1e-6)


def test_what_no_belt_can_do_is_said():
    with pytest.raises(da.ModelError, match="moves along itself"):
        luggage(velocity=(0, 0, 1.0))
    with pytest.raises(da.ModelError, match="velocity"):
        luggage(velocity=(1.0, 0))
    sim = da.Simulation(luggage(), da.Variational(dt=0.01))
    with pytest.raises(da.ModelError, match="moves along itself"):
        sim.set_parameters({"ground.velocity": (0, 0, 0.1)})
    assert sim.parameters()["ground.velocity"].value.tolist() == [1.0, 0.0, 0.0]
    for formulation in (da.Variational(dt=0.01, events="exact"), da.Reduced(dt=0.01, method="linearly_implicit")):
        with pytest.raises(da.ModelError, match="does not take the conveyor 'ground'"):
            da.Simulation(luggage(), formulation).run(0.1)
