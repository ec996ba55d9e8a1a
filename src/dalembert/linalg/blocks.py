"""Blocks and vectors as they are stored, and the dense operations on one block.

A block of m x n numbers lies in the corner of WIDTH x WIDTH, zero elsewhere. The operations run over whole rows, which
keeps them in SIMD registers; the zeros make that right, and every operation leaves them zero.
"""
from __future__ import annotations

import numpy as np

from dalembert.kernels import inline, kernel
from dalembert.linalg.plain_rows import WIDTH
from dalembert.linalg.rows import largest, load, replace, scale, store, zeros
from dalembert.linalg.rows import subtract as subtract_rows

BLOCK = np.dtype([("M", "f8", (WIDTH, WIDTH)), ("scale", "f8", (WIDTH,))])
"""A block ``M``. ``scale`` is for diagonal blocks: the largest entries their columns have had during a factorisation."""

VECTOR = np.dtype([("v", "f8", (WIDTH,))])
"""The numbers ``v`` of one node."""

ALIGNMENT = 64
"""Bytes: a row that straddles two cache lines takes twice as long to load."""

SINGULAR = 1e-14
"""A pivot below this part of its column's scale counts as zero."""

SMALLEST = 1e-290
"""A pivot below this counts as zero, since its reciprocal would overflow."""


def aligned_zeros(length: int, dtype: np.dtype) -> np.ndarray:
    """Zeroed array of ``length`` records that starts on a cache line."""
    raw = np.zeros(length * dtype.itemsize + ALIGNMENT, np.uint8)
    first = -raw.ctypes.data % ALIGNMENT
    return raw[first : first + length * dtype.itemsize].view(dtype)


@inline
def subtract_scaled(c, a, b):
    """``c - a b`` for rows ``c``, ``b`` and a number ``a``."""
    return subtract_rows(c, scale(a, b))


@inline
def subtract_product(C, A, B, m, k):
    """``C -= A B`` with A of m x k; rows go in groups of four, which fit in registers with room to spare."""
    _subtract_four_rows(C, A, B, 0, k)
    if m > 6:
        _subtract_four_rows(C, A, B, 4, k)
    elif m > 4:
        _subtract_two_rows(C, A, B, 4, k)


@inline
def _subtract_four_rows(C, A, B, i, k):
    c0 = load(C, i)
    c1 = load(C, i + 1)
    c2 = load(C, i + 2)
    c3 = load(C, i + 3)
    for l in range(k):
        b = load(B, l)
        c0 = subtract_scaled(c0, A[i, l], b)
        c1 = subtract_scaled(c1, A[i + 1, l], b)
        c2 = subtract_scaled(c2, A[i + 2, l], b)
        c3 = subtract_scaled(c3, A[i + 3, l], b)
    store(C, i, c0)
    store(C, i + 1, c1)
    store(C, i + 2, c2)
    store(C, i + 3, c3)


@inline
def _subtract_two_rows(C, A, B, i, k):
    c0 = load(C, i)
    c1 = load(C, i + 1)
    for l in range(k):
        b = load(B, l)
        c0 = subtract_scaled(c0, A[i, l], b)
        c1 = subtract_scaled(c1, A[i + 1, l], b)
    store(C, i, c0)
    store(C, i + 1, c1)


@inline
def multiply_from_right(A, B, m, k):
    """``A <- A B`` in place, with A of m x k and B of k x k."""
    for i in range(m):
        c = zeros()
        for l in range(k):
            c = subtract_scaled(c, -A[i, l], load(B, l))
        store(A, i, c)


@inline
def swap_rows(M, i, j):
    a = load(M, i)
    store(M, i, load(M, j))
    store(M, j, a)


@inline
def swap_columns(M, i, j, n):
    for r in range(n):
        a = M[r, i]
        M[r, i] = M[r, j]
        M[r, j] = a


@inline
def column_scales(scales, M, n):
    """``scales``, raised to the largest absolute value in each column of M where that is larger."""
    for r in range(n):
        scales = largest(scales, load(M, r))
    return scales


@kernel
def invert(M, scales, n):
    """``M <- M^-1`` in place for the leading n x n numbers, by Gauss-Jordan with row pivoting.

    False, with M in ruins, when a pivot vanishes against the scale of its column or a number is not finite: a NaN never
    wins the pivot search and spreads until no candidate is left.
    """
    swaps = 0  # the pivot row of step k in the hexadecimal digit k
    for k in range(n):
        best = max(SINGULAR * scales[k], SMALLEST)
        pick = n
        for r in range(k, n):
            size = abs(M[r, k])
            if size > best:
                best = size
                pick = r
        if pick == n:
            return False
        if pick != k:
            swap_rows(M, k, pick)
        swaps |= pick << (4 * k)
        reciprocal = 1.0 / M[k, k]
        pivot_row = scale(reciprocal, replace(load(M, k), k, 1.0))
        store(M, k, pivot_row)
        for r in range(n):
            if r != k:
                factor = M[r, k]
                store(M, r, subtract_scaled(replace(load(M, r), k, 0.0), factor, pivot_row))
    for k in range(n - 1, -1, -1):
        pick = (swaps >> (4 * k)) & 15
        if pick != k:
            swap_columns(M, k, pick, n)
    return True
