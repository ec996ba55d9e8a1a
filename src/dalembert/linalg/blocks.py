"""Blocks and vectors as they are stored, and the dense operations on one block.

A block of m x n numbers lies in the corner of WIDTH x WIDTH, zero elsewhere. The operations run over whole rows, which
keeps them in SIMD registers; the zeros make that right, and every operation leaves them zero.
"""
from __future__ import annotations

import numpy as np

from dalembert.kernels import inline, kernel
from dalembert.linalg.plain_rows import SINGULAR, SMALLEST, WIDTH
from dalembert.linalg.rows import largest, load, load_vector, replace, scale, store, zeros
from dalembert.linalg.rows import subtract as subtract_rows
from dalembert.linalg.unrolled import invert_in_order

BLOCK = np.dtype([("M", "f8", (WIDTH, WIDTH)), ("scale", "f8", (WIDTH,))])
"""A block ``M``. ``scale`` is for diagonal blocks: the largest entries their columns have had during a factorisation."""

VECTOR = np.dtype([("v", "f8", (WIDTH,))])
"""The numbers ``v`` of one node."""

ALIGNMENT = 64
"""Bytes: a row that straddles two cache lines takes twice as long to load."""


def aligned_zeros(length: int, dtype: np.dtype) -> np.ndarray:
    """Zeroed array of ``length`` records that starts on a cache line."""
    raw = np.zeros(length * dtype.itemsize + ALIGNMENT, np.uint8)
    first = -raw.ctypes.data % ALIGNMENT
    return raw[first : first + length * dtype.itemsize].view(dtype)


@inline
def clear_block(M):
    """``M = 0``, padding included."""
    for i in range(WIDTH):
        store(M, i, zeros())


@inline
def subtract_scaled(c, a, b):
    """``c - a b`` for rows ``c``, ``b`` and a number ``a``."""
    return subtract_rows(c, scale(a, b))


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
    """``M <- M^-1`` in place for the leading n x n numbers, with pivots from the diagonal where these serve.

    False, with M in ruins, when a pivot vanishes against the scale of its column or a number is not finite.
    """
    return invert_in_order(M, load_vector(scales, n), n) or invert_with_search(M, scales, n)


@kernel
def invert_with_search(M, scales, n):
    """``M <- M^-1`` in place for the leading n x n numbers, by Gauss-Jordan with row pivoting.

    False as in ``invert``: a NaN never wins the pivot search and spreads until no candidate is left.
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
