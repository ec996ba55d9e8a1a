"""What contacts, limits and dry friction exert in a step just solved: into the state after it, onto the tape, into the log.

Impulses act over ``1 / kick`` seconds: of a variational step the kick at its first knot, of an implicit stage its gamma.
"""
from __future__ import annotations

from dalembert.contact.events import TOUCH, is_impact, limit_approach
from dalembert.contact.nodes import limit_impulse
from dalembert.contact.records import TWIST
from dalembert.kernels import inline, kernel


@inline
def keep_places(state, after):
    """The list of what is near is still the same."""
    for i in range(state.bodies.shape[0]):
        for c in range(8):
            after.bodies[i].place[c] = state.bodies[i].place[c]


@inline
def add_force(wrench, world, contact, kick):
    """Add the mean force of a contact over the kick, to both bodies' wrenches."""
    for k in range(3):
        force = kick * (contact.gamma if k == 0 else contact.beta[k - 1])
        for c in range(6):
            if contact.a != world:
                wrench[contact.a, c] += force * contact.Ga[k, c]
            if contact.b != world:
                wrench[contact.b, c] += force * contact.Gb[k, c]


@kernel
def something_hits(model, work, scene, resting):
    """True when something closed faster than ``resting`` (m/s) before the knot and is pushed back.

    What rests then answers the blow, and its impulse mixes that with what lasts, of which no more can be told than what lasted in the step before.
    """
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0 and contact.gamma > TOUCH * contact.weight and is_impact(model, work, contact, resting):
            return True
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for side in range(2):
            if limit.awake[side] != 0 and limit.gamma[side] > TOUCH * limit.weight and limit_approach(model, work, limit, side) < -resting:
                return True
    return False


@inline
def lasting_end(model, work, limit, resting, hit):
    """Impulse of a limit's ends without impacts; ``hit`` as ``something_hits`` says."""
    ends = 0.0
    for side in range(2):
        if limit.awake[side] != 0 and not limit_approach(model, work, limit, side) < -resting:
            push = min(limit.gamma[side], limit.gamma0[side]) if hit else limit.gamma[side]
            ends += push if side == 0 else -push
    return ends


@inline
def lasting_share(model, work, scene, contact, resting, hit):
    """The part of a contact's impulse that lasts; that of a twist is its contact's."""
    if contact.kind == TWIST:
        contact = scene.contacts[contact.carrier - 1]
    if is_impact(model, work, contact, resting):
        return 0.0
    return max(contact.gamma0, 0.0) / contact.gamma if hit and contact.gamma0 < contact.gamma else 1.0


@kernel
def keep_forces(model, work, scene, after, kick, resting):
    """Write what lasts of the forces of contacts, limits and dry friction, all but impacts, into the state after the step."""
    world = model.bodies.shape[0] - 1
    hit = something_hits(model, work, scene, resting)
    for i in range(world):
        for c in range(6):
            after.bodies[i].wrench[c] = 0.0
    for i in range(model.joints.shape[0]):
        for c in range(6):
            after.joints[i].friction[c] = 0.0
            after.joints[i].limit[c] = 0.0
            after.joints[i].hold[c] = 0.0
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        share = lasting_share(model, work, scene, contact, resting, hit) if contact.awake != 0 else 0.0
        if share > 0.0:
            for k in range(3):
                force = kick * share * (contact.gamma if k == 0 else contact.beta[k - 1])
                for c in range(6):
                    if contact.a != world:
                        after.bodies[contact.a].wrench[c] += force * contact.Ga[k, c]
                    if contact.b != world:
                        after.bodies[contact.b].wrench[c] += force * contact.Gb[k, c]
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        _, drag = limit_impulse(limit)
        after.joints[limit.joint].friction[limit.direction] += kick * drag
        after.joints[limit.joint].limit[limit.direction] += kick * lasting_end(model, work, limit, resting, hit)
        if limit.bears != 0:
            after.joints[limit.joint].hold[limit.direction] = kick * limit.full


@kernel
def note_state(state, tape, knot):
    """Until the next step says more, forces at the knot that it begins at are what lasts of the last step."""
    tape.steps[knot, 0] = state.clock[1]
    for i in range(state.bodies.shape[0]):
        for c in range(6):
            tape.wrench[knot, i, c] = state.bodies[i].wrench[c]
            tape.lasting[knot, i, c] = state.bodies[i].wrench[c]
    for i in range(state.joints.shape[0]):
        for c in range(6):
            tape.friction[knot, i, c] = state.joints[i].friction[c]
            tape.limit[knot, i, c] = state.joints[i].limit[c]
            tape.lasting_along[knot, i, c] = state.joints[i].friction[c] + state.joints[i].limit[c]


@kernel
def write_log(scene, log, used, knot, kick):
    """Write the contacts of a step into the log; returns its new length."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake == 0 or contact.kind == TWIST:
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
