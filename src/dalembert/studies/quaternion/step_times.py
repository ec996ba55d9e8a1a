"""What a step of the paper's examples costs, and what the solver for fully constrained mechanisms saves."""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import dalembert as da
from dalembert.studies.cost import step_costs
from dalembert.studies.study import Report, study
from dalembert.view.plots import COLOURS
from dalembert.zoo.drives import DriveMotion


class Case(NamedTuple):
    """A row of the paper's table: step in s, and its milliseconds."""

    make: Callable[[], da.Mechanism]
    dt: float
    solver: str
    paper: float
    motion: Callable[[], DriveMotion] | None = None
    steps: int = 50


CASES = {
    "T-handle": Case(da.zoo.t_handle, 1e-3, "general", 0.037, steps=400),
    "spinning top": Case(da.zoo.spinning_top, 1e-4, "general", 0.045, steps=400),
    "Hoberman sphere": Case(lambda: da.zoo.hoberman_sphere(spin=3.0), 0.01, "general", 1138.03, steps=4),
    "satellite": Case(da.zoo.solar_panel_satellite, 0.033, "general", 7.75, da.zoo.deployment),
    "figure (Iron Man), general": Case(da.zoo.animatronic_figure, 0.033, "general", 26.89, da.zoo.figure_motion),
    "figure (Iron Man), fully constrained": Case(da.zoo.animatronic_figure, 0.033, "kinematic", 4.19, da.zoo.figure_motion),
    "character (Gazelle), general": Case(da.zoo.character, 0.01, "general", 3.55, da.zoo.character_motion),
    "character (Gazelle), fully constrained": Case(da.zoo.character, 0.01, "kinematic", 0.84, da.zoo.character_motion),
    "character (Gazelle), force drives without torques": Case(lambda: da.zoo.character(drive="force"), 0.01, "general", 6.11, steps=10),
}
SLOW = ("Hoberman sphere",)


def prepared(case: Case) -> da.Simulation:
    """Its simulation, with the motion that drives it."""
    sim = da.Simulation(case.make(), da.Implicit(dt=case.dt, solver=case.solver), energy_bound=None)
    for name, target in (case.motion() if case.motion else {}).items():
        sim.set_target(name, target)
    return sim


@study("table 6", "fully constrained mechanisms are stepped several times faster by kinematics first and forces after")
def step_times(report: Report) -> None:
    cost: dict[str, float] = {}
    for name, case in CASES.items():
        if not (report.quick and name in SLOW):
            steps = case.steps
            cost |= step_costs(report, {name: lambda case=case: prepared(case)}, steps=steps, repeats=2 if report.quick else 4, inside=True)
    axis = report.axes("step in the paper / ms", "step here / ms")
    for k, (name, seconds) in enumerate(cost.items()):
        axis.loglog(CASES[name].paper, 1e3 * seconds, "os"[k // len(COLOURS)], label=name)
    axis.plot((0.02, 2000.0), (0.02, 2000.0), color="#999999", linewidth=0.8)
    report.table(("example", "step / s", "ms for a step", "paper / ms"), [(name, CASES[name].dt, 1e3 * seconds, CASES[name].paper) for name, seconds in cost.items()])
    gains = {who: cost[f"{who}, general"] / cost[f"{who}, fully constrained"] for who in ("figure (Iron Man)", "character (Gazelle)")}
    report.verdict(min(gains.values()) > 2.0, "; ".join(f"{who} {gain:.1f} times faster (paper: {CASES[f'{who}, general'].paper / CASES[f'{who}, fully constrained'].paper:.1f})" for who, gain in gains.items()))
