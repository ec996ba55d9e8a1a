"""A cylinder that falls on 2 to 100 contact points: the cost of a step and the gaps."""
from __future__ import annotations

import numpy as np

import dalembert as da
from dalembert.studies.cost import exponent, step_costs
from dalembert.studies.study import Report, study


@study("figure 4", "the cost of a step grows linearly with the number of contact points, and none of them goes below the ground")
def cylinder_contacts(report: Report) -> None:
    counts = [2, 10, 30, 100] if report.quick else [2, 4, 6, 8, 10, *range(20, 101, 10)]
    make = {c: lambda c=c: da.Simulation(da.zoo.contact_cylinder(c, height=0.0), da.Variational(dt=1e-3)) for c in counts}
    cost = step_costs(report, make, steps=100, repeats=3 if report.quick else 20)
    least = {}
    for count in counts:  # a fall, an impact on all points at once and rest
        run = da.Simulation(da.zoo.contact_cylinder(count), da.Variational(dt=1e-3)).run(0.2, progress=False)
        least[count] = run.contacts().least_gap().min()
    report.page(run)
    axis = report.axes("contact points", "time of a step / us")
    axis.plot(counts, [1e6 * cost[c] for c in counts], "o-", label="dalembert")
    slope, ground = np.polyfit(counts, [cost[c] for c in counts], 1)
    axis.plot(counts, 1e6 * (ground + slope * np.array(counts)), "--", label="straight line")
    report.table(("contact points", "step / us", "least gap / m"), [(c, 1e6 * cost[c], least[c]) for c in counts])
    power = exponent({c: cost[c] for c in counts if c >= 10})
    report.verdict(power < 1.3 and min(least.values()) > -1e-9, f"cost grows as c^{power:.2f} from 10 points on, {1e6 * slope:.2f} us for each; least gap {min(least.values()):.0e} m")
