"""Objectives for optimisers: residuals with their Jacobian, and starts of loops that have to be assembled anew."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

import dalembert as da

METHOD = da.Variational(dt=0.02, tolerance=1e-12)
NAMES = ["joint 1.damping", "link 2.mass", "joint 2.start_rate"]


def swinging() -> da.Mechanism:
    mechanism = da.zoo.double_pendulum()
    mechanism.start("joint 1", 0.8)
    return mechanism


def fit(mechanism: da.Mechanism, recorded: np.ndarray, values: dict[str, float]):
    def residuals(run):
        return run.joint("joint 2").coordinates - recorded, lambda change: change["coordinate"][:, run.joints.index("joint 2"), 0]

    return da.residuals_and_jacobian(mechanism, METHOD, 0.2, NAMES, residuals, values=values)


def test_least_squares_finds_the_numbers_of_a_run():
    mechanism = swinging()
    sim = da.Simulation(mechanism, METHOD)
    truth = {"joint 1.damping": 0.3, "link 2.mass": 1.4, "joint 2.start_rate": -0.5}
    sim.set_parameters({name: value for name, value in truth.items() if "start" not in name})
    sim.set_joint("joint 2", rate=truth["joint 2.start_rate"])
    recorded = sim.run(0.2).joint("joint 2").coordinates
    r = fit(mechanism, recorded, {"joint 1.damping": 0.1, "link 2.mass": 1.0, "joint 2.start_rate": 0.0})
    columns = np.stack([(r(r.x0 + step) - r(r.x0 - step)) / 2e-5 for step in 1e-5 * np.eye(3)], axis=1)
    np.testing.assert_allclose(r.jacobian(r.x0), columns, atol=1e-7)
    found = least_squares(r, r.x0, jac=r.jacobian)  # pyright: ignore[reportArgumentType]
    np.testing.assert_allclose(found.x, list(truth.values()), atol=1e-5)


def test_an_objective_needs_a_parameter():
    with pytest.raises(da.GradientError, match="at least one"):
        da.residuals_and_jacobian(swinging(), METHOD, 0.3, [], lambda run: (run.time, lambda change: run.time))


def test_runs_of_an_objective_do_not_depend_on_those_before():
    """One simulation serves all runs that change no numbers of the mechanism."""
    weights = np.zeros((16, 2, 3))
    weights[-1] = 1.0
    f = da.value_and_gradient(swinging(), METHOD, 0.3, ["joint 1.start"], lambda run: (run.position[-1].sum(), {"position": weights}))
    first = f(f.x0)
    kept = f.run(f.x0 + 0.2, tape=True)
    other = f(f.x0 - 0.3)
    again = f(f.x0)
    assert first[0] == again[0] != other[0]
    np.testing.assert_array_equal(first[1], again[1])
    np.testing.assert_array_equal(kept.vjp({"position": weights}, ["joint 1.start"])["joint 1.start"], f(f.x0 + 0.2)[1][0])


def test_a_moving_start_of_a_sphere_of_loops():
    """Its 547 redundant rows are closed again, with a rod held in place, and velocities settled on them."""
    sphere = da.zoo.hoberman_sphere(opening=0.9)
    sphere.joint("throw", da.Free(), sphere.world, "rod 0")
    weights = np.zeros((4, 240, 3))
    weights[-1] = np.random.default_rng(0).normal(size=(240, 3))
    f = da.value_and_gradient(
        sphere, da.Variational(dt=0.05, tolerance=1e-12), 0.15, ["pivot 0.start", "pivot 0.start_rate", "throw.start_rate"],
        lambda run: (float(np.sum(weights[-1] * run.position[-1])), {"position": weights}), setup=lambda sim: sim.set_joint("throw", np.zeros(6)),
    )
    x, along = np.array([0.1, 0.5, 1.0, 0.2, 0.3, 0.1, 1.0, 0.5]), np.random.default_rng(1).normal(size=8)
    ends = [f.loss(f.run(x + step * along))[0] for step in (1e-5, -1e-5)]
    assert f(x)[1] @ along == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)
