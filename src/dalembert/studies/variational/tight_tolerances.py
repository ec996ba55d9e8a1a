"""Pendulums of n links with ever tighter tolerances: who still finds its steps.

Tolerances are of what each integrator solves: impulses by mass of single links, in m/s, against momenta of hinges that carry all links beyond
them, in N m s. The latter grow with the cube of the number of links, and what rounding leaves of them grows along. Those in minimal coordinates are asked
for sixty steps, before the chain cracks like a whip, where any integrator has to divide steps of this length; ours, which does, for a thousand.
"""
from __future__ import annotations

import warnings
from time import process_time

import dalembert as da
from dalembert.errors import TurnWarning
from dalembert.studies.baselines.galerkin import MinimalPendulum, NoRootError
from dalembert.studies.cost import step_costs
from dalembert.studies.study import Report, study
from dalembert.view.plots import COLOURS

DT = 0.01
TOLERANCES = (1e-6, 1e-8, 1e-10)


def maximal_run(n: int, tolerance: float, steps: int) -> da.Trajectory:
    """So many steps of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TurnWarning)  # a whip turns far within a step
        return da.Simulation(da.zoo.pendulum(n), da.Variational(dt=DT, tolerance=tolerance)).run(steps * DT, progress=False)


def minimal_steps(n: int, order: int, tolerance: float, steps: int) -> tuple[int, float, float]:
    """Steps that an integrator in minimal coordinates makes before it fails; its iterations and its seconds per step, which are those of plain NumPy."""
    pendulum, done, begun = MinimalPendulum(n, order, DT, tolerance), 0, process_time()
    try:
        while done < steps:
            pendulum.step()
            done += 1
    except NoRootError:
        pass  # what the study is about
    return done, pendulum.iterations / max(done, 1), (process_time() - begun) / max(done, 1)


@study("figure 10", "tight tolerances are met at any number of links, where variational integrators in minimal coordinates fail with many links")
def tight_tolerances(report: Report) -> None:
    sizes, steps = ((5, 20, 100), 10) if report.quick else ((2, 5, 10, 20, 50, 100), 60)
    cases = [(tolerance, n) for tolerance in TOLERANCES for n in sizes]
    costs = step_costs(report, {(t, n): lambda t=t, n=n: da.Simulation(da.zoo.pendulum(n), da.Variational(dt=DT, tolerance=t)) for t, n in cases}, 50 if report.quick else 100, 2)
    rows, failed = [], []
    for tolerance, n in report.each(cases):
        run = maximal_run(n, tolerance, 50 if report.quick else 1000)
        divided = int((run.substeps[1:] > 1).sum())
        rows.append(("variational", tolerance, n, len(run) - 1, "all", float(run.iterations[1:].mean()), divided, 1e3 * costs[tolerance, n]))
        for order in (2, 3):
            done, iterations, seconds = minimal_steps(n, order, tolerance, steps)
            rows.append((f"minimal, order {order}", tolerance, n, done, "all" if done == steps else "fails", iterations, "", 1e3 * seconds))
            if done < steps:
                failed.append((order, tolerance, n))
    report.table(("integrator", "tolerance", "links", "steps made", "of those asked", "iterations", "divided steps", "seconds for 1000 steps"), rows)
    colours = dict(zip(("variational", "minimal, order 2", "minimal, order 3"), COLOURS))
    for axis, tolerance in zip(report.panels(1, 3, width=12.0), TOLERANCES):
        for name, colour in colours.items():
            mine = [row for row in rows if row[:2] == (name, tolerance)]
            axis.loglog([row[2] for row in mine if row[4] == "all"], [row[7] for row in mine if row[4] == "all"], "o-", color=colour, label=name.split(", ")[-1].replace("variational", "ours"))
            axis.loglog([row[2] for row in mine if row[4] == "fails"], [row[7] for row in mine if row[4] == "fails"], "x", color=colour, markersize=9, clip_on=False)  # fails
        axis.set(xlabel=f"links, tolerance {tolerance:.0e}", ylabel="time of 1000 steps / s" if tolerance == TOLERANCES[0] else "")
    tight = {order: min((n for o, t, n in failed if o == order and t == 1e-10), default=None) for order in (2, 3)}
    loose = [n for _, t, n in failed if t == 1e-6]
    report.verdict(
        None not in tight.values() and len(loose) < len([n for _, t, n in failed if t == 1e-10]),
        f"ours makes all steps at 1e-10 up to {sizes[-1]} links, {max(row[6] for row in rows if row[0] == 'variational')} of {len(run) - 1} divided at most; those of order 2 and 3 in minimal coordinates fail there from {tight[2]} and {tight[3]} links on "
        f"({'never' if not loose else f'from {min(loose)}'} at 1e-6)",
    )
