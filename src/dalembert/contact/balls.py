"""Features of round shapes, a ball or a ball swept along a segment: against one another, and against polyhedra."""
from __future__ import annotations

from math import sqrt

from dalembert.contact.placing import body_point, place, world_point
from dalembert.contact.records import BALLS, EDGES, LINE, PLANE
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import add3, cross3, dot3, load3, load9, mat_t_vec, mat_vec, scale3, store3, sub3


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
def cross(bodies, a, pa, ua, half_a, b, pb, ub, half_b):
    """Whether the nearest points of two lines lie within both segments, their distance, and its direction (world) from b to a."""
    u = mat_vec(load9(bodies[a].R), ua)
    w = mat_vec(load9(bodies[b].R), ub)
    d = sub3(world_point(bodies[a], pa), world_point(bodies[b], pb))
    n = cross3(u, w)
    area = dot3(n, n)
    if area < 1e-4:
        return False, 0.0, n
    along_a = dot3(cross3(w, d), n) / area
    along_b = dot3(cross3(u, d), n) / area
    if abs(along_a) > half_a or abs(along_b) > half_b:
        return False, 0.0, n
    distance = dot3(n, d) / sqrt(area)
    return True, abs(distance), scale3((1.0 if distance > 0.0 else -1.0) / sqrt(area), n)


@kernel
def put_crossing(contact, bodies, a, pa, ua, half_a, ra, b, pb, ub, half_b, rb):
    """Make a contact of two lines if their nearest points lie within both segments."""
    crossing, _, n = cross(bodies, a, pa, ua, half_a, b, pb, ub, half_b)
    if not crossing:
        return
    place(contact, EDGES, a, b, pa, ra)
    store3(contact.axis, ua)
    store3(contact.point_b, pb)
    store3(contact.axis_b, ub)
    contact.radius_b = rb
    contact.side = 1.0
    contact.side = 1.0 if dot3(n, crossing_normal(contact, bodies)) > 0.0 else -1.0


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
    """A round geometry against a polyhedron: its balls, where its axis crosses the nearest edges, and the two nearest corners beside its axis."""
    pa = load3(ga.position)
    if ga.half == 0.0:
        ball_on_polyhedron(contacts[first], bodies, ga.body, pa, ga.radius, gb, corners, planes, loops, starts)
        return
    axis = load3(ga.axis)
    for k in range(2):
        end = add3(pa, scale3(ga.half if k == 1 else -ga.half, axis))
        ball_on_polyhedron(contacts[first + k], bodies, ga.body, end, ga.radius, gb, corners, planes, loops, starts)
    for k in range(2, 7):
        contacts[first + k].used = 0
    for e in range(gb.first_edge, gb.first_edge + gb.edges):
        # the slot of the crossing that is furthest apart, if none is free
        slot = first + 2
        worst = -1e300
        for k in range(2, 5):
            apart = 1e300 if contacts[first + k].used == 0 else contacts[first + k].gap0
            if apart > worst:
                worst = apart
                slot = first + k
        c0 = load3(corners[edges[e, 0]])
        c1 = load3(corners[edges[e, 1]])
        d = sub3(c1, c0)
        length = sqrt(dot3(d, d))
        middle = scale3(0.5, add3(c0, c1))
        crossing, gap, n = cross(bodies, ga.body, pa, axis, ga.half, gb.body, middle, scale3(1.0 / length, d), 0.5 * length)
        # The axis must lie outside the polyhedron there: the normal points away from its middle.
        if crossing and dot3(mat_t_vec(load9(bodies[gb.body].R), n), sub3(middle, load3(gb.position))) > 0.0 and gap < min(worst, 2.0 * ga.radius + length):
            put_crossing(contacts[slot], bodies, ga.body, pa, axis, ga.half, ga.radius, gb.body, middle, scale3(1.0 / length, d), 0.5 * length, 0.0)
            contacts[slot].gap0 = gap
    for k in range(gb.first_corner, gb.first_corner + gb.corners):
        corner = load3(corners[k])
        p = body_point(bodies[ga.body], world_point(bodies[gb.body], corner))
        d = sub3(p, pa)
        along = dot3(d, axis)
        d = sub3(d, scale3(along, axis))
        gap = sqrt(dot3(d, d))
        if abs(along) > ga.half:
            continue
        slot = first + 5
        if contacts[slot].used != 0 and (contacts[slot + 1].used == 0 or contacts[slot + 1].gap0 > contacts[slot].gap0):
            slot += 1
        if contacts[slot].used == 0 or gap < contacts[slot].gap0:
            place(contacts[slot], LINE, gb.body, ga.body, corner, 0.0)
            store3(contacts[slot].point_b, pa)
            store3(contacts[slot].axis_b, axis)
            contacts[slot].radius_b = ga.radius
            contacts[slot].gap0 = gap


@inline
def crossing_normal(contact, bodies):
    n = cross3(mat_vec(load9(bodies[contact.a].R), load3(contact.axis)), mat_vec(load9(bodies[contact.b].R), load3(contact.axis_b)))
    return scale3(contact.side / sqrt(dot3(n, n)), n)
