"""A chain of n links that a single coordinate bends: by a map of coordinates, and by n - 1 gears as constraints."""
from __future__ import annotations

import numpy as np

import dalembert as da
from dalembert.studies.cost import step_costs
from dalembert.studies.study import Report, study


def chain(n: int, mapped: bool) -> da.Mechanism:
    """``n`` rods of 1/n m along x, every hinge bent by the same angle."""
    mechanism = da.zoo.pendulum(n, length=1.0 / n, mass=1.0 / n, radius=0.02)
    names = [joint.name for joint in mechanism.joints]
    if mapped:
        mechanism.coordinate_map("bend", names, matrix=np.ones(n))
        mechanism.start("bend", 0.1 / n, rate=1.0 / n)
        return mechanism
    for k, name in enumerate(names):
        mechanism.start(name, 0.1 / n, rate=1.0 / n)
        if k:
            mechanism.gear(f"gear {k}", name, names[0], ratio=1.0)
    return mechanism


@study("section 2.6", "hyper-reduced coordinates give the motion of the constrained chain without its constraints, at a lower cost")
def hyper_reduced_chain(report: Report) -> None:
    sizes = (4, 8) if report.quick else (2, 4, 8, 16, 32)
    make = {(n, mapped): lambda n=n, mapped=mapped: da.Simulation(chain(n, mapped), da.Reduced(dt=0.002)) for n in sizes for mapped in (True, False)}
    cost = step_costs(report, make, steps=100, repeats=3)
    rows, apart, uneven = [], [], []
    for n in sizes:
        runs = {mapped: da.Simulation(chain(n, mapped), da.Reduced(dt=0.002, tolerance=1e-12)).run(0.6, progress=False) for mapped in (True, False)}
        apart.append(np.abs(runs[True].position - runs[False].position).max())
        turns = {mapped: np.array([run.joint(f"joint {k + 1}").coordinates for k in range(n)]) for mapped, run in runs.items()}
        uneven.append(np.ptp(turns[True], axis=0).max())
        rows.append((n, 1e6 * cost[n, True], 1e6 * cost[n, False], cost[n, False] / cost[n, True], apart[-1], uneven[-1], np.ptp(turns[False], axis=0).max()))
    report.page(runs[True])
    axis = report.axes("links", "time of a step / us")
    for mapped, name in ((True, "one coordinate"), (False, "gears")):
        axis.loglog(sizes, [1e6 * cost[n, mapped] for n in sizes], "o-", label=name)
    report.table(("links", "one coordinate, step / us", "gears, step / us", "ratio", "apart / m", "joints differ by / rad", "with gears / rad"), rows)
    report.verdict(
        max(apart) < 1e-6 and max(uneven) < 1e-12 and cost[sizes[-1], True] < cost[sizes[-1], False],
        f"motions differ by {max(apart):.0e} m; at {sizes[-1]} links gears cost {cost[sizes[-1], False] / cost[sizes[-1], True]:.1f} times as much",
    )
