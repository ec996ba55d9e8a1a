"""Rotation vectors that cover the hard places: near zero and near half a turn."""
from __future__ import annotations

import numpy as np
import pytest

NEAR_ZERO = (0.0, 1e-200, 1e-12, 1e-8, 1e-5, 0.99e-4, 1.01e-4, 1e-3)
MIDDLE = (0.1, 0.5, 1 - 1e-9, 1 + 1e-9, 2.0, 3.0)
NEAR_HALF_TURN = (np.pi - 1e-3, np.pi - 1e-6, np.pi - 1e-9, np.pi)


def _directions() -> np.ndarray:
    random = np.random.default_rng(7).normal(size=(6, 3))
    d = np.vstack([np.eye(3), -np.eye(3), [[1, 1, 0], [0, 1, -1], [1, 1, 1]], random])
    return d / np.linalg.norm(d, axis=1, keepdims=True)


DIRECTIONS = _directions()


@pytest.fixture(params=NEAR_ZERO + MIDDLE + NEAR_HALF_TURN, ids=lambda angle: f"{angle:.12g}")
def rotation_vectors(request) -> np.ndarray:
    """Rotation vectors of one angle, (n, 3)."""
    return request.param * DIRECTIONS


@pytest.fixture
def directions() -> np.ndarray:
    """Unit vectors: the axes both ways, some diagonals and random ones, (n, 3)."""
    return DIRECTIONS
