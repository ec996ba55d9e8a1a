"""Kernels of the implicit quaternion formulation (Quaternion sections 3 to 6): one stage.

A stage finds (v, w = q') at its end, with positions and orientations eliminated by the integration formula,

    c = c_p + gamma v,     q = q_p + gamma w      (F1, F2; the update of the quaternion is additive),

gamma = beta dt for BDF and a_ii dt for DIRK, ``_p`` the aggregate of earlier states. With a = q^-1 w = (s, omega/2) and
b = q^-1 (w - w_p), the equations of a body, scaled as in section 6.1 so that every block is O(1), are

    m (v - v_p) - gamma f - G_x^T mu = 0                                             (F3)
    2 J vec(b) + gamma (omega x J omega + 2 s J omega) - gamma tau - G_phi^T mu = 0  (F4, in the body frame)
    (q.q - 1) / gamma = 0                                                            (F5)

and those of a row g / gamma = 0. Newton's unknowns are dv and e with dw = q e: then a rotation turns by 2 gamma vec(e).
Rotations use the normalised quaternion: the same at the solution, and F5 then determines the scalar part of e alone.
"""
from __future__ import annotations

from math import isfinite

import numpy as np

from dalembert.formulations.maximal.knot import evaluate_knot, joint_at_knot
from dalembert.kernels import inline, kernel
from dalembert.linalg import clear, factor, solve
from dalembert.model.hessians import add_direction, add_laws, add_row
from dalembert.model.records import COMPLIANT, MOST_STAGES
from dalembert.model.rows import consistent, frame_rotation, row_value
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import add3, cross3, load3, load4, load9, mat_vec, scale3, store3, store4

SOLVED, NOT_CONVERGED, SINGULAR = 0, 1, 2
FLIP = 0.3
REUSE = 0.02
#: a body's part of a stage: the last two states, the aggregate, the iterate, the residual, the stages' derivatives
STAGE = np.dtype([
    ("x0", "f8", 3), ("q0", "f8", 4), ("v0", "f8", 3), ("w0", "f8", 4),
    ("x1", "f8", 3), ("q1", "f8", 4), ("v1", "f8", 3), ("w1", "f8", 4),
    ("xp", "f8", 3), ("qp", "f8", 4), ("vp", "f8", 3), ("wp", "f8", 4),
    ("v", "f8", 3), ("w", "f8", 4), ("spin", "f8", 3), ("r", "f8", 7),
    ("kx", "f8", (MOST_STAGES, 3)), ("kq", "f8", (MOST_STAGES, 4)), ("kv", "f8", (MOST_STAGES, 3)), ("kw", "f8", (MOST_STAGES, 4)),
])


@inline
def inverse(q):
    """q^-1 of any quaternion."""
    n = 1.0 / (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    return (n * q[0], -n * q[1], -n * q[2], -n * q[3])


@inline
def add4(a, b, s):
    """a + s b for quaternions."""
    return (a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2], a[3] + s * b[3])


@inline
def add7(r, rows, size, G):
    """r -= size * G for the six mechanical equations of a body."""
    for c in range(6):
        r[c] -= size * G[c]


@kernel
def residual(records, stages, impulse, coupling_impulse, row_residual, coupling_residual, gamma):
    """All equations at the iterate. Returns (size in m/s, False when a joint flipped or a number is not finite)."""
    bodies, joints, couplings, axles = records.bodies, records.joints, records.couplings, records.axles
    world = bodies.shape[0] - 1
    for i in range(world):
        stage, body = stages[i], bodies[i]
        store3(body.x, add3(load3(stage.xp), scale3(gamma, load3(stage.v))))
        q = add4(load4(stage.qp), load4(stage.w), gamma)
        if not dot4(q, q) > 0.04:
            return 0.0, False
        store4(body.q, quaternion.normalize(q))
    evaluate_knot(records)
    size = 0.0
    for i in range(world):
        stage, body = stages[i], bodies[i]
        w = load4(stage.w)
        q = add4(load4(stage.qp), w, gamma)
        back = inverse(q)
        a = quaternion.multiply(back, w)
        b = quaternion.multiply(back, add4(w, load4(stage.wp), -1.0))
        J = load9(body.inertia)
        omega = (2.0 * a[1], 2.0 * a[2], 2.0 * a[3])
        store3(stage.spin, omega)
        Jw = mat_vec(J, omega)
        gyro = add3(cross3(omega, Jw), scale3(2.0 * a[0], Jw))
        turn = mat_vec(J, (2.0 * b[1], 2.0 * b[2], 2.0 * b[3]))
        r = stage.r
        for c in range(3):
            r[c] = body.mass * (stage.v[c] - stage.vp[c]) - gamma * body.load[c]
            r[3 + c] = turn[c] + gamma * (gyro[c] - body.load[3 + c])
        r[6] = (dot4(q, q) - 1.0) / gamma
        size = max(size, abs(r[6]) * body.length)
    for i in range(joints.shape[0]):
        joint = joints[i]
        y, C, _ = joint_at_knot(bodies, joint)
        if not consistent(joint, C, FLIP):
            return 0.0, False
        for k in range(joint.rows):
            if joint.row_kind[k] == COMPLIANT:
                rate = flow(joint.Gc[k], stages[joint.child])
                if joint.parent != world:
                    rate += flow(joint.Gp[k], stages[joint.parent])
                direction = joint.row_direction[k]
                row_residual[i, k] = impulse[i, k] + gamma * joint.damping[direction] * rate
                if joint.armature[direction] > 0.0:
                    axles[i].r[direction] = rate
                    row_residual[i, k] += joint.armature[direction] * (rate - axles[i].rp[direction])
                    size = max(size, abs(row_residual[i, k]) / joint.armature[direction] * bodies[joint.child].length)
            else:
                row_residual[i, k] = row_value(joint, k, y, C) / gamma
                size = max(size, abs(row_residual[i, k]))
                if not isfinite(row_residual[i, k]):
                    return 0.0, False
            add7(stages[joint.child].r, 6, impulse[i, k], joint.Gc[k])
            if joint.parent != world:
                add7(stages[joint.parent].r, 6, impulse[i, k], joint.Gp[k])
    for i in range(couplings.shape[0]):
        c = couplings[i]
        first = joints[c.joint[0]].coordinate[c.direction[0]]
        second = joints[c.joint[1]].coordinate[c.direction[1]]
        coupling_residual[i] = (first - c.ratio * second - c.offset) / gamma
        size = max(size, abs(coupling_residual[i]))
        for slot in range(c.bodies):
            add7(stages[c.body[slot]].r, 6, coupling_impulse[i], c.G[slot])
    for i in range(world):
        r, body = stages[i].r, bodies[i]
        linear = max(abs(r[0]), max(abs(r[1]), abs(r[2]))) / body.mass
        angular = max(abs(r[3]), max(abs(r[4]), abs(r[5]))) / (body.mass * body.length)
        if not isfinite(linear + angular):
            return 0.0, False
        size = max(size, max(linear, angular))
    return size, True


@inline
def dot4(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]


@inline
def flow(G, stage):
    """Rate along a row of six for a stage's velocities."""
    total = 0.0
    for c in range(3):
        total += G[c] * stage.v[c] + G[3 + c] * stage.spin[c]
    return total


@inline
def spin_derivative(A, e):
    """d(omega)/d(e) for a direction e = (scalar, vector), with A = 1 - gamma a: omega' = 2 vec(e A), s' = scalar(e A)."""
    product = quaternion.multiply(e, A)
    return product[0], (2.0 * product[1], 2.0 * product[2], 2.0 * product[3])


@inline
def unit(k):
    """Direction ``k`` of the quaternion unknown: the vector's components, then the scalar."""
    return (1.0 if k == 3 else 0.0, 1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0)


@kernel
def jacobian(records, stages, edges, blocks, impulse, coupling_impulse, gamma, compliance, K, gradient):
    """Blocks of the Newton matrix at the iterate. ``edges`` (joints,) and below: where the blocks between bodies lie."""
    bodies, joints, couplings = records.bodies, records.joints, records.couplings
    world = bodies.shape[0] - 1
    for i in range(world):
        stage, body = stages[i], bodies[i]
        M = blocks[body.diagonal].M
        M[:7, :7] = 0.0
        w = load4(stage.w)
        q = add4(load4(stage.qp), w, gamma)
        back = inverse(q)
        a = quaternion.multiply(back, w)
        b = quaternion.multiply(back, add4(w, load4(stage.wp), -1.0))
        A = (1.0 - gamma * a[0], -gamma * a[1], -gamma * a[2], -gamma * a[3])
        B = (1.0 - gamma * b[0], -gamma * b[1], -gamma * b[2], -gamma * b[3])
        J = load9(body.inertia)
        omega = load3(stage.spin)
        Jw = mat_vec(J, omega)
        for k in range(3):
            M[k, k] = body.mass
        for k in range(4):
            e = unit(k)
            db = quaternion.multiply(e, B)
            ds, dw = spin_derivative(A, e)
            Jdw = mat_vec(J, dw)
            gyro = add3(cross3(dw, Jw), cross3(omega, Jdw))
            turn = mat_vec(J, (2.0 * db[1], 2.0 * db[2], 2.0 * db[3]))
            for c in range(3):
                M[3 + c, 3 + k] = turn[c] + gamma * (gyro[c] + 2.0 * (ds * Jw[c] + a[0] * Jdw[c]))
        M[6, 6] = 2.0 * dot4(q, q)
    for i in range(edges.shape[0]):
        for c in range(2):
            if edges[i, c] >= 0:
                blocks[edges[i, c]].M[:7, :7] = 0.0
    for i in range(joints.shape[0]):
        joint = joints[i]
        if joint.rows == 0 and not joint.active:
            continue
        y, C, Rp = joint_at_knot(bodies, joint)
        K[:] = 0.0
        for k in range(joint.rows):
            add_row(K, joint, k, impulse[i, k], y, C, Rp)
        K *= 1.0 / gamma
        if joint.active:
            add_laws(K, joint, y, C, Rp, frame_rotation(joint, C), gradient)
        # K so far is d(force)/d(pose); an impulse changes by gamma K (gamma dv, 2 gamma e)
        add_stiffness(blocks, bodies, joint.parent, joint.child, edges[i], world, K, gamma * gamma)
        if joint.rows == 0:
            continue
        S = blocks[joint.diagonal].M
        for k in range(joint.rows):
            for c in range(joint.rows):
                S[k, c] = 0.0
            S[k, k] = 1.0 if joint.row_kind[k] == COMPLIANT else compliance * joint.soft[k]
        if joint.parent != world:
            write_rows(blocks[joint.block_jp].M, blocks[joint.block_pj].M, joint.Gp, joint.rows)
        write_rows(blocks[joint.block_jc].M, blocks[joint.block_cj].M, joint.Gc, joint.rows)
        for k in range(joint.locks, joint.rows):
            law_row(records, stages, joint, k, blocks, gamma, y, C, Rp, K, world)
    for i in range(couplings.shape[0]):
        c = couplings[i]
        blocks[c.diagonal].M[0, 0] = compliance * c.soft
        for slot in range(c.bodies):
            row, col = blocks[c.block_cb[slot]].M, blocks[c.block_bc[slot]].M
            for d in range(6):
                row[0, d] = c.G[slot, d] * (1.0 if d < 3 else 2.0)
                col[d, 0] = -c.G[slot, d]
        for end in range(2):
            joint = joints[c.joint[end]]
            y, C, Rp = joint_at_knot(bodies, joint)
            K[:] = 0.0
            add_direction(K, joint, c.direction[end], coupling_impulse[i] * (1.0 if end == 0 else -c.ratio), y, C, Rp)
            add_stiffness(blocks, bodies, joint.parent, joint.child, edges[c.joint[end]], world, K, gamma)


@inline
def write_rows(row, col, G, rows):
    """A joint's rows by a body's unknowns (dv, e), and its impulses in the body's equations."""
    for k in range(rows):
        for c in range(3):
            row[k, c] = G[k, c]
            row[k, 3 + c] = 2.0 * G[k, 3 + c]
            col[c, k] = -G[k, c]
            col[3 + c, k] = -G[k, 3 + c]
        row[k, 6] = 0.0
        col[6, k] = 0.0


@inline
def add_stiffness(blocks, bodies, parent, child, edge, world, K, scale):
    """Subtract ``scale`` K, by positions and rotations, from the equations of both bodies.

    Where the graph has no edge between them, their coupling is left to the iteration.
    """
    for c in range(6):
        factor_c = scale if c < 3 else 2.0 * scale
        for r in range(6):
            if parent != world:
                blocks[bodies[parent].diagonal].M[r, c] -= factor_c * K[r, c]
            if edge[0] >= 0:
                blocks[edge[0]].M[r, c] -= factor_c * K[r, 6 + c]
                blocks[edge[1]].M[r, c] -= factor_c * K[6 + r, c]
            blocks[bodies[child].diagonal].M[r, c] -= factor_c * K[6 + r, 6 + c]


@kernel
def law_row(records, stages, joint, k, blocks, gamma, y, C, Rp, K, world):
    """mu + (gamma d + a) (G u) - a (G u)_p = 0 by the unknowns of both bodies: through the velocities, and the turning of G."""
    weight = gamma * joint.damping[joint.row_direction[k]] + joint.armature[joint.row_direction[k]]
    K[:] = 0.0
    add_row(K, joint, k, 1.0, y, C, Rp)
    for end in range(2):
        body = joint.parent if end == 0 else joint.child
        if body == world:
            continue
        stage = stages[body]
        row = blocks[joint.block_jp].M if end == 0 else blocks[joint.block_jc].M
        w = load4(stage.w)
        back = inverse(add4(load4(stage.qp), w, gamma))
        a = quaternion.multiply(back, w)
        A = (1.0 - gamma * a[0], -gamma * a[1], -gamma * a[2], -gamma * a[3])
        for c in range(3):
            row[k, c] = weight * (joint.Gp[k, c] if end == 0 else joint.Gc[k, c])
        for c in range(4):
            _, dw = spin_derivative(A, unit(c))
            total = 0.0
            for d in range(3):
                total += dw[d] * (joint.Gp[k, 3 + d] if end == 0 else joint.Gc[k, 3 + d])
            row[k, 3 + c] = weight * total
        for c in range(6):
            turning = 0.0
            for d in range(3):
                if joint.parent != world:
                    turning += K[d, 6 * end + c] * stages[joint.parent].v[d] + K[3 + d, 6 * end + c] * stages[joint.parent].spin[d]
                turning += K[6 + d, 6 * end + c] * stages[joint.child].v[d] + K[9 + d, 6 * end + c] * stages[joint.child].spin[d]
            row[k, c] += weight * gamma * turning * (1.0 if c < 3 else 2.0)


@kernel
def load_vector(records, stages, vector, impulse, coupling_impulse, row_residual, coupling_residual, pull):
    """Copy the residuals into the solver's vector; ``pull`` draws the impulses of redundant rows towards zero."""
    bodies, joints, couplings = records.bodies, records.joints, records.couplings
    for i in range(bodies.shape[0] - 1):
        b = vector[bodies[i].node].v
        for c in range(7):
            b[c] = stages[i].r[c]
    for i in range(joints.shape[0]):
        if joints[i].rows > 0:
            b = vector[joints[i].node].v
            for k in range(joints[i].rows):
                b[k] = row_residual[i, k] + (pull * joints[i].soft[k] * impulse[i, k] if k < joints[i].locks else 0.0)
    for i in range(couplings.shape[0]):
        vector[couplings[i].node].v[0] = coupling_residual[i] + pull * couplings[i].soft * coupling_impulse[i]


@kernel
def move(records, stages, vector, impulse, coupling_impulse, gamma, step):
    """Iterate minus ``step`` times the Newton direction, dw = q e with q of the iterate that the direction belongs to."""
    bodies, joints, couplings = records.bodies, records.joints, records.couplings
    for i in range(bodies.shape[0] - 1):
        stage = stages[i]
        d = vector[bodies[i].node].v
        for c in range(3):
            stage.v[c] -= step * d[c]
        store4(stage.w, add4(load4(stage.w), (d[3], d[4], d[5], d[6]), -step))
    for i in range(joints.shape[0]):
        if joints[i].rows > 0:
            d = vector[joints[i].node].v
            for k in range(joints[i].rows):
                impulse[i, k] -= step * d[k]
    for i in range(couplings.shape[0]):
        coupling_impulse[i] -= step * vector[couplings[i].node].v[0]


@kernel
def turn_directions(records, stages, vector, gamma):
    """From e to dw = q e, in place."""
    bodies = records.bodies
    for i in range(bodies.shape[0] - 1):
        d = vector[bodies[i].node].v
        q = add4(load4(stages[i].qp), load4(stages[i].w), gamma)
        dw = quaternion.multiply(q, (d[6], d[3], d[4], d[5]))
        d[3], d[4], d[5], d[6] = dw


@kernel
def stage_floor(records, stages, impulse, gamma):
    """The residual that rounding alone can cause."""
    bodies, joints = records.bodies, records.joints
    size = 1.0 / gamma
    for i in range(bodies.shape[0] - 1):
        for c in range(3):
            size = max(size, max(abs(stages[i].v[c]), abs(bodies[i].x[c]) / gamma))
    for i in range(joints.shape[0]):
        for k in range(joints[i].rows):
            child = bodies[joints[i].child]
            size = max(size, abs(impulse[i, k]) / child.mass * (1.0 + 1.0 / child.length))
    return 4e-15 * size


@kernel
def solve_stage(records, stages, edges, blocks, schedule, vector, impulse, coupling_impulse, row_residual, coupling_residual, scratch,
                gamma, compliance, tolerance, max_iterations):
    """Newton with line search for one stage (Quaternion eq. 25, 29, 30). Returns (outcome, iterations, residual)."""
    size, fine = residual(records, stages, impulse, coupling_impulse, row_residual, coupling_residual, gamma)
    if not fine:
        return NOT_CONVERGED, 0, size
    iterations = 0
    fresh = False
    while size > tolerance or iterations == 0:
        if iterations == max_iterations:
            return NOT_CONVERGED, iterations, size
        iterations += 1
        if not fresh:
            clear(blocks, schedule)
            jacobian(records, stages, edges, blocks, impulse, coupling_impulse, gamma, compliance, scratch[:12], scratch[12])
            if factor(blocks, schedule) >= 0:
                return SINGULAR, iterations, size
        load_vector(records, stages, vector, impulse, coupling_impulse, row_residual, coupling_residual, compliance if iterations == 2 else 0.0)
        solve(blocks, schedule, vector)
        turn_directions(records, stages, vector, gamma)
        step = 1.0
        done = 0.0
        while True:
            move(records, stages, vector, impulse, coupling_impulse, gamma, step - done)
            done = step
            new, fine = residual(records, stages, impulse, coupling_impulse, row_residual, coupling_residual, gamma)
            if fine and (new < size or new <= tolerance):
                break
            step *= 0.5
            if step < 1e-4:
                break
        if step < 1e-4:
            move(records, stages, vector, impulse, coupling_impulse, gamma, -done)
            new, _ = residual(records, stages, impulse, coupling_impulse, row_residual, coupling_residual, gamma)
            if size < stage_floor(records, stages, impulse, gamma):
                return SOLVED, iterations, size
            if not fresh:
                return NOT_CONVERGED, iterations, size
            fresh = False
            continue
        fresh = new < REUSE * size
        size = new
    return SOLVED, iterations, size
