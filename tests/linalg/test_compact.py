"""A schedule without sleeping nodes, or without blocks that are zero, solves the same system without looking at their blocks."""
from __future__ import annotations

import numpy as np
import pytest
from graphs import random_edges, write_random

from dalembert.kernels import kernel
from dalembert.linalg import analyse, clear, factor, solve
from dalembert.linalg.compact import compact, new_room, without


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


@pytest.mark.parametrize("seed", range(6))
def test_blocks_that_are_zero_are_not_looked_at(seed: int):
    rng = np.random.default_rng(seed)
    n = 30
    edges = random_edges(n, n // 2, rng)
    structure = analyse(rng.integers(1, 7, n), edges)
    schedule = structure.schedule
    zero = np.array([structure.block(*pair) for i, j in edges[::3] for pair in ((i, j), (j, i))])
    whole, part = structure.new_blocks(), structure.new_blocks()
    write_random(structure, whole, rng)
    part[:] = whole
    whole["M"][zero], part["M"][zero] = 0.0, np.nan
    right = structure.new_vector()
    for i in range(n):
        right["v"][i, : schedule.sizes[i]] = rng.normal(size=schedule.sizes[i])
    expected, found, thin = right.copy(), right.copy(), without(schedule, zero)
    for blocks, which, vector in ((whole, schedule, expected), (part, thin, found)):
        clear(blocks, which)
        assert factor(blocks, which) < 0
        solve(blocks, which, vector)
    assert len(thin.target) < len(schedule.target)
    np.testing.assert_allclose(found["v"], expected["v"], rtol=0, atol=1e-14)
