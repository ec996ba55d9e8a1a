"""The symbolic phase: eliminate the nodes of a graph one by one and list the neighbours each has when it goes.

Eliminating a node joins all its neighbours. The joined set is not written out pair by pair but kept as one list, an
*element* named after its pivot; a pivot that touches earlier elements absorbs them. The lists only ever shrink, so the
workspace is that of the graph plus the result (the quotient graph of minimum-degree codes).

Live elements are the connected clusters of eliminated nodes, and that decides when a constraint node may go. Its own
diagonal is zero; it gets a regular pivot from the clusters it touches, if they have unknowns left: an ordinary node
brings its size, a constraint node uses its size up. Constraint nodes without that support wait, and go last if it
never comes (their rows are redundant).
"""
from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from dalembert.kernel import inline, kernel


class Quotient(NamedTuple):
    """The graph in the course of its elimination; one number per node where nothing else is said."""

    sizes: np.ndarray
    constraint: np.ndarray
    offset: np.ndarray
    """(n + 1,) where the lists of each node begin."""
    nodes: np.ndarray
    """Lists of neighbours that are still there and share no element with the node."""
    node_count: np.ndarray
    elements: np.ndarray
    """Lists of the live elements that the node is a member of, the latest last."""
    element_count: np.ndarray
    first: np.ndarray
    """Where the members of the element begin ..."""
    last: np.ndarray
    """... and end."""
    capacity: np.ndarray
    """Unknowns of the element's cluster that no constraint has used up."""
    absorbed: np.ndarray
    """Whether the element is part of a later one."""
    joined: np.ndarray
    """The last pivot that joined the node."""
    counted: np.ndarray
    """The last degree that counted the node."""


@inline
def _start(sizes, constraint, offset, neighbour):
    n = len(sizes)
    return Quotient(
        sizes,
        constraint,
        offset,
        neighbour.copy(),
        offset[1:] - offset[:-1],
        np.empty_like(neighbour),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.bool_),
        np.full(n, -1),
        np.full(n, -1),
    )


@inline
def _nodes_of(graph, i):
    return graph.nodes[graph.offset[i] : graph.offset[i] + graph.node_count[i]]


@inline
def _elements_of(graph, i):
    return graph.elements[graph.offset[i] : graph.offset[i] + graph.element_count[i]]


@inline
def _room_for(pool, used, more):
    """``pool``, or a longer copy when it has no room for ``more`` numbers after ``used``."""
    if used + more <= len(pool):
        return pool
    longer = np.empty(2 * (used + more), pool.dtype)
    longer[:used] = pool[:used]
    return longer


@inline
def _join(graph, c, candidates, pool, used):
    """Append to the pool the candidates that pivot c has not joined yet; returns the new end."""
    for p in candidates:
        if graph.joined[p] != c:
            graph.joined[p] = c
            pool[used] = p
            used += 1
    return used


@inline
def _form_element(graph, c, pool, used):
    """Make node c an element at the end of the pool, of all that is next to c or to its elements; returns the pool."""
    graph.joined[c] = c
    graph.first[c] = used
    capacity = -graph.sizes[c] if graph.constraint[c] else graph.sizes[c]
    for e in _elements_of(graph, c):
        graph.absorbed[e] = True
        capacity += graph.capacity[e]
        pool = _room_for(pool, used, graph.last[e] - graph.first[e])
        used = _join(graph, c, pool[graph.first[e] : graph.last[e]], pool, used)
    pool = _room_for(pool, used, graph.node_count[c])
    used = _join(graph, c, _nodes_of(graph, c), pool, used)
    graph.last[c] = used
    graph.capacity[c] = max(capacity, 0)
    return pool


@inline
def _attach(graph, p, c):
    """Put element c in the lists of its member p, in place of the elements it absorbed and the nodes it covers."""
    kept = graph.offset[p]
    for e in _elements_of(graph, p):
        if not graph.absorbed[e]:
            graph.elements[kept] = e
            kept += 1
    graph.elements[kept] = c
    graph.element_count[p] = kept + 1 - graph.offset[p]
    kept = graph.offset[p]
    for q in _nodes_of(graph, p):
        if graph.joined[q] != c:
            graph.nodes[kept] = q
            kept += 1
    graph.node_count[p] = kept - graph.offset[p]


@inline
def _degree(graph, pool, p, c, joined_size, stamp):
    """Numbers in the neighbours of p, a member of the latest element c; zero for a leaf, which joins nobody."""
    count = graph.last[c] - graph.first[c] - 1
    degree = joined_size - graph.sizes[p]
    for q in _nodes_of(graph, p):
        graph.counted[q] = stamp
        count += 1
        degree += graph.sizes[q]
    for e in _elements_of(graph, p)[:-1]:
        for q in pool[graph.first[e] : graph.last[e]]:
            if graph.joined[q] != c and graph.counted[q] != stamp:
                graph.counted[q] = stamp
                count += 1
                degree += graph.sizes[q]
    return degree if count > 1 else 0


@inline
def _initial_degree(graph, i):
    degree = 0
    for q in _nodes_of(graph, i):
        degree += graph.sizes[q]
    return degree if graph.node_count[i] > 1 else 0


@inline
def _waits(graph, p):
    """Whether p is a constraint node that its clusters cannot support."""
    if not graph.constraint[p]:
        return False
    support = 0
    for e in _elements_of(graph, p):
        support += graph.capacity[e]
    return support < graph.sizes[p]


@inline
def _work(s, d):
    """Multiply-adds to factor and solve with a pivot of size s whose parents have d numbers in all."""
    return s * (s * s + s * d + d * d + s + 2 * d)


@kernel
def eliminate(sizes, constraint, offset, neighbour, position, limit):
    """Eliminate every node and return ``order, start, parents, work``.

    ``neighbour[offset[i]:offset[i + 1]]`` are the neighbours of node i. With a ``position`` per node the nodes go in
    that order, with an empty one by least degree; constraint nodes wait for support in both.
    ``parents[start[k]:start[k + 1]]`` are the neighbours of ``order[k]`` at its turn, ``work`` the multiply-adds of a
    factorisation and a solution; once above ``limit`` the rest is left undone.
    """
    n = len(sizes)
    by_degree = len(position) == 0
    waiting = sizes.sum() + n  # added to the score of nodes that wait: above any degree and any position
    graph = _start(sizes, constraint, offset, neighbour)

    # A heap of score * n + node; a node whose score changes is pushed again, and the old entry is stale.
    score = np.empty(n, np.int64)
    heap = [np.int64(0) for _ in range(n)]
    for i in range(n):
        score[i] = _initial_degree(graph, i) if by_degree else position[i]
        if _waits(graph, i):
            score[i] += waiting
        heap[i] = score[i] * n + i
    heapq.heapify(heap)

    order = np.empty(n, np.int64)
    start = np.zeros(n + 1, np.int64)
    parents = np.empty(len(neighbour), np.int64)
    work = 0
    stamp = 0
    for k in range(n):
        key = heapq.heappop(heap)
        while score[key % n] != key // n:
            key = heapq.heappop(heap)
        c = key % n
        score[c] = -1
        order[k] = c
        parents = _form_element(graph, c, parents, start[k])
        start[k + 1] = graph.last[c]

        joined_size = 0
        for p in parents[start[k] : start[k + 1]]:
            joined_size += sizes[p]
        work += _work(sizes[c], joined_size)
        if work > limit:
            break

        for p in parents[start[k] : start[k + 1]]:
            _attach(graph, p, c)
            stamp += 1
            new = _degree(graph, parents, p, c, joined_size, stamp) if by_degree else position[p]
            if _waits(graph, p):
                new += waiting
            if new != score[p]:
                score[p] = new
                heapq.heappush(heap, new * n + p)
    return order, start, parents[: start[n]], work
