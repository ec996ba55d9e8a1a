"""Linearly implicit Euler with the contact programs of the RedMax paper, in joint coordinates: closed forms, and the other formulations."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dalembert as da

G = 9.81


def programs(dt: float, contact: str | None = None) -> da.Reduced:
    return da.Reduced(dt=dt, method="linearly_implicit", contact=contact)


def box_on_incline(angle: float, friction: float, speed: float) -> da.Mechanism:
    """Gravity leans: the ground stays level, and x is downhill."""
    mechanism = da.Mechanism("incline", gravity=(G * np.sin(angle), 0, -G * np.cos(angle)))
    mechanism.ground(friction=friction, restitution=0.0)
    mechanism.body("box", da.Box(size=(0.4, 0.3, 0.1), mass=2.0), position=(0, 0, 0.05), collide=True)
    mechanism.start("box", linear=(speed, 0, 0))
    return mechanism


@pytest.mark.parametrize("contact", ["staggered", "single"])
def test_box_sticks_below_the_friction_angle(contact):
    run = da.Simulation(box_on_incline(0.25, 0.3, 0.0), programs(0.01, contact)).run(0.2)
    assert np.abs(run.position[-1] - run.position[0]).max() < 1e-9


def test_box_slides_as_the_closed_form_says():
    run = da.Simulation(box_on_incline(0.5, 0.3, 0.2), programs(0.005)).run(0.5)
    assert run.velocity[-1, 0, 0] == pytest.approx(0.2 + G * (np.sin(0.5) - 0.3 * np.cos(0.5)) * 0.5, rel=1e-9)
    assert abs(run.position[-1, 0, 2] - 0.05) < 1e-9


def test_the_single_program_lifts_what_slides():
    run = da.Simulation(box_on_incline(0.0, 0.3, 2.0), programs(0.005, "single")).run(0.005)
    assert run.velocity[-1, 0, 2] == pytest.approx(0.3 * run.velocity[-1, 0, 0], rel=1e-9)


def test_a_ball_bounces_by_newtons_law_and_takes_up_spin():
    """0.8 of the speed comes back; what slides at first then rolls: 5/7 of the speed along the ground."""
    mechanism = da.Mechanism("ball")
    mechanism.ground(friction=0.5, restitution=0.8)
    mechanism.body("ball", da.Sphere(radius=0.1, mass=1.0), position=(0, 0, 0.6), collide=True)
    mechanism.start("ball", linear=(1.0, 0, 0))
    run = da.Simulation(mechanism, programs(0.002)).run(0.8)
    velocity = run.velocity[:, 0]
    k = int(np.argmax(velocity[:, 2] > 0.1))
    assert velocity[k, 2] == pytest.approx(-0.8 * velocity[k - 1, 2], rel=1e-9)
    assert velocity[k, 0] == pytest.approx(5.0 / 7.0, rel=1e-9)
    assert run.position[k:, 0, 2].max() == pytest.approx(0.1 + 0.64 * 0.5, abs=5e-3)


def legs() -> da.Mechanism:
    """A body on two legs with springs that lands and slides, with a stop at one knee: contacts, limits and dry friction at once."""
    mechanism = da.Mechanism("legs")
    mechanism.ground(friction=0.4, restitution=0.0)
    mechanism.body("trunk", da.Box(size=(0.5, 0.2, 0.1), mass=2.0), position=(0, 0, 0.62))
    laws: dict[str, dict[str, Any]] = {"front": dict(limits=(-0.3, 0.05)), "rear": dict(friction=0.5)}
    for (name, law), x in zip(laws.items(), (0.2, -0.2)):
        mechanism.body(name, da.Capsule(length=0.4, radius=0.04, mass=0.5, axis="z"), position=(x, 0, 0.32), collide=True)
        mechanism.joint(f"{name} hip", da.Revolute(axis="y", stiffness=20.0, damping=0.5, **law), "trunk", name, at=(x, 0, 0.55))
    mechanism.start("trunk", linear=(0.8, 0, 0))
    for name in ("front", "rear"):
        mechanism.start(name, linear=(0.8, 0, 0))
    return mechanism


def test_tends_to_the_motion_of_the_interior_point():
    reference = da.Simulation(legs(), da.Reduced(dt=0.0005)).run(0.25)
    errors = []
    for dt in (0.005, 0.0025):
        run = da.Simulation(legs(), programs(dt)).run(0.25)
        errors.append(np.abs(run.position[-1] - reference.position[-1]).max())
        assert run.contacts().gap.min() > -1e-9
    assert errors[1] < 0.005
    assert errors[1] < 0.7 * errors[0]


def test_bearings_beside_contacts_in_joint_coordinates():
    """A ball on an axle carries another one that lies on it: tau = mu r (m1 + m2) g."""
    mechanism = da.Mechanism("pressed wheel")
    mechanism.body("wheel", da.Sphere(radius=0.2, mass=5.0), collide=True)
    mechanism.body("weight", da.Sphere(radius=0.1, mass=3.0), position=(0, 0, 0.3), collide=True)
    mechanism.joint("axle", da.Revolute(axis="y", bearing=da.Bearing(friction=0.1, radius=0.02)), mechanism.world, "wheel")
    mechanism.joint("guide", da.Prismatic(axis="z"), mechanism.world, "weight", at=(0, 0, 0.3))
    mechanism.contact_pair("wheel", "weight", friction=0.0, restitution=0.0)
    mechanism.start("axle", rate=1.0)
    for contact in ("staggered", "single"):
        axle = da.Simulation(mechanism, programs(0.005, contact)).run(0.2).joint("axle")
        assert axle.rates[-1] == pytest.approx(1.0 - 0.2 * 0.1 * 0.02 * 8.0 * G / (0.4 * 5.0 * 0.04), rel=1e-6)
        assert axle.shares["friction"][20] == pytest.approx(-0.1 * 0.02 * 8.0 * G, rel=1e-6)


def test_ways_that_do_not_go_together_are_refused():
    with pytest.raises(da.ModelError, match="choose 'interior_point'"):
        da.Reduced(dt=0.01, contact="staggered")
    with pytest.raises(da.ModelError, match="choose 'staggered' or 'single'"):
        da.Reduced(dt=0.01, method="linearly_implicit", contact="interior_point")
    with pytest.raises(da.ModelError, match="takes no contact"):
        da.Reduced(dt=0.01, method="rk4", contact="single")
