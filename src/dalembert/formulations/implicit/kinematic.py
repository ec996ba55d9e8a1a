"""Kernels for fully constrained mechanisms (Quaternion section 6.3): the drives determine the pose, forces follow.

Per step: the pose by Gauss-Newton on all rows (eq. 33), from a first guess that carries the last poses on; velocities by the
integration formula (F1, F2); the impulses of the rows that balance the bodies (F3, F4), least in a weighted norm (eq. 32).
Both systems have the matrix N = G^T W^-1 G on the graph of the bodies alone, and one factor of it serves both: where all
rows can be met, their weights do not change the pose.
"""
from __future__ import annotations

from math import isfinite

import numpy as np

from dalembert.formulations.implicit.stage import FLIP, add4, dot4, residual
from dalembert.formulations.implicit.step import accept, aggregate, record_knot, restore
from dalembert.formulations.maximal.knot import apply_inputs, joint_at_knot, set_targets, write_gradients
from dalembert.kernels import inline, kernel
from dalembert.linalg import clear, factor, solve
from dalembert.linalg.rows import add, largest, load, load_vector, replace, scale, store, store_vector, subtract, zeros
from dalembert.model.rows import consistent, row_value
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import add3, load3, load4, scale3, store3, store4, store9

SOLVED, INCONSISTENT, SINGULAR = 0, 1, 2
#: an iteration that shrinks the open rows by at least this factor keeps the factor of N for the next one
REUSE = 0.01
#: rows that rounding keeps from closing further, m or rad
CLOSED = 1e-11
#: differences of the last poses that the first guess may use
ORDERS = 8
NO_WEIGHTS = np.zeros(1)


@kernel
def normal_matrix(records, soft, blocks, schedule, diagonal, between):
    """Write and factor N = G^T W^-1 G. Returns -1, or the body that the rows do not hold."""
    bodies, joints = records.bodies, records.joints
    world = bodies.shape[0] - 1
    clear(blocks, schedule)
    for i in range(world):
        set_zero(blocks[diagonal[i]].M)
    for i in range(joints.shape[0]):
        if between[i, 0] >= 0:
            set_zero(blocks[between[i, 0]].M)
            set_zero(blocks[between[i, 1]].M)
    for i in range(joints.shape[0]):
        joint = joints[i]
        add_product(blocks[diagonal[joint.child]].M, joint.Gc, joint.Gc, soft[i], joint.locks)
        if joint.parent != world:
            add_product(blocks[diagonal[joint.parent]].M, joint.Gp, joint.Gp, soft[i], joint.locks)
            add_product(blocks[between[i, 0]].M, joint.Gp, joint.Gc, soft[i], joint.locks)
            add_product(blocks[between[i, 1]].M, joint.Gc, joint.Gp, soft[i], joint.locks)
    return factor(blocks, schedule)


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
def gather(records, vector, rows):
    """vector += G^T rows."""
    bodies, joints = records.bodies, records.joints
    world = bodies.shape[0] - 1
    for i in range(joints.shape[0]):
        joint = joints[i]
        pull(vector[joint.child].v, joint.Gc, rows[i], joint.locks)
        if joint.parent != world:
            pull(vector[joint.parent].v, joint.Gp, rows[i], joint.locks)


@inline
def pull(v, G, sizes, rows):
    """v += G^T sizes for the rows of one body."""
    total = load_vector(v, 6)
    for k in range(rows):
        total = add(total, scale(sizes[k], load_vector(G[k], 6)))
    store_vector(v, total)


@kernel
def measure(records, stages, soft, pulled, gamma):
    """The pose that the stages' velocities lead to, gradients of all rows there, and their weighted open amounts W^-1 g.

    Returns the largest g, in m or rad, or infinity when a joint flipped.
    """
    bodies, joints = records.bodies, records.joints
    for i in range(stages.shape[0]):
        s, body = stages[i], bodies[i]
        store3(body.x, add3(load3(s.xp), scale3(gamma, load3(s.v))))
        q = quaternion.normalize(add4(load4(s.qp), load4(s.w), gamma))
        store4(body.q, q)
        store9(body.R, quaternion.to_matrix(q))
    size = 0.0
    for i in range(joints.shape[0]):
        joint = joints[i]
        y, C, R_parent = joint_at_knot(bodies, joint)
        if not consistent(joint, C, FLIP):
            return np.inf
        for k in range(joint.locks):
            value = row_value(joint, k, y, C)
            if not isfinite(value):
                return np.inf
            pulled[i, k] = soft[i, k] * value
            size = max(size, abs(value))
        write_gradients(joint, joint.locks, y, C, R_parent)
    return size


@kernel
def begin(stages, path, dt):
    """Differences of the poses at a start: the pose, and its change by the velocities there."""
    for i in range(stages.shape[0]):
        s = stages[i]
        for c in range(3):
            path[i, 0, c], path[i, 1, c] = s.x0[c], dt * s.v0[c]
        for c in range(4):
            path[i, 0, 3 + c], path[i, 1, 3 + c] = s.q0[c], dt * s.w0[c]


@kernel
def extend(stages, path, sizes):
    """Add the last pose to the backward differences D_0 (the pose itself) to D_ORDERS, with their sizes over all bodies."""
    sizes[:] = 0.0
    for i in range(stages.shape[0]):
        s, differences = stages[i], path[i]
        new = zeros()
        for c in range(3):
            new = replace(new, c, s.x0[c])
        for c in range(4):
            new = replace(new, 3 + c, s.q0[c])
        for k in range(differences.shape[0]):
            old = load(differences, k)
            store(differences, k, new)
            store(sizes, k, largest(load(sizes, k), new))
            new = subtract(new, old)


@kernel
def guess(stages, vector, path, sizes, known, gamma):
    """First guess of a pose: the polynomial through the last ones, D_0 + ... + D_m. ``known`` 0 is the last pose itself.

    Of the ``known`` differences those up to the smallest count: beyond it they hold noise, or a motion that is not smooth.
    """
    order, least = 0, np.inf
    for k in range(1, known + 1):
        if sizes[k].max() < least:
            order, least = k, sizes[k].max()
    for i in range(stages.shape[0]):
        s, pose = stages[i], vector[i].v
        total = zeros()
        for k in range(order, -1, -1):
            total = add(total, load(path[i], k))
        store_vector(pose, total)
        q = quaternion.normalize((pose[3], pose[4], pose[5], pose[6]))
        for c in range(3):
            s.v[c] = (pose[c] - s.xp[c]) / gamma
        for c in range(4):
            s.w[c] = (q[c] - s.qp[c]) / gamma


@kernel
def turn(bodies, stages, vector, gamma, step):
    """Velocities that lead to the pose moved against a Gauss-Newton direction."""
    for i in range(stages.shape[0]):
        s, d = stages[i], vector[i].v
        x = add3(load3(bodies[i].x), scale3(-step, load3(d)))
        q = quaternion.multiply(load4(bodies[i].q), quaternion.exp(scale3(-step, (d[3], d[4], d[5]))))
        q = quaternion.normalize(q)
        sign = 1.0 if dot4(q, load4(s.q0)) > 0.0 else -1.0
        for c in range(3):
            s.v[c] = (x[c] - s.xp[c]) / gamma
        for c in range(4):
            s.w[c] = (sign * q[c] - s.qp[c]) / gamma


@kernel
def find_pose(records, stages, soft, blocks, schedule, vector, diagonal, between, pulled, gamma, tolerance, max_iterations):
    """Gauss-Newton with line search from the guess in the stages (eq. 33). Returns (outcome, iterations, largest open row).

    N is left factored at a pose nearby.
    """
    size = measure(records, stages, soft, pulled, gamma)
    fresh = False
    iteration = 0
    while iteration == 0 or size > tolerance:
        if iteration == max_iterations or not size < np.inf:
            return (SOLVED if size < CLOSED else INCONSISTENT), iteration, size
        iteration += 1
        if not fresh and normal_matrix(records, soft, blocks, schedule, diagonal, between) >= 0:
            return SINGULAR, iteration, size
        for i in range(stages.shape[0]):
            store_vector(vector[i].v, zeros())
        gather(records, vector, pulled)
        solve(blocks, schedule, vector)
        step, done = 1.0, 0.0
        new = np.inf
        while step > 1e-3:
            turn(records.bodies, stages, vector, gamma, step - done)
            done = step
            new = measure(records, stages, soft, pulled, gamma)
            if new < size or new <= tolerance:
                break
            step *= 0.5
        if step <= 1e-3:
            turn(records.bodies, stages, vector, gamma, -done)
            measure(records, stages, soft, pulled, gamma)
            if size < CLOSED or not fresh:
                return (SOLVED if size < CLOSED else INCONSISTENT), iteration, size
            fresh = False
            continue
        fresh = new < REUSE * size
        size = new
    return SOLVED, iteration, size


@kernel
def find_impulses(records, stages, soft, blocks, schedule, vector, diagonal, between, impulse, rows, pulled, tolerance):
    """Impulses of all rows, least in the weighted norm, that balance the bodies at the residuals in the stages (eq. 32).

    N is factored at a pose nearby: refinement makes up for the difference, or a new factor does. False when neither can,
    as where the rows hardly hold a body.
    """
    bodies, joints = records.bodies, records.joints
    world = bodies.shape[0] - 1
    for i in range(joints.shape[0]):
        joint = joints[i]
        for k in range(joint.locks, joint.rows):  # dampers
            impulse[i, k] = -rows[i, k]
            for c in range(6):
                stages[joint.child].r[c] -= impulse[i, k] * joint.Gc[k, c]
                if joint.parent != world:
                    stages[joint.parent].r[c] -= impulse[i, k] * joint.Gp[k, c]
    first = size = before = np.inf
    stale = True
    for attempt in range(16):
        size = 0.0
        for i in range(world):
            r = stages[i].r
            for c in range(6):
                vector[i].v[c] = r[c]
                size = max(size, abs(r[c]) / (bodies[i].mass * (1.0 if c < 3 else bodies[i].length)))
        if attempt == 0:
            first = size
        if size < 1e-3 * tolerance:
            break
        if size > 0.5 * before:
            if not stale or normal_matrix(records, soft, blocks, schedule, diagonal, between) >= 0:
                break
            stale = False
        before = size
        solve(blocks, schedule, vector)
        for i in range(joints.shape[0]):
            joint = joints[i]
            for k in range(joint.locks):
                total = 0.0
                for c in range(6):
                    total += joint.Gc[k, c] * vector[joint.child].v[c]
                if joint.parent != world:
                    for c in range(6):
                        total += joint.Gp[k, c] * vector[joint.parent].v[c]
                pulled[i, k] = -soft[i, k] * total
                impulse[i, k] -= pulled[i, k]
        for i in range(world):
            store_vector(vector[i].v, load_vector(stages[i].r, 6))
        gather(records, vector, pulled)
        for i in range(world):
            for c in range(6):
                stages[i].r[c] = vector[i].v[c]
    return size <= max(tolerance, 1e-10 * first)


@kernel
def aggregate_start(records, stages, half):
    """The first step of BDF2 by the trapezoidal rule, (v + v_0)/2 = (x - x_0)/dt: BDF1 would leave its forces wrong."""
    aggregate(records, stages, 1.0, 0.0)
    for i in range(stages.shape[0]):
        s = stages[i]
        for c in range(3):
            s.xp[c] += half * s.v0[c]
        for c in range(4):
            s.qp[c] += half * s.w0[c]


@kernel
def even_acceleration(records, stages):
    """Half the change of the velocities in half a step: the acceleration of the trapezoidal rule's step, (v - v_0)/dt."""
    for i in range(stages.shape[0]):
        s = stages[i]
        for c in range(3):
            s.vp[c] = 0.5 * (s.v0[c] + s.v[c])
        for c in range(4):
            s.wp[c] = 0.5 * (s.w0[c] + s.w[c])
    for i in range(records.axles.shape[0]):
        axle = records.axles[i]
        for c in range(6):
            axle.rp[c] = 0.5 * (axle.r0[c] + axle.r[c])


@kernel
def run_steps(records, stages, path, sizes, soft, blocks, schedule, vector, diagonal, between, impulse, coupling_impulse, rows, coupling_rows, pulled,
              clock, base_load, recording, inputs, multistep, first, count, dt, tolerance, max_iterations):
    """``count`` steps from knot ``first`` of the recording. Returns (outcome, steps done, largest open row)."""
    size = 0.0
    for index in range(count):
        knot = first + index
        apply_inputs(records, base_load, inputs, index)
        set_targets(records, inputs.target[index + 1])
        history = clock[1] if clock[0] == dt else 0.0
        starts = history == 0.0
        if starts:
            begin(stages, path, dt)
        if multistep == 1:
            gamma = dt
            aggregate(records, stages, 1.0, 0.0)
        elif starts:
            gamma = 0.5 * dt
            aggregate_start(records, stages, gamma)
        else:
            gamma = 2.0 / 3.0 * dt
            aggregate(records, stages, 4.0 / 3.0, -1.0 / 3.0)
        impulse[:] = 0.0
        outcome, iterations = INCONSISTENT, 0
        for known in (min(ORDERS, int(history) + 1), 0):
            guess(stages, vector, path, sizes, known, gamma)
            outcome, spent, size = find_pose(
                records, stages, soft, blocks, schedule, vector, diagonal, between, pulled, gamma, max(1e-13, min(1e-12, tolerance * dt)),
                max_iterations,
            )
            iterations += spent
            if outcome == SOLVED:
                break
        if outcome != SOLVED:
            restore(records, stages)
            return outcome, index, size
        residual(records, stages, impulse, coupling_impulse, rows, coupling_rows, gamma)
        if starts and multistep == 2:
            even_acceleration(records, stages)
            residual(records, stages, impulse, coupling_impulse, rows, coupling_rows, gamma)
        if not find_impulses(records, stages, soft, blocks, schedule, vector, diagonal, between, impulse, rows, pulled, tolerance):
            restore(records, stages)
            return SINGULAR, index, size
        accept(records, stages, NO_WEIGHTS, dt, gamma, False)
        extend(stages, path, sizes)
        clock[0], clock[1] = dt, history + 1.0
        for i in range(impulse.shape[0]):
            for k in range(6):
                recording.row_force[knot + 1, i, k] = impulse[i, k] / gamma
        recording.substeps[knot + 1] = 1
        recording.iterations[knot + 1] = iterations
        record_knot(records, recording, knot + 1)
    return SOLVED, count, size
