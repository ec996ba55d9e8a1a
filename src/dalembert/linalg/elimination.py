"""The symbolic phase: eliminate the nodes of a graph one by one and list the neighbours each has when it goes.

Eliminating a node joins all its neighbours. The joined set is not written out pair by pair but kept as one list, an
*element* named after its pivot; a pivot that touches earlier elements absorbs them. The lists only ever shrink, so the
workspace is that of the graph plus the result (the quotient graph of minimum-degree codes).

Constraint nodes wait until the eliminated nodes support them (see `support`), and go last if that never happens: their
rows are redundant. Only the members of a new element can have gained or lost support by it.
"""
from __future__ import annotations

import numpy as np

from dalembert.kernels import allocating, inline
from dalembert.linalg.heap import settle, take_first
from dalembert.linalg.support import SUPPORT, assign_rows, build_edges, build_parts, is_supported, join_parts, part_of

NODE = np.dtype(
    [
        *SUPPORT,
        ("lists", "i8"),  # where its neighbours and its elements begin in the lists
        ("neighbours", "i8"),  # how many neighbours are left that share no element with it
        ("elements", "i8"),  # how many live elements it is a member of, the latest last
        ("position", "i8"),
        ("score", "i8"),
        ("place", "i8"),
        ("joined", "i8"),  # the last pivot that joined it
        ("counted", "i8"),  # the last degree that counted it
        # once it is an element
        ("first", "i8"),  # its members are in the pool, from here ...
        ("last", "i8"),  # ... to here
        ("absorbed", "b1"),
    ]
)
LIST = np.dtype([("neighbour", "i8"), ("element", "i8")])


def eliminate(
    sizes: np.ndarray,
    constraint: np.ndarray,
    offset: np.ndarray,
    neighbour: np.ndarray,
    position: np.ndarray,
    by_degree: bool,
    limit: int,
    firm: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Eliminate every node and return ``order, start, parents, work``.

    ``neighbour[offset[i]:offset[i + 1]]`` are the neighbours of node i. The nodes go in the order of their
    ``position``, or ``by_degree`` by least degree and, among equals, in that order; constraint nodes wait for support in both, with ``firm`` for one that holds whatever
    the numbers.
    ``parents[start[k]:start[k + 1]]`` are the neighbours of ``order[k]`` at its turn, ``work`` the multiply-adds of a
    factorisation and a solution; once above ``limit`` the rest is left undone.
    """
    n = len(sizes)
    nodes = np.zeros(n, NODE)
    nodes["size"] = sizes
    nodes["constraint"] = constraint
    nodes["begin"] = nodes["lists"] = offset[:-1]
    nodes["end"] = offset[1:]
    nodes["neighbours"] = np.diff(offset)
    nodes["joined"] = nodes["counted"] = -1
    lists = np.zeros(len(neighbour), LIST)
    lists["neighbour"] = neighbour
    nodes["position"] = nodes["score"] = position
    if by_degree:
        owner = np.repeat(np.arange(n), np.diff(offset))
        degree = np.bincount(owner, sizes[neighbour], minlength=n).astype(np.int64)
        nodes["score"] += n * np.where(nodes["neighbours"] > 1, degree, 0)
    waiting = n * (int(sizes.sum()) + 1)  # added to the score of nodes that wait: above any degree and any position
    nodes["score"] += waiting * constraint
    heap = np.argsort(nodes["score"], kind="stable")
    nodes["place"][heap] = np.arange(n)
    edges = build_edges(offset, neighbour)
    return _eliminate(nodes, lists, edges, build_parts(n), heap, by_degree, waiting, limit, firm)


@allocating
def _room_for(pool, used, more):
    """``pool``, or a longer copy when it has no room for ``more`` numbers after ``used``."""
    if used + more <= len(pool):
        return pool
    longer = np.empty(2 * (used + more), np.int64)
    for a in range(used):
        longer[a] = pool[a]
    return longer


@inline
def _join(nodes, c, p, pool, used):
    """Append p to the pool unless pivot c has joined it already; returns the new end."""
    if nodes[p].joined == c:
        return used
    nodes[p].joined = c
    pool[used] = p
    return used + 1


@allocating
def _form_element(nodes, lists, c, pool, used):
    """Make node c an element at the end of the pool, of all that is next to c or to its elements; returns the pool."""
    pivot = nodes[c]
    pivot.joined = c
    pivot.first = used
    for a in range(pivot.lists, pivot.lists + pivot.elements):
        element = nodes[lists[a].element]
        element.absorbed = True
        pool = _room_for(pool, used, element.last - element.first)
        for b in range(element.first, element.last):
            used = _join(nodes, c, pool[b], pool, used)
    pool = _room_for(pool, used, pivot.neighbours)
    for a in range(pivot.lists, pivot.lists + pivot.neighbours):
        used = _join(nodes, c, lists[a].neighbour, pool, used)
    pivot.last = used
    return pool


@allocating
def _attach(nodes, lists, p, c):
    """Put element c in the lists of its member p, in place of the elements it absorbed and the nodes it covers."""
    member = nodes[p]
    kept = member.lists
    for a in range(member.lists, member.lists + member.elements):
        if not nodes[lists[a].element].absorbed:
            lists[kept].element = lists[a].element
            kept += 1
    lists[kept].element = c
    member.elements = kept + 1 - member.lists
    kept = member.lists
    for a in range(member.lists, member.lists + member.neighbours):
        if nodes[lists[a].neighbour].joined != c:
            lists[kept].neighbour = lists[a].neighbour
            kept += 1
    member.neighbours = kept - member.lists


@allocating
def _degree(nodes, lists, pool, p, c, joined_size, stamp):
    """Numbers in the neighbours of p, a member of the latest element c; zero for a leaf, which joins nobody.

    ``stamp`` marks those that are counted, different in every call.
    """
    member = nodes[p]
    count = nodes[c].last - nodes[c].first - 1 + member.neighbours
    degree = joined_size - member.size
    for a in range(member.lists, member.lists + member.neighbours):
        other = nodes[lists[a].neighbour]
        other.counted = stamp
        degree += other.size
    for a in range(member.lists, member.lists + member.elements - 1):
        element = nodes[lists[a].element]
        for b in range(element.first, element.last):
            other = nodes[pool[b]]
            if other.joined != c and other.counted != stamp:
                other.counted = stamp
                count += 1
                degree += other.size
    return degree if count > 1 else 0


@inline
def _joined_size(nodes, pool, c):
    """Numbers in the members of element c."""
    joined_size = 0
    for a in range(nodes[c].first, nodes[c].last):
        joined_size += nodes[pool[a]].size
    return joined_size


@inline
def _mark_eliminated(nodes, edges, parts, queue, c):
    """Pivot c is eliminated: it brings its unknowns, or its rows use up those of others."""
    nodes[c].eliminated = True
    if nodes[c].constraint:
        assign_rows(nodes, edges, queue, c)
        join_parts(nodes, edges, parts, c)
    else:
        parts[part_of(parts, c)].left -= 1
        nodes[c].free = nodes[c].size


@allocating
def _eliminate(nodes, lists, edges, parts, heap, by_degree, waiting, limit, firm):
    n = len(nodes)
    order = np.empty(n, np.int64)
    start = np.zeros(n + 1, np.int64)
    parents = np.empty(len(lists), np.int64)
    queue = np.empty(n, np.int64)
    work = 0
    for k in range(n):
        left = n - k - 1
        c = take_first(heap, left + 1, nodes)
        order[k] = c
        _mark_eliminated(nodes, edges, parts, queue, c)
        parents = _form_element(nodes, lists, c, parents, start[k])
        start[k + 1] = nodes[c].last

        s = nodes[c].size
        d = _joined_size(nodes, parents, c)
        work += s * (s * s + s * d + d * d + s + 2 * d)
        if work > limit:
            break

        for a in range(start[k], start[k + 1]):
            p = parents[a]
            _attach(nodes, lists, p, c)
            score = nodes[p].position
            if by_degree:
                score += n * _degree(nodes, lists, parents, p, c, d, a)
            if nodes[p].constraint and not is_supported(nodes, edges, parts, queue, p, firm):
                score += waiting
            if score != nodes[p].score:
                nodes[p].score = score
                settle(heap, left, nodes, p)
    return order, start, parents[: start[n]], work
