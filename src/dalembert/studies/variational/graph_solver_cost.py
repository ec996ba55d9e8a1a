"""Systems on a ladder, a net and a crystal: the graph-based solver against a dense one, and its fill-in."""
from __future__ import annotations

import numpy as np

from dalembert.linalg import GraphSystem
from dalembert.studies.cost import best_seconds
from dalembert.studies.study import Report, study

#: numbers per node
SIZE = 6
GRAPHS = {"ladder": [(2, 2), (5, 2), (10, 2), (25, 2), (50, 2), (100, 2)], "net": [(2, 2), (4, 4), (6, 6), (10, 10), (14, 14)], "crystal": [(2, 2, 2), (3, 3, 3), (4, 4, 4), (5, 5, 5), (6, 6, 6)]}


def lattice(shape: tuple[int, ...]) -> tuple[int, np.ndarray]:
    """Nodes on a grid, each joined to the next along every axis: their number and the edges (m, 2)."""
    index = np.arange(np.prod(shape)).reshape(shape)
    ends = [(index.take(range(n - 1), axis).ravel(), index.take(range(1, n), axis).ravel()) for axis, n in enumerate(shape)]
    return index.size, np.concatenate([np.stack(pair, axis=1) for pair in ends])


def random_system(shape: tuple[int, ...]) -> GraphSystem:
    """Blocks of random numbers, regular by a heavy diagonal."""
    rng, (nodes, edges) = np.random.default_rng(0), lattice(shape)
    system = GraphSystem(np.full(nodes, SIZE), edges)
    for i in range(nodes):
        system.set(i, i, rng.normal(size=(SIZE, SIZE)) + 10.0 * np.eye(SIZE))
    for i, j in np.concatenate([edges, edges[:, ::-1]]).tolist():
        system.set(i, j, rng.normal(size=(SIZE, SIZE)))
    return system


@study("figures 9b to 9d", "on ladders, nets and crystals the graph-based solver beats a dense one, by two orders of magnitude on ladders and least on crystals")
def graph_solver_cost(report: Report) -> None:
    axes = report.panels(1, 3, width=12.0)
    rows, gains, errors = [], {}, []
    for axis, (name, shapes) in zip(axes, GRAPHS.items()):
        for shape in report.each(shapes[:4] if report.quick else shapes, name):
            system = random_system(shape)
            A, b = system.to_dense(), np.random.default_rng(1).normal(size=SIZE * int(np.prod(shape)))

            def solve(system: GraphSystem = system, b: np.ndarray = b) -> np.ndarray:
                system.factor()
                return system.solve(b)

            graph, dense = best_seconds(solve), best_seconds(lambda A=A, b=b: np.linalg.solve(A, b), 3)
            errors.append(float(np.abs(solve() - np.linalg.solve(A, b)).max()))
            pattern = system.structure.fill / max(1, len(lattice(shape)[1]) * 2 + len(b) // SIZE)
            rows.append((name, int(np.prod(shape)), 1e6 * graph, 1e6 * dense, dense / graph, system.structure.fill, pattern))
            gains[name] = dense / graph
        mine = [row for row in rows if row[0] == name]
        axis.loglog([row[1] for row in mine], [row[2] for row in mine], "o-", label="graph-based")
        axis.loglog([row[1] for row in mine], [row[3] for row in mine], "o--", label="dense")
        axis.set(xlabel=f"nodes of the {name}", ylabel="time / us")
    report.table(("graph", "nodes", "graph-based / us", "dense / us", "dense by graph-based", "blocks filled in", "of those of the matrix"), rows)
    bars = (10.0, 1.0) if report.quick else (100.0, 1.0)
    report.verdict(
        gains["ladder"] > bars[0] and min(gains.values()) > bars[1] and min(gains, key=gains.__getitem__) == "crystal" and max(errors) < 1e-9,
        f"the largest {', '.join(f'{name} {gain:.0f} times faster' for name, gain in gains.items())}; largest difference of the solutions {max(errors):.0e}",
    )
