"""The adjoint of contacts, limits and dry friction: the eliminated rows of their nodes, transposed, node by node.

A node's rows hold its complementarity products fixed (``contact.cone``, ``contact.limits``): with kappa and the set of what is awake as
they were, their derivative is the node's own matrix. Weights ``b`` of the rows give bars of the gap at the end, of the sliding
velocity, of the impulses and of the laws; the rows along which impulses act are taken at one pose, whose bars are ``rows_bar``.
"""
from __future__ import annotations

from math import sqrt

from dalembert.contact.cone import node_matrix
from dalembert.contact.limits import limit_matrix
from dalembert.contact.records import AFTER_KNOT, MEAN
from dalembert.formulations.maximal.bars import Bars
from dalembert.formulations.maximal.pull_geometry import pull_frame, pull_friction_axes, pull_gap
from dalembert.formulations.maximal.pull_joints import add_to3, load6, pull_at_end, pull_at_knot, pull_wrench
from dalembert.formulations.maximal.pull_pairs import fold_pairs
from dalembert.formulations.maximal.touch_bars import AFTER, BEFORE, FALL
from dalembert.kernels import inline, kernel
from dalembert.model.frames import frame_rotation
from dalembert.model.hessians import add_direction
from dalembert.model.pose import joint_at_knot
from dalembert.model.records import BALL
from dalembert.model.rows import direction_gradient
from dalembert.spatial import so3
from dalembert.spatial.tuples import add3, cross3, dot3, load3, load9, mat_t_vec, mat_vec, neg3, scale3, sub3


@inline
def dot6(a, b):
    """Product of two rows of six."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] + a[4] * b[4] + a[5] * b[5]


@inline
def add_to6(target, scale, row):
    """target += scale row."""
    for c in range(6):
        target[c] += scale * row[c]


@kernel
def pull_rows(contact, own, scene, touch, drag0, drag1):
    """The rows of a contact, weighed with ``touch.field``: sum of row_k . field_k over both bodies, by poses and features.

    ``drag0``, ``drag1``: bars of the sliding velocities, of which the belt's are taken off.
    """
    A, B = touch.rows_at[contact.a], touch.rows_at[contact.b]
    xa, Ra, xb, Rb = load3(A.x), load9(A.R), load3(B.x), load9(B.R)
    bar_a, bar_b = touch.rows_bar[contact.a], touch.rows_bar[contact.b]
    n, p = load3(contact.n0), load3(contact.p0)
    arm_a, arm_b = sub3(p, xa), sub3(p, xb)
    p_bar = (0.0, 0.0, 0.0)
    n_bar = (0.0, 0.0, 0.0)
    t_bar = (0.0, 0.0, 0.0)
    u_bar = (0.0, 0.0, 0.0)
    for k in range(3):
        d = load3(contact.Ga[k])
        za, zb = load3(touch.field[0, k, 3:]), load3(touch.field[1, k, 3:])
        Wa, Wb = mat_vec(Ra, za), mat_vec(Rb, zb)
        V = add3(load3(touch.field[0, k]), cross3(Wa, arm_a))
        V = sub3(V, add3(load3(touch.field[1, k]), cross3(Wb, arm_b)))
        on_a, on_b = cross3(d, Wa), cross3(d, Wb)
        p_bar = add3(p_bar, sub3(on_a, on_b))
        add_to3(bar_a.x, -1.0, on_a)
        add_to3(bar_b.x, 1.0, on_b)
        add_to3(bar_a.phi, 1.0, cross3(za, mat_t_vec(Ra, cross3(arm_a, d))))
        add_to3(bar_b.phi, -1.0, cross3(zb, mat_t_vec(Rb, cross3(arm_b, d))))
        if k == 0:
            n_bar = V
        elif k == 1:
            t_bar = V
        else:
            u_bar = V
    belt = load3(contact.belt)
    t_bar, u_bar = sub3(t_bar, scale3(drag0, belt)), sub3(u_bar, scale3(drag1, belt))
    n_bar = add3(n_bar, pull_friction_axes(contact, own, n, t_bar, u_bar, Ra, Rb, bar_a, bar_b))
    pull_frame(contact, own, scene, touch.geometries, xa, Ra, xb, Rb, n, n_bar, p_bar, bar_a, bar_b)


@inline
def rises(bounced, bound):
    """Whether a bound that restitution asked for still has a slope."""
    return bounced == 1 or (bounced == 2 and bound > 0.0)


@kernel
def pull_contact(contact, own, scene, bodies, bars, touch, dt):
    """Adds F^T b of a contact's rows, and of its impulses in the bodies' equations."""
    a, b, field = contact.a, contact.b, touch.field
    S = bars.K
    b0, b1, b2 = own.b[0], own.b[1], own.b[2]
    w0, w00, w01, w11 = node_matrix(contact, S, contact.friction > 0.0)
    ba, bb = load6(bars.bodies[a].b), load6(bars.bodies[b].b)
    own.gamma += S[0, 0] * b0 + S[1, 0] * b1 + S[2, 0] * b2
    for k in range(2):
        own.beta[k] += S[1, 1 + k] * b1 + S[2, 1 + k] * b2
    if contact.friction > 0.0:
        own.friction += contact.gamma / contact.friction * (S[1, 0] * b1 + S[2, 0] * b2)
    else:  # from the positive side: a small coefficient drags against the sliding velocity
        slide = sqrt(contact.eta[0] ** 2 + contact.eta[1] ** 2)
        if slide > 0.0:
            own.friction += contact.gamma * (contact.eta[0] * b1 + contact.eta[1] * b2) / slide
    # the gap at the end
    weight = w0 * b0 / dt
    for side in range(2):
        bar = bars.bodies[a if side == 0 else b]
        H = contact.Ha if side == 0 else contact.Hb
        add_to3(bar.xn, weight, load3(H))
        add_to3(bar.phin, weight, load3(H[3:]))
    pull_gap(contact, own, scene.shapes, touch.geometries, weight, load3(contact.n), load3(bodies[a].xn), load9(bodies[a].Rn), load3(bodies[b].xn), load9(bodies[b].Rn))
    # impulses in the bodies' equations, the sliding velocity by the rows of the knot: just after it, or half of it and half before
    eta = (0.0, w00 * b1 + w01 * b2, w01 * b1 + w11 * b2)
    after = 1.0 if contact.look == AFTER_KNOT else 0.5 if contact.look == MEAN else 0.0
    before = 0.5 if contact.look == MEAN else 0.0
    for k in range(3):
        impulse = contact.gamma if k == 0 else contact.beta[k - 1]
        taken = dot6(contact.Ga[k], ba) + dot6(contact.Gb[k], bb)
        if k == 0:
            own.gamma -= taken
        else:
            own.beta[k - 1] -= taken
            add_to3(own.belt, -eta[k], load3(contact.Ga[k]))
        for c in range(6):
            field[0, k, c] = eta[k] * (after * touch.velocity[AFTER, a, c] + before * touch.velocity[BEFORE, a, c]) - impulse * ba[c]
            field[1, k, c] = eta[k] * (after * touch.velocity[AFTER, b, c] + before * touch.velocity[BEFORE, b, c]) - impulse * bb[c]
        add_to6(touch.dvelocity[AFTER, a], after * eta[k], contact.Ga[k])
        add_to6(touch.dvelocity[AFTER, b], after * eta[k], contact.Gb[k])
        add_to6(touch.dvelocity[BEFORE, a], before * eta[k], contact.Ga[k])
        add_to6(touch.dvelocity[BEFORE, b], before * eta[k], contact.Gb[k])
    if rises(contact.bounced, contact.bound):
        bound = -w0 * b0
        rate = dot6(contact.Ga[0], touch.velocity[BEFORE, a]) + dot6(contact.Gb[0], touch.velocity[BEFORE, b])
        own.restitution -= contact.granted * bound * rate
        bounce = -contact.granted * contact.restitution * bound
        for side in range(2):
            body = a if side == 0 else b
            G = contact.Ga[0] if side == 0 else contact.Gb[0]
            add_to3(touch.rows_bar[body].x, bound / dt, load3(G))
            add_to3(touch.rows_bar[body].phi, bound / dt, load3(G[3:]))
            add_to6(field[side, 0], bounce, touch.velocity[BEFORE, body])
            add_to6(touch.dvelocity[BEFORE, body], bounce, G)
            if contact.bounced == 2:
                add_to6(field[side, 0], bound, touch.velocity[FALL, body])
                add_to6(touch.dvelocity[FALL, body], bound, G)
        at_a, at_b = touch.rows_at[a], touch.rows_at[b]
        pull_gap(contact, own, scene.shapes, touch.geometries, bound / dt, load3(contact.n0), load3(at_a.x), load9(at_a.R), load3(at_b.x), load9(at_b.R))
    pull_rows(contact, own, scene, touch, eta[1], eta[2])


@kernel
def pull_contact_force(contact, own, scene, touch, kick, push):
    """Forces of a contact on its bodies, ``kick`` times its impulses, with bars ``push`` (n + 1, 6)."""
    a, b, field = contact.a, contact.b, touch.field
    for k in range(3):
        impulse = contact.gamma if k == 0 else contact.beta[k - 1]
        taken = kick * (dot6(contact.Ga[k], push[a]) + dot6(contact.Gb[k], push[b]))
        if k == 0:
            own.gamma += taken
        else:
            own.beta[k - 1] += taken
        for c in range(6):
            field[0, k, c] = kick * impulse * push[a, c]
            field[1, k, c] = kick * impulse * push[b, c]
    pull_rows(contact, own, scene, touch, 0.0, 0.0)


@inline
def turning_rate(phi, along, axis, speeds):
    """How a component of J_l^-1(phi) times ``speeds`` changes with phi."""
    M = so3.left_jacobian_inverse_derivative(phi, along)
    return M[3 * axis] * speeds[0] + M[3 * axis + 1] * speeds[1] + M[3 * axis + 2] * speeds[2]


@kernel
def pull_limit_row(limit, joint, bars, touch):
    """The row of a limited direction, weighed with ``touch.field[:, 0]``, by poses and the joint's geometry."""
    rows_at = touch.rows_at
    first, second = load6(touch.field[0, 0]), load6(touch.field[1, 0])
    y, C, Rp = joint_at_knot(rows_at, joint)
    at_rows = Bars(
        touch.rows_bar, bars.joints, bars.couplings, bars.points, bars.loads, bars.gravity, bars.K, bars.pair, bars.idle, bars.trial,
    )
    bars.K[:] = 0.0
    f = (0.0, 0.0, 0.0)
    T_parent = (0.0, 0.0, 0.0)
    T_child = (0.0, 0.0, 0.0)
    ball = joint.free_kind[limit.direction] == BALL and limit.bears == 0  # bearings rub against the rate itself
    top = limit.direction - joint.free_axis[limit.direction] if ball else limit.direction
    axis = joint.free_axis[limit.direction]
    phi = (0.0, 0.0, 0.0)
    J = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    if ball:
        phi = so3.log_matrix(frame_rotation(joint, C))
        J = so3.right_jacobian_inverse(neg3(phi))
    speeds = (0.0, 0.0, 0.0)
    for k in range(3 if ball else 1):
        weight = 1.0
        if ball:
            weight = J[3 * axis + k]
        force, on_parent, on_child = direction_gradient(joint, top + k, y, C, Rp)
        rate = dot3(force, sub3(load3(second), load3(first))) + dot3(on_parent, load3(first[3:])) + dot3(on_child, load3(second[3:]))
        speeds = (speeds[0] + (rate if k == 0 else 0.0), speeds[1] + (rate if k == 1 else 0.0), speeds[2] + (rate if k == 2 else 0.0))
        add_direction(bars.K, joint, top + k, weight, y, C, Rp)
        f = add3(f, scale3(weight, force))
        T_parent = add3(T_parent, scale3(weight, on_parent))
        T_child = add3(T_child, scale3(weight, on_child))
    pull_wrench(at_rows, limit.joint, joint, rows_at, 1.0, first, second, f, T_parent, T_child)
    if ball:  # J turns with the rotation vector
        slope = (
            turning_rate(phi, (1.0, 0.0, 0.0), axis, speeds), turning_rate(phi, (0.0, 1.0, 0.0), axis, speeds),
            turning_rate(phi, (0.0, 0.0, 1.0), axis, speeds),
        )
        turned = mat_t_vec(J, slope)
        for k in range(3):
            force, on_parent, on_child = direction_gradient(joint, top + k, y, C, Rp)
            pull_at_knot(at_rows, limit.joint, joint, rows_at, turned[k], force, on_parent, on_child)


@kernel
def pull_limit(limit, own, joint, bodies, bars, touch, dt, h):
    """Adds F^T b of a limit's rows, and of its impulses in the bodies' equations. ``h``: the time over which friction acts."""
    a, b, field = limit.a, limit.b, touch.field
    S = bars.K
    b0, b1, b2 = own.b[0], own.b[1], own.b[2]
    w0, w1, w2 = limit_matrix(limit, S)
    own.gamma[0] += S[0, 0] * b0
    own.gamma[1] += S[1, 1] * b1
    own.beta += S[2, 2] * b2
    if limit.cap > 0.0:
        by_cap = b2 * (limit.eta - limit.beta / limit.cap * limit.psi) / (limit.cap + limit.weight * limit.psi)
        own.friction += h * by_cap
        own.cap += by_cap
    elif limit.bears != 0:  # with the sign that ``pull_bearings`` gives the bound
        own.cap += b2 * (1.0 if limit.eta >= 0.0 else -1.0)
    elif limit.eta != 0.0:
        own.friction += h * b2 * (1.0 if limit.eta > 0.0 else -1.0)
    # the coordinate at the end
    weight = (w0 * b0 + w1 * b1) / dt
    own.end[0] -= w0 * b0 / dt
    own.end[1] -= w1 * b1 / dt
    pull_at_end(bars, limit.joint, joint, bodies, weight, load3(limit.Hb), load3(limit.Ha[3:]), load3(limit.Hb[3:]))
    # impulses, the rate that friction sees
    ba, bb = load6(bars.bodies[a].b), load6(bars.bodies[b].b)
    taken = dot6(limit.Ga, ba) + dot6(limit.Gb, bb)
    own.gamma[0] -= taken
    own.gamma[1] += taken
    own.beta -= taken
    impulse = limit.beta if limit.cap > 0.0 else 0.0
    if limit.awake[0] != 0:
        impulse += limit.gamma[0]
    if limit.awake[1] != 0:
        impulse -= limit.gamma[1]
    eta = w2 * b2
    for c in range(6):
        field[0, 0, c] = eta * touch.velocity[AFTER, a, c] - impulse * ba[c]
        field[1, 0, c] = eta * touch.velocity[AFTER, b, c] - impulse * bb[c]
    add_to6(touch.dvelocity[AFTER, a], eta, limit.Ga)
    add_to6(touch.dvelocity[AFTER, b], eta, limit.Gb)
    for end in range(2):
        if not rises(limit.bounced[end], limit.bound[end]) or limit.awake[end] == 0:
            continue
        sign = 1.0 if end == 0 else -1.0
        bound = -w0 * b0 if end == 0 else w1 * b1
        rate = sign * (dot6(limit.Ga, touch.velocity[BEFORE, a]) + dot6(limit.Gb, touch.velocity[BEFORE, b]))
        own.restitution -= limit.granted * bound * rate
        bounce = -sign * limit.granted * limit.restitution * bound
        own.end[end] -= sign * bound / dt
        at_rows = Bars(
            touch.rows_bar, bars.joints, bars.couplings, bars.points, bars.loads, bars.gravity, bars.K, bars.pair, bars.idle, bars.trial,
        )
        pull_at_knot(
            at_rows, limit.joint, joint, touch.rows_at, sign * bound / dt, load3(limit.Gb), load3(limit.Ga[3:]), load3(limit.Gb[3:]),
        )
        for side in range(2):
            body = a if side == 0 else b
            G = limit.Ga if side == 0 else limit.Gb
            add_to6(field[side, 0], bounce, touch.velocity[BEFORE, body])
            add_to6(touch.dvelocity[BEFORE, body], bounce, G)
            if limit.bounced[end] == 2:
                add_to6(field[side, 0], sign * bound, touch.velocity[FALL, body])
                add_to6(touch.dvelocity[FALL, body], sign * bound, G)
    pull_limit_row(limit, joint, bars, touch)


@kernel
def pull_nodes(scene, model, bodies, bars, touch, dt, h):
    """Adds F^T b of all nodes that are awake, with the weights in ``b`` of nodes and bodies."""
    for i in range(scene.contacts.shape[0]):
        if scene.contacts[i].awake != 0:
            pull_contact(scene.contacts[i], touch.contacts[i], scene, bodies, bars, touch, dt)
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        pull_limit(limit, touch.limits[i], model.joints[limit.joint], bodies, bars, touch, dt, h)
    fold_pairs(scene, touch)  # pass by pass: where impulses are not unique, weights of single contacts are far larger than their sum


@kernel
def load_nodes(scene, work, touch):
    """Bars of the nodes' impulses into the solver's vector. Returns the largest."""
    size = 0.0
    for i in range(scene.contacts.shape[0]):
        v, own = work.vector[scene.contacts[i].node].v, touch.contacts[i]
        awake = scene.contacts[i].awake != 0
        v[0] = own.gamma if awake else 0.0
        v[1] = own.beta[0] if awake else 0.0
        v[2] = own.beta[1] if awake else 0.0
        size = max(size, max(abs(v[0]), max(abs(v[1]), abs(v[2]))))
    for i in range(scene.limits.shape[0]):
        v, own = work.vector[scene.limits[i].node].v, touch.limits[i]
        v[0], v[1], v[2] = own.gamma[0], own.gamma[1], own.beta
        size = max(size, max(abs(v[0]), max(abs(v[1]), abs(v[2]))))
    return size


@kernel
def clear_node_weights(touch):
    """No weights of the nodes' rows."""
    for i in range(touch.contacts.shape[0]):
        for k in range(3):
            touch.contacts[i].b[k] = 0.0
    for i in range(touch.limits.shape[0]):
        for k in range(3):
            touch.limits[i].b[k] = 0.0


@kernel
def add_node_weights(scene, work, touch):
    """Subtract the solver's vector from the weights of the nodes' rows, and leave nothing of it."""
    for i in range(scene.contacts.shape[0]):
        v = work.vector[scene.contacts[i].node].v
        for k in range(3):
            touch.contacts[i].b[k] -= v[k]
            v[k] = 0.0
    for i in range(scene.limits.shape[0]):
        v = work.vector[scene.limits[i].node].v
        for k in range(3):
            touch.limits[i].b[k] -= v[k]
            v[k] = 0.0


@kernel
def clear_touch(touch):
    """Bars of one step: nothing yet; those of numbers go on."""
    for i in range(touch.contacts.shape[0]):
        own = touch.contacts[i]
        own.gamma = own.beta[0] = own.beta[1] = 0.0
    for i in range(touch.limits.shape[0]):
        own = touch.limits[i]
        own.gamma[0] = own.gamma[1] = own.beta = own.cap = 0.0
    touch.dvelocity[:] = 0.0
