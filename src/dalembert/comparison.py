"""Formulations side by side: one mechanism, all that can take it, ever smaller steps, and how far they differ."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle, pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from dalembert.errors import AssemblyError, DalembertError, StepFailure
from dalembert.formulations.engine import Formulation
from dalembert.formulations.implicit import Implicit
from dalembert.formulations.implicit.tableaus import MULTISTEP, TABLEAUS
from dalembert.formulations.reduced import Reduced
from dalembert.formulations.reduced.options import METHODS as REDUCED_METHODS
from dalembert.formulations.variational import Variational
from dalembert.simulation.simulation import Simulation

#: methods of each formulation
METHODS: dict[str, tuple[str, ...]] = {"variational": (), "implicit": (*MULTISTEP, *TABLEAUS, "semi_implicit"), "reduced": REDUCED_METHODS}
#: methods of the reduced formulation whose steps are those asked for: adaptive ones have no order, and baselines drift
COMPARED = (*MULTISTEP, *TABLEAUS, "linearly_implicit", "semi_implicit", "rk4")
#: every formulation and method by name, from a step (s)
CANDIDATES: dict[str, Callable[[float], Formulation]] = {
    "variational": lambda dt: Variational(dt=dt),
    **{f"implicit {method}": (lambda dt, method=method: Implicit(dt=dt, method=method)) for method in METHODS["implicit"]},
    **{f"reduced {method}": (lambda dt, method=method: Reduced(dt=dt, method=method)) for method in COMPARED},
}


@dataclass
class Column:
    """One formulation at all steps: positions at the common knots (None: it failed), and what its finest run was like."""

    name: str
    positions: list[np.ndarray | None] = field(default_factory=list)
    violation: float = np.nan
    energy: float = np.nan
    seconds: float = np.nan


@dataclass
class Comparison:
    """What ``compare`` found: ``steps`` (s), a column per formulation, and a line for each that cannot take the mechanism."""

    steps: list[float]
    columns: list[Column] = field(default_factory=list)
    refusals: dict[str, list[str]] = field(default_factory=dict)

    @property
    def complete(self) -> list[Column]:
        """Columns whose runs at all steps succeeded."""
        return [c for c in self.columns if len(c.positions) == len(self.steps) and all(x is not None for x in c.positions)]

    def reference(self) -> tuple[str, np.ndarray]:
        """The first complete column, extrapolated to dt = 0 with the order that its last three runs show."""
        column = next(iter(self.complete), None)
        if column is None:
            raise StepFailure("no formulation came to the end at all steps: there is nothing to compare; choose a smaller dt or duration")
        runs = [x for x in column.positions if x is not None]
        changes = [float(np.abs(b - a).max()) for a, b in pairwise(runs)]
        ratio = changes[-2] / changes[-1] if len(changes) > 1 and changes[-1] > 0.0 else 4.0
        return column.name, runs[-1] + (runs[-1] - runs[-2]) / (float(np.clip(ratio, 2.0, 4.0)) - 1.0)

    def differences(self) -> dict[str, list[float]]:
        """Largest difference of a position (m) from the reference at any common knot, for each formulation and step."""
        _, exact = self.reference()
        return {c.name: [np.nan if x is None else float(np.abs(x - exact).max()) for x in c.positions] for c in self.columns}

    def lines(self) -> Iterator[str]:
        """A table of the differences, with the order that they show, and of the runs with the smallest step."""
        name, _ = self.reference()
        yield f"largest difference of a position, in m, from {name} extrapolated to dt = 0"
        yield " " * 26 + "".join(f"{f'dt {dt:.3g}':>11}" for dt in self.steps) + f"{'order':>8}{'violation':>11}{'energy':>12}{'time':>9}"
        for column, errors in zip(self.columns, self.differences().values()):
            cells = "".join("     failed" if np.isnan(e) else f"{e:11.2e}" for e in errors) + " " * 11 * (len(self.steps) - len(errors))
            yield f"{column.name:26}{cells}{order(errors):>8}{column.violation:11.1e}{column.energy:+10.1e} J{column.seconds:7.2f} s"
        yield "violation (m or rad), change of the energy and time to run are those of the smallest step"

    def plot(self, title: str, path: str | Path | None = None) -> Any:
        """The differences over the step, with a triangle of slope 2; returns the Matplotlib figure."""
        from dalembert.view.plots import COLOURS, FAINT, INK, add_legend, finish_axis, finished, new_figure

        figure = new_figure(path)
        axis = figure.subplots()
        differences = self.differences()
        for (name, errors), colour, marker in zip(differences.items(), cycle(COLOURS), cycle("os^Dvp")):
            line = ":" if name.startswith("reduced") else "-"
            axis.loglog(self.steps[: len(errors)], np.maximum(errors, 1e-16), marker=marker, markersize=5, color=colour, linestyle=line, label=name)
        least = min((e for errors in differences.values() for e in errors if e > 0.0), default=1e-16)
        for slope in (1, 2):
            axis.loglog(self.steps, [0.5 * least * (dt / self.steps[-1]) ** slope for dt in self.steps], color=FAINT, linestyle="--", zorder=0)
            axis.annotate(f"order {slope}", (self.steps[0], 0.5 * least * (self.steps[0] / self.steps[-1]) ** slope), color=INK, fontsize=8, alpha=0.7, ha="right", va="top", xytext=(0, -7), textcoords="offset points")
        axis.set_xlabel("dt / s", color=INK)
        axis.set_xticks(self.steps, [f"{dt:.3g}" for dt in self.steps])
        axis.set_xticks([], minor=True)
        finish_axis(axis, "largest difference of a position / m")
        axis.margins(x=0.05)
        add_legend(axis)
        return finished(figure, title, path)


def order(errors: list[float]) -> str:
    """The order that errors at halved steps show between the first and the last but one, as text."""
    seen = errors[:-1] if len(errors) > 2 else errors
    if len(seen) < 2 or not (np.isfinite(seen).all() and seen[0] > 0.0 and seen[-1] > 1e-13):
        return "-"
    return f"{np.log2(seen[0] / seen[-1]) / (len(seen) - 1):.2f}"


def compare(start: Callable[[Formulation], Simulation], dt: float, halvings: int, duration: float) -> Comparison:
    """Run every formulation with ``dt``, dt/2, ...; ``start`` makes the simulation. Ctrl-C keeps what is complete."""
    result = Comparison([dt / 2**k for k in range(halvings + 1)])
    for name, formulation in CANDIDATES.items():
        column = Column(name)
        try:
            for k, step in enumerate(result.steps):
                column.positions.append(_run(start, formulation(step), column, duration, 2**k))
        except KeyboardInterrupt:
            break
        except DalembertError as error:
            result.refusals.setdefault(" ".join(str(error).split()), []).append(name)
            continue
        result.columns.append(column)
    return result


def _run(start: Callable[[Formulation], Simulation], formulation: Formulation, column: Column, duration: float, stride: int) -> np.ndarray | None:
    """Positions at every ``stride``-th knot, None when a step has no solution."""
    simulation = start(formulation)
    tick = perf_counter()
    try:
        trajectory = simulation.run(duration)
    except (StepFailure, AssemblyError):
        return None
    if len(trajectory) <= round(duration / formulation.dt):
        raise KeyboardInterrupt
    column.seconds = perf_counter() - tick
    column.violation, column.energy = float(trajectory.constraint_violation().max()), float(np.subtract(*trajectory.energy().total[[-1, 0]]))
    return trajectory.position[::stride]
