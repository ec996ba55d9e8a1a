"""Kernels of a variational step with contacts, limits and dry friction: a primal-dual interior point method.

The equations of ``variational_step`` with the impulses of the contacts at the knot added, together with the
complementarity of every contact and limit at the end of the step (Variational eq. 29, Appendix D). Contacts are nodes of
the mechanism's graph: leaves when they touch the environment. What is far apart sleeps: its node is an identity, and
the step is solved again with it if the solution would have closed it.
"""
from __future__ import annotations

from math import isfinite, sqrt

from dalembert.contact.geometry import at_end, at_knot
from dalembert.contact.limits import (
    coordinate_at,
    coordinate_gradient,
    limit_direction,
    limit_matrix,
    limit_move,
    limit_products,
    limit_products_after,
    limit_residual,
    limit_step,
    open_limit,
)
from dalembert.contact.narrow import find_features
from dalembert.contact.node import (
    complementarity,
    node_direction,
    node_matrix,
    node_move,
    node_residual,
    node_step,
    open_contact,
    products_after,
    sliding_bound,
)
from dalembert.contact.records import BALLS, CIRCLE_SUPPORT, EDGES, LINE, PLANE
from dalembert.formulations.maximal.knot import apply_inputs, evaluate_knot, put6, set_targets
from dalembert.formulations.variational_step import (
    COMPLIANCES,
    NOT_CONVERGED,
    SINGULAR,
    SOLVED,
    TOO_FAST,
    accept,
    accept_spins,
    clear_impulses,
    first_guess,
    flow,
    jacobian,
    load_vector,
    momentum_derivative,
    move,
    record,
    residual,
    rotate_gradient,
    rounding_floor,
    spins_too_fast,
    subtract_impulse,
    write_forces,
)
from dalembert.kernel import inline, kernel
from dalembert.linalg import clear, factor, solve
from dalembert.mechanism.rows import relative
from dalembert.spatial.tuples import add3, cross3, dot3, load3, load9, mat_vec, neg3, scale3, store3, sub3

# Outcomes beyond those of a step without contacts.
LOST, LOG_FULL = 10, 11
#: what the complementarity products are aimed at in the end (m^2/s^2): AIM, or SOFT times the square of the largest impulse
#: over its weight. A node's pivot is then never below SOFT, which keeps rounding out of the impulses. One number for all
#: contacts, since where impulses are not unique their shares would follow the ratios.
AIM, SOFT = 1e-12, 3e-9
#: a step is solved when every product is below this many times the aim
SHARP = 5.0
#: part of the way to the boundary of the cones that a step may go
BOUNDARY = 0.99
#: a predictor that gets no further than this is not corrected
SHORT = 0.2
#: once the products (m^2/s^2) are below LATE, they are shrunk alike, if a step gets at least LONG that way: making them
#: equal would move impulses that are not unique, by far more than is left to the boundary.
LATE, LONG = 1e-6, 0.7
#: tilt (rad) below which a circle counts as flat
FLAT = 2e-3
#: impulses below this part of a contact's weight times 1 m/s do not count as touching
TOUCH = 1e-8
#: gaps are known to this part of the bodies' distance from the origin
ROUNDING = 4e-13
#: a step that cannot be solved as sharply as usual is tried so many times less sharply, before it is split
BLUNT = (1.0, 100.0, 1e4)
#: how often a step is solved again with contacts that woke up or bounced
ROUNDS = 12


@inline
def rate_after(row, body, dt):
    """Rate along a row just after the knot, of the momenta there: by it friction takes out what Coulomb's law says."""
    if body.mass == 0.0:
        return 0.0
    w = load3(body.w)
    Jw = mat_vec(load9(body.inertia), w)
    l = scale3(0.5 * dt, add3(scale3(body.s, Jw), cross3(w, Jw)))
    return flow(row, load3(body.v), mat_vec(load9(body.inertia_inverse), l))


@inline
def rate_row(row, body, D):
    """The torque part of a row as a gradient of ``rate_after`` by omega; D = ``momentum_derivative``."""
    g = mat_vec(load9(body.inertia_inverse), (row[3], row[4], row[5]))
    return (g[0] * D[0] + g[1] * D[3] + g[2] * D[6], g[0] * D[1] + g[1] * D[4] + g[2] * D[7], g[0] * D[2] + g[1] * D[5] + g[2] * D[8])


@inline
def turn_row(row, body, dt):
    """The torque part of a row at the end of the step as a gradient by omega, over dt; the world does not move."""
    if body.s == 0.0:
        return (0.0, 0.0, 0.0)
    return rotate_gradient((row[3], row[4], row[5]), load3(body.w), body.s, dt)


@kernel
def limit_at_end(limit, joint, bodies, scratch):
    """Coordinate of a limited direction at the end of the step and its gradient."""
    parent = bodies[limit.a]
    child = bodies[limit.b]
    Rp = load9(parent.Rn)
    y, C = relative(joint, load3(parent.xn), Rp, load3(child.xn), load9(child.Rn))
    limit.c = coordinate_at(joint, limit.direction, y, C, scratch)
    force, on_parent, on_child = coordinate_gradient(joint, limit.direction, y, C, Rp, scratch)
    put6(limit.Ha, neg3(force), on_parent)
    put6(limit.Hb, force, on_child)


@kernel
def limit_at_knot(limit, joint, bodies, scratch):
    """Coordinate of a limited direction at the knot and its row."""
    parent = bodies[limit.a]
    child = bodies[limit.b]
    Rp = load9(parent.R)
    y, C = relative(joint, load3(parent.x), Rp, load3(child.x), load9(child.R))
    limit.c0 = coordinate_at(joint, limit.direction, y, C, scratch)
    force, on_parent, on_child = coordinate_gradient(joint, limit.direction, y, C, Rp, scratch)
    put6(limit.Ga, neg3(force), on_parent)
    put6(limit.Gb, force, on_child)


@inline
def limit_rate(limit, side, dt, noise):
    """Gap of one end of a limit at the end of the step over dt, less its bound (see ``gap_rate``)."""
    gap = limit.c - limit.end[0] if side == 0 else limit.end[1] - limit.c
    rate = gap / dt - limit.bound[side]
    return limit.s[side] if abs(rate - limit.s[side]) <= noise else rate


@inline
def gap_rate(contact, dt, noise):
    """Gap at the end of the step over dt, less its bound; the slack itself once the two agree to rounding.

    A slack may be far smaller than the rounding of a gap: differences of that size would only shuffle impulses about.
    """
    rate = contact.gap / dt - contact.bound
    return contact.s if abs(rate - contact.s) <= noise else rate


@kernel
def contact_residual(records, scene, dt, h, scratch):
    """All equations at the iterate but complementarity. Returns (size in m/s, False when the iterate is of no use)."""
    bodies, joints, couplings = records.bodies, records.joints, records.couplings
    size, fine = residual(records, dt, h)
    if not fine:
        return 0.0, False
    world = bodies.shape[0] - 1
    size = 0.0
    for i in range(joints.shape[0]):
        for k in range(joints[i].rows):
            size = max(size, abs(joints[i].r[k]))
    for i in range(couplings.shape[0]):
        size = max(size, abs(couplings[i].r))
    contacts = scene.contacts
    for i in range(contacts.shape[0]):
        contact = contacts[i]
        if contact.awake == 0:
            continue
        at_end(contact, scene, bodies)
        a = bodies[contact.a]
        b = bodies[contact.b]
        for k in range(3):
            impulse = contact.gamma if k == 0 else contact.beta[k - 1]
            subtract_impulse(a.r, contact.Ga[k], impulse)
            subtract_impulse(b.r, contact.Gb[k], impulse)
        for k in range(2):
            contact.eta[k] = rate_after(contact.Ga[k + 1], a, dt) + rate_after(contact.Gb[k + 1], b, dt)
        # eta bends with omega, which a step along a line does not see: the cone may be left by so much
        contact.psi = max(contact.psi, (1.0 + 1e-12) * sliding_bound(contact))
        size = max(size, abs(contact.gap / dt - contact.bound - contact.s))
    limits = scene.limits
    for i in range(limits.shape[0]):
        limit = limits[i]
        limit_at_end(limit, joints[limit.joint], bodies, scratch)
        a = bodies[limit.a]
        b = bodies[limit.b]
        limit.eta = rate_after(limit.Ga, a, dt) + rate_after(limit.Gb, b, dt)
        limit.psi = max(limit.psi, (1.0 + 1e-12) * abs(limit.eta))
        impulse = 0.0
        for side in range(2):
            if limit.awake[side] != 0:
                impulse += limit.gamma[side] if side == 0 else -limit.gamma[side]
                size = max(size, abs(limit_rate(limit, side, dt, 0.0) - limit.s[side]))
        if limit.cap > 0.0:
            impulse += limit.beta
        subtract_impulse(a.r, limit.Ga, impulse)
        subtract_impulse(b.r, limit.Gb, impulse)
    for i in range(world):
        body = bodies[i]
        r = body.r
        linear = max(abs(r[0]), max(abs(r[1]), abs(r[2]))) / body.mass
        angular = max(abs(r[3]), max(abs(r[4]), abs(r[5]))) / (body.mass * body.length)
        if not isfinite(linear + angular):
            return 0.0, False
        size = max(size, max(linear, angular))
    if not isfinite(size):
        return 0.0, False
    return size, True


@inline
def put_weighted(block, k, weight, row, torque):
    for c in range(3):
        block[k, c] = weight * row[c]
        block[k, 3 + c] = weight * torque[c]


@kernel
def identity_node(blocks, diagonal, there_a, back_a, there_b, back_b):
    """Make a node say nothing: its unknowns stay as they are."""
    D = blocks[diagonal].M
    for r in range(3):
        for c in range(3):
            D[r, c] = 0.0
        D[r, r] = 1.0
    for index in (there_a, there_b):
        if index >= 0:
            for r in range(3):
                for c in range(6):
                    blocks[index].M[r, c] = 0.0
    for index in (back_a, back_b):
        if index >= 0:
            for r in range(6):
                for c in range(3):
                    blocks[index].M[r, c] = 0.0


@inline
def contact_side(blocks, there, back, G, H, K, T, body, dt, w0, w00, w01, w11):
    """Blocks between a contact and one of its bodies; K and T get the angular parts of the rows."""
    row = blocks[there].M
    column = blocks[back].M
    D = momentum_derivative(body, dt)
    store3(K, turn_row(H, body, dt))
    store3(T[0], rate_row(G[1], body, D))
    store3(T[1], rate_row(G[2], body, D))
    put_weighted(row, 0, w0, H, K)
    for c in range(3):
        row[1, c] = w00 * G[1, c] + w01 * G[2, c]
        row[2, c] = w01 * G[1, c] + w11 * G[2, c]
        row[1, 3 + c] = w00 * T[0, c] + w01 * T[1, c]
        row[2, 3 + c] = w01 * T[0, c] + w11 * T[1, c]
    for c in range(6):
        column[c, 0] = -G[0, c]
        column[c, 1] = -G[1, c]
        column[c, 2] = -G[2, c]


@inline
def limit_side(blocks, there, back, G, H, K, T, body, dt, w0, w1, w2):
    """Blocks between a limit and one of its bodies."""
    row = blocks[there].M
    column = blocks[back].M
    store3(K, turn_row(H, body, dt))
    store3(T, rate_row(G, body, momentum_derivative(body, dt)))
    put_weighted(row, 0, w0, H, K)
    put_weighted(row, 1, w1, H, K)
    put_weighted(row, 2, w2, G, T)
    for c in range(6):
        column[c, 0] = -G[c]
        column[c, 1] = G[c]
        column[c, 2] = -G[c]


@kernel
def contact_jacobian(records, scene, blocks, dt):
    """Write the blocks of all contacts and limits at the iterate."""
    bodies = records.bodies
    contacts = scene.contacts
    for i in range(contacts.shape[0]):
        c = contacts[i]
        if c.awake == 0:
            identity_node(blocks, c.diagonal, c.block_na, c.block_an, c.block_nb, c.block_bn)
            continue
        w0, w00, w01, w11 = node_matrix(c, blocks[c.diagonal].M, c.friction > 0.0)
        for side in range(2):
            if side == 0 and c.block_na >= 0:
                contact_side(blocks, c.block_na, c.block_an, c.Ga, c.Ha, c.Ka, c.Ta, bodies[c.a], dt, w0, w00, w01, w11)
            if side == 1 and c.block_nb >= 0:
                contact_side(blocks, c.block_nb, c.block_bn, c.Gb, c.Hb, c.Kb, c.Tb, bodies[c.b], dt, w0, w00, w01, w11)
    limits = scene.limits
    for i in range(limits.shape[0]):
        l = limits[i]
        w0, w1, w2 = limit_matrix(l, blocks[l.diagonal].M)
        if l.block_na >= 0:
            limit_side(blocks, l.block_na, l.block_an, l.Ga, l.Ha, l.Ka, l.Ta, bodies[l.a], dt, w0, w1, w2)
        limit_side(blocks, l.block_nb, l.block_bn, l.Gb, l.Hb, l.Kb, l.Tb, bodies[l.b], dt, w0, w1, w2)


@kernel
def load_contacts(scene, vector, dt, kappa, second, noise):
    """Residuals of the contacts' rows for products ``kappa`` into the solver's vector."""
    contacts = scene.contacts
    for i in range(contacts.shape[0]):
        contact = contacts[i]
        v = vector[contact.node].v
        if contact.awake == 0:
            v[0] = 0.0
            v[1] = 0.0
            v[2] = 0.0
            continue
        v[0], v[1], v[2] = node_residual(contact, kappa, second, gap_rate(contact, dt, noise))
    limits = scene.limits
    for i in range(limits.shape[0]):
        limit = limits[i]
        v = vector[limit.node].v
        v[0], v[1], v[2] = limit_residual(limit, kappa, second, limit_rate(limit, 0, dt, noise), limit_rate(limit, 1, dt, noise))


@inline
def row_change(row, torque, d):
    """Minus a row times a body's direction."""
    return -(row[0] * d[0] + row[1] * d[1] + row[2] * d[2] + torque[0] * d[3] + torque[1] * d[4] + torque[2] * d[5])


@kernel
def directions(records, scene, vector, dt, kappa, second, fraction, noise):
    """Directions of all slacks and impulses from the solution. Returns the step that keeps ``fraction`` of the way inside."""
    bodies = records.bodies
    world = bodies.shape[0] - 1
    step = 1.0 / fraction
    contacts = scene.contacts
    for i in range(contacts.shape[0]):
        contact = contacts[i]
        if contact.awake == 0:
            continue
        change = 0.0
        eta0 = 0.0
        eta1 = 0.0
        if contact.a != world:
            d = vector[bodies[contact.a].node].v
            change += row_change(contact.Ha, contact.Ka, d)
            eta0 += row_change(contact.Ga[1], contact.Ta[0], d)
            eta1 += row_change(contact.Ga[2], contact.Ta[1], d)
        if contact.b != world:
            d = vector[bodies[contact.b].node].v
            change += row_change(contact.Hb, contact.Kb, d)
            eta0 += row_change(contact.Gb[1], contact.Tb[0], d)
            eta1 += row_change(contact.Gb[2], contact.Tb[1], d)
        v = vector[contact.node].v
        node_direction(contact, kappa, second, gap_rate(contact, dt, noise), change, -v[0], -v[1], -v[2], eta0, eta1)
        step = node_step(contact, step)
    limits = scene.limits
    for i in range(limits.shape[0]):
        limit = limits[i]
        d = vector[bodies[limit.b].node].v
        change = row_change(limit.Hb, limit.Kb, d)
        eta0 = row_change(limit.Gb, limit.Tb, d)
        if limit.a != world:
            d = vector[bodies[limit.a].node].v
            change += row_change(limit.Ha, limit.Ka, d)
            eta0 += row_change(limit.Ga, limit.Ta, d)
        v = vector[limit.node].v
        limit_direction(limit, kappa, second, limit_rate(limit, 0, dt, noise), limit_rate(limit, 1, dt, noise), change, -v[0], -v[1], -v[2], eta0)
        step = limit_step(limit, step)
    return min(1.0, fraction * step)


@kernel
def products(scene, blunt):
    """Complementarity products of everything awake, in m^2/s^2: their mean, the largest, their number, and what to aim at.

    ``blunt``: how many times less sharp than usual the aim is.
    """
    top = 0.0
    total = 0.0
    count = 0
    worst = 0.0
    for i in range(scene.contacts.shape[0]):
        if scene.contacts[i].awake != 0:
            a, b, c = complementarity(scene.contacts[i])
            top = max(top, scene.contacts[i].gamma / scene.contacts[i].weight)
            total += a
            count += b
            worst = max(worst, c)
    for i in range(scene.limits.shape[0]):
        a, b, c = limit_products(scene.limits[i])
        top = max(top, max(scene.limits[i].gamma[0], scene.limits[i].gamma[1]) / scene.limits[i].weight)
        total += a
        count += b
        worst = max(worst, c)
    return total / max(count, 1), worst, count, blunt * max(AIM, SOFT * top * top)


@kernel
def mean_after(scene, step, count):
    """Mean product after a step along the direction."""
    total = 0.0
    for i in range(scene.contacts.shape[0]):
        if scene.contacts[i].awake != 0:
            total += products_after(scene.contacts[i], step)
    for i in range(scene.limits.shape[0]):
        total += limit_products_after(scene.limits[i], step)
    return total / count


@kernel
def open_all(records, scene, dt, speed):
    """A start inside all cones: by ``speed`` (m/s), or by as much as the fastest thing would go too far."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            speed = max(speed, contact.bound - contact.gap / dt)
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for side in range(2):
            if limit.awake[side] != 0:
                speed = max(speed, -limit_rate(limit, side, dt, 0.0))
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            open_contact(contact, speed, contact.gap / dt - contact.bound)
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for side in range(2):
            limit.s[side] = limit_rate(limit, side, dt, 0.0)
        open_limit(limit, speed)


@kernel
def interior_point(records, scene, blocks, schedule, vector, dt, h, compliance, tolerance, max_iterations, speed, blunt, scratch):
    """Solve the step's equations and complementarity. Returns (outcome, iterations, residual)."""
    size, fine = contact_residual(records, scene, dt, h, scratch)
    if not fine:
        first_guess(records, 0)
        size, fine = contact_residual(records, scene, dt, h, scratch)
        if not fine:
            return NOT_CONVERGED, 0, size
    open_all(records, scene, dt, speed)
    size, fine = contact_residual(records, scene, dt, h, scratch)
    reach = 1.0
    for i in range(records.bodies.shape[0] - 1):
        for c in range(3):
            reach = max(reach, abs(records.bodies[i].x[c]))
    tolerance = max(tolerance, ROUNDING * reach / dt)
    noise = 0.02 * tolerance
    iterations = 0
    while True:
        mean, worst, count, goal = products(scene, blunt)
        if size <= tolerance and worst <= SHARP * goal:
            return SOLVED, iterations, size
        if iterations == max_iterations:
            return NOT_CONVERGED, iterations, size
        iterations += 1
        clear(blocks, schedule)
        jacobian(records, blocks, dt, h, compliance)
        contact_jacobian(records, scene, blocks, dt)
        if factor(blocks, schedule) >= 0:
            return SINGULAR, iterations, size
        pull = compliance if iterations == 2 else 0.0
        late = count > 0 and max(mean, size) < LATE
        kappa = -goal if late else 0.0
        load_vector(records, vector, pull)
        load_contacts(scene, vector, dt, kappa, False, noise)
        solve(blocks, schedule, vector)
        step = 1.0
        if count > 0:
            step = directions(records, scene, vector, dt, kappa, False, BOUNDARY, noise)
            if not late or step < LONG:
                ratio = max(mean_after(scene, step, count), 0.0) / mean
                kappa = max(ratio * ratio * ratio * mean, goal)
                # After a short step the second-order terms say nothing: centre first.
                second = step > SHORT
                if step <= SHORT:
                    kappa = max(kappa, 0.5 * mean)
                load_vector(records, vector, pull)
                load_contacts(scene, vector, dt, kappa, second, noise)
                solve(blocks, schedule, vector)
                step = directions(records, scene, vector, dt, kappa, second, BOUNDARY, noise)
        done = 0.0
        while True:
            move_all_by(records, scene, vector, step, done)
            done = step
            new, fine = contact_residual(records, scene, dt, h, scratch)
            if fine and (new <= 2.0 * size or new <= 10.0 * tolerance or new <= 0.1 * speed):
                break
            step *= 0.5
            if step < 1e-5:
                break
        if step < 1e-5:
            if size < max(rounding_floor(records, dt), tolerance) and worst <= SHARP * goal:
                return SOLVED, iterations, size
            return NOT_CONVERGED, iterations, size
        size = new


@inline
def move_all_by(records, scene, vector, step, done):
    """Go from ``done`` to ``step`` along the direction. ``vector`` holds minus the bodies' direction, the nodes their own."""
    move(records, vector, step - done)
    for i in range(scene.contacts.shape[0]):
        if scene.contacts[i].awake != 0:
            node_move(scene.contacts[i], step - done)
    for i in range(scene.limits.shape[0]):
        limit_move(scene.limits[i], step - done)


@kernel
def end_pose(records, dt, h):
    """Pose that the iterate leads to; False when it leads nowhere."""
    _, fine = residual(records, dt, h)
    return fine


@kernel
def approach(row_a, row_b, a, b):
    """Rate along a row just before the knot, from the left limits of the momenta; the world does not move."""
    rate = 0.0
    if a.mass > 0.0:
        rate += flow(row_a, scale3(1.0 / a.mass, load3(a.p)), mat_vec(load9(a.inertia_inverse), load3(a.l)))
    if b.mass > 0.0:
        rate += flow(row_b, scale3(1.0 / b.mass, load3(b.p)), mat_vec(load9(b.inertia_inverse), load3(b.l)))
    return rate


@inline
def lies_flat(contact, bodies):
    """True for a circle that lies flat at the knot: its support has no direction there, and points on its rim stand for it."""
    if contact.kind != PLANE or contact.support != CIRCLE_SUPPORT:
        return False
    n = mat_vec(load9(bodies[contact.b].R), load3(contact.normal))
    a = cross3(n, mat_vec(load9(bodies[contact.a].R), load3(contact.axis)))
    return dot3(a, a) < FLAT * FLAT


@kernel
def prepare(records, scene, dt, h, speed, scratch):
    """Rows at the knot; wake what is near or comes near with the first guess of the velocities."""
    bodies, joints = records.bodies, records.joints
    contacts = scene.contacts
    end_pose(records, dt, h)
    near = 2.0 * speed * dt + 1e-9
    for i in range(contacts.shape[0]):
        contact = contacts[i]
        contact.awake = 0
        contact.bounced = 0
        contact.bound = 0.0
        if contact.used == 0:
            continue
        contact.used = 2 if lies_flat(contact, bodies) else 1
        if contact.used == 2:
            continue
        at_knot(contact, scene, bodies)
        at_end(contact, scene, bodies)
        if contact.gap < near or contact.gap0 < near:
            contact.awake = 1
        else:
            contact.gamma = 0.0
            contact.gamma1 = 0.0
            contact.beta[0] = 0.0
            contact.beta[1] = 0.0
            contact.beta1[0] = 0.0
            contact.beta1[1] = 0.0
    limits = scene.limits
    for i in range(limits.shape[0]):
        limit = limits[i]
        limit_at_knot(limit, joints[limit.joint], bodies, scratch)
        limit_at_end(limit, joints[limit.joint], bodies, scratch)
        limit.cap = h * limit.friction
        for side in range(2):
            limit.awake[side] = 0
            limit.bounced[side] = 0
            limit.bound[side] = 0.0
            gap0 = limit.c0 - limit.end[0] if side == 0 else limit.end[1] - limit.c0
            gap = limit.c - limit.end[0] if side == 0 else limit.end[1] - limit.c
            if gap < 4.0 * near or gap0 < 4.0 * near:
                limit.awake[side] = 1
            else:
                limit.gamma[side] = 0.0
                limit.gamma1[side] = 0.0


@kernel
def wake(records, scene, dt):
    """Wake what the solution would have closed; returns how many."""
    count = 0
    contacts = scene.contacts
    for i in range(contacts.shape[0]):
        contact = contacts[i]
        if contact.used == 1 and contact.awake == 0:
            at_end(contact, scene, records.bodies)
            if contact.gap < 0.0:
                contact.awake = 1
                count += 1
    limits = scene.limits
    for i in range(limits.shape[0]):
        limit = limits[i]
        for side in range(2):
            gap = limit.c - limit.end[0] if side == 0 else limit.end[1] - limit.c
            if limit.awake[side] == 0 and gap < 0.0:
                limit.awake[side] = 1
                count += 1
    return count


@kernel
def bounce(records, scene, dt, resting):
    """Newton's law for what closed in this step faster than ``resting`` (m/s): ask for -e times the approach velocity."""
    bodies = records.bodies
    count = 0
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake == 0 or contact.bounced != 0 or contact.restitution == 0.0:
            continue
        if contact.gamma > TOUCH * contact.weight:
            rate = approach(contact.Ga[0], contact.Gb[0], bodies[contact.a], bodies[contact.b])
            if rate < -resting:
                contact.bounced = 1
                contact.bound = contact.gap0 / dt - contact.restitution * rate
                count += 1
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for side in range(2):
            if limit.awake[side] == 0 or limit.bounced[side] != 0 or limit.restitution == 0.0:
                continue
            if limit.gamma[side] > TOUCH * limit.weight:
                rate = approach(limit.Ga, limit.Gb, bodies[limit.a], bodies[limit.b])
                gap0 = limit.c0 - limit.end[0]
                if side == 1:
                    rate = -rate
                    gap0 = limit.end[1] - limit.c0
                if rate < -resting:
                    limit.bounced[side] = 1
                    limit.bound[side] = gap0 / dt - limit.restitution * rate
                    count += 1
    return count


@kernel
def tunnels(records, scene):
    """True when a body went so far past a feature of another within the step that the feature no longer stands for it."""
    bodies = records.bodies
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.used != 1 or contact.reach <= 0.0:
            continue
        a = bodies[contact.a]
        b = bodies[contact.b]
        n0 = load3(contact.n0)
        moved = sub3(sub3(load3(a.xn), load3(a.x)), sub3(load3(b.xn), load3(b.x)))
        if -dot3(moved, n0) > contact.gap0 + contact.reach and contact.gap0 > -contact.reach:
            return True
        turns = contact.kind == BALLS or contact.kind == LINE or contact.kind == EDGES
        if turns and contact.awake != 0 and dot3(n0, load3(contact.n)) < 0.3:
            return True
    return False


@kernel
def remember(scene):
    """Keep the impulses to start the next step from."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            contact.gamma1 = contact.gamma
            contact.beta1[0] = contact.beta[0]
            contact.beta1[1] = contact.beta[1]
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for side in range(2):
            limit.gamma1[side] = limit.gamma[side] if limit.awake[side] != 0 else 0.0
        limit.beta1 = limit.beta


@kernel
def contact_step(records, scene, blocks, schedule, vector, places, targets, clock, dt, compliance, tolerance, max_iterations, resting, scratch):
    """One interval of length ``dt`` with contacts, to the ``targets`` at its end; the state and the clock change only if it is solved."""
    evaluate_knot(records)
    bodies, gravity = records.bodies, records.gravity
    set_targets(records, targets)
    find_features(bodies, scene.contacts, scene.shapes)
    before = clock[0]
    h = 0.5 * (before + dt)
    history = clock[1] if before == dt else 0.0
    order = clock[2] if history >= 3.0 else (1.0 if history == 2.0 else 0.0)
    speed = max(h * sqrt(gravity[0] * gravity[0] + gravity[1] * gravity[1] + gravity[2] * gravity[2]), 1e-3)
    first_guess(records, 0)
    prepare(records, scene, dt, h, speed, scratch)
    _, _, count, _ = products(scene, 1.0)
    outcome, iterations, size = NOT_CONVERGED, 0, 0.0
    for attempt in range(len(BLUNT) + len(COMPLIANCES) - 1):
        if attempt >= len(BLUNT) and compliance == 0.0:
            break
        blunt = BLUNT[attempt] if attempt < len(BLUNT) else BLUNT[0]
        softness = COMPLIANCES[attempt - len(BLUNT) + 1] if attempt >= len(BLUNT) else COMPLIANCES[0]
        for _ in range(ROUNDS):
            first_guess(records, order if count == 0 else 0)
            clear_impulses(records)
            outcome, spent, size = interior_point(
                records, scene, blocks, schedule, vector, dt, h, softness * compliance, tolerance, max_iterations, speed, blunt, scratch
            )
            iterations += spent
            if outcome != SOLVED:
                break
            woken = wake(records, scene, dt)
            if woken + bounce(records, scene, dt, resting) == 0:
                break
            count += woken
            outcome = NOT_CONVERGED
        if outcome == SOLVED or (count == 0 and compliance == 0.0):
            break
    if outcome == SOLVED:
        if spins_too_fast(records, dt) or tunnels(records, scene):
            return TOO_FAST, iterations, size
        if strays(bodies, places, 0.0, True):
            return LOST, iterations, size
        accept_spins(records, dt)
        better = accept(records, dt)
        clock[2] = better if history >= 3.0 else 1.0
        remember(scene)
        clock[0] = dt
        clock[1] = history + 1.0
    return outcome, iterations, size


@kernel
def note(records, scene, wrench, push, after, dt, kick):
    """Forces of contacts and limits at the knot: on bodies (n, 6), along joint directions (joints, 6); momenta just after it."""
    bodies = records.bodies
    world = bodies.shape[0] - 1
    wrench[:] = 0.0
    push[:] = 0.0
    for i in range(world):
        body = bodies[i]
        v = load3(body.v1)
        w = load3(body.w1)
        Jw = mat_vec(load9(body.inertia), w)
        s = sqrt(4.0 / (dt * dt) - dot3(w, w))
        put6(after[i], scale3(body.mass, v), scale3(0.5 * dt, add3(scale3(s, Jw), cross3(w, Jw))))
        # the share of smooth forces that belongs to the interval after (the discrete Legendre transform)
        for c in range(6):
            after[i, c] -= 0.5 * dt * body.load[c]
    joints = records.joints
    for i in range(joints.shape[0]):
        joint = joints[i]
        for k in range(joint.rows):
            share = 0.5 * dt * kick * joint.mu[k]
            for c in range(6):
                if joint.parent != world:
                    after[joint.parent, c] -= share * joint.Gp[k, c]
                after[joint.child, c] -= share * joint.Gc[k, c]
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            for k in range(3):
                force = kick * (contact.gamma if k == 0 else contact.beta[k - 1])
                for c in range(6):
                    if contact.a != world:
                        wrench[contact.a, c] += force * contact.Ga[k, c]
                    if contact.b != world:
                        wrench[contact.b, c] += force * contact.Gb[k, c]
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        force = 0.0
        if limit.awake[0] != 0:
            force += limit.gamma[0]
        if limit.awake[1] != 0:
            force -= limit.gamma[1]
        if limit.cap > 0.0:
            force += limit.beta
        push[limit.joint, limit.direction] += kick * force


@kernel
def write_log(scene, log, used, knot, kick):
    """Write the contacts of a step into the log; returns its new length."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake == 0:
            continue
        entry = log[used]
        used += 1
        entry.knot = knot
        entry.owner = contact.owner
        entry.part = contact.part
        entry.a = contact.a
        entry.b = contact.b
        entry.gap = contact.gap
        entry.normal_force = kick * contact.gamma
        for c in range(3):
            entry.point[c] = contact.p0[c]
            entry.normal[c] = contact.n0[c]
            entry.friction_force[c] = kick * (contact.beta[0] * contact.Ga[1, c] + contact.beta[1] * contact.Ga[2, c])
    return used


@kernel
def strays(bodies, places, ahead, solved):
    """True when a body left the room for which the list of near pairs was made, or (``ahead`` s) is about to leave it.

    ``places`` (n, 9): the pose at which the list was made, how far the body may go from there (m) and its size (m).
    With ``solved`` the pose in question is the end of the step just solved.
    """
    for i in range(bodies.shape[0] - 1):
        body = bodies[i]
        place = places[i]
        room = place[7]
        if room == 0.0:
            continue
        moved = 0.0
        speed = 0.0
        turn = 0.0
        for c in range(3):
            d = (body.xn[c] if solved else body.x[c]) - place[c]
            moved += d * d
            speed += body.v1[c] * body.v1[c]
        for c in range(4):
            turn += (body.qn[c] if solved else body.q[c]) * place[3 + c]
        way = sqrt(moved) + place[8] * 3.2 * sqrt(max(0.0, 1.0 - turn * turn))
        way += ahead * (sqrt(speed) + place[8] * sqrt(dot3(load3(body.w1), load3(body.w1))))
        if way > room:
            return True
    return False


@kernel
def run_contact_steps(records, scene, blocks, schedule, vector, places, clock, base_load, recording, tape, log, used, inputs, first, count, dt, compliance, tolerance, max_iterations, resting, scratch):
    """``count`` steps from knot ``first`` of the recording. ``used``: length of the log so far.

    Returns (outcome, steps done, residual of the last try, length of the log).
    """
    size = 0.0
    set_targets(records, inputs.target[0])
    for index in range(count):
        knot = first + index
        before = clock[0]
        if strays(records.bodies, places, dt, False):
            return LOST, index, size, used
        if used + scene.contacts.shape[0] > log.shape[0]:
            return LOG_FULL, index, size, used
        apply_inputs(records, base_load, inputs, index)
        outcome, iterations, size = contact_step(
            records, scene, blocks, schedule, vector, places, inputs.target[index + 1], clock, dt, compliance, tolerance, max_iterations,
            resting, scratch,
        )
        if outcome != SOLVED:
            return outcome, index, size, used
        kick = 2.0 / (before + dt)
        used = write_log(scene, log, used, knot + 1, kick)
        write_forces(records, before, dt, recording.row_force[knot], recording.coupling_force[knot])
        note(records, scene, tape.wrench[knot], tape.push[knot], tape.after[knot], dt, kick)
        recording.substeps[knot + 1] = 1
        recording.iterations[knot + 1] = iterations
        record(records, recording, knot + 1, dt)
    return SOLVED, count, size, used
