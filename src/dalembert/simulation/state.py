"""A saved state: all that determines the future of a simulation, as plain numbers that can be copied, compared and kept."""
from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dalembert.checks import checked
from dalembert.errors import ModelError

if TYPE_CHECKING:
    from dalembert.io.budget import Budget


@dataclass(frozen=True, eq=False)
class State:
    """The state of one mechanism in one formulation, at one knot.

    ``kind`` says which: a state goes back only into a simulation of its kind. ``clock``: time (s) of the last change of the
    step, steps since then, and their length (s); ``numbers``: what the formulation integrates; ``inputs``: those of the last
    step, by which velocities at the knot are read.
    """

    kind: str
    clock: tuple[float, int, float]
    numbers: np.ndarray
    inputs: np.ndarray

    @property
    def time(self) -> float:
        """Seconds."""
        origin, count, dt = self.clock
        return origin + count * dt

    def after(self, steps: int, dt: float) -> tuple[float, int, float]:
        """The clock after some more steps of length ``dt``."""
        origin, count, length = self.clock
        return (origin, count + steps, length) if dt == length else (self.time, steps, dt)

    def steps_since(self, earlier: State, dt: float) -> int:
        """How many steps of length ``dt`` lie between an earlier state and this one."""
        return 0 if self is earlier else self.clock[1] - earlier.after(0, dt)[1]

    def copy(self) -> State:
        """A state that no run changes."""
        return replace(self, numbers=self.numbers.copy(), inputs=self.inputs.copy())

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, State) and self.kind == other.kind and self.clock == other.clock
            and np.array_equal(self.numbers, other.numbers) and np.array_equal(self.inputs, other.inputs)
        )

    __hash__ = None  # type: ignore[assignment]

    @checked
    def save(self, path: str | Path) -> None:
        """Write to a file (.npz), which appears whole or not at all."""
        from dalembert.io.whole import write_whole

        with write_whole(Path(path)) as part, part.open("wb") as file:
            np.savez(file, kind=np.array(self.kind), clock=np.array(self.clock), numbers=self.numbers, inputs=self.inputs)

    @classmethod
    @checked
    def load(cls, path: str | Path, *, budget: Budget | None = None) -> State:
        """Read what ``save`` wrote. ``budget``: what reading may cost beyond the bytes that the file takes on the disk."""
        from dalembert.io.archives import read_arrays

        data = read_arrays(Path(path), ("kind", "clock", "numbers", "inputs"), "file of a state that dalembert wrote", budget)
        kind, clock, numbers, inputs = data.values()
        right = kind.dtype.kind == "U" and kind.ndim == 0 and clock.shape == (3,) and numbers.ndim == inputs.ndim == 1
        if not right or not all(a.dtype.kind in "fi" for a in (clock, numbers, inputs)) or not (np.isfinite(clock).all() and clock[1] >= 0.0 and clock[2] > 0.0):
            raise ModelError(f"{path} is no file of a state that dalembert wrote: its numbers have other shapes")
        origin, count, dt = clock.tolist()
        return cls(str(kind), (origin, int(count), dt), numbers.astype(float), inputs.astype(float))
