"""The implicit methods on linkages with singular poses: on their branch throughout, and to closed forms at their orders."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from published import knots, observed_order, problem
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert import zoo

FOUR_BAR = problem("iftomm_a02_n_four_bar")
BRICARD = problem("iftomm_a04_bricard")


def four_bars(n: int, method: str, dt: float, duration: float) -> tuple[float, float]:
    """Largest error of the first crank's angle at every half second, and largest difference between the cranks."""
    trajectory = da.Simulation(zoo.n_four_bar(n), da.Implicit(dt=dt, method=method)).run(duration)
    times = np.arange(0.5, duration + 1e-9, 0.5)
    k = knots(trajectory, times)
    angle = -np.array([trajectory.joint(f"ground {i}").coordinates for i in range(n + 1)])
    pull = 9.81 * (0.5 * (n + 1) + n) / ((n + 1) / 3.0 + n)
    motion: Any = lambda _, y: (y[1], pull * np.sin(y[0]))  # noqa: E731
    exact = solve_ivp(motion, (0.0, duration), (0.0, 1.0), method="DOP853", rtol=1e-13, atol=1e-13, t_eval=times).y[0]
    if method != "pareschi_russo":
        assert trajectory.constraint_violation().max() < 1e-10
    return float(np.abs(angle[0, k] - exact).max()), float(np.ptp(angle, axis=0).max())


@pytest.mark.parametrize(("method", "dt"), [("bdf2", 5e-4), ("pareschi_russo", 1e-3)])
def test_double_four_bar_for_ten_seconds(method, dt):
    """Ten passes through singular poses: the benchmark's 1e-3, second order, no crank on another branch."""
    coarse, fine = four_bars(2, method, 2 * dt, 10.0), four_bars(2, method, dt, 10.0)
    assert fine[0] < FOUR_BAR["tolerance"]["high"]
    assert max(coarse[1], fine[1]) < 1e-6
    assert observed_order([coarse[0], fine[0]], [2 * dt, dt]) > 1.9
    end = da.Simulation(zoo.double_four_bar(), da.Implicit(dt=dt, method=method)).run(10.0)
    tip, state = end.point("crank 0", (0.5, 0.0, 0.0))[-1], FOUR_BAR["reference"]["N2"]["10"]
    assert tip[:2] == pytest.approx([float(state["B0_x"]), float(state["B0_y"])], abs=FOUR_BAR["tolerance"]["high"])


@pytest.mark.parametrize(("method", "order"), [("bdf1", 1), ("sdirk2", 1), ("bdf2", 2), ("pareschi_russo", 2)])
@pytest.mark.parametrize("n", [1, 5])
def test_n_four_bars(n, method, order):
    """A turn, through both singular poses; the methods of first order lose energy, but no branch either."""
    steps = [2e-4, 1e-4] if order == 1 else [2e-3, 1e-3]
    errors, apart = zip(*(four_bars(n, method, dt, 1.5) for dt in steps))
    assert max(apart) < 1e-6
    assert observed_order(list(errors), steps) > order - 0.2
    assert errors[1] < 0.1


@pytest.mark.parametrize(("method", "order", "bar"), [("bdf2", 2, 1e-5), ("pareschi_russo", 2, 1e-5), ("sdirk2", 1, 1e-2)])
def test_bricard(method, order, bar):
    """The observed point over 10 s."""
    errors, steps = [], [2e-3, 1e-3]
    for dt in steps:
        trajectory = da.Simulation(zoo.bricard(), da.Implicit(dt=dt, method=method)).run(10.0)
        k = knots(trajectory, BRICARD["reference"]["t"])
        errors.append(float(np.abs(trajectory.point("rod 2", (0.5, 0.0, 0.0))[k] - BRICARD["reference"]["P3"]).max()))
        if method != "pareschi_russo":
            assert trajectory.constraint_violation().max() < 1e-10
    assert errors[1] < bar
    assert observed_order(errors, steps) > order - 0.2


THROUGH = dict(opening=0.35, spin=1.5, opening_rate=-2.5)


def hoberman(method: str, dt: float) -> float:
    """Error of the opening 0.2 s after a start that leads through the singular pose, expansion before and contraction after."""
    trajectory = da.Simulation(zoo.hoberman_sphere(**THROUGH), da.Implicit(dt=dt, method=method)).run(0.2)
    exact = zoo.hoberman_exact(trajectory.time, **THROUGH)
    assert exact.min() < -0.4
    pivots = [abs(trajectory.joint(f"pivot {k}").coordinates[-1]) for k in range(120)]
    assert np.ptp(pivots) < 1e-9
    assert trajectory.constraint_violation().max() < 1e-10
    return float(abs(zoo.hoberman_opening(trajectory.position[-1]) - abs(exact[-1])))


@pytest.mark.parametrize(("method", "order", "steps"), [
    ("bdf2", 2, [4e-3, 2e-3]), pytest.param("bdf2", 2, [1e-3, 5e-4], marks=pytest.mark.slow),
    pytest.param("sdirk2", 1, [1e-3, 5e-4], marks=pytest.mark.slow),
])
def test_hoberman_sphere_through_its_singular_pose(method, order, steps):
    errors = [hoberman(method, dt) for dt in steps]
    assert errors[1] < 0.02
    assert observed_order(errors, steps) > order - 0.1
