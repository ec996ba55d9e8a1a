"""Steps with contacts that Newton's method solves directly: few iterations, and impulses that follow from the step alone."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert import zoo


def box(friction: float, tilt: float = 0.0, height: float = 0.05) -> da.Mechanism:
    mechanism = da.Mechanism("box")
    mechanism.ground(friction=friction)
    turn = (np.cos(0.5 * tilt), 0.0, np.sin(0.5 * tilt), 0.0)
    mechanism.body("box", da.Box(size=(0.4, 0.4, 0.1), mass=1.0), position=(0, 0, height), orientation=turn, collide=True)
    return mechanism


def corner_forces(trajectory: da.Trajectory) -> np.ndarray:
    """Normal forces of the corners that press at the last knot, N."""
    force = trajectory.contacts().at(-1).normal_force
    return np.sort(force[force > 1e-3])


def test_what_slides_and_rests_takes_few_iterations():
    """A slide on four corners goes on for an iteration or two until their shares are settled; at rest it takes one."""
    mechanism = box(0.3)
    mechanism.start("box", linear=(2.0, 0, 0))
    sliding = da.Simulation(mechanism, da.Variational(dt=0.005)).run(1.0)
    assert sliding.iterations[1:].mean() < 2.2
    assert np.all(sliding.iterations[-50:] == 1)
    chain = da.Simulation(zoo.sphere_chain(10), da.Variational(dt=0.005)).run(2.0)
    assert chain.iterations[1:].mean() < 4.0
    assert chain.contacts().gap.min() > -1e-11


def test_impacts_take_few_iterations():
    rng = np.random.default_rng(1)
    mechanism = da.Mechanism("heap")
    mechanism.ground(friction=0.5)
    for i in range(6):
        mechanism.body(f"ball {i}", da.Sphere(radius=0.1, mass=1.0), position=(*rng.uniform(-0.12, 0.12, 2), 0.15 + 0.22 * i), collide=True)
    run = da.Simulation(mechanism, da.Variational(dt=0.005)).run(1.0)
    assert run.iterations[1:].mean() < 6.0
    assert run.contacts().gap.min() > -1e-11


@pytest.mark.parametrize("tilt", [0.0, 0.3])
def test_corners_share_the_weight_alike_whatever_came_before(tilt):
    trajectory = da.Simulation(box(0.5, tilt, 0.05 + 0.4 * abs(np.sin(tilt))), da.Variational(dt=0.005)).run(2.0)
    forces = corner_forces(trajectory)
    assert len(forces) == 4
    assert forces == pytest.approx(np.full(4, 9.81 / 4), rel=1e-3)


def test_a_step_from_rest_has_the_forces_of_the_steps_before():
    first = da.Simulation(box(0.5), da.Variational(dt=0.005)).run(0.005)
    later = da.Simulation(box(0.5), da.Variational(dt=0.005)).run(0.5)
    assert corner_forces(first) == pytest.approx(corner_forces(later), rel=1e-3)


def arm(**joint: Any) -> da.Mechanism:
    """A rod of 1 kg and 1 m on a hinge along y, which hangs level at the start."""
    mechanism = da.Mechanism("arm")
    rod = mechanism.body("rod", da.Rod(length=1.0, mass=1.0, radius=0.02, axis="x"), position=(0.5, 0, 0))
    mechanism.joint("hinge", da.Revolute(axis="y", **joint), mechanism.world, rod, at=(0, 0, 0))
    return mechanism


@pytest.mark.parametrize("joint", [dict(limits=(-1.0, 0.0)), dict(friction=10.0)])
def test_what_a_joint_holds_takes_few_iterations(joint: dict):
    """An arm that rests on its limit, and one that dry friction holds: both carry half the weight times its length."""
    run = da.Simulation(arm(**joint), da.Variational(dt=0.005)).run(0.5)
    assert run.iterations[10:].mean() < 1.5
    shares = run.joint("hinge").shares
    held = sum(np.abs(shares[name][50]).sum() for name in ("limit", "friction"))
    assert held == pytest.approx(0.5 * 9.81, rel=1e-4)


def test_dry_friction_that_slides_takes_few_iterations():
    mechanism = arm(friction=1.0)
    mechanism.start("hinge", rate=3.0)
    run = da.Simulation(mechanism, da.Variational(dt=0.005)).run(0.5)
    assert run.iterations[10:].mean() < 3.0


def test_boxes_at_rest_on_one_another_take_few_iterations():
    mechanism = da.Mechanism("tower")
    mechanism.ground(friction=0.5)
    for i in range(8):
        turn = (np.cos(0.2 * i), 0, 0, np.sin(0.2 * i))
        mechanism.body(f"box {i}", da.Box(size=(0.2, 0.3, 0.1), mass=1.0), position=(0.01 * i, 0, 0.0501 + 0.1002 * i), orientation=turn, collide=True)
    run = da.Simulation(mechanism, da.Variational(dt=0.005)).run(1.0)
    assert run.iterations[-50:].mean() < 20.0
    assert run.contacts().gap.min() > -1e-11
