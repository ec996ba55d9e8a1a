"""A binary heap of nodes by ``(score, node)``, whose scores may change.

``heap[:count]`` holds nodes; ``nodes`` is a record array with the fields ``score`` and ``place``, the place in the heap.
"""
from __future__ import annotations

from dalembert.kernels import inline, kernel


@inline
def _before(nodes, i, j):
    return nodes[i].score < nodes[j].score or (nodes[i].score == nodes[j].score and i < j)


@inline
def _put(heap, nodes, place, node):
    heap[place] = node
    nodes[node].place = place


@kernel
def settle(heap, count, nodes, node):
    """Move ``node`` to where its score belongs."""
    place = nodes[node].place
    while place > 0 and _before(nodes, node, heap[(place - 1) // 2]):
        _put(heap, nodes, place, heap[(place - 1) // 2])
        place = (place - 1) // 2
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and _before(nodes, heap[child + 1], heap[child]):
            child += 1
        if not _before(nodes, heap[child], node):
            break
        _put(heap, nodes, place, heap[child])
        place = child
    _put(heap, nodes, place, node)


@kernel
def take_first(heap, count, nodes):
    """Remove and return the first of ``count`` nodes."""
    first = heap[0]
    if count > 1:
        last = heap[count - 1]
        nodes[last].place = 0
        settle(heap, count - 1, nodes, last)
    return first
