"""The tape of a run with contacts: a log of what was awake, and the lists of what was near, so that scenes can be made again."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dalembert.contact.kept import KEPT_CONTACT
from dalembert.formulations.maximal.tape import Tape


class Page(NamedTuple):
    """From an entry of the tape on, the places (n, 8) for which the list of what is near was made."""

    entry: int
    places: np.ndarray


class TouchingTape(Tape):
    """A tape whose arrays have a ``span`` (entries, 2) in the log ``kept`` of contacts."""

    def __init__(self, new_arrays: Any, room: int, each: int, contacts: int) -> None:
        """``contacts``: how many may be awake in an entry, as far as is known."""
        super().__init__(new_arrays, room, each)
        self.kept = np.zeros(max(room, 1) * each * contacts, KEPT_CONTACT)
        self.pages: list[Page] = []
        #: impacts whose times were resolved, in order
        self.events: list[Any] = []
        #: the tape of the run itself, of one whose steps were solved again
        self.run: TouchingTape = self

    @property
    def used(self) -> int:
        """Length of the log so far."""
        return int(self.arrays.span[self.count - 1].sum()) if self.count else 0

    @property
    def place(self) -> Any:
        return self.arrays, self.count, self.kept, self.used

    def grow(self, contacts: int) -> None:
        """Room in the log for at least so many more."""
        need = self.used + contacts
        if need > len(self.kept):
            longer = np.zeros(max(need, 2 * len(self.kept)), KEPT_CONTACT)
            longer[: self.used] = self.kept[: self.used]
            self.kept = longer

    def turn_to(self, places: np.ndarray) -> None:
        """From here on, what is near is that of these places."""
        if not self.pages or not np.array_equal(self.pages[-1].places, places):
            self.pages.append(Page(self.count, places.copy()))

    def mark(self) -> tuple[int, ...]:
        return *super().mark(), len(self.events)

    def go_back(self, mark: tuple[int, ...]) -> None:
        super().go_back(mark)
        del self.events[mark[2] :]
        while self.pages and self.pages[-1].entry > self.count:
            self.pages.pop()

    @property
    def bytes(self) -> int:
        return super().bytes + self.kept.nbytes

    def copy(self) -> TouchingTape:
        """A tape of the same steps, whose solutions may be changed."""
        new = TouchingTape(self.new_arrays, 1, self.each, 0)
        new.arrays, new.count, new.steps = type(self.arrays)(*(array[: self.count].copy() for array in self.arrays)), self.count, self.steps
        new.kept, new.pages, new.run = self.kept[: self.used].copy(), self.pages, self.run
        return new

    def parts(self) -> list[tuple[int, Tape]]:
        found = super().parts()
        own = [part for _, part in found] if self.run is self else [part for _, part in self.run.parts()]
        for (_, part), run in zip(found, own):
            assert isinstance(part, TouchingTape)
            assert isinstance(run, TouchingTape)
            part.run = run
            last = [page for page in self.pages if page.entry <= part.begin][-1]
            inner = [Page(page.entry - part.begin, page.places) for page in self.pages if part.begin < page.entry < part.begin + part.count]
            part.pages = [Page(0, last.places), *inner]
        return found

    def knots(self) -> np.ndarray:
        """(entries,) the knot that the step of each entry begins at, or that it lies after."""
        knots = np.array([step.knot for step in self.steps], dtype=int)
        kind = getattr(self.arrays, "kind", None)
        return knots if kind is None else knots[np.cumsum(kind[: self.count, 0] == 0) - 1]

    def sections(self) -> list[tuple[int, int, np.ndarray]]:
        """First and last entries of each list of what was near, with its places, in order; empty ones left out."""
        ends = [*(page.entry for page in self.pages[1:]), self.count]
        return [(page.entry, end, page.places) for page, end in zip(self.pages, ends) if end > page.entry]

