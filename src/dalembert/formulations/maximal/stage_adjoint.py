"""A backward pass over the stages of BDF and DIRK methods: what the formulations that have them share."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.formulations.maximal.adjoint import MaximalAdjoint
from dalembert.formulations.maximal.singular import singular_step
from dalembert.formulations.maximal.tape import Tape

#: largest residual of the adjoint equations, relative to what they are asked for
LOOSE = 1e-6


class StageAdjoint(MaximalAdjoint):
    """Entries of the tape are stages, with ``kind``: number, stages of the step, order of a BDF formula (0 for a DIRK step)."""

    def segment(self, tape: Tape, first: int, last: int) -> None:
        self.tape = tape
        super().segment(tape, first, last)

    def pull_stages(self, tape: Tape, knots: Any, begins: np.ndarray, pushes: np.ndarray, rows: np.ndarray, tensions: np.ndarray) -> float:
        """Pull back over all stages of a tape; the bars of their inputs and targets end in the arrays. Returns the worst residual."""
        raise NotImplementedError

    def pull(self, tape: Tape, knots: Any, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        (bodies, joints, couplings), count = self.engine.sizes, tape.count
        pushes, rows, tensions = np.zeros((count, bodies, 6)), np.zeros((count, 2, joints, 6)), np.zeros((count, couplings))
        worst = self.pull_stages(tape, knots, self.begins(tape), pushes, rows, tensions)
        if not 0.0 <= worst < LOOSE:
            raise singular_step(self.mechanism, worst)
        return self.by_step(tape, pushes, rows, tensions)

    def begins(self, tape: Tape) -> np.ndarray:
        """(entries,) the knot that a step begins at, by its first stage, or -1."""
        begins = np.full(tape.count, -1, dtype=np.int64)
        begins[tape.arrays.kind[: tape.count, 0] == 0] = tape.begins()
        return begins

    def by_step(self, tape: Tape, pushes: np.ndarray, rows: np.ndarray, tensions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Bars of inputs and targets per stage as those per step."""
        count, joints = tape.count, self.engine.sizes[1]
        numbers = tape.arrays.kind[:count, 0]
        starts = np.flatnonzero(numbers == 0)
        # targets: of a BDF step at its end, of a DIRK step at its stages
        self.nodes = (1.0, *self.engine.tableau.c)
        targets = np.zeros((len(starts), len(self.nodes), joints, 6))
        if np.any(rows[:, 1]):
            step_of = np.cumsum(numbers == 0) - 1
            whole = tape.arrays.kind[:count, 2] > 0
            targets[step_of, np.where(whole, 0, 1 + numbers)] = rows[:, 1]
        if len(starts) == count:
            return pushes, rows[:, 0], targets, tensions
        return np.add.reduceat(pushes, starts), np.add.reduceat(rows[:, 0], starts), targets, np.add.reduceat(tensions, starts)
