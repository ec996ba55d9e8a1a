"""What an ensemble of runs leaves: parameters, results as arrays over all runs, and the failures by name."""
from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dalembert.checks import checked, choices, counted, shown, whole
from dalembert.ensemble.journal import Memory
from dalembert.ensemble.record import FAILURE, TRAJECTORY, result_of
from dalembert.ensemble.samples import Plan
from dalembert.errors import ModelError

if TYPE_CHECKING:
    from dalembert.io.budget import Budget

#: what a run is: not made yet, finished, failed
OPEN, DONE, FAILED = 0, 1, 2
#: numbers of a result that a table has columns for
WIDEST = 100


@dataclass(frozen=True)
class Failure:
    """A run that failed: its number and what it was given, the name of the error, what it said, and the time (s) that was reached."""

    index: int
    parameters: dict[str, Any]
    starts: dict[str, Any]
    error: str
    message: str
    time: float

    def __str__(self) -> str:
        given = ", ".join(f"{name} = {_short(value)}" for name, value in {**self.parameters, **self.starts}.items())
        return f"run {self.index} ({given or 'nothing varied'}) at t = {self.time:.6g} s: {self.error}: {self.message}"


@dataclass(frozen=True)
class Run:
    """One run: what it was given, and what it gave: ``result`` is what the reduction returned, None where it failed or was not made yet."""

    index: int
    parameters: dict[str, Any]
    starts: dict[str, Any]
    result: Any
    failure: Failure | None


class Source(Protocol):
    """Where the results of an ensemble are: in memory, or in a file."""

    def status(self, runs: int) -> np.ndarray:
        """(runs,) what each run is."""
        ...
    def failures(self) -> list[tuple[int, str, str, float]]:
        """Number, error, message and time of each that failed, in order."""
        ...
    def names(self) -> list[str]:
        """Names of the results."""
        ...
    def column(self, name: str, runs: int) -> np.ndarray:
        """One result of all runs; where a run has none, NaN, or None among those of different shapes."""
        ...
    def result(self, index: int) -> Any:
        """What the reduction returned of a run that is done."""
        ...


class Ensemble:
    """The runs of ``run_many``. ``ensemble[i]`` is one of them; ``results`` are those of all as arrays whose first axis counts the runs.

    ``parameters`` and ``starts``: what was varied, by name and in the same order. ``interrupted``: whether Ctrl-C ended it before all were made.
    """

    def __init__(self, identity: Mapping[str, Any], plan: Plan, source: Source, *, interrupted: bool = False) -> None:
        self._identity, self._plan, self._source, self.interrupted = dict(identity), plan, source, interrupted
        self._status = source.status(plan.runs)
        self._columns: dict[str, np.ndarray] = {}
        self._failures: dict[int, Failure] | None = None

    @classmethod
    def of(cls, identity: Mapping[str, Any], plan: Plan, records: Memory, *, interrupted: bool = False) -> Ensemble:
        """An ensemble of records."""
        return cls(identity, plan, Kept(records), interrupted=interrupted)

    @classmethod
    @checked
    def load(cls, path: str | Path, *, budget: Budget | None = None) -> Ensemble:
        """Read what ``run_many`` wrote, also while it is running or after it was killed. Large results are read when they are asked for.

        ``budget``: what reading may cost beyond the bytes that the file takes on the disk.
        """
        from dalembert.io.ensembles import load_ensemble

        return load_ensemble(Path(path), budget)

    def _marked(self, interrupted: bool) -> Ensemble:
        self.interrupted = interrupted
        return self

    def __len__(self) -> int:
        return self._plan.runs

    def __repr__(self) -> str:
        done, failed = (int((self._status == kind).sum()) for kind in (DONE, FAILED))
        left = len(self) - done - failed
        states = [f"{done} done"] + [f"{failed} failed"] * (failed > 0) + [f"{left} to do"] * (left > 0)
        what = f"<ensemble of {self.mechanism!r} in {self.formulation}: {counted(len(self), 'run')} of {self.duration:g} s, {', '.join(states)}"
        varied = [*self._plan.parameters, *self._plan.starts]
        return what + (f"; varied: {_listed(varied)}" if varied else "") + f"; results: {_listed(self._source.names()) or 'none'}>"

    @property
    def mechanism(self) -> str:
        """Name of the mechanism, or of the function that makes it."""
        return self._identity["mechanism"]

    @property
    def formulation(self) -> str:
        """Name of the formulation."""
        return self._identity["formulation"]

    @property
    def duration(self) -> float:
        """Of each run, s."""
        return self._identity["duration"]

    @property
    def seed(self) -> int:
        """What all chance came from."""
        return self._plan.seed

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """Parameters by name, (runs,) or (runs, ...)."""
        return {name: values.copy() for name, values in self._plan.parameters.items()}

    @property
    def starts(self) -> dict[str, np.ndarray]:
        """Starts of joints by name, (runs,) or (runs, ...)."""
        return {name: values.copy() for name, values in self._plan.starts.items()}

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes of the grid, in the order of the lists given, and last the number of samples at each point, if any were drawn:
        ``results["x"].reshape(ensemble.shape)`` is on the grid."""
        return self._plan.shape

    @property
    def axes(self) -> dict[str, np.ndarray]:
        """Values along the axes of the grid by name."""
        return {name: values.copy() for name, values in self._plan.axes.items()}

    @property
    def successful(self) -> np.ndarray:
        """(runs,) True where a run came to its end."""
        return self._status == DONE

    @property
    def complete(self) -> bool:
        """Whether every run was made, failed ones included."""
        return bool((self._status != OPEN).all())

    @property
    def failures(self) -> list[Failure]:
        """Runs that failed, in order."""
        if self._failures is None:
            self._failures = {said[0]: Failure(said[0], *self._plan.row(said[0]), *said[1:]) for said in self._source.failures()}
        return list(self._failures.values())

    @property
    def results(self) -> Mapping[str, np.ndarray]:
        """What the reduction gave, by name: (runs, ...) with NaN where a run has none; a reduction that gives no names has "value".

        Results whose shapes differ from run to run are arrays of objects. Trajectories are in ``ensemble[i].result``.
        """
        return Results(self)

    def __getitem__(self, index: int) -> Run:
        number = whole(f"a run from 0 to {len(self) - 1}", least=-len(self), most=len(self) - 1)(index, "the index") % len(self)
        failure = {failure.index: failure for failure in self.failures}.get(number) if self._status[number] == FAILED else None
        result = self._source.result(number) if self._status[number] == DONE else None
        return Run(number, *self._plan.row(number), result, failure)

    def __iter__(self) -> Iterator[Run]:
        return (self[index] for index in range(len(self)))

    @checked
    def to_csv(self, path: str | Path) -> None:
        """Write a table with a row for each run: parameters, starts, results of up to 100 numbers, and why it failed. The file appears whole or not at all."""
        from dalembert.io.whole import write_whole

        columns: dict[str, Any] = {"run": np.arange(len(self)), "state": np.array(["to do", "done", "failed"])[self._status]}
        for name, values in {**self._plan.parameters, **self._plan.starts, **self.results}.items():
            if values.dtype.kind != "O" and values[0].size <= WIDEST:
                flat = values.reshape(len(self), -1)
                places = [""] if values.ndim == 1 else [str(list(place)) for place in np.ndindex(*values.shape[1:])]
                columns |= {f"{name}{place}": flat[:, k] for k, place in enumerate(places)}
        reasons = {failure.index: f"{failure.error}: {failure.message}" for failure in self.failures}
        columns["failure"] = [reasons.get(index, "") for index in range(len(self))]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([[repr(value.item()) if isinstance(value, np.number | np.bool_) else str(value) for value in row] for row in zip(*columns.values())])
        with write_whole(Path(path)) as temporary:
            temporary.write_text(text.getvalue(), encoding="utf-8")


class Results(Mapping[str, np.ndarray]):
    """Results by name, each made when it is asked for."""

    def __init__(self, ensemble: Ensemble) -> None:
        self._of = ensemble

    def __getitem__(self, name: str) -> np.ndarray:
        of = self._of
        if name not in of._columns:
            known = of._source.names()
            if name not in known:
                told = choices(name, known) if known else "whole trajectories are in ensemble[i].result" if of.successful.any() else "no run has one"
                raise ModelError(f"the ensemble has no result {shown(name)}; {told}")
            of._columns[name] = of._source.column(name, len(of))
        return of._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._of._source.names())

    def __len__(self) -> int:
        return len(self._of._source.names())

    def __contains__(self, name: object) -> bool:
        return name in self._of._source.names()

    def __repr__(self) -> str:
        return f"<results: {', '.join(self) or 'none'}>"


class Kept:
    """Results in records."""

    def __init__(self, records: Memory) -> None:
        self.records = records

    def status(self, runs: int) -> np.ndarray:
        found = np.full(runs, OPEN, dtype=np.uint8)
        found[self.records.indices()] = DONE
        found[sorted(self.records.failed)] = FAILED
        return found

    def failures(self) -> list[tuple[int, str, str, float]]:
        said = ((index, self.records.read(index).about) for index in sorted(self.records.failed))
        return [(index, about["error"], about["message"], about["time"]) for index, about in said]

    def names(self) -> list[str]:
        return sorted(self.records.shapes)

    def column(self, name: str, runs: int) -> np.ndarray:
        found = new_column(self.records, name, runs)
        for index in self.records.indices():
            record = self.records.read(index)
            if record.kind not in (FAILURE, TRAJECTORY) and name in record.arrays:
                found[index] = record.arrays[name]
        return found

    def result(self, index: int) -> Any:
        return result_of(self.records.read(index))


def shape_of(records: Memory, name: str) -> tuple[np.dtype, tuple[int, ...]] | None:
    """Type and shape of a result that every run that has results has alike; None where they differ."""
    kinds, shapes = zip(*records.shapes[name])
    if len(set(shapes)) > 1 or records.counts[name] < records.reduced:
        return None
    return np.result_type(*(np.dtype(kind) for kind in kinds)), shapes[0]


def new_column(records: Memory, name: str, runs: int) -> np.ndarray:
    """An array for a result of all runs, with nothing in it yet."""
    alike = shape_of(records, name)
    if alike is None:
        return np.full(runs, None, dtype=object)
    return with_gaps(np.zeros((runs, *alike[1]), alike[0]), np.full(runs, records.reduced < runs))


def with_gaps(values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Values with NaN where there are none: whole numbers become floats for it."""
    if missing.any():
        values = values if values.dtype.kind in "fc" else values.astype(float)
        values[missing] = np.nan
    return values


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else shown(np.round(value, 6).tolist())


def _listed(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:5])} and {len(names) - 5} more"
