"""How an interval between two knots is covered: in one step, in equal parts where that fails, or in steps chosen by their error."""
from __future__ import annotations

from math import ceil, inf, sqrt
from typing import Protocol

import numpy as np

from dalembert.formulations.maximal.engine import Inputs, MaximalEngine, Recording

#: smallest step by error, as a fraction of the interval
SMALLEST = 1e-6
#: the error aimed at is this share of the allowed one; a step changes by these factors at most
SAFETY, SHRINK, GROW = 0.8, 0.2, 4.0


class Source(Protocol):
    """Where inputs come from: those of whole intervals, and of a part of one."""

    def window(self, first: int, count: int) -> Inputs: ...

    def part(self, step: int, start: float, length: float) -> Inputs: ...


def advance(engine: MaximalEngine, recording: Recording, source: Source, first: int, count: int) -> int:
    """Cover ``count`` intervals from knot ``first``. Returns how many could be."""
    done, adaptive = 0, getattr(engine.options, "accuracy", None) is not None
    while done < count:
        knot = first + done
        if not adaptive:
            done += engine.run(recording, source.window(knot, count - done), knot, count - done, engine.dt)
            if done == count:
                break
            knot = first + done
        if not (choose_steps if adaptive else split)(engine, recording, source, knot):
            break
        done += 1
    return done


def split(engine: MaximalEngine, recording: Recording, source: Source, knot: int) -> bool:
    """Cover an interval in 2, 4, ... equal steps; False, and the state as it was, where none of these succeed."""
    before = engine.state()
    for halving in range(1, engine.options.max_halvings + 1):
        cover, parts = Cover(engine, recording, source, knot), 1 << halving
        for part in range(parts):
            if not cover.step(part / parts, 1.0 / parts):
                break
            cover.keep()
        if cover.steps == parts:
            cover.close()
            return True
        engine.restore(before)
    return False


def choose_steps(engine: MaximalEngine, recording: Recording, source: Source, knot: int) -> bool:
    """Cover an interval in steps whose estimated error stays below the formulation's ``accuracy``.

    The error of a step is taken as of second order in its length, which is what index 3 leaves of a DIRK method.
    """
    whole, cover = engine.state(), Cover(engine, recording, source, knot)
    allowed, start = engine.options.accuracy, 0.0
    while start < 1.0:
        steps = ceil((1.0 - start) / engine.stride - 1e-9)
        length = (1.0 - start) / steps
        before = engine.state()
        error = engine.step_error(length * engine.dt) if cover.step(start, length) else inf
        if error <= allowed:
            cover.keep()
            start = 1.0 if steps == 1 else start + length
        elif length > SMALLEST:
            engine.restore(before)
        else:
            engine.restore(whole)
            return False
        change = SAFETY * sqrt(allowed / max(error, 1e-300))
        engine.stride = min(1.0, length * min(GROW, max(SHRINK, change)))
    cover.close()
    return True


class Cover:
    """An interval being covered step by step, each written into the same two knots of the recording."""

    def __init__(self, engine: MaximalEngine, recording: Recording, source: Source, knot: int) -> None:
        self.engine, self.recording, self.source, self.knot = engine, recording, source, knot
        self.steps, self.iterations = 0, 0
        self.opening: list[np.ndarray] = []

    def step(self, start: float, length: float) -> bool:
        """One step over a part of the interval (fractions of it); returns whether it has a solution."""
        inputs = self.source.part(self.knot, start, length)
        return self.engine.run(self.recording, inputs, self.knot, 1, length * self.engine.dt) == 1

    def keep(self) -> None:
        """Count the step just made."""
        self.steps += 1
        self.iterations += int(self.recording.iterations[self.knot + 1])
        if self.steps == 1:
            self.opening = [array.copy() for array in self.engine.opening(self.recording, self.knot)]

    def close(self) -> None:
        """The interval is covered: what belongs to its first knot is what the first step said."""
        for array, first in zip(self.engine.opening(self.recording, self.knot), self.opening):
            array[...] = first
        self.recording.substeps[self.knot + 1], self.recording.iterations[self.knot + 1] = self.steps, self.iterations
