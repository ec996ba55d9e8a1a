"""A graph as a user gives it, checked and turned into lists of neighbours."""
from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import ModelError


def checked_sizes(sizes: ArrayLike, largest: int | None = None) -> np.ndarray:
    """(n,) numbers per node, each at least 1 and at most ``largest``."""
    checked = _integers(sizes, "sizes").reshape(-1)
    for node in np.flatnonzero(checked < 1):
        raise ModelError(f"node {node} has size {checked[node]}: at least 1 is needed")
    for node in np.flatnonzero(checked > largest) if largest is not None else ():
        raise ModelError(f"node {node} has size {checked[node]}: at most {largest} is possible (GraphSystem takes any size)")
    return checked


def checked_edges(n: int, edges: ArrayLike) -> np.ndarray:
    """(E, 2) pairs of different nodes, among ``n``."""
    pairs = _integers(edges, "edges")
    if pairs.size == 0:
        pairs = pairs.reshape(0, 2)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ModelError(f"the edges have shape {pairs.shape}: pairs of nodes, (E, 2), are needed")
    for i, j in pairs[((pairs < 0) | (pairs >= n)).any(axis=1)]:
        raise ModelError(f"edge ({i}, {j}) leaves the graph: its nodes are 0 to {n - 1}")
    for i, j in pairs[pairs[:, 0] == pairs[:, 1]]:
        raise ModelError(f"edge ({i}, {j}) joins a node to itself: diagonal blocks are always there")
    return pairs


def checked_constraint(n: int, constraint: ArrayLike | None) -> np.ndarray:
    """(n,) true for constraint nodes; there are none by default."""
    mask = np.zeros(n, bool) if constraint is None else np.array(constraint, bool)
    if mask.shape != (n,):
        raise ModelError(f"the constraint mask has shape {mask.shape}: one entry for each of the {n} nodes is needed")
    return mask


def adjacency(n: int, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``offset`` (n + 1,) and ``neighbour``: the neighbours of node i, in order, begin at ``neighbour[offset[i]]``."""
    both = np.unique(np.concatenate([pairs[:, 0] * n + pairs[:, 1], pairs[:, 1] * n + pairs[:, 0]]))  # as numbers: rows take long to sort
    offset = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(both // max(n, 1), minlength=n), out=offset[1:])
    return offset, both % max(n, 1)


def _integers(values: ArrayLike, what: str) -> np.ndarray:
    array = np.asarray(values)
    if array.size > 0 and array.dtype.kind not in "iu":
        raise ModelError(f"the {what} are of type {array.dtype}: whole numbers are needed")
    return array.astype(np.int64)
