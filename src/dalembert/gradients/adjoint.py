"""Gradients of functions of a run by parameters: the adjoint."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import GradientError
from dalembert.formulations.derivatives import Adjoint, Cotangents
from dalembert.gradients.controller import Controller
from dalembert.gradients.events import Derivatives, Smoothing
from dalembert.gradients.names import PLACING, POINTS, WEIGHING, Name, read_names
from dalembert.gradients.start import Beginning
from dalembert.gradients.target_points import pull_points, tables_of
from dalembert.mechanism.forces import Path
from dalembert.mechanism.mechanism import Body, Mechanism
from dalembert.simulation.record import Record
from dalembert.simulation.trajectory import Trajectory

#: names of cotangents with their shapes after the knots, in words of the trajectory
PER_BODY = ("position", "orientation", "velocity", "angular_velocity")
PER_JOINT = ("coordinate", "rate")
PER_KNOT = ("energy", "kinetic", "potential")
FORCES = ("force", "torque")
OUTPUTS = (*PER_BODY, *PER_JOINT, *FORCES, *PER_KNOT)


def record_of(trajectory: Trajectory) -> Record:
    """What a run remembered, or a GradientError that says how to have it."""
    if trajectory.record is None:
        raise GradientError(f"this run of {trajectory.mechanism!r} has no tape: make it with sim.run(..., tape=True)")
    return trajectory.record


def output_shape(trajectory: Trajectory, name: str) -> tuple[int, ...]:
    """Shape of what a run gives under a name."""
    knots = len(trajectory)
    if name in PER_BODY:
        return knots, len(trajectory.bodies), 3
    if name in PER_JOINT:
        return knots, len(trajectory.joints), 6
    return (knots, len(trajectory.joints), 3) if name in FORCES else (knots,)


def real(value: ArrayLike) -> np.ndarray:
    """Numbers as floats. Raises TypeError for complex ones, of which NumPy would drop a part."""
    if np.iscomplexobj(value):
        raise TypeError("complex numbers")
    return np.asarray(value, dtype=float)


def read_cotangents(trajectory: Trajectory, given: Mapping[str, ArrayLike]) -> Cotangents:
    """Cotangents by name, checked, as the engines take them."""
    if not isinstance(given, Mapping) or not given:
        raise GradientError(f"cotangents must be a dict of names and arrays, such as {{'position': ...}}, got {given!r}")
    arrays: dict[str, np.ndarray] = {}
    for name, value in given.items():
        if name not in OUTPUTS:
            raise GradientError(f"a run gives no {name!r} to differentiate; choose from {', '.join(OUTPUTS)}")
        shape = output_shape(trajectory, name)
        try:
            array = real(value)
        except (TypeError, ValueError):
            raise GradientError(f"the cotangent of {name!r} must be numbers of shape {shape}, got {value!r}") from None
        if array.shape != shape:
            raise GradientError(f"the cotangent of {name!r} must have shape {shape}, got {array.shape}")
        if not np.all(np.isfinite(array)):
            raise GradientError(f"the cotangent of {name!r} is not finite")
        arrays[name] = array
    empty = np.zeros((0, 0, 0))

    def pair(first: str, second: str) -> np.ndarray:
        if first not in arrays and second not in arrays:
            return empty
        zero = np.zeros(output_shape(trajectory, first))
        return np.concatenate([arrays.get(first, zero), arrays.get(second, zero)], axis=-1)

    energy = np.zeros((0, 2))
    if any(name in arrays for name in PER_KNOT):
        zero, total = np.zeros(len(trajectory)), arrays.get("energy", 0.0)
        energy = np.stack([arrays.get("kinetic", zero) + total, arrays.get("potential", zero) + total], axis=1)
    return Cotangents(
        arrays.get("position", empty), arrays.get("orientation", empty), pair("velocity", "angular_velocity"), arrays.get("coordinate", empty),
        arrays.get("rate", empty), energy, pair("force", "torque"),
    )


def pull_back(
    trajectory: Trajectory, cotangents: Mapping[str, ArrayLike], parameters: Sequence[str], weights: Mapping[str, ArrayLike] | None = None,
    drive_weight: float | None = None, smoothing: float = 0.0,
) -> Derivatives:
    """Gradients by name of a function of a run whose derivatives by what it gives are ``cotangents``.

    ``weights``, ``drive_weight``: of the norm in which forces of redundant rows are least; ``smoothing`` (m/s) of contacts.
    """
    record = record_of(trajectory)
    smooth = Smoothing(record, smoothing)
    names = read_names(record.mechanism, record.steps, parameters, {joint: table.shape for joint, table in tables_of(record).items()})
    adjoint: Adjoint = record.engine.adjoint(
        record.recording, record.inputs, record.steps + 1, record.dt, trajectory._get("coordinate"), read_cotangents(trajectory, cotangents),
    )
    weigh_forces(adjoint, weights, drive_weight)
    if record.control is not None:
        pull_controlled(record, adjoint, trajectory._get("coordinate"), smooth)
    else:
        for tape, first, last in record.segments():
            adjoint.segment(smooth(tape, first), first, last)
            del tape  # before the next one is made
    smooth.warn()
    bars = adjoint.start()
    beginning = Beginning(record) if any(_may_place(name) for name in names) else None
    placing = [name for name in names if beginning is not None and beginning.matters(name)]
    started = beginning.pull(placing, bars.pose, bars.velocity, adjoint.inputs.target[0]) if beginning is not None else {}
    gradients = {
        name.text: pull_points(record, adjoint, name.owner) if name.what == POINTS else np.asarray(direct_part(record.mechanism, adjoint, name)) for name in names
    }
    return Derivatives(
        {text: np.asarray(gradient + started[text]) if text in started else gradient for text, gradient in gradients.items()}, smooth.smoothing,
    )


def pull_controlled(record: Record, adjoint: Any, coordinates: np.ndarray, smooth: Smoothing) -> None:
    """A backward pass over a run whose controller is part of what is differentiated, knot by knot."""
    check_control(record, adjoint, "add_seen")
    controller, bars = Controller(record, coordinates), adjoint.inputs
    held = np.zeros_like(bars.target[0])  # of targets that were not set anew
    for tape, first, _ in record.segments():
        for at, part in reversed(smooth(tape, first).parts()):
            knot = first + at
            adjoint.segment(part, knot, knot + 1)
            target = bars.target[knot + 1] + held
            answer = np.concatenate([bars.wrench[knot].ravel(), bars.joint[knot].ravel(), bars.tension[knot].ravel(), target.ravel()])
            cotangents, gave = controller.pull(knot, answer)
            held = np.where(gave[-target.size :].reshape(target.shape), 0.0, target)
            adjoint.add_seen(knot, cotangents, controller.felt(knot), controller.target_rates(knot))


def check_control(record: Record, passing: Any, ability: str) -> None:
    """Refuse a pass through a controller that a formulation cannot make."""
    if not hasattr(passing, ability):
        raise GradientError(
            f"this run of {record.mechanism.name!r} cannot be differentiated through its controller: let its inputs count as given, sim.run(..., control_derivative=None)"
        )


def weigh_forces(passing: Any, weights: Mapping[str, ArrayLike] | None, drive_weight: float | None) -> None:
    """Tell a backward or forward pass in which norm forces of redundant rows are least."""
    if weights is not None or drive_weight is not None:
        if not hasattr(passing, "weigh_forces"):
            raise GradientError("weights of redundant joint forces are for Variational and Implicit")
        passing.weigh_forces(weights, drive_weight)


def _may_place(name: Name) -> bool:
    return name.kind == "start" or name.what in (*PLACING, *WEIGHING)


def direct_part(mechanism: Mechanism, adjoint: Adjoint, name: Name) -> np.ndarray:
    """The part of a gradient that comes through steps and readings."""
    if name.kind == "start":
        return np.zeros(name.shape)
    if name.kind == "input":
        return input_bar(mechanism, adjoint, name)
    found = adjoint.parameter(name.text)
    if found is None:
        raise GradientError(f"runs of {mechanism.name!r} cannot be differentiated by {name.text!r} yet")
    return found


def input_bar(mechanism: Mechanism, adjoint: Adjoint, name: Name) -> np.ndarray:
    """The bar of inputs or targets per step."""
    element, bars = mechanism[name.owner], adjoint.inputs
    if isinstance(element, Body):
        return bars.wrench[:, element.index].copy()
    if isinstance(element, Path):
        return bars.tension[:, bars.tension.shape[1] - len(mechanism.paths) + mechanism.paths.index(element)].copy()
    if name.what == "target":
        return bars.target[:, element.index, : element.type.freedom].reshape(name.shape)
    forced = [i for i, drive in enumerate(element.type.drive) if drive == "force"]
    return bars.joint[:, element.index, forced].reshape(name.shape)
