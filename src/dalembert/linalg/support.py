"""Which constraint nodes may be eliminated: those whose rows find enough unknowns among what is already eliminated.

With a zero diagonal, the pivot block of a constraint node is regular only through its eliminated neighbours. For an
eliminated set of ordinary and constraint nodes to be regular, each row of each constraint node in it must be assigned
to an unknown of a neighbouring ordinary node in it, every unknown once. The assignment is kept as a flow from
constraint nodes to ordinary nodes, in units of one row; a further row may push others aside along an augmenting path.
This is exact for blocks of general numbers; special numbers (parallel axes) can still be singular.

The kernels take two record arrays: ``nodes`` with the fields of SUPPORT and ``edges`` of EDGE.
"""
from __future__ import annotations

import numpy as np

from dalembert.kernels import allocating, inline

SUPPORT = [
    ("size", "i8"),
    ("constraint", "b1"),
    ("begin", "i8"),  # its edges begin here ...
    ("end", "i8"),  # ... and end here
    ("free", "i8"),  # unknowns that no row is assigned to; none before an ordinary node is eliminated, none in a constraint
    ("eliminated", "b1"),
    ("visited", "b1"),
    ("reached_by", "i8"),  # the edge of the search that came here, in the numbering of the constraint node's edges
]
EDGE = np.dtype(
    [
        ("node", "i8"),
        ("neighbour", "i8"),
        ("twin", "i8"),  # the same edge seen from the neighbour
        ("flow", "i8"),  # from a constraint node: how many of its rows are assigned to the neighbour
    ]
)


def build_edges(offset: np.ndarray, neighbour: np.ndarray) -> np.ndarray:
    """The adjacency lists as edge records without flow."""
    n = len(offset) - 1
    edges = np.zeros(len(neighbour), EDGE)
    edges["node"] = np.repeat(np.arange(n), np.diff(offset))
    edges["neighbour"] = neighbour
    edges["twin"] = np.searchsorted(edges["node"] * n + neighbour, neighbour * n + edges["node"])
    return edges


@inline
def _visit(nodes, queue, length, node, edge):
    """Append ``node`` to the queue unless it has been there; returns the new length."""
    if nodes[node].visited:
        return length
    nodes[node].visited = True
    nodes[node].reached_by = edge
    queue[length] = node
    return length + 1


@allocating
def _find_free(nodes, edges, queue, start):
    """An ordinary node with free unknowns that the constraint node ``start`` can reach by pushing rows aside, or -1."""
    found = -1
    length = _visit(nodes, queue, 0, start, -1)
    head = 0
    while head < length and found < 0:
        i = queue[head]
        head += 1
        node = nodes[i]
        if node.free > 0:
            found = i
        for a in range(node.begin, node.end):
            edge = edges[a]
            other = nodes[edge.neighbour]
            if node.constraint:
                if other.eliminated and not other.constraint:
                    length = _visit(nodes, queue, length, edge.neighbour, a)
            elif edges[edge.twin].flow > 0:
                length = _visit(nodes, queue, length, edge.neighbour, edge.twin)
    for a in range(length):
        nodes[queue[a]].visited = False
    return found


@allocating
def assign_rows(nodes, edges, queue, start):
    """Assign the rows of the constraint node ``start`` one by one; returns how many found an unknown."""
    for rows in range(nodes[start].size):
        found = _find_free(nodes, edges, queue, start)
        if found < 0:
            return rows
        nodes[found].free -= 1
        edge = nodes[found].reached_by
        edges[edge].flow += 1
        while edges[edge].node != start:
            pushed = nodes[edges[edge].node].reached_by
            edges[pushed].flow -= 1
            edge = nodes[edges[pushed].neighbour].reached_by
            edges[edge].flow += 1
    return nodes[start].size


@allocating
def is_supported(nodes, edges, queue, start):
    """Whether all rows of the constraint node ``start`` could be assigned now; they are not."""
    rows = assign_rows(nodes, edges, queue, start)
    for a in range(nodes[start].begin, nodes[start].end):
        nodes[edges[a].neighbour].free += edges[a].flow
        edges[a].flow = 0
    return rows == nodes[start].size
