"""The narrow phase: for every near pair of shapes, the features by which they may touch during the coming step.

Shapes are round (a ball or a ball swept along a segment) or polyhedra. Two polyhedra are separated by the face or the
pair of edges with the largest distance (separating axes); a face gives a manifold of points by clipping, enough to stand on.
Pairs of other shapes get their features from outside (see ``general``).
"""
from __future__ import annotations

from math import sqrt

from dalembert.contact.records import BALL_SUPPORT, BALLS, EDGES, LINE, PLANE
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import add3, cross3, dot3, load3, load9, mat_t_vec, mat_vec, neg3, scale3, store3, sub3

# Kinds of geometries.
ROUND, POLYHEDRON, GENERAL = range(3)
#: a separating pair of edges must be better than a face by this part of the shapes' sizes: faces stand, edges do not
FACE_BIAS = 1e-3


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
    if contact.a != a:
        contact.block_na, contact.block_nb = contact.block_nb, contact.block_na
        contact.block_an, contact.block_bn = contact.block_bn, contact.block_an
    contact.kind = kind
    contact.support = BALL_SUPPORT
    contact.a = a
    contact.b = b
    store3(contact.point, point)
    contact.radius = radius


@inline
def clamp(value, low, high):
    return min(max(value, low), high)


@kernel
def ball_on_segment(contact, bodies, a, point, radius, gb):
    """A ball of body a (``point`` in its frame) against a round geometry: against the side, or an end."""
    b = gb.body
    centre = body_point(bodies[b], world_point(bodies[a], point))
    axis = load3(gb.axis)
    along = dot3(sub3(centre, load3(gb.position)), axis)
    if gb.half > 0.0 and abs(along) < gb.half:
        place(contact, LINE, a, b, point, radius)
        store3(contact.point_b, load3(gb.position))
        store3(contact.axis_b, axis)
    else:
        place(contact, BALLS, a, b, point, radius)
        store3(contact.point_b, add3(load3(gb.position), scale3(clamp(along, -gb.half, gb.half), axis)))
    contact.radius_b = gb.radius


@kernel
def round_round(contacts, first, bodies, ga, gb):
    """Two round geometries: centre on centre, the ends of each against the other, and where their axes cross."""
    pa = load3(ga.position)
    if ga.half == 0.0:
        ball_on_segment(contacts[first], bodies, ga.body, pa, ga.radius, gb)
        return
    if gb.half == 0.0:
        ball_on_segment(contacts[first], bodies, gb.body, load3(gb.position), gb.radius, ga)
        return
    slot = first
    for sign in (-1.0, 1.0):
        ball_on_segment(contacts[slot], bodies, ga.body, add3(pa, scale3(sign * ga.half, load3(ga.axis))), ga.radius, gb)
        ball_on_segment(contacts[slot + 1], bodies, gb.body, add3(load3(gb.position), scale3(sign * gb.half, load3(gb.axis))), gb.radius, ga)
        slot += 2
    contact = contacts[slot]
    contact.used = 0
    put_crossing(contact, bodies, ga.body, pa, load3(ga.axis), ga.half, ga.radius, gb.body, load3(gb.position), load3(gb.axis), gb.half, gb.radius)


@kernel
def put_crossing(contact, bodies, a, pa, ua, half_a, ra, b, pb, ub, half_b, rb):
    """Make a contact of two lines if their nearest points lie within both segments; returns whether, and the distance."""
    u = mat_vec(load9(bodies[a].R), ua)
    w = mat_vec(load9(bodies[b].R), ub)
    d = sub3(world_point(bodies[a], pa), world_point(bodies[b], pb))
    n = cross3(u, w)
    area = dot3(n, n)
    if area < 1e-4:
        return False, 0.0
    along_a = dot3(cross3(w, d), n) / area
    along_b = dot3(cross3(u, d), n) / area
    if abs(along_a) > half_a or abs(along_b) > half_b:
        return False, 0.0
    distance = dot3(n, d) / sqrt(area)
    place(contact, EDGES, a, b, pa, ra)
    store3(contact.axis, ua)
    store3(contact.point_b, pb)
    store3(contact.axis_b, ub)
    contact.radius_b = rb
    contact.side = 1.0 if distance > 0.0 else -1.0
    return True, abs(distance) - ra - rb


@kernel
def ball_on_polyhedron(contact, bodies, a, point, radius, gb, corners, planes, loops, starts):
    """A ball of body a against a polyhedron: its nearest face, edge or corner."""
    b = gb.body
    p = body_point(bodies[b], world_point(bodies[a], point))
    best = -1e300
    face = gb.first_face
    for f in range(gb.first_face, gb.first_face + gb.faces):
        height = planes[f, 0] * p[0] + planes[f, 1] * p[1] + planes[f, 2] * p[2] - planes[f, 3]
        if height > best:
            best = height
            face = f
    n = (planes[face, 0], planes[face, 1], planes[face, 2])
    place(contact, PLANE, a, b, point, radius)
    store3(contact.normal, n)
    contact.offset = planes[face, 3]
    if best <= 0.0:
        return
    # Outside: the nearest point of all faces' rims, unless the foot of the perpendicular lies within a face.
    nearest = 1e300
    for f in range(gb.first_face, gb.first_face + gb.faces):
        m = (planes[f, 0], planes[f, 1], planes[f, 2])
        height = dot3(m, p) - planes[f, 3]
        if height <= 0.0:
            continue
        inside = True
        count = starts[f + 1] - starts[f]
        for k in range(count):
            c0 = load3(corners[loops[starts[f] + k]])
            c1 = load3(corners[loops[starts[f] + (k + 1) % count]])
            e = sub3(c1, c0)
            d = sub3(p, c0)
            if dot3(cross3(m, e), d) < 0.0:
                inside = False
            length2 = dot3(e, e)
            t = dot3(d, e) / length2
            q = sub3(d, scale3(clamp(t, 0.0, 1.0), e))
            distance = dot3(q, q)
            if distance < nearest * (1.0 - 1e-12):
                nearest = distance
                if 0.0 < t < 1.0:
                    contact.kind = LINE
                    store3(contact.point_b, c0)
                    store3(contact.axis_b, scale3(1.0 / sqrt(length2), e))
                else:
                    contact.kind = BALLS
                    store3(contact.point_b, c0 if t <= 0.0 else c1)
                contact.radius_b = 0.0
        if inside:
            contact.kind = PLANE
            store3(contact.normal, m)
            contact.offset = planes[f, 3]
            return


@kernel
def round_polyhedron(contacts, first, bodies, ga, gb, corners, planes, loops, starts, edges):
    """A round geometry against a polyhedron: its balls, and where its axis crosses the polyhedron's two nearest edges."""
    pa = load3(ga.position)
    if ga.half == 0.0:
        ball_on_polyhedron(contacts[first], bodies, ga.body, pa, ga.radius, gb, corners, planes, loops, starts)
        return
    axis = load3(ga.axis)
    for k in range(2):
        end = add3(pa, scale3(ga.half if k == 1 else -ga.half, axis))
        ball_on_polyhedron(contacts[first + k], bodies, ga.body, end, ga.radius, gb, corners, planes, loops, starts)
    slot = first + 2
    for k in range(2, 6):
        contacts[first + k].used = 0
    for e in range(gb.first_edge, gb.first_edge + gb.edges):
        if slot == first + 6:
            break
        c0 = load3(corners[edges[e, 0]])
        c1 = load3(corners[edges[e, 1]])
        d = sub3(c1, c0)
        length = sqrt(dot3(d, d))
        middle = scale3(0.5, add3(c0, c1))
        crossing, gap = put_crossing(
            contacts[slot], bodies, ga.body, pa, axis, ga.half, ga.radius, gb.body, middle, scale3(1.0 / length, d), 0.5 * length, 0.0
        )
        if crossing:
            # The axis must lie outside the polyhedron there: the normal points away from its middle.
            n = mat_t_vec(load9(bodies[gb.body].R), crossing_normal(contacts[slot], bodies))
            if dot3(n, sub3(middle, load3(gb.position))) > 0.0 and gap < ga.radius + length:
                slot += 1
            else:
                contacts[slot].used = 0


@inline
def crossing_normal(contact, bodies):
    n = cross3(mat_vec(load9(bodies[contact.a].R), load3(contact.axis)), mat_vec(load9(bodies[contact.b].R), load3(contact.axis_b)))
    return scale3(contact.side / sqrt(dot3(n, n)), n)


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
def best_face(bodies, ga, gb, corners, planes):
    """Face of b with the largest distance to all of a: (distance, face)."""
    A = bodies[ga.body]
    B = bodies[gb.body]
    best = -1e300
    face = gb.first_face
    shift = sub3(load3(A.x), load3(B.x))
    for f in range(gb.first_face, gb.first_face + gb.faces):
        n = mat_vec(load9(B.R), (planes[f, 0], planes[f, 1], planes[f, 2]))
        low, _ = support_along(corners, ga, mat_t_vec(load9(A.R), n))
        distance = low + dot3(n, shift) - planes[f, 3]
        if distance > best:
            best = distance
            face = f
    return best, face


@kernel
def best_edges(bodies, ga, gb, corners, edges):
    """Pair of edges with the largest distance along their common normal: (distance, edge of a, edge of b, side)."""
    A = bodies[ga.body]
    B = bodies[gb.body]
    RA = load9(A.R)
    RB = load9(B.R)
    shift = sub3(load3(A.x), load3(B.x))
    best = -1e300
    pick_a = -1
    pick_b = -1
    side = 1.0
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
            distance = dot3(n, sub3(add3(shift, pw), mat_vec(RB, q)))
            if distance < 0.0:
                n = neg3(n)
            # Of all edge pairs only those count whose common normal has all of a above and all of b below.
            sign = 1.0 if distance >= 0.0 else -1.0
            distance = abs(distance)
            if distance <= best:
                continue
            low, _ = support_along(corners, ga, mat_t_vec(RA, n))
            _, top = support_along(corners, gb, mat_t_vec(RB, n))
            true = low + dot3(n, shift) - top
            if true > best and true > distance - 1e-9:
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


@kernel
def polyhedra(contacts, first, slots, bodies, ga, gb, corners, planes, loops, starts, edges, work):
    """Two polyhedra: face on face or corner on face (a manifold), or edge on edge (one point)."""
    on_b, face_b = best_face(bodies, ga, gb, corners, planes)
    on_a, face_a = best_face(bodies, gb, ga, corners, planes)
    bias = FACE_BIAS * min(ga.outer, gb.outer)
    flat = max(on_a, on_b)
    if ga.edges * gb.edges <= 4000:
        crossing, i, j, side = best_edges(bodies, ga, gb, corners, edges)
        if crossing > flat + (bias if flat < bias else 0.0):
            contact = contacts[first]
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
            for s in range(1, slots):
                contacts[first + s].used = 0
            return
    if on_b >= on_a - bias:
        face_contacts(contacts, first, slots, bodies, ga, gb, face_b, corners, planes, loops, starts, work)
    else:
        face_contacts(contacts, first, slots, bodies, gb, ga, face_a, corners, planes, loops, starts, work)


@kernel
def find_features(bodies, contacts, shapes):
    """Find the features of all near pairs at the knot and write them into the pairs' contacts."""
    pairs, geometries, corners, planes, loops, starts, edges, work = shapes
    for k in range(pairs.shape[0]):
        pair = pairs[k]
        if pair.general != 0:
            continue
        ga = geometries[pair.i]
        gb = geometries[pair.j]
        d = sub3(world_point(bodies[ga.body], load3(ga.position)), world_point(bodies[gb.body], load3(gb.position)))
        reach = ga.outer + gb.outer + pair.margin
        if dot3(d, d) > reach * reach:
            for s in range(pair.first, pair.first + pair.slots):
                contacts[s].used = 0
            continue
        if ga.form == ROUND and gb.form == ROUND:
            round_round(contacts, pair.first, bodies, ga, gb)
        elif ga.form == ROUND:
            round_polyhedron(contacts, pair.first, bodies, ga, gb, corners, planes, loops, starts, edges)
        else:
            polyhedra(contacts, pair.first, pair.slots, bodies, ga, gb, corners, planes, loops, starts, edges, work)
