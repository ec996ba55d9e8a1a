"""What a run in maximal coordinates writes down, knot by knot."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Recording(NamedTuple):
    """Arrays over the knots (first axis): what a formulation needs to look back."""

    position: np.ndarray  # (N, n, 3)
    orientation: np.ndarray  # (N, n, 4)
    momentum: np.ndarray  # (N, n, 6) left limits, or at the knots: world, body
    step_before: np.ndarray  # (N,) length of the step that ended at the knot
    row_force: np.ndarray  # (N, joints, 6), N or N m
    coupling_force: np.ndarray  # (N, couplings)
    substeps: np.ndarray  # (N,) of the interval before the knot
    iterations: np.ndarray  # (N,)
    spin: np.ndarray  # (N, joints, 6) left limits of the momenta of reflected inertias
    coordinate: np.ndarray  # (N, joints, 6) and
    rate: np.ndarray  # (N, joints, 6) along the directions, of formulations whose unknowns they are


def new_recording(knots: int, bodies: int, joints: int, couplings: int) -> Recording:
    """Room for a run."""
    return Recording(
        np.zeros((knots, bodies, 3)), np.zeros((knots, bodies, 4)), np.zeros((knots, bodies, 6)), np.zeros(knots),
        np.zeros((knots, joints, 6)), np.zeros((knots, couplings)),
        np.zeros(knots, np.int64), np.zeros(knots, np.int64), *(np.zeros((knots, joints, 6)) for _ in range(3)),
    )
