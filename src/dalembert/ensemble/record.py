"""What one run leaves: numbers by name, a whole trajectory, or why it failed; as bytes that say of themselves what they are.

The bytes are a line of JSON, which names the arrays with their types and shapes, and then the arrays' own bytes. Nothing in them is ever executed.
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib import format as npy

from dalembert.checks import shown
from dalembert.errors import ModelError
from dalembert.simulation.trajectory import Trajectory

#: kinds of records
VALUES, TRAJECTORY, FAILURE = "values", "trajectory", "failure"
#: the name of a result that has none of its own
ALONE = "value"


@dataclass(frozen=True, eq=False)
class Record:
    """The outcome of one run. ``about``: texts and numbers beside the arrays."""

    index: int
    kind: str
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)


def of_result(index: int, result: Any) -> Record:
    """A record of what a reduction returned: a number, numbers, a dict of these, or a trajectory."""
    if isinstance(result, Trajectory):
        from dalembert.io.hdf5 import attributes_of, content_of

        result.complete()
        content = content_of(result)
        words = {name: value for name, value in content.items() if isinstance(value, list)}
        arrays = {name: value for name, value in content.items() if not isinstance(value, list)}
        return Record(index, TRAJECTORY, arrays, dict(attributes=attributes_of(result), words=words))
    if not isinstance(result, Mapping):
        return Record(index, VALUES, {ALONE: _numbers(result, "the reduction")}, dict(alone=True))
    for name in result:
        if not isinstance(name, str) or not name or "\0" in name:
            raise ModelError(f"a reduction returns a dict with names as keys, got the key {shown(name)}")
    return Record(index, VALUES, {name: _numbers(value, f"the reduction's {name!r}") for name, value in result.items()}, dict(alone=False))


def _numbers(value: Any, what: str) -> np.ndarray:
    try:
        array = np.asarray(value)
    except Exception:
        array = np.array(None)
    if array.dtype.kind not in "biufc":
        raise ModelError(f"{what} must be a number, numbers or a dict of these, got {shown(value)}")
    return array


def result_of(record: Record) -> Any:
    """What the reduction returned."""
    if record.kind == TRAJECTORY:
        from dalembert.io.hdf5 import trajectory_of

        return trajectory_of(record.about["attributes"], {**record.arrays, **record.about["words"]}, f"run {record.index}")
    values = {name: array if array.ndim else array[()] for name, array in record.arrays.items()}
    return values[ALONE] if record.about.get("alone") else values


def packed(record: Record) -> bytes:
    """A record as bytes."""
    arrays = {name: np.asarray(array, order="C") for name, array in record.arrays.items()}
    table = [[name, npy.dtype_to_descr(array.dtype), list(array.shape)] for name, array in arrays.items()]
    head = json.dumps(dict(index=record.index, kind=record.kind, arrays=table, about=record.about)).encode()
    return b"\n".join([head, b"".join(array.tobytes() for array in arrays.values())])


def heading(data: bytes) -> dict[str, Any]:
    """What a record says of itself."""
    return json.loads(data[: data.index(b"\n")])


def unpacked(data: bytes) -> Record:
    """A record from its bytes."""
    head, at, arrays = heading(data), data.index(b"\n") + 1, {}
    for name, kind, shape in head["arrays"]:
        dtype = npy.descr_to_dtype(_descr(kind))
        if dtype.hasobject:
            raise ModelError("a record holds objects, and not numbers")
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(data, dtype, count, at).reshape(shape).copy()
        at += count * dtype.itemsize
    return Record(head["index"], head["kind"], arrays, head["about"])


def _descr(kind: Any) -> Any:
    """A type of numbers, or of records, as NumPy wants it: JSON has no tuples."""
    if isinstance(kind, str):
        return kind
    return [(name, _descr(of), *(tuple(s) for s in shape)) for name, of, *shape in kind]
