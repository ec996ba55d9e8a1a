"""Derivatives of a pendulum's state after three seconds, against the closed form differentiated at 40 digits."""
from __future__ import annotations

import numpy as np
import pytest
from published import problem

import dalembert as da

CASE = problem("gradient_pendulum")


#: a ball (kg m^2, per kg) at such a distance (m) that it swings as a point at L does: L = DISTANCE + INERTIA / DISTANCE
INERTIA = 0.05
DISTANCE = 0.5 * (CASE["parameters"]["L"] + np.sqrt(CASE["parameters"]["L"] ** 2 - 4.0 * INERTIA))


def pendulum() -> da.Mechanism:
    mechanism = da.Mechanism("gradient pendulum")
    mechanism.body("mass", mass=1.0, inertia=INERTIA * np.eye(3), position=(0, 0, -DISTANCE))
    mechanism.joint("pivot", da.Revolute(axis="y"), "world", "mass", at=(0, 0, 0))
    return mechanism


def derivatives(formulation) -> np.ndarray:
    """(2, 4) of angle and rate by the first angle, the first rate, gravity and length."""
    sim = da.Simulation(pendulum(), formulation, energy_bound=None)
    start = CASE["initial_conditions"]
    sim.set_joint("pivot", start["theta0"], rate=start["omega0"])
    run = sim.run(CASE["parameters"]["t"], tape=True)
    rows = []
    for output in ("coordinate", "rate"):
        weights = np.zeros((len(run), 1, 6))
        weights[-1, 0, 0] = 1.0
        g = run.vjp({output: weights}, ["pivot.start", "pivot.start_rate", "gravity", "pivot.point_child"])
        by_length = g["pivot.point_child"][2] / (1.0 - INERTIA / DISTANCE**2)
        rows.append([g["pivot.start"], g["pivot.start_rate"], -g["gravity"][2], by_length])  # gravity points down
    return np.array(rows, dtype=float)


@pytest.mark.parametrize("formulation", [da.Variational, da.Implicit, da.Reduced], ids=["variational", "bdf2", "reduced"])
def test_derivatives_converge_with_order_two(formulation):
    table = CASE["reference"]["d_state_d"]
    exact = np.array([[float(v) for v in table[name]] for name in ("theta0", "omega0", "g", "L")]).T
    errors = [np.abs(derivatives(formulation(dt=dt, tolerance=1e-12)) - exact).max() for dt in (0.01, 0.005, 0.0025)]
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert np.all(orders > 1.85), (errors, orders)
    assert errors[-1] < 1e-3 * np.abs(exact).max(), errors
