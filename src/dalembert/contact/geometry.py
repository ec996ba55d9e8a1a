"""Gap, normal and point of a contact at a pose, and the rows that follow from them.

The gradient of every gap is that of two material points along the normal (the support points are where the distance
is stationary): force n on a and -n on b, both at the same point, so that angular momentum is kept.
"""
from __future__ import annotations

from math import sqrt

from dalembert.contact.distance import local_distance, meeting_point
from dalembert.contact.polish import LEVEL, straight_part
from dalembert.contact.records import (
    AFTER_KNOT,
    BALL_SUPPORT,
    CIRCLE_SUPPORT,
    EDGES,
    FIELD,
    FLATNESS,
    LINE,
    PLANE,
    SMOOTH,
    TWIST,
)
from dalembert.contact.support import core_support
from dalembert.contact.terrain import nearest_on_terrain
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import (
    add3,
    cross3,
    dot3,
    load3,
    load9,
    mat_t_vec,
    mat_vec,
    neg3,
    scale3,
    sub3,
)

#: sine of the angle below which two lines count as parallel
PARALLEL = 1e-6
#: sine of the angle to the normal below which a direction of friction says nothing
PLAIN = 1e-6


@inline
def lowest(contact, R, n):
    """Support of body a against ``n``: its lowest point from the centre of mass (world axes), and its height along n."""
    c = mat_vec(R, load3(contact.point))
    if contact.support == BALL_SUPPORT:
        return sub3(c, scale3(contact.radius, n)), dot3(n, c) - contact.radius
    if contact.support == CIRCLE_SUPPORT:
        a = mat_vec(R, load3(contact.axis))
        m = sub3(n, scale3(dot3(n, a), a))
        l = sqrt(dot3(m, m) + FLATNESS * FLATNESS)
        return sub3(c, scale3(contact.radius / l, m)), dot3(n, c) - contact.radius * l
    frame = load9(contact.frame)
    local = mat_t_vec(frame, mat_t_vec(R, n))
    e = load3(contact.semi)
    scaled = (e[0] * local[0], e[1] * local[1], e[2] * local[2])
    l = sqrt(dot3(scaled, scaled))
    p = (-e[0] * scaled[0] / l, -e[1] * scaled[1] / l, -e[2] * scaled[2] / l)
    return add3(c, mat_vec(R, mat_vec(frame, p))), dot3(n, c) - l


@inline
def rounding(contact, Ra, Rb):
    """How much lower (m) than it is a circle counts on a half-space, for lying flat, with the orientations of both bodies."""
    n = mat_vec(Rb, load3(contact.normal))
    a = mat_vec(Ra, load3(contact.axis))
    m = sub3(n, scale3(dot3(n, a), a))
    tilt = dot3(m, m)
    return contact.radius * (sqrt(tilt + FLATNESS * FLATNESS) - sqrt(tilt))


@kernel
def measure_smooth(contact, shapes, xa, Ra, xb, Rb):
    """``measure`` of two shapes by their distance."""
    ga = shapes.geometries[contact.first]
    gb = shapes.geometries[contact.second]
    d = sub3(xa, xb)
    gap, n = local_distance(ga, gb, shapes.corners, Ra, Rb, d, mat_vec(Rb, load3(contact.normal)), shapes.work[1])
    level = LEVEL * (ga.outer + gb.outer)
    of_a, u = straight_part(ga, shapes.corners, Ra, neg3(n), level)
    of_b, w = straight_part(gb, shapes.corners, Rb, n, level)
    p = mat_vec(Ra, core_support(ga, shapes.corners, mat_t_vec(Ra, neg3(n))))
    if of_a == 0:
        return gap, n, add3(xa, sub3(p, scale3(ga.skin, n)))
    q = mat_vec(Rb, core_support(gb, shapes.corners, mat_t_vec(Rb, n)))
    if of_b == 0:
        return gap, n, add3(xb, add3(q, scale3(gb.skin, n)))
    across = cross3(n, w)
    if of_a == 1 and of_b == 1 and abs(dot3(u, across)) > PARALLEL:  # where two lines cross
        p = sub3(p, scale3(dot3(add3(d, sub3(p, q)), across) / dot3(u, across), u))
    else:
        p = meeting_point(ga, gb, shapes.corners, Ra, Rb, d, n, gap, shapes.work[1])
    return gap, n, add3(xa, sub3(p, scale3(ga.skin, n)))


@inline
def measure(contact, scene, xa, Ra, xb, Rb):
    """(gap, normal from b to a, point) of a contact at a pose, in the world."""
    kind = contact.kind
    if kind == PLANE:
        n = mat_vec(Rb, load3(contact.normal))
        p, height = lowest(contact, Ra, n)
        return dot3(n, sub3(xa, xb)) + height - contact.offset, n, add3(xa, p)
    if kind == SMOOTH:
        return measure_smooth(contact, scene.shapes, xa, Ra, xb, Rb)
    centre = add3(xa, mat_vec(Ra, load3(contact.point)))
    if kind == FIELD:
        q = nearest_on_terrain(scene.heights, scene.terrain, centre)
        n = (q[3], q[4], q[5])
        return q[6] - contact.radius, n, sub3(centre, scale3(contact.radius, n))
    d = sub3(centre, add3(xb, mat_vec(Rb, load3(contact.point_b))))
    both = contact.radius + contact.radius_b
    if kind == EDGES:
        u = mat_vec(Ra, load3(contact.axis))
        w = mat_vec(Rb, load3(contact.axis_b))
        n = cross3(u, w)
        area = dot3(n, n)
        along = dot3(cross3(w, d), n) / area  # how far along a's line the nearest point lies
        n = scale3(contact.side / sqrt(area), n)
        return dot3(n, d) - both, n, add3(centre, sub3(scale3(along, u), scale3(contact.radius, n)))
    if kind == LINE:
        u = mat_vec(Rb, load3(contact.axis_b))
        d = sub3(d, scale3(dot3(d, u), u))
    length = sqrt(dot3(d, d))
    n = scale3(1.0 / length, d)
    return length - both, n, sub3(centre, scale3(contact.radius, n))


@inline
def put_row(row, direction, R, arm):
    """Write the row of a force along ``direction`` at ``arm`` from the centre of mass: force (world), torque (body)."""
    torque = mat_t_vec(R, cross3(arm, direction))
    row[0] = direction[0]
    row[1] = direction[1]
    row[2] = direction[2]
    row[3] = torque[0]
    row[4] = torque[1]
    row[5] = torque[2]


@inline
def tangents(n):
    """Two unit vectors that complete a normal to a right-handed frame."""
    if abs(n[0]) < 0.7:
        t = (0.0, n[2], -n[1])
    else:
        t = (-n[2], 0.0, n[0])
    t = scale3(1.0 / sqrt(dot3(t, t)), t)
    return t, cross3(n, t)


@inline
def slide_after_knot(contact):
    """Look at the sliding velocity by the rows of the knot."""
    contact.look = AFTER_KNOT
    for k in range(2):
        contact.past[k] = 0.0
        for c in range(6):
            contact.Sa[k, c] = contact.Ga[1 + k, c]
            contact.Sb[k, c] = contact.Gb[1 + k, c]


@inline
def grain_tangents(n, g):
    """``tangents``, the first one as near as may be to a direction ``g``; where that is the normal, whichever."""
    across = cross3(n, g)
    size = sqrt(dot3(across, across))
    if size < PLAIN:
        return tangents(n)
    u = scale3(1.0 / size, across)
    return cross3(u, n), u


@inline
def friction_axes(contact, n, Ra, Rb):
    """Directions along which friction acts, in length its parts of the coefficient: so that an ellipse of forces is a circle of impulses."""
    if contact.grain_of == 0:
        return tangents(n)
    t, u = grain_tangents(n, mat_vec(Ra if contact.grain_of == contact.a + 1 else Rb, load3(contact.grain)))
    return scale3(contact.share[0], t), scale3(contact.share[1], u)


@inline
def put_rows(contact, n, p, xa, Ra, xb, Rb):
    """Normal, point and rows of a contact at the knot."""
    t, u = friction_axes(contact, n, Ra, Rb)
    contact.bare = 0
    for c in range(3):
        contact.n0[c] = n[c]
        contact.p0[c] = p[c]
    belt = load3(contact.belt)
    contact.drift[0] = dot3(belt, t)
    contact.drift[1] = dot3(belt, u)
    arm = sub3(p, xa)
    put_row(contact.Ga[0], n, Ra, arm)
    put_row(contact.Ga[1], t, Ra, arm)
    put_row(contact.Ga[2], u, Ra, arm)
    arm = sub3(p, xb)
    put_row(contact.Gb[0], neg3(n), Rb, arm)
    put_row(contact.Gb[1], neg3(t), Rb, arm)
    put_row(contact.Gb[2], neg3(u), Rb, arm)
    slide_after_knot(contact)


@inline
def put_torque(row, torque, R):
    """Write the row of a torque (world)."""
    local = mat_t_vec(R, torque)
    for c in range(3):
        row[c] = 0.0
        row[3 + c] = local[c]


@inline
def put_twist(contact, carrier, Ra, Rb):
    """Rows of the torques of a contact, by their levers: about the normal that was found for it, or across that."""
    n = load3(carrier.n0)
    t, u = tangents(n)
    if contact.rolls == 0:
        t, u = n, (0.0, 0.0, 0.0)
    t, u = scale3(contact.roll if contact.rolls != 0 else contact.spin, t), scale3(contact.roll, u)
    put_torque(contact.Ga[1], t, Ra)
    put_torque(contact.Ga[2], u, Ra)
    put_torque(contact.Gb[1], neg3(t), Rb)
    put_torque(contact.Gb[2], neg3(u), Rb)
    slide_after_knot(contact)


@inline
def plane_gap(contact, xa, Ra, xb, Rb):
    """``measure`` of a contact with a half-space, its gap alone."""
    n = mat_vec(Rb, load3(contact.normal))
    _, height = lowest(contact, Ra, n)
    return dot3(n, sub3(xa, xb)) + height - contact.offset


@kernel
def flies(contact, bodies, near):
    """Whether a contact is further than ``near`` (m) from its half-space, at the knot and at the end: its gaps are written then, and its rows are not."""
    if contact.kind != PLANE:
        return False
    a = bodies[contact.a]
    b = bodies[contact.b]
    gap = plane_gap(contact, load3(a.x), load9(a.R), load3(b.x), load9(b.R))
    if gap < near:
        return False
    contact.gap0 = gap
    contact.gap = plane_gap(contact, load3(a.xn), load9(a.Rn), load3(b.xn), load9(b.Rn))
    if contact.gap < near:
        return False
    contact.bare = 1
    contact.look = AFTER_KNOT
    return True


@kernel
def at_knot(contact, scene, bodies):
    """Gap, normal, point and rows of a contact at the knot."""
    a = bodies[contact.a]
    b = bodies[contact.b]
    Ra = load9(a.R)
    Rb = load9(b.R)
    if contact.kind == TWIST:
        put_twist(contact, scene.contacts[contact.carrier - 1], Ra, Rb)
        return
    xa = load3(a.x)
    xb = load3(b.x)
    gap, n, p = measure(contact, scene, xa, Ra, xb, Rb)
    contact.gap0 = gap
    put_rows(contact, n, p, xa, Ra, xb, Rb)


@kernel
def at_knot_below(contact, bodies):
    """``at_knot`` of a circle that lies flat there on a half-space, at the point of it that is lowest at the end."""
    a = bodies[contact.a]
    b = bodies[contact.b]
    Ra = load9(a.R)
    Rb = load9(b.R)
    xa = load3(a.x)
    xb = load3(b.x)
    end, _ = lowest(contact, load9(a.Rn), mat_vec(load9(b.Rn), load3(contact.normal)))
    n = mat_vec(Rb, load3(contact.normal))
    p = add3(xa, mat_vec(Ra, mat_t_vec(load9(a.Rn), end)))
    contact.gap0 = dot3(n, sub3(p, xb)) - contact.offset
    put_rows(contact, n, p, xa, Ra, xb, Rb)


@kernel
def at_end(contact, scene, bodies):
    """Gap of a contact at the pose the iterate leads to, with its gradient by body-frame rotations there; a TWIST has none."""
    if contact.kind == TWIST:
        return
    a = bodies[contact.a]
    b = bodies[contact.b]
    Ra = load9(a.Rn)
    Rb = load9(b.Rn)
    xa = load3(a.xn)
    xb = load3(b.xn)
    gap, n, p = measure(contact, scene, xa, Ra, xb, Rb)
    contact.gap = gap
    for c in range(3):
        contact.n[c] = n[c]
    put_row(contact.Ha, n, Ra, sub3(p, xa))
    put_row(contact.Hb, neg3(n), Rb, sub3(p, xb))


@kernel
def put_end_gap(contact, scene, bodies):
    """Write the gap at the pose that the iterate leads to; its gradient too, where that costs little more."""
    if contact.kind != PLANE:
        at_end(contact, scene, bodies)
        return
    a = bodies[contact.a]
    b = bodies[contact.b]
    contact.gap = plane_gap(contact, load3(a.xn), load9(a.Rn), load3(b.xn), load9(b.Rn))
