"""Files that appear whole or not at all, whatever happens to the process, the disk or the machine meanwhile."""
from __future__ import annotations

import errno
import functools
import hashlib
import os
import re
import secrets
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dalembert.errors import DalembertError, SaveError

#: names of files that are not complete yet; with an ending where a writer goes by that
_UNFINISHED = re.compile(r"\.dalembert-([0-9a-f]{8})-(\d+)-[0-9a-f]{16}\.tmp(\.\w+)?")
#: s after which such a file is removed although its writer may live
DEAD_AFTER = 24 * 3600.0
#: what to say of errors that a user can do something about
_REASONS = {
    errno.ENOSPC: "the disk is full", errno.EDQUOT: "the disk quota is used up", errno.EFBIG: "files may not be that large here",
    errno.EROFS: "the disk is read-only", errno.EACCES: "writing is not permitted there", errno.EPERM: "writing is not permitted there",
}


@contextmanager
def write_whole(path: Path, ending: str = "") -> Iterator[Path]:
    """A path beside ``path`` to write to; it takes the place of ``path`` at the end, or vanishes if anything goes wrong.

    ``ending``: of the name of that path, for writers that go by it. A SaveError says why a file cannot be written. What
    writers left that were killed is removed.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot save to {path}: there is no folder {target.parent}")
    remove_leftovers(target.parent)
    temporary = target.with_name(f".dalembert-{_machine()}-{os.getpid()}-{secrets.token_hex(8)}.tmp{ending}")
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        if target.exists():  # who could read it may do so still
            with suppress(OSError):
                os.chmod(temporary, target.stat().st_mode & 0o777)
        os.replace(temporary, target)
        _flush_folder(target.parent)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        number = _number(error)
        if isinstance(error, DalembertError) or number not in _REASONS:
            raise
        raise SaveError(f"cannot write {path}: {_REASONS[number]}. What was there before is as it was") from error


def reserve(path: Path, size: int) -> None:
    """Make sure that there is room for a file of ``size`` bytes, for writers that do not survive a full disk: an OSError where there is none."""
    with open(path, "wb") as file:
        if hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError as error:
                if error.errno in _REASONS:
                    raise
        elif shutil.disk_usage(path.parent).free < size:
            raise OSError(errno.ENOSPC, "No space left on device")
        file.truncate(0)


def _number(error: BaseException) -> int | None:
    """The system's number of an error, also where a library gives it in words alone."""
    if not isinstance(error, OSError | RuntimeError | SystemError):
        return None
    number = getattr(error, "errno", None)
    if number is None and (found := re.search(r"errno = (\d+)", str(error))):
        number = int(found.group(1))
    cause = error.__cause__ or error.__context__
    return number if number is not None or cause is None else _number(cause)


def remove_leftovers(folder: Path) -> None:
    """Remove files that writers left in a folder that are dead. Others of their names stay."""
    with suppress(OSError):
        for item in os.scandir(folder):
            match = _UNFINISHED.fullmatch(item.name)
            if match is None:
                continue
            with suppress(OSError):
                old = time.time() - item.stat(follow_symlinks=False).st_mtime > DEAD_AFTER
                if item.is_file(follow_symlinks=False) and (old or not _alive(match.group(1), int(match.group(2)))):
                    os.unlink(item.path)


@functools.cache
def _machine() -> str:
    """Which list of processes a number belongs to: folders may be shared by machines and containers."""
    words = [socket.gethostname()]
    with suppress(OSError):
        words.append(os.readlink("/proc/self/ns/pid"))
        words.append(Path("/proc/sys/kernel/random/boot_id").read_text())
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:8]


def _alive(machine: str, process: int) -> bool:
    """Whether a writer may live still: yes, where that cannot be asked."""
    if os.name != "posix" or machine != _machine():
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    try:  # one that was killed, and that nobody asked about yet (where nobody does, for good), is dead
        return Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[:1] != ["Z"]
    except OSError:
        return True


def _flush_folder(folder: Path) -> None:
    """Make sure that a new name survives a loss of power, where folders can be flushed."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
