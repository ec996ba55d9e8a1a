"""How every compiled kernel is declared: one set of Numba options, and one of three ways to run them.

Usually `compiler` compiles them. With a Numba that this was not tested with, or with ``DALEMBERT_COMPILER=plain``,
Numba's own ``njit`` does, which takes longer. With ``NUMBA_DISABLE_JIT=1`` they stay Python.
"""
from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from dalembert.kernels.interpreted import interpreted
from dalembert.kernels.plain import plain

_failure: Exception | None = None
try:
    from dalembert.kernels.compiler import declare as compiled
except (ImportError, AttributeError, TypeError) as error:  # Numba's insides are others
    _failure = error

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS: dict[str, Any] = dict(nogil=True, error_model="numpy", fastmath={"contract"})
#: the first Numba whose insides `compiler` knows, and the first that it was not tested with
TESTED = ((0, 62), (0, 69))
#: whether kernels are compiled at all
COMPILED = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]


def _choose() -> Callable[..., Any]:
    """What makes a kernel of a function."""
    if not COMPILED:
        return interpreted
    if os.environ.get("DALEMBERT_COMPILER") == "plain":
        return plain
    try:
        if _failure:
            raise _failure
        if not TESTED[0] <= numba.version_info.short < TESTED[1]:
            raise ImportError("it was not tested with that version")
        compiled(_choose, **OPTIONS)
    except (ImportError, AttributeError, TypeError) as problem:
        warnings.warn(f"dalembert uses Numba {numba.__version__} the plain way, and the first run takes longer: {problem}", RuntimeWarning, stacklevel=3)
        return plain
    return compiled


_declare = _choose()


def kernel(function: F) -> F:
    """Compile ``function``."""
    return cast(F, _declare(function, **OPTIONS))


def inline(function: F) -> F:
    """Compile ``function`` as a small helper that disappears into its callers."""
    return cast(F, _declare(function, forceinline=True, **OPTIONS))
