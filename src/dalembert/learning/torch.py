"""Rollouts as differentiable functions of PyTorch tensors."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import GradientError, MissingExtraError
from dalembert.formulations.engine import Formulation
from dalembert.learning.rollout import Rollout
from dalembert.mechanism.mechanism import Mechanism
from dalembert.simulation.simulation import Simulation

#: a tensor of PyTorch
Tensor = Any


def rollout(
    mechanism: Mechanism, formulation: Formulation, duration: float, outputs: Sequence[str] = ("position",), *,
    setup: Callable[[Simulation], Any] | None = None, inputs: Mapping[str, ArrayLike] | None = None, gradient_smoothing: float = 0.0,
) -> TorchRollout:
    """``duration`` seconds of a mechanism as a function of tensors, for PyTorch's automatic differentiation.

    ``f(values)`` takes {parameter: tensor}, by the names that ``Trajectory.vjp`` knows ("elbow.damping", "shoulder.start",
    "elbow.input", ...), and gives {output: tensor} with the knots first: "position", "velocity", "angular_velocity" (N, bodies, 3),
    "orientation" (N, bodies, 4), "coordinate", "rate" (N, joints, 6), "energy", "kinetic", "potential" (N,). More axes
    before a parameter's own are a batch, of which there is a run each; values without them hold for all of it. Runs are in double
    precision on the processor; what comes out has the type and the device of the values.

    ``setup(sim)``: sets joints, velocities and targets before each run; ``inputs``: {name: (steps, ...)}, where they are no values;
    ``gradient_smoothing`` (m/s): as for ``Trajectory.vjp``.
    """
    _torch()
    return TorchRollout(Rollout(mechanism, formulation, duration, outputs, setup=setup, inputs=inputs, smoothing=gradient_smoothing))


class TorchRollout:
    """A rollout that takes and gives tensors. ``rollout.batch`` and ``output_shape`` say which shapes."""

    def __init__(self, plain: Rollout) -> None:
        self.rollout = plain

    def __call__(self, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
        torch = _torch()
        if not values:
            raise GradientError("a rollout needs at least one value, such as {'elbow.damping': torch.tensor(0.1)}")
        tensors = [value if isinstance(value, torch.Tensor) else torch.as_tensor(value) for value in values.values()]
        kind = torch.get_default_dtype()
        if all(tensor.is_floating_point() for tensor in tensors):
            kind = tensors[0].dtype
            for tensor in tensors[1:]:
                kind = torch.promote_types(kind, tensor.dtype)
        found = _function().apply(self.rollout, tuple(values), kind, *tensors)
        return dict(zip(self.rollout.outputs, found))


def _torch() -> Any:
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise MissingExtraError("rollouts of tensors need PyTorch: pip install dalembert[torch]") from None
    return torch


@cache
def _function() -> Any:
    """The function that PyTorch's tape knows; made late, as its base class is PyTorch's."""
    torch = _torch()
    class RolloutFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, rollout: Rollout, names: tuple[str, ...], kind: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
            values = {name: _numbers(tensor) for name, tensor in zip(names, tensors)}
            ctx.rollout, ctx.values, ctx.places = rollout, values, [(tensor.dtype, tensor.device) for tensor in tensors]
            ctx.runs = rollout.run(values, tape=any(ctx.needs_input_grad))
            return tuple(torch.as_tensor(array).to(tensors[0].device, kind) for array in rollout.read(ctx.runs, values).values())

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, *bars: Tensor) -> tuple[Any, ...]:
            wanted = [name for name, needed in zip(ctx.values, ctx.needs_input_grad[3:]) if needed]
            given = {name: _numbers(bar) for name, bar in zip(ctx.rollout.outputs, bars)}
            found = ctx.rollout.pull(ctx.runs, ctx.values, given, wanted)
            gradients = [
                torch.as_tensor(found[name]).to(device, kind) if name in found else None for name, (kind, device) in zip(ctx.values, ctx.places)
            ]
            return (None, None, None, *gradients)

    return RolloutFunction


def _numbers(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().double().numpy()
