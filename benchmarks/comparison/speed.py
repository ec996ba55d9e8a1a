"""One problem at one step in all simulators: time per step, and what the step is worth: joints, ground, error."""
from __future__ import annotations

from typing import Any

from benchmarks.comparison.measure import quartiles
from benchmarks.comparison.problems import Problem
from benchmarks.comparison.workers import Crew, Failed, group_of
from benchmarks.peers import installed

#: what is timed of each simulator; the others are in the work-precision diagrams
METHODS = {
    "dalembert": ("Variational", "Implicit bdf2", "Reduced bdf2", "Reduced semi_implicit"), "MuJoCo": ("Euler", "implicitfast"),
    "Pinocchio": ("semi-implicit Euler",), "Drake": ("SAP",), "Exudyn": ("generalized alpha",), "PyBullet": ("semi-implicit Euler",),
}


def measure(crew: Crew, problem: Problem, rounds: int = 5, part: float = 1.0) -> dict[str, Any]:
    """A row of the table: per simulator and method, microseconds per step with quartiles, and what came out. ``part`` of the duration is run."""
    crew.renew()
    steps = max(1, round(problem.steps * part))
    about = crew.get("dalembert reference").ask("about", problem.name)
    reference = crew.get("dalembert reference").ask("exact", problem.name, steps * problem.dt)
    rows = [dict[str, Any](simulator=peer.name, method=method) for peer in installed() for method in METHODS[peer.name]]
    running = [row for row in rows if _begin(crew, problem, row, steps, reference)]
    seconds: dict[int, list[float]] = {id(row): [] for row in running}
    for number in range(rounds):  # in turns, every second round backwards: what else the machine does meets all alike
        for row in running if number % 2 == 0 else running[::-1]:
            try:
                seconds[id(row)].append(crew.get(group_of(row["simulator"], row["method"])).ask("spend", row["method"], steps))
            except Failed as error:
                row["failed"] = str(error)
    for row in (row for row in running if "failed" not in row):
        low, median, high = quartiles(seconds[id(row)])
        row |= dict(us=1e6 * median / steps, us_low=1e6 * low / steps, us_high=1e6 * high / steps)
    return dict(problem=problem.name, about=problem.about, dt=problem.dt, steps=steps, rounds=rounds, **about, rows=rows)


def _begin(crew: Crew, problem: Problem, row: dict[str, Any], steps: int, reference: Any) -> bool:
    """Build a model and look at a run of it; whether it can be timed."""
    worker, which = crew.get(group_of(row["simulator"], row["method"])), (problem.name, row["simulator"], row["method"])
    try:
        refusal = worker.ask("refuses", *which)
        if refusal is not None:
            row["refuses"] = refusal
            return False
        row |= worker.ask("build", row["method"], *which, problem.dt)
        row |= worker.ask("look", row["method"], steps, reference)
    except Failed as error:
        row["failed"] = str(error)
    return "failed" not in row and not row["diverged"]
