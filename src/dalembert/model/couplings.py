"""Numbers made of the poses of several bodies: gears, lengths of paths, users' functions; with their gradients.

Each is evaluated at the knot (``value``, ``G`` of its ends) or at the end of the step (``next``, ``H``).
"""
from __future__ import annotations

from math import pi, sqrt

from dalembert.kernels import inline, kernel
from dalembert.kernels.calls import call
from dalembert.model.frames import frame_rotation, relative, unwrap
from dalembert.model.records import FIRST, FUNCTION, GEAR, MAPPED, SECOND, TURN
from dalembert.model.rows import angle_about, coordinates, direction_gradient
from dalembert.model.turning import add_distance
from dalembert.spatial.tuples import (
    add3,
    cross3,
    dot3,
    load3,
    load4,
    load9,
    mat_t_mul,
    mat_t_vec,
    mat_vec,
    neg3,
    scale3,
    sub3,
)


@inline
def place(body, at_end):
    """Position and rotation of a body at the knot, or at the end of the step."""
    if at_end:
        return load3(body.xn), load9(body.Rn)
    return load3(body.x), load9(body.R)


@inline
def add_to(end, at_end, weight, force, torque):
    """Add a weighted gradient to that of one end."""
    for c in range(3):
        if at_end:
            end.H[c] += weight * force[c]
            end.H[3 + c] += weight * torque[c]
        else:
            end.G[c] += weight * force[c]
            end.G[3 + c] += weight * torque[c]


@kernel
def evaluate_coupling(model, work, index, at_end):
    """Value of a coupling and its gradient by each of its bodies."""
    coupling, tie = model.couplings[index], work.couplings[index]
    for e in range(coupling.first, coupling.first + coupling.ends):
        for c in range(6):
            if at_end:
                work.ends[e].H[c] = 0.0
            else:
                work.ends[e].G[c] = 0.0
    if coupling.kind == GEAR:
        value = gear(model, work, coupling, at_end)
    elif coupling.kind == FUNCTION:
        value = function(model, work, coupling, at_end)
    elif coupling.kind == MAPPED:
        value = mapped(model, work, coupling, at_end)
    else:
        value = path(model, work, coupling, at_end)
    if at_end:
        tie.next = value
    else:
        tie.value = value


@kernel
def gear(model, work, coupling, at_end):
    """Coordinate of the first joint less ``ratio`` times that of the second less ``offset``, angles unwrapped.

    Full turns are counted apart: after hours of turning, angles have no digits left to be compared by.
    """
    angles, turns = -coupling.offset, 0.0
    for side in range(2):
        weight = 1.0 if side == 0 else -coupling.ratio
        joint, direction = coupling.joint[side], coupling.direction[side]
        part, count = parts_at(model, work, joint, direction, at_end)
        angles += weight * part
        turns = count if side == 0 else less_product(turns, coupling.ratio, count)
        add_coordinate(model, work, coupling.first, joint, direction, coupling.slot[2 * side :], at_end, weight)
    return angles + 2.0 * pi * turns


@inline
def less_product(a, b, c):
    """a - b c without the rounding of the product (Dekker's), for c a whole number."""
    product = b * c
    split = 134217729.0 * b
    high = split - (split - b)
    low = b - high
    wide = 134217729.0 * c
    c_high = wide - (wide - c)
    c_low = c - c_high
    lost = ((high * c_high - product) + high * c_low + low * c_high) + low * c_low
    return (a - product) - lost


@kernel
def mapped(model, work, coupling, at_end):
    """A coordinate less what a map makes of others: a sum with weights, or a user's function, whose answer has its slopes too."""
    legs = model.legs[coupling.first_leg : coupling.first_leg + coupling.legs]
    work.given[0] = coupling.row
    for k in range(1, coupling.legs):
        work.given[k] = coordinate_at(model, work, legs[k].joint, legs[k].direction, at_end)
    if coupling.function != 0:
        call(coupling.function, work.given[: coupling.legs], work.found[: coupling.legs])
    else:
        work.found[0] = coupling.offset
        for k in range(1, coupling.legs):
            work.found[0] += legs[k].weight * work.given[k]
            work.found[k] = legs[k].weight
    for k in range(coupling.legs):
        weight = 1.0 if k == 0 else -work.found[k]
        add_coordinate(model, work, coupling.first, legs[k].joint, legs[k].direction, legs[k].slot, at_end, weight)
    return coordinate_at(model, work, legs[0].joint, legs[0].direction, at_end) - work.found[0]


@kernel
def coordinate_at(model, work, index, direction, at_end):
    """One coordinate of a joint at the knot or at the end of the step, unwrapped."""
    part, turns = parts_at(model, work, index, direction, at_end)
    return part + 2.0 * pi * turns


@kernel
def parts_at(model, work, index, direction, at_end):
    """One coordinate of a joint at the knot or at the end of the step: what is left of it without full turns, and their number."""
    joint = model.joints[index]
    x_parent, R_parent = place(work.bodies[joint.parent], at_end)
    x_child, R_child = place(work.bodies[joint.child], at_end)
    y, C = relative(joint, x_parent, R_parent, x_child, R_child)
    return parts_from(joint, work.joints[index], direction, y, C)


@kernel
def add_coordinate(model, work, first, index, direction, slot, at_end, weight):
    """Add the weighted gradient of a joint's coordinate to those of its parent's and child's places among the ends."""
    joint = model.joints[index]
    x_parent, R_parent = place(work.bodies[joint.parent], at_end)
    x_child, R_child = place(work.bodies[joint.child], at_end)
    y, C = relative(joint, x_parent, R_parent, x_child, R_child)
    force, on_parent, on_child = direction_gradient(joint, direction, y, C, R_parent)
    if slot[0] >= 0:
        add_to(work.ends[first + slot[0]], at_end, weight, neg3(force), on_parent)
    if slot[1] >= 0:
        add_to(work.ends[first + slot[1]], at_end, weight, force, on_child)


@kernel
def parts_from(joint, at, direction, y, C):
    """One coordinate of a joint at some pose: what is left of it without full turns, and their number, nearest to the knot's."""
    kind = joint.free_kind[direction]
    if kind in (TURN, FIRST, SECOND):
        E = frame_rotation(joint, C)
        angle = angle_about(E, kind, joint.free_axis[direction])
        return angle, round((at.coordinate[direction] - angle) / (2.0 * pi))
    return coordinate_from(joint, at, direction, y, C), 0.0


@kernel
def coordinate_from(joint, at, direction, y, C):
    """One coordinate of a joint at some pose, unwrapped against the knot's."""
    keep = (at.coordinate[0], at.coordinate[1], at.coordinate[2], at.coordinate[3], at.coordinate[4], at.coordinate[5])
    coordinates(joint, y, C, at.coordinate)
    value = at.coordinate[direction]
    for k in range(6):
        at.coordinate[k] = keep[k]
    return value


@kernel
def moved_from(joint, at, direction, y, C):
    """By how much one coordinate of a joint has moved from the knot to some pose: without full turns, so that large angles lose no digits."""
    kind = joint.free_kind[direction]
    if kind in (TURN, FIRST, SECOND):
        before = at.coordinate[direction]
        before -= 2.0 * pi * round(before / (2.0 * pi))
        return unwrap(angle_about(frame_rotation(joint, C), kind, joint.free_axis[direction]) - before, 0.0)
    return coordinate_from(joint, at, direction, y, C) - at.coordinate[direction]


@inline
def path_point(model, work, coupling, number, at_end):
    """A point of a path in the world, on its body (body frame), and the body's rotation."""
    record = model.points[coupling.first_point + number]
    x, R = place(work.bodies[record.body], at_end)
    point = load3(record.point)
    return add3(x, mat_vec(R, point)), point, R


@kernel
def path(model, work, coupling, at_end):
    """Length of a line through points on bodies (RedMax 1.9.8)."""
    length = 0.0
    here, a, Ra = path_point(model, work, coupling, 0, at_end)
    for number in range(1, coupling.points):
        there, b, Rb = path_point(model, work, coupling, number, at_end)
        d = sub3(there, here)
        size = sqrt(dot3(d, d))
        n = scale3(1.0 / size, d)
        length += size
        from_slot = model.points[coupling.first_point + number - 1].slot
        if from_slot >= 0:
            add_to(work.ends[coupling.first + from_slot], at_end, -1.0, n, cross3(a, mat_t_vec(Ra, n)))
        to_slot = model.points[coupling.first_point + number].slot
        if to_slot >= 0:
            add_to(work.ends[coupling.first + to_slot], at_end, 1.0, n, cross3(b, mat_t_vec(Rb, n)))
        here, a, Ra = there, b, Rb
    return length


@kernel
def add_path_stiffness(K, model, work, coupling, number, force, at_end):
    """How the wrenches of a ``force`` along a path (positive lengthens it) change with the poses of two neighbouring bodies.

    Those of points ``number`` and ``number + 1``, one of which may be the world, or both the same body: K (12, 12) as in
    ``hessians``. The change of the force itself is that of its law times the gradients, which ``path`` gives.
    """
    here, _, Ra = path_point(model, work, coupling, number, at_end)
    there, b, Rb = path_point(model, work, coupling, number + 1, at_end)
    x, _ = place(work.bodies[model.points[coupling.first_point + number].body], at_end)
    d = sub3(there, here)
    size = sqrt(dot3(d, d))
    y = mat_t_vec(Ra, sub3(there, x))
    add_distance(K, force, mat_t_vec(Ra, scale3(1.0 / size, d)), size, y, mat_t_mul(Ra, Rb), Ra, b)


@kernel
def function(model, work, coupling, at_end):
    """A user's function: given the row and the poses, it writes value and gradient."""
    work.given[0] = coupling.row
    for k in range(coupling.ends):
        body = work.bodies[model.ends[coupling.first + k]]
        x = load3(body.xn) if at_end else load3(body.x)
        q = load4(body.qn) if at_end else load4(body.q)
        for c in range(3):
            work.given[1 + 7 * k + c] = x[c]
        for c in range(4):
            work.given[4 + 7 * k + c] = q[c]
    call(coupling.function, work.given[: 1 + 7 * coupling.ends], work.found[: 1 + 6 * coupling.ends])
    for k in range(coupling.ends):
        found = work.found[1 + 6 * k : 7 + 6 * k]
        add_to(work.ends[coupling.first + k], at_end, 1.0, load3(found), load3(found[3:]))
    return work.found[0]
