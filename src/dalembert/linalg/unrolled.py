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


class _Check:
    """That pivots are certain to serve: large against the numbers below them, and next to the scales of their columns."""

    def __init__(self, builder: Any, scales: Any) -> None:
        self.builder, self.scales = builder, scales
        self.fine = ir.Constant(ir.VectorType(_TRUTH, WIDTH), [1] * WIDTH)

    def pivot(self, k: int, pivot: Any, below: list[Any], by: Any = None) -> None:
        """``pivot`` of column ``k`` and the numbers ``below`` it, all of them ``by`` times too large."""
        builder = self.builder
        least = builder.fmul(ir.Constant(ROW, [SINGULAR] * WIDTH), _lane(builder, self.scales, k))
        least = _larger(builder, ir.Constant(ROW, [SMALLEST] * WIDTH), least)
        if by is not None:
            least = builder.fmul(least, _absolute(builder, by))
        for number in below:
            least = _larger(builder, least, builder.fmul(ir.Constant(ROW, [CERTAIN] * WIDTH), _absolute(builder, number)))
        self.fine = builder.and_(self.fine, builder.fcmp_ordered(">", _absolute(builder, pivot), least))


def _eliminate_one(builder: Any, rows: list[Any], k: int, check: _Check) -> None:
    """The step of Gauss-Jordan with the pivot k. The products do not wait for the reciprocal."""
    n = len(rows)
    pivot = _lane(builder, rows[k], k)
    parts = {i: _lane(builder, rows[i], k) for i in range(n) if i != k}
    check.pivot(k, pivot, [parts[i] for i in range(k + 1, n)])
    reciprocal = builder.fdiv(ir.Constant(ROW, [1.0] * WIDTH), pivot)
    row = _with_lane(builder, rows[k], k, 1.0)
    for i, part in parts.items():
        product = builder.fmul(builder.fmul(part, row), reciprocal, flags=FUSED)
        rows[i] = builder.fsub(_with_lane(builder, rows[i], k, 0.0), product, flags=FUSED)
    rows[k] = builder.fmul(row, reciprocal)


def _eliminate_two(builder: Any, rows: list[Any], k: int, check: _Check) -> None:
    """Two steps at once, by the inverse of the pivots' block [[a, b], [c, d]]: one reciprocal to wait for instead of two."""
    n = len(rows)

    def times(a: Any, x: Any, sign: str, b: Any, y: Any) -> Any:
        return getattr(builder, sign)(builder.fmul(a, x, flags=FUSED), builder.fmul(b, y, flags=FUSED), flags=FUSED)

    a, b, c, d = (_lane(builder, rows[k + i], k + j) for i in range(2) for j in range(2))
    parts = {i: (_lane(builder, rows[i], k), _lane(builder, rows[i], k + 1)) for i in range(n) if i not in (k, k + 1)}
    determinant = times(a, d, "fsub", b, c)
    below = [parts[i] for i in range(k + 2, n)]
    check.pivot(k, a, [c, *(first for first, _ in below)])
    check.pivot(k + 1, determinant, [times(a, second, "fsub", b, first) for first, second in below], a)
    reciprocal = builder.fdiv(ir.Constant(ROW, [1.0] * WIDTH), determinant)
    row_0 = _with_lane(builder, _with_lane(builder, rows[k], k, 1.0), k + 1, 0.0)
    row_1 = _with_lane(builder, _with_lane(builder, rows[k + 1], k, 0.0), k + 1, 1.0)
    first_row, second_row = times(d, row_0, "fsub", b, row_1), times(a, row_1, "fsub", c, row_0)
    for i, (first, second) in parts.items():
        product = builder.fmul(times(first, first_row, "fadd", second, second_row), reciprocal, flags=FUSED)
        rows[i] = builder.fsub(_with_lane(builder, _with_lane(builder, rows[i], k, 0.0), k + 1, 0.0), product, flags=FUSED)
    rows[k], rows[k + 1] = builder.fmul(first_row, reciprocal), builder.fmul(second_row, reciprocal)


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
            rows, check = [builder.load(pointer(i), align=8) for i in range(n)], _Check(builder, scales)
            for k in range(0, n - 1, 2):
                _eliminate_two(builder, rows, k, check)
            if n % 2:
                _eliminate_one(builder, rows, n - 1, check)
            done = builder.extract_element(check.fine, ir.Constant(ir.IntType(32), 0))
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
