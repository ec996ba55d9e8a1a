"""What every test may use: a Hypothesis profile that allows for compiling, and a short run with a bit of everything."""
from __future__ import annotations

import os

import pytest
from hypothesis import settings

import dalembert as da

os.environ.setdefault("DALEMBERT_AHEAD", "0")  # the tests' own processes share the compiling
settings.register_profile("compiled", deadline=None)  # a first call compiles
settings.load_profile("compiled")


def geared_pendulum() -> da.Mechanism:
    """A driven wheel that turns a second one by a gear; on that a pendulum on a ball joint with a bob on a sliding spring."""
    mechanism = da.Mechanism("geared pendulum")
    first = mechanism.body("first wheel", da.Cylinder(radius=0.1, length=0.02, mass=0.5, axis="x"), position=(0, -0.3, 0))
    second = mechanism.body("second wheel", da.Cylinder(radius=0.2, length=0.02, mass=1.0, axis="x"))
    rod = mechanism.body("rod", da.Rod(length=0.5, radius=0.01, mass=0.3), position=(0, 0, -0.45))
    bob = mechanism.body("bob", da.Sphere(radius=0.05, mass=0.4), position=(0, 0, -0.7))
    mechanism.joint("motor", da.Revolute(axis="x", drive="motion"), mechanism.world, first, at=(0, -0.3, 0))
    mechanism.joint("axle", da.Revolute(axis="x", damping=0.01), mechanism.world, second)
    mechanism.joint("ball", da.Spherical(), second, rod, at=(0, 0, -0.2))
    mechanism.joint("slide", da.Prismatic(axis="z", stiffness=80.0, damping=0.2), rod, bob, at=(0, 0, -0.7))
    mechanism.spring("tie", mechanism.world, bob, at=((0.5, 0, -0.7), (0, 0, -0.7)), stiffness=5.0)
    mechanism.gear("gear", "motor", "axle", ratio=-2.0)
    return mechanism


@pytest.fixture(scope="session")
def short_run() -> da.Trajectory:
    """0.2 s of the geared pendulum. Read it, do not change it."""
    simulation = da.Simulation(geared_pendulum(), da.Variational(dt=0.01))
    simulation.set_target("motor", lambda t: 3.0 * t * t)
    return simulation.run(0.2)
