"""What ends a run before its time, and what is kept then: Ctrl-C, the signals that end processes, and errors."""
from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from dalembert.errors import Terminated

#: signals that ask a process to end; SIGINT has an exception of its own
ENDINGS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


def _end(number: int, _: Any) -> None:
    raise Terminated(number)


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Signals that would kill the process raise ``Terminated`` inside; those that the program handles itself are left to it."""
    mine = []
    if threading.current_thread() is threading.main_thread():
        for number in ENDINGS:
            if signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, _end)
                mine.append(number)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)


def keep(error: BaseException, finish: Callable[[], Any], time: float) -> None:
    """Put what was computed up to ``time`` (s) on an error, as its ``trajectory``."""
    with suppress(Exception):  # the error itself is what matters
        error.trajectory = finish()  # type: ignore[attr-defined]
        error.add_note(f"What was computed up to t = {time:.6g} s is in the error's trajectory.")
