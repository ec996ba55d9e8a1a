"""What a step with contacts leaves behind for its derivatives: who was awake, with which features, slacks and impulses.

Contacts are kept one after the other in a log, as many as were awake; limits all of them, step by step. ``recall_nodes`` puts a step's
nodes back into the scene that it was solved with.
"""
from __future__ import annotations

import numpy as np

from dalembert.contact.records import MAX_EDGES
from dalembert.kernels import inline, kernel
from dalembert.model.records import F, I, fields
from dalembert.spatial.tuples import load3, load9, store3, store9

#: ``index``: among the scene's contacts; features that the narrow phase found; the solution
KEPT_CONTACT = np.dtype(
    fields(I, index=0, kind=0, support=0, a=0, b=0, bounced=0, added=0, look=0)
    + fields(
        F, point=3, radius=0, axis=3, semi=3, frame=9, normal=3, offset=0, point_b=3, radius_b=0, axis_b=3, side=0,
        granted=0, bound=0, s=0, gamma=0, beta=2, psi=0, edge=MAX_EDGES,
    )
)
KEPT_LIMIT = np.dtype(fields(I, awake=2, bounced=2) + fields(F, granted=0, bound=2, s=2, gamma=2, beta=0, psi=0, cap=0))


@inline
def keep_contact(contact, kept):
    """Write an awake contact into the log."""
    kept.kind = contact.kind
    kept.support = contact.support
    kept.a = contact.a
    kept.b = contact.b
    kept.bounced = contact.bounced
    kept.added = contact.added
    kept.look = contact.look
    store3(kept.point, load3(contact.point))
    kept.radius = contact.radius
    store3(kept.axis, load3(contact.axis))
    store3(kept.semi, load3(contact.semi))
    store9(kept.frame, load9(contact.frame))
    store3(kept.normal, load3(contact.normal))
    kept.offset = contact.offset
    store3(kept.point_b, load3(contact.point_b))
    kept.radius_b = contact.radius_b
    store3(kept.axis_b, load3(contact.axis_b))
    kept.side = contact.side
    kept.granted = contact.granted
    kept.bound = contact.bound
    kept.s = contact.s
    kept.gamma = contact.gamma
    kept.beta[0] = contact.beta[0]
    kept.beta[1] = contact.beta[1]
    kept.psi = contact.psi
    for k in range(contact.edges):
        kept.edge[k] = contact.edge[k]


@inline
def recall_contact(contact, kept):
    """Put a contact from the log back into its record."""
    if contact.a != kept.a:  # as the narrow phase does
        contact.block_na, contact.block_nb = contact.block_nb, contact.block_na
        contact.block_an, contact.block_bn = contact.block_bn, contact.block_an
    contact.used = 1
    contact.awake = 1
    contact.kind = kept.kind
    contact.support = kept.support
    contact.a = kept.a
    contact.b = kept.b
    contact.bounced = kept.bounced
    contact.added = kept.added
    contact.look = kept.look
    store3(contact.point, load3(kept.point))
    contact.radius = kept.radius
    store3(contact.axis, load3(kept.axis))
    store3(contact.semi, load3(kept.semi))
    store9(contact.frame, load9(kept.frame))
    store3(contact.normal, load3(kept.normal))
    contact.offset = kept.offset
    store3(contact.point_b, load3(kept.point_b))
    contact.radius_b = kept.radius_b
    store3(contact.axis_b, load3(kept.axis_b))
    contact.side = kept.side
    contact.granted = kept.granted
    contact.bound = kept.bound
    contact.s = kept.s
    contact.gamma = kept.gamma
    contact.beta[0] = kept.beta[0]
    contact.beta[1] = kept.beta[1]
    contact.psi = kept.psi
    for k in range(contact.edges):
        contact.edge[k] = kept.edge[k]


@inline
def keep_limit(limit, kept):
    """Write a limit."""
    for side in range(2):
        kept.awake[side] = limit.awake[side]
        kept.bounced[side] = limit.bounced[side]
        kept.bound[side] = limit.bound[side]
        kept.s[side] = limit.s[side]
        kept.gamma[side] = limit.gamma[side]
    kept.granted = limit.granted
    kept.beta = limit.beta
    kept.psi = limit.psi
    kept.cap = limit.cap


@inline
def recall_limit(limit, kept):
    """Put a limit back into its record."""
    for side in range(2):
        limit.awake[side] = kept.awake[side]
        limit.bounced[side] = kept.bounced[side]
        limit.bound[side] = kept.bound[side]
        limit.s[side] = kept.s[side]
        limit.gamma[side] = kept.gamma[side]
    limit.granted = kept.granted
    limit.beta = kept.beta
    limit.psi = kept.psi
    limit.cap = kept.cap


@kernel
def keep_nodes(scene, log, used, span, limits):
    """Write the nodes of a solved step: contacts into the log from ``used`` on, where and how many into ``span`` (2,). Returns its new length."""
    span[0] = used
    for i in range(scene.contacts.shape[0]):
        if scene.contacts[i].awake != 0:
            log[used].index = i
            keep_contact(scene.contacts[i], log[used])
            used += 1
    span[1] = used - span[0]
    for i in range(scene.limits.shape[0]):
        keep_limit(scene.limits[i], limits[i])
    return used


@kernel
def recall_nodes(scene, log, first, count, limits):
    """Put the nodes of a step back, ``count`` contacts from ``first`` of the log on; everything else sleeps."""
    for i in range(scene.contacts.shape[0]):
        scene.contacts[i].awake = 0
    for k in range(first, first + count):
        recall_contact(scene.contacts[log[k].index], log[k])
    for i in range(scene.limits.shape[0]):
        recall_limit(scene.limits[i], limits[i])


@kernel
def guess_from_kept(scene):
    """Begin an iteration from the impulses that are there."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        contact.gamma0 = contact.gamma
        contact.beta0[0] = contact.beta[0]
        contact.beta0[1] = contact.beta[1]
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        limit.gamma0[0] = limit.gamma[0]
        limit.gamma0[1] = limit.gamma[1]
        limit.beta0 = limit.beta


@kernel
def keep_again(scene, log, first, count, limits):
    """Write the nodes of a step where they were recalled from."""
    for k in range(first, first + count):
        keep_contact(scene.contacts[log[k].index], log[k])
    for i in range(scene.limits.shape[0]):
        keep_limit(scene.limits[i], limits[i])
