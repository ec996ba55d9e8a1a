"""Pendulums against closed forms: phase, period, tension and pivot reaction.

Errors fall as dt^2, so each test names the largest round step that reaches the file's tolerance.
"""
from __future__ import annotations

import numpy as np
import pytest
from published import knots, observed_order, problem, run_to, simulate
from scipy.interpolate import CubicSpline

import dalembert as da
from dalembert import zoo

A01 = problem("iftomm_a01_simple_pendulum")
STATES = {float(t): {k: float(v) for k, v in state.items()} for t, state in A01["reference"]["states"].items()}
PERIODS = problem("pendulum_large_amplitude_periods")["reference"]
CONICAL = problem("oscillators_closed_form")["reference"]["conical_pendulum"]


def state_error(position: np.ndarray, velocity: np.ndarray, state: dict[str, float]) -> float:
    """Largest error of angle, rate, position and velocity of the bob."""
    angle = np.arctan2(position[0], -position[1])
    rate = float(np.cross(position, velocity)[2])
    found = (angle, rate, position[0], position[1], velocity[0], velocity[1])
    return max(abs(a - state[k]) for a, k in zip(found, ("theta", "thetadot", "x", "y", "vx", "vy")))


def worst_state_error(dt: float) -> float:
    trajectory = simulate(zoo.simple_pendulum(), dt, 10.0)
    index = knots(trajectory, list(STATES))
    return max(state_error(trajectory.position[k, 0], trajectory.velocity[k, 0], s) for k, s in zip(index, STATES.values()))


def test_simple_pendulum_keeps_its_phase() -> None:
    """Within 3e-4 at 1 ms, the file's order of magnitude for second order, and second order from there."""
    errors = [worst_state_error(dt) for dt in (2e-3, 1e-3, 5e-4)]
    assert errors[1] < 3e-4
    assert observed_order(errors, [2e-3, 1e-3, 5e-4]) == pytest.approx(2.0, abs=0.02)


@pytest.mark.slow
def test_simple_pendulum_to_high_accuracy() -> None:
    """Within the file's tightest tolerance, meant for high-order methods: 1e-8, at a step of 5 us."""
    sim = da.Simulation(zoo.simple_pendulum(), da.Variational(dt=5e-6, tolerance=1e-12))
    for time, state in STATES.items():
        run_to(sim, time)
        assert state_error(sim.position[0], sim.velocity[0], state) < A01["tolerance"]["high_order_integrator"]


def test_simple_pendulum_energy() -> None:
    """At 1 ms there is no trend above 1e-6 J; the bounded error itself is below 1e-6 J at 0.1 ms."""
    trajectory = simulate(zoo.simple_pendulum(), 1e-3, 50.0)
    swing = round(float(A01["reference"]["period_s"]) / 1e-3)
    error = np.convolve(trajectory.energy().total, np.full(swing, 1.0 / swing), mode="valid")
    assert abs(np.polyfit(np.linspace(0.0, 1.0, len(error)), error, 1)[0]) < 1e-6
    trajectory = simulate(zoo.simple_pendulum(), 1e-4, 10.0)
    assert np.abs(trajectory.energy().total).max() < 1e-6


def test_simple_pendulum_tension() -> None:
    trajectory = simulate(zoo.simple_pendulum(), 1e-4, 2.4)
    tension = np.linalg.norm(trajectory.joint("rod").force, axis=1)
    assert tension.max() == pytest.approx(float(A01["reference"]["rod_tension_at_bottom_N"]), abs=1e-5)
    # m g cos(angle) + m v^2 / L all along, to the order of the step
    along = -9.81 * trajectory.position[:, 0, 1] + np.sum(trajectory.velocity[:, 0] ** 2, axis=1)
    np.testing.assert_allclose(tension, along, atol=2e-6)


def period(trajectory: da.Trajectory, swing: np.ndarray) -> float:
    """Twice the time between the first two passes through the bottom."""
    return 2.0 * float(np.diff(CubicSpline(trajectory.time, swing).roots(extrapolate=False)[:2])[0])


@pytest.mark.parametrize("degrees", PERIODS["point_mass_period_by_amplitude_deg"])
def test_period_of_a_point_mass(degrees: str) -> None:
    """Relative 1e-6 at a step of 0.5 ms."""
    exact = float(PERIODS["point_mass_period_by_amplitude_deg"][degrees])
    trajectory = simulate(zoo.simple_pendulum(angle=np.radians(float(degrees))), 5e-4, 0.8 * exact)
    assert period(trajectory, trajectory.position[:, 0, 0]) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("degrees", PERIODS["uniform_rod_period_by_amplitude_deg"])
def test_period_of_a_rod(degrees: str) -> None:
    """Relative 1e-6 at a step of 0.5 ms."""
    exact = float(PERIODS["uniform_rod_period_by_amplitude_deg"][degrees])
    rod = zoo.pendulum(radius=1e-5)
    rod.start("joint 1", 0.5 * np.pi - np.radians(float(degrees)))
    trajectory = simulate(rod, 5e-4, 0.8 * exact)
    assert period(trajectory, trajectory.joint("joint 1").coordinates - 0.5 * np.pi) == pytest.approx(exact, rel=1e-6)


def test_pivot_reaction_of_a_rod() -> None:
    """m g / 4 when it is released from the horizontal, 5/2 m g at the bottom."""
    weight = 9.81
    trajectory = simulate(zoo.pendulum(radius=1e-5), 1e-4, 0.6)
    force = trajectory.joint("joint 1").force
    np.testing.assert_allclose(force[0], (0.0, 0.0, weight / 4), atol=1e-8)
    assert force[:, 2].max() == pytest.approx(2.5 * weight, rel=1e-7)


def test_conical_pendulum() -> None:
    """Tension, rate of turning and height over five turns; second order, 1e-5 N at 1 ms."""
    def errors(dt: float) -> tuple[float, float, float]:
        trajectory = simulate(zoo.conical_pendulum(), dt, 10 * np.pi / CONICAL["omega"])
        tension = np.linalg.norm(trajectory.joint("rod").force, axis=1)
        turned = np.unwrap(np.arctan2(trajectory.position[:, 0, 1], trajectory.position[:, 0, 0]))[-1]
        height = trajectory.position[:, 0, 2]
        return np.abs(tension - CONICAL["tension"]).max(), abs(turned / trajectory.time[-1] - CONICAL["omega"]), np.ptp(height)

    coarse, fine = errors(1e-2), errors(1e-3)
    assert fine[0] < 1e-5
    assert max(fine[1:]) < 3e-6
    for a, b in zip(coarse, fine):
        assert observed_order([a, b], [1e-2, 1e-3]) == pytest.approx(2.0, abs=0.1)
