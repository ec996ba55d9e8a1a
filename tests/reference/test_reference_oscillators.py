"""A mass on a spring, with and without damper, against closed forms: second order, below 1e-6 m at 1 ms."""
from __future__ import annotations

import pytest
from published import observed_order, problem, simulate

from dalembert import zoo

REFERENCE = problem("oscillators_closed_form")["reference"]
STEPS = [1e-2, 1e-3]


def test_undamped_oscillator() -> None:
    errors = [abs(simulate(zoo.mass_spring(), dt, 1.0).joint("slide").coordinates[-1] - REFERENCE["undamped"]["x_at_t1"]) for dt in STEPS]
    assert errors[1] < 1e-6
    assert observed_order(errors, STEPS) == pytest.approx(2.0, abs=0.01)


def test_damped_oscillator() -> None:
    ends = [simulate(zoo.damped_oscillator(), dt, 1.0).joint("slide") for dt in STEPS]
    positions = [abs(end.coordinates[-1] - REFERENCE["damped"]["x_at_t1"]) for end in ends]
    rates = [abs(end.rates[-1] - REFERENCE["damped"]["v_at_t1"]) for end in ends]
    for errors in (positions, rates):
        assert errors[1] < 1e-6
        assert observed_order(errors, STEPS) == pytest.approx(2.0, abs=0.01)


def test_undamped_energy_is_bounded() -> None:
    """After 1000 s the energy is still within the first second's band."""
    total = simulate(zoo.mass_spring(), 1e-2, 1000.0).energy().total
    band = abs(total[:200] - total[0]).max()
    assert abs(total - total[0]).max() < 1.01 * band
