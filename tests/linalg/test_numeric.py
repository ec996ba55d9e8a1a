"""The compiled kernels on their own: storage, repeated factorisation, single blocks."""
from __future__ import annotations

import numpy as np
import pytest
from graphs import random_edges, write_random
from numba.core.runtime import _nrt_python  # pyright: ignore[reportAttributeAccessIssue]
from numba.core.runtime.nrt import rtsys

from dalembert.linalg import WIDTH, analyse, clear, factor, multiply, solve
from dalembert.linalg.blocks import invert


def inverts(M: np.ndarray, n: int) -> bool:
    return invert(M, np.max(np.abs(M), axis=0), n)


def test_storage_is_zeroed_and_on_cache_lines():
    structure = analyse([6, 5, 6], [(0, 1), (1, 2)])
    for storage, field in ((structure.new_blocks(), "M"), (structure.new_vector(), "v")):
        assert not storage[field].any()
        assert storage.ctypes.data % 64 == 0
    assert structure.new_blocks()["M"].shape == (structure.block_count, WIDTH, WIDTH)
    assert structure.new_vector()["v"].shape == (3, WIDTH)


@pytest.fixture
def allocations():
    """Counts what compiled code has allocated so far."""
    _nrt_python.memsys_enable_stats()
    yield lambda: rtsys.get_allocation_stats().alloc
    _nrt_python.memsys_disable_stats()


def test_factoring_again_allocates_nothing(allocations):
    """A call from Python counts a few allocations for its arguments, as many for a large graph as for a small one."""
    rng = np.random.default_rng(0)
    counts = set()
    for n in (5, 50):
        structure = analyse(rng.integers(1, 7, n), random_edges(n, n, rng))
        schedule = structure.schedule
        lanes = np.arange(WIDTH) < schedule.sizes[:, None]
        blocks, x, y = structure.new_blocks(), structure.new_vector(), structure.new_vector()
        address = blocks.ctypes.data
        for _ in range(3):
            write_random(structure, blocks, rng)
            original = blocks.copy()
            right = rng.normal(size=lanes.sum())
            x["v"][lanes] = right
            before = allocations()
            clear(blocks, schedule)
            assert factor(blocks, schedule) == -1
            solve(blocks, schedule, x)
            multiply(original, schedule, x, y)
            counts.add(allocations() - before)
            np.testing.assert_allclose(y["v"][lanes], right, rtol=0, atol=1e-11)
            assert not y["v"][~lanes].any()
            assert blocks.ctypes.data == address
    assert len(counts) == 1


def test_failure_reports_the_node_and_leaves_clean_storage():
    rng = np.random.default_rng(1)
    structure = analyse([4] * 10, random_edges(10, 5, rng))
    blocks = structure.new_blocks()
    write_random(structure, blocks, rng)
    blocks["M"][structure.block(7, 7), 1, 1] = np.nan
    assert factor(blocks, structure.schedule) == 7
    assert not blocks["M"].any()
    write_random(structure, blocks, rng)
    assert factor(blocks, structure.schedule) == -1


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_numbers_off_the_diagonal_are_found(bad):
    rng = np.random.default_rng(1)
    structure = analyse([4, 3, 5], [(0, 1), (1, 2)])
    blocks = structure.new_blocks()
    for i, j in ((0, 1), (1, 0), (1, 2), (2, 1)):
        write_random(structure, blocks, rng)
        blocks["M"][structure.block(i, j), 1, 1] = bad
        assert factor(blocks, structure.schedule) >= 0


@pytest.mark.parametrize("n", range(1, WIDTH + 1))
def test_inverse_of_one_block(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        A = rng.normal(size=(n, n))
        np.fill_diagonal(A, 0.0 if n > 1 else 1.0)
        M = np.zeros((WIDTH, WIDTH))
        M[:n, :n] = A
        assert inverts(M, n)
        np.testing.assert_allclose(M[:n, :n] @ A, np.eye(n), atol=1e-9)
        M[:n, :n] = 0.0
        assert not M.any()


@pytest.mark.parametrize("size", [1e-4, 1e-9, 1e-13])
@pytest.mark.parametrize("k", range(5))
def test_small_pivots_on_the_diagonal_lose_no_digits(k, size):
    rng = np.random.default_rng(k)
    A = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    A[k:, k:] -= A[k:, :k] @ np.linalg.solve(A[:k, :k], A[:k, k:])  # what is left after k steps
    A[:k, k:], A[k:, :k], A[k, k] = 0.0, 0.0, size
    M = np.zeros((WIDTH, WIDTH))
    M[:6, :6] = A
    assert inverts(M, 6)
    np.testing.assert_allclose(M[:6, :6] @ A, np.eye(6), atol=1e-13 * np.linalg.cond(A))


def test_units_do_not_make_a_block_singular():
    A = np.diag([1.0, 1e-18, 1e20, 1e-9]) + 1e-30
    M = np.zeros((WIDTH, WIDTH))
    M[:4, :4] = A
    assert inverts(M, 4)
    np.testing.assert_allclose(M[:4, :4] @ A, np.eye(4), atol=1e-9)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, 1e-300])
def test_blocks_without_an_inverse_are_found(value):
    M = np.zeros((WIDTH, WIDTH))
    M[:3, :3] = np.eye(3)
    M[2, 2] = value
    assert not inverts(M, 3)
    rng = np.random.default_rng(0)
    M[:5, :5] = rng.normal(size=(5, 4)) @ rng.normal(size=(4, 5))
    assert not inverts(M, 5)
