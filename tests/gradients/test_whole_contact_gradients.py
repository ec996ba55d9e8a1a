"""Gradients of runs with contacts whose steps are differenced as a whole: maps, charts that change, bearings, programs."""
from __future__ import annotations

import numpy as np
import pytest
from test_stepwise_gradients import bent, finger

import dalembert as da

BDF2 = da.Reduced(dt=0.01, tolerance=1e-13)
#: adjoint and forward share the Jacobian by the state, and difference numbers and inputs each for itself; differences of the run
SAME, NEAR = 2e-7, 1e-4
pytestmark = pytest.mark.filterwarnings("ignore::dalembert.GradientWarning")


def assert_right(check: da.GradientCheck, same: float = SAME) -> None:
    assert check.forward_error < same, str(check)
    assert check.difference_error < NEAR, str(check)


def door() -> da.Mechanism:
    m = da.Mechanism("door")
    m.body("door", mass=1.0, inertia=0.05 * np.eye(3), position=(0.3, 0, 0))
    m.joint("pin", da.Revolute(axis="z", bearing=da.Bearing(friction=0.2, radius=0.01, length=0.1)), "world", "door", at=(0, 0, 0))
    return m


def test_a_bearing_whose_friction_follows_its_load():
    """By gravity, forward and backward passes meet the iteration that finds the load, each with steps of its own."""
    def swing(sim: da.Simulation) -> None:
        sim.set_joint("pin", rate=2.0)

    check = da.validate_gradients(door(), BDF2, ["door.mass", "gravity", "pin.start_rate", "pin.point_child"], steps=5, setup=swing, step=1e-4)
    assert_right(check, 1e-5)
    assert min(abs(row.adjoint) for row in check.rows) > 1e-3
    run = da.Simulation(door(), BDF2, energy_bound=None).run(0.02, tape=True)
    with pytest.raises(da.GradientError, match="differenced as a whole"):
        run.vjp({"position": np.ones_like(run.position)}, ["door.mass"], gradient_smoothing=0.1)
    with pytest.raises(da.GradientError, match="joint forces"):
        run.vjp({"force": np.ones((3, 1, 3))}, ["door.mass"])


def falling(method: str = "bdf2", **options) -> tuple[da.Mechanism, da.Reduced]:
    m = da.Mechanism("top")
    m.ground(friction=0.3)
    m.body("top", mass=1.0, inertia=np.diag([0.1, 0.12, 0.05]), position=(0, 0, 0.4))
    m.contact_point("top", point=(0, 0, -0.35), radius=0.04)
    return m, da.Reduced(dt=0.01, method=method, tolerance=1e-13, **options)


def thrown(sim: da.Simulation) -> None:
    sim.set_velocity("top", linear=(0.3, 0, -0.2), angular=(0.5, 1.0, 2.0))


@pytest.mark.slow
def test_charts_that_change():
    m, formulation = falling(rotations="xyz", switch_charts=True)
    assert_right(da.validate_gradients(m, formulation, ["gravity", "top.mass", "ground.friction", "ground.offset", "top.start_velocity"], steps=8, setup=thrown, step=1e-5))


@pytest.mark.slow
@pytest.mark.parametrize("contact", ["staggered", "single"])
def test_programs(contact):
    m, formulation = falling("linearly_implicit", contact=contact)
    check = da.validate_gradients(m, formulation, ["gravity", "top.mass", "ground.friction", "top.start_velocity"], steps=6, setup=thrown, step=1e-5)
    assert_right(check)
    assert abs(check.rows[2].adjoint) > 1e-3


@pytest.mark.slow
def test_coordinate_maps():
    m = finger()
    m.ground(friction=0.4, offset=-1.0)
    m.contact_point("c", point=(0.25, 0, -0.05), radius=0.02)

    def swing(sim: da.Simulation) -> None:
        bent(sim)
        sim.set_joint("root", 0.45, rate=1.0)

    names = ["gravity", "b.mass", "ground.offset", "ground.friction", "near.stiffness", "root.start_rate"]
    check = da.validate_gradients(m, BDF2, names, steps=14, setup=swing, step=1e-5)
    assert_right(check)
    assert abs(check.rows[2].adjoint) > 1.0
