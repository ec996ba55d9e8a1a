"""How an interval between two knots is covered: in one step, in equal parts where that fails, or in steps chosen by their error.

A change of the step changes the energy that a method keeps: where a motion is violent, by much. So the parts are so small that half of them
leave the same energy, and after a divided interval the next ones are divided too, into half as many parts each time that this is so.
"""
from __future__ import annotations

from math import ceil, inf, log2, sqrt
from typing import TYPE_CHECKING

import numpy as np

from dalembert.formulations.engine import Source
from dalembert.formulations.maximal.recording import Recording
from dalembert.formulations.maximal.tape import Step

if TYPE_CHECKING:
    from dalembert.formulations.maximal.engine import MaximalEngine

#: smallest step by error, as a fraction of the interval
SMALLEST = 1e-6
#: the error aimed at is this share of the allowed one; a step changes by these factors at most
SAFETY, SHRINK, GROW = 0.8, 0.2, 4.0
#: a last step shorter than this part of an interval was one of several
HALF = 0.75
#: energies that differ by less than this part of the kinetic energy are alike
ALIKE = 1e-3
#: how often the fewest parts that are solved are halved on the way to such
DEEPEST = 5


def advance(engine: MaximalEngine, numbers: np.ndarray, recording: Recording, source: Source, first: int, count: int, dt: float) -> int:
    """Cover ``count`` intervals of ``dt`` from knot ``first``; the state is advanced in place. Returns how many could be."""
    done, adaptive = 0, getattr(engine.options, "accuracy", None) is not None
    while done < count:
        knot = first + done
        whole = not adaptive and not lingering(engine, numbers, dt)
        if whole:
            made = engine.run(numbers, recording, source.window(knot, count - done), knot, count - done, dt)
            if engine.tape is not None:
                engine.tape.steps += [Step(knot + i, 0.0, 1.0) for i in range(made)]
            done += made
            if done == count:
                break
            knot = first + done
        cover = Cover(engine, numbers, recording, source, knot, dt)
        if adaptive:
            covered = choose_steps(cover, engine)
        elif engine.lingers:
            covered = settle(cover, engine, whole) or split(cover, engine)
        else:
            covered = split(cover, engine)
        if not covered:
            break
        done += 1
    return done


def lingering(engine: MaximalEngine, numbers: np.ndarray, dt: float) -> bool:
    """Whether the interval before a state was divided, and the next one is so too."""
    return 0.0 < engine.view(numbers).clock[0] < HALF * dt


def split(cover: Cover, engine: MaximalEngine) -> bool:
    """Cover an interval in 1, 2, 4, ... equal steps; with contacts in such that do not spoil the energy, or else in those that leave the least of it.

    False, and the state as it was, where none succeed.
    """
    before, most = cover.keep_state(), engine.options.max_halvings
    halvings = range(min(fewest(cover, engine), most), most + 1)
    if not engine.lingers and any(cover.parts(before, 1 << halving) for halving in halvings):
        return True
    engine.watch(False)
    try:
        if engine.lingers:
            return any(cover.parts(before, 1 << halving) for halving in halvings)
        left = {}
        for halving in halvings:
            if cover.parts(before, 1 << halving):
                left[halving] = cover.energies()[0]
                cover.restore(before)
        return bool(left) and cover.parts(before, 1 << min(left, key=left.__getitem__))
    finally:
        engine.watch(True)


def fewest(cover: Cover, engine: MaximalEngine) -> int:
    """Halvings of half as many steps as there were in the interval before, at least none."""
    last = engine.view(cover.numbers).clock[0]
    return max(round(log2(cover.dt / last)) - 1, 0) if last > 0.0 else 0


def settle(cover: Cover, engine: MaximalEngine, failed: bool) -> bool:
    """Cover an interval in the fewest steps, no less than half of those of the interval before, of which twice as many leave no other energy.

    ``failed``: one step has just been tried in vain.
    """
    before, least = cover.keep_state(), max(fewest(cover, engine), int(failed))
    coarse, solved, covered, most = None, -1, None, engine.options.max_halvings
    for halving in range(least, most + 1):
        if halving > most or not cover.parts(before, 1 << halving):
            coarse = None
            continue
        most = most if solved >= 0 else min(most, halving + DEEPEST)
        fine = cover.energies()
        if coarse is not None and alike(engine, coarse, fine, cover.dt):
            break
        coarse, solved, covered = fine, halving, cover.keep_covered()
        cover.restore(before)
    return covered is not None and cover.cover_again(before, covered, 1 << solved)


def alike(engine: MaximalEngine, coarse: tuple[float, float], fine: tuple[float, float], dt: float) -> bool:
    """Whether the energy (total and kinetic, J) at the end of an interval hardly depends on the number of its steps; of methods that lose
    some, whether it does not rise."""
    mechanism = engine.mechanism
    fall = 0.5 * mechanism.mass * float(np.sum((dt * np.asarray(mechanism.gravity)) ** 2))
    rise = coarse[0] - fine[0]
    return (abs(rise) if engine.keeps_energy else rise) <= ALIKE * (max(coarse[1], fine[1]) + fall)


def choose_steps(cover: Cover, engine: MaximalEngine) -> bool:
    """Cover an interval in steps whose estimated error stays below the formulation's ``accuracy``.

    The error of a step is taken as of second order in its length, which is what index 3 leaves of a DIRK method.
    """
    whole = cover.keep_state()
    allowed, start = engine.options.accuracy, 0.0
    while start < 1.0:
        steps = ceil((1.0 - start) / cover.stride - 1e-9)
        length = (1.0 - start) / steps
        before = cover.keep_state()
        error = engine.step_error(length * cover.dt) if cover.step(start, length) else inf
        if error <= allowed:
            cover.keep()
            start = 1.0 if steps == 1 else start + length
        elif length > SMALLEST:
            cover.restore(before)
        else:
            cover.restore(whole)
            return False
        change = SAFETY * sqrt(allowed / max(error, 1e-300))
        cover.stride = min(1.0, length * min(GROW, max(SHRINK, change)))
    cover.close()
    return True


class Cover:
    """An interval being covered step by step, each written into the same two knots of the recording."""

    def __init__(self, engine: MaximalEngine, numbers: np.ndarray, recording: Recording, source: Source, knot: int, dt: float) -> None:
        self.engine, self.numbers, self.recording, self.source, self.knot, self.dt = engine, numbers, recording, source, knot, dt
        self.begin()

    def begin(self) -> None:
        """Nothing is covered yet."""
        self.steps, self.iterations = 0, 0
        self.opening: list[np.ndarray] = []

    @property
    def stride(self) -> float:
        """Length of the next step chosen by its error, as a fraction of the interval."""
        return self.engine.view(self.numbers).clock[-1] or 1.0

    @stride.setter
    def stride(self, value: float) -> None:
        self.engine.view(self.numbers).clock[-1] = value

    def keep_state(self) -> tuple[np.ndarray, object]:
        """The state and where the log of the run stands, for ``restore``."""
        return self.numbers.copy(), self.engine.mark(self.recording)

    def restore(self, kept: tuple[np.ndarray, object]) -> None:
        """Go back to a state that was kept."""
        self.numbers[:] = kept[0]
        self.engine.go_back(self.recording, kept[1])

    def keep_covered(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """The state at the end of the interval and what was recorded of it, for ``cover_again``."""
        return self.numbers.copy(), [array[self.knot : self.knot + 2].copy() for array in self.recording]

    def cover_again(self, before: tuple[np.ndarray, object], covered: tuple[np.ndarray, list[np.ndarray]], count: int) -> bool:
        """Cover the interval as when ``covered`` was kept, in ``count`` equal steps from ``before``; what a log has forgotten is made anew."""
        self.restore(before)
        if before[1] is not None:
            return self.parts(before, count)
        self.numbers[:] = covered[0]
        for array, rows in zip(self.recording, covered[1]):
            array[self.knot : self.knot + 2] = rows
        return True

    def step(self, start: float, length: float) -> bool:
        """One step over a part of the interval (fractions of it); returns whether it has a solution."""
        inputs = self.source.part(self.knot, start, length)
        made = self.engine.run(self.numbers, self.recording, inputs, self.knot, 1, length * self.dt) == 1
        if made and self.engine.tape is not None:
            self.engine.tape.steps.append(Step(self.knot, start, length))
        return made

    def parts(self, before: tuple[np.ndarray, object], count: int) -> bool:
        """Cover the interval in equal steps; where one fails, the state is that of ``before`` again."""
        self.begin()
        for part in range(count):
            if not self.step(part / count, 1.0 / count):
                self.restore(before)
                return False
            self.keep()
        self.close()
        return True

    def energies(self) -> tuple[float, float]:
        """Total and kinetic energy (J) where the steps so far end, under the inputs of the last one."""
        length = 1.0 / self.steps
        inputs = self.source.part(self.knot, 1.0 - length, length)
        knot = self.engine.knot(self.numbers, inputs._replace(target=inputs.target[-1:]), np.full((self.engine.sizes[1], 6), np.nan))
        return knot.energy, knot.kinetic

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
