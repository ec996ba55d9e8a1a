"""How a run changes with parameters: forward sensitivities along one direction."""
from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import GradientError
from dalembert.formulations.beside import mechanisms_beside
from dalembert.formulations.derivatives import InputBars
from dalembert.gradients.adjoint import check_control, real, record_of, weigh_forces
from dalembert.gradients.controller import Controller
from dalembert.gradients.events import Derivatives, Smoothing
from dalembert.gradients.names import POINTS, Name, read_names
from dalembert.gradients.start import Beginning
from dalembert.gradients.target_points import push_points, tables_of
from dalembert.mechanism.forces import Path
from dalembert.mechanism.mechanism import Body, Mechanism
from dalembert.model.compile import compile_model
from dalembert.simulation.trajectory import Trajectory


def push_forward(
    trajectory: Trajectory, tangents: Mapping[str, ArrayLike], weights: Mapping[str, ArrayLike] | None = None, drive_weight: float | None = None,
    smoothing: float = 0.0,
) -> Derivatives:
    """Tangents of everything that a run gives, along a change of parameters."""
    record = record_of(trajectory)
    smooth = Smoothing(record, smoothing)
    if not isinstance(tangents, Mapping) or not tangents:
        raise GradientError(f"tangents must be a dict of names and values, such as {{'elbow.damping': 1.0}}, got {tangents!r}")
    tables = {joint: table.shape for joint, table in tables_of(record).items()}
    names = {name.text: name for name in read_names(record.mechanism, record.steps, list(tangents), tables)}
    change = {text: _checked(names[text], value) for text, value in tangents.items()}
    points = {names[text].owner: value for text, value in change.items() if names[text].what == POINTS}
    change = {text: value for text, value in change.items() if names[text].what != POINTS}
    inputs = input_tangents(record.mechanism, record.steps, names, change, record.engine.sizes[2])
    straight = inputs.target.copy()
    bent, curve = push_points(record, points) if points else (0.0, None)
    inputs.target[:] += bent
    model = {text: value for text, value in change.items() if names[text].kind == "model"}
    reach = getattr(record.engine, "reach_beside", (1.0, 1.0))
    models, step = mechanisms_beside(record.mechanism, model, getattr(record.engine, "model_of", compile_model), reach) if model else ([], 1.0)
    bodies, joints = len(trajectory.bodies), len(trajectory.joints)
    pose, velocity, target = np.zeros((bodies, 6)), np.zeros((bodies, 6)), np.zeros((joints, 6))
    beginning = Beginning(record)
    for text, value in change.items():
        if beginning.matters(names[text]) and np.any(value):
            parts = beginning.tangent(names[text], value)
            pose, velocity, target = pose + parts[0], velocity + parts[1], target + parts[2]
    inputs.target[0] += target
    forward = record.engine.forward(
        record.recording, record.inputs, record.steps + 1, record.dt, trajectory._get("coordinate"), models, step, inputs,
    )
    weigh_forces(forward, weights, drive_weight)
    if curve is not None:
        forward.curve = _Curve(curve, straight, record.dt)
    if record.control is not None:
        check_control(record, forward, "controller")
        forward.controller = Controller(record, trajectory._get("coordinate"))
    forward.begin(pose, velocity, target)
    for tape, first, last in reversed(list(record.segments())):
        forward.segment(smooth(tape, first), first, last)
    smooth.warn()
    return Derivatives(forward.outputs(), smooth.smoothing)


class _Curve:
    """Tangents (joints, 6) of targets at a fraction of a step, or of their rates or accelerations (``order`` 1, 2): of tables and of straight lines."""

    def __init__(self, tables: Callable[[float, int], np.ndarray], straight: np.ndarray, dt: float) -> None:
        self.tables, self.straight, self.dt = tables, straight, dt

    def __call__(self, knot: int, share: float, order: int = 0) -> np.ndarray:
        first, second = self.straight[knot], self.straight[knot + 1]
        line = first + share * (second - first) if order == 0 else (second - first) / self.dt if order == 1 else 0.0
        return self.tables(knot + share, order) + line


def _checked(name: Name, value: ArrayLike) -> np.ndarray:
    try:
        numbers = np.array(np.broadcast_to(real(value), name.shape))
    except (TypeError, ValueError):
        raise GradientError(f"the tangent of {name.text!r} must have shape {name.shape}, got {np.shape(value) if not np.iscomplexobj(value) else value}") from None
    if not np.all(np.isfinite(numbers)):
        raise GradientError(f"the tangent of {name.text!r} is not finite")
    return 0.5 * (numbers + numbers.T) if name.what == "inertia" else numbers


def input_tangents(mechanism: Mechanism, steps: int, names: Mapping[str, Name], change: Mapping[str, np.ndarray], couplings: int) -> InputBars:
    """Tangents of inputs and targets by name as tables; of ``couplings`` the paths come last."""
    bodies, joints = len(mechanism.bodies), len(mechanism.joints)
    tables = InputBars(np.zeros((steps, bodies, 6)), np.zeros((steps, joints, 6)), np.zeros((steps + 1, joints, 6)), np.zeros((steps, couplings)))
    for text, value in change.items():
        name = names[text]
        if name.kind != "input":
            continue
        element = mechanism[name.owner]
        if isinstance(element, Body):
            tables.wrench[:, element.index] += value
        elif isinstance(element, Path):
            tables.tension[:, couplings - len(mechanism.paths) + mechanism.paths.index(element)] += value
        elif name.what == "target":
            tables.target[:, element.index, : element.type.freedom] += value.reshape(steps + 1, -1)
        else:
            forced = [i for i, drive in enumerate(element.type.drive) if drive == "force"]
            tables.joint[:, element.index, forced] += value.reshape(steps, -1)
    return tables
