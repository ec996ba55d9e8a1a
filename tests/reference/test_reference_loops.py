"""Closed loops against closed forms and published digits: parallelograms, Bricard, Andrews."""
from __future__ import annotations

import numpy as np
import pytest
from published import knots, observed_order, problem, simulate

import dalembert as da
from dalembert import zoo
from dalembert.simulation.trajectory import rotate

FOUR_BAR = problem("iftomm_a02_n_four_bar")
BRICARD = problem("iftomm_a04_bricard")
ANDREWS = problem("andrews_squeezer")
ANDREWS_BODIES = ANDREWS["maximal_coordinate_model"]["bodies"]


def four_bar_errors(dt: float) -> dict[str, float]:
    """Largest error of each quantity of the file over its times."""
    states = FOUR_BAR["reference"]["N2"]
    trajectory = simulate(zoo.double_four_bar(), dt, 10.0, tolerance=1e-10)
    k = knots(trajectory, [float(t) for t in states])
    crank = trajectory.joint("ground 0")
    angle, rate = -crank.coordinates[k], -crank.rates[k]
    tip = trajectory.point("crank 0", (0.5, 0.0, 0.0))[k]
    found = dict(theta=angle, thetadot=rate, B0_x=tip[:, 0], B0_y=tip[:, 1], B0_vx=rate * tip[:, 1], B0_vy=-rate * tip[:, 0])
    return {name: float(np.abs(values - [float(s[name]) for s in states.values()]).max()) for name, values in found.items()}


def test_parallelograms_stay_parallelograms() -> None:
    """Ten passes through singular poses in 10 s: within 1e-3, the benchmark's high accuracy, at 1 ms; second order."""
    coarse, fine = four_bar_errors(2e-3), four_bar_errors(1e-3)
    assert max(fine.values()) < FOUR_BAR["tolerance"]["high"]
    for name in fine:
        assert observed_order([coarse[name], fine[name]], [2e-3, 1e-3]) == pytest.approx(2.0, abs=0.1)


@pytest.mark.slow
def test_parallelograms_to_high_accuracy() -> None:
    """Within 1e-6 over 10 s at a step of 125 us: angle and position as such, rates and velocities by the fastest, 6.8 per s.

    Much smaller steps gain little: a knot that falls within 1e-6 rad of a singular pose turns the rounding of the
    positions into as much of the cranks' rates.
    """
    errors, tolerance = four_bar_errors(1.25e-4), FOUR_BAR["tolerance"]["good_simulator"]
    fastest = max(float(state["thetadot"]) for state in FOUR_BAR["reference"]["N2"].values())
    for name in ("theta", "B0_x", "B0_y"):
        assert errors[name] < tolerance
    for name in ("thetadot", "B0_vx", "B0_vy"):
        assert errors[name] < tolerance * fastest


def test_four_bar_energy_and_turns() -> None:
    trajectory = simulate(zoo.double_four_bar(), 1e-3, 10.0, tolerance=1e-10)
    energy = trajectory.energy().total
    assert energy[0] == pytest.approx(35.835, rel=1e-13)
    assert np.abs(energy - energy[0]).max() < 1e-3
    angle = -trajectory.joint("ground 0").coordinates
    turned = np.interp(2.0 * np.pi * np.arange(1, 6), angle, trajectory.time)
    np.testing.assert_allclose(turned, float(FOUR_BAR["reference"]["full_turn_period"]["N2"]) * np.arange(1, 6), rtol=1e-5)


def bricard_run(dt: float) -> tuple[da.Trajectory, float, float]:
    """The run and the largest errors of the observed point's position and velocity."""
    reference = BRICARD["reference"]
    trajectory = simulate(zoo.bricard(), dt, 10.0, tolerance=1e-10)
    k = knots(trajectory, reference["t"])
    path = trajectory.point("rod 2", (0.5, 0.0, 0.0))
    rod = trajectory.body("rod 2")
    turning = rotate(rod.orientation, np.cross(rod.angular_velocity, (0.5, 0.0, 0.0)))
    velocity = rod.velocity + turning
    return trajectory, float(np.abs(path[k] - reference["P3"]).max()), float(np.abs(velocity[k] - reference["P3_velocity"]).max())


def test_bricard() -> None:
    """The observed point within the file's 1e-6 m and m/s over 10 s, and the energy within its 1e-6 J, at 0.4 ms."""
    trajectory, position, velocity = bricard_run(4e-4)
    assert position < BRICARD["tolerance"]["high"]
    assert velocity < BRICARD["tolerance"]["high"]
    energy = trajectory.energy().total
    assert energy[0] == pytest.approx(BRICARD["reference"]["energy_constant"], abs=1e-12)
    assert np.abs(energy - energy[0]).max() < BRICARD["tolerance"]["energy_J"]
    assert trajectory.constraint_violation().max() < 1e-10


def andrews_errors(dt: float) -> tuple[float, float, float]:
    """Errors at 0.03 s of the crank's angle, of all angles (rad), and of the centres of mass (m)."""
    reference = ANDREWS["reference"]
    trajectory = simulate(zoo.andrews_squeezer(), dt, reference["t"], tolerance=1e-10)
    assert trajectory.bodies == tuple(ANDREWS_BODIES)
    start = ANDREWS["initial_conditions"]["angles"]["beta"]
    crank = abs(trajectory.joint("world-OF at O").coordinates[-1] + start - reference["q"][0])
    q = trajectory.orientation[-1]
    angles = 2.0 * np.arctan2(q[:, 3], q[:, 0]) - reference["absolute_angles"]
    away = np.abs(np.remainder(angles + np.pi, 2.0 * np.pi) - np.pi).max()
    centres = np.abs(trajectory.position[-1, :, :2] - reference["com_positions"]).max()
    return float(crank), float(away), float(centres)


def test_andrews_squeezer_converges() -> None:
    """The crank's angle, after two and a half turns, within the file's 1e-3 rad at 20 us; second order in all angles."""
    steps = [4e-5, 2e-5, 1e-5]
    errors = np.array([andrews_errors(dt) for dt in steps])
    assert errors[1, 0] < 1e-3
    for column in errors.T:
        assert observed_order(list(column), steps) == pytest.approx(2.0, abs=0.05)


@pytest.mark.slow
def test_andrews_squeezer_to_high_accuracy() -> None:
    """All angles within 1e-6 rad at a step of 0.5 us."""
    assert max(andrews_errors(5e-7)[:2]) < 1e-6


def test_andrews_squeezer_accelerates_as_published() -> None:
    """Second derivatives of the first two angles at the start, from two steps of 1 us."""
    dt = 1e-6
    trajectory = simulate(zoo.andrews_squeezer(), dt, 2 * dt)
    for joint, name in (("world-OF at O", "beta_dd0"), ("OF-FE at F", "Theta_dd0")):
        turned = trajectory.joint(joint).coordinates[1]
        assert 2.0 * turned / dt**2 == pytest.approx(ANDREWS["initial_conditions"][name], rel=1e-6)
