"""Long runs as a row of files: each is a trajectory of its own, written whole while the run goes on, and all can be read as one."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError, Terminated
from dalembert.simulation.ending import keep
from dalembert.simulation.trajectory import Trajectory

if TYPE_CHECKING:
    from dalembert.io.budget import Budget

#: bytes of a part that nobody gave a length for
PART = 64_000_000


def new_folder(folder: Path) -> Path:
    """A folder for the parts of a run, which holds none yet."""
    if folder.exists() and not folder.is_dir():
        raise ModelError(f"{folder} is a file: parts of a run are written to a folder")
    folder.mkdir(exist_ok=True)
    if part_files(folder):
        raise ModelError(f"{folder} holds parts of a run already: choose another folder, or remove them")
    return folder


def part_file(folder: Path, number: int) -> Path:
    """Where a part is written."""
    return folder / f"part-{number:06d}.h5"


def write_part(part: Trajectory, file: Path) -> None:
    """Write a part; what ends the program meanwhile waits until it is written, and an error brings it along as its ``trajectory``."""
    try:
        part.save(file)
    except KeyboardInterrupt:
        part.save(file)
        part.interrupted = True
    except Terminated as error:
        part.save(file)
        keep(error, lambda: part, float(part.time[-1]))
        raise
    except BaseException as error:
        keep(error, lambda: part, float(part.time[-1]))
        raise


def part_files(folder: Path) -> list[Path]:
    """The parts of a run, in their order."""
    return sorted(folder.glob("part-*.h5"))


def load_parts(folder: Path, budget: Budget | None = None) -> Trajectory:
    """One trajectory from the parts in a folder; the budget is that of each."""
    files = part_files(folder)
    if not files:
        raise ModelError(f"{folder} holds no parts of a run: they are files named part-000000.h5, part-000001.h5, ...")
    return join([Trajectory.load(file, budget=budget) for file in files])


def join(parts: Sequence[Trajectory]) -> Trajectory:
    """Runs that went on from one another as one. Where two meet, the end of the earlier one counts."""
    first = parts[0]
    for before, after in pairwise(parts):
        if (before.bodies, before.joints, before.formulation) != (after.bodies, after.joints, after.formulation):
            raise ModelError(f"trajectories of {before.mechanism!r} and {after.mechanism!r} cannot be joined: they are not of one mechanism and formulation")
        if not abs(after.time[0] - before.time[-1]) <= 1e-9 * max(1.0, abs(before.time[-1])):
            raise ModelError(f"a part that ends at {before.time[-1]:g} s cannot be joined to one that begins at {after.time[0]:g} s")
    for part in parts:
        part.complete()
    values = {name: np.concatenate([_series(part, name, i) for i, part in enumerate(parts)]) for name in first._values if name not in LOGS}
    words: dict[str, tuple[str, ...]] = {}
    for log, (column, names, knots) in LOGS.items():
        if any(log in part._values for part in parts):
            values[log], words[names] = _joined_log(parts, log, column, names, knots)
    return replace(first, _values=values, _providers=(), _least_norm=None, record=None, interrupted=parts[-1].interrupted, **words)


def _series(part: Trajectory, name: str, number: int) -> np.ndarray:
    """A series of a part, without the knot that the part before has, too; events lie between knots."""
    return part._values[name] if number == 0 or name.startswith("event_") else part._values[name][1:]


#: series of numbered words: which column holds the number, which field of a trajectory the words, which column counts knots
LOGS = {"contact_log": ("owner", "touching", "knot"), "event_kind": (None, "happenings", None)}


def _joined_log(parts: Sequence[Trajectory], log: str, column: str | None, names: str, knots: str | None) -> tuple[np.ndarray, tuple[str, ...]]:
    """Entries of all parts, numbered by one list of words, knots counted from the first part's start."""
    words = tuple(dict.fromkeys(word for part in parts for word in getattr(part, names)))
    rows, offset = [], 0
    for part in parts:
        entries: Any = part._values[log].copy()
        number = np.array([words.index(word) for word in getattr(part, names)], dtype=np.int64)
        if column is None:
            entries = number[entries] if len(entries) else entries
        elif len(entries):
            entries[column] = number[entries[column]]
        if knots is not None:
            entries[knots] += offset
        rows.append(entries)
        offset += len(part) - 1
    return np.concatenate(rows), words
