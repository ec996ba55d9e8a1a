"""Friction against spinning and rolling: torques of a contact, in nodes of their own beside it.

With the normal impulse gamma of their contact, a lever c (m) and the part omega of the relative angular velocity about the normal, or
across it, the torque tau takes out the most energy of all with

    |tau| <= c gamma.

That is Coulomb's law again, for beta = tau / c and eta = c omega: rows as long as the lever make a TWIST of the same cone as a contact's. Its gamma is given:
a step finds torques for given bounds, and ``bear_twists`` the bounds for what contacts then carry, in turn until both agree, as of bearings.
"""
from __future__ import annotations

import numpy as np

from dalembert.contact.bearing import LEAST, NONE
from dalembert.contact.events import clear_impulse
from dalembert.contact.geometry import at_knot
from dalembert.contact.records import CONTACT, TWIST
from dalembert.kernels import inline, kernel

#: bounds that differ by less than this part from those of the load are right; after PATIENT rounds by half as much again, and so on
AGREE, PATIENT = 1e-7, 10
#: rounds after which bounds follow the load half as far, and a quarter as far
HALF, QUARTER = 8, 24


def twists_of(contacts: np.ndarray) -> np.ndarray:
    """The records of the torques of contacts, which come after all contacts."""
    turning = [(i, name) for name in ("spin", "roll") for i in np.flatnonzero(contacts[name] > 0.0)]
    twists = np.zeros(len(turning), CONTACT)
    for twist, (i, name) in zip(twists, turning):
        for same in ("a", "b", "weight", "owner", "part"):
            twist[same] = contacts[i][same]
        twist["kind"], twist["used"], twist["carrier"], twist["rolls"], twist[name] = TWIST, 1, i + 1, name == "roll", contacts[i][name]
    return twists


@inline
def bound_twist(twist, load):
    """Take ``load`` for the normal impulse."""
    twist.gamma0 = load
    twist.friction = 1.0 if load > NONE * twist.weight else 0.0


@kernel
def follow_contacts(scene, bodies):
    """Wake the torques of contacts that are awake, bounded by the impulses that these start from, and let the others sleep."""
    contacts = scene.contacts
    for i in range(contacts.shape[0]):
        twist = contacts[i]
        if twist.kind != TWIST:
            continue
        carrier = contacts[twist.carrier - 1]
        if carrier.used == 0 or carrier.awake == 0:
            twist.awake = 0
        elif twist.awake == 0:
            at_knot(twist, scene, bodies)
            twist.awake = 1
            clear_impulse(twist)
            twist.beta0[0] = 0.0
            twist.beta0[1] = 0.0
            bound_twist(twist, carrier.gamma0)


@kernel
def bear_twists(scene, attempt):
    """Compare the bounds of all torques with what their contacts carry in the step just solved, and set them anew. Returns how many were not right.

    ``attempt``: how often the step was solved before; as of bearings, bounds then follow less far, and agree less closely.
    """
    wrong = 0
    part = 1.0 if attempt < HALF else 0.5 if attempt < QUARTER else 0.25
    agree = AGREE
    for _ in range(PATIENT, attempt):
        agree *= 1.5
    contacts = scene.contacts
    for i in range(contacts.shape[0]):
        twist = contacts[i]
        if twist.kind != TWIST or twist.awake == 0:
            continue
        load = contacts[twist.carrier - 1].gamma
        had = twist.gamma if twist.friction > 0.0 else 0.0
        if load > NONE * twist.weight or had > 0.0:
            wrong += 1 if abs(load - had) > agree * max(load, LEAST * twist.weight) else 0
        twist.beta0[0] = twist.beta[0]
        twist.beta0[1] = twist.beta[1]
        bound_twist(twist, had + part * (load - had))
    return wrong
