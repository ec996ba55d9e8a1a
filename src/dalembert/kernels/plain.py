"""Kernels by Numba's own ``njit``: where its insides are not those that `compiler` was made for. Compiling takes longer."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from dalembert.kernels.cache import Folder


def plain(function: Callable[..., Any], forceinline: bool = False, **options: Any) -> Callable[..., Any]:
    """``function`` compiled by ``njit``, and kept in the cache if that can be written; LLVM decides what it puts inline.

    Numba itself compiles again when the function's own file changes, but not for a file that this one imports: its
    cache is given the folder of that closure.
    """
    if function.__closure__:  # Numba knows such by the objects it closes over, and would never find it again
        return numba.njit(**options)(function)
    folder = Folder(Path(function.__code__.co_filename))
    before = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    try:
        folder.make()
        numba.config.CACHE_DIR = str(folder.path)  # type: ignore[attr-defined]
        return numba.njit(cache=True, **options)(function)
    except (OSError, RuntimeError):  # no place to write
        return numba.njit(**options)(function)
    finally:
        numba.config.CACHE_DIR = before  # type: ignore[attr-defined]
