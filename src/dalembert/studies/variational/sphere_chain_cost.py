"""A chain of spheres that falls on the ground: the cost of a thousand steps by their number, and how far they sink in."""
from __future__ import annotations

import numpy as np

import dalembert as da
from dalembert.errors import MissingExtraError
from dalembert.studies.baselines.mujoco import load_mujoco, sphere_chain
from dalembert.studies.cost import exponent, step_costs
from dalembert.studies.study import Report, study

DT, RADIUS = 0.01, 0.25


def mujoco_depth(n: int, steps: int) -> float:
    """How far MuJoCo's spheres sink into the ground, m; nan where it gives up."""
    mujoco, (model, data) = load_mujoco(), sphere_chain(n, DT)
    least = np.inf
    for _ in range(steps):
        mujoco.mj_step(model, data)
        least = min(least, float(data.xpos[1:, 2].min()) - RADIUS)
    lost = any(data.warning[kind].number for kind in (mujoco.mjtWarning.mjWARN_BADQACC, mujoco.mjtWarning.mjWARN_BADQPOS))
    return np.nan if lost else max(0.0, -least)


@study("figure 8b", "an iteration for a chain of spheres with a contact each takes linear time in their number, and none sinks into the ground")
def sphere_chain_cost(report: Report) -> None:
    sizes, steps = ((5, 10, 20), 100) if report.quick else ((5, 10, 20, 40, 60), 300)
    costs = step_costs(report, {n: lambda n=n: da.Simulation(da.zoo.sphere_chain(n), da.Variational(dt=DT)) for n in sizes}, steps, 2)
    rows = []
    for n in report.each(sizes):
        run = da.Simulation(da.zoo.sphere_chain(n), da.Variational(dt=DT)).run(steps * DT, progress=False)
        depth = max(0.0, RADIUS - float(run.position[:, :, 2].min()))
        try:
            theirs: float | str = mujoco_depth(n, steps)
        except MissingExtraError:
            theirs = "not installed"
        rows.append((n, 1e3 * costs[n], run.iterations[1:].mean(), depth, theirs))
        if n == 20:
            report.page(run)
    report.table(("spheres", "seconds for 1000 steps", "iterations", "sunk in / m", "sunk in with MuJoCo / m"), rows)
    axis = report.axes("spheres", "computation time of 1000 steps / s")
    axis.plot(sizes, [row[1] for row in rows], "o-", label="variational")
    power, each = exponent(costs), exponent({row[0]: row[1] / row[2] for row in rows})
    depth = max(row[3] for row in rows)
    report.verdict(each < 1.2 and depth < 1e-6, f"seconds grow as n^{each:.2f} per iteration, and n^{power:.2f} in all, since there are more of them; deepest {depth:.1e} m")
