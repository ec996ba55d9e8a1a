"""Writing a feature of a pair of shapes into a contact's record."""
from __future__ import annotations

from dalembert.contact.records import (
    BALL_SUPPORT,
    BASE,
    CIRCLE_SUPPORT,
    CONE,
    CYLINDER,
    ELLIPSOID,
    ELLIPSOID_SUPPORT,
    PLANE,
    POLYHEDRON,
    ROUND,
    SMOOTH,
    TIP,
)
from dalembert.contact.support import slope_of
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import add3, dot3, load3, load9, mat_t_vec, mat_vec, scale3, store3, store9, sub3


@inline
def world_point(body, p):
    return add3(load3(body.x), mat_vec(load9(body.R), p))


@inline
def body_point(body, p):
    return mat_t_vec(load9(body.R), sub3(p, load3(body.x)))


@inline
def place(contact, kind, a, b, point, radius):
    """Begin a feature: a ball of body a against something of body b."""
    contact.used = 1
    contact.added = 0
    if contact.a != a:
        contact.block_na, contact.block_nb = contact.block_nb, contact.block_na
        contact.block_an, contact.block_bn = contact.block_bn, contact.block_an
    contact.kind = kind
    contact.support = BALL_SUPPORT
    contact.a = a
    contact.b = b
    store3(contact.point, point)
    contact.radius = radius


@kernel
def put_plane(contact, a, b, n, offset, g, corners, number):
    """A support feature of geometry g of body a, its ``number``, against the half-space of body b with normal ``n`` (in b's frame) at ``offset``.

    Round shapes and cylinders have two, one at either end; cones their base and their tip; polyhedra their corners.
    """
    p = load3(g.position)
    if g.form == ROUND or g.form == CYLINDER:
        p = add3(p, scale3(-g.half if number == 0 else g.half, load3(g.axis)))
    elif g.form == CONE:
        p = add3(p, scale3((BASE if number == 0 else TIP) * g.half, load3(g.axis)))
    elif g.form != ELLIPSOID:
        p = load3(corners[g.first_corner + number])
    tip = g.form == CONE and number == 1
    place(contact, PLANE, a, b, p, 0.0 if tip else g.radius)
    if g.form == CYLINDER or (g.form == CONE and not tip):
        contact.support = CIRCLE_SUPPORT
        store3(contact.axis, load3(g.axis))
    elif g.form == ELLIPSOID:
        contact.support = ELLIPSOID_SUPPORT
        store3(contact.semi, load3(g.semi))
        store9(contact.frame, load9(g.frame))
    store3(contact.normal, n)
    contact.offset = offset


@inline
def put_smooth(contact, ga, gb, Rb, n):
    """The distance of the two shapes of a pair, about along ``n`` (world)."""
    place(contact, SMOOTH, ga.body, gb.body, load3(ga.position), ga.radius)
    store3(contact.normal, mat_t_vec(Rb, n))


@inline
def number_of_supports(g):
    """How many support features a shape has."""
    if g.form == ELLIPSOID or (g.form == ROUND and g.half == 0.0):
        return 1
    return g.corners if g.form == POLYHEDRON else 2


@inline
def lowest_support(g, corners, n):
    """Number of the support feature that lies lowest along ``n`` (in the body's frame)."""
    if g.form == ROUND or g.form == CYLINDER:
        return 0 if dot3(n, load3(g.axis)) > 0.0 or g.half == 0.0 else 1
    if g.form == CONE:
        return 0 if -dot3(n, load3(g.axis)) < slope_of(g) else 1
    pick = 0
    best = 1e300
    if g.form != ELLIPSOID:
        for k in range(g.corners):
            h = dot3(n, load3(corners[g.first_corner + k]))
            if h < best:
                best = h
                pick = k
    return pick
