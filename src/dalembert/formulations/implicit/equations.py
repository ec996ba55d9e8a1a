"""Kernels of the implicit quaternion formulation (Quaternion sections 3 to 6): unknowns, residual, Jacobian of one stage.

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
from typing import NamedTuple

from dalembert.forces.bodies import add_load_derivatives, push_on_bodies, user_damping
from dalembert.forces.couplings import coupling_rate
from dalembert.forces.directions import add_directions
from dalembert.forces.laws import coupling_law, servo
from dalembert.forces.loads import evaluate_loads
from dalembert.formulations.implicit.state import Scratch, inverse
from dalembert.formulations.maximal.impulses import subtract_impulse, subtract_impulses
from dalembert.formulations.maximal.sizes import body_sizes, row_size
from dalembert.kernels import inline, kernel
from dalembert.linalg.blocks import clear_block
from dalembert.model.couplings import evaluate_coupling
from dalembert.model.frames import frame_rotation
from dalembert.model.hessians import add_direction, add_row, add_rows
from dalembert.model.pose import joint_at_knot, put6, rotate_bodies, write_gradients
from dalembert.model.records import COMPLIANT, CONSTRAINT, GEAR, MAPPED, USER_LOAD, Model, Work
from dalembert.model.rows import consistent, coordinates, row_value
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import add3, cross3, dot3, load3, load4, load9, mat_vec, scale3, store3, store4

#: unknowns of a body: v and the four of e
BODY = 7
#: cosine below which a joint counts as flipped
FLIP = 0.3


class Stage(NamedTuple):
    """The step problem: a stage that ends ``gamma`` (s) after the aggregate of earlier states in ``own``."""

    model: Model
    work: Work
    own: Scratch
    gamma: float
    compliance: float


@inline
def add4(a, b, s):
    """a + s b for quaternions."""
    return (a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2], a[3] + s * b[3])


@inline
def dot4(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]


@inline
def relative_rate(iterate, gamma):
    """a = q^-1 w = (s, omega/2) at the iterate."""
    w = load4(iterate.w)
    return quaternion.multiply(inverse(add4(load4(iterate.qp), w, gamma)), w)


@inline
def flow(G, body):
    """Rate along a row of six for a stage's velocities."""
    total = 0.0
    for c in range(3):
        total += G[c] * body.v[c] + G[3 + c] * body.spin[c]
    return total


@kernel
def residual(stage):
    """Evaluate all equations at the iterate. Returns (size in m/s, False when a joint flipped or a number is not finite)."""
    size, fine = balance(stage)
    if not fine:
        return 0.0, False
    own, fine = body_sizes(stage)
    return max(size, own), fine


@kernel
def balance(stage):
    """Write all equations at the iterate. Returns (size of those of rows and couplings in m/s, False as ``residual``)."""
    model, work, own, gamma = stage.model, stage.work, stage.own, stage.gamma
    bodies = work.bodies
    world = bodies.shape[0] - 1
    for i in range(world):
        body, iterate = bodies[i], own.bodies[i]
        store3(body.x, add3(load3(iterate.xp), scale3(gamma, load3(iterate.v))))
        q = add4(load4(iterate.qp), load4(iterate.w), gamma)
        if not dot4(q, q) > 0.04:
            return 0.0, False
        store4(body.q, quaternion.normalize(q))
    rotate_bodies(bodies)
    size, per = 0.0, 1.0 / gamma
    for i in range(model.joints.shape[0]):
        joint, at = model.joints[i], work.joints[i]
        y, C, Rp = joint_at_knot(bodies, joint)
        if not consistent(joint, at, C, FLIP):
            return 0.0, False
        if own.counted[i]:
            coordinates(joint, y, C, at.coordinate)
        write_gradients(joint, at, joint.rows, y, C, Rp)
        for k in range(joint.locks):
            at.r[k] = row_value(joint, at, k, y, C) * per
            size = max(size, abs(at.r[k]))
            if not isfinite(at.r[k]):
                return 0.0, False
    for i in range(model.couplings.shape[0]):
        evaluate_coupling(model, work, i, False)
    evaluate_loads(model, work)
    if model.loads.shape[0] > 0 or model.couplings.shape[0] > 0:
        for i in range(world):
            a = relative_rate(own.bodies[i], gamma)
            put6(work.velocity[i], load3(own.bodies[i].v), (2.0 * a[1], 2.0 * a[2], 2.0 * a[3]))
        push_on_bodies(model, work, work.velocity, 1)
    size = max(size, inertia_residual(stage))
    for i in range(model.joints.shape[0]):
        joint, at = model.joints[i], work.joints[i]
        for k in range(joint.locks, joint.rows):
            size = max(size, law_residual(stage, i, k))
        subtract_impulses(bodies[joint.child].r, at.Gc, at.mu, joint.rows)
        subtract_impulses(bodies[joint.parent].r, at.Gp, at.mu, joint.rows)
    for i in range(model.couplings.shape[0]):
        size = max(size, coupling_residual(stage, i))
    return size, True


@kernel
def count_others(model, work, own):
    """Coordinates, at the pose of a stage, of the joints whose equations do not ask for them."""
    for i in range(model.joints.shape[0]):
        if not own.counted[i]:
            y, C, _ = joint_at_knot(work.bodies, model.joints[i])
            coordinates(model.joints[i], y, C, work.joints[i].coordinate)


@inline
def inertia_residual(stage):
    """F3 to F5 of all bodies without the joints' impulses. Returns the largest F5, in m/s."""
    bodies, gamma, size = stage.work.bodies, stage.gamma, 0.0
    world = bodies.shape[0] - 1
    bodies[world].r[:] = 0.0
    for i in range(world):
        body, fixed, iterate = bodies[i], stage.model.bodies[i], stage.own.bodies[i]
        w = load4(iterate.w)
        q = add4(load4(iterate.qp), w, gamma)
        back = inverse(q)
        a = quaternion.multiply(back, w)
        b = quaternion.multiply(back, add4(w, load4(iterate.wp), -1.0))
        J = load9(fixed.inertia)
        omega = (2.0 * a[1], 2.0 * a[2], 2.0 * a[3])
        store3(iterate.spin, omega)
        Jw = mat_vec(J, omega)
        gyro = add3(cross3(omega, Jw), scale3(2.0 * a[0], Jw))
        turned = mat_vec(J, (2.0 * b[1], 2.0 * b[2], 2.0 * b[3]))
        r = body.r
        for c in range(3):
            r[c] = fixed.mass * (iterate.v[c] - iterate.vp[c]) - gamma * body.load[c]
            r[3 + c] = turned[c] + gamma * (gyro[c] - body.load[3 + c])
        iterate.unit = (dot4(q, q) - 1.0) / gamma
        size = max(size, abs(iterate.unit) * fixed.length)
    return size


@inline
def law_residual(stage, index, k):
    """A compliant row, mu + (gamma d + a) rate - a rate_p - gamma servo. Returns its size in m/s where it is no mere damper."""
    joint, at, own = stage.model.joints[index], stage.work.joints[index], stage.own
    rate = flow(at.Gc[k], own.bodies[joint.child])
    if joint.parent != own.bodies.shape[0]:
        rate += flow(at.Gp[k], own.bodies[joint.parent])
    direction = joint.row_direction[k]
    at.r[k] = at.mu[k] + stage.gamma * joint.damping[direction] * rate
    armature = joint.armature[direction]
    if joint.follows[direction]:
        at.r[k] -= stage.gamma * servo_at(joint, at, direction, rate)[0]
    if armature > 0.0:
        axle = own.axles[index]
        axle.r[direction] = rate
        at.r[k] += armature * (rate - axle.rp[direction])
    if not joint.follows[direction] and armature == 0.0:
        return 0.0
    return row_size(stage.model, joint, at, k)


@inline
def servo_at(joint, at, direction, rate):
    """Force, K and D of the servo along a direction."""
    force, K, D, _ = servo(joint, direction, at.target[direction], at.coordinate[direction], rate)
    return force, K, D


@kernel
def coupling_residual(stage, index):
    """A coupling at the iterate: open over gamma, or impulse less that of its law. Returns its size in m/s."""
    model, work, gamma = stage.model, stage.work, stage.gamma
    coupling, tie = model.couplings[index], work.couplings[index]
    if coupling.law == CONSTRAINT:
        tie.r = tie.value / gamma
        size = abs(tie.r)
    else:
        tie.rate = coupling_rate(model, work, index, work.velocity)
        tie.r = tie.mu - gamma * coupling_law(work, coupling, tie, tie.value, tie.rate)[0]
        size = abs(tie.r) * coupling.soft
    for e in range(coupling.first, coupling.first + coupling.ends):
        subtract_impulse(work.bodies[model.ends[e]].r, work.ends[e].G, tie.mu)
    return size


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
def jacobian(stage):
    """Write the blocks of the Newton matrix at the iterate; the compliance is the diagonal of the constraint rows."""
    model, work, own, gamma = stage.model, stage.work, stage.own, stage.gamma
    blocks, edges, K = work.blocks, own.edges, own.K
    world = work.bodies.shape[0] - 1
    for i in range(world):
        inertia_block(blocks[work.bodies[i].diagonal].M, model.bodies[i], own.bodies[i], gamma)
    for i in range(edges.shape[0]):
        for c in range(2):
            if edges[i, c] >= 0:
                clear_block(blocks[edges[i, c]].M)
    own.is_loose[0] = model.couplings.shape[0] == 0
    for i in range(model.joints.shape[0]):
        joint, at = model.joints[i], work.joints[i]
        if joint.rows == 0 and not joint.active:
            continue
        y, C, Rp = joint_at_knot(work.bodies, joint)
        if joint.active or pushes(joint, at):
            own.is_loose[0] = False
            K[:] = 0.0
            add_rows(K, joint, at, at.mu, 1.0 / gamma, y, C, Rp)
            if joint.active:
                add_directions(K, joint, at, y, C, Rp, frame_rotation(joint, C), own.direction)
            # K is d(force)/d(pose); an impulse changes by gamma K (gamma dv, 2 gamma e)
            add_stiffness(work, joint, edges[i], K, gamma * gamma)
        if joint.rows == 0:
            continue
        S = blocks[at.diagonal].M
        clear_block(S)
        for k in range(joint.rows):
            S[k, k] = 1.0 if joint.row_kind[k] == COMPLIANT else stage.compliance * joint.soft[k]
        if joint.parent != world:
            write_rows(blocks[at.block_jp].M, blocks[at.block_pj].M, at.Gp, joint.rows)
        write_rows(blocks[at.block_jc].M, blocks[at.block_cj].M, at.Gc, joint.rows)
        for k in range(joint.locks, joint.rows):
            law_row(stage, i, k, y, C, Rp)
    for i in range(model.couplings.shape[0]):
        coupling_blocks(stage, i)
    for i in range(model.loads.shape[0]):
        load_block(stage, i)


@inline
def schedule_of(stage):
    """Of the blocks that are not zero since the last Jacobian. All of them are written."""
    return stage.own.loose if stage.own.is_loose[0] else stage.work.schedule


@inline
def inertia_block(M, fixed, iterate, gamma):
    """F3 to F5 of a body by its own unknowns, loads and joints left out."""
    clear_block(M)
    w = load4(iterate.w)
    q = add4(load4(iterate.qp), w, gamma)
    back = inverse(q)
    a = quaternion.multiply(back, w)
    b = quaternion.multiply(back, add4(w, load4(iterate.wp), -1.0))
    A = (1.0 - gamma * a[0], -gamma * a[1], -gamma * a[2], -gamma * a[3])
    B = (1.0 - gamma * b[0], -gamma * b[1], -gamma * b[2], -gamma * b[3])
    J = load9(fixed.inertia)
    omega = load3(iterate.spin)
    Jw = mat_vec(J, omega)
    for k in range(3):
        M[k, k] = fixed.mass
    for k in range(4):
        e = unit(k)
        db = quaternion.multiply(e, B)
        ds, dw = spin_derivative(A, e)
        Jdw = mat_vec(J, dw)
        gyro = add3(cross3(dw, Jw), cross3(omega, Jdw))
        turned = mat_vec(J, (2.0 * db[1], 2.0 * db[2], 2.0 * db[3]))
        for c in range(3):
            M[3 + c, 3 + k] = turned[c] + gamma * (gyro[c] + 2.0 * (ds * Jw[c] + a[0] * Jdw[c]))
    M[6, 6] = 2.0 * dot4(q, q)


@inline
def pushes(joint, at):
    """Whether a joint has impulses: a first iterate has none."""
    largest = 0.0
    for k in range(joint.rows):
        largest = max(largest, abs(at.mu[k]))
    return largest > 0.0


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
def add_stiffness(work, joint, edge, K, scale):
    """Subtract ``scale`` K, by positions and rotations, from the equations of both bodies.

    Where the graph has no edge between them, their coupling is left to the iteration.
    """
    blocks, bodies = work.blocks, work.bodies
    if joint.parent != bodies.shape[0] - 1:
        subtract_block(blocks[bodies[joint.parent].diagonal].M, K, 0, 0, scale)
    subtract_block(blocks[bodies[joint.child].diagonal].M, K, 6, 6, scale)
    if edge[0] >= 0:
        subtract_block(blocks[edge[0]].M, K, 0, 6, scale)
        subtract_block(blocks[edge[1]].M, K, 6, 0, scale)


@inline
def subtract_block(M, K, row, column, scale):
    """Subtract ``scale`` times six rows and columns of K, by positions and rotations, from a block by (dv, e)."""
    for r in range(6):
        for c in range(3):
            M[r, c] -= scale * K[row + r, column + c]
            M[r, 3 + c] -= 2.0 * scale * K[row + r, column + 3 + c]


@kernel
def law_row(stage, index, k, y, C, Rp):
    """``law_residual`` by the unknowns of both bodies: through the velocities, the turning of G, and the coordinate of a servo."""
    joint, at, own, gamma = stage.model.joints[index], stage.work.joints[index], stage.own, stage.gamma
    blocks, K, world = stage.work.blocks, own.K, own.bodies.shape[0]
    direction = joint.row_direction[k]
    weight, stretch = gamma * joint.damping[direction] + joint.armature[direction], 0.0
    if joint.follows[direction]:
        rate = flow(at.Gc[k], own.bodies[joint.child])
        if joint.parent != world:
            rate += flow(at.Gp[k], own.bodies[joint.parent])
        _, stiffness, damping = servo_at(joint, at, direction, rate)
        weight -= gamma * damping
        stretch = -gamma * gamma * stiffness
    K[:] = 0.0
    add_row(K, joint, at, k, 1.0, y, C, Rp)
    for end in range(2):
        body = joint.parent if end == 0 else joint.child
        if body == world:
            continue
        iterate = own.bodies[body]
        row = blocks[at.block_jp].M if end == 0 else blocks[at.block_jc].M
        a = relative_rate(iterate, gamma)
        A = (1.0 - gamma * a[0], -gamma * a[1], -gamma * a[2], -gamma * a[3])
        for c in range(3):
            row[k, c] = weight * (at.Gp[k, c] if end == 0 else at.Gc[k, c])
        for c in range(4):
            _, dw = spin_derivative(A, unit(c))
            total = 0.0
            for d in range(3):
                total += dw[d] * (at.Gp[k, 3 + d] if end == 0 else at.Gc[k, 3 + d])
            row[k, 3 + c] = weight * total
        for c in range(6):
            turning = 0.0
            for d in range(3):
                if joint.parent != world:
                    parent = own.bodies[joint.parent]
                    turning += K[d, 6 * end + c] * parent.v[d] + K[3 + d, 6 * end + c] * parent.spin[d]
                child = own.bodies[joint.child]
                turning += K[6 + d, 6 * end + c] * child.v[d] + K[9 + d, 6 * end + c] * child.spin[d]
            G = at.Gp[k, c] if end == 0 else at.Gc[k, c]
            row[k, c] += (weight * gamma * turning + stretch * G) * (1.0 if c < 3 else 2.0)


@inline
def omega_derivative(iterate, gamma, g):
    """Gradient by angular velocity -> gradient by the four of e, vector first."""
    a = relative_rate(iterate, gamma)
    A = (1.0 - gamma * a[0], -gamma * a[1], -gamma * a[2], -gamma * a[3])
    return (
        dot3(g, spin_derivative(A, unit(0))[1]), dot3(g, spin_derivative(A, unit(1))[1]),
        dot3(g, spin_derivative(A, unit(2))[1]), dot3(g, spin_derivative(A, unit(3))[1]),
    )


@kernel
def coupling_blocks(stage, index):
    """Blocks of one coupling, and the change of the forces of gears and linear maps with the pose; that of others is left to the iteration."""
    model, work, own, gamma = stage.model, stage.work, stage.own, stage.gamma
    blocks = work.blocks
    coupling, tie = model.couplings[index], work.couplings[index]
    by_value, by_rate = 1.0, 0.0
    blocks[tie.diagonal].M[0, 0] = stage.compliance * coupling.soft
    if coupling.law != CONSTRAINT:
        blocks[tie.diagonal].M[0, 0] = 1.0
        _, stiffness, damping, _ = coupling_law(work, coupling, tie, tie.value, tie.rate)
        by_value, by_rate = -gamma * gamma * stiffness, -gamma * damping
    for e in range(coupling.first, coupling.first + coupling.ends):
        end, G = work.ends[e], work.ends[e].G
        row, col = blocks[end.there].M, blocks[end.back].M
        turned = omega_derivative(own.bodies[model.ends[e]], gamma, load3(G[3:]))
        for c in range(3):
            row[0, c] = (by_value + by_rate) * G[c]
            row[0, 3 + c] = 2.0 * by_value * G[3 + c] + by_rate * turned[c]
        row[0, 6] = by_rate * turned[3]
        for c in range(6):
            col[c, 0] = -G[c]
        col[6, 0] = 0.0
    if coupling.kind == GEAR:
        for side in range(2):
            add_coordinate_stiffness(stage, coupling.joint[side], coupling.direction[side], tie.mu * (1.0 if side == 0 else -coupling.ratio))
    if coupling.kind == MAPPED and coupling.function == 0:
        for k in range(coupling.legs):
            leg = model.legs[coupling.first_leg + k]
            add_coordinate_stiffness(stage, leg.joint, leg.direction, tie.mu * (1.0 if k == 0 else -leg.weight))


@kernel
def add_coordinate_stiffness(stage, index, direction, force):
    """The change with the pose of a ``force`` along a joint's coordinate."""
    work, own, K, joint = stage.work, stage.own, stage.own.K, stage.model.joints[index]
    y, C, Rp = joint_at_knot(work.bodies, joint)
    K[:] = 0.0
    add_direction(K, joint, direction, force, y, C, Rp)
    add_stiffness(work, joint, own.edges[index], K, stage.gamma)


@kernel
def load_block(stage, index):
    """The change of a load with the pose and the velocity of its body; of a user's, only that with the velocity of each of its bodies."""
    model, work, load = stage.model, stage.work, stage.model.loads[index]
    K, D = work.K, work.D
    if load.kind == USER_LOAD:
        K[:6, :6] = 0.0
        for k in range(load.ends if load.moving else 0):
            user_damping(model, work, load, k, D)
            subtract_load(stage, model.ends[load.first + k], K, D)
        return
    body, u = work.bodies[load.body], work.velocity[load.body]
    K[:6, :6] = 0.0
    D[:6, :6] = 0.0
    add_load_derivatives(K, D, load, load3(body.x), load9(body.R), load3(u), load3(u[3:]))
    subtract_load(stage, load.body, K, D)


@inline
def subtract_load(stage, index, K, D):
    """M -= gamma (K d(pose) + D d(velocity)) by the unknowns of a body."""
    M, iterate, gamma = stage.work.blocks[stage.work.bodies[index].diagonal].M, stage.own.bodies[index], stage.gamma
    for r in range(6):
        turned = omega_derivative(iterate, gamma, (D[r, 3], D[r, 4], D[r, 5]))
        for c in range(3):
            M[r, c] -= gamma * (gamma * K[r, c] + D[r, c])
            M[r, 3 + c] -= gamma * (2.0 * gamma * K[r, 3 + c] + turned[c])
        M[r, 6] -= gamma * turned[3]


@inline
def load_vector(stage, pull):
    """Copy the residuals into the solver's vector; ``pull`` draws the impulses of redundant rows towards zero."""
    model, work = stage.model, stage.work
    for i in range(work.bodies.shape[0] - 1):
        b = work.vector[work.bodies[i].node].v
        for c in range(6):
            b[c] = work.bodies[i].r[c]
        b[6] = stage.own.bodies[i].unit
    for i in range(model.joints.shape[0]):
        joint, at = model.joints[i], work.joints[i]
        if joint.rows > 0:
            b = work.vector[at.node].v
            for k in range(joint.locks):
                b[k] = at.r[k] + pull * joint.soft[k] * at.mu[k]
            for k in range(joint.locks, joint.rows):
                b[k] = at.r[k]
    for i in range(model.couplings.shape[0]):
        tie = work.couplings[i]
        soft = model.couplings[i].soft if model.couplings[i].law == CONSTRAINT else 0.0
        work.vector[tie.node].v[0] = tie.r + pull * soft * tie.mu


@inline
def turn(stage):
    """From e to dw = q e, in place."""
    work = stage.work
    for i in range(work.bodies.shape[0] - 1):
        d, iterate = work.vector[work.bodies[i].node].v, stage.own.bodies[i]
        q = add4(load4(iterate.qp), load4(iterate.w), stage.gamma)
        dw = quaternion.multiply(q, (d[6], d[3], d[4], d[5]))
        d[3], d[4], d[5], d[6] = dw


@inline
def move(stage, step):
    """Iterate minus ``step`` times the Newton direction, dw = q e with q of the iterate that the direction belongs to."""
    model, work = stage.model, stage.work
    for i in range(work.bodies.shape[0] - 1):
        d, iterate = work.vector[work.bodies[i].node].v, stage.own.bodies[i]
        for c in range(3):
            iterate.v[c] -= step * d[c]
        store4(iterate.w, add4(load4(iterate.w), (d[3], d[4], d[5], d[6]), -step))
    for i in range(model.joints.shape[0]):
        at = work.joints[i]
        if model.joints[i].rows > 0:
            d = work.vector[at.node].v
            for k in range(model.joints[i].rows):
                at.mu[k] -= step * d[k]
    for i in range(model.couplings.shape[0]):
        tie = work.couplings[i]
        tie.mu -= step * work.vector[tie.node].v[0]


@inline
def restart(stage):
    """Whoever makes the guess has a safer one."""
    return False


@inline
def rounding_floor(stage):
    """The residual that rounding alone can cause: nothing below it can be asked for."""
    model, work, gamma = stage.model, stage.work, stage.gamma
    size = 1.0 / gamma
    for i in range(work.bodies.shape[0] - 1):
        for c in range(3):
            size = max(size, max(abs(stage.own.bodies[i].v[c]), abs(work.bodies[i].x[c]) / gamma))
    for i in range(model.joints.shape[0]):
        joint = model.joints[i]
        child = model.bodies[joint.child]
        for k in range(joint.rows):
            size = max(size, abs(work.joints[i].mu[k]) / child.mass * (1.0 + 1.0 / child.length))
    for i in range(model.couplings.shape[0]):
        if model.couplings[i].kind == GEAR:
            size = max(size, 4.0 * (1.0 + abs(model.couplings[i].ratio)) / gamma)
    return 4e-15 * size
