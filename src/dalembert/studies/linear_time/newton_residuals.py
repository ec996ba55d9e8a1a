"""What Newton's method leaves of a step's equations, iteration by iteration, for pendulums of 1, 10 and 100 links."""
from __future__ import annotations

import numpy as np

import dalembert as da
from dalembert.studies.study import Report, study

DT, TOLERANCE = 0.01, 1e-10


@study("figure 4d", "Newton's method converges within a few iterations, with 1, 10 and 100 links alike")
def newton_residuals(report: Report) -> None:
    sizes = (1, 10, 100)
    axis = report.axes("iteration", "residual / m/s")
    rows, counts, ends, most = [], {}, [], 0
    for n in report.each(sizes):
        sim = da.Simulation(da.zoo.pendulum(n), da.Variational(dt=DT, tolerance=TOLERANCE))
        history = sim.run(0.2 if report.quick else 2.0, progress=False, residuals=True).residuals
        ends += [row[np.isfinite(row)][-1] for row in history[1:]]
        most = max(most, int(np.isfinite(history).sum(axis=1).max()) - 1)
        for when, row in (("first step", history[1]), ("in motion", history[-1])):
            residuals = row[np.isfinite(row)]
            rows += [(n, when, k, residual) for k, residual in enumerate(residuals)]
            counts[n, when] = len(residuals) - 1
            axis.semilogy(np.maximum(residuals, 1e-16), "o-" if when == "first step" else "s:", label=f"{n} links, {when}")
    axis.axhline(TOLERANCE, color="0.6")
    axis.set_xticks(range(max(counts.values()) + 1))
    report.table(("links", "step", "iteration", "residual / m/s"), rows)
    report.verdict(
        max(counts.values()) <= 6 and most <= 8 and max(ends) < TOLERANCE,
        f"iterations for a residual below {TOLERANCE:g} m/s: {', '.join(f'{count} with {n} links ({when})' for (n, when), count in counts.items())}; in all steps {most} at most",
    )
