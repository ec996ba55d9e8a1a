"""The symbolic phase: fill, work, orders and the support of constraint nodes."""
from __future__ import annotations

import numpy as np
import pytest
from graphs import ORDERS, random_edges, random_tree, saddle_point

from dalembert.errors import ModelError
from dalembert.linalg import WIDTH, analyse


def path(n: int) -> list[tuple[int, int]]:
    return [(i, i + 1) for i in range(n - 1)]


@pytest.mark.parametrize("order", ORDERS)
def test_trees_have_no_fill_and_linear_work(order):
    work = {}
    for n in (200, 2000):
        structure = analyse(np.resize([6, 5, 3], n), random_tree(n, np.random.default_rng(n)), order=order)
        assert structure.fill == 0
        assert structure.block_count == 3 * n - 2
        work[n] = structure.work
    assert work[2000] / work[200] < 10.5


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_is_a_permutation_with_children_before_parents(order):
    rng = np.random.default_rng(0)
    structure = analyse(rng.integers(1, 7, 40), random_edges(40, 30, rng), order=order)
    assert sorted(structure.order.tolist()) == list(range(40))
    rank = np.argsort(structure.order)
    schedule = structure.schedule
    owner = np.repeat(np.arange(40), np.diff(schedule.start))
    assert np.all(rank[schedule.parent] > owner)


def test_best_order_has_the_least_work():
    rng = np.random.default_rng(1)
    for _ in range(10):
        edges = random_edges(30, 20, rng)
        work = {order: analyse([6] * 30, edges, order=order).work for order in ORDERS}
        assert work["best"] == min(work.values())


def brute_force_fill(n: int, edges: list[tuple[int, int]], order: list[int]) -> np.ndarray:
    """The pattern of an elimination, pair by pair."""
    pattern = np.eye(n, dtype=np.int8)
    for i, j in edges:
        pattern[i, j] = pattern[j, i] = 1
    for k, c in enumerate(order):
        later = [p for p in order[k + 1 :] if pattern[p, c]]
        for p in later:
            for q in later:
                pattern[p, q] = pattern[p, q] or 2
    return pattern


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(5))
def test_pattern_agrees_with_brute_force(order, seed):
    rng = np.random.default_rng(seed)
    edges = random_edges(25, 25, rng)
    structure = analyse([3] * 25, edges, rng.random(25) < 0.3, order=order)
    expected = brute_force_fill(25, edges, structure.order.tolist())
    np.testing.assert_array_equal(structure.pattern(), expected)
    assert structure.fill == np.count_nonzero(expected == 2)


def test_minimum_degree_really_is():
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 7, 30)
    edges = random_edges(30, 25, rng)
    adjacent = brute_force_fill(30, edges, []) > 0
    np.fill_diagonal(adjacent, False)
    left = set(range(30))
    for c in analyse(sizes, edges, order="minimum_degree").order.tolist():
        degrees = np.where(adjacent.sum(axis=1) > 1, adjacent @ sizes, 0)
        assert degrees[c] == min(degrees[list(left)])
        neighbours = np.flatnonzero(adjacent[c])
        adjacent[np.ix_(neighbours, neighbours)] = True
        np.fill_diagonal(adjacent, False)
        adjacent[c] = adjacent[:, c] = False
        left.remove(c)


def test_which_of_equals_goes_first_may_matter():
    """Cycles leave many nodes of one degree; the best order is no worse than either way to take them."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        edges = random_edges(60, 60, rng)
        work = {order: analyse([6] * 60, edges, order=order).work for order in ("minimum_degree", "minimum_degree_reversed", "best")}
        assert work["best"] <= min(work.values())
        if work["minimum_degree"] != work["minimum_degree_reversed"]:
            return
    raise AssertionError("both orders are the same on ten graphs")


def test_blocks_are_numbered_once():
    edges = [(0, 1), (1, 2), (2, 0), (2, 3)]
    structure = analyse([1, 2, 3, 4], edges)
    numbers = [structure.block(i, i) for i in range(4)]
    numbers += [structure.block(i, j) for i, j in edges] + [structure.block(j, i) for i, j in edges]
    assert sorted(numbers) == list(range(structure.block_count))
    np.testing.assert_array_equal(numbers[:4], structure.diagonal)
    with pytest.raises(KeyError):
        structure.block(0, 3)


@pytest.mark.parametrize("order", ORDERS)
def test_chain_on_the_ground_goes_from_the_free_end(order):
    """The first joint holds the chain to the ground and hangs on one body only."""
    n = 20
    nodes = np.arange(n)
    structure = analyse(np.where(nodes % 2, 6, 5), path(n), nodes % 2 == 0, order=order)
    assert structure.fill == 0
    assert structure.order.tolist() == list(range(n - 1, -1, -1))


@pytest.mark.parametrize("order", ORDERS)
def test_joints_wait_for_support(order):
    """A four-bar, joint to joint with both ends on the ground: 18 unknowns for 3 x 5 rows, the fourth joint waits."""
    constraint = np.arange(7) % 2 == 0
    structure = analyse([5, 6, 5, 6, 5, 6, 5], path(7), constraint, order=order)
    bodies = joints = 0
    for node in structure.order[:-1]:
        bodies += 6 * (not constraint[node])
        joints += 5 * constraint[node]
        assert joints <= bodies
    assert constraint[structure.order[-1]]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(10))
def test_saddle_points_of_trees_are_accurate(order, seed):
    """Random trees of bodies, one joint on the ground, every joint with a zero diagonal."""
    rng = np.random.default_rng(seed)
    bodies = 12
    joints = [(int(rng.integers(bodies)),), *random_tree(bodies, rng)]
    system = saddle_point(bodies, joints, rng.integers(1, 7, len(joints)).tolist(), rng, order)
    A = system.to_dense()
    x = rng.normal(size=len(A))
    system.factor()
    np.testing.assert_allclose(system.solve(A @ x), x, rtol=0, atol=1e-9)
    if order == "best":
        assert system.structure.fill == 0


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(10))
def test_saddle_points_of_loops_are_accurate(order, seed):
    """Closed chains of eight bodies, also held to the ground, with few enough rows to stay regular."""
    rng = np.random.default_rng(seed)
    bodies = 8
    joints = [(i, (i + 1) % bodies) for i in range(bodies)] + [(0,), (3, 6)]
    system = saddle_point(bodies, joints, [4, 5, 3, 4, 5, 3, 4, 5, 5, 2], rng, order)
    A = system.to_dense()
    x = rng.normal(size=len(A))
    system.factor()
    np.testing.assert_allclose(system.solve(A @ x), x, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_regular_has_regular_pivots(seed):
    """Random mechanisms with random loops: no order meets a singular pivot unless the whole matrix is singular."""
    rng = np.random.default_rng(seed)
    bodies = int(rng.integers(2, 10))
    joints = [(0,), *random_tree(bodies, rng)]
    joints += [tuple({int(i) for i in rng.integers(bodies, size=2)}) for _ in range(rng.integers(5))]
    rows = rng.integers(1, 7, len(joints)).tolist()
    for order in ORDERS:
        system = saddle_point(bodies, joints, rows, np.random.default_rng(seed), order)
        A = system.to_dense()
        if np.linalg.cond(A) < 1e7:
            x = rng.normal(size=len(A))
            system.factor()
            np.testing.assert_allclose(system.solve(A @ x), x, rtol=0, atol=1e-7)


@pytest.mark.parametrize("order", ORDERS)
def test_a_body_that_is_held_supports_no_further_joint(order):
    """Two free bodies on a held one: a joint to the held body waits for the other end, whatever freedom is near."""
    system = saddle_point(3, [(0,), (0, 1), (1, 2), (0, 2)], [6, 2, 2, 2], np.random.default_rng(0), order)
    rank = np.argsort(system.structure.order)
    for joint, others in ((4, [1]), (5, [1, 2]), (6, [2])):
        assert rank[joint] > min(rank[others])
    A = system.to_dense()
    x = np.arange(float(len(A)))
    system.factor()
    np.testing.assert_allclose(system.solve(A @ x), x, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("sizes", "edges", "message"),
    [
        ([3, WIDTH + 1], [(0, 1)], f"size {WIDTH + 1}: at most {WIDTH}"),
        ([3, 0], [(0, 1)], "size 0"),
        ([3, 3], [(0, 2)], "leaves the graph"),
        ([3, 3], [(0, 0)], "joins a node to itself"),
        ([3, 3], [0, 1], r"\(E, 2\)"),
    ],
)
def test_bad_input_is_refused(sizes, edges, message):
    with pytest.raises(ModelError, match=message):
        analyse(sizes, edges)


def test_constraint_mask_needs_the_right_length():
    with pytest.raises(ModelError, match="constraint mask"):
        analyse([3, 3], [(0, 1)], [True])
