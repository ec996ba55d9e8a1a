"""Transposed derivatives of joints: their wrenches, values, rates and laws, by poses, velocities, impulses and their own numbers.

An element sees a body only through the frame that it holds on to, X = x + R p and Q = R E. Moving that frame on the body
(``point``, ``turn``) is moving the body under it, but for the body's axes in which its torque is written: so that
geometry costs no derivatives of its own. For a wrench (f, T) on the body, with weights a and g its bars by the pose,

    bar of p    = R^T g_x + f_b x a_phi,       f_b = R^T f
    bar of turn = g_phi - p x R^T g_x + p x (a_phi x f_b) + T x a_phi.
"""
from __future__ import annotations

from math import pi

from dalembert.forces.ball import ball_spring
from dalembert.forces.directions import add_directions, spring
from dalembert.forces.laws import servo
from dalembert.formulations.maximal.turning import is_plain, turn_direction, turn_rotation, turn_translation
from dalembert.kernels import inline, kernel
from dalembert.model.frames import ZERO3, frame_rotation, translation_gradient, turn_angle, unwrap
from dalembert.model.hessians import add_direction, add_row
from dalembert.model.own_rows import DISTANCE_ROW, HELIX
from dalembert.model.pose import joint_at_knot
from dalembert.model.records import BALL, FIRST, ROTATION, SLIDE, TRANSLATION
from dalembert.model.rows import direction_gradient, row_axes, row_gradient, turned
from dalembert.spatial import quaternion, so3
from dalembert.spatial.tuples import (
    add3,
    column,
    cross3,
    dot3,
    load3,
    load9,
    mat_mul,
    mat_t_mul,
    mat_t_vec,
    mat_vec,
    neg3,
    scale3,
    sub3,
)

#: step of fourth-order differences of rotation vectors, rad
STEP = 1e-3


@inline
def add_to3(target, scale, v):
    """target += scale v."""
    target[0] += scale * v[0]
    target[1] += scale * v[1]
    target[2] += scale * v[2]


@inline
def load6(a):
    """The first 6 entries of an array."""
    return (a[0], a[1], a[2], a[3], a[4], a[5])


@inline
def transport(point_bar, turn_bar, sign, R, p, g_x, g_phi, f, T, a_phi):
    """Bars of a frame on a body, from those of the element by the body's pose (see above); ``sign`` is that of the wrench."""
    gx = mat_t_vec(R, g_x)
    fb = mat_t_vec(R, f)
    add_to3(point_bar, 1.0, gx)
    add_to3(point_bar, sign, cross3(fb, a_phi))
    add_to3(turn_bar, 1.0, sub3(g_phi, cross3(p, gx)))
    add_to3(turn_bar, sign, add3(cross3(p, cross3(a_phi, fb)), cross3(T, a_phi)))


@kernel
def pull_turning(K, g, sign, first, second):
    """g (12,) = sign K^T (first, second), two rows of six."""
    for c in range(12):
        total = 0.0
        for r in range(6):
            total += K[r, c] * first[r] + K[6 + r, c] * second[r]
        g[c] = sign * total


@kernel
def pull_wrench(bars, index, joint, bodies, sign, first, second, f, T_parent, T_child):
    """A wrench of a joint in the equations with weights ``first`` and ``second`` (on parent and child), with ``bars.K`` its turning.

    Adds to the bars of both poses at the knot and of the joint's geometry. ``f`` (world): the force on the child.
    """
    g = bars.pair
    pull_turning(bars.K, g, sign, first, second)
    spread_wrench(bars, index, joint, bodies, sign, load3(g[6:]), load3(g[3:]), load3(g[9:]), first, second, f, T_parent, T_child)


@kernel
def spread_wrench(bars, index, joint, bodies, sign, g_x, g_parent, g_child, first, second, f, T_parent, T_child):
    """As ``pull_wrench``, with the bars by the child's position (the parent's is minus that) and by both turns given."""
    bar, parent, child = bars.joints[index], bars.bodies[joint.parent], bars.bodies[joint.child]
    add_to3(parent.x, -1.0, g_x)
    add_to3(parent.phi, 1.0, g_parent)
    add_to3(child.x, 1.0, g_x)
    add_to3(child.phi, 1.0, g_child)
    transport(
        bar.point_parent, bar.turn_parent, sign, load9(bodies[joint.parent].R), load3(joint.point_parent), neg3(g_x), g_parent,
        neg3(f), T_parent, load3(first[3:]),
    )
    transport(bar.point_child, bar.turn_child, sign, load9(bodies[joint.child].R), load3(joint.point_child), g_x, g_child, f, T_child, load3(second[3:]))


@kernel
def pull_rows(bar, joint, at, share, y, C, Rp):
    """Values of the rows that hold, weighted with ``share`` times ``b``: the sum of their gradients. Adds what targets and own numbers get."""
    A, a0, b0, force, on_parent, on_child = ZERO3, ZERO3, ZERO3, ZERO3, ZERO3, ZERO3
    for k in range(joint.locks):
        weight = share * bar.b[k]
        if joint.row_direction[k] < 0 and joint.row_kind[k] == TRANSLATION:
            A = add3(A, scale3(weight, load3(joint.row_a[k])))
        elif joint.row_direction[k] < 0 and joint.row_kind[k] == ROTATION:
            a, b = load3(joint.row_a[k]), scale3(weight, load3(joint.row_b[k]))
            if a == a0:
                b0 = add3(b0, b)
            elif neg3(a) == a0:
                b0 = sub3(b0, b)
            else:
                on_parent, on_child = add3(on_parent, cross3(b0, mat_vec(C, a0))), add3(on_child, cross3(a0, mat_t_vec(C, b0)))
                a0, b0 = a, b
        else:
            one, two, three = row_gradient(joint, at, k, y, C, Rp)
            force, on_parent, on_child = add3(force, scale3(weight, one)), add3(on_parent, scale3(weight, two)), add3(on_child, scale3(weight, three))
            pull_target(bar, joint, at, k, weight, C)
            pull_own_numbers(bar, joint, at, k, weight, C)
    one, two, three = translation_gradient(A, y, C, Rp, load3(joint.point_child))
    on_parent, on_child = add3(on_parent, cross3(b0, mat_vec(C, a0))), add3(on_child, cross3(a0, mat_t_vec(C, b0)))
    return add3(force, one), add3(on_parent, two), add3(on_child, three)


@inline
def pull_number(bar, joint, weight, force, on_parent, on_child, R_parent, R_child):
    """Geometry bars of a joint for a number with these gradients (a row's value, a coordinate)."""
    fp = mat_t_vec(R_parent, force)
    fc = mat_t_vec(R_child, force)
    add_to3(bar.point_child, weight, fc)
    add_to3(bar.turn_child, weight, sub3(on_child, cross3(load3(joint.point_child), fc)))
    add_to3(bar.point_parent, -weight, fp)
    add_to3(bar.turn_parent, weight, add3(on_parent, cross3(load3(joint.point_parent), fp)))


@inline
def pull_at_knot(bars, index, joint, bodies, weight, force, on_parent, on_child):
    """A number of a joint at the knot."""
    parent, child = bars.bodies[joint.parent], bars.bodies[joint.child]
    add_to3(parent.x, -weight, force)
    add_to3(parent.phi, weight, on_parent)
    add_to3(child.x, weight, force)
    add_to3(child.phi, weight, on_child)
    pull_number(bars.joints[index], joint, weight, force, on_parent, on_child, load9(bodies[joint.parent].R), load9(bodies[joint.child].R))


@inline
def pull_at_end(bars, index, joint, bodies, weight, force, on_parent, on_child):
    """A number of a joint at the end of the step."""
    parent, child = bars.bodies[joint.parent], bars.bodies[joint.child]
    add_to3(parent.xn, -weight, force)
    add_to3(parent.phin, weight, on_parent)
    add_to3(child.xn, weight, force)
    add_to3(child.phin, weight, on_child)
    pull_number(bars.joints[index], joint, weight, force, on_parent, on_child, load9(bodies[joint.parent].Rn), load9(bodies[joint.child].Rn))


@inline
def along(force, on_parent, on_child, first, second):
    """The product of a gradient with rows of six of parent and child."""
    return dot3(force, sub3(load3(second), load3(first))) + dot3(on_parent, load3(first[3:])) + dot3(on_child, load3(second[3:]))


@kernel
def pull_joint_wrench(model, work, bars, index, scale):
    """The joint's impulses, and ``scale`` times its springs and inputs, as they stand with a minus sign in the bodies' equations."""
    joint, at, bar = model.joints[index], work.joints[index], bars.joints[index]
    bodies, K = work.bodies, bars.K
    y, C, Rp = joint_at_knot(bodies, joint)
    first, second = load6(bars.bodies[joint.parent].b), load6(bars.bodies[joint.child].b)
    dense = joint.active and scale != 0.0
    if dense:
        K[:] = 0.0
    f, T_parent, T_child = ZERO3, ZERO3, ZERO3
    by_x, by_parent, by_child = ZERO3, ZERO3, ZERO3
    # rows of one kind turn alike: forces of translation rows add up, and so do second axes of rotation rows with one first axis
    A, a0, b0 = ZERO3, ZERO3, ZERO3
    for k in range(joint.rows):
        mu = at.mu[k]
        if is_plain(joint, k):
            one, two, three = turn_direction(first, second, joint, joint.row_direction[k], mu, y, C, Rp)
            by_x, by_parent, by_child = add3(by_x, one), add3(by_parent, two), add3(by_child, three)
        elif joint.row_direction[k] < 0 and joint.row_kind[k] == TRANSLATION:
            A = add3(A, scale3(mu, load3(joint.row_a[k])))
        elif joint.row_direction[k] < 0 and joint.row_kind[k] == ROTATION:
            a, b = load3(joint.row_a[k]), scale3(mu, load3(joint.row_b[k]))
            if a == a0:
                b0 = add3(b0, b)
            elif neg3(a) == a0:
                b0 = sub3(b0, b)
            else:
                two, three = turn_rotation(first, second, a0, b0, C)
                by_parent, by_child = add3(by_parent, two), add3(by_child, three)
                a0, b0 = a, b
        else:
            if not dense:
                K[:] = 0.0
            dense = True
            add_row(K, joint, at, k, mu, y, C, Rp)
        f = add3(f, scale3(mu, load3(at.Gc[k])))
        T_parent = add3(T_parent, scale3(mu, load3(at.Gp[k, 3:])))
        T_child = add3(T_child, scale3(mu, load3(at.Gc[k, 3:])))
        total = 0.0
        for c in range(6):
            total += at.Gp[k, c] * first[c] + at.Gc[k, c] * second[c]
        bar.mu[k] -= total
        if joint.row_kind[k] == HELIX:  # of its torque, -lead a on the child and lead a on the parent
            a = load3(joint.row_a[k])
            bar.pitch -= mu / (2.0 * pi) * (dot3(a, load3(first[3:])) - dot3(mat_t_vec(C, a), load3(second[3:])))
    one, two, three = turn_translation(first, second, A, y, C, Rp, load3(joint.point_child))
    by_x, by_parent, by_child = add3(by_x, one), add3(by_parent, two), add3(by_child, three)
    two, three = turn_rotation(first, second, a0, b0, C)
    by_parent, by_child = add3(by_parent, two), add3(by_child, three)
    if scale != 0.0:
        if joint.active:
            K *= 1.0 / scale
            add_directions(K, joint, at, y, C, Rp, frame_rotation(joint, C), bars.pair)
            K *= scale
        for i in range(joint.free):
            if joint.driven[i]:
                continue
            force, on_parent, on_child = direction_gradient(joint, i, y, C, Rp)
            flow = along(force, on_parent, on_child, first, second)
            if joint.active:
                size = scale * (at.input[i] + spring(joint, at, i)[0])
                f = add3(f, scale3(size, force))
                T_parent = add3(T_parent, scale3(size, on_parent))
                T_child = add3(T_child, scale3(size, on_child))
            bar.input[i] -= scale * flow
            if not (joint.damping[i] > 0.0 or joint.armature[i] > 0.0 or joint.follows[i]):
                # a damper that is not there has no row of its own
                u = along(force, on_parent, on_child, load6(bars.bodies[joint.parent].u), load6(bars.bodies[joint.child].u))
                bar.damping[i] += scale * flow * u
            if joint.free_kind[i] != BALL:
                bar.stiffness[i] += scale * flow * (at.coordinate[i] - joint.rest[i])
                bar.rest[i] -= scale * flow * joint.stiffness[i]
            elif joint.free_axis[i] == 0:
                E = frame_rotation(joint, C)
                local, _ = ball_spring(joint, i, E)
                frame = load9(joint.frame_parent)
                torque = mat_vec(frame, scale3(scale, local))
                T_parent = sub3(T_parent, torque)
                T_child = add3(T_child, mat_t_vec(C, torque))
                # weight of the torque in the parent's canonical frame
                weight = mat_t_vec(frame, sub3(mat_vec(C, load3(second[3:])), load3(first[3:])))
                pull_ball(bar, joint, i, E, scale3(-scale, weight))
    if dense:
        pull_turning(K, bars.pair, 1.0, first, second)
        by_x, by_parent, by_child = add3(by_x, load3(bars.pair[6:])), add3(by_parent, load3(bars.pair[3:])), add3(by_child, load3(bars.pair[9:]))
    spread_wrench(bars, index, joint, bodies, -1.0, neg3(by_x), neg3(by_parent), neg3(by_child), first, second, f, T_parent, T_child)


@kernel
def pull_ball(bar, joint, first, E, weight):
    """Stiffness of a ball joint's springs, and a turn of their rest orientation (in its own axes), from the weight of their torque."""
    rest = load9(joint.rest_frame)
    local = mat_t_vec(rest, weight)
    phi = quaternion.log(quaternion.from_matrix(mat_t_mul(rest, E)))
    w = mat_t_vec(so3.right_jacobian_inverse(phi), local)
    for c in range(3):
        bar.stiffness[first + c] -= w[c] * phi[c]
    K = (joint.stiffness[first], joint.stiffness[first + 1], joint.stiffness[first + 2])
    for c in range(3):
        total = 0.0
        for k in range(4):
            size = (1.0, -1.0, 2.0, -2.0)[k] * STEP
            share = (8.0, -8.0, -1.0, 1.0)[k] / (12.0 * STEP)
            step = (size if c == 0 else 0.0, size if c == 1 else 0.0, size if c == 2 else 0.0)
            turned_rest = mat_mul(rest, so3.exp_matrix(step))
            phi = quaternion.log(quaternion.from_matrix(mat_t_mul(turned_rest, E)))
            moment = (K[0] * phi[0], K[1] * phi[1], K[2] * phi[2])
            total += share * dot3(weight, mat_vec(turned_rest, neg3(mat_vec(so3.right_jacobian_inverse(phi), moment))))
        bar.rest_turn[c] += total


@kernel
def pull_rate(model, work, bars, index, k, weight):
    """The rate of a compliant row for the velocities ``u``, weighted; returns the rate."""
    joint, at = model.joints[index], work.joints[index]
    parent, child = bars.bodies[joint.parent], bars.bodies[joint.child]
    rate = 0.0
    for c in range(6):
        rate += at.Gp[k, c] * parent.u[c] + at.Gc[k, c] * child.u[c]
        parent.du[c] += weight * at.Gp[k, c]
        child.du[c] += weight * at.Gc[k, c]
    if weight != 0.0:
        y, C, Rp = joint_at_knot(work.bodies, joint)
        if joint.row_kind[k] == HELIX:
            a = load3(joint.row_a[k])
            bars.joints[index].pitch += weight / (2.0 * pi) * (dot3(a, load3(parent.u[3:])) - dot3(mat_t_vec(C, a), load3(child.u[3:])))
        first, second = load6(parent.u), load6(child.u)
        f, on_parent, on_child = scale3(weight, load3(at.Gc[k])), scale3(weight, load3(at.Gp[k, 3:])), scale3(weight, load3(at.Gc[k, 3:]))
        if is_plain(joint, k):
            one, two, three = turn_direction(first, second, joint, joint.row_direction[k], weight, y, C, Rp)
            spread_wrench(bars, index, joint, work.bodies, 1.0, one, two, three, first, second, f, on_parent, on_child)
        else:
            bars.K[:] = 0.0
            add_row(bars.K, joint, at, k, weight, y, C, Rp)
            pull_wrench(bars, index, joint, work.bodies, 1.0, first, second, f, on_parent, on_child)
    return rate


@kernel
def pull_direction_rate(model, work, bars, index, i, weight):
    """The rate along a free direction for the velocities ``u``, weighted."""
    joint = model.joints[index]
    parent, child = bars.bodies[joint.parent], bars.bodies[joint.child]
    y, C, Rp = joint_at_knot(work.bodies, joint)
    force, on_parent, on_child = direction_gradient(joint, i, y, C, Rp)
    add_to3(parent.du, -weight, force)
    add_to3(parent.du[3:], weight, on_parent)
    add_to3(child.du, weight, force)
    add_to3(child.du[3:], weight, on_child)
    bars.K[:] = 0.0
    add_direction(bars.K, joint, i, weight, y, C, Rp)
    pull_wrench(
        bars, index, joint, work.bodies, 1.0, load6(parent.u), load6(child.u), scale3(weight, force), scale3(weight, on_parent), scale3(weight, on_child),
    )


@kernel
def pull_own_numbers(bar, joint, at, k, weight, C):
    """Numbers of a row with an equation of its own: the distance that it keeps, the pitch of a screw."""
    if joint.row_direction[k] >= 0:
        return
    if joint.row_kind[k] == DISTANCE_ROW:
        bar.length -= weight
    elif joint.row_kind[k] == HELIX:
        bar.pitch -= weight / (2.0 * pi) * unwrap(turn_angle(frame_rotation(joint, C), 0), at.coordinate[0])


@kernel
def pull_target(bar, joint, at, k, weight, C):
    """The target of a driven row: where it points the row (``rows.aim``)."""
    i = joint.row_direction[k]
    if i < 0:
        return
    kind, axis = joint.free_kind[i], joint.free_axis[i]
    a, b = row_axes(joint, at, k)
    if kind == SLIDE:
        bar.target[i] -= weight
    elif kind == FIRST:
        _, kk = turned(load9(joint.frame_parent), axis, at.target[i] + 0.5 * pi, 1.0)
        bar.target[i] += weight * dot3(mat_vec(C, a), kk)
    elif kind == BALL:
        first = i - axis
        for c in range(3):
            total = 0.0
            for n in range(4):
                size = (1.0, -1.0, 2.0, -2.0)[n] * STEP
                share = (8.0, -8.0, -1.0, 1.0)[n] / (12.0 * STEP)
                phi = (
                    at.target[first] + (size if c == 0 else 0.0), at.target[first + 1] + (size if c == 1 else 0.0),
                    at.target[first + 2] + (size if c == 2 else 0.0),
                )
                child = mat_mul(load9(joint.frame_child), so3.exp_matrix(neg3(phi)))
                total += share * dot3(mat_vec(C, column(child, (axis + 1) % 3)), b)
            bar.target[first + c] += weight * total
    else:
        j, _ = turned(load9(joint.frame_child), axis, at.target[i] + 0.5 * pi, -1.0)
        bar.target[i] += weight * dot3(mat_vec(C, j), b)


@inline
def pull_servo(bar, joint, i, weight, target, coordinate, rate):
    """The servo's force, weighted, by its gains, its bound and its target. Returns its K and D."""
    force, K, D, by_target = servo(joint, i, target, coordinate, rate)
    if force == joint.servo_bound[i]:
        bar.servo_bound[i] += weight
    elif force == -joint.servo_bound[i]:
        bar.servo_bound[i] -= weight
    elif joint.servo_rate[i]:
        bar.servo_damping[i] += weight * (target - rate)
    else:
        bar.servo_stiffness[i] += weight * (target - coordinate)
        bar.servo_damping[i] -= weight * rate
    bar.target[i] += weight * by_target
    return K, D
