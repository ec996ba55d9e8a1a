"""Steps with little room: exact fits, taut chains, loose tolerances."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert import zoo


@pytest.mark.parametrize("friction", [0.0, 0.5])
@pytest.mark.parametrize("above", ["ground", "obstacle"])
def test_a_box_that_fits_exactly_stays_where_it_is(above, friction):
    mechanism = da.Mechanism("fit")
    mechanism.ground(friction=friction)
    mechanism.body("box", da.Box(size=(0.2,) * 3, mass=1.0), position=(0, 0, 0.1), collide=True)
    if above == "ground":
        mechanism.ground(normal=(0, 0, -1), offset=-0.2, name="ceiling", friction=friction)
    else:
        mechanism.obstacle("ceiling", da.Box(size=(1, 1, 0.1), mass=1.0), position=(0, 0, 0.25), friction=friction)
    trajectory = da.Simulation(mechanism, da.Variational(dt=0.01)).run(3.0)
    assert trajectory.substeps.max() == 1
    assert np.abs(trajectory.position - trajectory.position[0]).max() < 1e-9
    total = trajectory.contacts().total_force()
    np.testing.assert_allclose(total[1:], np.tile((0, 0, 9.81), (300, 1)), atol=1e-6)


@pytest.mark.parametrize(("links", "touching"), [(2, False), (3, False), (4, False), (4, True)])
def test_a_taut_chain_is_said_to_have_no_rigid_motion(links, touching):
    mechanism = da.Mechanism("taut")
    previous = mechanism.world
    for i in range(links):
        mechanism.body(f"link {i}", da.Rod(length=0.5, radius=0.02, mass=1.0, axis="x"), position=(0.25 + 0.5 * i, 0, 0))
        mechanism.joint(f"joint {i}", da.Revolute(axis="y"), previous, f"link {i}", at=(0.5 * i, 0, 0))
        previous = f"link {i}"
    mechanism.joint("end", da.Revolute(axis="y"), mechanism.world, previous, at=(0.5 * links, 0, 0))
    if touching:
        mechanism.ground(offset=-1.0)
        mechanism.contact_point("link 1", radius=0.02)
    formulation = da.Variational(dt=0.01)
    if touching:  # whose tolerance is no finer than rounding
        formulation = da.Variational(dt=0.01, max_iterations=3, max_halvings=0)
    sim = da.Simulation(mechanism, formulation)
    with pytest.raises(da.StepFailure, match=r"no rigid motion exists.*undetermined") as caught:
        sim.run(0.1)
    assert "Use a smaller dt" not in str(caught.value)


def test_other_failures_still_ask_for_a_smaller_step():
    for mechanism in (zoo.sphere_chain(10), zoo.bricard()):
        sim = da.Simulation(mechanism, da.Variational(dt=0.05, max_iterations=2, max_halvings=0))
        with pytest.raises(da.StepFailure, match="Use a smaller dt"):
            sim.run(2.0)


@pytest.mark.parametrize("make", [zoo.box_drop, zoo.pendulum, lambda: zoo.sphere_chain(10), lambda: zoo.n_four_bar(2)], ids=["box", "pendulum", "spheres", "four-bar"])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-2])
def test_a_guess_within_a_loose_tolerance_is_accepted(make, tolerance):
    for dt in (0.01, 0.001):
        trajectory = da.Simulation(make(), da.Variational(dt=dt, tolerance=tolerance)).run(200 * dt)
        exact = da.Simulation(make(), da.Variational(dt=dt)).run(200 * dt)
        assert trajectory.substeps.max() == 1
        assert np.abs(trajectory.position - exact.position).max() < tolerance
