"""What Newton's iterations leave of the equations of every step of a run."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.simulation.controls import InputTables


class History:
    """Residuals of all steps of a run. ``rows`` (steps + 1, most iterations + 1), m/s: at the first guess and after each iteration; NaN where there is none."""

    def __init__(self, engine: Any, steps: int) -> None:
        self._engine, self._scratch = engine, engine.new_recording(2)
        self.rows = np.full((steps + 1, engine.step_options.max_iterations + 1), np.nan)

    def keep(self, numbers: np.ndarray, tables: InputTables, step: int, dt: float) -> None:
        """Try a step from a state, which stays as it is, and keep what its iterations leave."""
        found = self._engine.residuals(numbers, self._scratch, tables.window(step, 1), dt)
        self.rows[step + 1, : len(found)] = found
