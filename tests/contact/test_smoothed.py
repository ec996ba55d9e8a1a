"""Contacts as smoothed equations: their roots are the interior point's, their matrix is their derivative."""
from __future__ import annotations

import numpy as np
import pytest

from dalembert.contact.records import CONTACT, LIMIT
from dalembert.contact.smoothed import settle, smoothed_matrix, smoothed_residual, smoothed_rows
from dalembert.contact.smoothed_limits import limit_matrix_smoothed, limit_residual_smoothed, limit_rows, settle_limit


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
        for rows in (smoothed_residual(c[0], kappa), smoothed_rows(c[0], kappa, 0.0)):
            assert np.abs(rows).max() < 1e-9 * np.sqrt(kappa) + 1e-14 * size


@pytest.mark.parametrize("spread", [-2.0, -0.5, 0.0, 0.5, 2.0])
def test_matrix_is_the_derivative(spread: float):
    """Of the rows as they are written: products near their aim, and projections far from it. A product's row is a Newton step for it, whatever it is divided by."""
    rng, kappa = np.random.default_rng(3), 1e-6
    for trial in range(12):
        c = contact(rng, kappa, spread)
        c["gamma"] *= (1.0, 1e3, 1e-3)[trial % 3]
        c["beta"] += 0.3 * c["friction"] * c["gamma"] * rng.uniform(-1, 1, 2)
        S = np.zeros((3, 3))
        w0, w00, w01, w11 = smoothed_matrix(c[0], S, kappa)
        rates = np.array([[w0, 0, 0], [0, w00, w01], [0, w01, w11]])
        for column, (name, place) in enumerate((("gamma", ()), ("beta", (0,)), ("beta", (1,)), ("s", ()), ("eta", (0,)), ("eta", (1,)))):
            changes = []
            unit = float(c["weight"][0]) if name in ("gamma", "beta") else 1.0
            step = 1e-5 * unit * np.sqrt(kappa)
            if name == "eta":  # within the rows' own form
                step = min(step, 1e-3 * float(np.linalg.norm(c["eta"])))
            for sign in (1.0, -1.0):
                moved = c.copy()
                moved[name][(0, *place)] += sign * step
                changes.append(np.array(smoothed_rows(moved[0], kappa, 0.0)))
            found = (changes[0] - changes[1]) / (2.0 * step)
            given = S[:, column] if column < 3 else rates[:, column - 3]
            assert np.abs(found - given).max() * unit < 2e-4 * max(1.0, float(np.abs(given).max()) * unit)


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


def limit(rng: np.random.Generator, kappa: float, spread: float) -> np.ndarray:
    """A direction between two ends, with dry friction, whose products are all ``kappa``."""
    l = np.zeros(1, LIMIT)
    l["weight"], l["awake"] = 10.0 ** rng.uniform(-3, 1), 1
    l["cap"] = l["weight"] * 10.0 ** rng.uniform(-3, 0)
    l["unit"] = l["weight"] * rng.uniform(0.1, 1.0)
    l["s"] = np.sqrt(kappa) * 10.0 ** np.array([spread, -spread])
    l["gamma"] = kappa * l["weight"] / l["s"]
    l["eta"] = rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-9, 0)
    k = kappa * l["unit"] / l["cap"]
    l["psi"] = 0.5 * (k + np.sqrt(k**2 + 4.0 * l["eta"] ** 2))
    l["beta"] = -l["cap"] * l["eta"] / l["psi"]
    return l


@pytest.mark.parametrize("spread", [-3.0, 0.0, 3.0])
def test_roots_of_limits_are_those_of_the_cones(spread: float):
    rng, kappa = np.random.default_rng(4), 1e-10
    for _ in range(20):
        l = limit(rng, kappa, spread)
        size = max(float(np.abs(l["gamma"]).max() / l["weight"][0]), float(l["s"].max()), abs(float(l["eta"][0])))
        for rows in (limit_residual_smoothed(l[0], kappa), limit_rows(l[0], kappa, 0.0)):
            assert np.abs(rows).max() < 1e-8 * np.sqrt(kappa) + 1e-14 * size
        psi = float(l["psi"][0])
        l["psi"] = 0.0
        assert settle_limit(l[0], kappa)
        assert float(l["psi"][0]) == pytest.approx(psi, rel=1e-5)


def test_matrix_of_limits_is_the_derivative():
    rng, kappa = np.random.default_rng(5), 1e-6
    for trial in range(12):
        l = limit(rng, kappa, rng.uniform(-1.0, 1.0))
        l["gamma"] *= (1.0, 1e3, 1e-3)[trial % 3]
        S = np.zeros((3, 3))
        w0, w1, w2 = limit_matrix_smoothed(l[0], S, kappa)
        m = float(l["weight"][0])
        for row, name, place, given in (
            (0, "gamma", (0,), S[0, 0]), (1, "gamma", (1,), S[1, 1]), (2, "beta", (), S[2, 2]), (0, "s", (0,), w0), (1, "s", (1,), -w1), (2, "eta", (), w2),
        ):
            unit = m if name in ("gamma", "beta") else 1.0
            room = float(l["cap"][0] - abs(l["beta"][0])) / m if name == "beta" else 1.0
            step = 1e-5 * unit * min(np.sqrt(kappa), room)
            changes = []
            for sign in (1.0, -1.0):
                moved = l.copy()
                moved[name][(0, *place)] += sign * step
                changes.append(limit_rows(moved[0], kappa, 0.0)[row])
            assert (changes[0] - changes[1]) / (2.0 * step) * unit == pytest.approx(given * unit, rel=2e-3, abs=2e-4)
