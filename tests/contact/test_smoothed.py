"""Contacts as smoothed equations: their roots are the interior point's, their matrix is their derivative."""
from __future__ import annotations

import numpy as np
import pytest

from dalembert.contact.records import CONTACT
from dalembert.contact.smoothed import settle, smoothed_matrix, smoothed_residual


def contact(rng: np.random.Generator, kappa: float, spread: float) -> np.ndarray:
    """A contact whose products are all ``kappa``, slack and impulse apart by a factor of ten to the ``spread``."""
    c = np.zeros(1, CONTACT)
    c["friction"], c["weight"] = rng.uniform(0.1, 2.0), 10.0 ** rng.uniform(-2, 2)
    c["tau"], c["sigma"] = rng.uniform(0.2, 1.0, 2)
    c["s"] = np.sqrt(kappa) * 10.0**spread
    c["gamma"] = kappa * c["weight"] / c["s"]
    slide = 10.0 ** rng.uniform(-10, 0) * np.array([np.cos(spread), np.sin(spread)])
    k = kappa * c["weight"][0] / (c["friction"][0] * c["gamma"][0])
    c["eta"], c["psi"] = slide, 0.5 * (k + np.sqrt(k**2 + 4.0 * slide @ slide))
    c["beta"] = -c["friction"] * c["gamma"] * slide / c["psi"][0]
    return c


@pytest.mark.parametrize("spread", [-4.0, -2.0, 0.0, 2.0, 4.0])
@pytest.mark.parametrize("kappa", [1e-12, 1e-6])
def test_roots_are_those_of_the_cones(spread: float, kappa: float):
    rng = np.random.default_rng(int(10 + spread))
    for _ in range(20):
        c = contact(rng, kappa, spread)
        size = max(float(c["gamma"][0] / (c["weight"][0] * c["tau"][0])), float(c["s"][0]), float(np.linalg.norm(c["eta"])))
        assert np.abs(smoothed_residual(c[0], kappa, 0.0)).max() < 1e-9 * np.sqrt(kappa) + 1e-14 * size


@pytest.mark.parametrize("spread", [-2.0, -0.5, 0.0, 0.5, 2.0])
def test_matrix_is_the_derivative(spread: float):
    rng, kappa = np.random.default_rng(3), 1e-6
    for _ in range(10):
        c = contact(rng, kappa, spread)
        c["gamma"] *= rng.uniform(0.7, 1.4)
        c["beta"] += 0.3 * c["friction"] * c["gamma"] * rng.uniform(-1, 1, 2)
        S = np.zeros((3, 3))
        w0, w00, w01, w11 = smoothed_matrix(c[0], S, kappa)
        rates = np.array([[w0, 0, 0], [0, w00, w01], [0, w01, w11]])
        for column, (name, place) in enumerate((("gamma", ()), ("beta", (0,)), ("beta", (1,)), ("s", ()), ("eta", (0,)), ("eta", (1,)))):
            changes = []
            unit = float(c["weight"][0]) if name in ("gamma", "beta") else 1.0
            step = 1e-5 * unit * np.sqrt(kappa)
            for sign in (1.0, -1.0):
                moved = c.copy()
                moved[name][(0, *place)] += sign * step
                changes.append(np.array(smoothed_residual(moved[0], kappa, 0.0)))
            found = (changes[0] - changes[1]) / (2.0 * step)
            given = S[:, column] if column < 3 else rates[:, column - 3]
            assert np.abs(found - given).max() * unit < 2e-4


@pytest.mark.parametrize("spread", [-3.0, 3.0])
def test_settled_products_are_kappa(spread: float):
    kappa = 1e-10
    c = contact(np.random.default_rng(1), kappa, spread)
    c["psi"] = 0.0
    settle(c[0], kappa)
    goal = kappa * float(c["weight"][0])
    assert float(c["s"][0] * c["gamma"][0]) == pytest.approx(goal, rel=1e-12)
    inner = c["friction"][0] * c["gamma"][0] * c["psi"][0] + c["beta"][0] @ c["eta"][0]
    assert float(inner) == pytest.approx(goal, rel=1e-9)
    assert c["psi"][0] > np.linalg.norm(c["eta"][0])
