"""A snake of 2 to 100 rods on balls, with a contact point at every end: the cost of a step and the gaps."""
from __future__ import annotations

import dalembert as da
from dalembert.studies.cost import exponent, step_costs
from dalembert.studies.study import Report, study


@study("figure 5", "the cost of a step grows linearly with the number of links, each with its contact point, and none goes below the ground")
def snake_contacts(report: Report) -> None:
    links = [2, 10, 40] if report.quick else [2, 5, 10, 20, 30, 40, 50, 60, 80, 100]
    make = {n: lambda n=n: da.Simulation(da.zoo.snake(n, height=0.0), da.Variational(dt=1e-3)) for n in links}
    cost = step_costs(report, make, steps=50, repeats=2 if report.quick else 5)
    least, open_by = {}, {}
    for n in links[:: 1 if report.quick else 3]:
        run = da.Simulation(da.zoo.snake(n, height=0.05), da.Variational(dt=2e-3)).run(0.3, progress=False)
        least[n], open_by[n] = run.contacts().least_gap().min(), run.constraint_violation().max()
        if n <= 20:
            report.page(run)
    axis = report.axes("links n, with n + 1 contact points", "time of a step / us")
    axis.plot(links, [1e6 * cost[n] for n in links], "o-", label="dalembert")
    report.table(("links", "contact points", "step / us", "us per link"), [(n, n + 1, 1e6 * cost[n], 1e6 * cost[n] / n) for n in links])
    report.table(("links", "least gap / m", "joints open by / m"), [(n, least[n], open_by[n]) for n in least], name="gaps")
    power = exponent({n: cost[n] for n in links if n >= 10})
    report.verdict(power < 1.3 and min(least.values()) > -1e-9, f"cost grows as n^{power:.2f} from 10 links on; least gap {min(least.values()):.0e} m")
