"""How every compiled kernel is declared: one set of Numba options and one cache, keyed by what the kernel depends on.

Numba alone keys a cached function by its own file, so a change in a file it calls would go unnoticed.
Here the cache folder's name holds a digest of the declaring file and of every dalembert file it imports,
directly or not: a stale machine code cannot be found.
"""
from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import njit
from numba.core import config as _numba_config

config: Any = _numba_config
F = TypeVar("F", bound=Callable[..., Any])

OPTIONS: dict[str, Any] = dict(nogil=True, cache=True, error_model="numpy", fastmath={"contract"}, no_cfunc_wrapper=True)

_SOURCE = Path(__file__).parent
_IMPORT = re.compile(r"^\s*(?:from\s+(dalembert[\w.]*)\s+import\s+\(?([\w\s,]*)|import\s+(dalembert[\w.]*))", re.MULTILINE)


def cache_root() -> Path:
    """The folder that holds compiled kernels: ``DALEMBERT_CACHE``, or the user's cache folder."""
    chosen = os.environ.get("DALEMBERT_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "dalembert"


def _file_of(module: str) -> Path | None:
    stem = _SOURCE.joinpath(*module.split(".")[1:])
    for candidate in (stem.with_suffix(".py"), stem / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


@functools.cache
def _imports(path: Path) -> tuple[Path, ...]:
    """The dalembert files that ``path`` imports."""
    found: set[Path] = set()
    for match in _IMPORT.finditer(path.read_text(encoding="utf-8")):
        module = match.group(1) or match.group(3)
        names = [n.split(" as ")[0].strip() for n in (match.group(2) or "").split(",")]
        for name in [module, *(f"{module}.{n}" for n in names if n)]:
            file = _file_of(name)
            if file is not None:
                found.add(file)
    return tuple(sorted(found))


@functools.cache
def source_digest(path: Path) -> str:
    """A digest of ``path`` and of all dalembert files it imports, transitively."""
    seen: set[Path] = set()
    todo = [path]
    while todo:
        file = todo.pop()
        if file not in seen:
            seen.add(file)
            todo.extend(_imports(file))
    digest = hashlib.sha256(f"{numba.__version__} {sys.version_info[:2]} {OPTIONS}".encode())
    for file in sorted(seen):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _declare(function: F, options: dict[str, Any]) -> F:
    path = Path(function.__code__.co_filename)
    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache_root() / source_digest(path))
    try:
        return cast(F, njit(**options)(function))
    finally:
        config.CACHE_DIR = before


def kernel(function: F) -> F:
    """Compile ``function`` as a kernel of its own."""
    return _declare(function, OPTIONS)


def inline(function: F) -> F:
    """Compile ``function`` as a small helper that disappears into its callers."""
    return _declare(function, {**OPTIONS, "forceinline": True})


def merged(function: F) -> F:
    """Make ``function`` part of each caller's source: for large functions with one caller, which then compile once."""
    return _declare(function, {**OPTIONS, "inline": "always"})


def announce_compilation(path: str) -> None:
    """Say once, on standard error, that the kernels of a file are not in the cache yet and will be compiled."""
    if path not in _announced and not (cache_root() / source_digest(Path(path))).exists():
        print("dalembert: compiling kernels for the first time, about half a minute (cached for later runs)", file=sys.stderr, flush=True)
    _announced.add(path)


_announced: set[str] = set()
