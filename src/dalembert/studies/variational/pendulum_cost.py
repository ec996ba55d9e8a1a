"""Pendulums of n links: the cost of a thousand steps, with hinges and with balls, beside an explicit integrator in joint coordinates and MuJoCo."""
from __future__ import annotations

from contextlib import suppress

import dalembert as da
from dalembert.errors import MissingExtraError
from dalembert.studies.baselines.mujoco import load_mujoco, pendulum
from dalembert.studies.baselines.runge_kutta import RungeKutta
from dalembert.studies.cost import best_seconds, exponent, step_costs
from dalembert.studies.study import Report, study
from dalembert.view.plots import COLOURS

DT = 0.01
LINES = {"revolute": "-", "spherical": "--"}
OURS, EXPLICIT, MUJOCO = "variational", "Runge-Kutta-Munthe-Kaas 4", "MuJoCo"


def explicit_seconds(n: int, joint: str) -> float:
    """Of one step of the explicit integrator, at the start."""
    method = RungeKutta(da.zoo.pendulum(n, joint), "rk4", DT)
    return best_seconds(lambda: method.step(*method.start), 3)


def mujoco_seconds(n: int, joint: str, steps: int) -> float:
    """Of one step of MuJoCo."""
    mujoco, (model, data) = load_mujoco(), pendulum(n, joint, DT)

    def once() -> None:
        mujoco.mj_resetData(model, data)
        mujoco.mj_step(model, data, steps)

    return best_seconds(once, 3) / steps


@study("figure 8a", "the cost of a step grows linearly with the number of links, and balls cost less than hinges")
def pendulum_cost(report: Report) -> None:
    sizes, steps = ((5, 20, 80), 50) if report.quick else ((2, 5, 10, 20, 50, 100, 200), 200)
    axis = report.axes("links", "computation time of 1000 steps / s")
    axis.set(xscale="log", yscale="log")
    pairs = [(joint, n) for joint in LINES for n in sizes]
    ours = step_costs(report, {(joint, n): lambda joint=joint, n=n: da.Simulation(da.zoo.pendulum(n, joint), da.Variational(dt=DT)) for joint, n in pairs}, steps, 3)
    seconds: dict[tuple[str, str], dict[int, float]] = {}
    for joint, n in report.each(pairs):
        found = {OURS: ours[joint, n], EXPLICIT: explicit_seconds(n, joint)}
        with suppress(MissingExtraError):  # shown without it
            found[MUJOCO] = mujoco_seconds(n, joint, min(steps, 50))
        for method, each in found.items():
            seconds.setdefault((method, joint), {})[n] = 1e3 * each
    rows = []
    for (method, joint), found in seconds.items():
        axis.plot(list(found), list(found.values()), LINES[joint], label=f"{method}, {joint}", color=COLOURS[[OURS, EXPLICIT, MUJOCO].index(method)])
        rows += [(method, joint, n, each) for n, each in found.items()]
    report.table(("method", "joint", "links", "seconds for 1000 steps"), rows)
    last = sizes[-1]
    powers = {joint: exponent({n: each for n, each in seconds[OURS, joint].items() if n >= 10}) for joint in LINES}
    largest = {joint: seconds[OURS, joint][last] for joint in LINES}
    ratio = {joint: largest[joint] / seconds[EXPLICIT, joint][last] for joint in LINES}
    report.verdict(
        max(powers.values()) < 1.35 and largest["spherical"] < largest["revolute"],
        f"seconds grow as n^{powers['revolute']:.2f} with hinges and n^{powers['spherical']:.2f} with balls; at n = {last} "
        f"{largest['revolute']:.2g} s and {largest['spherical']:.2g} s, {ratio['revolute']:.2g} and {ratio['spherical']:.2g} times the explicit method's",
    )
