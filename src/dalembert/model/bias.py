"""Second time derivatives of rows and directions at constant velocities: the part G' v of the acceleration."""
from __future__ import annotations

from math import pi

from dalembert.kernels import kernel
from dalembert.model.records import COMPLIANT, DISTANCE, DISTANCE_ROW, HELIX, ROTATION, SECOND, SLIDE, TRANSLATION
from dalembert.model.rows import unit_distance
from dalembert.spatial.tuples import add3, column, cross3, dot3, load3, load9, mat_t_vec, mat_vec, scale3, sub3


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
