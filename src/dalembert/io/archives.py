"""Arrays from .npz files of strangers: nothing is unpickled, and nothing is unpacked that the budget does not allow."""
from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from dalembert.errors import BudgetError, ModelError
from dalembert.io.budget import Budget, Meter


def read_arrays(path: Path, names: Sequence[str], what: str, budget: Budget | None = None) -> dict[str, np.ndarray]:
    """Arrays of an archive by name; a ModelError where it is no ``what``."""
    meter = Meter(path, budget)
    try:
        with zipfile.ZipFile(path) as archive:
            held = path.stat().st_size
            meter.bytes(max(0, sum(archive.getinfo(f"{name}.npy").file_size for name in names) - held), "its content")
            return {name: _read(archive, f"{name}.npy") for name in names}
    except BudgetError:
        raise
    except (OSError, ValueError, LookupError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        reason = error.args[0] if isinstance(error, KeyError) and error.args else error
        raise ModelError(f"{path} is no {what}: {reason}") from None


def _read(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """One array: its header must ask for no more than its entry holds."""
    size = archive.getinfo(name).file_size
    with archive.open(name) as file:
        shape, kind = _header(file)
        if kind.hasobject or float(np.prod(np.array(shape, dtype=float))) * kind.itemsize > size:
            raise ValueError(f"{name} says that it is larger than it is")
    with archive.open(name) as file:
        return npy.read_array(file, allow_pickle=False)


def _header(file: IO[bytes]) -> tuple[Any, np.dtype]:
    version = npy.read_magic(file)
    shape, _, kind = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(file)
    return shape, kind
