"""A row of WIDTH numbers and its operations in plain NumPy: what `rows` compiles, for kernels that are not compiled."""
from __future__ import annotations

import numpy as np

WIDTH = 8
"""Numbers in a row, and with it the largest size of a node (blocks are stored WIDTH x WIDTH)."""

SINGULAR = 1e-14
"""A pivot below this part of its column's scale counts as zero."""

SMALLEST = 1e-290
"""A pivot below this counts as zero, since its reciprocal would overflow."""

CERTAIN = 1e-2
"""A pivot above this part of what is below it serves: others would hardly lose less to rounding."""


def load(M, i):
    return M[i].copy()


def store(M, i, row):
    M[i] = row


def load_vector(v, size):
    return np.where(np.arange(WIDTH) < size, v, 0.0)


def store_vector(v, row):
    v[:] = row


def zeros():
    return np.zeros(WIDTH)


def replace(row, k, value):
    return np.where(np.arange(WIDTH) == k, value, row)


def scale(a, row):
    return a * row


def add(a, b):
    return a + b


def subtract(a, b):
    return a - b


def largest(a, b):
    return np.where(np.abs(b) > a, np.abs(b), a)


def times(M, x):
    return M @ x


def invert_in_order(M, scales, n):
    A = M[:n, :n].copy()
    for k in range(n):
        if not abs(A[k, k]) > max(SINGULAR * scales[k], SMALLEST, CERTAIN * np.max(np.abs(A[k + 1 :, k]), initial=0.0)):
            return False
        row = A[k] / A[k, k]
        row[k] = 1.0 / A[k, k]
        column = A[:, k].copy()
        A[:, k] = 0.0
        A -= column[:, None] * row
        A[k] = row
    M[:n, :n] = A
    return True


def multiply_from_right(A, B, m, k):
    A[:m] = A[:m, :k] @ B[:k]


def subtract_product(C, A, B, m, k):
    C[:m] -= A[:m, :k] @ B[:k]
