"""A single Newton step of pendulums with n links: sparse as the mechanism is, against a dense matrix of the same unknowns."""
from __future__ import annotations

import numpy as np

import dalembert as da
from dalembert.studies.cost import best_seconds, exponent, step_costs
from dalembert.studies.study import Report, study

DT = 0.01


def dense_seconds(unknowns: int) -> float:
    """To factor and solve a full matrix with so many unknowns."""
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(unknowns, unknowns)) + unknowns * np.eye(unknowns), rng.normal(size=unknowns)
    return best_seconds(lambda: np.linalg.solve(A, b), 3)


@study("figure 4c", "a sparse Newton step takes linear time in the number of links, a dense one close to the third power")
def sparse_step(report: Report) -> None:
    sizes, steps = ((5, 20, 80), 100) if report.quick else ((2, 5, 10, 20, 50, 100, 200), 300)
    costs = step_costs(report, {n: lambda n=n: da.Simulation(da.zoo.pendulum(n), da.Variational(dt=DT)) for n in sizes}, steps, 3)
    sparse, dense, rows = {}, {}, []
    for n in report.each(sizes):
        iterations = float(da.Simulation(da.zoo.pendulum(n), da.Variational(dt=DT)).run(steps * DT, progress=False).iterations[1:].mean())
        sparse[n], dense[n] = costs[n] / iterations, dense_seconds(11 * n)
        rows.append((n, 11 * n, 1e6 * sparse[n], 1e6 * dense[n], dense[n] / sparse[n]))
    report.table(("links", "unknowns", "sparse, with its equations / us", "dense, solve alone / us", "dense by sparse"), rows)
    axis = report.axes("links", "time of a Newton step / s")
    axis.set(xscale="log", yscale="log")
    axis.plot(sizes, list(sparse.values()), "o-", label="sparse")
    axis.plot(sizes, list(dense.values()), "o--", label="dense")
    powers = [exponent({n: each for n, each in costs.items() if n >= 20}) for costs in (sparse, dense)]
    report.verdict(
        powers[0] < 1.3 and powers[1] > 1.7 and rows[-1][4] > 5.0,
        f"from 20 links on seconds grow as n^{powers[0]:.2f} sparse and n^{powers[1]:.2f} dense; at {sizes[-1]} links sparse is {rows[-1][4]:.0f} times faster",
    )
