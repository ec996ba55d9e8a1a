"""The numeric phase: in-place factorisation and substitution along a schedule (Variational, Algorithms 1 to 4).

The product A = L U is kept in the place of A: the inverse of each pivot block D on the diagonal, L = F D^-1 below it,
and U with the blocks F themselves above it. Nothing here allocates.
"""
from __future__ import annotations

from dalembert.kernels import inline, kernel
from dalembert.linalg.blocks import clear_block, column_scales, invert, subtract_scaled
from dalembert.linalg.rows import add, load, load_vector, store_vector, subtract, times, zeros
from dalembert.linalg.unrolled import multiply_from_right, subtract_product


@kernel
def clear(blocks, schedule):
    """Zero the blocks that are fill only; the caller writes the others before each `factor`."""
    for index in schedule.fill:
        clear_block(blocks[index].M)


@kernel
def factor(blocks, schedule):
    """Factor ``blocks`` in place (Algorithms 1 and 3).

    Returns -1, or the node whose pivot block is singular or not finite. Then all blocks are zeroed: numbers that are
    not finite may have reached the padding, which nobody else writes.
    """
    sizes, start, parent, target = schedule.sizes, schedule.start, schedule.parent, schedule.target
    for c in schedule.pivot:
        D = blocks[schedule.diagonal[c]]
        store_vector(D.scale, column_scales(zeros(), D.M, sizes[c]))
    pair = 0
    for k in range(len(schedule.pivot)):
        c = schedule.pivot[k]
        n = sizes[c]
        D = blocks[schedule.diagonal[c]]
        if not invert(D.M, D.scale, n):
            for index in range(len(blocks)):
                clear_block(blocks[index].M)
            return c
        for p in range(start[k], start[k + 1]):
            m = sizes[parent[p]]
            L = blocks[schedule.lower[p]].M
            multiply_from_right(L, D.M, m, n)
            for q in range(start[k], start[k + 1]):
                F = blocks[target[pair]]
                pair += 1
                subtract_product(F.M, L, blocks[schedule.upper[q]].M, m, n)
                if p == q:
                    # What cancels here is gone: a pivot is judged by the largest its column has ever been.
                    store_vector(F.scale, column_scales(load_vector(F.scale, m), F.M, m))
    return -1


@kernel
def solve(blocks, schedule, vector):
    """``vector <- A^-1 vector`` with the factored ``blocks`` (Algorithms 2 and 4)."""
    sizes, pivot, start, parent = schedule.sizes, schedule.pivot, schedule.start, schedule.parent
    for k in range(len(pivot)):
        c = pivot[k]
        x = load_vector(vector[c].v, sizes[c])
        for e in range(start[k], start[k + 1]):
            p = parent[e]
            y = load_vector(vector[p].v, sizes[p])
            store_vector(vector[p].v, subtract(y, times(blocks[schedule.lower[e]].M, x)))
    for k in range(len(pivot) - 1, -1, -1):
        c = pivot[k]
        x = load_vector(vector[c].v, sizes[c])
        for e in range(start[k], start[k + 1]):
            p = parent[e]
            x = subtract(x, times(blocks[schedule.upper[e]].M, load_vector(vector[p].v, sizes[p])))
        store_vector(vector[c].v, times(blocks[schedule.diagonal[c]].M, x))


@inline
def _subtract_transposed(y, M, v, n):
    """``y - M^T v`` with ``n`` rows in M."""
    for i in range(n):
        y = subtract_scaled(y, v[i], load(M, i))
    return y


@kernel
def solve_transposed(blocks, schedule, vector):
    """``vector <- A^-T vector`` with the factored ``blocks``: U^T forward, then L^T backward."""
    sizes, pivot, start, parent = schedule.sizes, schedule.pivot, schedule.start, schedule.parent
    for k in range(len(pivot)):
        c = pivot[k]
        v = vector[c].v
        store_vector(v, subtract(zeros(), _subtract_transposed(zeros(), blocks[schedule.diagonal[c]].M, v, sizes[c])))
        for e in range(start[k], start[k + 1]):
            p = parent[e]
            y = load_vector(vector[p].v, sizes[p])
            store_vector(vector[p].v, _subtract_transposed(y, blocks[schedule.upper[e]].M, v, sizes[c]))
    for k in range(len(pivot) - 1, -1, -1):
        c = pivot[k]
        x = load_vector(vector[c].v, sizes[c])
        for e in range(start[k], start[k + 1]):
            p = parent[e]
            x = _subtract_transposed(x, blocks[schedule.lower[e]].M, vector[p].v, sizes[p])
        store_vector(vector[c].v, x)


@kernel
def multiply(blocks, schedule, x, y):
    """``y <- A x`` with ``blocks`` that are not factored; ``x`` and ``y`` are different vectors."""
    sizes, offset, neighbour = schedule.sizes, schedule.offset, schedule.neighbour
    for i in range(len(sizes)):
        row = times(blocks[schedule.diagonal[i]].M, load_vector(x[i].v, sizes[i]))
        for a in range(offset[i], offset[i + 1]):
            j = neighbour[a]
            row = add(row, times(blocks[schedule.entry[a]].M, load_vector(x[j].v, sizes[j])))
        store_vector(y[i].v, row)
