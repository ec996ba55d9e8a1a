"""Friction that is not the same along a direction and across it: an elliptical cone, whose force takes out the most power of all."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

import dalembert as da

G, ALONG, ACROSS = 9.81, 0.6, 0.2
FORMULATIONS = [da.Variational(dt=0.005), da.Variational(dt=0.005, cone="linear"), da.Implicit(dt=0.005), da.Reduced(dt=0.005)]
WORDS = [f"{type(f).__name__} {f.cone}" for f in FORMULATIONS]


def block(velocity=(0, 0, 0), gravity=(0, 0, -G), **law) -> da.Mechanism:
    mechanism = da.Mechanism("block", gravity=gravity)
    mechanism.ground(**{"friction": (ALONG, ACROSS), "friction_direction": (1, 0, 0), **law})
    mechanism.body("box", da.Box(size=(0.3, 0.3, 0.1), mass=2.0), position=(0, 0, 0.05), collide=True)
    mechanism.start("box", linear=velocity)
    return mechanism


@pytest.mark.parametrize("formulation", FORMULATIONS, ids=WORDS)
def test_a_block_slides_to_its_stop_along_each_axis(formulation):
    """v^2 / (2 mu g), with the force mu m g."""
    for velocity, mu in (((1, 0, 0), ALONG), ((0, 1, 0), ACROSS)):
        run = da.Simulation(block(velocity), formulation).run(0.8)
        way = run.position[-1, 0, :2]
        assert way == pytest.approx(0.5 / (mu * G) * np.array(velocity[:2]), abs=5e-5)
        assert run.contacts().total_force()[5] == pytest.approx((*(-mu * 2 * G * np.array(velocity[:2])), 2 * G), rel=1e-4, abs=1e-3)


def drift(mu, slope, angle):
    """Unit vector and acceleration of what slides from rest down a slope, with friction along ``angle`` to the fall line.

    It moves along e with a e = g - n (mu1^2 e1, mu2^2 e2) / |(mu1 e1, mu2 e2)|.
    """
    pull = G * np.sin(slope) * np.array([np.cos(angle), -np.sin(angle)])

    def rest(way):
        e = np.array([np.cos(way), np.sin(way)])
        force = G * np.cos(slope) * np.square(mu) * e / np.linalg.norm(mu * e)
        return e, pull - force

    way = brentq(lambda way: np.linalg.det(np.array(rest(way))), -0.5 * np.pi + 1e-6, 0.5 * np.pi - 1e-6)
    e, acceleration = rest(way)
    return e, float(e @ acceleration)


@pytest.mark.parametrize("formulation", [FORMULATIONS[0], *FORMULATIONS[2:]], ids=lambda f: type(f).__name__)
def test_what_slides_down_a_slope_drifts_to_where_friction_is_small(formulation):
    slope, angle = np.radians(38.0), np.radians(40.0)
    pull = G * np.sin(slope) * np.array([np.cos(angle), -np.sin(angle)])
    run = da.Simulation(block(gravity=(*pull, -G * np.cos(slope))), formulation).run(0.5)
    e, acceleration = drift(np.array([ALONG, ACROSS]), slope, angle)
    velocity = run.velocity[-1, 0, :2]
    assert velocity / np.linalg.norm(velocity) == pytest.approx(e, abs=2e-5)
    assert np.linalg.norm(velocity) == pytest.approx(0.5 * acceleration, rel=1e-3)
    assert abs(e[1]) > np.tan(angle) * e[0]  # further across than the fall line
    force = run.contacts().total_force()[50]
    assert np.linalg.norm(force[:2] / (ALONG, ACROSS)) == pytest.approx(force[2], rel=1e-6)
    assert force[:2] == pytest.approx(-force[2] * np.square((ALONG, ACROSS)) * e / np.linalg.norm((ALONG, ACROSS) * e), rel=1e-3)


def test_a_block_holds_where_its_bound_does():
    for slope, holds in ((np.arctan(0.95 * ALONG), True), (np.arctan(1.05 * ALONG), False)):
        run = da.Simulation(block(gravity=(G * np.sin(slope), 0, -G * np.cos(slope))), da.Variational(dt=0.01)).run(1.0)
        assert (np.abs(run.position[-1, 0, :2]).max() < 1e-6) == holds


@pytest.mark.parametrize("formulation", [FORMULATIONS[0], *FORMULATIONS[2:]], ids=lambda f: type(f).__name__)
def test_skates_run_along_their_blades(formulation):
    """A direction that goes with a body: no friction along its x axis, so that what it has across is lost and what it has along is kept."""
    turn = 0.5 * np.radians(30.0)
    mechanism = da.Mechanism("skate")
    mechanism.ground(name="ice")
    mechanism.body("skate", da.Box(size=(0.3, 0.3, 0.02), mass=2.0), position=(0, 0, 0.01), orientation=(np.cos(turn), 0, 0, np.sin(turn)), collide=True)
    mechanism.contact_pair("skate", "ice", friction=(0.0, 0.8), friction_direction=(2, 0, 0))
    mechanism.start("skate", linear=(1.0, 0, 0))
    run = da.Simulation(mechanism, formulation).run(0.5)
    blade = np.array([np.cos(2 * turn), np.sin(2 * turn), 0.0])
    assert run.velocity[-1, 0] == pytest.approx(np.cos(2 * turn) * blade, abs=1e-6)


def test_the_same_coefficient_twice_is_one_coefficient():
    runs = [da.Simulation(block((0.7, 0.4, 0), **law), da.Variational(dt=0.01)).run(0.4) for law in (
        dict(friction=0.4, friction_direction=None), dict(friction=(0.4, 0.4), friction_direction=(0.3, 1, 0)))]
    np.testing.assert_allclose(runs[0].position, runs[1].position, atol=1e-9)


def test_the_larger_coefficient_counts_in_each_direction():
    mechanism = da.Mechanism("pad")
    mechanism.ground(friction=(ALONG, ACROSS), friction_direction=(0, 1, 0))
    body = mechanism.body("block", mass=1.0, inertia=0.01 * np.eye(3), position=(0, 0, 0.05))
    mechanism.collider("pad", body, da.Box(size=(0.3, 0.3, 0.1), mass=1.0), friction=0.3)
    for velocity, mu in (((1, 0, 0), 0.3), ((0, 1, 0), ALONG)):
        twin = mechanism.copy()
        twin.start("block", linear=velocity)
        assert np.linalg.norm(da.Simulation(twin, da.Variational(dt=0.005)).run(0.8).position[-1, 0, :2]) == pytest.approx(0.5 / (mu * G), abs=1e-4)


GRADIENTS = [da.Variational(dt=0.01), da.Implicit(dt=0.01, tolerance=1e-12), da.Reduced(dt=0.01)]


@pytest.mark.parametrize("formulation", GRADIENTS, ids=["variational", "implicit", "reduced"])
def test_gradients_by_both_coefficients(formulation):
    ground = da.Mechanism("ground")
    ground.ground(friction=(0.6, 0.2), friction_direction=(1, 0.3, 0), velocity=(0.3, 0.1, 0))
    ground.body("ball", da.Ellipsoid(semi_axes=(0.1, 0.12, 0.09), mass=1.0), position=(0, 0, 0.09), collide=True)
    ground.start("ball", linear=(0.5, 0.4, 0), angular=(1, 2, 3))
    skate = da.Mechanism("skate")
    skate.ground()
    skate.body("ball", da.Sphere(radius=0.1, mass=1.0), position=(0, 0, 0.1), collide=True)
    skate.contact_pair("ball", "ground", friction=(0.1, 0.5), friction_direction=(1, 0.2, 0.1))
    skate.start("ball", linear=(0.5, 0.4, 0), angular=(1, 2, 3))
    for mechanism, names in ((ground, ["ground.friction", "ground.friction_across", "ground.velocity"]), (skate, ["ball and ground.friction", "ball and ground.friction_across", "ball.mass"])):
        found = da.validate_gradients(mechanism, formulation, names, steps=12, directions={"ground.velocity": (1.0, 2.0, 0.0)} if mechanism is ground else None)
        assert np.isfinite(found.forward_error)
        assert found.forward_error < 1e-8, found
        assert found.difference_error < 1e-4, found


def test_directions_are_kept_attached_and_changed(tmp_path):
    mechanism = block()
    mechanism.obstacle("rail", da.Box(size=(1, 1, 1), mass=1.0), position=(5, 0, 0), friction=(0.1, 0.9), friction_direction=(0, 1, 0))
    mechanism.contact_pair("box", "rail", friction=(0.3, 0.4), friction_direction=(0.6, 0.8, 0))
    for name in ("rough.json", "rough.toml"):
        mechanism.save(tmp_path / name)
        again = da.load(tmp_path / name)
        assert again["ground"].friction_direction == (1.0, 0.0, 0.0)
        assert (again["ground"].friction, again["ground"].friction_across, again["rail"].friction_across) == (ALONG, ACROSS, 0.9)
        assert again.pair_laws == mechanism.pair_laws
    turned = da.Mechanism("hall")
    turned.attach(mechanism, prefix="a ", orientation=(np.sqrt(0.5), 0, 0, np.sqrt(0.5)))
    assert turned["a ground"].friction_direction == pytest.approx((0, 1, 0), abs=1e-15)
    assert turned["a rail"].friction_direction == pytest.approx((-1, 0, 0), abs=1e-15)
    assert turned.pair_laws[frozenset(("a box", "a rail"))].direction_of == "a box"
    sim = da.Simulation(block((0, 1, 0)), da.Variational(dt=0.005))
    sim.set_parameters({"ground.friction_across": 0.4})
    assert sim.run(0.8).position[-1, 0, 1] == pytest.approx(0.5 / (0.4 * G), abs=1e-4)


def test_what_no_direction_can_be_is_said():
    for law, words in (
        (dict(friction=(0.1, 0.2), friction_direction=None), "needs friction_direction"), (dict(friction=0.5), r"friction_direction is for friction=\(along, across\)"),
        (dict(friction_direction=(0, 0, 2)), "that of its normal"), (dict(friction_direction=(0, 0, 0)), "must not be zero"), (dict(friction=(1, 2, 3)), "friction"),
        (dict(friction=(0.1, -0.2)), "friction"),
    ):
        with pytest.raises(da.ModelError, match=words):
            block(**law)
    with pytest.raises(da.ModelError, match="go together"):
        block(friction=0.5, friction_direction=None).change("ground", friction_across=0.2)
    for formulation in (da.Variational(dt=0.01, events="exact"), da.Reduced(dt=0.01, method="linearly_implicit")):
        with pytest.raises(da.ModelError, match="does not take friction_across of 'ground'"):
            da.Simulation(block(), formulation).run(0.1)
