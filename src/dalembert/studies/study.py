"""What a study is: an experiment of a paper with its table, its figure, its data and a verdict.

    @study("figure 7a", "the joints of the variational integrator stay closed, those of Runge-Kutta drift apart")
    def constraint_drift(report: Report) -> None:
        duration = 5.0 if report.quick else 100.0
        ...
        report.table(("method", "gap / m"), rows)
        axis = report.axes("time / s", "gap / m")
        axis.semilogy(time, gap, label="variational")
        report.page(trajectory)
        report.verdict(held, f"largest gap {gap.max():.1e} m")

It is called as its function is, and belongs to the paper in whose folder the file is.
"""
from __future__ import annotations

import csv
import importlib
import io
import pkgutil
import time as clock
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from dalembert.checks import choices
from dalembert.errors import DalembertError, ModelError
from dalembert.io.whole import write_whole
from dalembert.progress import Progress
from dalembert.simulation.trajectory import Trajectory
from dalembert.view.plots import COLOURS, INK, add_legend, finish_axis, finished, new_figure

Item = TypeVar("Item")
#: folders of studies, and the papers as they are called
PAPERS = {"variational": "Variational", "linear_time": "Linear-time", "contact": "Contact", "quaternion": "Quaternion", "redmax": "RedMax"}


@dataclass(frozen=True)
class Study:
    """An experiment that can be run. ``where``: its figure, table or section in the paper; ``claim``: one sentence that holds or not."""

    name: str
    paper: str
    where: str
    claim: str
    action: Callable[[Report], None]

    def run(self, folder: str | Path = "out", *, quick: bool = False, quiet: bool = False) -> Outcome:
        """Run it and write its figures, its tables as CSV and its pages to ``folder``; ``quick``: a small version, in seconds."""
        report = Report(self, Path(folder), quick=quick, quiet=quiet)
        report.folder.mkdir(parents=True, exist_ok=True)
        self.action(report)
        return report.finish()


@dataclass(frozen=True)
class Outcome:
    """How a study ended. ``held``: whether the paper's claim did; ``figures``: the numbers, in words."""

    study: Study
    held: bool
    figures: str
    tables: dict[str, list[dict[str, Any]]]  # by name: rows by column
    files: tuple[Path, ...]
    seconds: float

    def __str__(self) -> str:
        return f"{self.study.name}: {self.study.claim}: {'held' if self.held else 'NOT held'} ({self.figures})"


@dataclass
class Report:
    """What a running study writes to: printed as it comes, kept in files."""

    study: Study
    folder: Path
    quick: bool = False
    quiet: bool = False
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.begun = clock.perf_counter()
        self._figures: dict[str, tuple[Any, str]] = {}
        self._verdict: tuple[bool, str] | None = None

    def say(self, text: str) -> None:
        """A line of explanation."""
        if not self.quiet:
            print(text, flush=True)

    def each(self, items: Iterable[Item], unit: str = "run") -> Iterator[Item]:
        """The items one by one, with a progress bar where there is a terminal."""
        listed = list(items)
        bar = Progress(len(listed), self.study.name, unit, False if self.quiet else None)
        try:
            for done, item in enumerate(listed):
                bar.update(done)
                yield item
            bar.update(len(listed))
        finally:
            bar.close()

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]], name: str = "") -> None:
        """Print a table and write it as CSV; ``name`` where a study has several. Numbers are kept whole and printed short."""
        kept = [list(row) for row in rows]
        wrong = [row for row in kept if len(row) != len(columns)]
        if wrong:
            raise ModelError(f"a row of {self.study.name} has {len(wrong[0])} entries for {len(columns)} columns")
        self.tables[name] = [dict(zip(columns, row)) for row in kept]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([columns, *kept])
        with write_whole(self._place(name, ".csv")) as temporary:
            temporary.write_text(text.getvalue(), encoding="utf-8")
        shown = [list(columns), *([_short(entry) for entry in row] for row in kept)]
        widths = [max(len(row[k]) for row in shown) for k in range(len(columns))]
        self.say("")
        for row in shown:
            self.say("  ".join(entry.ljust(width) for entry, width in zip(row, widths)).rstrip())

    def panels(self, rows: int = 1, columns: int = 1, title: str = "", name: str = "", **size: float) -> list[Any]:
        """The axes of a figure with several panels, row by row; it is written at the end. ``width`` and ``height`` in inches."""
        figure = new_figure(None, **size)
        self._figures[name] = figure, title or f"{self.study.paper}, {self.study.where}"
        axes = list(figure.subplots(rows, columns, squeeze=False).flat)
        for axis in axes:
            axis.set_prop_cycle(color=COLOURS)
        return axes

    def axes(self, x: str, y: str, title: str = "", name: str = "") -> Any:
        """The axes of a figure with a single panel, labelled."""
        axis = self.panels(title=title, name=name)[0]
        axis.set_xlabel(x, color=INK)
        axis.set_ylabel(y, color=INK)
        return axis

    def page(self, trajectory: Trajectory, name: str = "") -> None:
        """Write a page that plays a run."""
        trajectory.to_html(self._place(name, ".html"))

    def picture(self, trajectory: Trajectory, name: str, **view: Any) -> None:
        """Write a picture of a run at a moment; ``view`` as for ``Trajectory.snapshot``."""
        trajectory.snapshot(self._place(name, ".png"), **view)

    def verdict(self, held: bool, figures: str) -> None:
        """Whether the claim held, with the figures that show it. Every study says so once, at its end."""
        self._verdict = bool(held), figures

    def finish(self) -> Outcome:
        """Write the figures; the outcome, whose line is printed last."""
        if self._verdict is None:
            raise DalembertError(f"the study {self.study.name} ended without a verdict")
        for name, (figure, title) in self._figures.items():
            for axis in figure.axes:
                finish_axis(axis, axis.get_ylabel())
                if axis.get_legend_handles_labels()[0] and axis.get_legend() is None:
                    add_legend(axis)
            finished(figure, title, self._place(name, ".png"))
        outcome = Outcome(self.study, *self._verdict, self.tables, tuple(self.files), clock.perf_counter() - self.begun)
        self.say(f"\nwritten after {outcome.seconds:.0f} s: {', '.join(str(file) for file in self.files)}\n{outcome}")
        return outcome

    def _place(self, name: str, ending: str) -> Path:
        place = self.folder / f"{self.study.name}{f'_{name}' if name else ''}{ending}"
        if place not in self.files:
            self.files.append(place)
        return place


def _short(entry: Any) -> str:
    """A number in four digits; words as they are."""
    return entry if isinstance(entry, str) else f"{entry:.4g}" if hasattr(entry, "__float__") and not isinstance(entry, int) else str(entry)


def study(where: str, claim: str) -> Callable[[Callable[[Report], None]], Study]:
    """Makes a study of the function that runs it; its name is the study's."""
    def make(action: Callable[[Report], None]) -> Study:
        return Study(action.__name__, PAPERS[action.__module__.split(".")[-2]], where, claim, action)
    return make


def list_studies() -> dict[str, Study]:
    """All studies by name, in the order of the papers."""
    found: dict[str, Study] = {}
    for folder in PAPERS:
        package = importlib.import_module(f"{__package__}.{folder}")
        for module in sorted(entry.name for entry in pkgutil.iter_modules(package.__path__)):
            values = vars(importlib.import_module(f"{package.__name__}.{module}")).values()
            found |= {value.name: value for value in values if isinstance(value, Study) and value.action.__module__ == f"{package.__name__}.{module}"}
    return found


def find_study(name: str) -> Study:
    """The study of a name, with underscores or hyphens."""
    known = list_studies()
    wanted = name.replace("-", "_")
    if wanted not in known:
        raise ModelError(f"there is no study {name!r}; {choices(wanted, known)}")
    return known[wanted]
