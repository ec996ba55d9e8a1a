"""Where compiled kernels are kept between runs: one folder per source file, named by what its kernels depend on.

A folder's name holds a digest of the declaring file and of every dalembert file that it imports, directly or not: stale
machine code cannot be found. An entry is one file that appears whole or not at all. Folders that nobody used for long
are removed, if they bear our name and our mark: the cache may lie in a folder that holds other things.
"""
from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dalembert.kernels.closure import source_digest

fcntl: Any = None
with suppress(ImportError):  # not on Windows: two processes may then compile the same kernel, and the later one wins
    import fcntl

#: folders unused for so many days are removed, and so are all but the newest few
KEPT_DAYS, KEPT_FOLDERS = 30, 300
#: longest wait for another process that compiles the same kernel, s
PATIENCE = 300.0
#: the file that says whose a folder is, and the names our folders have; with a process number, one that is being removed
MARK, OURS = "made-by-dalembert", re.compile(r"kernels-[0-9a-f]{16}(-\d+)*")


def cache_root() -> Path:
    """The folder that holds compiled kernels: ``DALEMBERT_CACHE``, or the user's cache folder."""
    chosen = os.environ.get("DALEMBERT_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "dalembert"


class Folder:
    """The compiled kernels of one source file."""

    def __init__(self, source: Path) -> None:
        self.path = cache_root() / f"kernels-{source_digest(source)}"

    def make(self) -> None:
        """Make the folder, marked as ours; one that was there without the mark stays somebody else's."""
        try:
            self.path.mkdir(parents=True)
        except FileExistsError:
            return
        (self.path / MARK).write_text("Compiled kernels of dalembert. This folder is removed when it has not been used for long.\n")

    def holds(self, name: str) -> bool:
        """Whether there is an entry."""
        return (self.path / name).exists()

    def load(self, name: str) -> bytes | None:
        """An entry, or None."""
        try:
            data = (self.path / name).read_bytes()
        except OSError:
            return None
        _mark_used(self.path)
        return data

    def save(self, name: str, data: bytes) -> None:
        """Write an entry. What cannot be written is compiled again next time."""
        try:
            self.make()
            handle, temporary = tempfile.mkstemp(dir=self.path)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, self.path / name)
        except OSError as error:
            _complain(f"cannot keep compiled kernels in {self.path}: {error}; they will be compiled again")
            return
        _mark_used(self.path)
        remove_unused()

    @contextmanager
    def claim(self, name: str) -> Iterator[None]:
        """Hold an entry while it is looked for and made; another process that makes it is waited for."""
        locks = _lock_file(cache_root())
        place = int(hashlib.sha256(f"{self.path.name}/{name}".encode()).hexdigest()[:15], 16)
        locked = locks is not None and _lock(locks, place)
        try:
            yield
        finally:
            if locked:
                fcntl.lockf(locks, fcntl.LOCK_UN, 1, place)


# ---- locks: one byte per entry in a file that all processes share; the system frees those of a process that dies


def can_wait() -> bool:
    """Whether processes wait for each other: two that compile at the same time then share the work."""
    return _lock_file(cache_root()) is not None


@functools.cache
def _lock_file(root: Path) -> int | None:
    if fcntl is None:
        return None
    try:
        root.mkdir(parents=True, exist_ok=True)
        return os.open(root / "locks", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        return None


def _lock(file: int, place: int) -> bool:
    patience = time.monotonic() + PATIENCE
    while time.monotonic() < patience:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            return True
        except (BlockingIOError, PermissionError):
            time.sleep(0.005)
        except OSError:  # a file system without locks
            return False
    return False


# ---- what is no longer used


@functools.cache
def _mark_used(folder: Path) -> None:
    with suppress(OSError):
        os.utime(folder)


@functools.cache
def _complain(message: str) -> None:
    print(f"dalembert: {message}", file=sys.stderr, flush=True)


@functools.cache
def remove_unused() -> None:
    """Remove our folders that no process used for a month, and all but the newest few hundred. Once per process.

    A folder is renamed before it is removed: nobody finds half of one. Its mark goes last, so that what is left of an
    interrupted removal is removed later.
    """
    folders = []
    for folder in cache_root().iterdir():
        with suppress(OSError):
            if is_ours(folder):
                folders.append((folder.stat().st_mtime, folder))
    folders.sort(reverse=True)
    oldest = time.time() - KEPT_DAYS * 86400
    for rank, (used, folder) in enumerate(folders):
        if rank >= KEPT_FOLDERS or used < oldest:
            with suppress(OSError):
                _remove(folder.replace(folder.with_name(f"{folder.name}-{os.getpid()}")))


def is_ours(folder: Path) -> bool:
    """Whether dalembert made this folder."""
    return OURS.fullmatch(folder.name) is not None and not folder.is_symlink() and (folder / MARK).is_file()


def _remove(folder: Path) -> None:
    for item in folder.iterdir():
        if item.is_dir() and not item.is_symlink():
            shutil.rmtree(item)
        elif item.name != MARK:
            item.unlink()
    (folder / MARK).unlink()
    folder.rmdir()
