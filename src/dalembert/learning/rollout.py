"""Whole runs as functions of arrays, with their transposed derivatives: what the wrappers for PyTorch and JAX share."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import GradientError
from dalembert.formulations.engine import Formulation
from dalembert.gradients.adjoint import FORCES, OUTPUTS, PER_BODY, PER_JOINT
from dalembert.gradients.names import Name
from dalembert.gradients.scenario import Scenario
from dalembert.mechanism.mechanism import Mechanism
from dalembert.simulation.simulation import Simulation
from dalembert.simulation.trajectory import Trajectory

Arrays = Mapping[str, np.ndarray]
Index = tuple[int, ...]


class Rollout:
    """Runs of a mechanism as a function of values by name: {parameter: array} to {output: array}.

    A value has the parameter's shape, or more axes before it: a batch, of which there is a run each. Values with fewer axes hold for
    all of it, and what comes out has those axes first. Double precision throughout.
    """

    def __init__(
        self, mechanism: Mechanism, formulation: Formulation, duration: float, outputs: Sequence[str], *,
        setup: Callable[[Simulation], Any] | None, inputs: Mapping[str, ArrayLike] | None, smoothing: float = 0.0,
    ) -> None:
        wrong = [name for name in ([outputs] if isinstance(outputs, str) else outputs) if name not in OUTPUTS]
        if isinstance(outputs, str) or wrong or not outputs:
            raise GradientError(f"outputs of a rollout must be a list of names from {', '.join(OUTPUTS)}, got {outputs!r}")
        self.scenario = Scenario(mechanism.snapshot(), formulation, duration, setup, inputs)
        self.outputs, self.smoothing = tuple(outputs), smoothing

    def output_shape(self, name: str) -> tuple[int, ...]:
        """Shape of what one run gives under a name: knots first; orientations are quaternions."""
        knots, mechanism = self.scenario.steps + 1, self.scenario.mechanism
        if name in PER_BODY:
            return knots, len(mechanism.bodies), 4 if name == "orientation" else 3
        if name in PER_JOINT:
            return knots, len(mechanism.joints), 6
        return (knots, len(mechanism.joints), 3) if name in FORCES else (knots,)

    def batch(self, shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
        """The axes of a batch, from shapes of values."""
        leads = []
        for name in self._names(shapes):
            shape, own = tuple(shapes[name.text]), len(name.shape)
            if len(shape) < own or shape[len(shape) - own :] != name.shape:
                raise GradientError(f"the value of {name.text!r} must have shape {name.shape}, with axes of a batch before it or none, got {shape}")
            leads.append(shape[: len(shape) - own])
        try:
            return np.broadcast_shapes(*leads)
        except ValueError:
            raise GradientError(f"the axes of the batch disagree: {dict(zip(shapes, leads))}") from None

    def run(self, values: Arrays, *, tape: bool) -> dict[Index, Trajectory]:
        """A run for each element of the batch, by its index; with a tape for ``pull``, where that is asked for."""
        return {index: self.scenario.run(one, tape=tape) for index, one in self._each(values)}

    def read(self, runs: Mapping[Index, Trajectory], values: Arrays) -> dict[str, np.ndarray]:
        """What the runs give, the axes of the batch first."""
        batch = self.batch({name: value.shape for name, value in values.items()})
        found = {name: np.zeros(batch + self.output_shape(name)) for name in self.outputs}
        for index, run in runs.items():
            for name, array in found.items():
                array[index] = _read(run, name)
        return found

    def pull(self, runs: Mapping[Index, Trajectory], values: Arrays, bars: Arrays, wanted: Sequence[str]) -> dict[str, np.ndarray]:
        """Gradients by the wanted values, each of its value's shape, from derivatives by what the runs give."""
        batch, names = self.batch({name: value.shape for name, value in values.items()}), {name.text: name for name in self._names(wanted)}
        whole = {name: np.zeros(batch + names[name].shape) for name in wanted}
        for index, run in runs.items():
            cotangents = {name: _as_tangent(run, bar[index]) if name == "orientation" else bar[index] for name, bar in bars.items()}
            for name, gradient in run.vjp(cotangents, list(wanted), gradient_smoothing=self.smoothing).items():
                whole[name][index] = gradient
        return {name: _sum_to(gradient, values[name].shape) for name, gradient in whole.items()}

    def _names(self, names: Any) -> list[Name]:
        return self.scenario.names(list(names))

    def _each(self, values: Arrays) -> Iterator[tuple[Index, dict[str, np.ndarray]]]:
        shapes = {name.text: name.shape for name in self._names(values)}
        batch = self.batch({name: value.shape for name, value in values.items()})
        spread = {name: np.broadcast_to(value, batch + shapes[name]) for name, value in values.items()}
        for index in np.ndindex(*batch):
            yield index, {name: np.array(value[index], dtype=float) for name, value in spread.items()}


def _read(run: Trajectory, name: str) -> np.ndarray:
    if name in ("energy", "kinetic", "potential"):
        return getattr(run.energy(), "total" if name == "energy" else name)
    return run._get(name)


def _as_tangent(run: Trajectory, bar: np.ndarray) -> np.ndarray:
    """A derivative by quaternions (N, n, 4) as one by body-frame tangents (N, n, 3): d q = q (0, tangent) / 2."""
    w, x, y, z = np.moveaxis(run.orientation, -1, 0)
    a, b, c, d = np.moveaxis(bar, -1, 0)
    return 0.5 * np.stack([-x * a + w * b + z * c - y * d, -y * a - z * b + w * c + x * d, -z * a + y * b - x * c + w * d], axis=-1)


def _sum_to(gradient: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Summed over the axes along which a value was repeated."""
    gradient = gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))
    repeated = tuple(axis for axis, (have, want) in enumerate(zip(gradient.shape, shape)) if want == 1 and have != 1)
    return gradient.sum(axis=repeated, keepdims=True) if repeated else gradient
