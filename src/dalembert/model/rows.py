"""Joint rows and free directions: value and gradient of every constraint, coordinate and force direction.

A gradient is a force on the child in the world (its mirror image acts on the parent) and two torques in the body
frames. Translation rows are Quaternion eq. 15 to 18, rotation rows eq. 19 and 20, driven rows eq. 21 to 23.

``y``, ``C`` as in ``frames``; ``joint`` is a record of the model, ``at`` its record of the work, which holds where driven rows aim.
"""
from __future__ import annotations

from math import atan2, cos, sin

from dalembert.kernels import inline, kernel
from dalembert.model.frames import (
    ZERO3,
    ball_vector,
    entry,
    frame_rotation,
    translation_gradient,
    turn_angle,
    unit_distance,
    unwrap,
)
from dalembert.model.own_rows import own_gradient, own_value
from dalembert.model.records import BALL, COMPLIANT, DISTANCE, FIRST, ROTATION, SECOND, SLIDE, TRANSLATION, TURN
from dalembert.spatial import so3
from dalembert.spatial.tuples import (
    add3,
    column,
    cross3,
    dot3,
    load3,
    load9,
    mat_mul,
    mat_t_vec,
    mat_vec,
    neg3,
    scale3,
    store3,
    sub3,
)


@inline
def angle_about(E, kind, axis):
    """The angle of a single turn, or of one of the two of a universal joint, from -pi to pi."""
    if kind == TURN:
        return turn_angle(E, axis)
    if kind == FIRST:
        return atan2(entry(E, 2, 1), entry(E, 1, 1))
    return atan2(entry(E, 0, 2), entry(E, 0, 0))


@inline
def hinge_angle(joint, C):
    """The angle of a single turn, with no more of the frame's rotation than it is made of."""
    j, k = (joint.free_axis[0] + 1) % 3, (joint.free_axis[0] + 2) % 3
    frame_parent, frame_child = load9(joint.frame_parent), load9(joint.frame_child)
    parent_j, parent_k = column(frame_parent, j), column(frame_parent, k)
    child_j, child_k = mat_vec(C, column(frame_child, j)), mat_vec(C, column(frame_child, k))
    return atan2(dot3(parent_k, child_j) - dot3(parent_j, child_k), dot3(parent_j, child_j) + dot3(parent_k, child_k))


@kernel
def coordinates(joint, y, C, values):
    """Write the joint's coordinates into ``values``, which holds earlier ones to unwrap the angles against."""
    if joint.free == 1 and joint.free_kind[0] == TURN:
        values[0] = unwrap(hinge_angle(joint, C), values[0])
        return
    E = frame_rotation(joint, C)
    for i in range(joint.free):
        kind = joint.free_kind[i]
        axis = joint.free_axis[i]
        if kind == SLIDE:
            values[i] = dot3(column(load9(joint.frame_parent), axis), sub3(y, load3(joint.point_parent)))
        elif kind in (TURN, FIRST, SECOND):
            values[i] = unwrap(angle_about(E, kind, axis), values[i])
        elif kind == BALL and axis == 0:
            phi = ball_vector(E, (values[i], values[i + 1], values[i + 2]))
            values[i] = phi[0]
            values[i + 1] = phi[1]
            values[i + 2] = phi[2]
        elif kind == DISTANCE:
            values[i] = unit_distance(joint, y)[1]


@inline
def direction_gradient(joint, i, y, C, R_parent):
    """Gradient of a free direction: the force or torque that does unit work on its rate.

    For a ball joint the three directions are the parent's axes, along which torques and dampers act.
    """
    kind = joint.free_kind[i]
    axis = joint.free_axis[i]
    if kind == SLIDE:
        a = column(load9(joint.frame_parent), axis)
        return translation_gradient(a, y, C, R_parent, load3(joint.point_child))
    if kind == DISTANCE:
        n, _ = unit_distance(joint, y)
        return translation_gradient(n, y, C, R_parent, load3(joint.point_child))
    if kind == SECOND:
        c = column(load9(joint.frame_child), axis)
        return ZERO3, neg3(mat_vec(C, c)), c
    a = column(load9(joint.frame_parent), axis)
    return ZERO3, neg3(a), mat_t_vec(C, a)


@inline
def row_axes(joint, at, k):
    """The axes of a row on the child and on the parent: those of the model, or where a driven row aims."""
    if joint.row_direction[k] >= 0:
        return load3(at.row_a[k]), load3(at.row_b[k])
    return load3(joint.row_a[k]), load3(joint.row_b[k])


@inline
def row_offset(joint, at, k):
    """The value that a translation row keeps: that of the model, or where a driven row aims."""
    return at.row_offset[k] if joint.row_direction[k] >= 0 else joint.row_offset[k]


@inline
def row_gradient(joint, at, k, y, C, R_parent):
    """Gradient of a row: force on the child (world), torque on the parent and on the child (body frames)."""
    kind = joint.row_kind[k]
    a, b = row_axes(joint, at, k)
    if kind == TRANSLATION:
        return translation_gradient(a, y, C, R_parent, load3(joint.point_child))
    if kind == ROTATION:
        return ZERO3, cross3(b, mat_vec(C, a)), cross3(a, mat_t_vec(C, b))
    if kind == COMPLIANT:
        return direction_gradient(joint, joint.row_direction[k], y, C, R_parent)
    return own_gradient(joint, kind, a, y, C, R_parent)


@inline
def row_value(joint, at, k, y, C):
    """How far a constraint row is open, in metres or (for small angles) radians; zero for a compliant row."""
    kind = joint.row_kind[k]
    a, b = row_axes(joint, at, k)
    if kind == TRANSLATION:
        return dot3(a, sub3(y, load3(joint.point_parent))) - row_offset(joint, at, k)
    if kind == ROTATION:
        return dot3(mat_vec(C, a), b)
    if kind == COMPLIANT:
        return 0.0
    return own_value(joint, at, kind, a, y, C) - joint.row_offset[k]


@inline
def consistent(joint, at, C, threshold):
    """False when the joint sits on a flipped solution (Quaternion section 4, table 7, "consistency constraints")."""
    for g in range(joint.firm):
        if not dot3(mat_vec(C, load3(joint.guard_a[g])), load3(joint.guard_b[g])) > threshold:
            return False
    for g in range(joint.firm, joint.guards):
        if not dot3(mat_vec(C, load3(at.guard_a[g])), load3(at.guard_b[g])) > threshold:
            return False
    return True


@inline
def turned(frame, axis, angle, sense):
    """The two columns after ``axis`` of a frame whose axes are turned about ``axis`` by ``sense * angle``."""
    j = column(frame, (axis + 1) % 3)
    k = column(frame, (axis + 2) % 3)
    c = cos(angle)
    s = sense * sin(angle)
    return add3(scale3(c, j), scale3(s, k)), sub3(scale3(c, k), scale3(s, j))


@kernel
def aim(joint, at):
    """Point the driven rows and their guards at ``at.target`` (Quaternion eq. 21 to 23, table 7)."""
    frame_parent = load9(joint.frame_parent)
    frame_child = load9(joint.frame_child)
    guard = joint.guards - 1
    for k in range(joint.rows):
        i = joint.row_direction[k]
        if i < 0 or joint.row_kind[k] == COMPLIANT:
            continue
        kind = joint.free_kind[i]
        axis = joint.free_axis[i]
        target = at.target[i]
        if kind == SLIDE:
            store3(at.row_a[k], column(frame_parent, axis))
            at.row_offset[k] = target
        elif kind == FIRST:
            j, kk = turned(frame_parent, axis, target, 1.0)
            store3(at.row_a[k], column(frame_child, 1))
            store3(at.row_b[k], kk)
            store3(at.guard_a[guard], column(frame_child, 1))
            store3(at.guard_b[guard], j)
            guard -= 1
        elif kind == BALL:
            first = i - axis
            phi = (at.target[first], at.target[first + 1], at.target[first + 2])
            child = mat_mul(frame_child, so3.exp_matrix(neg3(phi)))
            store3(at.row_a[k], column(child, (axis + 1) % 3))
            store3(at.row_b[k], column(frame_parent, (axis + 2) % 3))
            store3(at.guard_a[axis], column(child, axis))
            store3(at.guard_b[axis], column(frame_parent, axis))
        else:
            j, kk = turned(frame_child, axis, target, -1.0)
            if kind == TURN:
                store3(at.row_a[k], j)
                store3(at.row_b[k], column(frame_parent, (axis + 2) % 3))
                store3(at.guard_a[guard], j)
                store3(at.guard_b[guard], column(frame_parent, (axis + 1) % 3))
            else:
                store3(at.row_a[k], j)
                store3(at.row_b[k], column(frame_parent, (axis + 2) % 3))
                store3(at.guard_a[guard], kk)
                store3(at.guard_b[guard], column(frame_parent, (axis + 2) % 3))
            guard -= 1
