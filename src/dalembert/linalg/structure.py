"""The symbolic analysis of a graph, and what it gives: storage, block numbers and a schedule."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import ModelError
from dalembert.linalg.blocks import BLOCK, VECTOR, aligned_zeros
from dalembert.linalg.depth_first import depth_first, stacked
from dalembert.linalg.elimination import eliminate
from dalembert.linalg.rows import WIDTH
from dalembert.linalg.schedule import Schedule, build_schedule


def _minimum_degree(constraint: np.ndarray, offset: np.ndarray, neighbour: np.ndarray) -> None:
    """No positions: `eliminate` picks the node of least degree as it goes."""


# "best" tries them in this order and keeps the last of equals: minimum degree is seldom far off and bounds the others,
# and a depth-first order has the pivots that work on each other next to each other.
_ORDERS = {"minimum_degree": _minimum_degree, "stacked": stacked, "depth_first": depth_first}


@dataclass(frozen=True)
class Structure:
    """A graph of blocks with an order of elimination. Any number of systems may share it, in any number of threads."""

    schedule: Schedule
    """What the compiled kernels take."""
    order_name: str
    """The order chosen: "minimum_degree", "stacked" or "depth_first"."""
    work: int
    """Multiply-adds of a factorisation and a solution."""

    @property
    def order(self) -> np.ndarray:
        """(n,) nodes in order of elimination."""
        return self.schedule.pivot

    @property
    def diagonal(self) -> np.ndarray:
        """(n,) diagonal block of each node."""
        return self.schedule.diagonal

    @property
    def fill(self) -> int:
        """Number of blocks that are zero in the matrix and not in its factors."""
        return len(self.schedule.fill)

    @property
    def block_count(self) -> int:
        return len(self.schedule.pivot) + 2 * len(self.schedule.parent)

    @cached_property
    def _entries(self) -> dict[tuple[int, int], int]:
        nodes = np.arange(len(self.diagonal))
        rows = np.concatenate([nodes, np.repeat(nodes, np.diff(self.schedule.offset))])
        columns = np.concatenate([nodes, self.schedule.neighbour])
        blocks = np.concatenate([self.diagonal, self.schedule.entry])
        return dict(zip(zip(rows.tolist(), columns.tolist()), blocks.tolist()))

    def block(self, i: int, j: int) -> int:
        """The block of row node ``i`` and column node ``j``; KeyError when no edge joins them."""
        return self._entries[i, j]

    def new_blocks(self) -> np.ndarray:
        """Zeroed storage for the matrix and its factors: ``blocks[k]["M"]`` is block k."""
        return aligned_zeros(self.block_count, BLOCK)

    def new_vector(self) -> np.ndarray:
        """Zeroed storage for a vector: ``vector[i]["v"]`` belongs to node i."""
        return aligned_zeros(len(self.diagonal), VECTOR)

    def pattern(self) -> np.ndarray:
        """(n, n) int8, in the numbering of the nodes: 1 where the matrix has a block, 2 where its factors fill in."""
        schedule = self.schedule
        owner = np.repeat(schedule.pivot, np.diff(schedule.start))
        pattern = np.zeros((len(self.diagonal), len(self.diagonal)), np.int8)
        pattern[owner, schedule.parent] = pattern[schedule.parent, owner] = 2
        pattern[np.repeat(np.arange(len(self.diagonal)), np.diff(schedule.offset)), schedule.neighbour] = 1
        np.fill_diagonal(pattern, 1)
        return pattern


def analyse(
    sizes: Sequence[int] | np.ndarray, edges: ArrayLike, constraint: ArrayLike | None = None, order: str = "best"
) -> Structure:
    """Analyse a graph of blocks.

    sizes: numbers per node, from 1 to WIDTH. edges: (E, 2) pairs of nodes; either way round, duplicates do no harm.
    constraint: (n,) true for nodes whose diagonal block is zero or nearly so; they are eliminated when their neighbours
    support them. order: "minimum_degree", "depth_first", "stacked", or "best", the one with the least work.
    """
    size = _checked_sizes(sizes)
    offset, neighbour = _adjacency(len(size), edges)
    mask = _checked_constraint(constraint, len(size))
    if order != "best" and order not in _ORDERS:
        raise ModelError(f"unknown order {order!r}: choose 'best' or one of {sorted(_ORDERS)}")

    least_work = int(np.iinfo(np.int64).max)
    best = None
    for name in _ORDERS if order == "best" else [order]:
        position = _ORDERS[name](mask, offset, neighbour)
        pivot, start, parents, work = eliminate(size, mask, offset, neighbour, position, least_work)
        if work <= least_work:
            least_work = work
            best = name, pivot, start, parents
    assert best is not None
    name, pivot, start, parents = best
    return Structure(build_schedule(size, offset, neighbour, pivot, start, parents), name, least_work)


def _checked_sizes(sizes: Sequence[int] | np.ndarray) -> np.ndarray:
    size = np.array(sizes, np.int64).reshape(-1)
    for node in np.flatnonzero((size < 1) | (size > WIDTH)):
        raise ModelError(f"node {node} has size {size[node]}: sizes go from 1 to {WIDTH} (GraphSystem splits larger ones)")
    return size


def _checked_constraint(constraint: ArrayLike | None, n: int) -> np.ndarray:
    if constraint is None:
        return np.zeros(n, bool)
    mask = np.array(constraint, bool)
    if mask.shape != (n,):
        raise ModelError(f"the constraint mask has shape {mask.shape}: one entry for each of the {n} nodes is needed")
    return mask


def _adjacency(n: int, edges: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The edges as lists of neighbours, both ways and without duplicates: ``offset`` (n + 1,) and ``neighbour``."""
    pairs = np.array(edges, np.int64)
    if pairs.size == 0:
        pairs = pairs.reshape(0, 2)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ModelError(f"the edges have shape {pairs.shape}: pairs of nodes, (E, 2), are needed")
    for i, j in pairs[((pairs < 0) | (pairs >= n)).any(axis=1)]:
        raise ModelError(f"edge ({i}, {j}) leaves the graph: its nodes are 0 to {n - 1}")
    for i, j in pairs[pairs[:, 0] == pairs[:, 1]]:
        raise ModelError(f"edge ({i}, {j}) joins a node to itself: diagonal blocks are always there")
    both = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    offset = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(both[:, 0], minlength=n), out=offset[1:])
    return offset, both[:, 1].copy()
