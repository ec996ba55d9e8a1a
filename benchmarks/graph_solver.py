"""The graph solver against NumPy's dense solver and SciPy's SuperLU on the graphs of Variational, figure 9.

Ladder, net and crystal have 6 x 6 blocks. All solvers run on one thread, in turns, and count their best of many times.
(The thread limit works only if this is imported before NumPy, or with OPENBLAS_NUM_THREADS=1 from the start.)
"""
from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Callable

import numpy as np
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import splu

from dalembert.linalg import analyse, clear, factor, solve

SIZE = 6


def lattice(*shape: int) -> tuple[int, np.ndarray]:
    """Nodes on a grid of any dimension, each joined to the next along every axis: (number of nodes, edges)."""
    index = np.arange(np.prod(shape)).reshape(shape)
    edges = []
    for axis, length in enumerate(shape):
        before, after = np.arange(length - 1), np.arange(1, length)
        edges.append(np.stack([index.take(before, axis).ravel(), index.take(after, axis).ravel()], axis=1))
    return index.size, np.concatenate(edges)


def joint_chain(pairs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A chain of bodies (6) and joints (5), the first joint on the ground: (sizes, edges, constraint)."""
    nodes = np.arange(2 * pairs)
    return np.where(nodes % 2, 6, 5), np.stack([nodes[:-1], nodes[1:]], axis=1), nodes % 2 == 0


def best_time(run: Callable[[], object], seconds: float = 1.0) -> float:
    """The shortest of the runs that fit in ``seconds``, in s."""
    run()
    best = np.inf
    end = time.perf_counter() + seconds
    while True:
        begin = time.perf_counter()
        run()
        now = time.perf_counter()
        best = min(best, now - begin)
        if now > end:
            return best


class Problem:
    """A random system on a graph, regular by a heavy diagonal, and its three solvers."""

    def __init__(self, sizes: np.ndarray, edges: np.ndarray, constraint: np.ndarray | None = None) -> None:
        rng = np.random.default_rng(0)
        self.structure = analyse(sizes, edges, constraint)
        self.sizes = sizes
        schedule = self.structure.schedule
        self.values = self.structure.new_blocks()
        for i in range(len(sizes)):
            m = sizes[i]
            self.values["M"][schedule.diagonal[i], :m, :m] = rng.normal(size=(m, m)) + 10.0 * np.eye(m)
        for i, j in np.concatenate([edges, edges[:, ::-1]]).tolist():
            m, n = sizes[i], sizes[j]
            self.values["M"][self.structure.block(i, j), :m, :n] = rng.normal(size=(m, n))
        self.blocks = self.structure.new_blocks()
        self.vector = self.structure.new_vector()
        self.lanes = np.arange(self.vector["v"].shape[1]) < sizes[:, None]
        self.right = rng.normal(size=int(sizes.sum()))

    def dense(self) -> np.ndarray:
        start = np.concatenate([[0], np.cumsum(self.sizes)])
        schedule = self.structure.schedule
        A = np.zeros((start[-1], start[-1]))
        for i, m in enumerate(self.sizes):
            rows = slice(start[i], start[i + 1])
            A[rows, rows] = self.values["M"][schedule.diagonal[i], :m, :m]
            for j, k in zip(*(x[schedule.offset[i] : schedule.offset[i + 1]] for x in (schedule.neighbour, schedule.entry))):
                A[rows, start[j] : start[j + 1]] = self.values["M"][k, :m, : self.sizes[j]]
        return A

    def solve_graph(self) -> np.ndarray:
        """As a simulation does it: blocks written, fill cleared, factored, solved."""
        np.copyto(self.blocks, self.values)
        self.vector["v"][self.lanes] = self.right
        clear(self.blocks, self.structure.schedule)
        assert factor(self.blocks, self.structure.schedule) == -1
        solve(self.blocks, self.structure.schedule, self.vector)
        return self.vector["v"][self.lanes]


def compare(name: str, nodes: int, edges: np.ndarray) -> dict:
    problem = Problem(np.full(nodes, SIZE), edges)
    A = problem.dense()
    sparse = csc_matrix(A)
    graph = best_time(problem.solve_graph)
    dense = best_time(lambda: np.linalg.solve(A, problem.right))
    superlu = min(
        best_time(lambda order=order: splu(sparse, permc_spec=order).solve(problem.right))
        for order in ("COLAMD", "MMD_AT_PLUS_A")
    )
    error = np.max(np.abs(problem.solve_graph() - np.linalg.solve(A, problem.right)))
    return {
        "graph": name,
        "nodes": nodes,
        "order": problem.structure.order_name,
        "fill": problem.structure.fill,
        "graph solver [us]": 1e6 * graph,
        "GFlop/s": 2e-9 * problem.structure.work / graph,
        "dense / graph": dense / graph,
        "SuperLU / graph": superlu / graph,
        "difference": error,
    }


def chain(pairs: int) -> dict:
    problem = Problem(*joint_chain(pairs))
    graph = best_time(problem.solve_graph)
    return {
        "graph": f"chain of {pairs} bodies and joints",
        "nodes": 2 * pairs,
        "order": problem.structure.order_name,
        "fill": problem.structure.fill,
        "graph solver [us]": 1e6 * graph,
        "GFlop/s": 2e-9 * problem.structure.work / graph,
    }


def analysis(name: str, nodes: int, edges: np.ndarray) -> dict:
    sizes = np.full(nodes, SIZE)
    structure = analyse(sizes, edges)
    return {
        "graph": f"analysis of {name}",
        "nodes": nodes,
        "order": structure.order_name,
        "fill": structure.fill,
        "analysis [us]": 1e6 * best_time(lambda: analyse(sizes, edges)),
    }


def main() -> list[dict]:
    """One row per problem; ratios above 1 are in favour of the graph solver."""
    return [
        compare("ladder", *lattice(250, 2)),
        compare("net", *lattice(22, 22)),
        compare("crystal", *lattice(6, 6, 6)),
        chain(100),
        chain(1000),
        analysis("a ladder of 1000 rungs", *lattice(1000, 2)),
        analysis("a net", *lattice(22, 22)),
        analysis("a crystal", *lattice(6, 6, 6)),
    ]


if __name__ == "__main__":
    for row in main():
        print(", ".join(f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()))
