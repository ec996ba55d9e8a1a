"""Bars of the features of pairs of shapes: by the shapes they belong to, and by the poses at which the narrow phase finds them.

Features are fixed in their bodies but for the points of a clipped face (``contact.narrow.face_contacts``), which move over it as the two
bodies move; how is differenced (fourth order).
"""
from __future__ import annotations

from dalembert.contact.polyhedra import face_contacts
from dalembert.contact.records import PLANE, POLYHEDRON, ROUND
from dalembert.formulations.maximal.pull_joints import add_to3
from dalembert.kernels import inline, kernel
from dalembert.spatial import so3
from dalembert.spatial.tuples import (
    add3,
    cross3,
    dot3,
    load3,
    load9,
    mat_mul,
    mat_t_vec,
    mat_vec,
    scale3,
    store3,
    store9,
    sub3,
)

#: step (m or rad) of the differences
STEP = 2e-4
#: points nearer (m) than this to a corner are that corner
CORNER = 1e-10


@kernel
def fold_pairs(scene, touch):
    """Give the bars of features of pairs, once those of a step are known, to shapes and poses: the next step has others."""
    pairs, geometries = scene.shapes.pairs, scene.shapes.geometries
    for k in range(pairs.shape[0]):
        pair = pairs[k]
        if geometries[pair.i].form == POLYHEDRON and geometries[pair.j].form == POLYHEDRON:
            pull_clipped(scene, touch, pair)
        for s in range(pair.first, pair.first + pair.slots):
            contact, own = scene.contacts[s], touch.contacts[s]
            if contact.awake == 0:
                continue
            straight = geometries[pair.i].body == contact.a
            first, second = (pair.i, pair.j) if straight else (pair.j, pair.i)
            fold_round(geometries[first], touch.rounds[first], load3(contact.point), load3(own.point), own.radius)
            fold_round(geometries[second], touch.rounds[second], load3(contact.point_b), load3(own.point_b), own.radius_b)
            own.radius = own.radius_b = own.offset = 0.0
            for c in range(3):
                own.point[c] = own.point_b[c] = own.axis[c] = own.axis_b[c] = own.semi[c] = own.turn[c] = 0.0


@inline
def fold_round(geometry, bar, point, point_bar, radius_bar):
    """A ball on a round geometry: at its middle or one of its ends."""
    if geometry.form == ROUND:
        bar.radius += radius_bar
        add_to3(bar.position, 1.0, point_bar)
        if geometry.half > 0.0:
            axis = load3(geometry.axis)
            bar.half += dot3(sub3(point, load3(geometry.position)), axis) / geometry.half * dot3(axis, point_bar)


@kernel
def pull_clipped(scene, touch, pair):
    """Points of a polyhedron that lie over a face of another one, weighed with their bars, by both poses."""
    _, geometries, corners, planes, loops, starts, _, polygon = scene.shapes
    which = first_moving(scene.contacts, pair, geometries, corners)
    if which < 0:
        return
    lead = scene.contacts[which]
    if lead.kind != PLANE:
        return
    straight = geometries[pair.i].body == lead.a
    ga, gb = geometries[pair.i if straight else pair.j], geometries[pair.j if straight else pair.i]
    face = -1
    for f in range(gb.first_face, gb.first_face + gb.faces):
        if planes[f, 3] == lead.offset and planes[f, 0] == lead.normal[0] and planes[f, 1] == lead.normal[1] and planes[f, 2] == lead.normal[2]:
            face = f
    if face < 0:
        return
    A, B = touch.rows_at[ga.body], touch.rows_at[gb.body]
    x, R = load3(A.x), load9(A.R)
    by_x = (0.0, 0.0, 0.0)
    by_phi = (0.0, 0.0, 0.0)
    for c in range(6):
        total = 0.0
        for n in range(4):
            size = (1.0, -1.0, 2.0, -2.0)[n] * STEP
            share = (8.0, -8.0, -1.0, 1.0)[n] / (12.0 * STEP)
            move = (size if c % 3 == 0 else 0.0, size if c % 3 == 1 else 0.0, size if c % 3 == 2 else 0.0)
            if c < 3:
                store3(A.x, add3(x, move))
            else:
                store9(A.R, mat_mul(R, so3.exp_matrix(move)))
            face_contacts(touch.trial, 0, pair.slots, touch.rows_at, ga, gb, face, corners, planes, loops, starts, polygon)
            for s in range(pair.slots):
                contact = scene.contacts[pair.first + s]
                if moves(contact, ga, corners):
                    total += share * dot3(within(contact, load3(touch.contacts[pair.first + s].point)), load3(touch.trial[s].point))
            store3(A.x, x)
            store9(A.R, R)
        slope = (total if c % 3 == 0 else 0.0, total if c % 3 == 1 else 0.0, total if c % 3 == 2 else 0.0)
        by_x, by_phi = (add3(by_x, slope), by_phi) if c < 3 else (by_x, add3(by_phi, slope))
    # moving both bodies together changes nothing
    add_to3(touch.rows_bar[ga.body].x, 1.0, by_x)
    add_to3(touch.rows_bar[ga.body].phi, 1.0, by_phi)
    add_to3(touch.rows_bar[gb.body].x, -1.0, by_x)
    turned = add3(cross3(sub3(x, load3(B.x)), by_x), mat_vec(R, by_phi))
    add_to3(touch.rows_bar[gb.body].phi, -1.0, mat_t_vec(load9(B.R), turned))


@inline
def moves(contact, geometry, corners):
    """Whether a contact's point is none of its shape's corners, and so is another one at another pose."""
    if contact.awake == 0:
        return False
    for k in range(geometry.first_corner, geometry.first_corner + geometry.corners):
        d = sub3(load3(contact.point), load3(corners[k]))
        if dot3(d, d) < CORNER * CORNER:
            return False
    return True


@inline
def within(contact, d):
    """The part of a vector (a's frame) along which the point of a clipped face can move."""
    f = load3(contact.axis)
    return sub3(d, scale3(dot3(f, d), f))


@inline
def first_moving(contacts, pair, geometries, corners):
    """Index of the first contact of a pair whose point moves, or -1."""
    for s in range(pair.first, pair.first + pair.slots):
        own = pair.i if geometries[pair.i].body == contacts[s].a else pair.j
        if moves(contacts[s], geometries[own], corners):
            return s
    return -1
