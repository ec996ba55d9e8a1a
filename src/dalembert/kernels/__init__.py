"""How every compiled kernel is declared: one set of Numba options."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba.core import config

from dalembert.kernels.compiler import Kernel

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS: dict[str, Any] = dict(nopython=True, nogil=True, error_model="numpy", fastmath={"contract"}, no_cfunc_wrapper=True, forceinline=False)


def _declare(function: F, **options: Any) -> F:
    return cast(F, function if config.DISABLE_JIT else Kernel(function, targetoptions={**OPTIONS, **options}))  # type: ignore[attr-defined]


def kernel(function: F) -> F:
    """Compile ``function``."""
    return _declare(function)


def inline(function: F) -> F:
    """Compile ``function`` as a small helper that disappears into its callers."""
    return _declare(function, forceinline=True)
