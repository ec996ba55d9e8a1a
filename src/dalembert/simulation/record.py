"""What a run remembers for its derivatives: a tape, or for long runs the states to start short replays from."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dalembert.formulations.engine import Engine, Inputs, Samples, Source
from dalembert.mechanism.mechanism import Mechanism

#: bytes of a tape that a run may keep as a whole; a longer one is replayed in parts of this size
BUDGET = 120_000_000


class Shifted:
    """Inputs of a run, counted from one of its knots."""

    def __init__(self, source: Source, first: int) -> None:
        self.source, self.first = source, first

    @property
    def end(self) -> int:
        return self.source.end - self.first

    def times(self, steps: Any) -> Any:
        return self.source.times(self.first + steps)

    def window(self, first: int, count: int) -> Inputs:
        return self.source.window(self.first + first, count)

    def part(self, step: int, start: float, length: float) -> Inputs:
        return self.source.part(self.first + step, start, length)

    def samples(self, first: int, count: int, fractions: Sequence[float]) -> Samples:
        return self.source.samples(self.first + first, count, fractions)


@dataclass(frozen=True, eq=False)
class Controlled:
    """The controller of a run whose dependence on what it sees is differentiated: by ``derivative``, or "differences" of it.

    ``targets``: what joints follow by name; ``inputs``: those held before the first step, as ``InputTables.at`` gives them; ``times``: of
    numbers of steps; ``moved``: whether the run went on from another one.
    """

    function: Callable[[Any], Any]
    derivative: Any
    targets: Mapping[str, Any]
    inputs: np.ndarray
    times: Callable[[Any], Any]
    moved: bool
    formulation: Any


@dataclass(eq=False)
class Record:
    """A run that can be differentiated. ``setup``: what its start was made of (None where it went on from another run)."""

    engine: Any
    mechanism: Mechanism
    source: Any
    dt: float
    setup: Any
    #: steps between two states that are kept
    stride: int
    tape: Any = None
    states: list[np.ndarray] = field(default_factory=list)
    recording: Any = None
    inputs: Any = None
    steps: int = 0
    control: Controlled | None = None

    @classmethod
    def begin(cls, engine: Engine, mechanism: Mechanism, source: Any, steps: int, dt: float, setup: Any, budget: int) -> Record:
        """Before a run."""
        tape = engine.new_tape(1)  # type: ignore[attr-defined]
        stride = max(1, min(steps, budget // max(tape.bytes, 1)))
        whole = stride >= steps
        return cls(engine, mechanism, source, dt, setup, stride, engine.new_tape(steps) if whole else None)  # type: ignore[attr-defined]

    def before(self, done: int, numbers: np.ndarray) -> int:
        """Keep a state if one is due. Returns how many steps may be made until the next is."""
        if done == len(self.states) * self.stride:
            self.states.append(numbers.copy())
        return len(self.states) * self.stride - done

    def segments(self) -> Iterator[tuple[Any, int, int]]:
        """Tapes with their first and last knots, from the end of the run to its beginning; replayed where they were not kept."""
        if self.tape is not None:
            yield self.tape, 0, self.steps
            return
        for index in range(len(self.states) - 1, -1, -1):
            first, last = index * self.stride, min((index + 1) * self.stride, self.steps)
            if last > first:
                yield self.replay(first, last), first, last

    def replay(self, first: int, last: int) -> Any:
        """Run some steps again from a state that was kept, with a tape."""
        engine, numbers = self.engine, self.states[first // self.stride].copy()
        recording = engine.new_recording(last - first + 1)
        engine.record(numbers, recording, 0)
        engine.tape = engine.new_tape(last - first)
        try:
            made = engine.advance(numbers, recording, Shifted(self.source, first), 0, last - first, self.dt)
            tape = engine.tape
        finally:
            engine.tape = None
        assert made == last - first, "a replay is the run itself"
        return tape
