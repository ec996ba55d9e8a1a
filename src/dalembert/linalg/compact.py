"""A schedule without blocks that are zero for some time, or without the nodes that sleep: those whose unknowns stay as they are and whose other blocks are zero, which then need not be written.

Blocks and vectors are those of the whole schedule, so that any node may wake. What is left is eliminated in the same order and with the
same numbers as if the others were there.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.kernels import kernel
from dalembert.linalg.schedule import Schedule


class Room(NamedTuple):
    """Which nodes sleep, which blocks are not zero, and where the schedule without the sleeping nodes is written."""

    asleep: np.ndarray
    live: np.ndarray
    pivot: np.ndarray
    start: np.ndarray
    parent: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    target: np.ndarray
    fill: np.ndarray


def new_room(schedule: Schedule) -> Room:
    """Room for parts of a schedule, with all nodes awake."""
    written = (schedule.pivot, schedule.start, schedule.parent, schedule.lower, schedule.upper, schedule.target, schedule.fill)
    blocks = len(schedule.pivot) + 2 * len(schedule.parent)
    return Room(np.zeros(len(schedule.sizes), np.uint8), np.zeros(blocks, np.uint8), *(array.copy() for array in written))


def no_room() -> Room:
    """Room for nothing."""
    return Room(*(np.zeros(0, np.uint8) for _ in range(2)), *(np.zeros(0, np.int64) for _ in range(7)))


def without(schedule: Schedule, blocks: np.ndarray) -> Schedule:
    """The schedule of a matrix in which some ``blocks`` between nodes are zero and need not be written."""
    owner = np.repeat(np.arange(len(schedule.sizes)), np.diff(schedule.offset))
    kept = ~np.isin(schedule.entry, blocks)
    offset = np.concatenate([[0], np.cumsum(np.bincount(owner[kept], minlength=len(schedule.sizes)))])
    thin = schedule._replace(
        offset=offset, neighbour=schedule.neighbour[kept], entry=schedule.entry[kept], fill=np.union1d(schedule.fill, schedule.entry[~kept]),
    )
    room = new_room(thin)
    pivots, edges, pairs, fills = write_compact(thin, room)
    lengths = dict(pivot=pivots, start=pivots + 1, parent=edges, lower=edges, upper=edges, target=pairs, fill=fills)
    return thin._replace(**{name: getattr(room, name)[:length].copy() for name, length in lengths.items()})


@kernel
def compact(schedule, room):
    """The schedule without the nodes that sleep, in the arrays of the room. For other kernels: they hand no arrays to Python."""
    pivots, edges, pairs, fills = write_compact(schedule, room)
    return Schedule(
        schedule.sizes, room.pivot[:pivots], schedule.diagonal, room.start[: pivots + 1], room.parent[:edges], room.lower[:edges],
        room.upper[:edges], room.target[:pairs], room.fill[:fills], schedule.offset, schedule.neighbour, schedule.entry,
    )


@kernel
def write_compact(schedule, room):
    """Write what is left of the schedule into the room. Returns how many pivots, edges, pairs of them and fills there are."""
    live, asleep = room.live, room.asleep
    nodes = len(schedule.sizes)
    for k in range(len(live)):
        live[k] = 0
    for i in range(nodes):
        if asleep[i] == 0:
            for a in range(schedule.offset[i], schedule.offset[i + 1]):
                if asleep[schedule.neighbour[a]] == 0:
                    live[schedule.entry[a]] = 1
    pivots = 0
    edges = 0
    pairs = 0
    first = 0
    for k in range(nodes):
        begin = schedule.start[k]
        end = schedule.start[k + 1]
        degree = end - begin
        if asleep[schedule.pivot[k]] == 0:
            room.pivot[pivots] = schedule.pivot[k]
            room.start[pivots] = edges
            pivots += 1
            for p in range(begin, end):
                if live[schedule.lower[p]] != 0:
                    room.parent[edges] = schedule.parent[p]
                    room.lower[edges] = schedule.lower[p]
                    room.upper[edges] = schedule.upper[p]
                    edges += 1
                    for q in range(begin, end):
                        if live[schedule.lower[q]] != 0:
                            target = schedule.target[first + (p - begin) * degree + (q - begin)]
                            room.target[pairs] = target
                            pairs += 1
                            live[target] = 1
        first += degree * degree
    room.start[pivots] = edges
    fills = 0
    for k in range(len(schedule.fill)):
        if live[schedule.fill[k]] != 0:
            room.fill[fills] = schedule.fill[k]
            fills += 1
    return pivots, edges, pairs, fills
