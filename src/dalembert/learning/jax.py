"""Rollouts as differentiable functions of JAX arrays: callbacks with a derivative of their own, also inside ``jit`` and ``vmap``."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import GradientError, MissingExtraError
from dalembert.formulations.engine import Formulation
from dalembert.learning.rollout import Arrays, Rollout
from dalembert.mechanism.mechanism import Mechanism
from dalembert.simulation.simulation import Simulation

#: an array of JAX
Array = Any


def rollout(
    mechanism: Mechanism, formulation: Formulation, duration: float, outputs: Sequence[str] = ("position",), *,
    setup: Callable[[Simulation], Any] | None = None, inputs: Mapping[str, ArrayLike] | None = None, gradient_smoothing: float = 0.0,
) -> Callable[[Mapping[str, Array]], dict[str, Array]]:
    """``duration`` seconds of a mechanism as a function of arrays, for ``jax.grad``, ``jax.jit`` and ``jax.vmap``.

    ``f(values)`` takes {parameter: array}, by the names that ``Trajectory.vjp`` knows ("elbow.damping", "shoulder.start",
    "elbow.input", ...), and gives {output: array} with the knots first: "position", "velocity", "angular_velocity" (N, bodies, 3),
    "orientation" (N, bodies, 4), "coordinate", "rate" (N, joints, 6), "energy", "kinetic", "potential" (N,). More axes
    before a parameter's own are a batch, of which there is a run each; values without them hold for all of it. Runs are in double
    precision; what goes in and comes out is rounded to JAX's own, single unless ``jax_enable_x64`` is set.

    ``setup(sim)``: sets joints, velocities and targets before each run; ``inputs``: {name: (steps, ...)}, where they are no values;
    ``gradient_smoothing`` (m/s): as for ``Trajectory.vjp``.
    """
    jax = _jax()
    host = _Host(Rollout(mechanism, formulation, duration, outputs, setup=setup, inputs=inputs, smoothing=gradient_smoothing))

    def forward(values: Mapping[str, Array], tape: bool) -> dict[str, Array]:
        batch, kind = host.rollout.batch({name: value.shape for name, value in values.items()}), jax.numpy.result_type(float)
        shapes = {name: jax.ShapeDtypeStruct(batch + host.rollout.output_shape(name), kind) for name in host.rollout.outputs}
        return jax.pure_callback(host.taped if tape else host.plain, shapes, values, vmap_method="sequential")

    @jax.custom_vjp
    def run(values: Mapping[str, Array]) -> dict[str, Array]:
        return forward(values, False)

    def pull(values: Mapping[str, Array], bars: Mapping[str, Array]) -> tuple[dict[str, Array]]:
        shapes = {name: jax.ShapeDtypeStruct(value.shape, value.dtype) for name, value in values.items()}
        return (jax.pure_callback(host.pull, shapes, values, bars, vmap_method="sequential"),)

    run.defvjp(lambda values: (forward(values, True), values), pull)

    def call(values: Mapping[str, Array]) -> dict[str, Array]:
        if not values:
            raise GradientError("a rollout needs at least one value, such as {'elbow.damping': 0.1}")
        return run({name: jax.numpy.asarray(value, dtype=float) for name, value in values.items()})

    return call


class _Host:
    """What JAX calls back. The tapes of the last forward pass are kept for the backward pass that comes next, if it is of the same values."""

    def __init__(self, plain: Rollout) -> None:
        self.rollout = plain
        self.kept: tuple[bytes, Any] = b"", None

    def plain(self, values: Mapping[str, Array]) -> dict[str, np.ndarray]:
        numbers = _numbers(values)
        return _single(self.rollout.read(self.rollout.run(numbers, tape=False), numbers), values)

    def taped(self, values: Mapping[str, Array]) -> dict[str, np.ndarray]:
        numbers = _numbers(values)
        return _single(self.rollout.read(self._runs(numbers), numbers), values)

    def pull(self, values: Mapping[str, Array], bars: Mapping[str, Array]) -> dict[str, np.ndarray]:
        numbers = _numbers(values)
        found = self.rollout.pull(self._runs(numbers), numbers, _numbers(bars), list(numbers))
        return {name: found[name].astype(np.asarray(values[name]).dtype) for name in found}

    def _runs(self, numbers: Arrays) -> Any:
        key = repr([(name, value.shape) for name, value in numbers.items()]).encode() + b"".join(value.tobytes() for value in numbers.values())
        if self.kept[0] != key:
            self.kept = key, self.rollout.run(numbers, tape=True)
        return self.kept[1]


def _numbers(values: Mapping[str, Array]) -> dict[str, np.ndarray]:
    return {name: np.asarray(value, dtype=float) for name, value in values.items()}


def _single(found: dict[str, np.ndarray], values: Mapping[str, Array]) -> dict[str, np.ndarray]:
    """In the precision of the values, which is JAX's."""
    kind = np.result_type(*(np.asarray(value).dtype for value in values.values()))
    return {name: array.astype(kind) for name, array in found.items()}


def _jax() -> Any:
    try:
        import jax  # pyright: ignore[reportMissingImports]
        import jax.numpy  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise MissingExtraError("rollouts of JAX arrays need JAX: pip install dalembert[jax]") from None
    return jax
