"""Kernels for fully constrained mechanisms (Quaternion section 6.3): the drives determine the pose, forces follow.

Per step: the pose by Gauss-Newton on all rows (eq. 33), from a first guess that carries the last poses on; velocities by the
integration formula (F1, F2); the impulses of the rows that balance the bodies (F3, F4), least in a weighted norm (eq. 32).
Both systems have the matrix N = G^T W^-1 G on the graph of the bodies alone, and one factor of it serves both: where all
rows can be met, their weights do not change the pose.
"""
from __future__ import annotations

from math import isfinite
from typing import NamedTuple

import numpy as np

from dalembert.forces.loads import apply_inputs, clear_inputs
from dalembert.formulations.implicit.equations import FLIP, Stage, add4, count_others, dot4, residual
from dalembert.formulations.implicit.state import Scratch, recall, record
from dalembert.formulations.implicit.step import (
    accept,
    aggregate,
    aggregate_bdf,
    bdf_gamma,
    finish,
    history_of,
    turns_far,
)
from dalembert.formulations.maximal.knot import clear_impulses
from dalembert.kernels import inline, kernel
from dalembert.linalg import WIDTH, clear, factor, solve
from dalembert.linalg.rows import add, largest, load, load_vector, replace, scale, store, store_vector, subtract, zeros
from dalembert.linalg.schedule import Schedule
from dalembert.model.pose import joint_at_knot, set_targets, write_gradients
from dalembert.model.records import F, fields
from dalembert.model.rows import consistent, row_value
from dalembert.solvers.outcomes import NOT_CONVERGED, SINGULAR, SOLVED, TOO_FAST
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import add3, load3, load4, scale3, store3, store4, store9

#: an iteration that shrinks the open rows by at least this factor keeps the factor of N for the next one
REUSE = 0.01
#: rows that rounding keeps from closing further, m or rad
CLOSED = 1e-11
#: differences of the last poses that the first guess may use
ORDERS = 8
#: a body's backward differences D_0 (the pose: position, quaternion) to D_ORDERS, each of the width of a vector register
PATH = np.dtype(fields(F, D=(ORDERS + 1, WIDTH)))


class KinematicState(NamedTuple):
    """As ``ImplicitState``, with the poses behind."""

    bodies: np.ndarray
    joints: np.ndarray
    paths: np.ndarray
    clock: np.ndarray


class Normal(NamedTuple):
    """N on the graph of the bodies, and scratch of the rows.

    ``soft`` (joints, 6): W^-1; ``diagonal`` (n,) and ``between`` (joints, 2): where blocks lie; ``pulled`` (joints, 6): weighted amounts by
    which rows are open, or forces; ``sizes``: of the differences of the poses.
    """

    soft: np.ndarray
    blocks: np.ndarray
    schedule: Schedule
    vector: np.ndarray
    diagonal: np.ndarray
    between: np.ndarray
    pulled: np.ndarray
    sizes: np.ndarray


class KinematicScratch(NamedTuple):
    """Scratch of the stages, and the system of the rows."""

    own: Scratch
    normal: Normal


@kernel
def normal_matrix(model, work, normal):
    """Write and factor N = G^T W^-1 G. Returns -1, or the body that the rows do not hold."""
    blocks, diagonal, between, soft = normal.blocks, normal.diagonal, normal.between, normal.soft
    world = model.bodies.shape[0] - 1
    clear(blocks, normal.schedule)
    for i in range(world):
        set_zero(blocks[diagonal[i]].M)
    for i in range(model.joints.shape[0]):
        if between[i, 0] >= 0:
            set_zero(blocks[between[i, 0]].M)
            set_zero(blocks[between[i, 1]].M)
    for i in range(model.joints.shape[0]):
        joint, at = model.joints[i], work.joints[i]
        add_product(blocks[diagonal[joint.child]].M, at.Gc, at.Gc, soft[i], joint.locks)
        if joint.parent != world:
            add_product(blocks[diagonal[joint.parent]].M, at.Gp, at.Gp, soft[i], joint.locks)
            add_product(blocks[between[i, 0]].M, at.Gp, at.Gc, soft[i], joint.locks)
            add_product(blocks[between[i, 1]].M, at.Gc, at.Gp, soft[i], joint.locks)
    return factor(blocks, normal.schedule)


@inline
def set_zero(M):
    for r in range(6):
        store(M, r, zeros())


@inline
def add_product(M, A, B, soft, rows):
    """M += A^T W^-1 B for gradients A and B of ``rows`` rows; the six rows of M stay in registers."""
    m0, m1, m2, m3, m4, m5 = load(M, 0), load(M, 1), load(M, 2), load(M, 3), load(M, 4), load(M, 5)
    for k in range(rows):
        a, b = A[k], scale(soft[k], load_vector(B[k], 6))
        m0 = add(m0, scale(a[0], b))
        m1 = add(m1, scale(a[1], b))
        m2 = add(m2, scale(a[2], b))
        m3 = add(m3, scale(a[3], b))
        m4 = add(m4, scale(a[4], b))
        m5 = add(m5, scale(a[5], b))
    store(M, 0, m0)
    store(M, 1, m1)
    store(M, 2, m2)
    store(M, 3, m3)
    store(M, 4, m4)
    store(M, 5, m5)


@kernel
def gather(model, work, normal):
    """vector += G^T pulled."""
    vector, pulled = normal.vector, normal.pulled
    world = model.bodies.shape[0] - 1
    for i in range(model.joints.shape[0]):
        joint, at = model.joints[i], work.joints[i]
        pull(vector[joint.child].v, at.Gc, pulled[i], joint.locks)
        if joint.parent != world:
            pull(vector[joint.parent].v, at.Gp, pulled[i], joint.locks)


@inline
def pull(v, G, sizes, rows):
    """v += G^T sizes for the rows of one body."""
    total = load_vector(v, 6)
    for k in range(rows):
        total = add(total, scale(sizes[k], load_vector(G[k], 6)))
    store_vector(v, total)


@kernel
def measure(stage, normal):
    """The pose that the stage's velocities lead to, gradients of all rows there, and their weighted open amounts W^-1 g.

    Returns the largest g, in m or rad, or infinity when a joint flipped.
    """
    model, work, own, gamma = stage.model, stage.work, stage.own, stage.gamma
    for i in range(own.bodies.shape[0]):
        iterate, body = own.bodies[i], work.bodies[i]
        store3(body.x, add3(load3(iterate.xp), scale3(gamma, load3(iterate.v))))
        q = quaternion.normalize(add4(load4(iterate.qp), load4(iterate.w), gamma))
        store4(body.q, q)
        store9(body.R, quaternion.to_matrix(q))
    size = 0.0
    for i in range(model.joints.shape[0]):
        joint, at = model.joints[i], work.joints[i]
        y, C, R_parent = joint_at_knot(work.bodies, joint)
        if not consistent(joint, at, C, FLIP):
            return np.inf
        for k in range(joint.locks):
            value = row_value(joint, at, k, y, C)
            if not isfinite(value):
                return np.inf
            normal.pulled[i, k] = normal.soft[i, k] * value
            size = max(size, abs(value))
        write_gradients(joint, at, joint.locks, y, C, R_parent)
    return size


@kernel
def start_path(state, dt):
    """Differences of the poses where only one is known: the pose before, and its change by the velocities there."""
    for i in range(state.paths.shape[0]):
        past, D = state.bodies[i], state.paths[i].D
        for k in range(ORDERS + 1):
            store(D, k, zeros())
        for c in range(3):
            D[0, c], D[1, c] = past.x1[c], dt * past.v1[c]
        for c in range(4):
            D[0, 3 + c], D[1, 3 + c] = past.q1[c], dt * past.w1[c]


@kernel
def extend_path(state):
    """Add the state's pose, after a step, to the differences of the poses."""
    if state.clock[1] == 1.0:
        start_path(state, state.clock[0])
    for i in range(state.paths.shape[0]):
        body, D = state.bodies[i], state.paths[i].D
        new = zeros()
        for c in range(3):
            new = replace(new, c, body.x[c])
        for c in range(4):
            new = replace(new, 3 + c, body.q[c])
        for k in range(ORDERS + 1):
            old = load(D, k)
            store(D, k, new)
            new = subtract(new, old)


@kernel
def best_order(paths, sizes, known):
    """Of the ``known`` differences those up to the smallest count: beyond it they hold noise, or a motion that is not smooth."""
    sizes[:] = 0.0
    for i in range(paths.shape[0]):
        for k in range(1, known + 1):
            store(sizes, k, largest(load(sizes, k), load(paths[i].D, k)))
    order, least = 0, np.inf
    for k in range(1, known + 1):
        size = 0.0
        for c in range(WIDTH):
            size = max(size, sizes[k, c])
        if size < least:
            order, least = k, size
    return order


@kernel
def guess(state, own, normal, known, gamma):
    """First guess of a pose: the polynomial through the last ones, D_0 + ... + D_m. ``known`` 0 is the last pose itself."""
    order = best_order(state.paths, normal.sizes, known)
    for i in range(own.bodies.shape[0]):
        pose, total = normal.vector[i].v, zeros()
        for k in range(order, -1, -1):
            total = add(total, load(state.paths[i].D, k))
        store_vector(pose, total)
        go_to(own.bodies[i], load3(pose), quaternion.normalize((pose[3], pose[4], pose[5], pose[6])), gamma)


@kernel
def guess_start(state, own, length, gamma):
    """First guess of a pose where only one is known, carried on by its velocities for ``length`` (s)."""
    for i in range(own.bodies.shape[0]):
        past = state.bodies[i]
        q = quaternion.normalize(add4(load4(past.q), load4(past.w), length))
        go_to(own.bodies[i], add3(load3(past.x), scale3(length, load3(past.v))), q, gamma)


@inline
def go_to(iterate, x, q, gamma):
    """Velocities that lead to a pose."""
    for c in range(3):
        iterate.v[c] = (x[c] - iterate.xp[c]) / gamma
    for c in range(4):
        iterate.w[c] = (q[c] - iterate.qp[c]) / gamma


@kernel
def turn(stage, normal, step):
    """Velocities that lead to the pose moved against a Gauss-Newton direction, the shorter way for the quaternion."""
    for i in range(stage.own.bodies.shape[0]):
        iterate, body, d = stage.own.bodies[i], stage.work.bodies[i], normal.vector[i].v
        q = quaternion.multiply(load4(body.q), quaternion.exp(scale3(-step, (d[3], d[4], d[5]))))
        q = quaternion.normalize(q)
        if dot4(q, load4(iterate.qp)) < 0.0:
            q = (-q[0], -q[1], -q[2], -q[3])
        go_to(iterate, add3(load3(body.x), scale3(-step, load3(d))), q, stage.gamma)


@kernel
def find_pose(stage, normal, tolerance, max_iterations):
    """Gauss-Newton with line search from the guess in the stage (eq. 33). Returns (outcome, iterations, largest open row).

    N is left factored at a pose nearby.
    """
    model, work = stage.model, stage.work
    size = measure(stage, normal)
    fresh = False
    iteration = 0
    while iteration == 0 or size > tolerance:
        if iteration == max_iterations or not size < np.inf:
            return (SOLVED if size < CLOSED else NOT_CONVERGED), iteration, size
        iteration += 1
        if not fresh and normal_matrix(model, work, normal) >= 0:
            return SINGULAR, iteration, size
        for i in range(normal.diagonal.shape[0]):
            store_vector(normal.vector[i].v, zeros())
        gather(model, work, normal)
        solve(normal.blocks, normal.schedule, normal.vector)
        step, done = 1.0, 0.0
        new = np.inf
        while step > 1e-3:
            turn(stage, normal, step - done)
            done = step
            new = measure(stage, normal)
            if new < size or new <= tolerance:
                break
            step *= 0.5
        if step <= 1e-3:
            turn(stage, normal, -done)
            measure(stage, normal)
            if size < CLOSED or not fresh:
                return (SOLVED if size < CLOSED else NOT_CONVERGED), iteration, size
            fresh = False
            continue
        fresh = new < REUSE * size
        size = new
    return SOLVED, iteration, size


@kernel
def find_impulses(stage, normal, tolerance):
    """Impulses of all rows, least in the weighted norm, that balance the bodies at their residuals (eq. 32).

    N is factored at a pose nearby: refinement makes up for the difference, or a new factor does. False when neither can,
    as where the rows hardly hold a body.
    """
    model, work, vector = stage.model, stage.work, normal.vector
    bodies, world = work.bodies, model.bodies.shape[0] - 1
    for i in range(model.joints.shape[0]):
        joint, at = model.joints[i], work.joints[i]
        for k in range(joint.locks, joint.rows):  # dampers
            at.mu[k] = -at.r[k]
            for c in range(6):
                bodies[joint.child].r[c] -= at.mu[k] * at.Gc[k, c]
                bodies[joint.parent].r[c] -= at.mu[k] * at.Gp[k, c]
    first = size = before = np.inf
    stale = True
    for attempt in range(16):
        size = 0.0
        for i in range(world):
            r, fixed = bodies[i].r, model.bodies[i]
            for c in range(6):
                vector[i].v[c] = r[c]
                size = max(size, abs(r[c]) / (fixed.mass * (1.0 if c < 3 else fixed.length)))
        if attempt == 0:
            first = size
        if size < 1e-3 * tolerance:
            break
        if size > 0.5 * before:
            if not stale or normal_matrix(model, work, normal) >= 0:
                break
            stale = False
        before = size
        solve(normal.blocks, normal.schedule, vector)
        for i in range(model.joints.shape[0]):
            joint, at = model.joints[i], work.joints[i]
            for k in range(joint.locks):
                total = 0.0
                for c in range(6):
                    total += at.Gc[k, c] * vector[joint.child].v[c]
                if joint.parent != world:
                    for c in range(6):
                        total += at.Gp[k, c] * vector[joint.parent].v[c]
                normal.pulled[i, k] = -normal.soft[i, k] * total
                at.mu[k] -= normal.pulled[i, k]
        for i in range(world):
            store_vector(vector[i].v, load_vector(bodies[i].r, 6))
        gather(model, work, normal)
        for i in range(world):
            for c in range(6):
                bodies[i].r[c] = vector[i].v[c]
    return size <= max(tolerance, 1e-10 * first)


@kernel
def aggregate_start(state, own, half):
    """The first step of BDF2 by the trapezoidal rule, (v + v_0)/2 = (x - x_0)/dt: BDF1 would leave its forces wrong."""
    aggregate(state, own, 1.0, 0.0)
    for i in range(own.bodies.shape[0]):
        body, past = own.bodies[i], state.bodies[i]
        for c in range(3):
            body.xp[c] += half * past.v[c]
        for c in range(4):
            body.qp[c] += half * past.w[c]


@kernel
def even_acceleration(state, own):
    """Half the change of the velocities in half a step: the acceleration of the trapezoidal rule's step, (v - v_0)/dt."""
    for i in range(own.bodies.shape[0]):
        body, past = own.bodies[i], state.bodies[i]
        for c in range(3):
            body.vp[c] = 0.5 * (past.v[c] + body.v[c])
        for c in range(4):
            body.wp[c] = 0.5 * (past.w[c] + body.w[c])
    for i in range(own.axles.shape[0]):
        axle, past = own.axles[i], state.joints[i]
        for c in range(6):
            axle.rp[c] = 0.5 * (past.rate[c] + axle.r[c])


@kernel
def step(model, state, inputs, index, dt, options, work, scratch, after):
    """One step of length ``dt`` with the inputs ``index``. Returns (outcome, iterations, largest open row, gamma).

    ``after``, which may be ``state`` itself, is written only if the step is solved; impulses are left in the work.
    """
    own, normal = scratch.own, scratch.normal
    targets, history = inputs.target[index + 1], history_of(state.clock, dt)
    trapezoid = history == 0.0 and options.multistep == 2
    apply_inputs(model, work, inputs, index)
    set_targets(model, work, targets)
    recall(model, work, state)
    clear_impulses(model, work)
    if trapezoid:
        gamma = 0.5 * dt
        aggregate_start(state, own, gamma)
    else:
        gamma = bdf_gamma(options.multistep, dt)
        aggregate_bdf(state, own, options.multistep)
    stage = Stage(model, work, own, gamma, 0.0)
    outcome, iterations, size = NOT_CONVERGED, 0, 0.0
    for known in (min(ORDERS, int(history) + 1), 0):
        if history == 0.0:
            guess_start(state, own, dt if known > 0 else 0.0, gamma)
        else:
            guess(state, own, normal, known, gamma)
        outcome, spent, size = find_pose(stage, normal, max(1e-13, min(1e-12, options.tolerance * dt)), options.max_iterations)
        iterations += spent
        if outcome == SOLVED:
            break
    if outcome != SOLVED:
        return outcome, iterations, size, gamma
    if turns_far(state, own, gamma):
        return TOO_FAST, iterations, size, gamma
    residual(stage)
    if trapezoid:
        even_acceleration(state, own)
        residual(stage)
    count_others(model, work, own)
    if not find_impulses(stage, normal, options.tolerance):
        return SINGULAR, iterations, size, gamma
    accept(state, own, gamma, after)
    finish(model, targets, history, dt, work, after)
    extend_path(after)
    return SOLVED, iterations, size, gamma


@kernel
def run_steps(model, state, inputs, options, work, scratch, recording, first, count, dt):
    """``count`` steps from knot ``first`` of the recording. Returns (outcome, steps done, largest open row)."""
    size = 0.0
    clear_inputs(model, work)
    for index in range(count):
        knot = first + index + 1
        outcome, iterations, size, gamma = step(model, state, inputs, index, dt, options, work, scratch, state)
        if outcome != SOLVED:
            return outcome, index, size
        for i in range(model.joints.shape[0]):
            for k in range(model.joints[i].rows):
                recording.row_force[knot, i, k] = work.joints[i].mu[k] / gamma
        recording.substeps[knot] = 1
        recording.iterations[knot] = iterations
        record(model, state, recording, knot)
    return SOLVED, count, size
