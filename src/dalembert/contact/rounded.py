"""Pairs with cylinders, cones or ellipsoids: which of their features touch.

Where one of the two is round everywhere (a ball, an ellipsoid), they touch in one point, and their distance is the gap. Where one touches a flat face of
the other one, its support features that lie over that one are held against the face's half-space.
"""
from __future__ import annotations

from math import cos, pi, sin, sqrt

from dalembert.contact.distance import best_normal
from dalembert.contact.features import RIM
from dalembert.contact.placing import body_point, number_of_supports, place, put_plane
from dalembert.contact.records import BASE, CIRCLE_SUPPORT, CONE, CYLINDER, ELLIPSOID, PLANE, POLYHEDRON, TIP
from dalembert.contact.support import core_support, is_strictly_convex, slope_of, top
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import add3, dot3, load3, load9, mat_t_vec, mat_vec, neg3, scale3, store3, sub3

#: features further than this part of the shape's size beside the other shape do not touch it
BESIDE = 2e-2
#: cosine of the angle between a cylinder's axis and a direction across it, at most
LATERAL = 1e-6
#: features higher than this part of the shape's thickness over its lowest one do not touch
BAND = 0.5
#: a flat face's normal is taken when its separation comes as near (m) as this to the largest one
FLAT = 1e-5
#: tilt (rad) below which points on a rim may touch
STANDS = 0.05


@inline
def is_smooth(ga, gb):
    """Whether the distance of two shapes is their gap: one is round everywhere, and one a cylinder, a cone or an ellipsoid."""
    return gb.form >= CYLINDER and (is_strictly_convex(ga) or is_strictly_convex(gb))


@inline
def is_lateral(g, R, n):
    """Whether a direction ``n`` (world) is across the axis of a shape, if it is a cylinder; never of a cone, along whose side it leans."""
    return g.form != CONE and (g.form != CYLINDER or abs(dot3(n, mat_vec(R, load3(g.axis)))) < LATERAL)


@inline
def beside(g, planes, p):
    """How far (m) a point lies outside of a shape, at least; both in the body's frame."""
    q = sub3(p, load3(g.position))
    if g.form == POLYHEDRON:
        best = -1e300
        for f in range(g.first_face, g.first_face + g.faces):
            best = max(best, planes[f, 0] * p[0] + planes[f, 1] * p[1] + planes[f, 2] * p[2] - planes[f, 3])
        return best
    if g.form == ELLIPSOID:
        local = mat_t_vec(load9(g.frame), q)
        e = load3(g.semi)
        scaled = (local[0] / e[0], local[1] / e[1], local[2] / e[2])
        return (sqrt(dot3(scaled, scaled)) - 1.0) * g.inner
    axis = load3(g.axis)
    along = dot3(q, axis)
    excess = max(abs(along) - g.half, 0.0)
    across = sub3(q, scale3(along, axis))
    if g.form == CYLINDER:
        return max(abs(along) - g.half, sqrt(dot3(across, across)) - g.radius)
    if g.form == CONE:
        sine = slope_of(g)
        return max(BASE * g.half - along, sine * (along - TIP * g.half) + sqrt(1.0 - sine * sine) * sqrt(dot3(across, across)))
    return sqrt(dot3(across, across) + excess * excess) - g.radius


@kernel
def hold(contacts, first, slots, bodies, g, other, n, corners, planes):
    """Features of shape g over another one, against the half-space that touches that one along ``n`` (world, towards g); returns how many."""
    A = bodies[g.body]
    B = bodies[other.body]
    local = mat_t_vec(load9(A.R), n)
    normal = mat_t_vec(load9(B.R), n)
    offset = top(other, corners, normal)
    lowest = -top(g, corners, neg3(local))
    used = 0
    for number in range(number_of_supports(g)):
        if used == slots:
            break
        contact = contacts[first + used]
        put_plane(contact, g.body, other.body, normal, offset, g, corners, number)
        p = load3(contact.point)
        stands = False
        if contact.support == CIRCLE_SUPPORT:
            m = sub3(local, scale3(dot3(local, load3(g.axis)), load3(g.axis)))
            size = sqrt(dot3(m, m))
            stands = size < STANDS
            if size > 1e-9:
                p = sub3(p, scale3(g.radius / size, m))
        elif g.form == ELLIPSOID:
            p = core_support(g, corners, neg3(local))
        else:
            p = sub3(p, scale3(contact.radius, local))
        contact.used = 0
        if dot3(p, local) - lowest > BAND * g.inner:
            continue
        if not stands:
            if is_over(A, B, p, n, normal, offset, other, planes):
                contact.used = 1
                used += 1
            continue
        # A cylinder or a cone that nearly stands on its cap: its circle, if it comes to tilt, and points of its rim.
        contact.used = 1
        used += 1
        u = (g.frame[0], g.frame[3], g.frame[6])
        w = (g.frame[1], g.frame[4], g.frame[7])
        centre = load3(contact.point)
        for k in range(RIM):
            if used < slots:
                angle = 2.0 * pi * k / RIM
                p = add3(centre, add3(scale3(g.radius * cos(angle), u), scale3(g.radius * sin(angle), w)))
                if is_over(A, B, p, n, normal, offset, other, planes):
                    contact = contacts[first + used]
                    place(contact, PLANE, g.body, other.body, p, 0.0)
                    store3(contact.normal, normal)
                    contact.offset = offset
                    used += 1
    return used


@inline
def is_over(A, B, p, n, normal, offset, other, planes):
    """Whether a point p of body A lies over a shape of body B along ``n`` (world; ``normal`` in the frame of B), not beside it."""
    q = body_point(B, add3(load3(A.x), mat_vec(load9(A.R), p)))
    height = dot3(q, normal) - offset
    return beside(other, planes, sub3(q, scale3(max(height, 0.0), normal))) < BESIDE * other.outer


@kernel
def put_flat(contacts, first, slots, bodies, ga, gb, corners, planes, n, gap):
    """Features of a pair whose distance ``gap`` along ``n`` (world, from b to a) is as good as that from a flat face of one of them; returns how many."""
    A = bodies[ga.body]
    B = bodies[gb.body]
    RA = load9(A.R)
    RB = load9(B.R)
    d = sub3(load3(A.x), load3(B.x))
    used = 0
    value, m = best_normal(ga, gb, corners, planes, RA, RB, d, False, True)
    if value > gap - FLAT:
        used = hold(contacts, first, slots, bodies, ga, gb, m, corners, planes)
    value, m = best_normal(ga, gb, corners, planes, RA, RB, d, True, True)
    if value > gap - FLAT:
        used += hold(contacts, first + used, slots - used, bodies, gb, ga, neg3(m), corners, planes)
    return used
