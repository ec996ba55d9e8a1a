"""What is on its way to an impact when impact times are resolved: it does not touch in a step, which ends where it would.

A contact or an end of a limit flies while its gap is open, or opens after a start or an impact. Flights that end fast are events; those
that end more slowly than the resting speed are no impacts, and the step is solved again with them closed. A slide whose speed comes to zero
within the step, so that it sticks or turns back, is an event too.
"""
from __future__ import annotations

from dalembert.contact.events import approach, end_gap, limit_approach, rate_along
from dalembert.contact.geometry import at_end, at_knot
from dalembert.contact.records import MEAN
from dalembert.kernels import inline, kernel

#: gaps (m, rad) below this are closed
CLOSED = 1e-9
#: what opens faster than this part of the resting speed after an impact flies; speeds (m/s, rad/s) below the second are rounding
OPENS, STILL = 0.01, 1e-8
#: what slides more slowly than this part of what its normal impulse makes of its speed (m/s) creeps, as the products of its cone are not quite zero
CREEP = 2e-3
#: before a step that goes on from another one, what slides is faster than this part of what friction takes from it in the step: half of it, where it is constant
SLOW = 0.2
#: how steps go: without events, up to the next event, past events; not at all, as something strikes at their first knot; up to the next impact
OFF, UP_TO, PAST, STAY, SLIDE_ON = range(5)


@kernel
def let_fly(model, work, scene, starts, resting):
    """Put to sleep what flies at the knot, after ``prepare``. Returns how many are awake, -1 where something closed strikes.

    ``starts``: whether velocities are those just after a start or an impact.
    """
    count = 0
    fast = max(resting, STILL)
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.used != 1:
            continue
        if contact.gap0 > CLOSED:
            contact.awake = 0
            continue
        rate = approach(model, work, contact.a, contact.b, contact.Ga[0], contact.Gb[0])
        if rate < -fast:
            return -1
        contact.awake = 0 if starts and rate > max(OPENS * resting, STILL) else 1
        count += contact.awake
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for side in range(2):
            if end_gap(limit, side, limit.c0) > CLOSED:
                limit.awake[side] = 0
                continue
            rate = limit_approach(model, work, limit, side)
            if rate < -fast:
                return -1
            limit.awake[side] = 0 if starts and rate > max(OPENS * resting, STILL) else 1
            count += limit.awake[side]
        if limit.cap > 0.0 or limit.bears != 0:
            count += 1
    return count


@kernel
def meet(model, work, scene, carry, resting, events):
    """Wake what ends its flight slowly. Returns how many, or -1 where something ends it fast. In a step that goes ``PAST`` events all fly on.

    ``carry``: half the interval over the kick before it. So far velocities, which are means, still change up to the end as they did.
    """
    if events == PAST:
        for i in range(scene.contacts.shape[0]):
            if scene.contacts[i].used == 1 and scene.contacts[i].awake == 0:
                at_end(scene.contacts[i], scene, work.bodies)
        return 0
    count = 0
    fast = max(resting, STILL)
    met = False
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.used == 1 and contact.awake == 0:
            at_end(contact, scene, work.bodies)
            if contact.gap < 0.0:
                if contact.bare != 0:
                    at_knot(contact, scene, work.bodies)
                rate = rate_along(work, contact.a, contact.b, contact.Ha, contact.Hb)
                rate += carry * (rate - approach(model, work, contact.a, contact.b, contact.Ga[0], contact.Gb[0]))
                if rate < -fast:
                    met = True
                else:
                    contact.awake = 1
                    count += 1
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for side in range(2):
            gap = end_gap(limit, side, limit.c)
            if limit.awake[side] == 0 and gap < 0.0:
                rate = rate_along(work, limit.a, limit.b, limit.Ha, limit.Hb)
                rate += carry * (rate - approach(model, work, limit.a, limit.b, limit.Ga, limit.Gb))
                if (rate if side == 0 else -rate) < -fast:
                    met = True
                else:
                    limit.awake[side] = 1
                    count += 1
    return -1 if met else count


@inline
def ends_slide(before0, before1, eta0, eta1, carry, slow):
    """Whether a slide, faster than ``slow`` just before the knot, is at its end before the interval is: velocities go on as they do in ``meet``."""
    speed2 = before0 * before0 + before1 * before1
    return speed2 > slow * slow and (1.0 + carry) * (before0 * eta0 + before1 * eta1) < carry * speed2


@inline
def slowest(starts, push, drag):
    """Speed (m/s) above which something slides, with what its normal impulse and its friction make of speeds."""
    return STILL + CREEP * push + (0.0 if starts else SLOW * drag)


@inline
def contact_slide(model, work, contact, starts):
    """Sliding velocity of a contact just before the knot, by its rows, and the least one (m/s) at which it slides."""
    before0 = approach(model, work, contact.a, contact.b, contact.Ga[1], contact.Gb[1])
    before1 = approach(model, work, contact.a, contact.b, contact.Ga[2], contact.Gb[2])
    push = contact.gamma / contact.weight
    return before0, before1, slowest(starts, push, contact.friction * push)


@inline
def rubs(limit):
    """Whether a direction has dry friction of its own: bearings of several directions share theirs."""
    return limit.cap > 0.0 and (limit.bears == 0 or limit.share == 1)


@kernel
def next_slide_end(model, work, scene, carry, starts, first):
    """The first of the nodes from ``first`` on, contacts and then limits, whose slide ends in the step just solved, or -1.

    ``carry`` as in ``meet``, ``starts`` as in ``let_fly``.
    """
    count = scene.contacts.shape[0]
    for i in range(first, count):
        contact = scene.contacts[i]
        if contact.awake != 0 and contact.friction > 0.0:
            before0, before1, slow = contact_slide(model, work, contact, starts)
            after0, after1 = contact.eta[0], contact.eta[1]
            if contact.look == MEAN:
                after0, after1 = 2.0 * after0 - before0, 2.0 * after1 - before1
            if ends_slide(before0, before1, after0, after1, carry, slow):
                return i
    for i in range(max(first - count, 0), scene.limits.shape[0]):
        limit = scene.limits[i]
        if rubs(limit):
            before = limit_approach(model, work, limit, 0)
            if ends_slide(before, 0.0, limit.eta, 0.0, carry, slowest(starts, 0.0, limit.cap / limit.weight)):
                return count + i
    return -1
