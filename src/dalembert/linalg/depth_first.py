"""Elimination orders from a depth-first search.

In a graph without cycles, leaves before their parents is an order without fill (Variational, section 4.1). With cycles,
a depth-first search leaves only edges between a node and its ancestors, so that fill stays there (section 4.2). Or the
nodes that close the cycles are all put at the end, and the rest is a forest (Linear-time, section 4.3).
"""
from __future__ import annotations

import numpy as np

from dalembert.kernels import allocating


def depth_first(constraint: np.ndarray, offset: np.ndarray, neighbour: np.ndarray) -> np.ndarray:
    """(n,) position of each node in the order of Algorithms 1 and 3: found last goes first, roots last."""
    found, _ = _search(_roots(constraint, offset), constraint, offset, neighbour)
    return _positions(found[::-1])


def stacked(constraint: np.ndarray, offset: np.ndarray, neighbour: np.ndarray) -> np.ndarray:
    """(n,) position of each node with those that close cycles stacked at the end."""
    found, closing = _search(_roots(constraint, offset), constraint, offset, neighbour)
    last_first = found[::-1]
    is_closing = closing[last_first]
    return _positions(np.concatenate([last_first[~is_closing], last_first[is_closing]]))


def _roots(constraint: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Nodes in the order in which they are tried as roots.

    The root goes last, with everyone else to support it: the right place for a constraint node, and most of all for
    one that hangs on a single neighbour.
    """
    return np.lexsort((np.diff(offset), ~constraint))


def _positions(order: np.ndarray) -> np.ndarray:
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    return position


@allocating
def _search(roots, constraint, offset, neighbour):
    """Depth-first search of all components: the nodes as found, and which of them close cycles.

    Of an edge that closes a cycle, the constraint node counts as the one that closes it, or else the deeper node.
    """
    n = len(roots)
    found = np.empty(n, np.int64)
    path = np.empty(n, np.int64)
    seen = np.zeros(n, np.bool_)
    closing = np.zeros(n, np.bool_)
    cursor = offset[:-1].copy()
    count = 0
    for root in roots:
        if seen[root]:
            continue
        seen[root] = True
        found[count] = root
        count += 1
        path[0] = root
        depth = 0
        while depth >= 0:
            node = path[depth]
            if cursor[node] == offset[node + 1]:
                depth -= 1
                continue
            other = neighbour[cursor[node]]
            cursor[node] += 1
            if not seen[other]:
                seen[other] = True
                found[count] = other
                count += 1
                depth += 1
                path[depth] = other
            elif (depth == 0 or other != path[depth - 1]) and not (closing[node] or closing[other]):
                closing[other if constraint[other] and not constraint[node] else node] = True
    return found, closing
