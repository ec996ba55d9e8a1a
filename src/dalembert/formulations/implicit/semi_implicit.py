"""Kernels of semi-implicit Euler with Baumgarte stabilisation (Quaternion, Appendix D): the baseline of the field.

Velocities first, from forces and rows at the start of the step, then poses by the exponential map. Constraints hold at
velocity level only; the fraction ``stabilization`` of what is open is asked back within a step (eq. 49, 50). Redundant rows
that have drifted apart contradict one another: then velocities are a compromise, and the violation shows it.
"""
from __future__ import annotations

from math import isfinite, nan
from typing import NamedTuple

import numpy as np

from dalembert.forces.bodies import push_on_bodies
from dalembert.forces.couplings import push_along_paths
from dalembert.forces.loads import apply_inputs, clear_inputs
from dalembert.formulations.maximal.knot import evaluate_knot, project
from dalembert.kernels import inline, kernel
from dalembert.model.pose import joint_rates, open_amounts, put6, set_targets
from dalembert.model.records import COMPLIANT, F, fields
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import add3, cross3, load3, load4, load9, mat_vec, scale3, store3, store4

#: position, orientation, momenta at the knot (world, body)
BODY_STATE = np.dtype(fields(F, x=3, q=4, p=3, l=3))
#: unwrapped coordinates, targets held, momenta of reflected inertias
JOINT_STATE = np.dtype(fields(F, coordinate=6, target=6, spin=6))
#: sum of velocities (m/s and rad/s) beyond which a step has gone off; their squares are still numbers
LARGEST = 1e100


class SemiImplicitState(NamedTuple):
    """Records over one flat array. ``clock``: length of the step before."""

    bodies: np.ndarray
    joints: np.ndarray
    clock: np.ndarray


class Scratch(NamedTuple):
    """Momenta that forces alone would lead to (n, 6), velocities (n + 1, 6), impulses and open amounts of rows and couplings."""

    wanted: np.ndarray
    velocity: np.ndarray
    impulse: np.ndarray
    coupling_impulse: np.ndarray
    rows: np.ndarray
    gaps: np.ndarray


def new_scratch(bodies: int, joints: int, couplings: int) -> Scratch:
    """Room for a step."""
    return Scratch(
        np.zeros((bodies, 6)), np.zeros((bodies + 1, 6)), np.zeros((joints, 6)), np.zeros(couplings), np.zeros((joints, 6)), np.zeros(couplings),
    )


class StepOptions(NamedTuple):
    """What a step takes besides model, state and inputs."""

    compliance: float
    stabilization: float


@inline
def recall(model, work, state):
    """Put the state's knot into the work."""
    for i in range(model.bodies.shape[0] - 1):
        store3(work.bodies[i].x, load3(state.bodies[i].x))
        store4(work.bodies[i].q, load4(state.bodies[i].q))
    for i in range(model.joints.shape[0]):
        at, past = work.joints[i], state.joints[i]
        for k in range(model.joints[i].free):
            at.coordinate[k] = past.coordinate[k]
            at.spin[k] = past.spin[k]


@inline
def ask(model, work, own, before, targets, dt, stabilization):
    """The rates that the rows ask for: of the targets from ``before`` on, and a part of what is open back within the step."""
    pull = stabilization / dt
    open_amounts(model, work, own.rows, own.gaps)
    for i in range(model.joints.shape[0]):
        joint, at = model.joints[i], work.joints[i]
        for k in range(joint.rows):
            direction = joint.row_direction[k]
            at.r[k] = -pull * own.rows[i, k]
            if direction >= 0 and joint.row_kind[k] != COMPLIANT:
                at.r[k] += (targets[i, direction] - before[i, direction]) / dt
    for i in range(model.couplings.shape[0]):
        work.couplings[i].r = -pull * own.gaps[i]


@inline
def push(model, work, state, own, dt):
    """Momenta after the step without the joints; paths and what depends on velocities as they are at its start."""
    if model.loads.shape[0] > 0 or model.couplings.shape[0] > 0:
        for i in range(model.bodies.shape[0] - 1):
            fixed, past = model.bodies[i], state.bodies[i]
            put6(own.velocity[i], scale3(1.0 / fixed.mass, load3(past.p)), mat_vec(load9(fixed.inertia_inverse), load3(past.l)))
        push_on_bodies(model, work, own.velocity, 1)
        push_along_paths(model, work, own.velocity)
    for i in range(model.bodies.shape[0] - 1):
        past, load = state.bodies[i], work.bodies[i].load
        w = mat_vec(load9(model.bodies[i].inertia_inverse), load3(past.l))
        gyro = cross3(w, load3(past.l))
        for c in range(3):
            own.wanted[i, c] = past.p[c] + dt * load[c]
            own.wanted[i, 3 + c] = past.l[c] + dt * (load[3 + c] - gyro[c])


@inline
def accept(model, work, state, targets, dt, own, after):
    """Write the state of the next knot into ``after``."""
    joint_rates(model, work, own.velocity, own.rows)
    for i in range(model.joints.shape[0]):
        joint, new = model.joints[i], after.joints[i]
        for k in range(joint.free):
            new.coordinate[k] = work.joints[i].coordinate[k]
            new.spin[k] = joint.armature[k] * own.rows[i, k]
            if joint.follows[k]:
                new.target[k] = targets[i, k]
    for i in range(model.bodies.shape[0] - 1):
        fixed, past, new, u = model.bodies[i], state.bodies[i], after.bodies[i], own.velocity[i]
        store3(new.x, add3(load3(past.x), scale3(dt, load3(u))))
        turn = quaternion.exp(scale3(dt, load3(u[3:])))
        store4(new.q, quaternion.normalize(quaternion.multiply(load4(past.q), turn)))
        store3(new.p, scale3(fixed.mass, load3(u)))
        store3(new.l, mat_vec(load9(fixed.inertia), load3(u[3:])))
    after.clock[0] = dt


@inline
def step(model, state, inputs, index, dt, options, work, own, after):
    """One step of length ``dt`` with the inputs ``index``. Returns the largest residual of the velocity rows, m/s.

    ``after``, which may be ``state`` itself, is written only where that is finite.
    """
    before, targets = inputs.target[index], inputs.target[index + 1]
    apply_inputs(model, work, inputs, index)
    set_targets(model, work, before)
    recall(model, work, state)
    evaluate_knot(model, work)
    ask(model, work, own, before, targets, dt, options.stabilization)
    push(model, work, state, own, dt)
    size = project(model, work, options.compliance, own.wanted, dt, 1e-12, own.velocity, own.impulse, own.coupling_impulse)
    total = 0.0
    for i in range(model.bodies.shape[0] - 1):
        for c in range(6):
            total += abs(own.velocity[i, c])
    if not total < LARGEST:
        return nan
    if isfinite(size):
        accept(model, work, state, targets, dt, own, after)
    return size


@inline
def record(model, state, recording, knot):
    """Write the state into the recording."""
    recording.step_before[knot] = state.clock[0]
    for i in range(model.bodies.shape[0] - 1):
        body = state.bodies[i]
        store3(recording.position[knot, i], load3(body.x))
        store4(recording.orientation[knot, i], load4(body.q))
        put6(recording.momentum[knot, i], load3(body.p), load3(body.l))


@kernel
def run_steps(model, state, inputs, options, work, own, recording, first, count, dt):
    """``count`` steps from knot ``first`` of the recording. Returns (steps done, largest residual of the velocity rows)."""
    size = 0.0
    clear_inputs(model, work)
    for index in range(count):
        size = step(model, state, inputs, index, dt, options, work, own, state)
        if not isfinite(size):
            return index, size
        recording.substeps[first + index + 1] = 1
        recording.iterations[first + index + 1] = 1
        record(model, state, recording, first + index + 1)
    return count, size
