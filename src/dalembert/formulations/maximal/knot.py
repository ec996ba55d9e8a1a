"""What a mechanism is at one instant: rotations, row gradients, coordinates, forces; velocities and accelerations.

Velocities and accelerations that satisfy the joints solve one linear system on the mechanism's graph,
[[M, -G^T], [G, E]], with E the tiny compliance of the proximal method (DESIGN section 5).
"""
from __future__ import annotations

from math import pi

import numpy as np

from dalembert.kernels import inline, kernel
from dalembert.linalg import clear, factor, solve
from dalembert.model.records import (
    BALL,
    COMPLIANT,
    DISTANCE,
    DISTANCE_ROW,
    HELIX,
    ROTATION,
    SECOND,
    SLIDE,
    TRANSLATION,
)
from dalembert.model.rows import (
    aim,
    ball_spring,
    coordinates,
    direction_gradient,
    frame_rotation,
    relative,
    row_gradient,
    row_value,
    spring_energy,
    unit_distance,
)
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import (
    add3,
    column,
    cross3,
    dot3,
    load3,
    load4,
    load9,
    mat_t_vec,
    mat_vec,
    neg3,
    scale3,
    store9,
    sub3,
)


@inline
def put6(target, force, torque):
    """Write a force and a torque into a row of six."""
    target[0] = force[0]
    target[1] = force[1]
    target[2] = force[2]
    target[3] = torque[0]
    target[4] = torque[1]
    target[5] = torque[2]


@inline
def push(body, scale, force, torque):
    """Add ``scale`` times a force and a torque to a body's load."""
    load = body.load
    load[0] += scale * force[0]
    load[1] += scale * force[1]
    load[2] += scale * force[2]
    load[3] += scale * torque[0]
    load[4] += scale * torque[1]
    load[5] += scale * torque[2]


@inline
def joint_at_knot(bodies, joint):
    """``y``, ``C`` and the parent's rotation of a joint at the knot."""
    parent = bodies[joint.parent]
    child = bodies[joint.child]
    R_parent = load9(parent.R)
    y, C = relative(joint, load3(parent.x), R_parent, load3(child.x), load9(child.R))
    return y, C, R_parent


@inline
def write_gradients(joint, rows, y, C, R_parent):
    """Gradients of a joint's first ``rows`` rows by parent and child."""
    for k in range(rows):
        if joint.row_direction[k] >= 0:
            force, parent, child = direction_gradient(joint, joint.row_direction[k], y, C, R_parent)
        else:
            force, parent, child = row_gradient(joint, k, y, C, R_parent)
        put6(joint.Gp[k], neg3(force), parent)
        put6(joint.Gc[k], force, child)


@kernel
def evaluate_knot(records):
    """Rotations, coordinates, row gradients and smooth forces of all elements at the knot; impulses are cleared."""
    bodies, joints, couplings, gravity = records.bodies, records.joints, records.couplings, records.gravity
    world = bodies.shape[0] - 1
    g = load3(gravity)
    for i in range(world):
        body = bodies[i]
        store9(body.R, quaternion.to_matrix(load4(body.q)))
        put6(body.load, add3(scale3(body.mass, g), load3(body.force)), load3(body.torque))
    for i in range(joints.shape[0]):
        joint = joints[i]
        y, C, R_parent = joint_at_knot(bodies, joint)
        if joint.free > 0:
            coordinates(joint, y, C, joint.coordinate)
        write_gradients(joint, joint.rows, y, C, R_parent)
        for k in range(joint.rows):
            joint.mu[k] = 0.0
        if joint.active:
            apply_laws(bodies, joint, y, C, R_parent)
    for i in range(couplings.shape[0]):
        evaluate_coupling(bodies, joints, couplings[i])


@kernel
def aim_all(records):
    """Point the driven rows of all joints at their targets."""
    for i in records.driven:
        aim(records.joints[i])


@kernel
def set_targets(records, targets):
    """Aim the driven joints at ``targets`` (joints, 6)."""
    for i in records.driven:
        joint = records.joints[i]
        for k in range(joint.free):
            joint.target[k] = targets[i, k]
        aim(joint)


@kernel
def apply_inputs(records, base_load, inputs, index):
    """Give bodies and joints their inputs of one step."""
    bodies, joints = records.bodies, records.joints
    if inputs.wrench.shape[0] > 0:
        for i in range(bodies.shape[0] - 1):
            for c in range(3):
                bodies[i].force[c] = base_load[i, c] + inputs.wrench[index, i, c]
                bodies[i].torque[c] = base_load[i, 3 + c] + inputs.wrench[index, i, 3 + c]
    if inputs.joint.shape[0] > 0:
        for i in range(joints.shape[0]):
            for k in range(joints[i].free):
                joints[i].input[k] = inputs.joint[index, i, k]


@inline
def apply_laws(bodies, joint, y, C, R_parent):
    """Add springs and input forces along the free directions to the loads of both bodies."""
    for i in range(joint.free):
        if joint.driven[i]:
            continue
        size = joint.input[i]
        if joint.free_kind[i] != BALL:
            size -= joint.stiffness[i] * (joint.coordinate[i] - joint.rest[i])
        elif joint.free_axis[i] == 0:
            local, _ = ball_spring(joint, i, frame_rotation(joint, C))
            torque = mat_vec(load9(joint.frame_parent), local)
            push(bodies[joint.parent], -1.0, (0.0, 0.0, 0.0), torque)
            push(bodies[joint.child], 1.0, (0.0, 0.0, 0.0), mat_t_vec(C, torque))
        force, parent, child = direction_gradient(joint, i, y, C, R_parent)
        push(bodies[joint.parent], size, neg3(force), parent)
        push(bodies[joint.child], size, force, child)


@kernel
def evaluate_coupling(bodies, joints, coupling):
    """Gradient of a coupling by each of its bodies."""
    G = coupling.G
    for slot in range(4):
        for c in range(6):
            G[slot, c] = 0.0
    for end in range(2):
        joint = joints[coupling.joint[end]]
        y, C, R_parent = joint_at_knot(bodies, joint)
        weight = 1.0 if end == 0 else -coupling.ratio
        force, parent, child = direction_gradient(joint, coupling.direction[end], y, C, R_parent)
        add_to_slot(G, coupling.slot[2 * end], weight, neg3(force), parent)
        add_to_slot(G, coupling.slot[2 * end + 1], weight, force, child)
    coupling.mu = 0.0


@inline
def add_to_slot(G, slot, weight, force, torque):
    """Add a weighted gradient to the row of one of a coupling's bodies; the world has none."""
    if slot >= 0:
        for c in range(3):
            G[slot, c] += weight * force[c]
            G[slot, 3 + c] += weight * torque[c]


@kernel
def bias(joint, kind, direction, a, b, y, C, Rp, v_parent, w_parent, v_child, w_child):
    """Second time derivative of a row at constant velocities (the part G' v of the acceleration)."""
    if kind == ROTATION:
        A = mat_vec(C, a)
        A1 = mat_vec(C, cross3(w_child, a))
        A2 = mat_vec(C, cross3(w_child, cross3(w_child, a)))
        B1 = cross3(w_parent, b)
        B2 = cross3(w_parent, B1)
        return dot3(A2, b) + 2.0 * dot3(A1, B1) + dot3(A, B2)
    if kind == COMPLIANT:
        if direction == SECOND:
            return dot3(a, cross3(w_child, mat_t_vec(C, w_parent)))
        return -dot3(a, cross3(w_parent, mat_vec(C, w_child)))
    p = load3(joint.point_child)
    X1 = add3(mat_t_vec(Rp, sub3(v_child, v_parent)), mat_vec(C, cross3(w_child, p)))
    X2 = mat_vec(C, cross3(w_child, cross3(w_child, p)))
    y1 = sub3(X1, cross3(w_parent, y))
    y2 = add3(sub3(X2, scale3(2.0, cross3(w_parent, X1))), cross3(w_parent, cross3(w_parent, y)))
    if kind == DISTANCE_ROW:
        n, length = unit_distance(joint, y)
        along = dot3(n, y1)
        return dot3(n, y2) + (dot3(y1, y1) - along * along) / length
    value = dot3(a, y2)
    if kind == HELIX:
        value += joint.pitch / (2.0 * pi) * dot3(a, cross3(w_parent, mat_vec(C, w_child)))
    return value


@kernel
def direction_bias(joint, i, y, C, Rp, v_parent, w_parent, v_child, w_child):
    """``bias`` of a free direction."""
    kind = joint.free_kind[i]
    axis = joint.free_axis[i]
    zero = (0.0, 0.0, 0.0)
    if kind == SLIDE:
        a = column(load9(joint.frame_parent), axis)
        return bias(joint, TRANSLATION, SLIDE, a, zero, y, C, Rp, v_parent, w_parent, v_child, w_child)
    if kind == DISTANCE:
        return bias(joint, DISTANCE_ROW, SLIDE, zero, zero, y, C, Rp, v_parent, w_parent, v_child, w_child)
    if kind == SECOND:
        c = column(load9(joint.frame_child), axis)
        return bias(joint, COMPLIANT, SECOND, c, zero, y, C, Rp, v_parent, w_parent, v_child, w_child)
    a = column(load9(joint.frame_parent), axis)
    return bias(joint, COMPLIANT, SLIDE, a, zero, y, C, Rp, v_parent, w_parent, v_child, w_child)


@kernel
def knot_matrix(records, blocks, schedule, compliance, lag):
    """Write and factor [[M, -G^T], [G, E]] at the knot; a compliant row reads mu + (lag d + a) (G v) = 0. Returns -1 or a node."""
    bodies, joints, couplings = records.bodies, records.joints, records.couplings
    world = bodies.shape[0] - 1
    clear(blocks, schedule)
    for i in range(world):
        body = bodies[i]
        D = blocks[body.diagonal].M
        for r in range(6):
            for c in range(6):
                D[r, c] = 0.0
        for r in range(3):
            D[r, r] = body.mass
            for c in range(3):
                D[3 + r, 3 + c] = body.inertia[3 * r + c]
    for i in range(joints.shape[0]):
        joint = joints[i]
        if joint.rows == 0:
            continue
        S = blocks[joint.diagonal].M
        for k in range(joint.rows):
            for c in range(joint.rows):
                S[k, c] = 0.0
            weight = 1.0
            S[k, k] = compliance * joint.soft[k]
            if joint.row_kind[k] == COMPLIANT:
                S[k, k] = 1.0
                weight = lag * joint.damping[joint.row_direction[k]] + joint.armature[joint.row_direction[k]]
            for c in range(6):
                if joint.parent != world:
                    blocks[joint.block_jp].M[k, c] = weight * joint.Gp[k, c]
                    blocks[joint.block_pj].M[c, k] = -joint.Gp[k, c]
                if joint.child != world:
                    blocks[joint.block_jc].M[k, c] = weight * joint.Gc[k, c]
                    blocks[joint.block_cj].M[c, k] = -joint.Gc[k, c]
    for i in range(couplings.shape[0]):
        coupling = couplings[i]
        blocks[coupling.diagonal].M[0, 0] = compliance * coupling.soft
        for slot in range(coupling.bodies):
            for c in range(6):
                blocks[coupling.block_cb[slot]].M[0, c] = coupling.G[slot, c]
                blocks[coupling.block_bc[slot]].M[c, 0] = -coupling.G[slot, c]
    return factor(blocks, schedule)


@kernel
def knot_residual(records, vector, wanted, velocity, impulse, coupling_impulse, lag):
    """Right-hand side of the knot system minus its product with (velocity, impulse), compliance left out.

    ``wanted``: (n, 6) momenta; a row asks for the rate in ``joint.r``, a coupling for that in ``coupling.r``. Returns the
    largest row residual.
    """
    bodies, joints, couplings = records.bodies, records.joints, records.couplings
    world = bodies.shape[0] - 1
    for i in range(world):
        body = bodies[i]
        r = vector[body.node].v
        u = velocity[i]
        for c in range(3):
            r[c] = wanted[i, c] - body.mass * u[c]
            r[3 + c] = wanted[i, 3 + c]
            for d in range(3):
                r[3 + c] -= body.inertia[3 * c + d] * u[3 + d]
    worst = 0.0
    for i in range(joints.shape[0]):
        joint = joints[i]
        for k in range(joint.rows):
            flow = 0.0
            for c in range(6):
                flow += joint.Gp[k, c] * velocity[joint.parent, c] + joint.Gc[k, c] * velocity[joint.child, c]
                if joint.parent != world:
                    vector[bodies[joint.parent].node].v[c] += joint.Gp[k, c] * impulse[i, k]
                if joint.child != world:
                    vector[bodies[joint.child].node].v[c] += joint.Gc[k, c] * impulse[i, k]
            r = vector[joint.node].v
            direction = joint.row_direction[k]
            if joint.row_kind[k] == COMPLIANT:
                r[k] = joint.spin[direction] - impulse[i, k] - (lag * joint.damping[direction] + joint.armature[direction]) * flow
            else:
                r[k] = joint.r[k] - flow
                worst = max(worst, abs(r[k]))
    for i in range(couplings.shape[0]):
        coupling = couplings[i]
        flow = 0.0
        for slot in range(coupling.bodies):
            for c in range(6):
                flow += coupling.G[slot, c] * velocity[coupling.body[slot], c]
                vector[bodies[coupling.body[slot]].node].v[c] += coupling.G[slot, c] * coupling_impulse[i]
        vector[coupling.node].v[0] = coupling.r - flow
        worst = max(worst, abs(coupling.r - flow))
    return worst


@kernel
def add_solution(records, vector, velocity, impulse, coupling_impulse):
    """Add a solution of the knot system to velocities and impulses."""
    bodies, joints, couplings = records.bodies, records.joints, records.couplings
    for i in range(bodies.shape[0] - 1):
        for c in range(6):
            velocity[i, c] += vector[bodies[i].node].v[c]
    for i in range(joints.shape[0]):
        for k in range(joints[i].rows):
            impulse[i, k] += vector[joints[i].node].v[k]
    for i in range(couplings.shape[0]):
        coupling_impulse[i] += vector[couplings[i].node].v[0]


@kernel
def project(records, blocks, schedule, vector, compliance, wanted, lag, tolerance, velocity, impulse, coupling_impulse):
    """Velocities (n + 1, 6) nearest to the momenta ``wanted`` in the mass metric that satisfy every row.

    The proximal iteration repeats the solve until the rows hold to ``tolerance``. Needs ``evaluate_knot`` before.
    Returns the largest row residual, NaN when the factorisation failed.
    """
    bodies = records.bodies
    for i in range(bodies.shape[0] - 1):
        linear = scale3(1.0 / bodies[i].mass, load3(wanted[i]))
        put6(velocity[i], linear, mat_vec(load9(bodies[i].inertia_inverse), load3(wanted[i, 3:])))
    impulse[:] = 0.0
    coupling_impulse[:] = 0.0
    if knot_matrix(records, blocks, schedule, compliance, lag) >= 0:
        return np.nan
    worst = np.inf
    for _ in range(20):
        before = worst
        worst = knot_residual(records, vector, wanted, velocity, impulse, coupling_impulse, lag)
        if before < np.inf and (not worst > tolerance or worst > 0.5 * before):
            return worst
        solve(blocks, schedule, vector)
        add_solution(records, vector, velocity, impulse, coupling_impulse)
    return worst


@kernel
def accelerate(records, blocks, schedule, vector, compliance, velocity, impulse, coupling_impulse):
    """Joint forces at the knot for given velocities (n + 1, 6).

    The acceleration-level system G a = -G' v + prescribed. Needs ``evaluate_knot`` before.
    """
    bodies, joints, couplings = records.bodies, records.joints, records.couplings
    world = bodies.shape[0] - 1
    if knot_matrix(records, blocks, schedule, compliance, 0.0) >= 0:
        return False
    for i in range(world):
        body = bodies[i]
        w = load3(velocity[i, 3:])
        gyroscopic = cross3(w, mat_vec(load9(body.inertia), w))
        r = vector[body.node].v
        for c in range(3):
            r[c] = body.load[c]
            r[3 + c] = body.load[3 + c] - gyroscopic[c]
    for i in range(joints.shape[0]):
        joint = joints[i]
        y, C, Rp = joint_at_knot(bodies, joint)
        up = velocity[joint.parent]
        uc = velocity[joint.child]
        vp, wp, vc, wc = load3(up), load3(up[3:]), load3(uc), load3(uc[3:])
        for k in range(joint.rows):
            direction = joint.row_direction[k]
            r = vector[joint.node].v
            if joint.row_kind[k] == COMPLIANT:
                flow = 0.0
                for c in range(6):
                    flow += joint.Gp[k, c] * up[c] + joint.Gc[k, c] * uc[c]
                r[k] = -joint.damping[direction] * flow
                if joint.armature[direction] > 0.0:
                    r[k] -= joint.armature[direction] * direction_bias(joint, direction, y, C, Rp, vp, wp, vc, wc)
            elif direction >= 0:
                r[k] = joint.acceleration[direction] - direction_bias(joint, direction, y, C, Rp, vp, wp, vc, wc)
            else:
                a, b = load3(joint.row_a[k]), load3(joint.row_b[k])
                r[k] = -bias(joint, int(joint.row_kind[k]), 0, a, b, y, C, Rp, vp, wp, vc, wc)
    for i in range(couplings.shape[0]):
        coupling = couplings[i]
        total = 0.0
        for end in range(2):
            joint = joints[coupling.joint[end]]
            y, C, Rp = joint_at_knot(bodies, joint)
            up = velocity[joint.parent]
            uc = velocity[joint.child]
            value = direction_bias(joint, coupling.direction[end], y, C, Rp, load3(up), load3(up[3:]), load3(uc), load3(uc[3:]))
            total += value if end == 0 else -coupling.ratio * value
        vector[coupling.node].v[0] = -total
    impulse[:] = 0.0
    coupling_impulse[:] = 0.0
    for _ in range(4):
        solve(blocks, schedule, vector)
        # What the compliance leaves open, E times the forces just found, is the right-hand side of the next correction.
        for i in range(world):
            vector[bodies[i].node].v[:] = 0.0
        for i in range(joints.shape[0]):
            for k in range(joints[i].rows):
                r = vector[joints[i].node].v
                impulse[i, k] += r[k]
                r[k] *= compliance * joints[i].soft[k] if joints[i].row_kind[k] != COMPLIANT else 0.0
        for i in range(couplings.shape[0]):
            r = vector[couplings[i].node].v
            coupling_impulse[i] += r[0]
            r[0] *= compliance * couplings[i].soft
    return True


@kernel
def open_amounts(records, rows, gaps):
    """How far each row (joints, 6) and each coupling is open at the knot. Needs ``evaluate_knot`` before."""
    bodies, joints, couplings = records.bodies, records.joints, records.couplings
    for i in range(joints.shape[0]):
        joint = joints[i]
        y, C, _ = joint_at_knot(bodies, joint)
        for k in range(joint.rows):
            rows[i, k] = row_value(joint, k, y, C)
    for i in range(couplings.shape[0]):
        c = couplings[i]
        first = joints[c.joint[0]].coordinate[c.direction[0]]
        second = joints[c.joint[1]].coordinate[c.direction[1]]
        gaps[i] = first - c.ratio * second - c.offset


@kernel
def potential_energy(records):
    """Energy of gravity and of all springs at the knot, in J. Needs ``evaluate_knot`` before."""
    bodies, joints, gravity = records.bodies, records.joints, records.gravity
    g = load3(gravity)
    energy = 0.0
    for i in range(bodies.shape[0] - 1):
        energy -= bodies[i].mass * dot3(g, load3(bodies[i].x))
    for i in range(joints.shape[0]):
        joint = joints[i]
        if joint.active:
            _, C, _ = joint_at_knot(bodies, joint)
            energy += spring_energy(joint, frame_rotation(joint, C))
    return energy


@kernel
def joint_rates(records, velocity, rates):
    """Rates (joints, 6) along the free directions for velocities (n + 1, 6). Needs ``evaluate_knot`` before."""
    bodies, joints = records.bodies, records.joints
    for i in range(joints.shape[0]):
        joint = joints[i]
        y, C, R_parent = joint_at_knot(bodies, joint)
        up = velocity[joint.parent]
        uc = velocity[joint.child]
        for k in range(joint.free):
            force, parent, child = direction_gradient(joint, k, y, C, R_parent)
            rates[i, k] = dot3(force, sub3(load3(uc), load3(up))) + dot3(parent, load3(up[3:])) + dot3(child, load3(uc[3:]))
