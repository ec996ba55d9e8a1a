"""Convex shapes by their support functions: the furthest point along a direction, and the separation of two shapes along one.

A shape is a core (a point, a segment, a polyhedron, a cylinder, an ellipsoid, a cone) with a ball of its ``skin`` about every point
of it. The separation along any direction is a lower bound of the distance: where it is positive, nothing overlaps.
"""
from __future__ import annotations

from math import sqrt

from dalembert.contact.records import BASE, CONE, CYLINDER, ELLIPSOID, POLYHEDRON, ROUND, TIP
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import add3, dot3, load3, load9, mat_t_vec, mat_vec, neg3, scale3, sub3


@inline
def is_strictly_convex(g):
    """Whether a shape is round everywhere: no edges, faces or straight lines."""
    return g.form == ELLIPSOID or (g.form == ROUND and g.half == 0.0)


@inline
def slope_of(g):
    """Sine of the angle between a cone's axis and its side: what the normals of the side have along the axis."""
    return g.radius / sqrt(g.radius * g.radius + 4.0 * g.half * g.half)


@inline
def rim_point(g, d):
    """The point of a disc about a shape's axis that lies furthest along ``d``, from the disc's middle."""
    axis = load3(g.axis)
    across = sub3(d, scale3(dot3(d, axis), axis))
    across = sub3(across, scale3(dot3(across, axis), axis))  # of a direction along the axis little is left but rounding
    size = dot3(across, across)
    return scale3(g.radius / sqrt(size), across) if size > 1e-28 * dot3(d, d) else (0.0, 0.0, 0.0)


@kernel
def core_support(g, corners, d):
    """The point of a shape's core that lies furthest along ``d``; both in its body's frame."""
    if g.form == POLYHEDRON:
        best = -1e300
        pick = g.first_corner
        for k in range(g.first_corner, g.first_corner + g.corners):
            h = corners[k, 0] * d[0] + corners[k, 1] * d[1] + corners[k, 2] * d[2]
            if h > best:
                best = h
                pick = k
        return load3(corners[pick])
    p = load3(g.position)
    if g.form == ELLIPSOID:
        frame = load9(g.frame)
        e = load3(g.semi)
        local = mat_t_vec(frame, d)
        scaled = (e[0] * local[0], e[1] * local[1], e[2] * local[2])
        l = 1.0 / sqrt(dot3(scaled, scaled))
        return add3(p, mat_vec(frame, (l * e[0] * scaled[0], l * e[1] * scaled[1], l * e[2] * scaled[2])))
    axis = load3(g.axis)
    along = dot3(d, axis)
    if g.form == CONE:
        if along > slope_of(g) * sqrt(dot3(d, d)):
            return add3(p, scale3(TIP * g.half, axis))
        return add3(add3(p, scale3(BASE * g.half, axis)), rim_point(g, d))
    p = add3(p, scale3(g.half if along >= 0.0 else -g.half, axis))
    return add3(p, rim_point(g, d)) if g.form == CYLINDER else p


@inline
def top(g, corners, d):
    """Support function of a shape along a unit vector ``d`` of its body's frame."""
    return dot3(core_support(g, corners, d), d) + g.skin


@kernel
def core_difference(ga, gb, corners, Ra, Rb, d, n):
    """The point of core a less core b, ``d`` apart, that lies furthest against ``n``; and that of core a, from the centre of its body (world axes)."""
    p = mat_vec(Ra, core_support(ga, corners, mat_t_vec(Ra, neg3(n))))
    q = mat_vec(Rb, core_support(gb, corners, mat_t_vec(Rb, n)))
    return add3(d, sub3(p, q)), p


@inline
def separation(ga, gb, corners, Ra, Rb, d, n):
    """How far two shapes, whose bodies are ``d`` = x_a - x_b apart, are separated along a unit vector ``n`` from b to a (world)."""
    return dot3(n, core_difference(ga, gb, corners, Ra, Rb, d, n)[0]) - ga.skin - gb.skin
