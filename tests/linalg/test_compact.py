"""A schedule without sleeping nodes solves the same system, to the bit, without their blocks."""
from __future__ import annotations

import numpy as np
import pytest
from graphs import random_edges, write_random

from dalembert.kernels import kernel
from dalembert.linalg import analyse, clear, factor, solve
from dalembert.linalg.compact import compact, new_room


@kernel
def solve_awake(blocks, schedule, room, vector):
    """Number of nodes that are left, -1 where one is singular. Compiled as one: kernels hand no arrays back to Python."""
    shorter = compact(schedule, room)
    clear(blocks, shorter)
    if factor(blocks, shorter) >= 0:
        return -1
    solve(blocks, shorter, vector)
    return len(shorter.pivot)


@pytest.mark.parametrize("seed", range(6))
def test_sleeping_nodes_are_left_out(seed: int):
    rng = np.random.default_rng(seed)
    n = 30
    structure = analyse(rng.integers(1, 7, n), random_edges(n, n // 2, rng))
    asleep = rng.random(n) < 0.4
    whole, part = structure.new_blocks(), structure.new_blocks()
    write_random(structure, whole, rng)
    part[:] = whole
    schedule = structure.schedule
    for i in np.flatnonzero(asleep):
        whole["M"][schedule.diagonal[i]] = 0.0
        size = schedule.sizes[i]
        whole["M"][schedule.diagonal[i]][:size, :size] = np.eye(size)
    for i in range(n):
        for a in range(schedule.offset[i], schedule.offset[i + 1]):
            if asleep[i] or asleep[schedule.neighbour[a]]:
                whole["M"][schedule.entry[a]] = 0.0
    right = structure.new_vector()
    for i in range(n):
        right["v"][i, : schedule.sizes[i]] = rng.normal(size=schedule.sizes[i])
    room = new_room(schedule)
    expected, found = right.copy(), right.copy()
    clear(whole, schedule)
    assert factor(whole, schedule) < 0
    solve(whole, schedule, expected)
    room.asleep[:] = asleep
    assert solve_awake(part, schedule, room, found) == n - asleep.sum()
    assert np.array_equal(found["v"][~asleep], expected["v"][~asleep])
