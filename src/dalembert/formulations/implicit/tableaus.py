"""Coefficients of the methods: adding a DIRK method is adding a table."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import ModelError

#: stages that there is room for
MOST_STAGES = 6


class Tableau(NamedTuple):
    """Coefficients of a diagonally implicit Runge-Kutta method. Adding a method is adding a table."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    embedded: np.ndarray
    stiffly_accurate: bool


def tableau(a: ArrayLike, b: ArrayLike, embedded: ArrayLike) -> Tableau:
    """A method by its stages ``a``, its weights ``b``, and those of an embedded method of lower order, for the error of a step."""
    matrix, weights, other = np.array(a, dtype=float), np.array(b, dtype=float), np.array(embedded, dtype=float)
    if not (1 <= len(weights) <= MOST_STAGES and matrix.shape == (len(weights),) * 2 and other.shape == weights.shape):
        raise ModelError(f"a tableau has 1 to {MOST_STAGES} stages and as many weights, got shapes {matrix.shape}, {weights.shape}, {other.shape}")
    if np.any(np.triu(matrix, 1)) or np.any(np.diag(matrix) <= 0.0):
        raise ModelError("a tableau must be lower triangular with a positive diagonal")
    if abs(weights.sum() - 1.0) > 1e-12 or abs(other.sum() - 1.0) > 1e-12:
        raise ModelError(f"the weights of a tableau must sum to 1, got {weights.sum():.15g} and {other.sum():.15g}")
    return Tableau(matrix, weights, matrix.sum(axis=1), other, bool(np.allclose(matrix[-1], weights, rtol=0.0, atol=1e-14)))


_G = 1.0 - np.sqrt(0.5)
#: Quaternion, Appendix A. The second row of the stiffly accurate method is sqrt(2)/2, 1 - sqrt(2)/2 (as printed it does not sum to 1).
TABLEAUS = {
    "sdirk2": tableau([[_G, 0.0], [1.0 - _G, _G]], [1.0 - _G, _G], [1.0, 0.0]),
    "pareschi_russo": tableau([[_G, 0.0], [1.0 - 2.0 * _G, _G]], [0.5, 0.5], [1.0, 0.0]),
}
MULTISTEP = {"bdf1": 1, "bdf2": 2}
