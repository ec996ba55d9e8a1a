"""The derivative of one step: of the state after it by the state before, by inputs and by numbers of the mechanism."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import GradientError
from dalembert.formulations.derivatives import Cotangents, StepwiseDifferentiable
from dalembert.gradients.adjoint import direct_part, record_of
from dalembert.gradients.events import Smoothing
from dalembert.gradients.names import read_names

if TYPE_CHECKING:
    from dalembert.simulation.simulation import Simulation
    from dalembert.simulation.trajectory import Trajectory


@dataclass(frozen=True)
class StepJacobian:
    """Derivatives of the N numbers of a state's tangent after a step.

    ``state`` (N, N): by those before it; ``parameters``: by name, (N, ...), inputs and targets of the step among them. What the numbers
    are is the formulation's: in ``Variational``, per body, position, rotation (body axes), momenta just before the knot (world,
    body) and the part of these that paths gave there, then per joint six momenta of reflected inertias; in ``Implicit``, per body, x, q, v and q', then per joint six rates of reflected
    inertias, and for BDF2 the same at the knot before; in ``Reduced``, coordinates and then rates along the joints of its trees (turns in the body's
    axes and angular velocities of free rotations), and for BDF2 the same at the knot before.
    """

    state: np.ndarray
    parameters: dict[str, np.ndarray]
    #: speed (m/s) by which contacts were smoothed, zero where they were not
    smoothing: float = 0.0


@dataclass(frozen=True)
class StepJacobians:
    """Derivatives of all N steps of a run in joint coordinates. ``coordinates``: names of the n coordinates, in the order of the columns.

    ``state`` (N, 2 n, 2 n): coordinates and rates after each step by those before it; for BDF2 (N, 4 n, 4 n), with those at the knot before it.
    ``force`` (N, 2 n or 4 n, n): by forces along the coordinates that are held over the step.
    """

    coordinates: tuple[str, ...]
    state: np.ndarray
    force: np.ndarray


def step_jacobians(trajectory: Trajectory) -> StepJacobians:
    """The derivatives of all steps of a run that was made with a tape."""
    record = record_of(trajectory)
    if not isinstance(record.engine, StepwiseDifferentiable):
        raise GradientError("the steps of a run can be differentiated all at once in joint coordinates alone (Reduced): use Simulation.step_jacobian, step by step")
    names, parts = record.engine.coordinate_names(), []
    for tape, _, _ in record.segments():
        state, force = record.engine.step_matrices(tape)
        knots = np.array([step.knot for step in tape.steps])
        if len(np.unique(knots)) < len(knots):
            state, force = _joined(knots, state, force)
        parts.append((state, force))
    state, force = (np.concatenate(found) for found in zip(*reversed(parts)))
    return StepJacobians(names, state, force)


def _joined(knots: np.ndarray, state: np.ndarray, force: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Those of whole steps from those of the parts that they were divided into."""
    whole: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for knot, A, B in zip(knots, state, force):
        whole[knot] = (A @ whole[knot][0], A @ whole[knot][1] + B) if knot in whole else (A, B)
    return np.array([A for A, _ in whole.values()]), np.array([B for _, B in whole.values()])


def step_jacobian(sim: Simulation, parameters: Sequence[str] = (), smoothing: float = 0.0) -> StepJacobian:
    """The derivative of the step that begins at a simulation's state, which stays as it is."""
    kept, moved, setup = sim.state, sim._moved, sim._setup.keep()
    try:
        run = sim._run(1, sim.formulation.dt, None, False, tape=True)
    finally:
        sim.restore(kept)
        sim._moved = moved
        sim._setup.restore(setup)
    record = record_of(run)
    names = read_names(record.mechanism, 1, parameters)
    for name in names:
        if name.kind == "start":
            raise GradientError(f"a step is differentiated by its state, not by {name.text!r}: multiply with the tangent of the state")
    empty = np.zeros((0, 0, 0))
    nothing = Cotangents(empty, empty, empty, empty, empty, np.zeros((0, 2)), empty)
    smooth = Smoothing(record, smoothing)
    tapes = [(smooth(tape, first), first, last) for tape, first, last in record.segments()]
    smooth.warn()
    rows, found, index, size = [], {name.text: [] for name in names}, 0, 1
    while index < size:
        adjoint = record.engine.adjoint(record.recording, record.inputs, 2, record.dt, run._get("coordinate"), nothing)
        size = adjoint.state_size
        unit = np.zeros(size)
        unit[index] = 1.0
        adjoint.put_state(unit)
        for tape, first, last in tapes:
            adjoint.segment(tape, first, last)
        rows.append(adjoint.take_state())
        for name in names:
            found[name.text].append(direct_part(record.mechanism, adjoint, name))
        index += 1
    return StepJacobian(np.array(rows), {text: np.array(values) for text, values in found.items()}, smooth.smoothing)
