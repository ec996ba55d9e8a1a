"""Records one after the other in a file that is only ever added to: whatever ends the process, those that were written are there.

Each has its length and its checksum before it. A record that was cut off in the middle is the last one, and is left out when the file is opened again.
"""
from __future__ import annotations

import hashlib
import json
import os
import struct
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from dalembert.ensemble.record import FAILURE, VALUES, Record, heading, unpacked
from dalembert.errors import ModelError, SaveError

FIRST = b"dalembert runs 1\n"
#: before each record: its length and its checksum
HEAD = struct.Struct("<Q16s")
#: s that may be lost when the power fails; a process that is killed loses nothing
FLUSH = 1.0


class Memory:
    """Records of an ensemble, kept as bytes in memory."""

    def __init__(self) -> None:
        self._data: dict[int, bytes] = {}
        self.failed: set[int] = set()
        self.bytes = 0
        #: types and shapes that results of a name have, in how many runs; and how many runs have results
        self.shapes: dict[str, set[tuple[str, tuple[int, ...]]]] = {}
        self.counts: Counter[str] = Counter()
        self.reduced = 0

    def __contains__(self, index: int) -> bool:
        return index in self._data

    def __len__(self) -> int:
        return len(self._data)

    def indices(self) -> list[int]:
        return sorted(self._data)

    def add(self, data: bytes) -> None:
        """Keep a record, unless there is one of that run."""
        head = heading(data)
        if head["index"] not in self:
            self._write(head["index"], data)
            self._note(head, len(data))

    def _note(self, head: dict[str, Any], size: int) -> None:
        self.bytes += size
        if head["kind"] == FAILURE:
            self.failed.add(head["index"])
        elif head["kind"] == VALUES:
            self.reduced += 1
            for name, kind, shape in head["arrays"]:
                self.shapes.setdefault(name, set()).add((kind, tuple(shape)))
                self.counts[name] += 1

    def _write(self, index: int, data: bytes) -> None:
        self._data[index] = data

    def read(self, index: int) -> Record:
        return unpacked(self._data[index])

    def close(self) -> None:
        """Nothing to do."""


class Journal(Memory):
    """The same in a file, of which memory holds only where each record lies. One process at a time writes to it."""

    def __init__(self, path: Path, identity: dict[str, Any], *, writing: bool = True) -> None:
        """Open a file, or begin it. ``identity``: whose runs these are; another one's are refused."""
        super().__init__()
        self.path, self._places = path, {}
        self._file = path.open("rb" if not writing else "r+b" if path.exists() else "w+b", buffering=0)
        try:
            if writing:
                _lock(self._file, path)
            self.end, self._flushed = 0, time.monotonic()
            found = self._scan()
            if found is None:
                if not writing:
                    raise ModelError(f"{path} holds no runs yet")
                self._append(json.dumps(identity).encode())
            self.identity = identity if found is None else found
            if writing:
                self._file.truncate(self.end)
        except BaseException:
            self._file.close()
            raise

    def __contains__(self, index: int) -> bool:
        return index in self._places

    def __len__(self) -> int:
        return len(self._places)

    def indices(self) -> list[int]:
        return sorted(self._places)

    def _scan(self) -> dict[str, Any] | None:
        """Find all whole records; returns the identity, or None for a file in which even that was not written."""
        size = os.fstat(self._file.fileno()).st_size
        start = self._file.read(len(FIRST))
        if start != FIRST:
            if not FIRST.startswith(start):
                raise ModelError(f"{self.path} is no file of runs that dalembert wrote")
            return None
        self.end, identity = len(FIRST), None
        for data in self._whole(size):
            place = self.end
            self.end += HEAD.size + len(data)
            if identity is None:
                identity = json.loads(data)
                continue
            head = heading(data)
            if head["index"] not in self._places:
                self._places[head["index"]] = place, len(data)
                self._note(head, len(data))
        return identity

    def _whole(self, size: int) -> Iterator[bytes]:
        while True:
            head = self._exactly(HEAD.size)
            if len(head) < HEAD.size:
                return
            length, checksum = HEAD.unpack(head)
            if length > size - self.end - HEAD.size:
                return
            data = self._exactly(length)
            if len(data) < length or _checksum(data) != checksum:
                return
            yield data

    def _exactly(self, count: int) -> bytes:
        """So many bytes, or what there is up to the end: one call of the system gives 2 GB at most."""
        parts = []
        while count > 0 and (part := self._file.read(count)):
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _append(self, data: bytes) -> None:
        whole = memoryview(b"".join([FIRST if self.end == 0 else b"", HEAD.pack(len(data), _checksum(data)), data]))
        try:
            self._file.seek(self.end)
            written = 0
            while written < len(whole):
                written += self._file.write(whole[written:]) or 0
            if time.monotonic() - self._flushed > FLUSH:
                os.fsync(self._file.fileno())
                self._flushed = time.monotonic()
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(self.end)
            raise SaveError(f"cannot write {self.path}: {error.strerror or error}. The runs until then are kept: make room, and the same call goes on") from error
        self.end += len(whole)

    def _write(self, index: int, data: bytes) -> None:
        place = self.end
        self._append(data)
        self._places[index] = place, len(data)

    def read(self, index: int) -> Record:
        place, length = self._places[index]
        self._file.seek(place + HEAD.size)
        return unpacked(self._exactly(length))

    def close(self) -> None:
        self._file.close()


def _checksum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _lock(file: Any, path: Path) -> None:
    """Refuse a file that another process writes to; a lock ends with its process, however that ends."""
    try:
        import fcntl
    except ImportError:  # Windows does not open such a file twice
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SaveError(f"another run_many is writing to {path}: wait for it, or choose another file") from None
    except OSError:  # folders of other machines that know no locks
        return
