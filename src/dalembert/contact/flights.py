"""What is on its way to an impact when impact times are resolved: it does not touch in a step, which ends where it would.

A contact or an end of a limit flies while its gap is open, or opens after a start or an impact. Flights that end fast are events; those
that end more slowly than the resting speed are no impacts, and the step is solved again with them closed.
"""
from __future__ import annotations

from dalembert.contact.events import approach, end_gap, limit_approach, rate_along
from dalembert.contact.geometry import at_end
from dalembert.kernels import kernel

#: gaps (m, rad) below this are closed
CLOSED = 1e-9
#: what opens faster than this part of the resting speed after an impact flies; speeds (m/s, rad/s) below the second are rounding
OPENS, STILL = 0.01, 1e-8
#: how steps go: without events, up to the next event, past events; not at all, as something strikes at their first knot
OFF, UP_TO, PAST, STAY = range(4)


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
