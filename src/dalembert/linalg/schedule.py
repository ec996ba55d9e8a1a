"""What the numeric kernels follow: the elimination written out as lists of blocks, in the order they are touched."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.kernels import allocating


class Schedule(NamedTuple):
    """Integer arrays, one solve in the order of elimination. n nodes, E eliminated edges, A directed original edges.

    The parents of a pivot are its neighbours that are eliminated later (Variational, Algorithms 1 to 4).
    """

    sizes: np.ndarray
    """(n,) numbers per node."""
    pivot: np.ndarray
    """(n,) nodes in order of elimination."""
    diagonal: np.ndarray
    """(n,) diagonal block of each node."""
    start: np.ndarray
    """(n + 1,) where the parents of each pivot begin."""
    parent: np.ndarray
    """(E,) parents of the pivots, one pivot after the other, each in order of elimination."""
    lower: np.ndarray
    """(E,) block of row parent, column pivot."""
    upper: np.ndarray
    """(E,) block of row pivot, column parent."""
    target: np.ndarray
    """Block of row p, column q, for each pivot and each pair (p, q) of its parents, q running fastest."""
    fill: np.ndarray
    """Blocks that no original edge writes."""
    offset: np.ndarray
    """(n + 1,) where the original neighbours of each node begin."""
    neighbour: np.ndarray
    """(A,) original neighbours, one node after the other."""
    entry: np.ndarray
    """(A,) block of row node, column neighbour."""


def build_schedule(
    sizes: np.ndarray, offset: np.ndarray, neighbour: np.ndarray, pivot: np.ndarray, start: np.ndarray, parent: np.ndarray
) -> Schedule:
    """Number the blocks pivot by pivot (diagonal, lower, upper: the order of use) and write out the schedule.

    ``offset`` and ``neighbour`` are the original graph, ``pivot``, ``start`` and ``parent`` the eliminated one.
    """
    n = len(sizes)
    rank = np.empty(n, np.int64)
    rank[pivot] = np.arange(n)
    parents = np.diff(start)
    owner = np.repeat(np.arange(n), parents)
    parent = parent[np.lexsort((rank[parent], owner))]

    diagonal = np.empty(n, np.int64)
    diagonal[pivot] = np.arange(n) + 2 * start[:-1]
    lower = diagonal[pivot[owner]] + 1 + np.arange(len(parent)) - start[owner]
    upper = lower + parents[owner]

    node = np.repeat(np.arange(n), np.diff(offset))
    first, last = np.minimum(rank[node], rank[neighbour]), np.maximum(rank[node], rank[neighbour])
    edge = np.searchsorted(owner * n + rank[parent], first * n + last)
    entry = np.where(rank[node] < rank[neighbour], upper[edge], lower[edge])

    is_fill = np.ones(n + 2 * len(parent), bool)
    is_fill[diagonal] = False
    is_fill[entry] = False
    target = _targets(rank, diagonal, start, parent, lower, upper, int(np.sum(parents**2)))
    return Schedule(
        sizes, pivot, diagonal, start, parent, lower, upper, target, np.flatnonzero(is_fill), offset, neighbour, entry
    )


@allocating
def _targets(rank, diagonal, start, parent, lower, upper, count):
    """The blocks that each pivot updates.

    The parents of a pivot after p are among the parents of p, both lists in order of elimination: one walk finds them.
    """
    target = np.empty(count, np.int64)
    first = 0
    for k in range(len(start) - 1):
        d = start[k + 1] - start[k]
        pairs = target[first : first + d * d].reshape((d, d))
        first += d * d
        for a in range(d):
            p = parent[start[k] + a]
            pairs[a, a] = diagonal[p]
            edge = start[rank[p]]
            for b in range(a + 1, d):
                q = parent[start[k] + b]
                while parent[edge] != q:
                    edge += 1
                pairs[a, b] = upper[edge]
                pairs[b, a] = lower[edge]
    return target
