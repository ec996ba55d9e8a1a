"""Compliant contacts: a force k times the penetration and d times its rate, never pulling, where a rigid contact has whatever keeps the gap open.

With the slack s of the gap and a normal impulse gamma over the kick h, the law is once more a complementarity,

    s = gap/dt - bound + drag rate + soft gamma >= 0,    gamma >= 0,    s gamma = 0,

whose s is the force that is missing, over a stiffness times dt: so that the node of a rigid contact takes it, and stiffness without end is rigid. A rigid contact
gives way by ``soft`` alone, ``give`` over its weight: far below what is known of gaps, but it decides where a joint holds what a contact holds.

A step of ``Variational`` has the mean force of the kick at its knot, by the gaps of the two intervals (1 - e) (g- + 2 g + g+)/4 + e g+ and their rates in the
same way: of second order, as e is that of dt, and where dt does not resolve the contact, e tends to one, with which it takes no energy in. With
z = k dt^2/m + (d dt/m)^2 of the inertia m that the force feels, e = z / (z + 1/4) is enough in a sweep over stiffness, damping and phase.
A stage has gap and rate at its end, as for all other forces.
"""
from __future__ import annotations

from dalembert.contact.events import approach
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import dot3, load9, mat_vec

#: z at which e is one half
RESOLVED = 0.25
#: m by which what is rigid may go on overlapping
HAIR = 1e-9


@inline
def mobility(model, i, row):
    """row M^-1 row^T of a body by itself; the world has none."""
    if i == model.bodies.shape[0] - 1:
        return 0.0
    fixed, arm = model.bodies[i], (row[3], row[4], row[5])
    return (row[0] * row[0] + row[1] * row[1] + row[2] * row[2]) / fixed.mass + dot3(arm, mat_vec(load9(fixed.inertia_inverse), arm))


@inline
def hold(contact, give, dt):
    """Numbers of a rigid contact, which ``give``s way (impulse over weight, in m/s, to m/s). What a start or rounding let overlap by a hair, no more than ``HAIR``,
    need not open, only stay: where a joint holds it there nothing could open it.
    """
    contact.soft = give / contact.weight
    if contact.bounced == 0:
        contact.bound = max(min(contact.gap0, 0.0), -HAIR) / dt


@kernel
def soften_step(model, work, scene, dt, h, give):
    """Numbers of all compliant contacts of a step of ``Variational``; rows must be those of the knot. Rigid ones ``give`` way."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        hold(contact, give, dt)
        if contact.stiffness > 0.0 and contact.awake != 0:
            rate = approach(model, work, contact.a, contact.b, contact.Ga[0], contact.Gb[0])
            k, d = contact.stiffness, contact.damping
            m = 1.0 / (mobility(model, contact.a, contact.Ga[0]) + mobility(model, contact.b, contact.Gb[0]))
            z = k * dt * dt / m + (d * dt / m) ** 2
            late = z / (z + RESOLVED)
            early = 1.0 - late
            share = 1.0 / ((0.25 * early + late) * k * dt)
            contact.bound = -share * early * (0.25 * k * (3.0 * contact.gap0 - dt * rate) + 0.5 * d * rate)
            contact.soft = share / h
            contact.drag = (0.5 * early + late) * d * share


@kernel
def soften_stage(scene, gamma, give):
    """Numbers of all compliant contacts of a stage. Rigid ones ``give`` way as in a step."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        hold(contact, give, gamma)
        if contact.stiffness > 0.0:
            share = 1.0 / (contact.stiffness * gamma)
            contact.bound = 0.0
            contact.soft = share / gamma
            contact.drag = contact.damping * share
