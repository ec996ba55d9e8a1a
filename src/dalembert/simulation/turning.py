"""A watch on bodies that turn far within a step, whose angles run away from what their speeds say."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from dalembert.errors import TurnWarning

#: rad within a step, from which on a warning is given
FAR = 0.4
#: steps of a run that are looked at
LOOKS = 500


def warn_of_far_turns(formulation: Any, bodies: Sequence[str], orientation: np.ndarray, substeps: np.ndarray, dt: float) -> None:
    """Warn where a body turns by more than ``FAR`` within a step. ``orientation`` (N, bodies, 4), ``substeps`` (N,).

    A formulation tells by ``turn_error`` how far, relative to the angle, a steady turn of so many rad per step runs ahead.
    """
    error_of = getattr(formulation, "turn_error", None)
    if error_of is None or len(orientation) < 2:
        return
    steps = np.unique(np.linspace(0, len(orientation) - 2, min(len(orientation) - 1, LOOKS)).astype(int))
    close = np.abs(np.einsum("nbi,nbi->nb", orientation[steps], orientation[steps + 1]))
    turn = 2.0 * np.arccos(np.minimum(close, 1.0)) / np.maximum(substeps[steps + 1], 1)[:, None]
    if turn.max() > FAR:
        body = bodies[int(turn.max(axis=0).argmax())]
        largest = float(turn.max())
        warnings.warn(
            f"{body!r} turns by {largest:.2g} rad within a step of dt = {dt:g} s, where its angle runs ahead of its speed by {error_of(largest):.2g} of it. "
            f"Use dt below {dt * FAR / largest:.2g} s, or Reduced, whose joint angles follow their speeds.",
            TurnWarning, stacklevel=5,
        )
