"""How every compiled kernel is declared: one set of Numba options."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba.core import config

from dalembert.kernels.compiler import Kernel

F = TypeVar("F", bound=Callable[..., Any])

#: without reference counts: a record of a dozen arrays would be counted up and down at every call
OPTIONS: dict[str, Any] = dict(
    nopython=True, nogil=True, error_model="numpy", fastmath={"contract"}, no_cfunc_wrapper=True, forceinline=False, _nrt=False,
)


def _declare(function: F, **options: Any) -> F:
    return cast(F, function if config.DISABLE_JIT else Kernel(function, targetoptions={**OPTIONS, **options}))  # type: ignore[attr-defined]


def kernel(function: F) -> F:
    """Compile ``function``."""
    return _declare(function)


def allocating(function: F) -> F:
    """Compile ``function``, which makes arrays: outside of steps only."""
    return _declare(function, _nrt=True)


def inline(function: F) -> F:
    """Compile ``function`` as a small helper that disappears into its callers."""
    return _declare(function, forceinline=True)


def specialise(function: F, name: str, file: str) -> F:
    """Compile a function that closes over other kernels, under a name of its own, as if it stood in ``file``.

    So one algorithm serves several problems: it is cached with all that ``file`` imports.
    """
    function.__code__ = function.__code__.replace(co_filename=file, co_name=name)  # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = name
    return _declare(function)
