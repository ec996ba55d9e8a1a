"""A row of WIDTH numbers in one SIMD register, as a Numba type with the few operations that block algebra needs.

Numba leaves short loops over possibly overlapping arrays scalar; values of this type are LLVM vectors, so a kernel
written with them is vectorised by construction. Without compiling, `plain_rows` takes the place of the operations.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from dalembert.kernels import COMPILED
from dalembert.linalg import plain_rows
from dalembert.linalg.plain_rows import WIDTH

REAL = ir.DoubleType()
_INDEX = ir.IntType(32)
ROW = ir.VectorType(REAL, WIDTH)
LANES = ir.VectorType(_INDEX, WIDTH)
FUSED = ("contract",)
# The folds of `times`, one level per halving: lanes taken from (first, second) for the left and right summands.
_FOLDS = (
    ((0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)),
    ((0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)),
    ((0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)),
)


class RowType(types.Type):
    """Numba type of a row."""

    def __init__(self) -> None:
        super().__init__(name=f"Row{WIDTH}")


row_type = RowType()


@register_model(RowType)
class _RowModel(models.PrimitiveModel):
    def __init__(self, manager: Any, front_end_type: Any) -> None:
        super().__init__(manager, front_end_type, ROW)


def operation(emitter: Callable[..., Any]) -> Any:
    """An operation for compiled code: ``emitter`` takes a typing context before its arguments, the caller does not."""
    return intrinsic(emitter) if COMPILED else getattr(plain_rows, emitter.__name__)


def row_pointer(context: Any, builder: Any, array_type: Any, array: Any, indices: list[Any]) -> Any:
    """Address of ``array[indices]`` as that of a row; rows may lie at any multiple of eight bytes."""
    view = context.make_array(array_type)(context, builder, array)
    element = cgutils.get_item_pointer(context, builder, array_type, view, indices)
    return builder.bitcast(element, ROW.as_pointer())


def spread(builder: Any, scalar: Any, vector_type: Any) -> Any:
    """A vector with ``scalar`` in every lane."""
    nothing = ir.Constant(vector_type, ir.Undefined)
    first = builder.insert_element(nothing, scalar, ir.Constant(_INDEX, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(LANES, [0] * WIDTH))


def _lane_numbers() -> Any:
    return ir.Constant(LANES, list(range(WIDTH)))


@operation
def load(typing_context, M, i):
    """Row ``i`` of the block ``M``."""
    def emit(context, builder, signature, arguments):
        zero = context.get_constant(types.intp, 0)
        return builder.load(row_pointer(context, builder, signature.args[0], arguments[0], [arguments[1], zero]), align=8)
    return row_type(M, types.intp), emit


@operation
def store(typing_context, M, i, row):
    """``M[i] = row``."""
    def emit(context, builder, signature, arguments):
        zero = context.get_constant(types.intp, 0)
        target = row_pointer(context, builder, signature.args[0], arguments[0], [arguments[1], zero])
        builder.store(arguments[2], target, align=8)
        return context.get_dummy_value()
    return types.void(M, types.intp, row), emit


@operation
def load_vector(typing_context, v, size):
    """The first ``size`` entries of the vector ``v``; what lies beyond reads as zero, whatever it is."""
    def emit(context, builder, signature, arguments):
        zero = context.get_constant(types.intp, 0)
        whole = builder.load(row_pointer(context, builder, signature.args[0], arguments[0], [zero]), align=8)
        size = spread(builder, builder.trunc(arguments[1], _INDEX), LANES)
        return builder.select(builder.icmp_signed("<", _lane_numbers(), size), whole, ir.Constant(ROW, None))
    return row_type(v, types.intp), emit


@operation
def store_vector(typing_context, v, row):
    """``v[:] = row``."""
    def emit(context, builder, signature, arguments):
        zero = context.get_constant(types.intp, 0)
        target = row_pointer(context, builder, signature.args[0], arguments[0], [zero])
        builder.store(arguments[1], target, align=8)
        return context.get_dummy_value()
    return types.void(v, row), emit


@operation
def zeros(typing_context):
    """A row of zeros."""
    def emit(context, builder, signature, arguments):
        return ir.Constant(ROW, None)
    return row_type(), emit


@operation
def replace(typing_context, row, k, value):
    """``row`` with ``value`` in lane ``k``."""
    def emit(context, builder, signature, arguments):
        row, k, value = arguments
        k = spread(builder, builder.trunc(k, _INDEX), LANES)
        return builder.select(builder.icmp_signed("==", _lane_numbers(), k), spread(builder, value, ROW), row)
    return row_type(row, types.intp, types.float64), emit


@operation
def scale(typing_context, a, row):
    """``a * row`` for a number ``a``."""
    def emit(context, builder, signature, arguments):
        return builder.fmul(spread(builder, arguments[0], ROW), arguments[1], flags=FUSED)
    return row_type(types.float64, row), emit


@operation
def add(typing_context, a, b):
    """``a + b`` for two rows."""
    def emit(context, builder, signature, arguments):
        return builder.fadd(*arguments, flags=FUSED)
    return row_type(a, b), emit


@operation
def subtract(typing_context, a, b):
    """``a - b`` for two rows."""
    def emit(context, builder, signature, arguments):
        return builder.fsub(*arguments, flags=FUSED)
    return row_type(a, b), emit


@operation
def largest(typing_context, a, b):
    """``max(a, abs(b))`` in every lane, for two rows; a NaN in ``b`` is passed over."""
    def emit(context, builder, signature, arguments):
        a, b = arguments
        absolute = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ROW, [ROW]), f"llvm.fabs.v{WIDTH}f64")
        b = builder.call(absolute, [b])
        return builder.select(builder.fcmp_ordered(">", b, a), b, a)
    return row_type(a, b), emit


@operation
def times(typing_context, M, x):
    """The product ``M x`` of a block with a vector held as a row: all WIDTH sums are folded at once."""
    def emit(context, builder, signature, arguments):
        zero = context.get_constant(types.intp, 0)
        sums = []
        for i in range(WIDTH):
            index = [context.get_constant(types.intp, i), zero]
            row = builder.load(row_pointer(context, builder, signature.args[0], arguments[0], index), align=8)
            sums.append(builder.fmul(row, arguments[1]))
        for left, right in _FOLDS:
            sums = [
                builder.fadd(
                    builder.shuffle_vector(first, second, ir.Constant(LANES, left)),
                    builder.shuffle_vector(first, second, ir.Constant(LANES, right)),
                )
                for first, second in zip(sums[::2], sums[1::2])
            ]
        return sums[0]
    return row_type(M, x), emit
