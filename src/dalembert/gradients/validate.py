"""Is a gradient right? Adjoint, forward sensitivities and differences of the run itself, side by side."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import AssemblyError, GradientError, ModelError
from dalembert.formulations.beside import FINE, STEP, TOUCHING
from dalembert.formulations.engine import Formulation
from dalembert.gradients.adjoint import FORCES, output_shape, record_of
from dalembert.gradients.names import Name, all_names
from dalembert.gradients.scenario import Scenario
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.parameters import list_parameters
from dalembert.simulation.simulation import Simulation
from dalembert.simulation.trajectory import Trajectory

#: what is weighed
SMOOTH = ("position", "orientation", "velocity", "angular_velocity", "coordinate", "rate", "energy")
#: fourth-order differences: offsets and weights
OFFSETS = ((1.0, 8.0 / 12.0), (-1.0, -8.0 / 12.0), (2.0, -1.0 / 12.0), (-2.0, 1.0 / 12.0))
#: part of the terms that are weighed that a derivative is compared with, where it is smaller itself; more of forces, as what Newton's
#: method leaves of impulses is divided by the step in them
LEAST, LEAST_OF_FORCES = 1e-5, 1e-3
#: runs beside a run, last digits of the mechanism's numbers off; how many times the most that they move a derivative ``agrees`` grants, and
#: how many bars at the most
BESIDE, GRANTED, MOST = 3, 5.0, 100.0


@dataclass(frozen=True)
class GradientRow:
    """The derivative of a weighed sum of a run's outputs along one random change of one parameter, in three ways.

    NaN where there is none: ``forward`` away from zero, ``difference`` where no such mechanism can be assembled. ``rounding``, ``difference_rounding``: how
    far last digits of the mechanism's numbers move the adjoint and the difference, relative; zero unless that was asked for.
    """

    name: str
    adjoint: float
    forward: float
    difference: float
    scale: float
    rounding: float = 0.0
    difference_rounding: float = 0.0

    @property
    def forward_error(self) -> float:
        """Adjoint against forward, relative."""
        return abs(self.adjoint - self.forward) / self.scale

    @property
    def difference_error(self) -> float:
        """Adjoint against differences of the run, relative."""
        return abs(self.adjoint - self.difference) / self.scale

    def agrees(self, forward: float = 1e-9, differences: float = 1e-6) -> bool:
        """Whether both errors are below two bars, or below five times what last digits move, but never above a hundred bars."""
        errors = (self.forward_error, forward, self.rounding), (self.difference_error, differences, self.difference_rounding)
        return all(not error > bar + min(GRANTED * rounding, MOST * bar) for error, bar, rounding in errors)


@dataclass(frozen=True)
class GradientCheck:
    """What ``validate_gradients`` found, a row per parameter."""

    rows: tuple[GradientRow, ...]

    @property
    def forward_error(self) -> float:
        """The largest relative difference of adjoint and forward sensitivities."""
        return float(np.nanmax([0.0, *(row.forward_error for row in self.rows)]))

    @property
    def difference_error(self) -> float:
        """The largest relative difference of the adjoint and differences of the run."""
        return float(np.nanmax([0.0, *(row.difference_error for row in self.rows)]))

    def agrees(self, forward: float = 1e-9, differences: float = 1e-6) -> bool:
        """Whether all errors are below two bars; where ``rounding=True`` found that last digits move a derivative, below five times as much, up to a hundred bars."""
        return all(row.agrees(forward, differences) for row in self.rows)

    def __str__(self) -> str:
        head = f"{'parameter':36} {'adjoint':>14} {'forward':>10} {'differences':>12}"
        lines = [f"{r.name:36} {r.adjoint:14.6e} {r.forward_error:10.1e} {r.difference_error:12.1e}" for r in self.rows]
        if any(row.rounding or row.difference_rounding for row in self.rows):
            head += f" {'by last digits':>16}"
            lines = [f"{line} {row.rounding:7.1e}, {row.difference_rounding:7.1e}" for line, row in zip(lines, self.rows)]
        return "\n".join([head, *lines])


def validate_gradients(
    mechanism: Mechanism, formulation: Formulation, parameters: Sequence[str] | None = None, *, steps: int = 10,
    setup: Callable[[Simulation], Any] | None = None, inputs: Mapping[str, ArrayLike] | None = None,
    values: Mapping[str, ArrayLike] | None = None, directions: Mapping[str, ArrayLike] | None = None,
    outputs: Sequence[str] = SMOOTH, seed: int = 0, step: float = 1e-3, forward: bool = True, differences: bool = True,
    control: Callable[[Any], Any] | None = None, control_derivative: Any = "differences", gradient_smoothing: float = 0.0, rounding: bool = False,
) -> GradientCheck:
    """Compare, for each parameter along a random change, the adjoint with forward sensitivities and with differences of the run.

    ``parameters``: names, all that the mechanism has by default; ``setup(sim)`` sets the start; ``inputs``: {name: (steps, ...)};
    ``values``: of targets; ``directions``: changes of parameters to take in place of random ones, such as those that a loop allows;
    ``outputs``: what of the run is weighed, at all knots, with random weights from ``seed``; with "force" and "torque" among them, the
    noise of forward sensitivities is that of positions over dt^2; ``step``: of the differences, as part of
    a number or in m and rad; ``control``, ``control_derivative``: as of ``Simulation.run``; ``gradient_smoothing`` (m/s): as for
    ``Trajectory.vjp``; smoothed derivatives are not those of the run, and are compared with forward sensitivities alone; ``rounding``: find
    by how much last digits of the mechanism's numbers move the derivatives, which no two ways to compute them agree better than.
    """
    scenario = Scenario(mechanism, formulation, steps * formulation.dt, setup, inputs, checked=False, control=control, control_derivative=control_derivative)
    names = scenario.names(all_names(mechanism) if parameters is None else parameters)
    random = np.random.default_rng(seed)
    base = {name: np.asarray(value, dtype=float) for name, value in (values or {}).items()}
    run = scenario.run(base, tape=True)
    cotangents = {name: random.normal(size=output_shape(run, name)) for name in outputs}
    engine = record_of(run).engine
    # where rows are redundant, only least-norm forces are functions of the parameters
    drive_weight = engine.drive_weight if getattr(engine, "compliance", 0.0) > 0.0 else None
    gradients = run.vjp(cotangents, [name.text for name in names], gradient_smoothing=gradient_smoothing)
    differences = differences and gradients.smoothing == 0.0
    beside = [scenario.run(values, tape=True) for values in _last_digits(mechanism, base, seed)] if rounding else []
    moved = [one.vjp(cotangents, [name.text for name in names], gradient_smoothing=gradient_smoothing) for one in beside]
    here = _weighed(run, cotangents, run.orientation, drive_weight)
    noise = max((abs(_weighed(one, cotangents, run.orientation, drive_weight) - here) for one in beside), default=0.0)
    rows = []
    for name in names:
        given = (directions or {}).get(name.text)
        change = _direction(mechanism, name, random) if given is None else np.asarray(given, dtype=float).reshape(name.shape)
        adjoint = float(np.sum(gradients[name.text] * change))
        tangent, scale = (_forward(run, cotangents, name, change, gradient_smoothing) if forward else (np.nan, 0.0))
        difference, part = np.nan, np.inf
        if differences:
            value = base[name.text] if name.text in base else scenario.value(name, scenario.simulation(base))
            part = _share(name, value, change, step)
            difference = _difference(scenario, {**base, name.text: value}, run.orientation, cotangents, name, change, part, drive_weight)
        scale = max(scale, *(abs(v) for v in (adjoint, tangent, difference) if np.isfinite(v)), _fineness(name) * _size(run, cotangents), 1e-300)
        off = max((abs(float(np.sum(one[name.text] * change)) - adjoint) for one in moved), default=0.0)
        rows.append(GradientRow(name.text, adjoint, tangent, difference, scale, off / scale, noise / part / scale))
    return GradientCheck(tuple(rows))


def _last_digits(mechanism: Mechanism, base: Mapping[str, np.ndarray], seed: int) -> list[dict[str, np.ndarray]]:
    """Values of all numbers of a mechanism, up to two units of their last digits off."""
    random = np.random.default_rng(seed)
    numbers = {name: np.asarray(base.get(name, parameter.value), dtype=float) for name, parameter in list_parameters(mechanism).items()}
    return [{**base, **{name: value * (1.0 - random.integers(3) * np.finfo(float).eps) for name, value in numbers.items()}} for _ in range(BESIDE)]


def _direction(mechanism: Mechanism, name: Name, random: np.random.Generator) -> np.ndarray:
    """A random change of a parameter, about as large as itself."""
    change = random.normal(size=name.shape)
    if name.kind != "model":
        if name.what == "target":  # the first one is where it is
            change[0] = 0.0
        return change
    value = np.asarray(list_parameters(mechanism, shifts=True)[name.text].value)
    if name.what == "inertia":
        root = np.linalg.cholesky(value)
        return root @ (change + change.T) @ root.T * 0.3
    if name.what.startswith(("point", "position", "centre")):
        return 0.1 * change
    return change if name.what.startswith("turn") or not np.all(value) else change * np.abs(value)


def _weighed(run: Trajectory, cotangents: Mapping[str, np.ndarray], reference: np.ndarray, drive_weight: float | None) -> float:
    """The weighed sum of what a run gives; orientations relative to a reference."""
    from dalembert.formulations.maximal.forward import turn_between

    return sum(
        float(np.sum(weights * (turn_between(reference, run.orientation) if name == "orientation" else read_output(run, name, drive_weight))))
        for name, weights in cotangents.items()
    )


def read_output(run: Trajectory, name: str, drive_weight: float | None = None) -> np.ndarray:
    """What a run gives under the name of a cotangent; with a ``drive_weight``, least-norm forces."""
    if name in ("energy", "kinetic"):
        return run.energy().total if name == "energy" else run.energy().kinetic
    if name in FORCES and drive_weight is not None and run._least_norm is not None:
        return run._least_norm(None, drive_weight, np.arange(len(run)))[name]
    return getattr(run, name) if name in ("position", "velocity", "angular_velocity") else run._get(name)


def _size(run: Trajectory, cotangents: Mapping[str, np.ndarray]) -> float:
    """What counts as small: a part of how large the terms of the weighed sum are."""
    return sum(
        (LEAST_OF_FORCES if name in FORCES else LEAST) * float(np.sum(np.abs(weights * (1.0 if name == "orientation" else read_output(run, name)))))
        for name, weights in cotangents.items()
    )


def _fineness(name: Name) -> float:
    """How much smaller than elsewhere the steps of forward sensitivities are, by sizes and places of what touches: as much larger is their noise."""
    return STEP / FINE if name.kind == "model" and name.what in TOUCHING else 1.0


def _forward(run: Trajectory, cotangents: Mapping[str, np.ndarray], name: Name, change: np.ndarray, smoothing: float) -> tuple[float, float]:
    """The derivative by forward sensitivities, and the size of the terms that it is the sum of (their squares added)."""
    try:
        tangents = run.jvp({name.text: change}, gradient_smoothing=smoothing)
    except (GradientError, AssemblyError):
        return np.nan, 0.0
    value = sum(float(np.sum(weights * tangents[output])) for output, weights in cotangents.items())
    size = sum(float(np.sum((weights * tangents[output]) ** 2)) for output, weights in cotangents.items())
    return value, float(np.sqrt(size))


def _difference(
    scenario: Scenario, values: Mapping[str, np.ndarray], reference: np.ndarray, cotangents: Mapping[str, np.ndarray], name: Name, change: np.ndarray,
    part: float, drive_weight: float | None,
) -> float:
    """The derivative by differences of the run, whose orientations are near ``reference``; ``part``: of the change."""
    try:
        return sum(
            weight / part * _weighed(scenario.run({**values, name.text: values[name.text] + offset * part * change}), cotangents, reference, drive_weight)
            for offset, weight in OFFSETS
        )
    except (AssemblyError, ModelError):
        return np.nan


def _share(name: Name, value: np.ndarray, change: np.ndarray, step: float) -> float:
    """The part of a change that differences take as their step."""
    size = float(np.abs(change).max(initial=0.0))
    return step / max(size if name.kind != "model" or name.what.startswith(("point", "position", "turn", "centre")) else _part(value, change), 1e-300)


def _part(value: np.ndarray, change: np.ndarray) -> float:
    """How large a change is beside a number."""
    if value.shape == (3, 3):
        return float(np.abs(np.linalg.eigvals(np.linalg.solve(value, change))).max())
    moved = np.abs(change) > 0.0
    sizes = np.abs(value[moved]) if value.ndim else np.abs(value)
    return float(np.max(np.abs(change[moved] if value.ndim else change) / np.where(sizes > 0.0, sizes, 1.0), initial=0.0))
