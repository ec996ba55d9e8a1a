"""Which contacts and limits take part in a step, what bounces, and what was an impact.

What is far apart sleeps: its node is an identity, and the step is solved again with it if the solution would have closed
it. Velocities just before the knot are those of the work's momenta ``p`` and ``l``; the end pose is in ``xn`` and ``Rn``.
"""
from __future__ import annotations

from math import sqrt

from dalembert.contact.bearing import guess_bounds
from dalembert.contact.geometry import at_end, at_knot, at_knot_below, flies, put_end_gap, rounding
from dalembert.contact.nodes import flow, limit_at_end, limit_at_knot
from dalembert.contact.records import CIRCLE_SUPPORT, PLANE, TWIST
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import cross3, dot3, load3, load9, mat_vec, scale3

#: tilt (rad) below which a circle counts as flat
FLAT = 2e-3
#: depth (m) from which two shapes overlap at the end of a step
OVERLAP = 1e-8
#: impulses below this part of a contact's weight times 1 m/s do not count as touching
TOUCH = 1e-8
#: shares of a coefficient of friction count as no less than the root of this in a first guess
LEAST = 1e-6
#: how often a step is solved again with contacts that woke up or bounced, or bearings whose load was another
ROUNDS = 40


@inline
def velocity_before(model, work, i):
    """Linear (world) and angular (body) velocity of the momenta just before the knot."""
    body, fixed = work.bodies[i], model.bodies[i]
    return scale3(1.0 / fixed.mass, load3(body.p)), mat_vec(load9(fixed.inertia_inverse), load3(body.l))


@kernel
def approach(model, work, a, b, row_a, row_b):
    """Rate along a row just before the knot; the world does not move."""
    world = work.bodies.shape[0] - 1
    rate = 0.0
    if a != world:
        linear, angular = velocity_before(model, work, a)
        rate += flow(row_a, linear, angular)
    if b != world:
        linear, angular = velocity_before(model, work, b)
        rate += flow(row_b, linear, angular)
    return rate


@inline
def rate_along(work, a, b, row_a, row_b):
    """What ``v`` and ``w`` of the work are along a row: the rate in the interval, or what it still changes by up to the knot."""
    world = work.bodies.shape[0] - 1
    rate = 0.0
    if a != world:
        rate += flow(row_a, load3(work.bodies[a].v), load3(work.bodies[a].w))
    if b != world:
        rate += flow(row_b, load3(work.bodies[b].v), load3(work.bodies[b].w))
    return rate


@inline
def limit_approach(model, work, limit, side):
    """Rate at which an end of a limit opens just before the knot."""
    rate = approach(model, work, limit.a, limit.b, limit.Ga, limit.Gb)
    return rate if side == 0 else -rate


@inline
def end_gap(limit, side, c):
    """How far a coordinate is from one end of a limit."""
    return c - limit.end[0] if side == 0 else limit.end[1] - c


@inline
def is_level(contact, bodies):
    """True where the axis of a contact's feature is normal to its half-space at the knot."""
    n = mat_vec(load9(bodies[contact.b].R), load3(contact.normal))
    a = cross3(n, mat_vec(load9(bodies[contact.a].R), load3(contact.axis)))
    return dot3(a, a) < FLAT * FLAT


@inline
def lies_flat(contact, bodies):
    """True for a circle that lies flat at the knot: its support has no direction there, and points on its rim stand for it."""
    return contact.kind == PLANE and contact.support == CIRCLE_SUPPORT and is_level(contact, bodies)


@kernel
def prepare(model, work, scene, dt, h, speed):
    """Rows at the knot; wake what is near or comes near with the first guess, whose end pose is in place. Returns how many."""
    bodies = work.bodies
    count = 0
    near = 2.0 * speed * dt + 1e-9
    contacts = scene.contacts
    for i in range(contacts.shape[0]):
        contact = contacts[i]
        contact.awake = 0
        contact.bounced = 0
        contact.granted = 1.0
        contact.bound = 0.0
        if contact.used == 0:
            continue
        contact.used = 2 if lies_flat(contact, bodies) else 1
        if contact.used == 2 or flies(contact, bodies, near):
            continue
        at_knot(contact, scene, bodies)
        if contact.kind == TWIST:
            continue
        at_end(contact, scene, bodies)
        if contact.rim != 0 and not is_level(contact, bodies):
            continue  # its circle is lower
        if contact.gap < near or contact.gap0 < near:
            contact.awake = 1
            count += 1
    limits = scene.limits
    for i in range(limits.shape[0]):
        limit = limits[i]
        joint, at = model.joints[limit.joint], work.joints[limit.joint]
        limit_at_knot(limit, joint, at, bodies, scene.scratch)
        limit_at_end(limit, joint, at, bodies, scene.scratch)
        limit.cap = h * limit.friction
        limit.granted = 1.0
        if limit.cap > 0.0 or limit.bears != 0:
            count += 1
        for side in range(2):
            limit.awake[side] = 0
            limit.bounced[side] = 0
            limit.bound[side] = 0.0
            if end_gap(limit, side, limit.c) < 4.0 * near or end_gap(limit, side, limit.c0) < 4.0 * near:
                limit.awake[side] = 1
                count += 1
    return count


@kernel
def put_all_rows(scene, bodies):
    """Rows at the knot of what ``prepare`` found far away: for steps that leave the knot's pose before they wake anything."""
    for i in range(scene.contacts.shape[0]):
        if scene.contacts[i].used != 0 and scene.contacts[i].bare != 0:
            at_knot(scene.contacts[i], scene, bodies)


@kernel
def guess_impulses(work, scene, bodies, joints, h):
    """Impulses over a kick ``h`` (s) to start from, by the forces that lasted of the step before.

    ``bodies`` and ``joints``: records with the ``wrench`` of contacts on a body, and of ``friction``, ``limit`` and ``hold`` along
    directions. What the environment exerts on a body is shared alike by all its contacts there; contacts of two bodies
    start from nothing.
    """
    world = work.bodies.shape[0] - 1
    contacts, counts = scene.contacts, scene.counts
    for i in range(world):
        counts[i] = 0.0
    for i in range(contacts.shape[0]):
        if contacts[i].kind == TWIST:  # which begins anew with its contact's impulse
            contacts[i].awake = 0
        if contacts[i].awake != 0 and contacts[i].b == world:
            counts[contacts[i].a] += 1.0
    for i in range(contacts.shape[0]):
        contact = contacts[i]
        contact.gamma0 = 0.0
        contact.beta0[0] = 0.0
        contact.beta0[1] = 0.0
        if contact.awake != 0 and contact.b == world:
            wrench = bodies[contact.a].wrench
            share = h / counts[contact.a]
            for c in range(3):
                contact.gamma0 += share * wrench[c] * contact.Ga[0, c]
                contact.beta0[0] += share * wrench[c] * contact.Ga[1, c]
                contact.beta0[1] += share * wrench[c] * contact.Ga[2, c]
            if contact.grain_of != 0:  # rows are as long as their share of the coefficient
                for k in range(2):
                    contact.beta0[k] /= max(contact.share[k] * contact.share[k], LEAST)
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        force = h * joints[limit.joint].limit[limit.direction]
        limit.gamma0[0] = max(force, 0.0)
        limit.gamma0[1] = max(-force, 0.0)
        limit.beta0 = h * joints[limit.joint].friction[limit.direction]
        if limit.bears != 0:
            limit.full = h * joints[limit.joint].hold[limit.direction]
    guess_bounds(scene.limits)


@kernel
def forget_guesses(scene):
    """Start from no impulses: from those of the step before a solution was not found."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        contact.gamma0 = 0.0
        contact.beta0[0] = 0.0
        contact.beta0[1] = 0.0
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        limit.gamma0[:] = 0.0
        limit.beta0 = 0.0


@inline
def clear_impulse(contact):
    """No impulse yet of what just woke up."""
    contact.gamma = 0.0
    contact.beta[0] = 0.0
    contact.beta[1] = 0.0


@kernel
def wake(work, scene):
    """Wake what the solution would have closed; returns how many."""
    count = 0
    contacts = scene.contacts
    for i in range(contacts.shape[0]):
        contact = contacts[i]
        if contact.used != 0 and contact.awake == 0:
            put_end_gap(contact, scene, work.bodies)
            if contact.gap < (0.0 if contact.used == 1 else -OVERLAP - rounding(contact, load9(work.bodies[contact.a].Rn), load9(work.bodies[contact.b].Rn))):
                if contact.used == 2:  # a circle that lies flat, and tilts so much that points of its rim do not stand for it
                    at_knot_below(contact, work.bodies)
                    contact.used = 1
                elif contact.bare != 0:
                    at_knot(contact, scene, work.bodies)
                contact.awake = 1
                clear_impulse(contact)
                count += 1
    limits = scene.limits
    for i in range(limits.shape[0]):
        limit = limits[i]
        for side in range(2):
            if limit.awake[side] == 0 and end_gap(limit, side, limit.c) < 0.0:
                limit.awake[side] = 1
                count += 1
    return count


@kernel
def bounce(model, work, scene, dt, resting):
    """Newton's law for what closed in this step faster than ``resting`` (m/s): ask for -e times the approach velocity."""
    count = 0
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake == 0 or contact.bounced != 0 or contact.restitution == 0.0:
            continue
        if contact.gamma > TOUCH * contact.weight:
            rate = approach(model, work, contact.a, contact.b, contact.Ga[0], contact.Gb[0])
            if rate < -resting:
                contact.bounced = 1
                contact.bound = contact.gap0 / dt - contact.granted * contact.restitution * rate
                count += 1
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for side in range(2):
            if limit.awake[side] == 0 or limit.bounced[side] != 0 or limit.restitution == 0.0:
                continue
            if limit.gamma[side] > TOUCH * limit.weight:
                rate = limit_approach(model, work, limit, side)
                if rate < -resting:
                    limit.bounced[side] = 1
                    limit.bound[side] = end_gap(limit, side, limit.c0) / dt - limit.granted * limit.restitution * rate
                    count += 1
    return count


@inline
def is_impact(model, work, contact, resting):
    """True when a contact closed faster than ``resting`` (m/s) before the knot: its impulse is a blow, not a force that lasts."""
    return contact.stiffness == 0.0 and approach(model, work, contact.a, contact.b, contact.Ga[0], contact.Gb[0]) < -resting


@kernel
def strays(model, work, places, sizes, ahead, solved):
    """True when a body left the room for which the list of what is near was made, or (``ahead`` s) is about to leave it.

    ``places``: records whose ``place`` (8,) holds the pose at which the list was made and how far the body may go from
    there (m); ``sizes`` (n,) of the bodies (m). With ``solved`` the pose in question is the end of the step just solved.
    """
    for i in range(work.bodies.shape[0] - 1):
        body = work.bodies[i]
        place = places[i].place
        room = place[7]
        if room == 0.0:
            continue
        moved = 0.0
        turn = 0.0
        for c in range(3):
            d = (body.xn[c] if solved else body.x[c]) - place[c]
            moved += d * d
        for c in range(4):
            turn += (body.qn[c] if solved else body.q[c]) * place[3 + c]
        way = sqrt(moved) + sizes[i] * 3.2 * sqrt(max(0.0, 1.0 - turn * turn))
        if ahead > 0.0:
            linear, angular = velocity_before(model, work, i)
            way += ahead * (sqrt(dot3(linear, linear)) + sizes[i] * sqrt(dot3(angular, angular)))
        if way > room:
            return True
    return False
