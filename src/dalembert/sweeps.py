"""Sweeps for the command line: a model run many times with other numbers, what is measured of each run, a table and a picture of it."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.checks import choices, counted
from dalembert.ensemble.ensemble import Ensemble
from dalembert.ensemble.many import run_many
from dalembert.ensemble.one_run import COMPONENT
from dalembert.errors import ModelError
from dalembert.formulations.engine import Formulation
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.parameters import list_parameters
from dalembert.simulation.simulation import Simulation
from dalembert.simulation.trajectory import Trajectory

#: what can be measured of a joint, behind its name and a dot
OF_JOINTS = {
    "rate": "at the end", "travel": "between its ends over the run", "force": "largest, N", "torque": "largest, N m", "actuation": "largest",
}
#: what can be measured of a whole run
OF_RUNS = {"energy": "at the end, J", "violation": "largest, m or rad"}
#: panels of a picture, and failures that are listed
MOST_PANELS, MOST_FAILURES = 4, 5


@dataclass(frozen=True)
class Measures:
    """What is kept of each run: "elbow" is a joint's coordinate at the end, "elbow.force" the largest force in it, and so on."""

    names: tuple[str, ...]

    def __call__(self, run: Trajectory) -> dict[str, Any]:
        return {name: _measured(run, name) for name in self.names}


def _measured(run: Trajectory, name: str) -> Any:
    if name in OF_RUNS and name not in run.joints:
        return run.energy().total[-1] if name == "energy" else run.constraint_violation().max()
    joint, what = (name, "") if name in run.joints else name.rsplit(".", 1)
    series = run.joint(joint)
    if what == "":
        return series.coordinates[-1]
    if what == "rate":
        return series.rates[-1]
    if what == "travel":
        return np.ptp(series.coordinates, axis=0)
    if what == "actuation":
        return np.abs(series.actuation).max(axis=0)
    return np.linalg.norm(getattr(series, what), axis=1).max()


def read_measures(mechanism: Mechanism, names: list[str]) -> Measures:
    """What is asked for, or the coordinates of all joints at the end; a ModelError for what cannot be measured."""
    free = [joint.name for joint in mechanism.joints if joint.type.freedom]
    known = [*(j.name for j in mechanism.joints), *(f"{j.name}.{what}" for j in mechanism.joints for what in OF_JOINTS), *OF_RUNS]
    for name in names:
        if name not in known:
            raise ModelError(f"--measure cannot measure {name!r}; {choices(name, known)}")
    return Measures(tuple(names or free or OF_RUNS))


def read_varied(mechanism: Mechanism, varied: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters and starts, told apart by what the mechanism has."""
    parameters, starts, known = {}, {}, list_parameters(mechanism, shifts=True)
    joints = {joint.name for joint in mechanism.joints}
    for name, values in varied.items():
        if name in known or ((part := COMPONENT.fullmatch(name)) and part.group(1) in known):
            parameters[name] = values
        elif name in joints or name.removesuffix(".rate") in joints:
            starts[name] = values
        else:
            raise ModelError(f"--vary: {mechanism.name!r} has no parameter or joint {name!r}; {choices(name, [*known, *joints])}")
    return parameters, starts


def read_values(text: str) -> list[float] | tuple[float, float]:
    """LOW:HIGH:COUNT and V,V,... are values, LOW:HIGH a range to draw from; a ValueError where it is none of these."""
    parts = text.split(":")
    if len(parts) == 1:
        values = [float(value) for value in text.split(",")]
    elif len(parts) == 2:
        values = [float(parts[0]), float(parts[1])]
    else:
        low, high, count = parts
        if not 1 <= int(count) <= 1_000_000:
            raise ValueError
        values = np.linspace(float(low), float(high), int(count)).tolist()
    if not np.isfinite(values).all():
        raise ValueError
    return (values[0], values[1]) if len(parts) == 2 else values


def sweep(
    mechanism: Mechanism, formulation: Formulation, duration: float, varied: Mapping[str, Any], measures: Measures, *, resolve: bool = False, **settings: Any,
) -> Ensemble:
    """Run the sweep. ``resolve``: move bodies apart that overlap at a start; ``settings`` go to ``run_many``."""
    parameters, starts = read_varied(mechanism, varied)
    return run_many(mechanism, formulation, duration, parameters=parameters, starts=starts, reduce=measures, prepare=_resolve if resolve else None, **settings)


def _resolve(simulation: Simulation, parameters: Mapping[str, Any]) -> None:
    simulation.resolve_overlaps()


def lines(ensemble: Ensemble) -> Iterator[str]:
    """What came out, for people."""
    done, failures = int(ensemble.successful.sum()), ensemble.failures
    left = len(ensemble) - done - len(failures)
    yield f"{ensemble.mechanism}, {ensemble.formulation}: {counted(done, 'run')} of {ensemble.duration:g} s" + (f", {left} not made" if left else "")
    if done:
        yield f"  {'':24}{'least':>12}{'mean':>12}{'largest':>12}"
    for name, values in _columns(ensemble) if done else ():
        seen = values[ensemble.successful]
        yield f"  {name:24}{seen.min():12.5g}{seen.mean():12.5g}{seen.max():12.5g}"
    if failures:
        yield f"{counted(len(failures), 'run')} failed:"
        yield from (f"  {failure}" for failure in failures[:MOST_FAILURES])
        if len(failures) > MOST_FAILURES:
            yield f"  and {len(failures) - MOST_FAILURES} more"


def _columns(ensemble: Ensemble) -> list[tuple[str, np.ndarray]]:
    """All measured numbers, each (runs,)."""
    found = []
    for name, values in ensemble.results.items():
        flat = values.reshape(len(ensemble), -1)
        found += [(name if values.ndim == 1 else f"{name}[{k}]", flat[:, k]) for k in range(flat.shape[1])]
    return found


def plot(ensemble: Ensemble, path: str | Path | None = None) -> Any:
    """What was measured over what was varied: points and their mean over one, a map over two, one after the other over more. Returns the figure."""
    from dalembert.view.plots import HEIGHT, WIDTH, finished, new_figure

    varied = {name: values for name, values in {**ensemble.parameters, **ensemble.starts}.items() if values.ndim == 1 and np.ptp(values) > 0.0}
    measured = _columns(ensemble)
    if not varied or not measured:
        raise ModelError("there is nothing to plot: no number was varied" if not varied else "there is nothing to plot: no run came to its end")
    panels = measured[:MOST_PANELS] if len(varied) <= 2 else measured[:1] * min(len(varied), MOST_PANELS)
    columns = 1 if len(panels) == 1 else 2
    rows = -(-len(panels) // columns)
    figure = new_figure(path, WIDTH * (1.0 if columns == 1 else 1.4), HEIGHT * (0.9 if rows == 1 else 1.5))
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for k, (axis, (name, values)) in enumerate(zip(axes, panels)):
        names = list(varied) if len(varied) <= 2 else [list(varied)[k]]
        if len(names) == 2:
            _map(figure, axis, ensemble, (names[0], varied[names[0]]), (names[1], varied[names[1]]), name, values)
        else:
            _points(axis, names[0], varied[names[0]], name, values)
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    return finished(figure, f"{ensemble.mechanism}: {counted(len(ensemble), 'run')}", path)


def _points(axis: Any, varied: str, x: np.ndarray, name: str, y: np.ndarray) -> None:
    from dalembert.view.plots import COLOURS, INK, finish_axis

    places, at, count = np.unique(x, return_inverse=True, return_counts=True)
    axis.plot(x, y, ".", color=COLOURS[0], markersize=4, alpha=0.7 if len(places) < len(x) else 1.0)
    if count.max() > 1 or np.allclose(np.diff(places), np.diff(places)[:1]):  # a grid
        seen = np.isfinite(y)
        sums, counts = np.bincount(at, np.where(seen, y, 0.0)), np.bincount(at, seen)
        axis.plot(places, np.where(counts > 0, sums / np.maximum(counts, 1), np.nan), color=COLOURS[1] if count.max() > 1 else COLOURS[0])
    axis.set_xlabel(varied, color=INK)
    finish_axis(axis, name)
    axis.margins(x=0.03)


def _map(figure: Any, axis: Any, ensemble: Ensemble, first: tuple[str, np.ndarray], second: tuple[str, np.ndarray], name: str, values: np.ndarray) -> None:
    from dalembert.view.plots import INK

    axes = ensemble.axes
    if set(axes) >= {first[0], second[0]}:  # a grid: the mean over samples and the axes of length one
        order = [name for name in axes if len(axes[name]) > 1]
        grid = values.reshape(len(axes[order[0]]), len(axes[order[1]]), -1)
        seen = np.isfinite(grid)
        mean = np.where(seen.any(axis=2), np.where(seen, grid, 0.0).sum(axis=2) / np.maximum(seen.sum(axis=2), 1), np.nan)
        x, y = (np.argsort(axes[name]) for name in order)
        drawn = axis.pcolormesh(axes[order[0]][x], axes[order[1]][y], mean[np.ix_(x, y)].T, shading="nearest", cmap="viridis")
        first, second = (order[0], first[1]), (order[1], second[1])
    else:
        drawn = axis.scatter(first[1], second[1], c=values, s=10, cmap="viridis")
    axis.set_xlabel(first[0], color=INK)
    axis.set_ylabel(second[0], color=INK)
    axis.tick_params(colors=INK, labelsize=9)
    figure.colorbar(drawn, ax=axis, label=name)
