"""Ensembles in HDF5 files, and the journal beside such a file while runs are being made.

Layout, for readers in other languages: ``status`` (runs,) with 0 for a run that is not made yet, 1 for one that is done, 2 for one that failed;
``parameters/NAME`` and ``starts/NAME`` (runs, ...); ``results/NAME`` (runs, ...), NaN or 0 where a run has none, or a group with a dataset for each run where
shapes differ; ``trajectories/NUMBER``, each laid out as a file of its own would be; ``failures/index``, ``error``, ``message`` and ``time``. The
root's attribute ``ensemble`` is JSON that says whose runs they are. In names, "%" and "/" are written as "%25" and "%2F". The first 512 bytes are text with a checksum of the rest.

HDF5 files do not survive a writer that is killed. So runs go to a journal, which does, and from time to time the HDF5 file is made anew from it, beside
the old one, and takes its place as a whole. The journal holds every run until all are made, and vanishes then.
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

import dalembert
from dalembert.ensemble.ensemble import DONE, Ensemble, Kept, shape_of, with_gaps
from dalembert.ensemble.journal import Journal, Memory
from dalembert.ensemble.record import ALONE, FAILURE, TRAJECTORY, VALUES, Record, of_result, packed
from dalembert.ensemble.samples import Plan
from dalembert.errors import BudgetError, ModelError, SaveError
from dalembert.io.budget import Budget, Meter
from dalembert.io.hdf5 import (
    check_seal,
    h5py_module,
    on_disk,
    own,
    plain,
    read_group,
    trajectory_of,
    write_group,
    write_sealed,
)
from dalembert.io.shapes import check_shapes
from dalembert.io.whole import write_whole

KIND, FORMAT = "dalembert ensemble", 1
TITLE = "dalembert ensemble, an HDF5 file"
ENDINGS = (".h5", ".hdf5")
#: s between two files while runs are made, and how many times longer than writing one this is at least
PAUSE, SHARE = 30.0, 20.0
#: bytes of rows that are written at once
BLOCK = 8_000_000


def journal_of(path: Path) -> Path:
    """Where the runs of a file are while they are being made."""
    return path.with_name(f"{path.name}.journal")


# ---- writing


class Store:
    """A file that an ensemble is written to: opened, or begun; another ensemble's is refused."""

    def __init__(self, path: Path, identity: Mapping[str, Any], plan: Plan) -> None:
        if path.suffix.lower() not in ENDINGS:
            raise ModelError(f"an ensemble is written to an HDF5 file: {path} must end in {' or '.join(ENDINGS)}")
        if not path.resolve().parent.is_dir():
            raise FileNotFoundError(f"cannot write {path}: there is no folder {path.resolve().parent}")
        h5py_module()
        self.path, self.identity, self.plan, self.journal = path, dict(identity), plan, journal_of(path)
        kept = None
        if path.exists():
            kept = Opened(path)
            _check_identity(kept.identity, identity, path)
            if not self.journal.exists():
                self._unfold(kept)
        self.records = Journal(self.journal, self.identity)
        try:
            _check_identity(self.records.identity, identity, self.journal)
            self._written = -1 if kept is None else len(self.records) if not self._new(kept) else 0
            self._last, self._cost = monotonic(), 0.0
            if kept is None:
                self.fold()
        except BaseException:
            self.records.close()
            raise

    def _new(self, kept: Opened) -> bool:
        """Whether the journal has runs that the file lacks."""
        return len(self.records) != int((kept.status(self.plan.runs) != 0).sum())

    def _unfold(self, kept: Opened) -> None:
        """Begin a journal with the runs of a file."""
        with write_whole(self.journal) as temporary:
            journal = Journal(temporary, self.identity)
            try:
                for data in kept.records(self.plan.runs):
                    journal.add(data)
            finally:
                journal.close()

    def fold(self) -> None:
        """Make the HDF5 file anew."""
        begun = monotonic()
        try:
            write_ensemble(self.path, self.identity, self.plan, self.records)
        except SaveError as error:
            raise SaveError(f"{error}. The runs until then are in {self.journal.name}: make room, and the same call goes on") from error
        self._last = monotonic()
        self._written, self._cost = len(self.records), self._last - begun

    def now_and_then(self) -> None:
        """Make the HDF5 file anew if the last one is old."""
        if len(self.records) > self._written and monotonic() - self._last > max(PAUSE, SHARE * self._cost):
            self.fold()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        try:
            if len(self.records) != self._written:
                with suppress(*((Exception,) if error is not None else ())):  # the error itself is what matters
                    self.fold()
            complete = len(self.records) >= self.plan.runs and self._written == len(self.records)
        finally:
            self.records.close()
        if complete:
            self.journal.unlink(missing_ok=True)


def _check_identity(found: Mapping[str, Any], wanted: Mapping[str, Any], path: Path) -> None:
    old, new = found.get("parts", {}), wanted["parts"]
    other = [part for part in new if old.get(part) != new[part]]
    if other or found.get("shape") != wanted["shape"]:
        raise ModelError(
            f"{path} holds the runs of another ensemble, of {found.get('mechanism')!r}: its {_and(other or ['samples'])} differ{'s' * (len(other) == 1 and other[0] not in ('parameters', 'starts', 'controls'))}. "
            "Choose another file, or remove this one"
        )


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def write_ensemble(path: Path, identity: Mapping[str, Any], plan: Plan, records: Memory) -> None:
    """Write the runs that there are to a file, which appears whole or not at all."""
    tables = sum(values.nbytes for values in (*plan.parameters.values(), *plan.starts.values()))
    columns = {name: alike for name in sorted(records.shapes) if (alike := shape_of(records, name)) is not None}
    rows = sum(plan.runs * kind.itemsize * int(np.prod(shape)) for kind, shape in columns.values())
    write_sealed(path, tables + rows + records.bytes, TITLE, lambda file: _fill(file, identity, plan, records, columns))


def _fill(file: Any, identity: Mapping[str, Any], plan: Plan, records: Memory, columns: Mapping[str, tuple[np.dtype, tuple[int, ...]]]) -> None:
    file.attrs.update(kind=KIND, format=FORMAT, dalembert=dalembert.__version__, ensemble=json.dumps(identity), runs=plan.runs)
    for group, table in (("parameters", plan.parameters), ("starts", plan.starts), ("axes", plan.axes)):
        file.create_group(group)
        for name, values in table.items():
            file[f"{group}/{quoted(name)}"] = values
    source = Kept(records)
    file["status"] = source.status(plan.runs)
    failures = source.failures()
    text = h5py_module().string_dtype()
    file["failures/index"] = np.array([index for index, *_ in failures], dtype=np.int64)
    for name, words in (("error", [said[1] for said in failures]), ("message", [said[2] for said in failures])):
        file.create_dataset(f"failures/{name}", data=np.array([_printable(word) for word in words], dtype=object), dtype=text)
    file["failures/time"] = np.array([time for *_, time in failures], dtype=float)
    results = file.create_group("results")
    held = {}
    for name, (kind, shape) in columns.items():
        held[name] = results.create_dataset(quoted(name), (plan.runs, *shape), kind, fillvalue=np.nan if kind.kind in "fc" else None)
    results.attrs["alone"] = False
    rows: dict[str, dict[int, np.ndarray]] = {name: {} for name in held}
    size = 0
    for index in records.indices():
        record = records.read(index)
        if record.kind == TRAJECTORY:
            write_group(file.create_group(f"trajectories/{index:06d}"), record.about["attributes"], {**record.arrays, **record.about["words"]})
        elif record.kind == VALUES:
            results.attrs["alone"] = bool(record.about.get("alone"))
            for name, values in record.arrays.items():
                if name in held:
                    rows[name][index] = values
                    size += values.nbytes + 200
                else:
                    results[f"{quoted(name)}/{index:06d}"] = values
        if size > BLOCK:
            _write_rows(held, rows)
            size = 0
    _write_rows(held, rows)


def _write_rows(held: Mapping[str, Any], rows: dict[str, dict[int, np.ndarray]]) -> None:
    """Write rows that were gathered: those that follow one another at once."""
    for name, found in rows.items():
        numbers = np.array(list(found), dtype=np.int64)
        for part in np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1) if len(numbers) else ():
            held[name][part[0] : part[-1] + 1] = np.stack([found[index] for index in part])
        found.clear()


def quoted(name: str) -> str:
    """A name as HDF5 takes it, where "/" parts groups."""
    word = name.replace("%", "%25").replace("/", "%2F")
    return "%2E" if word == "." else word


def unquoted(word: str) -> str:
    return word.replace("%2E", ".").replace("%2F", "/").replace("%25", "%")


def _printable(text: str) -> str:
    return text.encode(errors="replace").decode().replace("\0", " ")


# ---- reading


def load_ensemble(path: Path, budget: Budget | None = None) -> Ensemble:
    """An ensemble from its file, with the runs of the journal beside it, if there is one."""
    opened = Opened(path, budget)
    plan, source = opened.plan(), opened
    if journal_of(path).exists():
        with suppress(ModelError):
            journal = Journal(journal_of(path), {}, writing=False)
            if journal.identity.get("parts") == opened.identity.get("parts"):
                return Ensemble.of(opened.identity, plan, journal)
            journal.close()
    return Ensemble(opened.identity, plan, source)


class Opened:
    """The HDF5 file of an ensemble: its checksum is looked at once, and results are read when they are asked for."""

    def __init__(self, path: Path, budget: Budget | None = None) -> None:
        self.path, self.budget = path, budget
        h5py = h5py_module()
        with open(path, "rb") as opened:  # a file that is missing or forbidden says so in Python's own words
            self._held = on_disk(opened.fileno())
            if not check_seal(opened, TITLE, "an ensemble"):
                raise ModelError(f"{path} is no ensemble that dalembert wrote")
        with self._reading(h5py) as file:
            attributes = {name: file.attrs.get(name) for name in ("kind", "format", "dalembert", "ensemble", "runs")}
        if attributes["kind"] != KIND or attributes["format"] != FORMAT:
            raise ModelError(f"{path} has format {attributes['format']} of {attributes['kind']!r}, written by dalembert {attributes['dalembert']}; dalembert {dalembert.__version__} reads format {FORMAT}")
        self.identity: dict[str, Any] = self._parsed(attributes["ensemble"])
        self._runs = int(attributes["runs"])

    def _parsed(self, text: Any) -> dict[str, Any]:
        try:
            found = json.loads(text)
            if all(name in found for name in ("mechanism", "formulation", "duration", "seed", "shape", "axes")):
                return found
        except (TypeError, ValueError):
            pass
        raise ModelError(f"{self.path} does not say whose runs it holds")

    def _reading(self, h5py: Any | None = None) -> Any:
        try:
            return (h5py or h5py_module()).File(self.path, "r")
        except OSError as error:
            raise ModelError(f"{self.path} cannot be read as an ensemble: {error}") from error

    def _array(self, group: Any, name: str, meter: Meter) -> np.ndarray:
        """The numbers of a dataset that lies in this file."""
        dataset = own(h5py_module(), group, name)
        if not plain(dataset.dtype) and dataset.dtype.kind not in "bc":
            raise ModelError(f"{self.path}: {name!r} holds no numbers")
        meter.bytes(max(0.0, float(np.prod(np.array(dataset.shape, dtype=float))) * dataset.dtype.itemsize - self._held), repr(name))
        return dataset[()]

    def _all(self, file: Any, group: str, meter: Meter) -> dict[str, np.ndarray]:
        found = own(h5py_module(), file, group)
        return {unquoted(name): self._array(found, name, meter) for name in found}

    def plan(self) -> Plan:
        """What was varied."""
        meter = Meter(self.path, self.budget)
        with self._reading() as file:
            tables = [self._all(file, group, meter) for group in ("parameters", "starts", "axes")]
        if any(len(values) != self._runs for table in tables[:2] for values in table.values()):
            raise ModelError(f"{self.path}: its tables do not have {self._runs} rows")
        axes = {name: tables[2][name] for name in self.identity["axes"]}
        return Plan(self._runs, tuple(self.identity["shape"]), axes, tables[0], tables[1], self.identity["seed"])

    def status(self, runs: int) -> np.ndarray:
        with self._reading() as file:
            found = self._array(file, "status", Meter(self.path, self.budget))
        if found.shape != (runs,):
            raise ModelError(f"{self.path}: its status does not have {runs} rows")
        return found

    def failures(self) -> list[tuple[int, str, str, float]]:
        return self._failures

    @cached_property
    def _failures(self) -> list[tuple[int, str, str, float]]:
        with self._reading() as file:
            group, meter = own(h5py_module(), file, "failures"), Meter(self.path, self.budget)
            numbers, times = self._array(group, "index", meter), self._array(group, "time", meter)
            words = [[str(word) for word in own(h5py_module(), group, name).asstr()[()]] for name in ("error", "message")]
        return [(int(index), *said, float(time)) for index, *said, time in zip(numbers, *words, times)]

    def names(self) -> list[str]:
        return self._names

    @cached_property
    def _names(self) -> list[str]:
        with self._reading() as file:
            return sorted(unquoted(name) for name in own(h5py_module(), file, "results"))

    def column(self, name: str, runs: int) -> np.ndarray:
        meter = Meter(self.path, self.budget)
        with self._reading() as file:
            results = own(h5py_module(), file, "results")
            found = own(h5py_module(), results, quoted(name))
            if hasattr(found, "shape"):
                whole = file.get("trajectories", ())
                has = self._array(file, "status", meter) == DONE
                has[[int(number) for number in whole]] = False
                return with_gaps(self._array(results, quoted(name), meter), ~has)
            column = np.full(runs, None, dtype=object)
            for number in found:
                column[int(number)] = self._array(found, number, meter)
            return column

    def result(self, index: int) -> Any:
        meter, h5py = Meter(self.path, self.budget), h5py_module()
        with self._reading() as file:
            number = f"{index:06d}"
            if "trajectories" in file and number in (whole := own(h5py, file, "trajectories")):
                try:
                    attributes, content = read_group(h5py, own(h5py, whole, number), self._held, meter)
                    check_shapes(content)
                except BudgetError:
                    raise
                except (OSError, LookupError, ValueError, TypeError, AttributeError, RuntimeError, ArithmeticError, MemoryError) as error:
                    raise ModelError(f"{self.path}: run {index} cannot be read as a trajectory: {error}") from error
                return trajectory_of(attributes, content, self.path, meter)
            results, values = own(h5py, file, "results"), {}
            for name in results:
                found = own(h5py, results, name)
                if hasattr(found, "shape"):
                    values[unquoted(name)] = found[index]
                elif number in found:
                    array = self._array(found, number, meter)
                    values[unquoted(name)] = array if array.ndim else array[()]
            return values[ALONE] if results.attrs.get("alone", False) else values

    def records(self, runs: int) -> Any:
        """All runs as records, for a journal."""
        status = self.status(runs)
        for index, error, message, time in self.failures():
            yield packed(Record(index, FAILURE, {}, dict(error=error, message=message, time=time)))
        for index in np.flatnonzero(status == DONE).tolist():
            yield packed(of_result(index, self.result(index)))
