"""A row of WIDTH numbers and its operations in plain NumPy: what `rows` compiles, for kernels that are not compiled."""
from __future__ import annotations

import numpy as np

WIDTH = 8
"""Numbers in a row, and with it the largest size of a node (blocks are stored WIDTH x WIDTH)."""


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
