"""Where compiled kernels are kept between runs: one folder per source file, named by what its kernels depend on.

A folder's name holds a digest of the declaring file and of every dalembert file that it imports, directly or not: stale
machine code cannot be found. An entry is one file that appears whole or not at all, with a checksum before it; one that is
damaged is compiled again. Machine code is run, so that entries are taken from nobody else: see `ownership`. Folders that
nobody used for long are removed, if they bear our name and our mark: the cache may lie in a folder that holds other things.
"""
from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dalembert.kernels.closure import source_digest
from dalembert.kernels.ownership import doubt, make_private, make_root, open_private, read_private, tighten

fcntl: Any = None
with suppress(ImportError):  # not on Windows: two processes may then compile the same kernel, and the later one wins
    import fcntl

#: folders unused for so many days are removed, and so are all but the newest: a version of dalembert has some 130, and those of parts of
#: kernels look unused while the kernels that they ended in are loaded
KEPT_DAYS, KEPT_FOLDERS = 30, 1000
#: longest wait for another process that compiles the same kernel, s
PATIENCE = 300.0
#: the file that says whose a folder is, and the names our folders have; with a process number, one that is being made or removed
MARK, OURS = "made-by-dalembert", re.compile(r"kernels-[0-9a-f]{16}(-\d+)*")
#: what an entry begins with, before the checksum and the compiled kernel
SEAL = b"dalembert kernel 1\n"
#: what files begin with that are not complete yet; they are removed when their writer must be dead
NEW, DEAD_AFTER = "new-", 3600.0
#: endings of files that Numba's own cache writes into our folders
NUMBAS = (".nbi", ".nbc")


def cache_root() -> Path | None:
    """The folder that holds compiled kernels: ``DALEMBERT_CACHE``, or the user's cache folder; None where there is none."""
    chosen = os.environ.get("DALEMBERT_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        return Path(base) / "dalembert"
    try:
        return Path.home() / ".cache" / "dalembert"
    except RuntimeError:  # neither HOME nor an entry in the list of users
        return None


def seal(place: str, data: bytes) -> bytes:
    """An entry with its checksum, which holds at this place alone."""
    return SEAL + _checksum(place, data) + data


def unseal(place: str, entry: bytes | None) -> bytes | None:
    """What was sealed, or None when that is not what it was."""
    start = len(SEAL) + 32
    if entry is None or not entry.startswith(SEAL):
        return None
    data = memoryview(entry)[start:]
    return bytes(data) if entry[len(SEAL) : start] == _checksum(place, data) else None


def _checksum(place: str, data: bytes | memoryview) -> bytes:
    digest = hashlib.sha256(f"{place}\n".encode())
    digest.update(data)
    return digest.digest()


class Folder:
    """The compiled kernels of one source file. ``path`` is None where nothing can be kept."""

    def __init__(self, source: Path) -> None:
        root = cache_root()
        self.name = f"kernels-{source_digest(source)}"
        self.path = None if root is None else root / self.name

    def make(self) -> None:
        """Make the folder, marked as ours; one that was there without the mark stays somebody else's."""
        if self.path is None:
            raise OSError("there is no home folder; name one with DALEMBERT_CACHE")
        if not os.environ.get("DALEMBERT_CACHE") and self.path.parent.is_dir():
            tighten(self.path.parent)
        if not self.path.is_dir():
            make_private(self.path, MARK, "Compiled kernels of dalembert. This folder is removed when it has not been used for long.\n")
        reason = doubt(self.path)
        if reason:
            raise OSError(reason)

    def holds(self, name: str) -> bool:
        """Whether there is an entry."""
        return self.path is not None and (self.path / name).exists()

    def load(self, name: str) -> bytes | None:
        """An entry, or None: where there is none, where it is damaged, or where somebody else could have written it."""
        if self.path is None:
            return None
        try:
            entry = read_private(self.path, name)
        except PermissionError as error:
            complain(f"compiled kernels in {self.path} are not used: {error}")
            return None
        except OSError:
            return None
        _mark_used(self.path)
        data = unseal(f"{self.path.name}/{name}", entry)
        if data is None:
            complain(f"a compiled kernel in {self.path} is damaged, and is compiled again")
        return data

    def save(self, name: str, data: bytes) -> None:
        """Write an entry. What cannot be written is compiled again next time."""
        temporary = ""
        try:
            self.make()
            assert self.path is not None
            _remove_leftovers(self.path)
            handle, temporary = tempfile.mkstemp(dir=self.path, prefix=NEW)
            with os.fdopen(handle, "wb") as file:
                file.write(seal(f"{self.path.name}/{name}", data))
            os.replace(temporary, self.path / name)
        except OSError as error:
            if temporary:
                with suppress(OSError):
                    os.unlink(temporary)
            complain(f"cannot keep compiled kernels{'' if self.path is None else f' in {self.path}'}: {error}; they will be compiled again")
            return
        _mark_used(self.path)
        remove_unused()

    @contextmanager
    def claim(self, name: str) -> Iterator[None]:
        """Hold an entry while it is looked for and made; another process that makes it is waited for."""
        locks = None if self.path is None else _lock_file(self.path.parent)
        place = 0 if self.path is None else int(hashlib.sha256(f"{self.path.name}/{name}".encode()).hexdigest()[:15], 16)
        locked = locks is not None and _lock(locks, place)
        try:
            yield
        finally:
            if locked:
                fcntl.lockf(locks, fcntl.LOCK_UN, 1, place)


# ---- locks: one byte per entry in a file that all processes share; the system frees those of a process that dies


def can_wait() -> bool:
    """Whether processes wait for each other: two that compile at the same time then share the work."""
    root = cache_root()
    return root is not None and _lock_file(root) is not None


@functools.cache
def _lock_file(root: Path) -> int | None:
    if fcntl is None:
        return None
    try:
        make_root(root)
        return open_private(root / "locks")
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
def complain(message: str) -> None:
    """Say something once."""
    print(f"dalembert: {message}", file=sys.stderr, flush=True)


@functools.cache
def _remove_leftovers(folder: Path) -> None:
    """Remove what writers left that were killed. Once per process."""
    for item in folder.glob(f"{NEW}*"):
        with suppress(OSError):
            if time.time() - item.lstat().st_mtime > DEAD_AFTER:
                item.unlink()


@functools.cache
def remove_unused() -> None:
    """Remove our folders that no process used for a month, and all but the newest thousand. Once per process.

    A folder is renamed before it is removed, so that nobody writes into one that goes. Its mark goes last, so that what is
    left of an interrupted removal is removed later. What we did not make stays, and the folder around it.
    """
    root = cache_root()
    folders = []
    for folder in root.iterdir() if root is not None else ():
        with suppress(OSError):
            if is_ours(folder):
                folders.append((folder.stat().st_mtime, folder))
    folders.sort(reverse=True)
    oldest = time.time() - KEPT_DAYS * 86400
    for rank, (used, folder) in enumerate(folders):
        if rank >= KEPT_FOLDERS or used < oldest:
            with suppress(OSError):
                if all(_is_entry(item) for item in _contents(folder)):
                    _remove(folder.replace(folder.with_name(f"{folder.name}-{os.getpid()}")))


def is_ours(folder: Path) -> bool:
    """Whether dalembert made this folder."""
    return OURS.fullmatch(folder.name) is not None and not folder.is_symlink() and (folder / MARK).is_file()


def _contents(folder: Path) -> list[Path]:
    """What is in a folder; a folder in it that Numba's own cache made counts by what is in that."""
    items = [item for item in folder.iterdir() if item.name != MARK]
    inner = [item for item in items if item.is_dir() and not item.is_symlink()]
    return [item for item in items if item not in inner] + [item for made in inner for item in (*made.iterdir(), *([made] if not any(made.iterdir()) else []))]


def _is_entry(item: Path) -> bool:
    """Whether dalembert made this file: it is sealed, or incomplete, or of Numba's own cache."""
    if item.is_symlink():
        return False
    if item.is_dir():
        return True  # an empty one
    if item.name.startswith((NEW, "tmp")) or item.suffix in NUMBAS:
        return True
    with item.open("rb") as file:
        return file.read(len(SEAL)) == SEAL


def _remove(folder: Path) -> None:
    for item in _contents(folder):
        if item.is_dir():
            item.rmdir()
        else:
            item.unlink()
    for item in folder.iterdir():
        if item.name != MARK:
            item.rmdir()
    (folder / MARK).unlink()
    folder.rmdir()
