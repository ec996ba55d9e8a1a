"""Kernels of the variational integrator (Variational section 3): unknowns, residual, Jacobian.

Unknowns are the velocities (v, omega) of an interval and the impulses of the joint rows at its first knot. With
s = sqrt(4/dt^2 - omega.omega), the discrete Legendre momenta of an interval are, in the body frame,

    at its start  dt/2 (s J omega + omega x J omega)        at its end  dt/2 (s J omega - omega x J omega),

half of Variational eq. 16, so that the balance at a knot is one of impulses:

    momentum after - momentum before - h * load - G^T mu = 0,     g(next pose) / dt = 0,

with h the mean of the two neighbouring steps. The state is pose and left-limit momentum: a start from rest or from
given velocities is a knot whose step before has length zero, which makes the scheme second order (half kick).
"""
from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from dalembert.forces.bodies import add_load_derivatives, load_wrench, user_damping, user_load
from dalembert.forces.laws import coupling_law, servo
from dalembert.formulations.maximal.impulses import subtract_impulse, subtract_impulses
from dalembert.formulations.maximal.sizes import body_sizes, row_size
from dalembert.kernels import inline, kernel
from dalembert.linalg.blocks import clear_block
from dalembert.model.couplings import evaluate_coupling, moved_from
from dalembert.model.frames import relative
from dalembert.model.pose import add_to_slot, put6
from dalembert.model.records import CONSTRAINT, GEAR, USER_LOAD, Model, Work
from dalembert.model.rows import consistent, direction_gradient, row_gradient, row_value
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import (
    add3,
    cross3,
    dot3,
    load3,
    load4,
    load9,
    mat_mul,
    mat_vec,
    neg3,
    scale3,
    store3,
    store4,
    store9,
    sub3,
)

#: largest rotation per step, omega * dt: the rotation block is singular at sqrt(2)
SPIN_LIMIT = 0.7
#: cosine below which a joint counts as flipped
FLIP = 0.3


class Interval(NamedTuple):
    """The step problem: an interval of length ``dt`` whose first knot has a kick of length ``h`` (s)."""

    model: Model
    work: Work
    dt: float
    h: float
    compliance: float


@kernel
def extrapolate(model, work, state, order):
    """Velocities to start Newton from: those of the momenta, or extrapolated from the last two or three intervals."""
    for i in range(work.bodies.shape[0] - 1):
        body, past = work.bodies[i], state.bodies[i]
        if order == 2:
            for k in range(3):
                body.v[k] = 3.0 * (past.v1[k] - past.v2[k]) + past.v3[k]
                body.w[k] = 3.0 * (past.w1[k] - past.w2[k]) + past.w3[k]
        elif order == 1:
            for k in range(3):
                body.v[k] = 2.0 * past.v1[k] - past.v2[k]
                body.w[k] = 2.0 * past.w1[k] - past.w2[k]
    if order == 0:
        first_guess(model, work)


@kernel
def first_guess(model, work):
    """The velocities of the momenta just before the knot."""
    for i in range(work.bodies.shape[0] - 1):
        body, fixed = work.bodies[i], model.bodies[i]
        store3(body.v, scale3(1.0 / fixed.mass, load3(body.p)))
        store3(body.w, mat_vec(load9(fixed.inertia_inverse), load3(body.l)))


@inline
def momentum_after(body, fixed, dt):
    """Angular momentum (body frame) of the iterate just after the knot; needs ``s``."""
    w = load3(body.w)
    Jw = mat_vec(load9(fixed.inertia), w)
    return scale3(0.5 * dt, add3(scale3(body.s, Jw), cross3(w, Jw)))


@inline
def mean_velocity(body, fixed, dt):
    """Mean of the velocities just before and just after the knot, by which dampers dissipate exactly.

    Those of the intervals: what paths give at the knot, half before and half after it, would count on one side alone.
    """
    after = momentum_after(body, fixed, dt)
    before = sub3(load3(body.p), load3(body.along)), sub3(load3(body.l), load3(body.along[3:]))
    linear = scale3(0.5, add3(scale3(1.0 / fixed.mass, before[0]), load3(body.v)))
    angular = scale3(0.5, mat_vec(load9(fixed.inertia_inverse), add3(before[1], after)))
    return linear, angular


@inline
def flow(G, linear, angular):
    """Rate along a row of six."""
    return G[0] * linear[0] + G[1] * linear[1] + G[2] * linear[2] + G[3] * angular[0] + G[4] * angular[1] + G[5] * angular[2]


@kernel
def restart(interval):
    """Put the velocities just before the knot in place of an extrapolated guess."""
    first_guess(interval.model, interval.work)
    return True


@kernel
def residual(interval):
    """Evaluate all equations at the iterate. Returns (size in m/s, False when a joint flipped or a body spins too fast)."""
    size, fine = balance(interval)
    if not fine:
        return 0.0, False
    own, fine = body_sizes(interval)
    return max(size, own), fine


@kernel
def balance(interval):
    """Write all equations at the iterate. Returns (size of those of rows and couplings in m/s, False as ``residual``)."""
    model, work, dt, h = interval.model, interval.work, interval.dt, interval.h
    bodies, joints, couplings = work.bodies, work.joints, work.couplings
    world = bodies.shape[0] - 1
    half = 0.5 * dt
    top = 4.0 / (dt * dt)
    bodies[world].r[:] = 0.0
    for i in range(world):
        body, fixed = bodies[i], model.bodies[i]
        v = load3(body.v)
        w = load3(body.w)
        ww = dot3(w, w)
        if not ww < 0.49 * top:
            return 0.0, False
        s = sqrt(top - ww)
        body.s = s
        Jw = mat_vec(load9(fixed.inertia), w)
        after = scale3(half, add3(scale3(s, Jw), cross3(w, Jw)))
        r, p, l, load, m = body.r, body.p, body.l, body.load, fixed.mass
        r[0] = m * v[0] - p[0] - h * load[0]
        r[1] = m * v[1] - p[1] - h * load[1]
        r[2] = m * v[2] - p[2] - h * load[2]
        r[3] = after[0] - l[0] - h * load[3]
        r[4] = after[1] - l[1] - h * load[4]
        r[5] = after[2] - l[2] - h * load[5]
        store3(body.xn, add3(load3(body.x), scale3(dt, v)))
        qn = quaternion.multiply(load4(body.q), (half * s, half * w[0], half * w[1], half * w[2]))
        store4(body.qn, qn)
        store9(body.Rn, quaternion.to_matrix(qn))
    size = 0.0
    per = 1.0 / dt
    for i in range(joints.shape[0]):
        joint, at = model.joints[i], joints[i]
        if joint.rows == 0:
            continue
        parent = bodies[joint.parent]
        child = bodies[joint.child]
        y, C = relative(joint, load3(parent.xn), load9(parent.Rn), load3(child.xn), load9(child.Rn))
        if not consistent(joint, at, C, FLIP):
            return 0.0, False
        for k in range(joint.locks):
            at.r[k] = row_value(joint, at, k, y, C) * per
            size = max(size, abs(at.r[k]))
            if at.r[k] != at.r[k]:
                return 0.0, False
        for k in range(joint.locks, joint.rows):
            rate = 0.0
            if joint.parent != world:
                linear, angular = mean_velocity(parent, model.bodies[joint.parent], dt)
                rate += flow(at.Gp[k], linear, angular)
            linear, angular = mean_velocity(child, model.bodies[joint.child], dt)
            rate += flow(at.Gc[k], linear, angular)
            direction = joint.row_direction[k]
            at.r[k] = at.mu[k] + h * joint.damping[direction] * rate
            if joint.armature[direction] > 0.0 or joint.follows[direction]:
                moved = coordinate_moved(bodies, joint, at, direction)
                at.r[k] += joint.armature[direction] * moved / dt - at.spin[direction]
                if joint.follows[direction]:
                    at.r[k] -= h * servo_at_end(joint, at, direction, moved, dt)[0]
                size = max(size, row_size(model, joint, at, k))
        subtract_impulses(parent.r, at.Gp, at.mu, joint.rows)
        subtract_impulses(child.r, at.Gc, at.mu, joint.rows)
    for i in range(couplings.shape[0]):
        size = max(size, coupling_residual(model, work, i, dt))
    if model.loads.shape[0] > 0:
        subtract_loads(model, work, dt, h)
    return size, True


@kernel
def coupling_residual(model, work, index, dt):
    """A coupling at the iterate: open over dt, or impulse less that of its law. Returns the size of the residual (m/s).

    A law is taken at the mean of both ends of the interval, as a potential of the mean of the two lengths is: half of its
    impulse acts at the first knot, the other half at the second (``accept``).
    """
    coupling, tie = model.couplings[index], work.couplings[index]
    evaluate_coupling(model, work, index, True)
    if coupling.law == CONSTRAINT:
        tie.r = tie.next / dt
        size = abs(tie.r)
    else:
        force, K, D, _ = coupling_law(work, coupling, tie, 0.5 * (tie.value + tie.next), (tie.next - tie.value) / dt)
        tie.r = tie.mu - 0.5 * dt * force
        tie.slope = 0.5 * dt * (0.5 * dt * K + D)
        size = abs(tie.r) * coupling.soft
    for e in range(coupling.first, coupling.first + coupling.ends):
        subtract_impulse(work.bodies[model.ends[e]].r, work.ends[e].G, tie.mu)
    return size


@kernel
def mean_velocities(model, work, dt):
    """Velocities at the knot for the loads: the mean of those just before and just after."""
    for i in range(model.bodies.shape[0] - 1):
        linear, angular = mean_velocity(work.bodies[i], model.bodies[i], dt)
        put6(work.velocity[i], linear, angular)


@kernel
def subtract_loads(model, work, dt, h):
    """Loads that depend on velocities, at the mean of those just before and just after the knot."""
    mean_velocities(model, work, dt)
    for i in range(model.loads.shape[0]):
        load = model.loads[i]
        if not load.moving:
            continue
        if load.kind == USER_LOAD:
            user_load(model, work, load, work.velocity)
            for k in range(load.ends):
                r = work.bodies[model.ends[load.first + k]].r
                for c in range(6):
                    r[c] -= h * work.found[6 * k + c]
            continue
        body, u = work.bodies[load.body], work.velocity[load.body]
        F, T = load_wrench(load, load3(body.x), load9(body.R), load3(u), load3(u[3:]))
        for c in range(3):
            body.r[c] -= h * F[c]
            body.r[3 + c] -= h * T[c]


@kernel
def add_damping(model, work, dt, h):
    """The change of velocity-dependent loads with the unknowns, into the bodies' own blocks."""
    K, D = work.K, work.D
    for i in range(model.loads.shape[0]):
        load = model.loads[i]
        if not load.moving:
            continue
        if load.kind == USER_LOAD:
            for k in range(load.ends):
                user_damping(model, work, load, k, D)
                subtract_damping(work.bodies[model.ends[load.first + k]], model.bodies[model.ends[load.first + k]], work.blocks, D, dt, h)
            continue
        body, u = work.bodies[load.body], work.velocity[load.body]
        K[:6, :6] = 0.0
        D[:6, :6] = 0.0
        add_load_derivatives(K, D, load, load3(body.x), load9(body.R), load3(u), load3(u[3:]))
        subtract_damping(body, model.bodies[load.body], work.blocks, D, dt, h)


@inline
def subtract_damping(body, fixed, blocks, D, dt, h):
    """M -= h D d(mean velocity)/d(unknowns), of which the linear part is 1/2 and the angular one 1/2 J^-1 d(momentum)."""
    M = blocks[body.diagonal].M
    P = mat_mul(load9(fixed.inertia_inverse), momentum_derivative(body, fixed, dt))
    half = 0.5 * h
    for r in range(6):
        for c in range(3):
            M[r, c] -= half * D[r, c]
            M[r, 3 + c] -= half * (D[r, 3] * P[c] + D[r, 4] * P[3 + c] + D[r, 5] * P[6 + c])


@kernel
def coordinate_moved(bodies, joint, at, direction):
    """By how much one coordinate of a joint moves from the knot to the pose that the iterate leads to."""
    parent = bodies[joint.parent]
    child = bodies[joint.child]
    y, C = relative(joint, load3(parent.xn), load9(parent.Rn), load3(child.xn), load9(child.Rn))
    return moved_from(joint, at, direction, y, C)


@inline
def servo_at_end(joint, at, direction, moved, dt):
    """Force, K and D of the servo along a direction at the end of the interval, where its coordinate has ``moved``."""
    force, K, D, _ = servo(joint, direction, at.target[direction], at.coordinate[direction] + moved, moved / dt)
    return force, K, D


@kernel
def spin_after(bodies, joint, at, direction, dt):
    """Momentum of a direction's reflected inertia over the interval: that of the Lagrangian a/2 ((next - now)/dt)^2."""
    return joint.armature[direction] * coordinate_moved(bodies, joint, at, direction) / dt


@inline
def rotate_gradient(g, w, s, dt):
    """Gradient by a body-frame rotation at the next pose -> gradient by omega, divided by dt (DESIGN section 5)."""
    a = dot3(g, w) * (1.0 / s)  # the same for all rows
    c = cross3(g, w)
    half = 0.5 * dt
    return (half * (s * g[0] + a * w[0] - c[0]), half * (s * g[1] + a * w[1] - c[1]), half * (s * g[2] + a * w[2] - c[2]))


@inline
def momentum_derivative(body, fixed, dt):
    """d(momentum after)/d(omega) in rows: dt/2 (J s - (J w) w^T / s + [w]x J - [J w]x)."""
    w = load3(body.w)
    J = load9(fixed.inertia)
    Jw = mat_vec(J, w)
    s = body.s
    h = 0.5 * dt
    u = scale3(1.0 / s, w)
    return (
        h * (s * J[0] - Jw[0] * u[0] + w[1] * J[6] - w[2] * J[3]),
        h * (s * J[1] - Jw[0] * u[1] + w[1] * J[7] - w[2] * J[4] + Jw[2]),
        h * (s * J[2] - Jw[0] * u[2] + w[1] * J[8] - w[2] * J[5] - Jw[1]),
        h * (s * J[3] - Jw[1] * u[0] + w[2] * J[0] - w[0] * J[6] - Jw[2]),
        h * (s * J[4] - Jw[1] * u[1] + w[2] * J[1] - w[0] * J[7]),
        h * (s * J[5] - Jw[1] * u[2] + w[2] * J[2] - w[0] * J[8] + Jw[0]),
        h * (s * J[6] - Jw[2] * u[0] + w[0] * J[3] - w[1] * J[0] + Jw[1]),
        h * (s * J[7] - Jw[2] * u[1] + w[0] * J[4] - w[1] * J[1] - Jw[0]),
        h * (s * J[8] - Jw[2] * u[2] + w[0] * J[5] - w[1] * J[2]),
    )


@inline
def damper_row(target, k, G, body, fixed, weight, dt):
    """Row of a compliant direction by a body's unknowns: weight/2 G [1, J^-1 d(momentum)/d(omega)]."""
    D = momentum_derivative(body, fixed, dt)
    g = mat_vec(load9(fixed.inertia_inverse), (G[3], G[4], G[5]))
    half = 0.5 * weight
    for c in range(3):
        target[k, c] = half * G[c]
        target[k, 3 + c] = half * (g[0] * D[c] + g[1] * D[3 + c] + g[2] * D[6 + c])


@kernel
def jacobian(interval):
    """Write the blocks of the Newton matrix at the iterate; the compliance is the diagonal of the constraint rows."""
    model, work, dt, h, compliance = interval.model, interval.work, interval.dt, interval.h, interval.compliance
    bodies, joints, couplings = work.bodies, work.joints, work.couplings
    world = bodies.shape[0] - 1
    for i in range(world):
        body, fixed = bodies[i], model.bodies[i]
        M = work.blocks[body.diagonal].M
        D = momentum_derivative(body, fixed, dt)
        clear_block(M)
        M[0, 0] = fixed.mass
        M[1, 1] = fixed.mass
        M[2, 2] = fixed.mass
        for r in range(3):
            M[3 + r, 3] = D[3 * r]
            M[3 + r, 4] = D[3 * r + 1]
            M[3 + r, 5] = D[3 * r + 2]
    for i in range(joints.shape[0]):
        joint, at = model.joints[i], joints[i]
        rows = joint.rows
        if rows == 0:
            continue
        parent = bodies[joint.parent]
        child = bodies[joint.child]
        Rp = load9(parent.Rn)
        y, C = relative(joint, load3(parent.xn), Rp, load3(child.xn), load9(child.Rn))
        S = work.blocks[at.diagonal].M
        clear_block(S)
        for k in range(rows):
            S[k, k] = compliance * joint.soft[k]
        grounded = joint.parent == world
        wc, sc = load3(child.w), child.s
        JC = work.blocks[at.block_jc].M
        CJ = work.blocks[at.block_cj].M
        JP = work.blocks[at.block_jc if grounded else at.block_jp].M
        PJ = work.blocks[at.block_cj if grounded else at.block_pj].M
        wp, sp = load3(parent.w), 1.0 if grounded else parent.s
        for k in range(joint.locks):
            force, on_parent, on_child = row_gradient(joint, at, k, y, C, Rp)
            put6(JC[k], force, rotate_gradient(on_child, wc, sc, dt))
            if not grounded:
                put6(JP[k], neg3(force), rotate_gradient(on_parent, wp, sp, dt))
        for k in range(joint.locks, rows):
            S[k, k] = 1.0
            direction = joint.row_direction[k]
            weight = h * joint.damping[direction]
            damper_row(JC, k, at.Gc[k], child, model.bodies[joint.child], weight, dt)
            if not grounded:
                damper_row(JP, k, at.Gp[k], parent, model.bodies[joint.parent], weight, dt)
            if joint.armature[direction] > 0.0 or joint.follows[direction]:
                weight = joint.armature[direction]
                if joint.follows[direction]:
                    moved = coordinate_moved(bodies, joint, at, direction)
                    _, stiffness, damping = servo_at_end(joint, at, direction, moved, dt)
                    weight -= h * (dt * stiffness + damping)
                force, on_parent, on_child = direction_gradient(joint, direction, y, C, Rp)
                add_to_slot(JC, k, weight, force, rotate_gradient(on_child, wc, sc, dt))
                if not grounded:
                    add_to_slot(JP, k, weight, neg3(force), rotate_gradient(on_parent, wp, sp, dt))
        for k in range(rows):
            for c in range(6):
                CJ[c, k] = -at.Gc[k, c]
        if not grounded:
            for k in range(rows):
                for c in range(6):
                    PJ[c, k] = -at.Gp[k, c]
    for i in range(couplings.shape[0]):
        coupling_jacobian(model, work, i, dt, compliance)
    if model.loads.shape[0] > 0:
        add_damping(model, work, dt, h)


@kernel
def coupling_jacobian(model, work, index, dt, compliance):
    """Blocks of one coupling, with its gradient at the end as ``residual`` left it."""
    coupling, tie = model.couplings[index], work.couplings[index]
    holds = coupling.law == CONSTRAINT
    work.blocks[tie.diagonal].M[0, 0] = compliance * coupling.soft if holds else 1.0
    weight = 1.0 if holds else -tie.slope
    for e in range(coupling.first, coupling.first + coupling.ends):
        end, body = work.ends[e], work.bodies[model.ends[e]]
        row, column = work.blocks[end.there].M, work.blocks[end.back].M
        turned = rotate_gradient(load3(end.H[3:]), load3(body.w), body.s, dt)
        for c in range(3):
            row[0, c] = weight * end.H[c]
            row[0, 3 + c] = weight * turned[c]
        for c in range(6):
            column[c, 0] = -end.G[c]


@kernel
def load_vector(interval, pull):
    """Copy the residuals into the solver's vector; ``pull`` draws the impulses of redundant rows towards zero."""
    model, work = interval.model, interval.work
    bodies, joints, couplings = work.bodies, work.joints, work.couplings
    for i in range(bodies.shape[0] - 1):
        b = work.vector[bodies[i].node].v
        for c in range(6):
            b[c] = bodies[i].r[c]
    for i in range(joints.shape[0]):
        joint, at = model.joints[i], joints[i]
        if joint.rows > 0:
            b = work.vector[at.node].v
            for k in range(joint.locks):
                b[k] = at.r[k] + pull * joint.soft[k] * at.mu[k]
            for k in range(joint.locks, joint.rows):
                b[k] = at.r[k]
    for i in range(couplings.shape[0]):
        coupling, tie = model.couplings[i], couplings[i]
        work.vector[tie.node].v[0] = tie.r + (pull * coupling.soft * tie.mu if coupling.law == CONSTRAINT else 0.0)


@kernel
def move(interval, step):
    """Iterate minus ``step`` times the Newton direction."""
    model, work = interval.model, interval.work
    bodies, joints, couplings = work.bodies, work.joints, work.couplings
    for i in range(bodies.shape[0] - 1):
        body = bodies[i]
        d = work.vector[body.node].v
        for c in range(3):
            body.v[c] -= step * d[c]
            body.w[c] -= step * d[3 + c]
    for i in range(joints.shape[0]):
        joint, at = model.joints[i], joints[i]
        if joint.rows > 0:
            d = work.vector[at.node].v
            for k in range(joint.rows):
                at.mu[k] -= step * d[k]
    for i in range(couplings.shape[0]):
        couplings[i].mu -= step * work.vector[couplings[i].node].v[0]


@kernel
def rounding_floor(interval):
    """The residual that rounding alone can cause: nothing below it can be asked for."""
    model, work, dt = interval.model, interval.work, interval.dt
    bodies, joints = work.bodies, work.joints
    size = 0.0
    for i in range(joints.shape[0]):
        joint, at = model.joints[i], joints[i]
        parent = bodies[joint.parent]
        child = bodies[joint.child]
        reach = 0.0
        for c in range(3):
            reach = max(reach, abs(parent.xn[c]) + abs(child.xn[c]) + abs(joint.point_parent[c]) + abs(joint.point_child[c]))
        size = max(size, (1.0 + reach) / dt)
        for k in range(joint.rows):
            push = 0.0
            twist = 0.0
            for c in range(3):
                push = max(push, abs(at.Gc[k, c] * at.mu[k]))
                twist = max(twist, abs(at.Gc[k, 3 + c] * at.mu[k]))
            first, second = model.bodies[joint.parent], model.bodies[joint.child]
            size = max(size, push / second.mass + twist / (second.mass * second.length))
            if first.mass > 0.0:
                size = max(size, push / first.mass + twist / (first.mass * first.length))
    for i in range(model.couplings.shape[0]):
        if model.couplings[i].kind == GEAR:
            size = max(size, 4.0 * (1.0 + abs(model.couplings[i].ratio)) / dt)
    for i in range(bodies.shape[0] - 1):
        for c in range(3):
            size = max(size, abs(bodies[i].v[c]))
    return 2e-15 * size


@kernel
def turn(interval):
    """The solver's unknowns are those of the iterate."""


@kernel
def spins_too_fast(work, dt):
    """True when a body turns by more than the limit within the interval just solved."""
    bodies = work.bodies
    for i in range(bodies.shape[0] - 1):
        w = load3(bodies[i].w)
        if dot3(w, w) * dt * dt > SPIN_LIMIT * SPIN_LIMIT:
            return True
    return False
