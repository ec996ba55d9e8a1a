"""Which contacts and limits take part in a step, what bounces, and what went too far.

What is far apart sleeps: its node is an identity, and the step is solved again with it if the solution would have closed it.
"""
from __future__ import annotations

from math import sqrt

from dalembert.contact.geometry import at_end, at_knot
from dalembert.contact.records import BALLS, CIRCLE_SUPPORT, EDGES, LINE, PLANE
from dalembert.formulations.contact.equations import limit_at_end, limit_at_knot
from dalembert.formulations.variational.equations import flow, residual
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import cross3, dot3, load3, load9, mat_vec, scale3, sub3

#: tilt (rad) below which a circle counts as flat
FLAT = 2e-3
#: impulses below this part of a contact's weight times 1 m/s do not count as touching
TOUCH = 1e-8


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
