"""Newton's system of an implicit step of a chain: filled as the paper's matrices, and solved by recursion without being formed."""
from __future__ import annotations

import numpy as np

import dalembert as da
from dalembert.formulations.reduced.engine import ReducedEngine
from dalembert.formulations.reduced.equations import Stage, residual
from dalembert.formulations.reduced.matrices import reduced_matrices
from dalembert.formulations.reduced.step import factorise
from dalembert.formulations.reduced.tree_solve import solve
from dalembert.studies.cost import best_seconds, exponent
from dalembert.studies.study import Report, study

C = 0.01  # s: of a stage, x = a_q + C v


def directions(n: int, matrices: bool, repeats: int) -> tuple[float, float]:
    """Seconds for a direction of Newton's method of a chain of ``n`` links by recursion, by matrices, and how far they are apart."""
    engine = ReducedEngine(da.zoo.pendulum(n), da.Reduced(dt=0.01))
    nodes, own = engine.tree.nodes, engine.own
    stage, at, rng = Stage(engine.model, nodes, engine.work, own, engine.ties, C), own.nodes, np.random.default_rng(n)
    at["x"][:, 0], at["v"][:, 0] = 0.3 * rng.normal(size=n), rng.normal(size=n)
    at["aq"], at["av"] = at["x"] - C * at["v"], at["v"]

    def recursion() -> np.ndarray:
        residual(stage)
        factorise(stage, 0.0)
        solve(nodes, own)
        return at["dq"][:, 0].copy()

    def dense() -> np.ndarray:
        found = reduced_matrices(engine.model, nodes, at)
        return np.linalg.solve(found.newton(at["a"][:, 0], C), found.residual(at["a"][:, 0]))

    if matrices:
        return best_seconds(dense, repeats), float(np.abs(np.abs(dense()) - np.abs(recursion())).max() / np.abs(recursion()).max())
    return best_seconds(recursion, repeats), 0.0


@study("sections 2.12 and 3.3", "the recursion solves Newton's system in linear time, where the paper's matrices take a power of the size")
def matrix_and_recursion(report: Report) -> None:
    sizes, small = ((5, 10, 20, 40), 20) if report.quick else ((5, 10, 20, 40, 80, 160, 320, 640, 1280), 80)
    recursion, dense, rows, apart = {}, {}, [], 0.0
    for n in report.each(sizes, "size"):
        recursion[n] = directions(n, False, 5)[0]
        if n <= small:
            dense[n], difference = directions(n, True, 3)
            apart = max(apart, difference)
        rows.append((n, 1e6 * recursion[n], 1e6 * dense[n] if n in dense else "-", dense[n] / recursion[n] if n in dense else "-"))
    axis = report.axes("links", "time of a Newton direction / us")
    axis.loglog(list(recursion), [1e6 * t for t in recursion.values()], "o-", label="recursion")
    axis.loglog(list(dense), [1e6 * t for t in dense.values()], "s-", label="matrices (NumPy)")
    report.table(("links", "recursion / us", "matrices / us", "ratio"), rows)
    growth = [exponent({n: t for n, t in costs.items() if n >= 10}) for costs in (recursion, dense)]
    report.verdict(growth[0] < 1.25 and growth[1] > growth[0] + 0.5 and apart < 1e-8, f"recursion grows as n^{growth[0]:.2f}, matrices as n^{growth[1]:.2f} from 10 links on; directions agree to {apart:.0e}")
