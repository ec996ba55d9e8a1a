"""Features of two polyhedra: the face or the pair of edges along which they are furthest apart; on a face as many points as it takes to stand.
"""
from __future__ import annotations

from math import sqrt

from dalembert.contact.distance import local_distance
from dalembert.contact.placing import body_point, place, world_point
from dalembert.contact.polish import LEVEL
from dalembert.contact.records import EDGES, PLANE
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import add3, cross3, dot3, load3, load9, mat_t_vec, mat_vec, neg3, scale3, store3, sub3

#: a separating pair of edges must be better than a face by this part of the shapes' sizes: faces stand, edges do not
FACE_BIAS = 1e-3
#: pairs of edges from which on only those are looked at that lie across the direction between the shapes
MANY = 4000


@inline
def support_along(corners, g, n):
    """Largest and smallest height of a polyhedron's corners along ``n``, given in its body's frame."""
    top = -1e300
    low = 1e300
    for k in range(g.first_corner, g.first_corner + g.corners):
        h = corners[k, 0] * n[0] + corners[k, 1] * n[1] + corners[k, 2] * n[2]
        top = max(top, h)
        low = min(low, h)
    return low, top


@kernel
def best_face(ga, gb, corners, planes, RA, RB, d):
    """Face of b with the largest distance to all of a: (distance, face). ``d`` = x_a - x_b."""
    best = -1e300
    face = gb.first_face
    for f in range(gb.first_face, gb.first_face + gb.faces):
        n = mat_vec(RB, (planes[f, 0], planes[f, 1], planes[f, 2]))
        low, _ = support_along(corners, ga, mat_t_vec(RA, n))
        distance = low + dot3(n, d) - planes[f, 3]
        if distance > best:
            best = distance
            face = f
    return best, face


@kernel
def edge_across(g, corners, edges, n, level):
    """The edge of a polyhedron that is higher along ``n`` (its body's frame) than all other corners by more than ``level`` (m), or -1."""
    _, top = support_along(corners, g, n)
    count = 0
    for k in range(g.first_corner, g.first_corner + g.corners):
        if corners[k, 0] * n[0] + corners[k, 1] * n[1] + corners[k, 2] * n[2] > top - level:
            count += 1
    if count != 2:
        return -1
    for e in range(g.first_edge, g.first_edge + g.edges):
        if dot3(n, load3(corners[edges[e, 0]])) > top - level and dot3(n, load3(corners[edges[e, 1]])) > top - level:
            return e
    return -1


@kernel
def edges_between(ga, gb, corners, edges, RA, RB, d, n, best, points):
    """``best_edges`` of shapes with many: those across the direction between the two that is found from ``n`` (world, from b to a) on."""
    _, n = local_distance(ga, gb, corners, RA, RB, d, n, points)
    level = LEVEL * (ga.outer + gb.outer)
    i = edge_across(ga, corners, edges, mat_t_vec(RA, neg3(n)), level)
    j = edge_across(gb, corners, edges, mat_t_vec(RB, n), level) if i >= 0 else -1
    if j < 0:
        return best, -1, -1, 1.0
    u = mat_vec(RA, sub3(load3(corners[edges[i, 1]]), load3(corners[edges[i, 0]])))
    w = mat_vec(RB, sub3(load3(corners[edges[j, 1]]), load3(corners[edges[j, 0]])))
    m = cross3(u, w)
    area = dot3(m, m)
    if area < 1e-6 * dot3(u, u) * dot3(w, w):
        return best, -1, -1, 1.0
    side = 1.0 if dot3(m, n) > 0.0 else -1.0
    m = scale3(side / sqrt(area), m)
    low, _ = support_along(corners, ga, mat_t_vec(RA, m))
    _, top = support_along(corners, gb, mat_t_vec(RB, m))
    distance = low + dot3(m, d) - top
    if distance <= best:
        return best, -1, -1, 1.0
    return distance, i, j, side


@kernel
def best_edges(ga, gb, corners, edges, RA, RB, d, n, best, points):
    """Pair of edges with the largest distance along their common normal: (distance, edge of a, edge of b, side). ``d`` = x_a - x_b.

    Edges -1 where none are further apart than ``best``. Overlaps are negative distances. ``n``: a direction (world) from b to a to begin with, ``points``
    (8, 3): room.
    """
    pick_a = -1
    pick_b = -1
    side = 1.0
    if ga.edges * gb.edges > MANY:
        return edges_between(ga, gb, corners, edges, RA, RB, d, n, best, points)
    for i in range(ga.first_edge, ga.first_edge + ga.edges):
        p = load3(corners[edges[i, 0]])
        u = mat_vec(RA, sub3(load3(corners[edges[i, 1]]), p))
        pw = mat_vec(RA, p)
        uu = dot3(u, u)
        for j in range(gb.first_edge, gb.first_edge + gb.edges):
            q = load3(corners[edges[j, 0]])
            w = mat_vec(RB, sub3(load3(corners[edges[j, 1]]), q))
            n = cross3(u, w)
            area = dot3(n, n)
            if area < 1e-6 * uu * dot3(w, w):
                continue
            n = scale3(1.0 / sqrt(area), n)
            distance = dot3(n, sub3(add3(d, pw), mat_vec(RB, q)))
            # Of all edge pairs only those count whose common normal has all of a above and all of b below.
            for k in range(2):
                sign = 1.0 if k == 0 else -1.0
                if sign * distance <= best:
                    continue
                m = scale3(sign, n)
                low, _ = support_along(corners, ga, mat_t_vec(RA, m))
                _, top = support_along(corners, gb, mat_t_vec(RB, m))
                true = low + dot3(m, d) - top
                if true > best and true > sign * distance - 1e-9:
                    best = true
                    pick_a = i
                    pick_b = j
                    side = sign
    return best, pick_a, pick_b, side


@kernel
def incident_face(bodies, ga, gb, face, planes):
    """Face of a that looks most against a face of b."""
    n = mat_t_vec(load9(bodies[ga.body].R), mat_vec(load9(bodies[gb.body].R), (planes[face, 0], planes[face, 1], planes[face, 2])))
    best = 1e300
    pick = ga.first_face
    for f in range(ga.first_face, ga.first_face + ga.faces):
        value = planes[f, 0] * n[0] + planes[f, 1] * n[1] + planes[f, 2] * n[2]
        if value < best:
            best = value
            pick = f
    return pick


@kernel
def clip(work, count, c0, e, m):
    """Clip a polygon (work[0], count points) to the inner side of an edge of a face with normal m; returns the new count."""
    inward = cross3(m, e)
    new = 0
    room = work.shape[1]
    for k in range(count):
        p = load3(work[0, k])
        q = load3(work[0, (k + 1) % count])
        hp = dot3(inward, sub3(p, c0))
        hq = dot3(inward, sub3(q, c0))
        if hp >= 0.0 and new < room:
            store3(work[1, new], p)
            new += 1
        if hp * hq < 0.0 and new < room:
            store3(work[1, new], add3(p, scale3(hp / (hp - hq), sub3(q, p))))
            new += 1
    for k in range(new):
        store3(work[0, k], load3(work[1, k]))
    return new


@kernel
def face_contacts(contacts, first, slots, bodies, ga, gb, face, corners, planes, loops, starts, work):
    """Contacts of a polyhedron a on a face of b: the part of a's facing side that lies over the face.

    Their ``axis`` is the normal of the facing side, in whose plane the points are; zero where nothing of it lies over the face.
    """
    A = bodies[ga.body]
    B = bodies[gb.body]
    m = (planes[face, 0], planes[face, 1], planes[face, 2])
    facing = incident_face(bodies, ga, gb, face, planes)
    count = starts[facing + 1] - starts[facing]
    count = min(count, work.shape[1])
    for k in range(count):
        store3(work[0, k], body_point(B, world_point(A, load3(corners[loops[starts[facing] + k]]))))
    rim = starts[face + 1] - starts[face]
    for k in range(rim):
        c0 = load3(corners[loops[starts[face] + k]])
        c1 = load3(corners[loops[starts[face] + (k + 1) % rim]])
        count = clip(work, count, c0, sub3(c1, c0), m)
        if count == 0:
            break
    f = (planes[facing, 0], planes[facing, 1], planes[facing, 2])
    if count == 0:
        # Nothing over the face: the lowest corner stands for all of a.
        f = (0.0, 0.0, 0.0)
        low = 1e300
        for k in range(ga.first_corner, ga.first_corner + ga.corners):
            p = body_point(B, world_point(A, load3(corners[k])))
            h = dot3(m, p)
            if h < low:
                low = h
                store3(work[0, 0], p)
        count = 1
    used = min(count, slots)
    for s in range(used):
        k = (s * count) // used
        contact = contacts[first + s]
        p = body_point(A, world_point(B, load3(work[0, k])))
        # what rounding takes out of the plane would decide how impulses are shared
        p = add3(p, scale3(planes[facing, 3] - dot3(f, p), f))
        place(contact, PLANE, ga.body, gb.body, p, 0.0)
        store3(contact.axis, f)
        store3(contact.normal, m)
        contact.offset = planes[face, 3]
    for s in range(used, slots):
        contacts[first + s].used = 0


@inline
def put_edges(contact, ga, gb, corners, edges, i, j, side):
    """An edge of a against one of b."""
    p = load3(corners[edges[i, 0]])
    u = sub3(load3(corners[edges[i, 1]]), p)
    q = load3(corners[edges[j, 0]])
    w = sub3(load3(corners[edges[j, 1]]), q)
    place(contact, EDGES, ga.body, gb.body, p, 0.0)
    store3(contact.axis, scale3(1.0 / sqrt(dot3(u, u)), u))
    store3(contact.point_b, q)
    store3(contact.axis_b, scale3(1.0 / sqrt(dot3(w, w)), w))
    contact.radius_b = 0.0
    contact.side = side


@kernel
def polyhedra(contacts, first, slots, bodies, ga, gb, corners, planes, loops, starts, edges, n, work):
    """Two polyhedra: face on face or corner on face (a manifold), or edge on edge (one point). ``n``: a direction (world) from b to a to begin with."""
    A = bodies[ga.body]
    B = bodies[gb.body]
    RA = load9(A.R)
    RB = load9(B.R)
    d = sub3(load3(A.x), load3(B.x))
    on_b, face_b = best_face(ga, gb, corners, planes, RA, RB, d)
    on_a, face_a = best_face(gb, ga, corners, planes, RB, RA, neg3(d))
    bias = FACE_BIAS * min(ga.outer, gb.outer)
    flat = max(on_a, on_b)
    _, i, j, side = best_edges(ga, gb, corners, edges, RA, RB, d, n, flat + (bias if flat < bias else 0.0), work[1])
    if i >= 0:
        put_edges(contacts[first], ga, gb, corners, edges, i, j, side)
        for s in range(first + 1, first + slots):
            contacts[s].used = 0
    elif on_b >= on_a - bias:
        face_contacts(contacts, first, slots, bodies, ga, gb, face_b, corners, planes, loops, starts, work)
    else:
        face_contacts(contacts, first, slots, bodies, gb, ga, face_a, corners, planes, loops, starts, work)


@kernel
def put_crossed(contact, ga, gb, corners, planes, edges, RA, RB, d, n, points):
    """The pair of edges along which two polyhedra are further apart than along any face; returns whether there is one."""
    flat = max(best_face(ga, gb, corners, planes, RA, RB, d)[0], best_face(gb, ga, corners, planes, RB, RA, neg3(d))[0])
    _, i, j, side = best_edges(ga, gb, corners, edges, RA, RB, d, n, flat, points)
    if i >= 0:
        put_edges(contact, ga, gb, corners, edges, i, j, side)
    return i >= 0
