"""GraphSystem against dense solutions, and the errors it raises."""
from __future__ import annotations

import numpy as np
import pytest
from graphs import ORDERS, fill_in_random, random_edges, random_tree
from hypothesis import given, settings
from hypothesis import strategies as st

from dalembert.errors import ModelError, SingularBlockError
from dalembert.linalg import WIDTH, GraphSystem, InconsistentSystemError


def assert_solves(system: GraphSystem, rng: np.random.Generator, tolerance: float = 1e-10) -> None:
    A = system.to_dense()
    b = rng.normal(size=len(A))
    system.factor()
    np.testing.assert_allclose(system.solve(b), np.linalg.solve(A, b), rtol=0, atol=tolerance)
    np.testing.assert_allclose(system.solve_transposed(b), np.linalg.solve(A.T, b), rtol=0, atol=tolerance)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(5))
def test_tree_agrees_with_dense(order, seed):
    rng = np.random.default_rng(seed)
    edges = random_tree(30, rng)
    system = GraphSystem(rng.integers(1, WIDTH + 1, 30), edges, order=order)
    fill_in_random(system, edges, rng)
    assert_solves(system, rng)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 14), st.integers(0, 20), st.sampled_from(ORDERS), st.integers(0, 2**32 - 1))
def test_connected_graph_agrees_with_dense(n, extra, order, seed):
    rng = np.random.default_rng(seed)
    edges = random_edges(n, extra, rng)
    system = GraphSystem(rng.integers(1, WIDTH + 1, n), edges, order=order)
    fill_in_random(system, edges, rng)
    assert_solves(system, rng, 1e-9)


@pytest.mark.parametrize("order", ORDERS)
def test_separate_components_and_lone_nodes(order):
    rng = np.random.default_rng(0)
    edges = [(0, 1), (1, 2), (2, 0), (4, 5), (1, 0)]
    system = GraphSystem([3, 6, 1, 8, 2, 7, 5], edges, order=order)
    fill_in_random(system, edges, rng)
    assert_solves(system, rng)


def test_no_edges_at_all():
    rng = np.random.default_rng(0)
    system = GraphSystem([4], [])
    fill_in_random(system, [], rng)
    assert_solves(system, rng)


@pytest.mark.parametrize("order", ORDERS)
def test_nodes_larger_than_a_block_are_split(order):
    rng = np.random.default_rng(3)
    edges = [(0, 1), (1, 2), (2, 3), (3, 0)]
    system = GraphSystem([20, 3, 17, 9], edges, order=order)
    for i, m in enumerate(system.sizes.tolist()):
        system.set(i, i, rng.normal(size=(m, m)) + 30.0 * np.eye(m))
    for i, j in edges:
        system.set(i, j, rng.normal(size=(system.sizes[i], system.sizes[j])))
        system.set(j, i, rng.normal(size=(system.sizes[j], system.sizes[i])))
    assert_solves(system, rng)


def test_to_dense_returns_what_was_set():
    system = GraphSystem([2, 10], [(0, 1)])
    upper = np.arange(20.0).reshape(2, 10)
    system.set(0, 1, upper)
    dense = system.to_dense()
    np.testing.assert_array_equal(dense[:2, 2:], upper)
    assert np.count_nonzero(dense) == 19


def test_new_values_replace_old_ones():
    rng = np.random.default_rng(1)
    edges = random_edges(12, 6, rng)
    system = GraphSystem(rng.integers(1, 7, 12), edges)
    for _ in range(3):
        fill_in_random(system, edges, rng)
        assert_solves(system, rng)


def test_singular_block_is_named():
    system = GraphSystem([2, 3, 1], [(0, 1), (1, 2)], names=["base", "arm", "hand"])
    for i in range(3):
        system.set(i, i, np.eye(system.sizes[i]))
    system.set(1, 1, np.ones((3, 3)))
    with pytest.raises(SingularBlockError, match="arm") as caught:
        system.factor()
    assert caught.value.node == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_recovers_from_numbers_that_are_not_finite(bad):
    rng = np.random.default_rng(2)
    edges = random_edges(6, 3, rng)
    system = GraphSystem([3] * 6, edges)
    fill_in_random(system, edges, rng)
    A = system.to_dense()
    system.set(2, 2, np.full((3, 3), bad))
    with pytest.raises(SingularBlockError):
        system.factor()
    system.set(2, 2, A[6:9, 6:9])
    assert_solves(system, rng)
    system.solve(np.full(18, bad))
    assert_solves(system, rng)


def redundant_system(rng: np.random.Generator) -> GraphSystem:
    """Two bodies held together by two joints whose rows repeat each other."""
    system = GraphSystem([6, 6, 4, 4], [(2, 0), (2, 1), (3, 0), (3, 1)], [False, False, True, True], ["a", "b", "first", "twin"])
    mix = rng.normal(size=(4, 4))
    for i in (0, 1):
        R = rng.normal(size=(6, 6))
        system.set(i, i, np.eye(6) + 0.1 * R @ R.T)
        G = rng.normal(size=(4, 6))
        for joint, rows in ((2, G), (3, mix @ G)):
            system.set(joint, i, rows)
            system.set(i, joint, rows.T)
    return system


@pytest.mark.parametrize("seed", range(5))
def test_redundant_rows_are_solved_by_the_proximal_method(seed):
    rng = np.random.default_rng(seed)
    system = redundant_system(rng)
    A = system.to_dense()
    assert np.linalg.matrix_rank(A) == 16
    b = A @ rng.normal(size=len(A))
    with pytest.raises(SingularBlockError):
        system.factor()
    x = system.solve_proximal(b, tolerance=1e-11)
    assert np.max(np.abs(A @ x - b)) < 1e-10


def test_contradicting_rows_raise_with_the_residual():
    rng = np.random.default_rng(0)
    system = redundant_system(rng)
    b = system.to_dense() @ rng.normal(size=20)
    b[-1] += 1.0
    with pytest.raises(InconsistentSystemError, match=r"residual .* \('(first|twin)'\)") as caught:
        system.solve_proximal(b)
    assert 1e-3 < caught.value.residual < 10.0


def test_proximal_method_agrees_on_a_regular_system():
    rng = np.random.default_rng(5)
    edges = random_edges(8, 4, rng)
    system = GraphSystem([4] * 8, edges, constraint=np.arange(8) % 2 == 0)
    fill_in_random(system, edges, rng)
    b = rng.normal(size=32)
    np.testing.assert_allclose(system.solve_proximal(b, compliance=1e-4), np.linalg.solve(system.to_dense(), b), atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(sizes=[2, 0], edges=[(0, 1)]), "node 1 has size 0"),
        (dict(sizes=[2, 3], edges=[(0, 2)]), r"edge \(0, 2\) leaves the graph"),
        (dict(sizes=[2, 3], edges=[(-1, 0)]), r"edge \(-1, 0\) leaves the graph"),
        (dict(sizes=[2, 3], edges=[(1, 1)]), "joins a node to itself"),
        (dict(sizes=[2, 30], edges=[(1, 1)]), "joins a node to itself"),
        (dict(sizes=[2, 3], edges=[(0, 1)], constraint=[True]), "constraint mask"),
        (dict(sizes=[2, 3], edges=[(0, 1)], names=["a"]), "1 names are given for 2 nodes"),
        (dict(sizes=[2.5, 3], edges=[(0, 1)]), "sizes are of type float64"),
        (dict(sizes=[2, 3], edges=[(0.0, 1.0)]), "edges are of type float64"),
        (dict(sizes=[2, 3], edges=[(0, 1)], order="alphabetical"), "unknown order 'alphabetical'"),
    ],
)
def test_bad_graphs_are_refused(arguments, message):
    with pytest.raises(ModelError, match=message):
        GraphSystem(**arguments)


def test_solving_needs_a_factorisation():
    system = GraphSystem([2, 3], [(0, 1)])
    for i in (0, 1):
        system.set(i, i, np.eye(system.sizes[i]))
    with pytest.raises(ModelError, match="not factored"):
        system.solve(np.ones(5))
    system.factor()
    np.testing.assert_array_equal(system.solve(np.ones(5)), np.ones(5))
    system.solve_proximal(np.ones(5))
    with pytest.raises(ModelError, match="not factored"):
        system.solve_transposed(np.ones(5))


def test_bad_blocks_and_vectors_are_refused():
    system = GraphSystem([2, 3, 1], [(0, 1)], names=["a", "b", "c"])
    with pytest.raises(ModelError, match=r"should be \(2, 3\)"):
        system.set(0, 1, np.eye(2))
    with pytest.raises(ModelError, match=r"no edge joins .*'a'.*'c'"):
        system.set(0, 2, np.ones((2, 1)))
    for i in range(3):
        system.set(i, i, np.eye(system.sizes[i]))
    system.factor()
    with pytest.raises(ModelError, match=r"should be \(6,\)"):
        system.solve(np.ones(5))
