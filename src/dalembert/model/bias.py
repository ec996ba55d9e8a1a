"""Second time derivatives of rows and directions at constant velocities: the part G' v of the acceleration."""
from __future__ import annotations

from dalembert.kernels import kernel
from dalembert.model.couplings import evaluate_coupling
from dalembert.model.frames import relative
from dalembert.model.own_rows import DISTANCE_ROW, own_bias
from dalembert.model.records import COMPLIANT, DISTANCE, GEAR, MAPPED, ROTATION, SECOND, SLIDE, TRANSLATION
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
    scale3,
    store3,
    store4,
    store9,
    sub3,
)

#: s, by which poses are moved to difference a gradient
MOMENT = 1e-5


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
    if kind == TRANSLATION:
        return dot3(a, y2)
    return own_bias(joint, kind, a, y, y1, y2, C, w_parent, w_child)


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
def coordinate_bias(model, work, index, direction, velocity):
    """``bias`` of a joint's coordinate for velocities (n + 1, 6)."""
    joint = model.joints[index]
    parent, child = work.bodies[joint.parent], work.bodies[joint.child]
    Rp = load9(parent.R)
    y, C = relative(joint, load3(parent.x), Rp, load3(child.x), load9(child.R))
    up, uc = velocity[joint.parent], velocity[joint.child]
    return direction_bias(joint, direction, y, C, Rp, load3(up), load3(up[3:]), load3(uc), load3(uc[3:]))


@kernel
def coupling_bias(model, work, index, velocity):
    """``bias`` of a coupling for velocities (n + 1, 6): of gears and linear maps from their joints, of others from gradients a
    little before and after.
    """
    coupling = model.couplings[index]
    bodies = work.bodies
    total = 0.0
    if coupling.kind == GEAR:
        first = coordinate_bias(model, work, coupling.joint[0], coupling.direction[0], velocity)
        return first - coupling.ratio * coordinate_bias(model, work, coupling.joint[1], coupling.direction[1], velocity)
    if coupling.kind == MAPPED and coupling.function == 0:
        for k in range(coupling.legs):
            leg = model.legs[coupling.first_leg + k]
            total += (1.0 if k == 0 else -leg.weight) * coordinate_bias(model, work, leg.joint, leg.direction, velocity)
        return total
    for sign in (1.0, -1.0):
        for e in range(coupling.first, coupling.first + coupling.ends):
            body, u = bodies[model.ends[e]], velocity[model.ends[e]]
            store3(body.xn, add3(load3(body.x), scale3(sign * MOMENT, load3(u))))
            q = quaternion.multiply(load4(body.q), quaternion.exp(scale3(sign * MOMENT, load3(u[3:]))))
            store4(body.qn, q)
            store9(body.Rn, quaternion.to_matrix(q))
        evaluate_coupling(model, work, index, True)
        for e in range(coupling.first, coupling.first + coupling.ends):
            for c in range(6):
                total += sign * work.ends[e].H[c] * velocity[model.ends[e], c] / (2.0 * MOMENT)
    return total
