"""Forces of contacts, limits and dry friction at a knot, by the impulses of the step that they are read from: backwards and forwards.

Impulses act over ``1 / kick`` seconds. Of a step in which something hits, forces are those that lasted of the step before (``contact.forces``), and
that step's own impulses do not matter.
"""
from __future__ import annotations

from math import inf

from dalembert.contact.events import is_impact, limit_approach
from dalembert.contact.forces import add_force, something_hits
from dalembert.contact.nodes import limit_impulse
from dalembert.formulations.contact_stages import BY_ONE, BY_TWO
from dalembert.formulations.maximal.pull_contacts import pull_contact_force
from dalembert.formulations.maximal.touch_bars import BEFORE
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import load3, load9, mat_vec, scale3, store3


@kernel
def put_momenta(model, work, touch):
    """Momenta just before the knot, by which impacts are known."""
    for i in range(model.bodies.shape[0] - 1):
        body, fixed = work.bodies[i], model.bodies[i]
        store3(body.p, scale3(fixed.mass, load3(touch.velocity[BEFORE, i])))
        store3(body.l, mat_vec(load9(fixed.inertia), load3(touch.velocity[BEFORE, i, 3:])))


@inline
def resting_at(rows_at, resting):
    """Speed from which what closes in a stage is an impact: in steps of the method itself nothing is."""
    return inf if rows_at in (BY_ONE, BY_TWO) else resting


@kernel
def pull_forces_at_knot(model, work, scene, touch, kick, push, along, resting):
    """Forces of all nodes as they are read at a knot, with bars ``push`` (n + 1, 6) on bodies and ``along`` (joints, 6) directions.

    ``resting``: with a speed (m/s) only those that last, without what closes faster, pressed or not; with infinity all. Where something hits,
    they are those of the step before, and this one's do not matter.
    """
    hit = something_hits(model, work, scene, resting)
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0 and not hit and not is_impact(model, work, contact, resting):
            pull_contact_force(contact, touch.contacts[i], scene, touch, kick, push)
    for i in range(scene.limits.shape[0]):
        limit, own = scene.limits[i], touch.limits[i]
        bar = kick * along[limit.joint, limit.direction]
        for side in range(2):
            if limit.awake[side] != 0 and not hit and not limit_approach(model, work, limit, side) < -resting:
                own.gamma[side] += bar if side == 0 else -bar
        if limit.cap > 0.0:
            own.beta += bar


@kernel
def find_blows(model, work, scene, resting, contacts, limits):
    """Which contacts (contacts,) and ends of limits (limits, 2) closed faster than ``resting`` (m/s): no forces that last. Where something hits, all."""
    hit = something_hits(model, work, scene, resting)
    for i in range(scene.contacts.shape[0]):
        contacts[i] = scene.contacts[i].awake != 0 and (hit or is_impact(model, work, scene.contacts[i], resting))
    for i in range(scene.limits.shape[0]):
        for side in range(2):
            limits[i, side] = hit or limit_approach(model, work, scene.limits[i], side) < -resting


@kernel
def lasting_forces(scene, blows, ends, kick, wrench, along):
    """What lasts of the forces of all nodes (see ``keep_forces``), with blows as they were: on bodies (n, 6) and along directions (joints, 6)."""
    for i in range(scene.contacts.shape[0]):
        if scene.contacts[i].awake != 0 and not blows[i]:
            add_force(wrench, wrench.shape[0], scene.contacts[i], kick)
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        force = limit_impulse(limit)[1]
        for side in range(2):
            if limit.awake[side] != 0 and not ends[i, side]:
                force += limit.gamma[side] if side == 0 else -limit.gamma[side]
        along[limit.joint, limit.direction] += kick * force
