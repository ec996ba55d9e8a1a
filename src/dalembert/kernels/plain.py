"""Kernels by Numba's own ``njit``: where its insides are not those that `compiler` was made for. Compiling takes longer."""
from __future__ import annotations

import atexit
import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba

from dalembert.kernels.cache import NUMBAS, Folder

#: the entry with the checksums of what Numba's own cache wrote
SUMS = "numba.sums"
_checked: set[Path] = set()


def plain(function: Callable[..., Any], forceinline: bool = False, **options: Any) -> Callable[..., Any]:
    """``function`` compiled by ``njit``, and kept in the cache if that can be written; LLVM decides what it puts inline.

    Numba itself compiles again when the function's own file changes, but not for a file that this one imports: its
    cache is given the folder of that closure. Nor has it checksums: files are dropped that have changed since a process
    ended that wrote them.
    """
    if function.__closure__:  # Numba knows such by the objects it closes over, and would never find it again
        return numba.njit(**options)(function)
    before = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    try:
        numba.config.CACHE_DIR = str(_made(Folder(Path(function.__code__.co_filename))))  # type: ignore[attr-defined]
        return numba.njit(cache=True, **options)(function)
    except (OSError, RuntimeError):  # no place to write, or not the user's alone
        return numba.njit(**options)(function)
    finally:
        numba.config.CACHE_DIR = before  # type: ignore[attr-defined]


def _made(folder: Folder) -> Path:
    """The cache folder, without files that are damaged."""
    folder.make()
    assert folder.path is not None
    if folder.path not in _checked:
        _checked.add(folder.path)
        known = json.loads(folder.load(SUMS) or b"{}")
        for name, found in _sums(folder.path).items():
            if known.get(name) != found:
                (folder.path / name).unlink(missing_ok=True)
        atexit.register(_keep_sums, folder, known)
    return folder.path


def _keep_sums(folder: Folder, known: dict[str, str]) -> None:
    with suppress(OSError):
        if folder.path is not None and (found := _sums(folder.path)) != known:
            folder.save(SUMS, json.dumps(found).encode())


def _sums(folder: Path) -> dict[str, str]:
    files = [file for file in folder.rglob("*") if file.suffix in NUMBAS and not file.is_symlink()]
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
