"""Kernels as plain Python, with ``NUMBA_DISABLE_JIT=1``: to step through them with a debugger, slowly.

Compiled code reads a field of a record as ``body.x`` and writes it as ``body.s = 1.0``; NumPy's own records know
``body["x"]`` alone. What Python hands to a kernel is therefore seen through `Record`, on the same memory.
"""
from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np


class Record(np.void):
    """A record with its fields as attributes. Unlike `numpy.record`, also a field with a name of NumPy's (``diagonal``)."""

    def __getattribute__(self, name: str) -> Any:
        own = super().__getattribute__
        return with_attributes(self[name]) if name in own("dtype").names else own(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


def with_attributes(value: Any) -> Any:
    """``value`` with all records in it as `Record`."""
    if isinstance(value, np.ndarray | np.void) and value.dtype.names:
        return value.view(np.dtype((Record, value.dtype)))
    if isinstance(value, tuple):
        parts = [with_attributes(part) for part in value]
        return value._make(parts) if hasattr(value, "_make") else tuple(parts)  # type: ignore[attr-defined]
    return value


class _Depth(threading.local):
    inside = False


_depth = _Depth()


def interpreted(function: Callable[..., Any], **_: Any) -> Callable[..., Any]:
    """``function`` for callers from Python: its arguments with attributes; divisions by zero go on, as in compiled code."""

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        if _depth.inside:
            return function(*arguments)
        _depth.inside = True
        try:
            with np.errstate(all="ignore"):
                return function(*with_attributes(arguments))
        finally:
            _depth.inside = False

    return call
