"""What the studies compare with are honest integrators: they tend to the same motion, each at its order."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.studies.baselines import double_pendulum, ggl
from dalembert.studies.baselines.galerkin import MinimalPendulum, NoRootError
from dalembert.studies.baselines.runge_kutta import RungeKutta
from dalembert.studies.variational.double_four_bar_energy import planar_double_four_bar


def order(errors: list[float]) -> float:
    return float(np.log2(errors[-2] / errors[-1]))


@pytest.mark.parametrize(("method", "expected"), [("euler", 1), ("heun", 2), ("rk4", 4)])
def test_runge_kutta_on_balls(method, expected):
    chain = da.zoo.pendulum(2, "spherical")
    chain.start("joint 1", rate=(1.0, 0.5, 2.0))
    exact = da.Simulation(chain, da.Reduced(dt=0.2, method="DOP853", rtol=1e-12, atol=1e-12)).run(0.2)
    ends = [RungeKutta(chain, method, 0.2 / n).run(n) for n in (20, 40)]
    wanted = np.concatenate([exact.joint(f"joint {k}").coordinates[-1] for k in (1, 2)])
    assert abs(order([np.abs(end.q[-1] - wanted).max() for end in ends]) - expected) < 0.15


def test_runge_kutta_of_a_loop_is_open_but_close():
    loop = da.zoo.three_link_loop()
    motion = RungeKutta(loop, "rk4", 0.005).run(100)
    run = da.Simulation(loop, da.Variational(dt=0.001)).run(0.5)
    assert motion.q[-1][0] == pytest.approx(run.joint("joint 1").coordinates[-1], abs=1e-5)
    assert 1e-12 < motion.opening()[-1] < 1e-6
    assert motion.energy()[-1] == pytest.approx(motion.energy()[0], abs=1e-6)


def test_scalar_double_pendulum_is_that_of_the_zoo():
    run = da.Simulation(da.zoo.double_pendulum(), da.Reduced(dt=0.5, method="DOP853", rtol=1e-11)).run(0.5)
    states = [double_pendulum.heun(n, 0.5 / n) for n in (250, 500)]
    wanted = 0.5 * np.pi - float(run.joint("joint 1").coordinates[-1])
    errors = [abs(state[-1, 0] - wanted) for state in states]
    assert errors[-1] < 1e-4
    assert abs(order(errors) - 2.0) < 0.2
    assert double_pendulum.energy(states[0])[0] == pytest.approx(run.energy().total[0], abs=1e-12)


@pytest.mark.parametrize("expected", [2, 3])
def test_minimal_variational_integrators(expected):
    run = da.Simulation(da.zoo.pendulum(3), da.Reduced(dt=0.5, method="DOP853", rtol=1e-12, atol=1e-12)).run(0.5)
    wanted = np.array([float(run.joint(f"joint {k}").coordinates[-1]) for k in (1, 2, 3)])
    errors = []
    for n in (25, 50):
        pendulum = MinimalPendulum(3, expected, 0.5 / n, 1e-11)
        for _ in range(n):
            pendulum.step()
        errors.append(float(np.abs([0.5 * np.pi, 0.0, 0.0] - pendulum.angles - wanted).max()))
    assert abs(order(errors) - expected) < 0.3


def test_minimal_variational_integrator_says_when_it_fails():
    with pytest.raises(NoRootError, match="N m s"):
        MinimalPendulum(100, 3, 0.01, 1e-10).step()


def test_ggl_keeps_positions_and_velocities_and_is_first_order():
    exact = da.Simulation(da.zoo.double_four_bar(), da.Variational(dt=0.001)).run(0.5).joint("ground 0")
    errors = []
    for n in (25, 50):
        linkage, q, p = planar_double_four_bar()
        for _ in range(n):
            q, p = ggl.step(linkage, q, p, 0.5 / n)
        gap, G, _ = linkage.rows(q, p / linkage.weights)
        assert np.abs(gap).max() < 1e-9
        assert np.abs(G @ (p / linkage.weights)).max() < 1e-9
        assert q[2] - 0.5 * np.pi == pytest.approx(exact.coordinates[-1], abs=2e-3)
        errors.append(abs(p[2] / linkage.weights[2] - exact.rates[-1]))
    assert abs(order(errors) - 1.0) < 0.3
