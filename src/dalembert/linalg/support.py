"""Which constraint nodes may be eliminated: those whose rows find enough unknowns among what is already eliminated.

With a zero diagonal, the pivot block of a constraint node is regular only through its eliminated neighbours. For an
eliminated set of ordinary and constraint nodes to be regular, each row of each constraint node in it must be assigned
to an unknown of a neighbouring ordinary node in it, every unknown once. The assignment is kept as a flow from
constraint nodes to ordinary nodes, in units of one row; a further row may push others aside along an augmenting path.
This is exact for blocks of general numbers, but those of joints are not: a body that is held at a point moves its other
points in two directions, though it has three unknowns left.

So joints also wait until they hang together as the mechanism itself does. Ordinary nodes that eliminated constraint nodes join form a
*part*; what a constraint node with a single neighbour is tied to counts as one more node, the outside, which is never eliminated. A
part in which all nodes but one at most are eliminated, and which has no cycles, is a tree that hangs on that node: row after row finds a node
whose unknowns it has for itself, so that it is regular whatever the numbers. A constraint node may go if the part that it makes is
such a tree, or if it closes a cycle inside of a part, whose rows are then as independent as those of the whole.

The kernels take record arrays: ``nodes`` with the fields of SUPPORT, ``edges`` of EDGE and ``parts`` of PART.
"""
from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

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
#: a forest of nodes, the last of which is the outside: the node above it (itself at the root) and, at roots, how many are not eliminated
PART = np.dtype([("above", "i8"), ("left", "i8")])


def build_parts(count: int) -> np.ndarray:
    """Every node is a part of its own."""
    parts = np.zeros(count + 1, PART)
    parts["above"] = np.arange(count + 1)
    parts["left"] = 1
    return parts


def is_forest(constraint: np.ndarray, offset: np.ndarray, neighbour: np.ndarray) -> bool:
    """Whether constraint nodes join the others, and the outside, without cycles."""
    n = len(constraint)
    owner = np.repeat(np.arange(n), np.diff(offset))
    joins = constraint[owner] & ~constraint[neighbour]
    alone = np.flatnonzero(np.bincount(owner[joins], minlength=n) == 1)
    first, second = np.concatenate([owner[joins], alone]), np.concatenate([neighbour[joins], np.full(len(alone), n)])
    count, _ = connected_components(coo_array((np.ones(len(first)), (first, second)), shape=(n + 1, n + 1)), directed=False)
    return len(first) == n + 1 - int(count)


def build_edges(offset: np.ndarray, neighbour: np.ndarray) -> np.ndarray:
    """The adjacency lists as edge records without flow."""
    n = len(offset) - 1
    edges = np.zeros(len(neighbour), EDGE)
    edges["node"] = np.repeat(np.arange(n), np.diff(offset))
    edges["neighbour"] = neighbour
    edges["twin"] = np.searchsorted(edges["node"] * n + neighbour, neighbour * n + edges["node"])
    return edges


@inline
def part_of(parts, node):
    """The root of a node's part."""
    while parts[node].above != node:
        parts[node].above = parts[parts[node].above].above
        node = parts[node].above
    return node


@inline
def _ends(nodes, edges, c):
    """How many ordinary nodes a constraint node joins."""
    count = 0
    for a in range(nodes[c].begin, nodes[c].end):
        if not nodes[edges[a].neighbour].constraint:
            count += 1
    return count


@allocating
def join_parts(nodes, edges, parts, c):
    """The constraint node c is eliminated: what it joins is one part."""
    root = part_of(parts, len(nodes)) if _ends(nodes, edges, c) == 1 else -1
    for a in range(nodes[c].begin, nodes[c].end):
        if nodes[edges[a].neighbour].constraint:
            continue
        other = part_of(parts, edges[a].neighbour)
        if root >= 0 and other != root:
            parts[root].above = other
            parts[other].left += parts[root].left
        root = other


@allocating
def makes_a_tree(nodes, edges, parts, c):
    """Whether the constraint node c would join parts to a tree of which one node at most is left, or closes a cycle in one."""
    alone = _ends(nodes, edges, c) == 1
    outside = part_of(parts, len(nodes))
    first, several, left = outside if alone else -1, False, parts[outside].left if alone else 0
    for a in range(nodes[c].begin, nodes[c].end):
        if nodes[edges[a].neighbour].constraint:
            continue
        root = part_of(parts, edges[a].neighbour)
        fresh = not (alone and root == outside)
        for b in range(nodes[c].begin, a):
            fresh = fresh and (nodes[edges[b].neighbour].constraint or part_of(parts, edges[b].neighbour) != root)
        if fresh:
            left += parts[root].left
            several = several or (first >= 0 and root != first)
            first = root
    return not several or left <= 1


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
def is_supported(nodes, edges, parts, queue, start, firm):
    """Whether the constraint node ``start`` may be eliminated now: all its rows could be assigned, which they are not; ``firm``: as trees."""
    if firm and not makes_a_tree(nodes, edges, parts, start):
        return False
    rows = assign_rows(nodes, edges, queue, start)
    for a in range(nodes[start].begin, nodes[start].end):
        nodes[edges[a].neighbour].free += edges[a].flow
        edges[a].flow = 0
    return rows == nodes[start].size
