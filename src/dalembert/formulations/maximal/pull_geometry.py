"""Transposed derivatives of a contact's geometry (``contact.geometry``): gap, normal, point and tangents by poses and features.

Bars of the bodies' poses are records with ``x`` (world) and ``phi`` (body-frame rotation); those of features are in the bodies' frames.
"""
from __future__ import annotations

from math import sqrt

from dalembert.contact.geometry import PLAIN, grain_tangents
from dalembert.contact.records import BALL_SUPPORT, CIRCLE_SUPPORT, EDGES, FIELD, FLATNESS, LINE, PLANE, SMOOTH
from dalembert.contact.terrain import nearest_on_terrain
from dalembert.formulations.maximal.pull_joints import add_to3
from dalembert.formulations.maximal.pull_smooth import pull_distance, pull_smooth
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import add3, cross3, dot3, load3, load9, mat_t_vec, mat_vec, scale3, sub3

#: step (m) of fourth-order differences of a terrain's normal
STEP = 1e-4


@inline
def pull_point(pose_x, pose_phi, point_bar, R, point, bar):
    """A point of a body, x + R p, with a bar in the world."""
    local = mat_t_vec(R, bar)
    add_to3(pose_x, 1.0, bar)
    add_to3(pose_phi, 1.0, cross3(point, local))
    add_to3(point_bar, 1.0, local)


@inline
def pull_vector(pose_phi, vector_bar, R, vector, bar):
    """A direction of a body, R v, with a bar in the world."""
    local = mat_t_vec(R, bar)
    add_to3(pose_phi, 1.0, cross3(vector, local))
    add_to3(vector_bar, 1.0, local)


@kernel
def pull_gap(contact, own, shapes, geometry_bars, weight, n, xa, Ra, xb, Rb):
    """Features of a contact by its gap, weighted, at a pose with normal ``n``; what poses have of it are the rows of its gradient."""
    if contact.kind == SMOOTH:
        ga, gb = shapes.geometries[contact.first], shapes.geometries[contact.second]
        pull_distance(ga, gb, shapes.corners, geometry_bars[contact.first], geometry_bars[contact.second], weight, xa, Ra, xb, Rb, n)
        return
    local = mat_t_vec(Ra, n)
    add_to3(own.point, weight, local)
    if contact.kind == PLANE:
        own.offset -= weight
        if contact.support == BALL_SUPPORT:
            own.radius -= weight
        elif contact.support == CIRCLE_SUPPORT:
            along = dot3(local, load3(contact.axis))
            own.radius -= weight * sqrt(max(1.0 - along * along, 0.0) + FLATNESS * FLATNESS)
        else:
            e, turned = load3(contact.semi), mat_t_vec(load9(contact.frame), local)
            scaled = (e[0] * turned[0], e[1] * turned[1], e[2] * turned[2])
            l = sqrt(dot3(scaled, scaled))
            for c in range(3):
                own.semi[c] -= weight * scaled[c] * turned[c] / l
        return
    own.radius -= weight
    if contact.kind != FIELD:
        own.radius_b -= weight
        add_to3(own.point_b, -weight, mat_t_vec(Rb, n))


@inline
def pull_tangents(n, t_bar, u_bar):
    """Bar of a normal from those of its two tangents (``contact.geometry.tangents``)."""
    first = abs(n[0]) < 0.7
    raw = (0.0, n[2], -n[1]) if first else (-n[2], 0.0, n[0])
    length = sqrt(dot3(raw, raw))
    t = scale3(1.0 / length, raw)
    n_bar = cross3(t, u_bar)
    whole = add3(t_bar, cross3(u_bar, n))
    r = scale3(1.0 / length, sub3(whole, scale3(dot3(t, whole), t)))
    if first:
        return (n_bar[0], n_bar[1] - r[2], n_bar[2] + r[1])
    return (n_bar[0] + r[2], n_bar[1], n_bar[2] - r[0])


@inline
def pull_friction_axes(contact, own, n, t_bar, u_bar, Ra, Rb, bar_a, bar_b):
    """Bar of a normal from those of the axes of friction (``contact.geometry.friction_axes``)."""
    if contact.grain_of == 0:
        return pull_tangents(n, t_bar, u_bar)
    on_a = contact.grain_of == contact.a + 1
    R, grain = Ra if on_a else Rb, load3(contact.grain)
    g = mat_vec(R, grain)
    t, u = grain_tangents(n, g)
    own.share[0] += dot3(t, t_bar)
    own.share[1] += dot3(u, u_bar)
    t_bar, u_bar = scale3(contact.share[0], t_bar), scale3(contact.share[1], u_bar)
    across = cross3(n, g)
    size = sqrt(dot3(across, across))
    if size < PLAIN:
        return pull_tangents(n, t_bar, u_bar)
    whole = add3(u_bar, cross3(n, t_bar))
    w_bar = scale3(1.0 / size, sub3(whole, scale3(dot3(u, whole), u)))
    phi = cross3(grain, mat_t_vec(R, cross3(w_bar, n)))
    add_to3(bar_a.phi if on_a else bar_b.phi, 1.0, phi)
    return add3(cross3(t_bar, u), cross3(g, w_bar))


@kernel
def pull_frame(contact, own, scene, geometry_bars, xa, Ra, xb, Rb, n, n_bar, p_bar, bar_a, bar_b):
    """Normal and point of a contact (world), with bars, by the poses of both bodies and its features."""
    if contact.kind == SMOOTH:
        pull_smooth(contact, scene.shapes, geometry_bars, xa, Ra, xb, Rb, n, n_bar, p_bar, bar_a, bar_b)
        return
    point, radius = load3(contact.point), contact.radius
    if contact.kind == PLANE:
        if contact.support == BALL_SUPPORT:
            own.radius -= dot3(n, p_bar)
            n_bar = sub3(n_bar, scale3(radius, p_bar))
        elif contact.support == CIRCLE_SUPPORT:
            axis = load3(contact.axis)
            a = mat_vec(Ra, axis)
            m = sub3(n, scale3(dot3(n, a), a))
            l = sqrt(dot3(m, m) + FLATNESS * FLATNESS)
            own.radius -= dot3(m, p_bar) / l
            q = scale3(-radius, p_bar)
            m_bar = scale3(1.0 / l, sub3(q, scale3(dot3(m, q) / (l * l), m)))
            along = dot3(a, m_bar)
            n_bar = add3(n_bar, sub3(m_bar, scale3(along, a)))
            pull_vector(bar_a.phi, own.axis, Ra, axis, sub3(scale3(-dot3(n, a), m_bar), scale3(along, n)))
        else:
            frame, e = load9(contact.frame), load3(contact.semi)
            nb = mat_t_vec(Ra, n)
            local = mat_t_vec(frame, nb)
            y = (e[0] * e[0] * local[0], e[1] * e[1] * local[1], e[2] * e[2] * local[2])
            l = sqrt(dot3(y, local))
            P = mat_t_vec(frame, mat_t_vec(Ra, p_bar))
            l_bar = dot3(P, y) / (l * l)
            local_bar = (
                e[0] * e[0] * (l_bar * local[0] - P[0]) / l, e[1] * e[1] * (l_bar * local[1] - P[1]) / l, e[2] * e[2] * (l_bar * local[2] - P[2]) / l,
            )
            for c in range(3):
                own.semi[c] += e[c] * local[c] * (l_bar * local[c] - 2.0 * P[c]) / l
            w = mat_vec(frame, local_bar)
            n_bar = add3(n_bar, mat_vec(Ra, w))
            d = mat_vec(frame, scale3(-1.0 / l, y))
            turned = add3(cross3(w, nb), cross3(d, mat_t_vec(Ra, p_bar)))
            add_to3(bar_a.phi, 1.0, turned)
            add_to3(own.turn, 1.0, turned)
        pull_point(bar_a.x, bar_a.phi, own.point, Ra, point, p_bar)
        add_to3(bar_b.phi, 1.0, cross3(load3(contact.normal), mat_t_vec(Rb, n_bar)))
        return
    centre = add3(xa, mat_vec(Ra, point))
    own.radius -= dot3(n, p_bar)
    n_bar = sub3(n_bar, scale3(radius, p_bar))
    if contact.kind == FIELD:
        turned = terrain_slope(scene, centre, n_bar)
        pull_point(bar_a.x, bar_a.phi, own.point, Ra, point, add3(p_bar, turned))
        return
    d = sub3(centre, add3(xb, mat_vec(Rb, load3(contact.point_b))))
    c_bar = p_bar
    if contact.kind == EDGES:
        axis, axis_b = load3(contact.axis), load3(contact.axis_b)
        u, w = mat_vec(Ra, axis), mat_vec(Rb, axis_b)
        N = cross3(u, w)
        area = dot3(N, N)
        wd = cross3(w, d)
        along = dot3(wd, N) / area
        along_bar = dot3(u, p_bar)
        A_bar = along_bar / area
        N_bar = scale3(contact.side / sqrt(area), sub3(n_bar, scale3(dot3(n, n_bar), n)))
        N_bar = add3(N_bar, sub3(scale3(A_bar, wd), scale3(2.0 * along_bar * along / area, N)))
        X = scale3(A_bar, N)
        d_bar = cross3(X, w)
        pull_vector(bar_a.phi, own.axis, Ra, axis, add3(scale3(along, p_bar), cross3(w, N_bar)))
        pull_vector(bar_b.phi, own.axis_b, Rb, axis_b, add3(cross3(d, X), cross3(N_bar, u)))
    else:
        raw = d
        if contact.kind == LINE:
            axis_b = load3(contact.axis_b)
            u = mat_vec(Rb, axis_b)
            d = sub3(d, scale3(dot3(d, u), u))
        d_bar = scale3(1.0 / sqrt(dot3(d, d)), sub3(n_bar, scale3(dot3(n, n_bar), n)))
        if contact.kind == LINE:
            along = dot3(u, d_bar)
            pull_vector(bar_b.phi, own.axis_b, Rb, axis_b, sub3(scale3(-dot3(raw, u), d_bar), scale3(along, raw)))
            d_bar = sub3(d_bar, scale3(along, u))
    pull_point(bar_a.x, bar_a.phi, own.point, Ra, point, add3(c_bar, d_bar))
    pull_point(bar_b.x, bar_b.phi, own.point_b, Rb, load3(contact.point_b), scale3(-1.0, d_bar))


@kernel
def terrain_slope(scene, centre, n_bar):
    """Bar of a ball's centre from that of the terrain's normal below it (differenced)."""
    total = (0.0, 0.0, 0.0)
    for k in range(4):
        size = (1.0, -1.0, 2.0, -2.0)[k] * STEP
        share = (8.0, -8.0, -1.0, 1.0)[k] / (12.0 * STEP)
        slopes = (0.0, 0.0, 0.0)
        for c in range(3):
            moved = (centre[0] + (size if c == 0 else 0.0), centre[1] + (size if c == 1 else 0.0), centre[2] + (size if c == 2 else 0.0))
            q = nearest_on_terrain(scene.heights, scene.terrain, moved)
            value = share * dot3(n_bar, (q[3], q[4], q[5]))
            slopes = (slopes[0] + (value if c == 0 else 0.0), slopes[1] + (value if c == 1 else 0.0), slopes[2] + (value if c == 2 else 0.0))
        total = add3(total, slopes)
    return total
