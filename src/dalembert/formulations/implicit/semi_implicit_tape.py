"""Runs of semi-implicit Euler that remember what derivatives need, and the adjoint pass over them.

A step is one projection of velocities and a move by them: its equations are those of a knot that is read with the whole step as lag,
and besides the rows' own values, asked back in part, gyroscopic torques and paths at the start.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.forces.laws import coupling_law
from dalembert.forces.loads import apply_inputs, clear_inputs
from dalembert.formulations.implicit.semi_implicit import (
    BODY_STATE,
    JOINT_STATE,
    SemiImplicitState,
    ask,
    push,
    recall,
    record,
    step,
)
from dalembert.formulations.maximal.knot import evaluate_knot, knot_matrix, project
from dalembert.formulations.maximal.pull_forces import (
    EQUATIONS,
    pull_coupling_rate,
    pull_coupling_value,
    pull_coupling_wrench,
    pull_law,
)
from dalembert.formulations.maximal.pull_forces_at_knots import clear_knot
from dalembert.formulations.maximal.pull_joints import (
    add_to3,
    pull_at_knot,
    pull_direction_rate,
    pull_own_numbers,
    pull_target,
)
from dalembert.formulations.maximal.pull_knot import (
    add_outer,
    pull_coordinates,
    pull_kinetic,
    pull_knot_equations,
    pull_potential,
    pull_rates,
)
from dalembert.kernels import inline, kernel
from dalembert.linalg import solve_transposed
from dalembert.model.pose import aim_all, evaluate_pose, joint_at_knot, joint_rates, put6, set_targets
from dalembert.model.records import COMPLIANT, CONSTRAINT
from dalembert.model.rows import row_gradient
from dalembert.spatial import so3
from dalembert.spatial.tuples import (
    add3,
    cross3,
    dot3,
    load3,
    load4,
    load9,
    mat_t_vec,
    mat_vec,
    scale3,
    store3,
    store4,
)

ZERO3 = (0.0, 0.0, 0.0)
#: most passes of refinement
PASSES = 20


class SemiImplicitTape(NamedTuple):
    """Per step (first axis): the state before it, what its inputs add, targets at both ends, and its length (s)."""

    bodies: np.ndarray
    joints: np.ndarray
    push: np.ndarray  # (steps, n, 6)
    input: np.ndarray  # (steps, joints, 6)
    tension: np.ndarray  # (steps, couplings)
    target: np.ndarray  # (steps, 2, joints, 6)
    clock: np.ndarray  # (steps, 3)


def new_tape(bodies: int, joints: int, couplings: int, room: int) -> SemiImplicitTape:
    """Room for some steps."""
    return SemiImplicitTape(
        np.zeros((room, bodies), BODY_STATE), np.zeros((room, joints), JOINT_STATE), np.zeros((room, bodies, 6)), np.zeros((room, joints, 6)),
        np.zeros((room, couplings)), np.zeros((room, 2, joints, 6)), np.zeros((room, 3)),
    )


@kernel
def tape_steps(model, state, inputs, options, work, own, recording, first, count, dt, tape, entry):
    """``run_steps``, with every step written into the tape from ``entry`` on."""
    size = 0.0
    clear_inputs(model, work)
    for index in range(count):
        apply_inputs(model, work, inputs, index)
        keep(model, state, inputs, index, dt, work, tape, entry + index)
        size = step(model, state, inputs, index, dt, options, work, own, state)
        if not np.isfinite(size):
            return index, size
        recording.substeps[first + index + 1] = 1
        recording.iterations[first + index + 1] = 1
        record(model, state, recording, first + index + 1)
    return count, size


@inline
def keep(model, state, inputs, index, dt, work, tape, entry):
    """Write the state before a step and its inputs into the tape."""
    for i in range(model.bodies.shape[0] - 1):
        past, kept = state.bodies[i], tape.bodies[entry, i]
        store3(kept.x, load3(past.x))
        store4(kept.q, load4(past.q))
        store3(kept.p, load3(past.p))
        store3(kept.l, load3(past.l))
        for c in range(6):
            tape.push[entry, i, c] = work.bodies[i].push[c]
    for i in range(model.joints.shape[0]):
        for k in range(6):
            tape.joints[entry, i].coordinate[k] = state.joints[i].coordinate[k]
            tape.joints[entry, i].spin[k] = state.joints[i].spin[k]
            tape.input[entry, i, k] = work.joints[i].input[k]
            tape.target[entry, 0, i, k] = inputs.target[index, i, k]
            tape.target[entry, 1, i, k] = inputs.target[index + 1, i, k]
    for i in range(model.couplings.shape[0]):
        tape.tension[entry, i] = work.couplings[i].input
    tape.clock[entry, 0] = dt


@kernel
def pull_steps(model, work, own, options, tape, count, bars, left, at_knots, knots, pushes, joint_bars, tensions):
    """The adjoint from the end of step ``count - 1`` back to the first one, with the cotangents in ``after``.

    ``left``: room for (n + 1, 6); ``joint_bars`` (steps, 3, joints, 6): of inputs, and of targets at both ends. False where a step cannot be solved.
    """
    for entry in range(count - 1, -1, -1):
        dt = tape.clock[entry, 0]
        again(model, work, own, options, tape, entry, dt)
        clear_knot(model, bars)
        pull_accept(model, work, own, dt, bars)
        put_aside(model, work, own, tape, entry, bars, left)
        targets = joint_bars[entry, 1]
        if not pull_projected(model, work, bars, options, dt, left, targets, joint_bars[entry, 2]):
            return False
        knot = knots[entry]
        for i in range(model.bodies.shape[0] - 1):
            bar = bars.bodies[i]
            put6(bar.after, load3(bar.x), load3(bar.phi))
            put6(bar.after[6:], load3(bar.before[6:]), load3(bar.before[9:]))
            for c in range(6):
                pushes[entry, i, c] = bar.push[c]
            if knot >= 0:
                for c in range(12):
                    bar.after[c] += at_knots.body[knot, i, c]
        for i in range(model.joints.shape[0]):
            bar = bars.joints[i]
            for k in range(6):
                bar.after[k] = bar.before[k]
                joint_bars[entry, 0, i, k] = bar.input[k]
                targets[i, k] += bar.target[k]
                if knot >= 0:
                    bar.after[k] += at_knots.spin[knot, i, k]
        for i in range(model.couplings.shape[0]):
            tensions[entry, i] = bars.couplings[i].input
    return True


@inline
def again(model, work, own, options, tape, entry, dt):
    """Solve a taped step again, up to its velocities."""
    state = SemiImplicitState(tape.bodies[entry], tape.joints[entry], tape.clock[entry])
    for i in range(model.bodies.shape[0] - 1):
        for c in range(6):
            work.bodies[i].push[c] = tape.push[entry, i, c]
    for i in range(model.joints.shape[0]):
        for k in range(6):
            work.joints[i].input[k] = tape.input[entry, i, k]
    for i in range(model.couplings.shape[0]):
        work.couplings[i].input = tape.tension[entry, i]
    set_targets(model, work, tape.target[entry, 0])
    recall(model, work, state)
    evaluate_knot(model, work)
    ask(model, work, own, tape.target[entry, 0], tape.target[entry, 1], dt, options.stabilization)
    push(model, work, state, own, dt)
    project(model, work, options.compliance, own.wanted, dt, 1e-12, own.velocity, own.impulse, own.coupling_impulse)


@inline
def pull_accept(model, work, own, dt, bars):
    """The next state by velocities and the pose: adds to ``du``, ``x`` and ``phi``."""
    joint_rates(model, work, own.velocity, own.rows)
    for i in range(model.bodies.shape[0] - 1):
        fixed, bar, u = model.bodies[i], bars.bodies[i], own.velocity[i]
        v, w = load3(u), load3(u[3:])
        x, phi, p, l = load3(bar.after), load3(bar.after[3:]), load3(bar.after[6:]), load3(bar.after[9:])
        put6(bar.u, v, w)
        add_to3(bar.x, 1.0, x)
        turn = scale3(dt, w)
        add_to3(bar.phi, 1.0, mat_vec(so3.exp_matrix(turn), phi))
        angular = add3(scale3(dt, mat_t_vec(so3.right_jacobian(turn), phi)), mat_t_vec(load9(fixed.inertia), l))
        put6(bar.du, add3(scale3(dt, x), scale3(fixed.mass, p)), angular)
        bar.mass += dot3(v, p)
        add_outer(bar.inertia, 1.0, l, w)
    for i in range(model.joints.shape[0]):
        joint, bar = model.joints[i], bars.joints[i]
        for k in range(joint.free):
            if bar.after[k] != 0.0:
                bar.armature[k] += bar.after[k] * own.rows[i, k]
                pull_direction_rate(model, work, bars, i, k, bar.after[k] * joint.armature[k])


@inline
def put_aside(model, work, own, tape, entry, bars, left):
    """Velocities at the start of the step into ``left``, and impulses into the work."""
    for i in range(model.bodies.shape[0] - 1):
        fixed, past = model.bodies[i], tape.bodies[entry, i]
        put6(left[i], scale3(1.0 / fixed.mass, load3(past.p)), mat_vec(load9(fixed.inertia_inverse), load3(past.l)))
    for i in range(model.joints.shape[0]):
        for k in range(model.joints[i].rows):
            work.joints[i].mu[k] = own.impulse[i, k]
    for i in range(model.couplings.shape[0]):
        if model.couplings[i].law == CONSTRAINT:
            work.couplings[i].mu = own.coupling_impulse[i]


@inline
def pull_projected(model, work, bars, options, dt, left, targets, next_targets):
    """From bars ``du`` of the velocities after the step to those of what it starts from."""
    if knot_matrix(model, work, options.compliance, dt) >= 0:
        return False
    world = model.bodies.shape[0] - 1
    first, before = 0.0, 0.0
    for attempt in range(PASSES):
        size = 0.0
        for i in range(world):
            vector = work.vector[work.bodies[i].node].v
            for c in range(6):
                vector[c] = bars.bodies[i].du[c]
                size = max(size, abs(vector[c]))
        for i in range(model.joints.shape[0]):
            for k in range(model.joints[i].rows):
                work.vector[work.joints[i].node].v[k] = bars.joints[i].mu[k]
                size = max(size, abs(bars.joints[i].mu[k]))
        for i in range(model.couplings.shape[0]):
            work.vector[work.couplings[i].node].v[0] = bars.couplings[i].mu
            size = max(size, abs(bars.couplings[i].mu))
        if attempt <= 1:
            first = max(first, size)
        elif not size < 0.5 * before:
            break
        if not size > 1e-13 * first:
            break
        before = size
        solve_transposed(work.blocks, work.schedule, work.vector)
        for i in range(world):
            for c in range(6):
                bars.bodies[i].b[c] = -work.vector[work.bodies[i].node].v[c]
        for i in range(model.joints.shape[0]):
            for k in range(model.joints[i].rows):
                bars.joints[i].b[k] = -work.vector[work.joints[i].node].v[k]
        for i in range(model.couplings.shape[0]):
            bars.couplings[i].b = -work.vector[work.couplings[i].node].v[0]
        pull_knot_equations(model, work, bars, dt, left, next_targets)
        pull_asked(model, work, bars, dt, options.stabilization, left)
    for i in range(model.joints.shape[0]):
        for k in range(6):
            # of the rates that drives were asked for, (next - target) / dt
            next_targets[i, k] /= dt
            targets[i, k] -= next_targets[i, k]
    return True


@inline
def pull_asked(model, work, bars, dt, stabilization, left):
    """What a step has besides a knot's equations: a part of what is open, gyroscopic torques and paths at its start; weighted with ``b``."""
    world = model.bodies.shape[0] - 1
    back = stabilization / dt
    for i in range(model.joints.shape[0]):
        joint, at, bar = model.joints[i], work.joints[i], bars.joints[i]
        y, C, Rp = joint_at_knot(work.bodies, joint)
        for k in range(joint.locks):
            if joint.row_kind[k] != COMPLIANT:
                weight = back * bar.b[k]
                force, on_parent, on_child = row_gradient(joint, at, k, y, C, Rp)
                pull_at_knot(bars, i, joint, work.bodies, weight, force, on_parent, on_child)
                pull_target(bar, joint, at, k, weight, C)
                pull_own_numbers(bar, joint, at, k, weight, C)
    for i in range(world):
        fixed, bar = model.bodies[i], bars.bodies[i]
        for c in range(6):
            bar.kept_u[c], bar.kept_du[c] = bar.u[c], bar.du[c]
            bar.u[c] = left[i, c]
            bar.du[c] = 0.0
    for i in range(model.couplings.shape[0]):
        coupling, tie, bar = model.couplings[i], work.couplings[i], bars.couplings[i]
        if coupling.law == CONSTRAINT:
            pull_coupling_value(model, work, bars, i, back * bar.b, False)
            continue
        kept = bar.mu
        bar.mu = 0.0
        pull_coupling_wrench(model, work, bars, i, -dt, EQUATIONS)
        force, K, D, _ = coupling_law(work, coupling, tie, tie.value, tie.rate)
        weight = bar.mu
        pull_law(bar, coupling, force + tie.input, tie.value, tie.rate, weight)
        pull_coupling_value(model, work, bars, i, weight * K, False)
        pull_coupling_rate(model, work, bars, i, weight * D)
        bar.mu = kept + bar.b  # its row only says that it has no impulse of its own
    for i in range(world):
        fixed, bar = model.bodies[i], bars.bodies[i]
        t, w = scale3(dt, load3(bar.b[3:])), load3(left[i, 3:])
        l = mat_vec(load9(fixed.inertia), w)
        # w x l with w = J^-1 l
        add_to3(bar.before[9:], 1.0, cross3(t, w))
        angular = mat_vec(load9(fixed.inertia_inverse), add3(load3(bar.du[3:]), cross3(l, t)))
        linear = load3(bar.du)
        add_to3(bar.before[6:], 1.0 / fixed.mass, linear)
        add_to3(bar.before[9:], 1.0, angular)
        bar.mass -= dot3(load3(left[i]), linear) / fixed.mass
        add_outer(bar.inertia, -1.0, angular, w)
        for c in range(6):
            bar.u[c], bar.du[c] = bar.kept_u[c], bar.kept_du[c]


@kernel
def pull_knots(model, work, recording, inputs, coordinates, cot, bars, into, rate):
    """What is read at knots, weighted with ``cot``, by the states there."""
    for knot in range(coordinates.shape[0]):
        clear_knot(model, bars)
        for i in range(model.bodies.shape[0] - 1):
            momentum, fixed, bar = recording.momentum[knot, i], model.bodies[i], bars.bodies[i]
            store3(work.bodies[i].x, load3(recording.position[knot, i]))
            store4(work.bodies[i].q, load4(recording.orientation[knot, i]))
            put6(bar.u, scale3(1.0 / fixed.mass, load3(momentum)), mat_vec(load9(fixed.inertia_inverse), load3(momentum[3:])))
            for c in range(6):
                work.velocity[i, c] = bar.u[c]
                bar.du[c] = cot.velocity[knot, i, c]
        for i in range(model.joints.shape[0]):
            for k in range(6):
                work.joints[i].target[k] = inputs.target[knot, i, k]
                work.joints[i].coordinate[k] = coordinates[knot, i, k]
        evaluate_pose(model, work)
        aim_all(model, work)
        joint_rates(model, work, work.velocity, rate)
        pull_rates(model, work, bars, cot.rate[knot])
        pull_coordinates(model, work, bars, cot.coordinate[knot])
        if cot.energy[knot, 0] != 0.0:
            pull_kinetic(model, work, bars, cot.energy[knot, 0], rate)
        if cot.energy[knot, 1] != 0.0:
            pull_potential(model, work, bars, cot.energy[knot, 1])
        for i in range(model.bodies.shape[0] - 1):
            fixed, bar, state = model.bodies[i], bars.bodies[i], into.body[knot, i]
            linear, angular = load3(bar.du), mat_vec(load9(fixed.inertia_inverse), load3(bar.du[3:]))
            for c in range(3):
                state[c] += bar.x[c] + cot.position[knot, i, c]
                state[3 + c] += bar.phi[c] + cot.orientation[knot, i, c]
                state[6 + c] += linear[c] / fixed.mass
                state[9 + c] += angular[c]
            bar.mass -= dot3(load3(bar.u), linear) / fixed.mass
            add_outer(bar.inertia, -1.0, angular, load3(bar.u[3:]))
            put6(bar.du, ZERO3, ZERO3)
