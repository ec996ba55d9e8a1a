"""What a factorisation does with whole blocks, written out for every size so that blocks stay in registers.

Values are LLVM vectors, as in `rows`; a switch on the size leads to code without loops over it. Without compiling, `plain_rows` takes the
place of the operations.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from dalembert.linalg.plain_rows import CERTAIN, SINGULAR, SMALLEST, WIDTH
from dalembert.linalg.rows import FUSED, LANES, REAL, ROW, operation, row_pointer, row_type, spread

_TRUTH = ir.IntType(1)


def _lane(builder: Any, row: Any, k: int) -> Any:
    """Lane ``k`` of a row in every lane."""
    return builder.shuffle_vector(row, ir.Constant(ROW, ir.Undefined), ir.Constant(LANES, [k] * WIDTH))


def _with_lane(builder: Any, row: Any, k: int, value: float) -> Any:
    """``row`` with a constant in lane ``k``."""
    lanes = [WIDTH + k if c == k else c for c in range(WIDTH)]
    return builder.shuffle_vector(row, ir.Constant(ROW, [value] * WIDTH), ir.Constant(LANES, lanes))


def _absolute(builder: Any, row: Any) -> Any:
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ROW, [ROW]), f"llvm.fabs.v{WIDTH}f64")
    return builder.call(function, [row])


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", b, a), b, a)


def _by_size(builder: Any, size: Any, emit: Callable[[int], None]) -> None:
    """What ``emit`` makes of each size from 1 to WIDTH, behind a switch."""
    function = builder.function
    after = function.append_basic_block("after")
    switch = builder.switch(size, after)
    for n in range(1, WIDTH + 1):
        block = function.append_basic_block(f"size_{n}")
        switch.add_case(n, block)
        builder.position_at_end(block)
        emit(n)
        builder.branch(after)
    builder.position_at_end(after)


@operation
def invert_in_order(typing_context, M, scales, n):
    """``M <- M^-1`` for the leading n x n numbers by Gauss-Jordan with pivots from the diagonal, which are quick to find.

    False, with M as it was, where one of them is not ``CERTAIN`` to serve: small against the numbers below it, or next to the ``scales`` of
    its column, or not a number.
    """
    def emit(context, builder, signature, arguments):
        block, scales, size = arguments
        zero = context.get_constant(types.intp, 0)
        certain = cgutils.alloca_once_value(builder, ir.Constant(_TRUTH, 0))

        def pointer(i: int) -> Any:
            return row_pointer(context, builder, signature.args[0], block, [context.get_constant(types.intp, i), zero])

        def invert(n: int) -> None:
            rows = [builder.load(pointer(i), align=8) for i in range(n)]
            fine = ir.Constant(ir.VectorType(_TRUTH, WIDTH), [1] * WIDTH)
            for k in range(n):
                pivot = _lane(builder, rows[k], k)
                parts = {i: _lane(builder, rows[i], k) for i in range(n) if i != k}
                least = _larger(builder, ir.Constant(ROW, [SMALLEST] * WIDTH), builder.fmul(ir.Constant(ROW, [SINGULAR] * WIDTH), _lane(builder, scales, k)))
                for i in range(k + 1, n):
                    least = _larger(builder, least, builder.fmul(ir.Constant(ROW, [CERTAIN] * WIDTH), _absolute(builder, parts[i])))
                fine = builder.and_(fine, builder.fcmp_ordered(">", _absolute(builder, pivot), least))
                reciprocal = builder.fdiv(ir.Constant(ROW, [1.0] * WIDTH), pivot)
                row = _with_lane(builder, rows[k], k, 1.0)
                for i, part in parts.items():  # the products do not wait for the reciprocal
                    product = builder.fmul(builder.fmul(part, row), reciprocal, flags=FUSED)
                    rows[i] = builder.fsub(_with_lane(builder, rows[i], k, 0.0), product, flags=FUSED)
                rows[k] = builder.fmul(row, reciprocal)
            done = builder.extract_element(fine, ir.Constant(ir.IntType(32), 0))
            builder.store(done, certain)
            with builder.if_then(done):
                for i, row in enumerate(rows):
                    builder.store(row, pointer(i), align=8)

        _by_size(builder, size, invert)
        return builder.load(certain)
    return types.boolean(M, row_type, types.intp), emit


def _product(context: Any, builder: Any, signature: Any, blocks: Any, sizes: Any, start: Callable[[Any], Any], sign: str) -> None:
    """Rows of the first block become ``start`` of them ``sign`` those of A B, for blocks (C, A, B) and sizes (m, k): A is m x k."""
    zero = context.get_constant(types.intp, 0)
    (c_type, a_type, b_type), (C, A, B), (m, k) = signature, blocks, sizes

    def multiply(k: int) -> None:
        rows = [builder.load(row_pointer(context, builder, b_type, B, [context.get_constant(types.intp, l), zero]), align=8) for l in range(k)]
        with cgutils.for_range(builder, m, intp=m.type) as loop:
            first = builder.bitcast(row_pointer(context, builder, a_type, A, [loop.index, zero]), REAL.as_pointer())
            target = row_pointer(context, builder, c_type, C, [loop.index, zero])
            parts = [
                spread(builder, builder.load(builder.gep(first, [ir.Constant(ir.IntType(64), l)])), ROW) for l in range(k)
            ]
            total = start(target)
            for part, row in zip(parts, rows):
                product = builder.fmul(part, row, flags=FUSED)
                total = getattr(builder, sign)(total, product, flags=FUSED)
            builder.store(total, target, align=8)

    _by_size(builder, k, multiply)


@operation
def multiply_from_right(typing_context, A, B, m, k):
    """``A <- A B`` in place, with A of m x k and B of k x k."""
    def emit(context, builder, signature, arguments):
        A, B, m, k = arguments
        types_of = signature.args[0], signature.args[0], signature.args[1]
        _product(context, builder, types_of, (A, A, B), (m, k), lambda target: ir.Constant(ROW, None), "fadd")
        return context.get_dummy_value()
    return types.void(A, B, types.intp, types.intp), emit


@operation
def subtract_product(typing_context, C, A, B, m, k):
    """``C -= A B`` with A of m x k."""
    def emit(context, builder, signature, arguments):
        C, A, B, m, k = arguments
        _product(context, builder, signature.args[:3], (C, A, B), (m, k), lambda target: builder.load(target, align=8), "fsub")
        return context.get_dummy_value()
    return types.void(C, A, B, types.intp, types.intp), emit
