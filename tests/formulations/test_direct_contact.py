"""Steps with contacts that Newton's method solves directly: few iterations, and impulses that follow from the step alone."""
from __future__ import annotations

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
