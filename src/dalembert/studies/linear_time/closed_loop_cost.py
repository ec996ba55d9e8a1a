"""Chains of n links that close one loop with the world: the cost of a thousand steps, with hinges and with balls."""
from __future__ import annotations

import dalembert as da
from dalembert.studies.baselines.runge_kutta import RungeKutta
from dalembert.studies.cost import best_seconds, exponent, step_costs
from dalembert.studies.study import Report, study
from dalembert.view.plots import COLOURS

DT = 0.01
LINES = {"revolute": "--", "spherical": "-"}


def explicit_seconds(n: int, joint: str) -> float:
    """Of one step of an explicit integrator in joint coordinates, at the start; its loop is a dense matrix."""
    method = RungeKutta(da.zoo.n_link_loop(n, joint), "rk4", DT)
    return best_seconds(lambda: method.step(*method.start), 2)


@study("figure 5b", "with a single closed loop the cost still grows linearly with the number of links, and balls cost less than hinges")
def closed_loop_cost(report: Report) -> None:
    sizes, steps = ((5, 20, 60), 50) if report.quick else ((4, 8, 16, 32, 64, 128), 200)
    pairs = [(joint, n) for joint in LINES for n in sizes]
    found = step_costs(report, {(joint, n): lambda joint=joint, n=n: da.Simulation(da.zoo.n_link_loop(n, joint), da.Variational(dt=DT)) for joint, n in pairs}, steps, 3)
    axis = report.axes("links", "computation time of 1000 steps / s")
    axis.set(xscale="log", yscale="log")
    costs = {joint: {n: 1e3 * found[joint, n] for n in sizes} for joint in LINES}
    rows, violation = [], 0.0
    for joint, line in LINES.items():
        explicit = {n: 1e3 * explicit_seconds(n, joint) for n in report.each([n for n in sizes if n <= 64])}
        axis.plot(sizes, list(costs[joint].values()), f"o{line}", color=COLOURS[0], label=f"variational, {joint}")
        axis.plot(list(explicit), list(explicit.values()), f"s{line}", color=COLOURS[1], label=f"Runge-Kutta-Munthe-Kaas 4, {joint}")
        rows += [(joint, n, each, explicit.get(n, "")) for n, each in costs[joint].items()]
        run = da.Simulation(da.zoo.n_link_loop(sizes[1], joint), da.Variational(dt=DT)).run(steps * DT, progress=False)
        violation = max(violation, float(run.constraint_violation().max()))
    report.page(run)
    report.table(("joint", "links", "seconds for 1000 steps", "explicit, joint coordinates"), rows)
    powers = {joint: exponent({n: each for n, each in costs[joint].items() if n >= 8}) for joint in LINES}
    last = {joint: costs[joint][sizes[-1]] for joint in LINES}
    report.verdict(
        max(powers.values()) < 1.35 and last["spherical"] < last["revolute"] and violation < 1e-8,
        f"seconds grow as n^{powers['revolute']:.2f} with hinges and n^{powers['spherical']:.2f} with balls; {last['revolute']:.2g} and {last['spherical']:.2g} s at {sizes[-1]} links; violation {violation:.0e} m",
    )
