"""Transposed derivatives of shapes: their points and support functions by what they are made of (``GEOMETRY_BAR``).

A shape's own points keep their share of its sizes: a corner, an end of an axis, a point on a rim. So do support points, at a fixed direction, but for those
of ellipsoids, which move over the surface.
"""
from __future__ import annotations

from math import sqrt

from dalembert.contact.records import CONE, CYLINDER, ELLIPSOID, POLYHEDRON, ROUND
from dalembert.contact.support import core_support
from dalembert.formulations.maximal.pull_joints import add_to3
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import dot3, load3, load9, mat_t_vec, mat_vec, scale3, sub3


@kernel
def pull_own_point(g, bar, p, p_bar):
    """A point of a shape that keeps its share of every size, with a bar; both in the body's frame."""
    add_to3(bar.position, 1.0, p_bar)
    d = sub3(p, load3(g.position))
    if g.form == POLYHEDRON:
        part, turned = mat_t_vec(load9(g.frame), d), mat_t_vec(load9(g.frame), p_bar)
        for c in range(3):
            if g.semi[c] > 0.0:  # of a box; others have no sizes
                bar.semi[c] += part[c] / g.semi[c] * turned[c]
    elif g.form != ELLIPSOID and g.half > 0.0:
        axis = load3(g.axis)
        along = dot3(d, axis)
        bar.half += along / g.half * dot3(axis, p_bar)
        if g.form == CYLINDER or g.form == CONE:
            bar.radius += dot3(sub3(d, scale3(along, axis)), p_bar) / g.radius


@kernel
def pull_support(g, corners, bar, n, s_bar):
    """The support point of a shape's core along a fixed direction ``n``, with a bar; in the body's frame."""
    if g.form != ELLIPSOID:
        pull_own_point(g, bar, core_support(g, corners, n), s_bar)
        return
    add_to3(bar.position, 1.0, s_bar)
    frame, e = load9(g.frame), load3(g.semi)
    v, P = mat_t_vec(frame, n), mat_t_vec(frame, s_bar)
    y = (e[0] * e[0] * v[0], e[1] * e[1] * v[1], e[2] * e[2] * v[2])
    l2 = dot3(v, y)
    along = dot3(P, y) / l2
    for c in range(3):
        bar.semi[c] += e[c] * v[c] * (2.0 * P[c] - along * v[c]) / sqrt(l2)


@inline
def pull_top(g, corners, bar, n, weight):
    """The support function of a shape, weighed, along a fixed unit vector ``n`` of its body's frame."""
    pull_support(g, corners, bar, n, scale3(weight, n))
    if g.form == ROUND:
        bar.radius += weight


@inline
def reach_of(g, p):
    """Distance (m) from the axis of a point on the straight part of a cylinder or a cone: the radius of the circle on which it moves as that turns."""
    d = sub3(p, load3(g.position))
    d = sub3(d, scale3(dot3(d, load3(g.axis)), load3(g.axis)))
    return sqrt(dot3(d, d)) if g.form == CONE else g.radius


@kernel
def bend(g, n, v, reach):
    """How the support point of a shape's core along a unit vector ``n`` moves as that turns along ``v``; in the body's frame.

    ``reach``: its distance from the axis of a cylinder or a cone, across whose side ``n`` may be.
    """
    if g.form == ELLIPSOID:
        frame, e = load9(g.frame), load3(g.semi)
        local, w = mat_t_vec(frame, n), mat_t_vec(frame, v)
        y = (e[0] * e[0] * local[0], e[1] * e[1] * local[1], e[2] * e[2] * local[2])
        l2 = dot3(local, y)
        along = dot3(y, w) / l2
        l = 1.0 / sqrt(l2)
        return mat_vec(frame, (l * (e[0] * e[0] * w[0] - along * y[0]), l * (e[1] * e[1] * w[1] - along * y[1]), l * (e[2] * e[2] * w[2] - along * y[2])))
    if g.form == CYLINDER or g.form == CONE:
        axis = load3(g.axis)
        m = sub3(n, scale3(dot3(n, axis), axis))
        size = dot3(m, m)
        if size > 1e-28:
            w = sub3(v, scale3(dot3(v, axis), axis))
            return scale3(reach / sqrt(size), sub3(w, scale3(dot3(w, m) / size, m)))
    return (0.0, 0.0, 0.0)
