"""Runs something in a process of its own and measures what it took: its answer, time of the processor, memory, files it opened."""
from __future__ import annotations

import ctypes
import os
import pickle
import select
import signal
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """``answer``: what was returned, or how the process ended; ``seconds`` of the processor; ``megabytes`` more than before."""

    answer: str
    seconds: float
    megabytes: float


def measured(work: Callable[[], str], patience: float = 120.0) -> Outcome:
    """Run ``work`` in a fork of this process, which is killed after ``patience`` seconds of the clock."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        answer, before = "no answer", _memory("VmRSS")
        try:
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins now
            answer = work()
        except BaseException as error:  # whatever it is, it is what is asked for
            answer = f"{type(error).__name__}: {error}"
        finally:
            os.write(writing, pickle.dumps((answer[:2000], _memory("VmHWM") - before)))
            os._exit(0)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], patience)
    data = os.read(reading, 2**16) if ready else b""
    os.close(reading)
    if not data:
        os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    ended = f"hang of {patience:g} s" if not ready else f"crash: status {status}"
    answer, megabytes = pickle.loads(data) if data else (ended, 0.0)
    return Outcome(answer, usage.ru_utime + usage.ru_stime, megabytes)


def _memory(kind: str) -> float:
    """Memory of this process, MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(kind)) / 1024


@contextmanager
def watched(folder: Path) -> Iterator[list[str]]:
    """Names of files in a folder that anybody opens meanwhile, in C as well as in Python (Linux)."""
    library, opened = ctypes.CDLL(None, use_errno=True), []
    handle = library.inotify_init1(os.O_NONBLOCK)
    try:
        for place in [folder, *(p for p in folder.rglob("*") if p.is_dir())]:
            if library.inotify_add_watch(handle, os.fsencode(place), 0x20 | 0x1) < 0:  # opened, read
                raise OSError(ctypes.get_errno(), "inotify")
        yield opened
        time.sleep(0.01)
        try:
            data = os.read(handle, 2**20)
        except BlockingIOError:
            data = b""
        place = 0
        while place < len(data):
            _, mask, _, length = struct.unpack_from("iIII", data, place)
            name = data[place + 16 : place + 16 + length].rstrip(b"\0").decode()
            if name and not mask & 0x40000000:  # not a folder
                opened.append(name)
            place += 16 + length
    finally:
        os.close(handle)
