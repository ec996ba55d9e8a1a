"""What an engine offers so that its runs can be differentiated; the gradients know these types and no formulation by name.

An engine that does has ``tape`` (None, or where a run writes what derivatives need), ``new_tape`` and ``adjoint``, as the protocol
``Differentiable`` says. Rotations are body-frame tangents: orientation * exp(tangent).
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from dalembert.formulations.engine import Inputs


class Cotangents(NamedTuple):
    """Cotangents of what a run of N knots gives; an array of length zero means that there are none of the kind."""

    position: np.ndarray  # (N, n, 3)
    orientation: np.ndarray  # (N, n, 3)
    velocity: np.ndarray  # (N, n, 6) linear (world), angular (body frame)
    coordinate: np.ndarray  # (N, joints, 6)
    rate: np.ndarray  # (N, joints, 6)
    energy: np.ndarray  # (N, 2) kinetic, potential
    force: np.ndarray  # (N, joints, 6) force and torque that a joint transmits


class StartBars(NamedTuple):
    """Cotangents of the start: pose, velocities, targets held."""

    pose: np.ndarray  # (n, 6)
    velocity: np.ndarray  # (n, 6)


class InputBars(NamedTuple):
    """Cotangents, or tangents, of the inputs of S steps."""

    wrench: np.ndarray  # (S, n, 6)
    joint: np.ndarray  # (S, joints, 6)
    target: np.ndarray  # (S + 1, joints, 6)
    tension: np.ndarray  # (S, couplings)


class Adjoint(Protocol):
    """One backward pass over a run: segments from the last one to the first, then what has been gathered."""

    inputs: InputBars

    def segment(self, tape: Any, first: int, last: int) -> None:
        """Go back from knot ``last`` to knot ``first``, over what a tape holds; the cotangents at ``first`` are added too."""
        ...

    def start(self) -> StartBars:
        """Once at the first knot."""
        ...

    @property
    def state_size(self) -> int:
        """Numbers of the tangent of a state."""
        ...

    def put_state(self, bar: np.ndarray) -> None:
        """Begin with a cotangent of the state at the end, before any segment."""
        ...

    def take_state(self) -> np.ndarray:
        """The cotangent of the state where the pass has got to."""
        ...

    def parameter(self, name: str) -> np.ndarray | None:
        """Cotangent of a number of the mechanism by name, as steps and readings use it, apart from the start; None where no
        equation takes it.
        """
        ...


class Forward(Protocol):
    """One forward pass over a run: the start, segments from the first one to the last, then what it makes of the readings."""

    def begin(self, pose: np.ndarray, velocity: np.ndarray, target: np.ndarray) -> None:
        """Tangents (n, 6), (n, 6) of the start and (joints, 6) of the targets held there."""
        ...

    def segment(self, tape: Any, first: int, last: int) -> None:
        """Go on from knot ``first`` to knot ``last``."""
        ...

    def outputs(self) -> dict[str, np.ndarray]:
        """Tangents of what a run gives, by name, over its knots."""
        ...


@runtime_checkable
class Differentiable(Protocol):
    """An engine whose runs can be differentiated."""

    tape: Any

    def new_tape(self, steps: int) -> Any:
        """Room for what some steps leave behind."""
        ...

    def start_velocity(self, numbers: np.ndarray) -> np.ndarray:
        """(n, 6) velocities of a state that a run starts from."""
        ...

    def adjoint(self, recording: Any, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, cotangents: Cotangents) -> Adjoint:
        """A backward pass over the first ``knots`` knots of a run."""
        ...

    def forward(
        self, recording: Any, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, models: Sequence[Any], step: float, change: InputBars,
    ) -> Forward:
        """A forward pass. ``models``: of the mechanism ``step`` times 1, -1, 2, -2, 3 and -3 along its change, or none."""
        ...


@runtime_checkable
class StepwiseDifferentiable(Protocol):
    """An engine that differentiates all steps of a tape at once."""

    def coordinate_names(self) -> tuple[str, ...]:
        """Of the coordinates of its states."""
        ...

    def step_matrices(self, tape: Any) -> tuple[np.ndarray, np.ndarray]:
        """(N, s, s) and (N, s, n): states after each substep by those before it, and by forces along the coordinates held over it."""
        ...
