"""What reading a file may cost. Files come from anywhere: one budget holds for every reader, and is raised by whoever trusts a file."""
from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from dalembert.checks import POSITIVE, POSITIVE_OR_INFINITE, check_fields, checked, whole
from dalembert.errors import BudgetError

#: elements that a body of our own files counts as, and a link of a robot's file, with its joints and shapes
PER_BODY, PER_LINK = 100, 500
#: elements that an element of XML counts as
PER_TAG = 10
#: elements that two shapes count as which overlap at the start
PER_OVERLAP = 20


#: how many there may be
SOME = whole("a whole number from 1", least=1)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The most that reading one file may take, with all files that it names.

    ``bytes``: what is read, and what it unpacks to; ``elements``: numbers, corners and triangles, pixels, pairs of shapes that
    may touch (a body counts as 100, a link of a robot as 500, an element of XML as 10); ``seconds``, looked at between the parts of a file; ``depth``: how deep
    things are inside one another. A file that asks for more gets a `BudgetError`, before that is spent wherever it can be known.
    """

    bytes: int = 512 * 2**20
    elements: int = 2_000_000
    seconds: float = 60.0
    depth: int = 250

    def __post_init__(self) -> None:
        check_fields(self, bytes=SOME, elements=SOME, seconds=POSITIVE_OR_INFINITE, depth=SOME)

    @checked(factor=POSITIVE)
    def times(self, factor: float) -> Budget:
        """A budget so many times as large, but for the depth."""
        return replace(self, bytes=int(self.bytes * factor), elements=int(self.elements * factor), seconds=self.seconds * factor)


class Meter:
    """What is left of a budget while one file is read."""

    def __init__(self, path: Path | str, budget: Budget | None = None) -> None:
        self.path, self.budget = path, budget or Budget()
        self.left = {"bytes": float(self.budget.bytes), "elements": float(self.budget.elements)}
        self.end = time.monotonic() + self.budget.seconds

    def bytes(self, count: float, what: str) -> None:
        """Spend bytes on something."""
        self._spend("bytes", count, what, f"{count / 2**20:.3g} MB")

    def elements(self, count: float, what: str) -> None:
        """Spend elements on something."""
        self._spend("elements", count, what, f"{count:.3g} elements")

    def depth(self, depth: int, what: str) -> None:
        """Refuse what is too deep inside."""
        if depth > self.budget.depth:
            raise BudgetError(f"{self.path} nests {what} deeper than {self.budget.depth}: if you trust it, load it with a larger Budget(depth=...)")

    def look_at_clock(self) -> None:
        """Refuse to go on when the time is over."""
        if time.monotonic() > self.end:
            raise BudgetError(f"{self.path} took longer to read than {self.budget.seconds:g} s: if you trust it, load it with a larger Budget(seconds=...)")

    def _spend(self, kind: str, count: float, what: str, amount: str) -> None:
        self.look_at_clock()
        if not count <= self.left[kind]:
            unit, per = ("MB", 2**20) if kind == "bytes" else ("elements", 1)
            most, left = getattr(self.budget, kind) / per, self.left[kind] / per
            raise BudgetError(
                f"{self.path}: {what} would take {amount}, more than the {left:.3g} left of the {most:.3g} {unit} that reading a file may take in all. "
                f"If you trust it, load it with a larger Budget({kind}=...)"
            )
        self.left[kind] -= count
