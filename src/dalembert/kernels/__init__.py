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

#: without reference counts: a record of a dozen arrays would be counted up and down at every call
OPTIONS: dict[str, Any] = dict(nogil=True, error_model="numpy", fastmath={"contract"}, _nrt=False)
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


def allocating(function: F) -> F:
    """Compile ``function``, which makes arrays: outside of steps only."""
    return cast(F, _declare(function, **{**OPTIONS, "_nrt": True}))


def inline(function: F) -> F:
    """Compile ``function`` as a small helper that disappears into its callers."""
    return cast(F, _declare(function, forceinline=True, **OPTIONS))


def specialise(function: F, name: str, file: str) -> F:
    """Compile a function that closes over other kernels, under a name of its own, as if it stood in ``file``.

    So one algorithm serves several problems: it is cached with all that ``file`` imports.
    """
    function.__code__ = function.__code__.replace(co_filename=file, co_name=name)  # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = name
    return kernel(function)


def direct(function: F, *arguments: Any) -> F:
    """What a kernel is compiled to for arguments of these types: it is entered without asking for their types again.

    Only for calls that always have the same types: with others it would read memory that is not theirs.
    """
    compile_for = getattr(function, "entry_for", None)
    return function if compile_for is None else compile_for(*arguments)
