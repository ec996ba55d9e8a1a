"""The narrow phase: for every near pair of shapes, the features by which they may touch during the coming step.

Shapes are round (a ball or a ball swept along a segment; see ``balls``), polyhedra, cylinders, cones or ellipsoids (see ``rounded``). Only pairs
that are close at the knot get features here; what comes close within the step gets them there (see ``watch``).
"""
from __future__ import annotations

from math import sqrt

from dalembert.contact.balls import round_polyhedron, round_round
from dalembert.contact.distance import core_distance, signed_distance, unit
from dalembert.contact.placing import put_smooth, world_point
from dalembert.contact.polyhedra import polyhedra
from dalembert.contact.records import CYLINDER, POLYHEDRON, ROUND
from dalembert.contact.rounded import is_lateral, is_smooth, put_flat
from dalembert.kernels import kernel
from dalembert.spatial.tuples import dot3, load3, load9, store3, sub3


@kernel
def put_rounded(contacts, pair, bodies, ga, gb, shapes):
    """A pair with a cylinder, a cone or an ellipsoid.

    Flat on something a cylinder or a cone has a manifold; along its side a cylinder is a ball swept along its axis, as far as it goes; whatever else
    meets in one point.
    """
    _, _, corners, planes, loops, starts, edges, work = shapes
    A = bodies[ga.body]
    B = bodies[gb.body]
    RA = load9(A.R)
    RB = load9(B.R)
    d = sub3(load3(A.x), load3(B.x))
    gap, n = signed_distance(ga, gb, corners, planes, edges, RA, RB, d, load3(pair.n), work[1])
    first = pair.first
    for s in range(first, first + pair.slots):
        contacts[s].used = 0
    used = 0
    if not is_smooth(ga, gb):
        used = put_flat(contacts, first, pair.slots, bodies, ga, gb, corners, planes, n, gap)
        if used == 0 and is_lateral(ga, RA, n) and is_lateral(gb, RB, n):
            if ga.form == POLYHEDRON:
                round_polyhedron(contacts, first, bodies, gb, ga, corners, planes, loops, starts, edges)
            else:
                round_round(contacts, first, bodies, ga, gb)
            used = 1
    if used == 0:
        put_smooth(contacts[first], ga, gb, RB, n)


@kernel
def put_features(bodies, contacts, pair, shapes):
    """Write the features of a pair at the pose in ``x`` and ``R`` of the bodies into its contacts."""
    _, geometries, corners, planes, loops, starts, edges, work = shapes
    ga = geometries[pair.i]
    gb = geometries[pair.j]
    if gb.form >= CYLINDER:
        put_rounded(contacts, pair, bodies, ga, gb, shapes)
    elif ga.form == ROUND and gb.form == ROUND:
        round_round(contacts, pair.first, bodies, ga, gb)
    elif ga.form == ROUND:
        round_polyhedron(contacts, pair.first, bodies, ga, gb, corners, planes, loops, starts, edges)
    else:
        polyhedra(contacts, pair.first, pair.slots, bodies, ga, gb, corners, planes, loops, starts, edges, load3(pair.n), work)


@kernel
def look_at(bodies, pair, shapes, reach):
    """Note how far apart a pair is at the knot; returns whether that is less than ``reach`` (m) or its own measure of what is close."""
    ga = shapes.geometries[pair.i]
    gb = shapes.geometries[pair.j]
    A = bodies[ga.body]
    B = bodies[gb.body]
    d = sub3(world_point(A, load3(ga.position)), world_point(B, load3(gb.position)))
    centres = sqrt(dot3(d, d))
    pair.gap = centres - ga.outer - gb.outer
    n = unit(d, (0.0, 0.0, 1.0))
    store3(pair.n, n)
    reach = max(reach, pair.close)
    if pair.gap > pair.margin:
        return False
    if ga.form == ROUND and gb.form == ROUND and ga.half == 0.0 and gb.half == 0.0:
        return True
    both = ga.skin + gb.skin
    low, length, n, _ = core_distance(ga, gb, shapes.corners, load9(A.R), load9(B.R), sub3(load3(A.x), load3(B.x)), n, both + reach, shapes.work[1])
    pair.gap = low - both
    store3(pair.n, n)
    return length - both < reach


@kernel
def measure_pair(bodies, pair, shapes):
    """Note the signed distance of a pair at the knot."""
    ga = shapes.geometries[pair.i]
    gb = shapes.geometries[pair.j]
    A = bodies[ga.body]
    B = bodies[gb.body]
    gap, n = signed_distance(
        ga, gb, shapes.corners, shapes.planes, shapes.edges, load9(A.R), load9(B.R), sub3(load3(A.x), load3(B.x)), load3(pair.n), shapes.work[1],
    )
    pair.gap = gap
    store3(pair.n, n)


@kernel
def find_features(bodies, contacts, shapes, reach):
    """Find the features of all pairs that are close at the knot, or nearer than ``reach`` (m), and write them into the pairs' contacts."""
    for k in range(shapes.pairs.shape[0]):
        pair = shapes.pairs[k]
        pair.added = 0
        if look_at(bodies, pair, shapes, reach):
            put_features(bodies, contacts, pair, shapes)
        else:
            for s in range(pair.first, pair.first + pair.slots):
                contacts[s].used = 0
