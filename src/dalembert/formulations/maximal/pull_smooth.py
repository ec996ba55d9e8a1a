"""Transposed derivatives of where two shapes meet in one point (``contact.geometry.measure_smooth``), by poses and sizes.

The direction n between them makes their separation stationary: with support points s of the cores, x_a + s_a(-n) - x_b - s_b(n) = f n. Where an edge, an
axis, the side of a cone or a cap lies across n, the point is somewhere along its directions l, s + lambda l, and n . l = 0 is one more equation (l of a cone's side
turns with n, across it, and the point moves on a circle through it). By the implicit function theorem
weights y of the first equation and z of the others solve the transposed system: (S_a + S_b + f) y = n_bar across n and all l, with S = ds/dn the curvatures.
"""
from __future__ import annotations

from dalembert.contact.geometry import PARALLEL
from dalembert.contact.polish import LEVEL, straight_part
from dalembert.contact.records import BASE, CONE, TIP
from dalembert.contact.support import core_support, rim_point
from dalembert.formulations.maximal.pull_joints import add_to3
from dalembert.formulations.maximal.pull_shapes import bend, pull_own_point, pull_support, pull_top, reach_of
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import add3, cross3, dot3, load3, mat_t_vec, mat_vec, neg3, scale3, sub3


@inline
def tangent_of(n):
    """A unit vector across n."""
    t = (0.0, n[2], -n[1]) if abs(n[0]) < 0.7 else (-n[2], 0.0, n[0])
    return scale3(1.0 / dot3(t, t) ** 0.5, t)


@inline
def turn_with(g, R, m, y, reach):
    """R S R^T y: what the support point along ``m`` (body frame) does as the direction turns along y (world); ``reach`` as for ``bend``."""
    return mat_vec(R, bend(g, m, mat_t_vec(R, y), reach))


@inline
def pull_end(g, corners, geometry_bar, pose_bar, R, m, s, more, bar, reach):
    """The support point s (body frame) along ``m`` at a fixed direction in the world, with a bar (world); ``more``: the way from it along a straight part."""
    local, p = mat_t_vec(R, bar), add3(s, more)
    add_to3(pose_bar.x, 1.0, bar)
    add_to3(pose_bar.phi, 1.0, add3(cross3(p, local), cross3(bend(g, m, local, reach), m)))
    if g.form == CONE:
        pull_own_point(g, geometry_bar, p, local)
    else:
        pull_support(g, corners, geometry_bar, m, local)


@inline
def pull_line(g, geometry_bar, R, m, z):
    """The direction of a straight part of a shape by its sizes, with a bar (world): that of a cone's side, from its rim to its tip."""
    if g.form == CONE:
        axis, rim = load3(g.axis), rim_point(g, m)
        side = sub3(scale3((TIP - BASE) * g.half, axis), rim)
        weight = scale3(1.0 / dot3(side, side) ** 0.5, mat_t_vec(R, z))
        geometry_bar.half += (TIP - BASE) * dot3(axis, weight)
        geometry_bar.radius -= dot3(rim, weight) / g.radius


@kernel
def straight_parts(ga, gb, corners, xa, Ra, xb, Rb, n):
    """What is straight across n where two shapes meet: of which shapes and along which directions (as in ``pull_smooth``), with vectors across the other one;
    the support points of both (body frames) and the ways from there to where they meet (world); the vector between the points and its length along n.
    """
    ma, mb = mat_t_vec(Ra, neg3(n)), mat_t_vec(Rb, n)
    sa, sb = core_support(ga, corners, ma), core_support(gb, corners, mb)
    level = LEVEL * (ga.outer + gb.outer)
    of_a, la = straight_part(ga, corners, Ra, neg3(n), level)
    of_b, lb = straight_part(gb, corners, Rb, n, level)
    w = add3(sub3(xa, xb), sub3(mat_vec(Ra, sa), mat_vec(Rb, sb)))
    f = dot3(n, w)
    # straight directions across n: of which shape (1: a, -1: b), and which
    first, second = 0.0, 0.0
    l1, l2 = n, n
    if of_a == 2 or of_b == 2:
        first = second = 1.0 if of_a == 2 else -1.0
        l1 = tangent_of(n)
        l2 = cross3(n, l1)
    elif of_a == 1 or of_b == 1:
        first = 1.0 if of_a == 1 else -1.0
        l1 = la if of_a == 1 else lb
        across = cross3(la, lb)
        if of_a == 1 and of_b == 1 and dot3(across, across) > PARALLEL * PARALLEL:
            second = -1.0
            l2 = lb
    # the part of the way along them, which w does not have
    more_a, more_b = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    c1, c2 = cross3(n, l2), cross3(n, l1)
    if second == 0.0 and first != 0.0:
        c1 = l1
    if first != 0.0:
        way = scale3(-dot3(w, c1) / dot3(l1, c1), l1)
        more_a, more_b = (way, more_b) if first > 0.0 else (more_a, neg3(way))
    if second != 0.0:
        way = scale3(-dot3(w, c2) / dot3(l2, c2), l2)
        more_a, more_b = (add3(more_a, way), more_b) if second > 0.0 else (more_a, sub3(more_b, way))
    return of_a, of_b, first, second, l1, l2, c1, c2, sa, sb, more_a, more_b, f


@inline
def pull_distance(ga, gb, corners, bar_a, bar_b, weight, xa, Ra, xb, Rb, n):
    """The distance of two shapes along n, weighted, by their sizes: on the side of a cone it is that of where they meet."""
    _, _, _, _, _, _, _, _, sa, sb, more_a, more_b, _ = straight_parts(ga, gb, corners, xa, Ra, xb, Rb, n)
    ma, mb = mat_t_vec(Ra, neg3(n)), mat_t_vec(Rb, n)
    if ga.form == CONE:
        pull_own_point(ga, bar_a, add3(sa, mat_t_vec(Ra, more_a)), scale3(-weight, ma))
    else:
        pull_top(ga, corners, bar_a, ma, -weight)
    if gb.form == CONE:
        pull_own_point(gb, bar_b, add3(sb, mat_t_vec(Rb, more_b)), scale3(-weight, mb))
    else:
        pull_top(gb, corners, bar_b, mb, -weight)


@kernel
def pull_smooth(contact, shapes, geometry_bars, xa, Ra, xb, Rb, n, n_bar, p_bar, bar_a, bar_b):
    """Normal and point (world), with bars, by the poses of both bodies and the sizes of both shapes."""
    ga, gb = shapes.geometries[contact.first], shapes.geometries[contact.second]
    corners = shapes.corners
    ma, mb = mat_t_vec(Ra, neg3(n)), mat_t_vec(Rb, n)
    of_a, of_b, first, second, l1, l2, c1, c2, sa, sb, more_a, more_b, f = straight_parts(ga, gb, corners, xa, Ra, xb, Rb, n)
    reach_a, reach_b = reach_of(ga, add3(sa, mat_t_vec(Ra, more_a))), reach_of(gb, add3(sb, mat_t_vec(Rb, more_b)))
    # the point lies on a, or on b where only a has a straight part there
    on_a = of_a == 0 or of_b != 0
    if on_a:
        n_bar = sub3(n_bar, add3(turn_with(ga, Ra, ma, p_bar, reach_a), scale3(ga.skin, p_bar)))
        geometry_bars[contact.first].radius -= dot3(n, p_bar) if ga.skin > 0.0 else 0.0
    else:
        n_bar = add3(n_bar, add3(turn_with(gb, Rb, mb, p_bar, reach_b), scale3(gb.skin, p_bar)))
    # weights of w = f n
    y = (0.0, 0.0, 0.0)
    if first == 0.0:
        t = tangent_of(n)
        u = cross3(n, t)
        St = add3(add3(turn_with(ga, Ra, ma, t, reach_a), turn_with(gb, Rb, mb, t, reach_b)), scale3(f, t))
        Su = add3(add3(turn_with(ga, Ra, ma, u, reach_a), turn_with(gb, Rb, mb, u, reach_b)), scale3(f, u))
        tt, tu, uu = dot3(t, St), dot3(t, Su), dot3(u, Su)
        nt, nu = dot3(n_bar, t), dot3(n_bar, u)
        det = tt * uu - tu * tu
        y = add3(scale3((uu * nt - tu * nu) / det, t), scale3((tt * nu - tu * nt) / det, u))
    elif second == 0.0:
        t = cross3(n, l1)
        St = add3(add3(turn_with(ga, Ra, ma, t, reach_a), turn_with(gb, Rb, mb, t, reach_b)), scale3(f, t))
        y = scale3(dot3(n_bar, t) / dot3(t, St), t)
    elif first != second:  # the way along a's line is part of the point
        y = scale3(-dot3(l1, p_bar) / dot3(l1, c1), c1)
    # weights of n . l = 0: what is left of the bars
    left = sub3(add3(add3(turn_with(ga, Ra, ma, y, reach_a), turn_with(gb, Rb, mb, y, reach_b)), scale3(f, y)), n_bar)
    z1, z2 = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    if first != 0.0:
        z1 = scale3(dot3(left, c1) / dot3(l1, c1), n)
    if second != 0.0:
        z2 = scale3(dot3(left, c2) / dot3(l2, c2), n)
    for k in range(2):
        owner, line, z = (first, l1, z1) if k == 0 else (second, l2, z2)
        if owner > 0.0:
            add_to3(bar_a.phi, 1.0, cross3(mat_t_vec(Ra, line), mat_t_vec(Ra, z)))
            if of_a == 1:
                pull_line(ga, geometry_bars[contact.first], Ra, ma, z)
        elif owner < 0.0:
            add_to3(bar_b.phi, 1.0, cross3(mat_t_vec(Rb, line), mat_t_vec(Rb, z)))
            if of_b == 1:
                pull_line(gb, geometry_bars[contact.second], Rb, mb, z)
    on, off = (p_bar, (0.0, 0.0, 0.0)) if on_a else ((0.0, 0.0, 0.0), p_bar)
    pull_end(ga, corners, geometry_bars[contact.first], bar_a, Ra, ma, sa, mat_t_vec(Ra, more_a), add3(y, on), reach_a)
    pull_end(gb, corners, geometry_bars[contact.second], bar_b, Rb, mb, sb, mat_t_vec(Rb, more_b), sub3(off, y), reach_b)
