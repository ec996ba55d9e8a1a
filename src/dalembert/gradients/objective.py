"""Values and gradients of a function of a run, for optimisers."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import GradientError
from dalembert.formulations.engine import Formulation
from dalembert.gradients.scenario import Scenario
from dalembert.mechanism.mechanism import Mechanism
from dalembert.simulation.simulation import Simulation
from dalembert.simulation.trajectory import Trajectory

#: what a loss gives: its value, and its derivatives by what the run gives, as ``Trajectory.vjp`` takes them
Loss = Callable[[Trajectory], tuple[float, Mapping[str, ArrayLike]]]


class ValueAndGradient:
    """``f(x) -> (value, gradient)`` of a loss of a run, with the numbers of all parameters in one vector; ``x0``: where they are now.

    ``scipy.optimize.minimize(f, f.x0, jac=True)``; ``values(x)`` gives a vector by names, ``run(x)`` the run, ``vector(values)`` a vector.
    """

    def __init__(self, scenario: Scenario, parameters: Sequence[str], loss: Loss, values: Mapping[str, ArrayLike] | None = None) -> None:
        self.scenario, self.loss = scenario, loss
        self.names = scenario.names(parameters)
        if not self.names:
            raise GradientError("value_and_gradient needs at least one parameter")
        given, sim = dict(values or {}), scenario.simulation({})
        self.x0 = self.vector({name.text: given[name.text] if name.text in given else scenario.value(name, sim) for name in self.names})

    def vector(self, values: Mapping[str, ArrayLike]) -> np.ndarray:
        """Values by name as one vector."""
        parts = []
        for name in self.names:
            value = np.asarray(values[name.text], dtype=float)
            if value.shape != name.shape:
                raise GradientError(f"the value of {name.text!r} must have shape {name.shape}, got {value.shape}")
            parts.append(value.ravel())
        return np.concatenate(parts)

    def values(self, x: ArrayLike) -> dict[str, np.ndarray]:
        """A vector as values by name."""
        numbers = np.asarray(x, dtype=float)
        sizes = [int(np.prod(name.shape)) for name in self.names]
        if numbers.shape != (sum(sizes),):
            raise GradientError(f"{len(self.names)} parameters have {sum(sizes)} numbers, got a vector of shape {numbers.shape}")
        parts = np.split(numbers, np.cumsum(sizes)[:-1])
        return {name.text: part.reshape(name.shape) for name, part in zip(self.names, parts)}

    def run(self, x: ArrayLike, *, tape: bool = False) -> Trajectory:
        """The run with these numbers."""
        return self.scenario.run(self.values(x), tape=tape)

    def __call__(self, x: ArrayLike) -> tuple[float, np.ndarray]:
        run = self.run(x, tape=True)
        value, cotangents = self.loss(run)
        gradients = run.vjp(cotangents, [name.text for name in self.names])
        return float(value), np.concatenate([gradients[name.text].ravel() for name in self.names])


def value_and_gradient(
    mechanism: Mechanism, formulation: Formulation, duration: float, parameters: Sequence[str], loss: Loss, *,
    setup: Callable[[Simulation], Any] | None = None, inputs: Mapping[str, ArrayLike] | None = None, values: Mapping[str, ArrayLike] | None = None,
    control: Callable[[Any], Any] | None = None, control_derivative: Any = "differences",
) -> ValueAndGradient:
    """A function of parameters for ``scipy.optimize.minimize(..., jac=True)``: the loss of a run, and its gradient by the adjoint.

    ``loss(run)`` gives its value and a dict of its derivatives by what the run gives ("position", "velocity", ...), as
    ``Trajectory.vjp`` takes them. ``setup(sim)``: sets joints, velocities and targets before the run; ``inputs``: {name: (steps, ...)};
    ``values``: where to begin, by name, by default where the mechanism is; ``control``, ``control_derivative``: as of ``Simulation.run``.
    """
    return ValueAndGradient(Scenario(mechanism, formulation, duration, setup, inputs, control=control, control_derivative=control_derivative), parameters, loss, values)
