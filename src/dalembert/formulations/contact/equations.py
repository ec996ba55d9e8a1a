"""Kernels of a variational step with contacts, limits and dry friction: residual, Jacobian and directions.

The equations of the step without contacts with the impulses of the contacts at the knot added, together with the
complementarity of every contact and limit at the end of the step (Variational eq. 29, Appendix D). Contacts are nodes of
the mechanism's graph: leaves when they touch the environment.
"""
from __future__ import annotations

from math import isfinite

from dalembert.contact.geometry import at_end
from dalembert.contact.limits import (
    coordinate_at,
    coordinate_gradient,
    limit_direction,
    limit_matrix,
    limit_residual,
    limit_step,
)
from dalembert.contact.node import (
    node_direction,
    node_matrix,
    node_residual,
    node_step,
    sliding_bound,
)
from dalembert.formulations.maximal.knot import put6
from dalembert.formulations.variational.equations import (
    flow,
    momentum_derivative,
    residual,
    rotate_gradient,
    subtract_impulse,
)
from dalembert.kernels import inline, kernel
from dalembert.model.rows import relative
from dalembert.spatial.tuples import add3, cross3, load3, load9, mat_vec, neg3, scale3, store3


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
