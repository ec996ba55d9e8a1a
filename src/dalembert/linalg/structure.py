"""The symbolic analysis of a graph, and what it gives: storage, block numbers and a schedule."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import ModelError
from dalembert.linalg.blocks import BLOCK, VECTOR, aligned_zeros
from dalembert.linalg.depth_first import depth_first, stacked
from dalembert.linalg.elimination import eliminate
from dalembert.linalg.graph import adjacency, checked_constraint, checked_edges, checked_sizes
from dalembert.linalg.plain_rows import WIDTH
from dalembert.linalg.schedule import Schedule, build_schedule
from dalembert.linalg.support import is_forest


def _as_numbered(constraint: np.ndarray, offset: np.ndarray, neighbour: np.ndarray) -> np.ndarray:
    """(n,) position of each node: its number."""
    return np.arange(len(constraint))


def _last_numbered_first(constraint: np.ndarray, offset: np.ndarray, neighbour: np.ndarray) -> np.ndarray:
    """(n,) position of each node, the other way round."""
    return np.arange(len(constraint))[::-1].copy()


# "best" tries them in this order and keeps the last of equals: minimum degree is seldom far off and bounds the others,
# and a depth-first order has the pivots that work on each other next to each other. Many cycles leave many nodes of one degree: it
# may matter much which of them goes first. Each gives positions, and says whether least degree goes before them.
_ORDERS = {
    "minimum_degree": (_as_numbered, True), "minimum_degree_reversed": (_last_numbered_first, True), "stacked": (stacked, False), "depth_first": (depth_first, False),
}
#: times the work of another order that firm support may cost
PRICE = 1.2


@dataclass(frozen=True, eq=False)
class Structure:
    """A graph of blocks with an order of elimination. Any number of systems may share it, in any number of threads."""

    schedule: Schedule
    """What the compiled kernels take."""
    order_name: str
    """The order chosen: "minimum_degree", "minimum_degree_reversed", "stacked" or "depth_first"."""
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
        """Number of blocks in the matrix and its factors together."""
        return len(self.schedule.pivot) + 2 * len(self.schedule.parent)

    @cached_property
    def _entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of nodes as numbers, ascending, and their blocks."""
        n = len(self.diagonal)
        nodes = np.arange(n)
        pairs = np.concatenate([nodes * (n + 1), np.repeat(nodes, np.diff(self.schedule.offset)) * n + self.schedule.neighbour])
        order = np.argsort(pairs)
        return pairs[order], np.concatenate([self.diagonal, self.schedule.entry])[order]

    def blocks(self, rows: ArrayLike, columns: ArrayLike) -> np.ndarray:
        """(k,) blocks of row nodes and column nodes (k,); KeyError when no edge joins two of them."""
        pairs, found = self._entries
        wanted = np.asarray(rows, dtype=np.int64) * len(self.diagonal) + np.asarray(columns, dtype=np.int64)
        at = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
        for missing in np.flatnonzero(pairs[at] != wanted) if len(wanted) else ():
            raise KeyError(divmod(int(wanted[missing]), len(self.diagonal)))
        return found[at]

    def block(self, i: int, j: int) -> int:
        """The block of row node ``i`` and column node ``j``; KeyError when no edge joins them."""
        return int(self.blocks([i], [j])[0])

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


def analyse(sizes: ArrayLike, edges: ArrayLike, constraint: ArrayLike | None = None, order: str = "best") -> Structure:
    """Analyse a graph of blocks.

    sizes: numbers per node, from 1 to WIDTH (GraphSystem splits larger nodes). edges: (E, 2) pairs of nodes, either way
    round; duplicates do no harm. constraint: (n,) true for nodes whose diagonal block is zero or nearly so; they are
    eliminated when their neighbours support them. order: "minimum_degree", "minimum_degree_reversed" (of nodes of equal
    degree, the last one first), "depth_first", "stacked", or "best", the one of them with the least work.
    """
    size = checked_sizes(sizes, WIDTH)
    offset, neighbour = adjacency(len(size), checked_edges(len(size), edges))
    mask = checked_constraint(len(size), constraint)
    if order != "best" and order not in _ORDERS:
        raise ModelError(f"unknown order {order!r}: choose 'best' or one of {sorted(_ORDERS)}")

    most = int(np.iinfo(np.int64).max)
    names = list(_ORDERS) if order == "best" else [order]
    positions = [_ORDERS[name][0](mask, offset, neighbour) for name in names]

    def least(limit: int, firm: bool) -> tuple[Any, ...] | None:
        best = None
        for name, position in zip(names, positions):
            pivot, start, parents, work = eliminate(size, mask, offset, neighbour, position, _ORDERS[name][1], limit, firm)
            if work <= limit:
                limit, best = work, (name, pivot, start, parents, work)
        return best

    # Where there are cycles, redundant rows have to be expected anyway, and waiting for firm support may cost too much.
    plain = None if is_forest(mask, offset, neighbour) else least(most, False)
    best = least(most if plain is None else int(PRICE * plain[-1]), True) or plain
    assert best is not None
    name, pivot, start, parents, least_work = best
    return Structure(build_schedule(size, offset, neighbour, pivot, start, parents), name, least_work)
