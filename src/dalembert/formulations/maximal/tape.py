"""What a run in maximal coordinates writes down for its derivatives, substep by substep; room grows as it is needed."""
from __future__ import annotations

from copy import copy
from itertools import chain
from typing import Any, NamedTuple

import numpy as np


class Step(NamedTuple):
    """A substep: the interval between knots that it belongs to, where it begins and how long it is, as fractions of that."""

    knot: int
    start: float
    length: float


class Tape:
    """Arrays over substeps (first axis), as NamedTuple ``arrays`` of a formulation; ``steps`` says what each of them covers."""

    def __init__(self, new_arrays: Any, room: int, each: int = 1) -> None:
        """``new_arrays(room)`` makes room for so many substeps; ``each``: entries that one substep may take."""
        self.new_arrays, self.each = new_arrays, each
        self.arrays: Any = new_arrays(max(room, 1) * each)
        self.count = 0
        self.steps: list[Step] = []
        #: of a part of a tape: the entry that it begins at
        self.begin = 0

    def reserve(self, substeps: int) -> None:
        """Room for some more substeps."""
        have, need = len(self.arrays[0]), self.count + substeps * self.each
        if need > have:
            longer = self.new_arrays(max(need, 2 * have))
            for old, new in zip(self.arrays, longer):
                new[: self.count] = old[: self.count]
            self.arrays = longer

    @property
    def place(self) -> Any:
        """What a kernel that writes on it takes: the arrays, and where it goes on."""
        return self.arrays, self.count

    def mark(self) -> tuple[int, ...]:
        """Where it stands, for ``go_back``."""
        return self.count, len(self.steps)

    def go_back(self, mark: tuple[int, ...]) -> None:
        """Forget what came after a mark."""
        self.count = mark[0]
        del self.steps[mark[1] :]

    def cut(self, first: int, last: int) -> None:
        """Keep the entries from ``first`` to before ``last`` of what is not in the arrays."""

    def parts(self) -> list[tuple[int, Tape]]:
        """The tape knot by knot: (number of the knot that a part begins at, its part, which counts knots from there)."""
        starts = np.flatnonzero(self.arrays.kind[: self.count, 0] == 0) if hasattr(self.arrays, "kind") else np.arange(self.count)
        ends, found = [*starts[1:], self.count], []
        knots = sorted({step.knot for step in self.steps})
        for knot in knots:
            own = [i for i, step in enumerate(self.steps) if step.knot == knot]
            part = copy(self)
            first, last = int(starts[own[0]]), int(ends[own[-1]])
            part.arrays, part.count = type(self.arrays)(*(array[first:last] for array in self.arrays)), last - first
            part.begin = first
            part.cut(first, last)
            part.steps = [self.steps[i]._replace(knot=0) for i in own]
            found.append((knot, part))
        return found

    def table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``steps`` as columns: knots, and fractions at which they begin and that they last."""
        columns = np.fromiter(chain.from_iterable(self.steps), float, 3 * len(self.steps)).reshape(-1, 3)
        return columns[:, 0].astype(np.int64), columns[:, 1], columns[:, 2]

    def begins(self) -> np.ndarray:
        """(substeps,) the knot that a substep begins at, or -1."""
        knots, starts, _ = self.table()
        return np.where(starts == 0.0, knots, -1)

    @property
    def bytes(self) -> int:
        """Memory of the arrays."""
        return sum(array.nbytes for array in self.arrays)
