"""What derivatives of runs with contacts say about themselves: whether they were smoothed, and where the run has kinks."""
from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from dalembert.errors import GradientError, GradientWarning
from dalembert.simulation.record import Record

#: kinks that a warning names
NAMED = 3


class Derivatives(dict[str, np.ndarray]):
    """Arrays by name. ``smoothing``: the speed (m/s) by which contacts were smoothed, zero for the exact derivatives of the run."""

    def __init__(self, values: Mapping[str, np.ndarray], smoothing: float = 0.0) -> None:
        super().__init__(values)
        self.smoothing = smoothing


class Smoothing:
    """Tapes of a record as derivatives take them: themselves, or solved again less sharply; notes kinks of those that are not."""

    def __init__(self, record: Record, smoothing: float) -> None:
        try:
            self.smoothing = float(smoothing)
        except (TypeError, ValueError):
            raise GradientError(f"gradient_smoothing must be a speed in m/s, got {smoothing!r}") from None
        if not 0.0 <= self.smoothing < np.inf:
            raise GradientError(f"gradient_smoothing must be a speed of at least 0 m/s, got {smoothing!r}")
        self.record, self.kinks = record, list[tuple[int, str]]()
        whole = getattr(record.engine, "whole_steps", False)
        self.touches = hasattr(record.engine, "relaxed") and not whole
        if whole and self.smoothing > 0.0:
            raise GradientError(f"gradient_smoothing needs steps that can be solved again, and those of {record.mechanism.name!r} are differenced as a whole: leave it out")
        if not self.touches:  # nothing to smooth
            self.smoothing = 0.0

    def __call__(self, tape: Any, first: int) -> Any:
        if not self.touches:
            return tape
        if self.smoothing > 0.0:
            return self.record.engine.relaxed(tape, self.smoothing)
        self.kinks += [(first + kink.knot, kink.what) for kink in self.record.engine.kinks(tape)]
        return tape

    def warn(self) -> None:
        """Say where the run has kinks, if anywhere."""
        if not self.kinks:
            return
        begin = self.record.dt * np.array([knot for knot, _ in self.kinks])
        named = "; ".join(f"after {time:.6g} s {what}" for time, (_, what) in sorted(zip(begin, self.kinks))[:NAMED])
        more = f"; and {len(self.kinks) - NAMED} more" if len(self.kinks) > NAMED else ""
        warnings.warn(
            f"this run of {self.record.mechanism.name!r} is not differentiable: {named}{more}. The derivative that is returned lies between those of "
            "both sides there. Change the start a little, or use gradient_smoothing=.", GradientWarning, stacklevel=4,
        )
