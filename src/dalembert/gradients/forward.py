"""How a run changes with parameters: forward sensitivities along one direction."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import GradientError
from dalembert.formulations.derivatives import InputBars
from dalembert.gradients.adjoint import check_control, record_of, weigh_forces
from dalembert.gradients.controller import Controller
from dalembert.gradients.events import Derivatives, Smoothing
from dalembert.gradients.names import POINTS, Name, read_names
from dalembert.gradients.start import Beginning
from dalembert.gradients.target_points import push_points, tables_of
from dalembert.mechanism.forces import Path
from dalembert.mechanism.mechanism import Body, Mechanism
from dalembert.mechanism.parameters import list_parameters, with_parameters
from dalembert.model.compile import compile_model
from dalembert.simulation.trajectory import Trajectory

#: offsets of the models that a forward pass is given, in steps
OFFSETS = (1.0, -1.0, 2.0, -2.0, 3.0, -3.0)
#: size of a step of the model's numbers: relative to the number, and in m or rad of geometry
STEP, SHIFT = 5e-3, 2e-3
#: what the equations are linear in may change by more, and rounding matters less then; also relative to the number
LINEAR, LONG = ("stiffness", "damping", "armature", "servo_stiffness", "servo_damping", "linear", "angular", "tangential", "force", "torque", "gravity"), 5e-2


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
    models, step = beside(record.mechanism, model, getattr(record.engine, "model_of", compile_model)) if model else ([], 1.0)
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
        forward.curve = lambda knot, share: curve(knot + share) + straight[knot] + share * (straight[knot + 1] - straight[knot])
    if record.control is not None:
        check_control(record, forward, "controller")
        forward.controller = Controller(record, trajectory._get("coordinate"))
    forward.begin(pose, velocity, target)
    for tape, first, last in reversed(list(record.segments())):
        forward.segment(smooth(tape, first), first, last)
    smooth.warn()
    return Derivatives(forward.outputs(), smooth.smoothing)


def _checked(name: Name, value: ArrayLike) -> np.ndarray:
    try:
        numbers = np.array(np.broadcast_to(np.asarray(value, dtype=float), name.shape))
    except (TypeError, ValueError):
        raise GradientError(f"the tangent of {name.text!r} must have shape {name.shape}, got {np.shape(value)}") from None
    if not np.all(np.isfinite(numbers)):
        raise GradientError(f"the tangent of {name.text!r} is not finite")
    return 0.5 * (numbers + numbers.T) if name.what == "inertia" else numbers


def beside(mechanism: Mechanism, change: Mapping[str, np.ndarray], compiled: Callable[[Mechanism], Any]) -> tuple[list, float]:
    """Models of a mechanism some steps along a change of its numbers, as an engine has them ``compiled``, and the step."""
    known = list_parameters(mechanism, shifts=True)
    step = np.inf
    for text, value in change.items():
        here, what = known[text].value, text.rpartition(".")[2]
        moved = np.abs(value) > 0.0
        if not np.any(moved):
            continue
        if what == "inertia":
            part = float(np.abs(np.linalg.eigvals(np.linalg.solve(here, value))).max())
        elif what.startswith(("point", "position", "turn", "centre")):
            part = float(np.abs(value).max()) * STEP / SHIFT
        elif what in ("rest", "offset", "force", "torque", "gravity", "lower", "upper"):
            part = float(np.abs(value).max())
        else:
            sizes = np.abs(np.asarray(here)[moved])
            part = float(np.max(np.abs(value[moved]) / sizes)) if np.all(sizes > 0.0) else np.inf
        step = min(step, (LONG if text == "gravity" or what in LINEAR else STEP) / part)
    if step == 0.0:
        raise GradientError(
            f"a tangent of {', '.join(change)} leads away from zero, where a difference to both sides would be negative: use vjp, or a small positive number"
        )
    if not np.isfinite(step):
        return [], 1.0
    models = []
    for offset in OFFSETS:
        values = {text: known[text].value + offset * step * value for text, value in change.items()}
        models.append(compiled(with_parameters(mechanism, values, checked=False)))
    return models, step


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
