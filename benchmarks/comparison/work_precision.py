"""Error by cost: every method of every simulator at many steps, against an exact or converged solution.

    python -m benchmarks.comparison.work_precision            # all six problems, minutes
    python -m benchmarks.comparison.work_precision --quick    # two of them, coarsely

``make bench`` does the same and writes docs/benchmarks.md.
"""
from __future__ import annotations

import argparse
import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.comparison.measure import quartiles
from benchmarks.comparison.problems import PROBLEMS
from benchmarks.comparison.workers import Crew, Failed, group_of
from benchmarks.peers import installed
from benchmarks.peers.ours import ADAPTIVE
from dalembert.io.whole import write_whole

#: at which all are compared, m
ERROR = 1e-3
#: no smaller error is looked for, m
SMALLEST = 1e-7
#: no run takes longer than about this, s
LONGEST = 0.3
#: accuracies that adaptive methods are asked for
ACCURACIES = tuple(10.0**-k for k in range(1, 12))
#: of other simulators
THEIR_ADAPTIVE = {"Drake": ("RK3", "RK5", "Radau3")}


@dataclass(frozen=True)
class Task:
    """A problem over ``duration`` (s), from ``coarsest`` steps (s) on, each half of the one before."""

    title: str
    problem: str
    duration: float
    coarsest: float


TASKS = (
    Task("pendulum chain", "chain 10", 2.0, 0.05),
    Task("five-bar", "five-bar", 2.0, 0.05),
    Task("double four-bar", "double four-bar", 3.0, 0.05),
    Task("heavy top", "heavy top", 1.0, 0.01),
    Task("robot in the air", "A1 in the air", 2.0, 0.05),
    Task("box sliding to a stop", "sliding box", 1.0, 0.05),
)


@dataclass
class Point:
    """One run of a method: its step or accuracy, the error at the end (m), and what it cost (s)."""

    key: Any
    steps: int
    dt: float
    accuracy: float | None
    error: float
    seconds: list[float]


def measure(crew: Crew, task: Task, rounds: int = 3, longest: float = LONGEST) -> dict[str, Any]:
    """All curves of a problem. A method is refined until a run takes ``longest`` (s) or the error is small."""
    crew.renew()
    reference = crew.get("dalembert reference").ask("exact", task.problem, task.duration)
    curves = []
    for peer in installed():
        for method in peer.methods:
            worker = crew.get(group_of(peer.name, method))
            curve: dict[str, Any] = dict(simulator=peer.name, method=method)
            curves.append(curve)
            refusal = worker.ask("refuses", task.problem, peer.name, method)
            if refusal is not None:
                curve["refuses"] = refusal
            else:
                curve["points"] = _refine(crew, task, peer.name, method, reference, longest)
    running = [(curve, point) for curve in curves for point in curve.get("points", ())]
    for number in range(rounds - 1):  # the first one was made on the way
        for curve, point in running if number % 2 else running[::-1]:
            with contextlib.suppress(Failed):  # it went well once, which is what counts then
                point.seconds.append(crew.get(group_of(curve["simulator"], curve["method"])).ask("spend", point.key, point.steps))
    for curve in curves:
        if "points" in curve:
            curve["points"] = [_written(point) for point in curve["points"]]
            curve["at_error"] = cost_at(curve["points"])
    return dict(problem=task.title, model=task.problem, about=PROBLEMS[task.problem].about, duration=task.duration, rounds=rounds, curves=curves)


def _refine(crew: Crew, task: Task, peer: str, method: str, reference: Any, longest: float) -> list[Point]:
    """Runs with smaller and smaller steps. Steps that are too coarse for a method are left out."""
    adaptive = method in THEIR_ADAPTIVE.get(peer, ()) or (peer == "dalembert" and method.split()[-1] in ADAPTIVE)
    points: list[Point] = []
    for level in range(len(ACCURACIES) if adaptive else 20):
        accuracy = ACCURACIES[level] if adaptive else None
        steps = 1 if adaptive else round(task.duration / task.coarsest) * 2**level
        dt, key = task.duration / steps, (method, level)
        worker = crew.get(group_of(peer, method))
        try:
            worker.ask("build", key, task.problem, peer, method, dt, *(() if accuracy is None else (accuracy,)))
            seconds = worker.ask("spend", key, steps)
            error = worker.ask("error", key, reference)
        except Failed:
            continue
        if not np.isfinite(error):
            continue
        points.append(Point(key, steps, dt, accuracy, error, [seconds]))
        if error < SMALLEST or seconds > longest or (seconds > 0.5 * longest and not adaptive):
            break
    return points


def _written(point: Point) -> dict[str, Any]:
    low, median, high = quartiles(point.seconds)
    step = dict(dt=point.dt) if point.accuracy is None else dict(accuracy=point.accuracy)
    return dict(**step, error=point.error, ms=1e3 * median, ms_low=1e3 * low, ms_high=1e3 * high)


def cost_at(points: list[dict[str, Any]], error: float = ERROR) -> dict[str, Any] | None:
    """What a method costs (ms) at an error: between two runs by a straight line in logarithms; the coarsest run, if that is good enough already.

    None where no run is that good, or where runs after the first good one are not, so that there is no telling.
    """
    good = [point["error"] <= error for point in points]
    if not any(good):
        return None
    first = next((k for k in range(len(points)) if all(good[k:])), None)
    if first is None:
        return None
    here = points[first]
    if first == 0 or not points[first - 1]["error"] > error:
        return dict(ms=here["ms"], **{k: here[k] for k in ("dt", "accuracy") if k in here})
    before = points[first - 1]
    share = np.log(before["error"] / error) / np.log(before["error"] / here["error"])
    between = {k: float(before[k] ** (1 - share) * here[k] ** share) for k in ("ms", "dt", "accuracy") if k in here}
    return between


def ranking(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The methods that reach the error, the cheapest first."""
    reached = [dict(simulator=c["simulator"], method=c["method"], **c["at_error"]) for c in result["curves"] if c.get("at_error")]
    return sorted(reached, key=lambda row: row["ms"])


def measure_all(crew: Crew, quick: bool = False) -> list[dict[str, Any]]:
    results = []
    for task in TASKS[1:4:2] if quick else TASKS:
        print(f"work-precision: {task.title}", flush=True)
        results.append(measure(crew, task, rounds=1, longest=0.02) if quick else measure(crew, task))
        for row in ranking(results[-1])[:4]:
            print(f"  {row['ms']:9.2f} ms  {row['simulator']} {row['method']}", flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description="error by cost of all simulators on six problems")
    parser.add_argument("--quick", action="store_true", help="two problems, coarsely")
    parser.add_argument("--out", type=Path, default=Path("out"), help="the folder for work_precision.json and work_precision.png")
    chosen = parser.parse_args()
    with Crew() as crew:
        results = measure_all(crew, chosen.quick)
    from benchmarks.comparison.pictures import draw_work_precision

    chosen.out.mkdir(parents=True, exist_ok=True)
    with write_whole(chosen.out / "work_precision.json") as temporary:
        temporary.write_text(json.dumps(results, indent=1), encoding="utf-8")
    draw_work_precision(results, chosen.out / "work_precision.png")
    print(f"written: {chosen.out / 'work_precision.json'}, {chosen.out / 'work_precision.png'}")


if __name__ == "__main__":
    main()
