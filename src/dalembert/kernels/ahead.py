"""Compiling what a run needs later in a second process, while the first compiles what it needs now.

It begins when the first process finds that it has to compile something: with a full cache nothing is started or said.
Both find each other's results in the cache, and neither compiles what the other is at. The second process ends with its
list or with the first process, says nothing, and whatever happens to it the first one can do without.
"""
from __future__ import annotations

import atexit
import functools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from dalembert.kernels.cache import can_wait

#: kernels or parts of kernels, each with arguments of the types that a run will have
Jobs = Iterable[tuple[Any, tuple[Any, ...]]]

_SECOND = "import sys; sys.path[:] = sys.argv[2:]; from dalembert.kernels.ahead import work; work(sys.argv[1])"


_pending: list[Callable[[], Jobs]] = []


@functools.cache
def prepare(jobs: Callable[[], Jobs]) -> None:
    """``jobs`` are what a run will need, should it turn out that kernels have to be compiled."""
    _pending.append(jobs)


def begin_compiling() -> None:
    """A kernel that is needed now is not in the cache: say so once, and begin with the jobs in a second process."""
    _say_so()
    while _pending:
        jobs = _pending.pop()
        if _may_start() and not all(kernel.is_cached(*arguments) for kernel, arguments in jobs()):
            _start(f"{jobs.__module__}:{jobs.__qualname__}")


@functools.cache
def _say_so() -> None:
    print("dalembert: compiling kernels, for half a minute or so (kept for later runs)", file=sys.stderr, flush=True)


def _may_start() -> bool:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    is_python = Path(sys.executable or "").name.startswith("python")  # not a program that has Python in it
    return cores > 1 and is_python and can_wait() and os.environ.get("DALEMBERT_AHEAD", "1") != "0"


def _start(name: str) -> subprocess.Popen | None:
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _SECOND, name, *sys.path], env={**os.environ, "DALEMBERT_AHEAD": "0"}, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None
    atexit.register(_stop, process, os.getpid())
    return process


def _stop(process: subprocess.Popen, owner: int) -> None:
    if os.getpid() == owner:
        process.kill()
        process.communicate()


def work(name: str) -> None:
    """The second process: compile the jobs of ``module:function``."""
    threading.Thread(target=_end_with_first, daemon=True).start()
    module, function = name.split(":")
    for kernel, arguments in getattr(import_module(module), function)():
        kernel.compile_for(*arguments)


def _end_with_first() -> None:
    """Standard input ends when the first process does, however it ends."""
    sys.stdin.buffer.read()
    os._exit(0)
