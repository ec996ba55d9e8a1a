"""One kernel called with many lists of arguments by one call from Python, which holds no lock meanwhile: so threads run side by side.

A list of arguments becomes a row of whole numbers: addresses and shapes of arrays, bits of numbers. Compiled code makes the arguments of a row
again and enters the kernel by its address. It is the same machine code that Python enters, and so are its results, to the bit.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.typing.typeof import Purpose, typeof, typeof_impl
from numba.extending import NativeValue, intrinsic, register_model, unbox
from numba.np.arrayobj import get_itemsize, populate_array

from dalembert.kernels import COMPILED, direct, kernel

WORD, REAL = ir.IntType(64), ir.DoubleType()


class SignatureType(types.Type):
    """The type of what tells compiled code the types of a kernel's arguments and results."""

    def __init__(self, arguments: tuple[Any, ...], result: Any) -> None:
        self.arguments, self.result = arguments, result
        super().__init__(f"signature({', '.join(map(str, arguments))} -> {result})")


class Signature:
    """Types of a kernel's arguments and results, for compiled code: nothing but the type of it matters."""

    def __init__(self, arguments: tuple[Any, ...], result: Any) -> None:
        self.numba_type = SignatureType(arguments, result)


@register_model(SignatureType)
class _Model(models.OpaqueModel):
    pass


@typeof_impl.register(Signature)
def _typeof(value: Signature, context: Any) -> SignatureType:
    return value.numba_type


@unbox(SignatureType)
def _unbox(kind: Any, value: Any, c: Any) -> NativeValue:
    return NativeValue(c.context.get_dummy_value())


def _make(context: Any, builder: Any, kind: Any, word: Any) -> Any:
    """An argument of a type from the next words of a row."""
    if isinstance(kind, types.BaseTuple):
        return context.make_tuple(builder, kind, [_make(context, builder, part, word) for part in kind.types])  # type: ignore[attr-defined]
    if isinstance(kind, types.Array):
        array, size = context.make_array(kind)(context, builder), get_itemsize(context, kind)
        data = builder.inttoptr(word(), array.data.type)
        shape, strides, stride = [word() for _ in range(kind.ndim)], [], WORD(size)
        for length in reversed(shape):
            strides.insert(0, stride)
            stride = builder.mul(stride, length)
        populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
        return array._getvalue()
    if isinstance(kind, types.Float):
        return builder.bitcast(word(), REAL)
    if isinstance(kind, types.Boolean):
        return builder.icmp_signed("!=", word(), WORD(0))
    return word()


@intrinsic
def _enter(typing: Any, address: Any, signature: Any, row: Any, found: Any) -> Any:
    """Enter the kernel at ``address`` with the arguments of a row; what it returns goes to ``found`` as floats, NaN where it raised."""
    arguments, result = signature.arguments, signature.result

    def generate(context: Any, builder: Any, call: Any, values: Any) -> Any:
        words, room = (cgutils.create_struct_proxy(kind)(context, builder, value=value).data for kind, value in zip(call.args[2:], values[2:]))
        count = 0

        def word() -> Any:
            nonlocal count
            count += 1
            return builder.load(builder.gep(words, [WORD(count - 1)]))

        made = [_make(context, builder, kind, word) for kind in arguments]
        shape = context.call_conv.get_function_type(result, arguments)
        kept, trouble = (cgutils.alloca_once(builder, kind.pointee) for kind in shape.args[:2])
        packed = context.get_arg_packer(arguments).as_arguments(builder, made)
        code = builder.call(builder.inttoptr(values[0], shape.as_pointer()), [kept, trouble, *packed])
        fine = builder.icmp_signed("==", code, ir.Constant(code.type, 0))
        returned = context.get_returned_value(builder, result, builder.load(kept))
        for i, kind in enumerate(_parts(result)):
            number = builder.extract_value(returned, i)
            number = number if isinstance(kind, types.Float) else builder.sitofp(number, REAL)
            builder.store(builder.select(fine, number, REAL(float("nan"))), builder.gep(room, [WORD(i)]))
        return context.get_dummy_value()

    return types.void(address, signature, row, found), generate


def _parts(result: Any) -> tuple[Any, ...]:
    """Types of the numbers that a kernel returns as a tuple; of others, what they return is not looked at."""
    return tuple(result.types) if isinstance(result, types.BaseTuple) else ()  # type: ignore[attr-defined]


@kernel
def _enter_rows(address, signature, rows, chosen, found):
    """Enter a kernel with some of the rows."""
    for i in chosen:
        _enter(address, signature, rows[i], found[i])  # pyright: ignore[reportCallIssue]


class Many:
    """``count`` lists of arguments of one kernel, all of the same types. ``found`` (count, results): what the last calls returned, as floats."""

    def __init__(self, function: Any, arguments: tuple[Any, ...], count: int) -> None:
        """``arguments``: a list as they all will be."""
        self.function, self.lists = function, [()] * count
        #: words of tuples that lists have in common, and the tuples, by their identities
        self._shared: dict[int, tuple[tuple[Any, ...], list[int]]] = {}
        if COMPILED:
            kinds = tuple(typeof(value, Purpose.argument) for value in arguments)
            function.compile(kinds)
            compiled = function.overloads[kinds]
            result = compiled.signature.return_type
            self._address, self._compiled = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name), compiled
            self._signature, self._rows = Signature(kinds, result), np.zeros((count, len(self._words(arguments))), np.int64)
            self.found = np.zeros((count, len(_parts(result))))
            self._enter = direct(_enter_rows, self._address, self._signature, self._rows, np.zeros(0, np.int64), self.found)
        else:
            self.found = np.zeros((count, 8))

    def put(self, index: int, arguments: tuple[Any, ...]) -> None:
        """Give one list its arguments, which are kept. Arrays must be contiguous."""
        self.lists[index] = arguments
        if COMPILED:
            self._rows[index] = self._words(arguments)

    def call(self, chosen: np.ndarray) -> None:
        """Enter the kernel with some of the lists (k,), one after the other."""
        if COMPILED:
            self._enter(self._address, self._signature, self._rows, chosen, self.found)
            return
        for i in chosen:
            returned = self.function(*self.lists[i])
            self.found[i, : len(returned or ())] = returned or ()

    def share(self, part: tuple[Any, ...]) -> None:
        """Let many lists have this tuple among their arguments: it is looked at once."""
        self._shared[id(part)] = part, self._words(part)

    def _words(self, arguments: Any) -> list[int]:
        """Arguments as whole numbers, one after the other."""
        row: list[int] = []
        for value in arguments:
            if isinstance(value, tuple):
                known = self._shared.get(id(value))
                row += self._words(value) if known is None else known[1]
            elif isinstance(value, np.ndarray):
                row += (value.ctypes.data, *value.shape)
            elif isinstance(value, float):
                row.append(int(np.float64(value).view(np.int64)))
            else:
                row.append(int(value))
        return row
