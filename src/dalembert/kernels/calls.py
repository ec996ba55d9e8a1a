"""Calling a user's function from a kernel: by its address, with one array of numbers that goes in and one that comes out.

So kernels are compiled once for all users. A function that Numba has compiled is called directly; one in Python through
ctypes, which takes the interpreter's lock for it. An error in it ends as NaN, and is raised when the step has failed.
"""
from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from dalembert.kernels import COMPILED, kernel

_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
#: the same as a type of functions that Numba compiles
ENTRY = numba.types.void(numba.types.CPointer(numba.float64), numba.types.CPointer(numba.float64), numba.int64, numba.int64)


def is_compiled(function: Any) -> bool:
    """Whether Numba has compiled a function."""
    return isinstance(function, numba.core.dispatcher.Dispatcher)  # type: ignore[attr-defined]


@intrinsic
def _call_compiled(typing: Any, address: Any, given: Any, found: Any) -> Any:
    """``address(given, found, len(given), len(found))`` with pointers to the arrays' numbers."""
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = ir.IntType(64)
        parts = [cgutils.create_struct_proxy(kind)(context, builder, value=value) for kind, value in zip(signature.args[1:], arguments[1:])]
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, pointer, number, number])
        function = builder.inttoptr(arguments[0], kind.as_pointer())
        data = [builder.bitcast(part.data, pointer) for part in parts]
        builder.call(function, [*data, *(part.nitems for part in parts)])
        return context.get_dummy_value()

    return numba.types.void(address, given, found), generate


if COMPILED:

    @kernel
    def call(address, given, found):  # pyright: ignore[reportRedeclaration]
        """Call the function at ``address``: it reads ``given`` and writes ``found``, arrays of floats."""
        _call_compiled(address, given, found)  # pyright: ignore[reportCallIssue]
else:

    def call(address: int, given: np.ndarray, found: np.ndarray) -> None:
        """Call the function at ``address``: it reads ``given`` and writes ``found``, arrays of floats."""
        _SIGNATURE(int(address))(given.ctypes.data, found.ctypes.data, len(given), len(found))


class Callback:
    """A Python function ``function(given, found)`` of two arrays with an address for ``call``; ``error`` is what it raised last."""

    def __init__(self, function: Callable[[np.ndarray, np.ndarray], None]) -> None:
        self.error: Exception | None = None

        def enter(given: int, found: int, count: int, room: int) -> None:
            numbers = np.ctypeslib.as_array(ctypes.cast(given, ctypes.POINTER(ctypes.c_double)), (count,))
            answer = np.ctypeslib.as_array(ctypes.cast(found, ctypes.POINTER(ctypes.c_double)), (room,))
            try:
                function(numbers, answer)
            except Exception as error:
                self.error = error
                answer[:] = np.nan

        self._kept = _SIGNATURE(enter)
        self.address = ctypes.cast(self._kept, ctypes.c_void_p).value or 0
