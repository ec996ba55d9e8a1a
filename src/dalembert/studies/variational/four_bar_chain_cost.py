"""Chains of four-bar segments, loop after loop: the cost of a thousand steps, beside what dense matrices would take."""
from __future__ import annotations

import numpy as np

import dalembert as da
from dalembert.studies.cost import best_seconds, exponent, step_costs
from dalembert.studies.study import Report, study

DT = 0.01


def dense_seconds(unknowns: int) -> float:
    """To factor and solve a full matrix with so many unknowns, once."""
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(unknowns, unknowns)) + unknowns * np.eye(unknowns), rng.normal(size=unknowns)
    return best_seconds(lambda: np.linalg.solve(A, b), 3)


@study("figure 9a", "the cost of a chain of four-bar loops grows nearly linearly, where dense matrices would take the third power")
def four_bar_chain_cost(report: Report) -> None:
    sizes, steps = ((1, 4, 8), 50) if report.quick else ((1, 2, 4, 8, 16, 24), 200)
    costs = step_costs(report, {n: lambda n=n: da.Simulation(da.zoo.four_bar_chain(n), da.Variational(dt=DT)) for n in sizes}, steps, 3)
    rows = []
    for n in report.each(sizes):
        chain = da.zoo.four_bar_chain(n)
        run = da.Simulation(chain, da.Variational(dt=DT)).run(steps * DT, progress=False)
        iterations = float(run.iterations[1:].mean())
        unknowns = 6 * len(chain.bodies) + 5 * len(chain.joints)
        rows.append((n, 1e3 * costs[n], iterations, unknowns, 1e3 * iterations * dense_seconds(unknowns), run.constraint_violation().max()))
        if n == 4:
            report.page(run)
    report.table(("segments", "seconds for 1000 steps", "iterations", "unknowns", "dense solves alone / s", "violation / m"), rows)
    axis = report.axes("four-bar segments", "computation time of 1000 steps / s")
    axis.set(xscale="log", yscale="log")
    axis.plot(sizes, [row[1] for row in rows], "o-", label="variational, graph-based")
    axis.plot(sizes, [row[4] for row in rows], "o--", label="dense solves alone")
    power, last = exponent(costs), rows[-1]
    report.verdict(
        power < 1.4 and last[4] > 2.0 * last[1] and max(row[5] for row in rows) < 1e-8,
        f"seconds grow as n^{power:.2f}; at {last[0]} segments {last[1]:.2g} s for 1000 steps, dense solves alone {last[4]:.2g} s",
    )
