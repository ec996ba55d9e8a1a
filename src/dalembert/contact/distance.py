"""The signed distance of two convex shapes and its direction: the largest separation along any direction.

Shapes that are apart: the nearest points of their cores (Gilbert, Johnson and Keerthi). Cores that touch or overlap: from a direction n on,
one shape is moved along n until the two are a little apart; the direction of the nearest points then separates the
unmoved shapes at least as well as n did, and so on until nothing changes. Faces, caps and pairs of edges are tried first, so that what is found is the
largest separation and not merely a local one.
"""
from __future__ import annotations

from math import cos, pi, sin, sqrt

from dalembert.contact.polish import polish
from dalembert.contact.records import CONE, CYLINDER, POLYHEDRON
from dalembert.contact.support import core_difference, separation
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import add3, cross3, dot3, load3, mat_vec, neg3, scale3, store3, sub3

#: for ``core_distance``: go on to the end
EXACT = -1.0
#: most iterations of the search for nearest points
MOST = 100
#: cores nearer than this part of the shapes' sizes count as touching: the direction of their nearest points is lost in rounding
TOUCHING = 1e-6
#: support points nearer to one another than this part of the shapes' sizes are the same, of cores with corners and of smooth ones: there their
#: planes would be lost in rounding, and what is missing to the distance is of second order
SAME_CORNER, SAME_POINT = 1e-15, 1e-6
#: triangles lower than this part of the shapes' sizes have no plane: it would be lost in rounding
THIN = 1e-7
#: most steps of a climb
STEPS = 200
#: part of the shapes' thickness by which shapes that overlap are moved apart
APART = 1e-3
#: parts of the shapes' sizes between which overlaps are so slight that directions far from one another are nearly as good: others are tried all around, so
#: many and turned by so much (tangent)
SLIGHTEST, SLIGHT = 2e-9, 1e-3
AROUND, TILT = 6, 1.0


@inline
def on_segment(a, b):
    """Point of a segment nearest to the origin, and which ends it needs (bits)."""
    e = sub3(b, a)
    length2 = dot3(e, e)
    t = -dot3(a, e)
    if t <= 0.0 or length2 == 0.0:
        return a, 1
    if t >= length2:
        return b, 2
    return add3(a, scale3(t / length2, e)), 3


@kernel
def on_triangle(a, b, c, thin):
    """Point of a triangle nearest to the origin, and which corners it needs (bits). One of less than ``thin`` (m) height is its edges alone."""
    ab = sub3(b, a)
    ac = sub3(c, a)
    bc = sub3(c, b)
    n = cross3(ab, ac)
    area2 = dot3(n, n)
    longest = max(dot3(ab, ab), max(dot3(ac, ac), dot3(bc, bc)))
    # Areas against the corners, twice and times |n|; all positive: the foot of the perpendicular lies inside.
    wa = dot3(n, cross3(b, c))
    wb = dot3(n, cross3(c, a))
    wc = dot3(n, cross3(a, b))
    if wa > 0.0 and wb > 0.0 and wc > 0.0 and area2 > thin * thin * longest:
        return scale3(dot3(n, a) / area2, n), 7
    v, bits = on_segment(a, b)
    best = dot3(v, v)
    w, more = on_segment(a, c)
    size = dot3(w, w)
    if size < best:
        best = size
        v = w
        bits = (more & 1) | ((more & 2) << 1)
    w, more = on_segment(b, c)
    if dot3(w, w) < best:
        v = w
        bits = more << 1
    return v, bits


@inline
def is_beyond(a, b, c, d):
    """Whether the origin lies on the other side of the plane a, b, c than d."""
    n = cross3(sub3(b, a), sub3(c, a))
    return dot3(n, a) * dot3(n, sub3(d, a)) >= 0.0


@kernel
def on_simplex(points, count, thin):
    """Point of a simplex (rows of ``points``) nearest to the origin, and which corners it needs (bits; 15: the origin is inside)."""
    a = load3(points[0])
    if count == 1:
        return a, 1
    b = load3(points[1])
    if count == 2:
        return on_segment(a, b)
    c = load3(points[2])
    if count == 3:
        return on_triangle(a, b, c, thin)
    d = load3(points[3])
    v = (0.0, 0.0, 0.0)
    bits = 15
    best = 1e300
    if is_beyond(a, b, c, d):
        v, bits = on_triangle(a, b, c, thin)
        best = dot3(v, v)
    if is_beyond(a, b, d, c):
        w, more = on_triangle(a, b, d, thin)
        if dot3(w, w) < best:
            best = dot3(w, w)
            v = w
            bits = (more & 3) | ((more & 4) << 1)
    if is_beyond(a, c, d, b):
        w, more = on_triangle(a, c, d, thin)
        if dot3(w, w) < best:
            best = dot3(w, w)
            v = w
            bits = (more & 1) | ((more & 6) << 1)
    if is_beyond(b, c, d, a):
        w, more = on_triangle(b, c, d, thin)
        if dot3(w, w) < best:
            v = w
            bits = more << 1
    return v, bits


@kernel
def core_distance(ga, gb, corners, Ra, Rb, d, n, close, points):
    """(largest separation found of two cores, length of the shortest vector found between them, direction of the former from b to a, number of
    corners of the simplex that is left).

    ``d`` = x_a - x_b; ``n``: direction to begin with; ``points`` (8, 3): room, for corners of the simplex and their points of a. It goes on until both numbers agree or, with ``close`` >= 0,
    are both above or both below it.
    """
    scale = ga.outer + gb.outer
    same = SAME_CORNER if max(ga.form, gb.form) <= POLYHEDRON else SAME_POINT
    same = same * same * scale * scale
    v, p = core_difference(ga, gb, corners, Ra, Rb, d, n)
    store3(points[0], v)
    store3(points[4], p)
    count = 1
    best = -1e300
    found = n
    length = sqrt(dot3(v, v))
    for _ in range(MOST):
        if length < 1e-13 * scale:
            return best, 0.0, found, count
        m = scale3(1.0 / length, v)
        w, p = core_difference(ga, gb, corners, Ra, Rb, d, m)
        low = dot3(m, w)
        if low > best:
            best = low
            found = m
        if length - best <= 1e-14 * scale:
            break
        if close >= 0.0 and (length <= close or (best > close and best > 0.8 * length)):
            break
        known = False
        for k in range(count):
            e = sub3(w, load3(points[k]))
            known = known or dot3(e, e) <= same
        if known:
            break
        store3(points[count], w)
        store3(points[4 + count], p)
        v, bits = on_simplex(points, count + 1, THIN * scale)
        if bits == 15:
            return best, 0.0, found, count
        kept = 0
        for k in range(count + 1):
            if bits & (1 << k):
                store3(points[kept], load3(points[k]))
                store3(points[4 + kept], load3(points[4 + k]))
                kept += 1
        count = kept
        shorter = sqrt(dot3(v, v))
        if shorter >= length:
            break
        length = shorter
    return best, length, found, count


@kernel
def nearest_of_a(points, count, thin):
    """The point of core a, from the centre of its body, that belongs to the nearest point of the simplex that ``core_distance`` left."""
    p = load3(points[4])
    if count == 1:
        return p
    a = load3(points[0])
    b = load3(points[1])
    q = load3(points[5])
    v, _ = on_simplex(points, count, thin)
    if count == 2:
        e = sub3(b, a)
        return add3(p, scale3(dot3(sub3(v, a), e) / dot3(e, e), sub3(q, p)))
    c = load3(points[2])
    n = cross3(sub3(b, a), sub3(c, a))
    area2 = dot3(n, n)
    if area2 == 0.0:
        return p
    wb = dot3(n, cross3(sub3(c, v), sub3(a, v))) / area2
    wc = dot3(n, cross3(sub3(a, v), sub3(b, v))) / area2
    return add3(p, add3(scale3(wb, sub3(q, p)), scale3(wc, sub3(load3(points[6]), p))))


@kernel
def climb(ga, gb, corners, Ra, Rb, d, n, points):
    """From a direction on to the one with the largest separation near it: (separation, direction)."""
    value = separation(ga, gb, corners, Ra, Rb, d, n)
    both = ga.skin + gb.skin
    step = APART * min(ga.inner, gb.inner)
    for _ in range(STEPS):
        push = step + max(0.0, -value - both)
        low, _, m, _ = core_distance(ga, gb, corners, Ra, Rb, add3(d, scale3(push, n)), n, EXACT, points)
        low -= both + push * dot3(n, m)
        if low <= value + 1e-15 * (ga.outer + gb.outer):
            break
        value = low
        n = m
    return value, n


@inline
def unit(v, other):
    """A vector scaled to length one, or ``other`` where it has none."""
    size = dot3(v, v)
    return scale3(1.0 / sqrt(size), v) if size > 0.0 else other


@kernel
def best_normal(ga, gb, corners, planes, Ra, Rb, d, own, flat):
    """Of the normals of a's faces, caps and (unless ``flat``) axes, if ``own``, or of b's, that with the largest separation: (separation, direction)."""
    g = ga if own else gb
    R = Ra if own else Rb
    best = -1e300
    found = (0.0, 0.0, 1.0)
    count = g.faces if g.form == POLYHEDRON else 6
    caps = 4 if g.form == CYLINDER else 5 if g.form == CONE else 6
    for k in range(caps if flat and g.form != POLYHEDRON else 0, count):
        if g.form == POLYHEDRON:
            f = g.first_face + k
            m = (planes[f, 0], planes[f, 1], planes[f, 2])
        else:
            sign = 1.0 if k % 2 == 0 else -1.0
            m = (sign * g.frame[k // 2], sign * g.frame[3 + k // 2], sign * g.frame[6 + k // 2])
        n = mat_vec(R, m)
        n = neg3(n) if own else n
        value = separation(ga, gb, corners, Ra, Rb, d, n)
        if value > best:
            best = value
            found = n
    return best, found


@inline
def edge_direction(g, corners, edges, R, k):
    """Direction (world, of any length) of a polyhedron's edge, or of the axis that other shapes have."""
    if g.form == POLYHEDRON:
        edge = edges[g.first_edge + k]
        return mat_vec(R, sub3(load3(corners[edge[1]]), load3(corners[edge[0]])))
    return mat_vec(R, load3(g.axis))


@kernel
def best_crossing(ga, gb, corners, edges, Ra, Rb, d, best, found):
    """Of ``found`` and what is normal to edges or axes of both shapes, the direction with the largest separation, which for ``found`` is ``best``."""
    for i in range(ga.edges if ga.form == POLYHEDRON else 1):
        u = edge_direction(ga, corners, edges, Ra, i)
        for j in range(gb.edges if gb.form == POLYHEDRON else 1):
            w = edge_direction(gb, corners, edges, Rb, j)
            n = cross3(u, w)
            area = dot3(n, n)
            if area <= 1e-12 * dot3(u, u) * dot3(w, w):
                continue
            for side in range(2):
                m = scale3((1.0 if side == 0 else -1.0) / sqrt(area), n)
                value = separation(ga, gb, corners, Ra, Rb, d, m)
                if value > best:
                    best = value
                    found = m
    return best, found


@kernel
def largest_separation(ga, gb, corners, planes, edges, Ra, Rb, d, n, points):
    """``signed_distance`` but for its last digits."""
    both = ga.skin + gb.skin
    low, length, m, _ = core_distance(ga, gb, corners, Ra, Rb, d, n, EXACT, points)
    scale = ga.outer + gb.outer
    if low > TOUCHING * scale and length - low < 1e-12 * scale:
        return low - both, m
    best, found = climb(ga, gb, corners, Ra, Rb, d, m, points)
    if low > TOUCHING * scale:
        return best, found
    value, m = climb(ga, gb, corners, Ra, Rb, d, n, points)
    if value > best:
        best, found = value, m
    for k in range(4):
        if k == 3:
            _, m = best_crossing(ga, gb, corners, edges, Ra, Rb, d, -1e300, n)
        elif k == 2:
            m = unit(add3(d, sub3(mat_vec(Ra, load3(ga.position)), mat_vec(Rb, load3(gb.position)))), n)
        else:
            _, m = best_normal(ga, gb, corners, planes, Ra, Rb, d, k == 0, False)
        value, m = climb(ga, gb, corners, Ra, Rb, d, m, points)
        if value > best:
            best, found = value, m
    if -SLIGHT * scale < best < -SLIGHTEST * scale and max(ga.form, gb.form) >= CYLINDER:
        n = found
        t = (0.0, n[2], -n[1]) if abs(n[0]) < 0.7 else (-n[2], 0.0, n[0])
        t = scale3(TILT / sqrt(dot3(t, t)), t)
        u = cross3(n, t)
        for k in range(AROUND):
            angle = 2.0 * pi * k / AROUND
            m = unit(add3(n, add3(scale3(cos(angle), t), scale3(sin(angle), u))), n)
            value, m = climb(ga, gb, corners, Ra, Rb, d, m, points)
            if value > best:
                best, found = value, m
    return best, found


@kernel
def signed_distance(ga, gb, corners, planes, edges, Ra, Rb, d, n, points):
    """(signed distance of two shapes, its direction from b to a): minus the depth where they overlap.

    ``d`` = x_a - x_b, ``n``: a unit vector to begin with, ``points`` (8, 3): room.
    """
    value, n = largest_separation(ga, gb, corners, planes, edges, Ra, Rb, d, n, points)
    return polish(ga, gb, corners, Ra, Rb, d, value, n) if max(ga.form, gb.form) >= CYLINDER else (value, n)


@kernel
def local_distance(ga, gb, corners, Ra, Rb, d, n, points):
    """``signed_distance``, where shapes overlap in the direction next to ``n``."""
    low, length, m, _ = core_distance(ga, gb, corners, Ra, Rb, d, n, EXACT, points)
    scale = ga.outer + gb.outer
    apart = low > TOUCHING * scale
    value = low - ga.skin - gb.skin
    if apart:
        n = m
    if not apart or length - low > 1e-12 * scale:
        value, n = climb(ga, gb, corners, Ra, Rb, d, n, points)
    return polish(ga, gb, corners, Ra, Rb, d, value, n) if max(ga.form, gb.form) >= CYLINDER else (value, n)


@kernel
def meeting_point(ga, gb, corners, Ra, Rb, d, n, gap, points):
    """Point of core a nearest to b, from the centre of a's body (world axes), for the direction ``n`` and the ``gap`` of ``local_distance``."""
    push = APART * min(ga.inner, gb.inner) + max(0.0, -gap - ga.skin - gb.skin)
    _, _, _, count = core_distance(ga, gb, corners, Ra, Rb, add3(d, scale3(push, n)), n, EXACT, points)
    return nearest_of_a(points, count, THIN * (ga.outer + gb.outer))
