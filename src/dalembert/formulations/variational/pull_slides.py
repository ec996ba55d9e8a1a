"""The adjoint of sliding velocities in the middle of an interval (``slides``): by poses, velocities on both sides of the knot, features and inertias."""
from __future__ import annotations

from math import sqrt

from dalembert.contact.cone import node_matrix
from dalembert.contact.geometry import measure
from dalembert.contact.records import IN_MIDDLE
from dalembert.formulations.maximal.pull_geometry import pull_frame, pull_friction_axes
from dalembert.formulations.maximal.pull_joints import add_to3
from dalembert.formulations.maximal.pull_knot import add_outer
from dalembert.formulations.maximal.touch_bars import AFTER, BEFORE
from dalembert.formulations.variational.slides import carried, middle
from dalembert.kernels import inline, kernel
from dalembert.spatial import so3
from dalembert.spatial.tuples import add3, cross3, dot3, load3, load9, mat_t_vec, mat_vec, neg3, scale3, sub3


@inline
def pull_carried(t, n, bar):
    """Bars of a tangent and of the normal that it was carried to (``carried``), from that of the result."""
    over = dot3(t, n)
    across = sub3(t, scale3(over, n))
    size2, rest2 = dot3(t, t), dot3(across, across)
    ratio = sqrt(size2 / rest2)
    along = dot3(across, bar)
    across_bar = scale3(ratio, sub3(bar, scale3(along / rest2, across)))
    up = dot3(n, across_bar)
    t_bar = add3(sub3(across_bar, scale3(up, n)), scale3(ratio * along / size2, t))
    return t_bar, neg3(add3(scale3(over, across_bar), scale3(up, t)))


@kernel
def pull_side(interval, bars, touch, i, d, arm, R):
    """Of one body: the rate d . (v + W x arm), by its momenta, inertia and both poses. Returns the bar of the arm, and of R in its own axes.

    With z = J^-1 R'^T (arm x d), y = R'^T L and w = J^-1 y: d . (W x arm) = z . y, W = R' w.
    """
    fixed, bar = interval.model.bodies[i], bars.bodies[i]
    add_to3(touch.dvelocity[AFTER, i], 1.0, d)
    J, inverse, R0 = load9(fixed.inertia), load9(fixed.inertia_inverse), load9(interval.work.bodies[i].R)
    spin = load3(touch.velocity[AFTER, i, 3:])
    m = mat_vec(J, spin)
    y = mat_t_vec(R, mat_vec(R0, m))
    w = mat_vec(inverse, y)
    g = mat_t_vec(R, cross3(arm, d))
    z = mat_vec(inverse, g)
    q = mat_t_vec(R0, mat_vec(R, z))  # bar of the momentum l, in the axes of the knot
    add_to3(touch.dvelocity[AFTER, i, 3:], 1.0, mat_vec(J, q))
    add_outer(bar.inertia, 1.0, q, spin)
    add_outer(bar.inertia, -1.0, z, w)
    add_to3(touch.rows_bar[i].phi, 1.0, cross3(m, q))
    return cross3(d, mat_vec(R, w)), add3(cross3(w, g), cross3(z, y))


@inline
def pull_middle(interval, touch, i, own):
    """Bars of the foreseen pose of a body, by the pose at the knot and the velocities before it."""
    dt = interval.dt
    turn = scale3(0.5 * dt, load3(touch.velocity[BEFORE, i, 3:]))
    x_bar, phi_bar = load3(own.x), load3(own.phi)
    add_to3(touch.rows_bar[i].x, 1.0, x_bar)
    add_to3(touch.rows_bar[i].phi, 1.0, mat_vec(so3.exp_matrix(turn), phi_bar))
    add_to3(touch.dvelocity[BEFORE, i], 0.5 * dt, x_bar)
    add_to3(touch.dvelocity[BEFORE, i, 3:], 0.5 * dt, mat_t_vec(so3.right_jacobian(turn), phi_bar))


@kernel
def pull_slide(interval, scene, contact, own, bars, touch):
    """Adds F^T b of the sliding velocity of a contact."""
    model, work = interval.model, interval.work
    world = model.bodies.shape[0] - 1
    _, w00, w01, w11 = node_matrix(contact, bars.K, contact.friction > 0.0)
    first, second = w00 * own.b[1] + w01 * own.b[2], w01 * own.b[1] + w11 * own.b[2]
    a, b = contact.a, contact.b
    xa, Ra = middle(model, work, a, interval.dt)
    xb, Rb = middle(model, work, b, interval.dt)
    _, n, p = measure(contact, scene, xa, Ra, xb, Rb)
    t0, u0 = load3(contact.Ga[1]), load3(contact.Ga[2])
    t, u = carried(t0, n), carried(u0, n)
    d = add3(scale3(first, t), scale3(second, u))
    V = (0.0, 0.0, 0.0)
    p_bar = (0.0, 0.0, 0.0)
    for side in range(2):
        i = a if side == 0 else b
        bar = touch.middle[side]
        for c in range(3):
            bar.x[c] = 0.0
            bar.phi[c] = 0.0
        if i == world:
            continue
        x, R = (xa, Ra) if side == 0 else (xb, Rb)
        sign = 1.0 if side == 0 else -1.0
        arm = sub3(p, x)
        rate = middle_velocity(interval, touch, i, arm, R)
        V = add3(V, scale3(sign, rate))
        arm_bar, turned = pull_side(interval, bars, touch, i, scale3(sign, d), arm, R)
        p_bar = add3(p_bar, arm_bar)
        add_to3(bar.x, -1.0, arm_bar)
        add_to3(bar.phi, 1.0, turned)
    t0_bar, by_t = pull_carried(t0, n, scale3(first, V))
    u0_bar, by_u = pull_carried(u0, n, scale3(second, V))
    pull_frame(contact, own, scene, touch.geometries, xa, Ra, xb, Rb, n, add3(by_t, by_u), p_bar, touch.middle[0], touch.middle[1])
    for side in range(2):
        i = a if side == 0 else b
        if i != world:
            pull_middle(interval, touch, i, touch.middle[side])
    A, B = touch.rows_at[a], touch.rows_at[b]
    xa, Ra, xb, Rb, n = load3(A.x), load9(A.R), load3(B.x), load9(B.R), load3(contact.n0)
    bar_a, bar_b = touch.rows_bar[a], touch.rows_bar[b]
    n_bar = pull_friction_axes(contact, own, n, t0_bar, u0_bar, Ra, Rb, bar_a, bar_b)
    pull_frame(contact, own, scene, touch.geometries, xa, Ra, xb, Rb, n, n_bar, (0.0, 0.0, 0.0), bar_a, bar_b)


@inline
def middle_velocity(interval, touch, i, arm, R):
    """Velocity in the middle of the point of a body at ``arm``: v + W x arm."""
    fixed = interval.model.bodies[i]
    momentum = mat_vec(load9(interval.work.bodies[i].R), mat_vec(load9(fixed.inertia), load3(touch.velocity[AFTER, i, 3:])))
    W = mat_vec(R, mat_vec(load9(fixed.inertia_inverse), mat_t_vec(R, momentum)))
    return add3(load3(touch.velocity[AFTER, i]), cross3(W, arm))


@kernel
def pull_slides(interval, scene, bars, touch):
    """Adds F^T b of all sliding velocities in the middle of the interval, with the weights in ``b`` of the nodes."""
    for k in range(scene.contacts.shape[0]):
        contact = scene.contacts[k]
        if contact.awake != 0 and contact.look == IN_MIDDLE:
            pull_slide(interval, scene, contact, touch.contacts[k], bars, touch)
