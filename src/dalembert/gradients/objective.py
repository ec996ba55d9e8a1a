"""Values and gradients of a function of a run, residuals and their Jacobian: for optimisers."""
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
#: what residuals give: their values (m,), and a function from changes of what the run gives, as ``Trajectory.jvp`` has them, to theirs (m,)
Residuals = Callable[[Trajectory], tuple[ArrayLike, Callable[[Mapping[str, np.ndarray]], ArrayLike]]]


class OfParameters:
    """A run as a function of one vector, the numbers of all its parameters in a row; ``x0``: where they are now.

    ``values(x)`` gives a vector by names, ``vector(values)`` a vector, ``run(x)`` the run.
    """

    def __init__(self, scenario: Scenario, parameters: Sequence[str], values: Mapping[str, ArrayLike] | None = None) -> None:
        self.scenario = scenario
        self.names = scenario.names(parameters)
        if not self.names:
            raise GradientError("an objective needs at least one parameter")
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


class ValueAndGradient(OfParameters):
    """``f(x) -> (value, gradient)`` of a loss of a run: ``scipy.optimize.minimize(f, f.x0, jac=True)``."""

    def __init__(
        self, scenario: Scenario, parameters: Sequence[str], loss: Loss, values: Mapping[str, ArrayLike] | None = None, smoothing: float = 0.0,
    ) -> None:
        super().__init__(scenario, parameters, values)
        self.loss, self.smoothing = loss, smoothing

    def __call__(self, x: ArrayLike) -> tuple[float, np.ndarray]:
        run = self.run(x, tape=True)
        value, cotangents = self.loss(run)
        gradients = run.vjp(cotangents, [name.text for name in self.names], gradient_smoothing=self.smoothing)
        return float(value), np.concatenate([gradients[name.text].ravel() for name in self.names])


class ResidualsAndJacobian(OfParameters):
    """``r(x) -> (m,)`` of a run and ``r.jacobian(x) -> (m, n)``: ``scipy.optimize.least_squares(r, r.x0, jac=r.jacobian)``."""

    def __init__(
        self, scenario: Scenario, parameters: Sequence[str], residuals: Residuals, values: Mapping[str, ArrayLike] | None = None,
        smoothing: float = 0.0,
    ) -> None:
        super().__init__(scenario, parameters, values)
        self.residuals, self.smoothing = residuals, smoothing
        self._last: tuple[np.ndarray, Trajectory] | None = None

    def _taped(self, x: ArrayLike) -> Trajectory:
        """The run with a tape; the Jacobian is asked for where the residuals were, and runs nothing again."""
        numbers = np.array(x, dtype=float)
        if self._last is None or not np.array_equal(self._last[0], numbers):
            self._last = numbers, self.run(numbers, tape=True)
        return self._last[1]

    def __call__(self, x: ArrayLike) -> np.ndarray:
        return np.asarray(self.residuals(self._taped(x))[0], dtype=float).ravel()

    def jacobian(self, x: ArrayLike) -> np.ndarray:
        """Column by column: forward sensitivities along each number."""
        run = self._taped(x)
        _, change = self.residuals(run)
        columns = []
        for name in self.names:
            for index in np.ndindex(*name.shape):
                direction = np.zeros(name.shape)
                direction[index] = 1.0
                columns.append(np.asarray(change(run.jvp({name.text: direction}, gradient_smoothing=self.smoothing)), dtype=float).ravel())
        return np.stack(columns, axis=1)


def residuals_and_jacobian(
    mechanism: Mechanism, formulation: Formulation, duration: float, parameters: Sequence[str], residuals: Residuals, *,
    setup: Callable[[Simulation], Any] | None = None, inputs: Mapping[str, ArrayLike] | None = None, values: Mapping[str, ArrayLike] | None = None,
    control: Callable[[Any], Any] | None = None, control_derivative: Any = "differences", gradient_smoothing: float = 0.0,
) -> ResidualsAndJacobian:
    """Residuals of a run as a function of parameters for ``scipy.optimize.least_squares(r, r.x0, jac=r.jacobian)``.

    ``residuals(run)`` gives their values (m,), and a function that turns a change of what the run gives, a dict with "position",
    "coordinate", ... as ``Trajectory.jvp`` has them, into the change (m,) of the values. The rest is as in ``value_and_gradient``.
    """
    scenario = Scenario(mechanism, formulation, duration, setup, inputs, control=control, control_derivative=control_derivative)
    return ResidualsAndJacobian(scenario, parameters, residuals, values, gradient_smoothing)


def value_and_gradient(
    mechanism: Mechanism, formulation: Formulation, duration: float, parameters: Sequence[str], loss: Loss, *,
    setup: Callable[[Simulation], Any] | None = None, inputs: Mapping[str, ArrayLike] | None = None, values: Mapping[str, ArrayLike] | None = None,
    control: Callable[[Any], Any] | None = None, control_derivative: Any = "differences", gradient_smoothing: float = 0.0,
) -> ValueAndGradient:
    """A function of parameters for ``scipy.optimize.minimize(..., jac=True)``: the loss of a run, and its gradient by the adjoint.

    ``loss(run)`` gives its value and a dict of its derivatives by what the run gives ("position", "velocity", ...), as
    ``Trajectory.vjp`` takes them. ``setup(sim)``: sets joints, velocities and targets before the run; ``inputs``: {name: (steps, ...)};
    ``values``: where to begin, by name, by default where the mechanism is; ``control``, ``control_derivative``: as of ``Simulation.run``;
    ``gradient_smoothing`` (m/s): as for ``Trajectory.vjp``, values are those of the run itself.
    """
    scenario = Scenario(mechanism, formulation, duration, setup, inputs, control=control, control_derivative=control_derivative)
    return ValueAndGradient(scenario, parameters, loss, values, gradient_smoothing)
