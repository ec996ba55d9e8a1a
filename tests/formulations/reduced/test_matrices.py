"""The RedMax matrices in NumPy against the recursions: residual, inertia and Newton matrix; every joint, read both ways."""
import numpy as np
import pytest
from trees import KINDS, MOVING, random_tree

import dalembert as da
from dalembert.formulations.reduced.engine import ReducedEngine
from dalembert.formulations.reduced.equations import Stage, inverse_dynamics, residual
from dalembert.formulations.reduced.matrices import ad, adjoint, fill_jacobians, reduced_matrices, skew
from dalembert.formulations.reduced.step import factorise
from dalembert.formulations.reduced.tree_solve import solve, solve_transposed
from dalembert.model.tree import POINT

C = 0.02


class Bench:
    """A stage of a mechanism at random coordinates, rates and accelerations."""

    def __init__(self, mechanism: da.Mechanism, rng: np.random.Generator) -> None:
        self.engine = ReducedEngine(mechanism, da.Reduced(dt=0.01))
        self.nodes, self.own = self.engine.tree.nodes, self.engine.own
        self.stage = Stage(self.engine.model, self.nodes, self.engine.work, self.own, self.engine.ties, C)
        at, shape = self.own.nodes, (len(self.nodes), 3)
        places = [(i, j) for i, node in enumerate(self.nodes) for j in range(int(node["count"]))]
        self.index = tuple(np.array(places).T) if places else (np.zeros(0, int), np.zeros(0, int))
        at["x"], rates = rng.normal(size=shape), rng.normal(size=shape)
        at["v"], at["aq"], at["av"] = rates, at["x"] - C * rates, rates - C * 10.0 * rng.normal(size=shape)
        start = rng.normal(size=(len(self.nodes), 4))
        start[self.nodes["kind"] != POINT] = [1.0, 0.0, 0.0, 0.0]
        at["turn"] = start / np.linalg.norm(start, axis=1, keepdims=True)
        residual(self.stage)

    def matrices(self):
        return reduced_matrices(self.engine.model, self.nodes, self.own.nodes)

    def solve(self, right: np.ndarray, transposed: bool) -> np.ndarray:
        at = self.own.nodes
        at["g"][self.index], at["e"], at["s"] = right, 0.0, 0.0
        (solve_transposed if transposed else solve)(self.nodes, self.own)
        return at["dq"][self.index].copy()


def apart(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference, relative to the largest entry."""
    return float(np.abs(found - expected).max(initial=0.0) / max(np.abs(expected).max(initial=0.0), 1e-300))


def agree(bench: Bench, bound: float, rng: np.random.Generator) -> None:
    at, index = bench.own.nodes, bench.index
    matrices, a = bench.matrices(), at["a"][index].copy()
    g = at["g"][index].copy()
    assert apart(g, matrices.residual(a)) < bound
    H = matrices.newton(a, C)
    assert factorise(bench.stage, 0.0)[1]
    right = rng.normal(size=len(g))
    for transposed, matrix in ((False, H), (True, H.T)):
        assert apart(bench.solve(right, transposed), np.linalg.solve(matrix, right)) < bound
    # the recursion is affine in the accelerations: its columns are those of the inertia
    at["a"] = 0.0
    inverse_dynamics(bench.stage)
    rest = at["g"][index].copy()
    assert apart(rest, -matrices.f) < bound
    columns = []
    for k in range(len(g)):
        at["a"] = 0.0
        at["a"][index[0][k], index[1][k]] = 1.0
        inverse_dynamics(bench.stage)
        columns.append(at["g"][index] - rest)
    assert apart(np.array(columns).T, matrices.M) < bound


@pytest.mark.parametrize("reverse", [0.0, 1.0], ids=["forwards", "backwards"])
@pytest.mark.parametrize("kind", [k for k in (*KINDS, *MOVING) if k != "Fixed"])
def test_recursions_agree_with_the_matrices(kind, reverse):
    rng = np.random.default_rng(sum(map(ord, kind)))
    joint = {**KINDS, **MOVING}[kind]
    laws = [lambda: da.Revolute(axis=[1, 0, 2], stiffness=3.0, damping=0.4, rest=0.3, armature=0.2), da.Fixed, lambda: da.Planar(damping=0.2, stiffness=[1.0, 2.0, 3.0])]
    mechanism = random_tree([joint, laws[0], joint, laws[1], laws[2], joint], rng, reverse=reverse)
    mechanism.wrench("body 2", force=(1, 2, 3), torque=(3, 1, 2))
    agree(Bench(mechanism, rng), 1e-11, rng)


@pytest.mark.parametrize("seed", range(3))
def test_random_trees_agree(seed):
    rng = np.random.default_rng(seed)
    kinds = [*KINDS.values(), *MOVING.values(), None]
    agree(Bench(random_tree([kinds[int(rng.integers(len(kinds)))] for _ in range(12)], rng), rng), 1e-11, rng)


def test_deep_chain_agrees():
    rng = np.random.default_rng(3)
    agree(Bench(random_tree([lambda: da.Revolute(axis=rng.normal(size=3))] * 50, rng, reach=1, grounded=0.0), rng), 1e-11, rng)


def test_jacobian_derivatives_by_differences():
    rng = np.random.default_rng(5)
    bench = Bench(random_tree([*KINDS.values(), *MOVING.values(), None], rng, reach=3), rng)
    model, nodes, h = bench.engine.model, bench.nodes, 1e-5
    q, v = bench.own.nodes["x"].copy(), bench.own.nodes["v"].copy()

    def filled(step):
        at = bench.own.nodes.copy()
        at["x"] = q + step
        return fill_jacobians(model, nodes, at)

    here = filled(0.0)
    for k in range(0, here.J.shape[2], 5):
        step = np.zeros_like(q)
        step[bench.index[0][k], bench.index[1][k]] = h
        up, down = filled(step), filled(-step)
        assert np.allclose((up.J - down.J) / (2 * h), here.dJ[k], atol=1e-7)
        assert np.allclose((up.J_rate - down.J_rate) / (2 * h), here.dJ_rate[k], atol=1e-7)
    up, down = filled(h * v), filled(-h * v)
    assert np.allclose((up.J - down.J) / (2 * h), here.J_rate, atol=1e-7)


def dense_newton(bench: Bench) -> np.ndarray:
    """H of a tree of single constant screws, by varying every coordinate at once: what the cubic tensors are too large for."""
    nodes, at, n = bench.nodes, bench.own.nodes, len(bench.nodes)
    gravity = bench.engine.model.gravity
    varied, force = np.zeros((n, 3, 6, n)), np.zeros((n, 6, n))
    for i, (node, now) in enumerate(zip(nodes, at)):
        A, up = adjoint(now["R"].reshape(3, 3), now["p"]), int(node["parent"])
        S, V, Sv = now["S"][0], now["V"], now["Sv"]
        pose, twist, change = A @ varied[up] if up >= 0 else np.zeros((3, 6, n))
        pose[:, i] += S
        carried = A @ at["A"][up] if up >= 0 else np.zeros(6)
        change = change - ad(Sv) @ twist
        t = ad(V - Sv) @ S + S / C
        change[:, i] += ad(carried) @ S + S / C**2 - ad(Sv) @ t + ad(V) @ S / C
        twist[:, i] += t
        varied[i] = pose, twist, change
        M = np.diag([0.0] * 3 + [float(node["mass"])] * 3)
        M[:3, :3] = node["inertia"].reshape(3, 3)
        turned = ad(V).T @ M + np.array([ad(e).T @ (M @ V) for e in np.eye(6)]).T
        force[i] = M @ change - turned @ twist
        force[i, 3:] -= skew(node["mass"] * now["W"].reshape(3, 3).T @ gravity) @ pose[:3]
    H = np.zeros((n, n))
    for i in range(n - 1, -1, -1):
        S, up = at["S"][i, 0], int(nodes["parent"][i])
        H[i] = S @ force[i]
        if up >= 0:
            force[i, :, i] -= ad(S).T @ at["F"][i]
            force[up] += adjoint(at["R"][i].reshape(3, 3), at["p"][i]).T @ force[i]
    return H


@pytest.mark.parametrize(("count", "bound"), [(50, 1e-11), pytest.param(1000, 1e-9, marks=pytest.mark.slow)])
def test_long_chains_solve_with_the_dense_matrix(count, bound):
    rng = np.random.default_rng(7)
    bench = Bench(random_tree([lambda: da.Revolute(axis=rng.normal(size=3))] * count, rng, reach=1, grounded=0.0), rng)
    H = dense_newton(bench)
    if count <= 50:
        assert apart(bench.matrices().newton(bench.own.nodes["a"][bench.index], C), H) < 1e-12
    assert factorise(bench.stage, 0.0)[1]
    right = rng.normal(size=count)
    for transposed, matrix in ((False, H), (True, H.T)):
        assert apart(bench.solve(right, transposed), np.linalg.solve(matrix, right)) < bound
