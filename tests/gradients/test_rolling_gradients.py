"""Gradients where contacts roll and slide on: sliding velocities in the middle of steps and as means over knots."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

FORMULATION = da.Variational(dt=0.005, tolerance=1e-13)


def ball_on_a_ball() -> da.Mechanism:
    m = da.Mechanism("ball on a ball")
    m.body("big", da.Sphere(radius=0.5, mass=5.0), collide=True)
    m.joint("pivot", da.Spherical(), "world", "big", at=(0, 0, 0))
    m.body("small", da.Sphere(radius=0.1, mass=0.3), position=(0.6002 * np.sin(0.4), 0, 0.6002 * np.cos(0.4)), collide=True)
    m.contact_pair("big", "small", friction=3.0)
    return m


def roll(sim: da.Simulation) -> None:
    sim.set_velocity("big", angular=(0.5, 0.3, 2.0))
    normal = np.array([np.sin(0.4), 0, np.cos(0.4)])
    speed = np.cross([0.2, -0.4, 0.1], 0.6 * normal)
    slip = np.cross([0.5, 0.3, 2.0], 0.5 * normal) - speed
    sim.set_velocity("small", linear=speed, angular=np.cross(slip, normal) / 0.1)


def egg() -> da.Mechanism:
    m = da.Mechanism("egg")
    m.ground(friction=2.0)
    m.body("egg", da.Ellipsoid(semi_axes=(0.1, 0.15, 0.2), mass=1.0), position=(0, 0, 0.2001), collide=True)
    return m


def tippe_top() -> da.Mechanism:
    m = da.Mechanism("top")
    m.ground(friction=0.2)
    m.body("top", mass=0.02, inertia=np.diag([8e-6, 8e-6, 7e-6]), position=(0, 0, 0.02565), orientation=(np.cos(0.25), np.sin(0.25), 0, 0))
    m.contact_point("top", point=(0, 0, 0.005), radius=0.03)
    return m


@pytest.mark.parametrize(("make", "setup", "names"), [
    (ball_on_a_ball, roll, ["big.mass", "big.inertia", "small.radius", "big.radius", "small.inertia", "gravity", "small.start_velocity", "pivot.start_rate"]),
    (
        egg, lambda sim: sim.set_velocity("egg", linear=(0.6, 0, 0), angular=(0, 3.0, 0.5)),
        ["egg.semi_axes", "egg.mass", "egg.inertia", "gravity", "egg.start_velocity", "egg.start_angular_velocity"],
    ),
    (
        tippe_top, lambda sim: sim.set_velocity("top", linear=(0.3, 0.1, 0), angular=(0, 5.0, 60.0)),
        ["ground.friction", "top contact 0.radius", "top contact 0.point", "top.inertia", "gravity", "top.start_velocity", "top.start_angular_velocity"],
    ),
], ids=["ball on a ball", "egg", "tippe top"])
def test_what_rolls_and_what_slides_on(make, setup, names):
    check = da.validate_gradients(make(), FORMULATION, names, steps=12, setup=setup, step=1e-5)
    assert check.forward_error < 1e-9, str(check)
    assert check.difference_error < 1e-4, str(check)
