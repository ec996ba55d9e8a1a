"""The last digits of a direction between two shapes of which one is a cylinder or an ellipsoid: Newton's method on the separation.

Where an edge, an axis or the side of a cylinder lies across the direction it stays across; what freedom is left is used up by Newton steps, with derivatives by
differences along great circles. The gradient of the separation along a great circle is the component of the support points' difference.
"""
from __future__ import annotations

from math import cos, sin, sqrt

from dalembert.contact.records import CYLINDER, ELLIPSOID, POLYHEDRON
from dalembert.contact.support import core_difference
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import add3, cross3, dot3, load3, mat_t_vec, mat_vec, scale3, sub3

#: part of the shapes' sizes within which corners are as high as the highest one
LEVEL = 2e-6
#: step (rad) of the differences
STEP = 1e-4
#: Newton steps
STEPS = 3


@kernel
def straight_part(g, corners, R, n, level):
    """(how many dimensions, direction) of the part of a core that lies across ``n`` (world): a point, a line with its direction, or a plane with its normal."""
    zero = (0.0, 0.0, 0.0)
    if g.form == ELLIPSOID:
        return 0, zero
    local = mat_t_vec(R, n)
    if g.form != POLYHEDRON:
        axis = load3(g.axis)
        along = dot3(local, axis)
        if g.form == CYLINDER and 1.0 - abs(along) < 0.5 * (level / g.radius) ** 2:
            return 2, mat_vec(R, scale3(1.0 if along > 0.0 else -1.0, axis))
        return (1, mat_vec(R, axis)) if 2.0 * g.half * abs(along) < level and g.half > 0.0 else (0, zero)
    top = -1e300
    for k in range(g.first_corner, g.first_corner + g.corners):
        top = max(top, dot3(local, load3(corners[k])))
    count = 0
    p = zero
    line = zero
    for k in range(g.first_corner, g.first_corner + g.corners):
        q = load3(corners[k])
        if dot3(local, q) > top - level:
            if count == 0:
                p = q
                count = 1
            elif count == 1:
                line = sub3(q, p)
                count = 2
            else:
                m = cross3(line, sub3(q, p))
                size = dot3(m, m)
                if size > 0.0:
                    return 2, mat_vec(R, scale3((1.0 if dot3(m, local) > 0.0 else -1.0) / sqrt(size), m))
    if count < 2:
        return 0, zero
    return 1, mat_vec(R, scale3(1.0 / sqrt(dot3(line, line)), line))


@inline
def slope(ga, gb, corners, Ra, Rb, d, n, t, angle, s):
    """Slope of the separation along s, from n turned by ``angle`` towards t."""
    m = add3(scale3(cos(angle), n), scale3(sin(angle), t))
    w, _ = core_difference(ga, gb, corners, Ra, Rb, d, m)
    same = dot3(s, t)
    s = add3(scale3(same, sub3(scale3(cos(angle), t), scale3(sin(angle), n))), sub3(s, scale3(same, t)))
    return dot3(s, w)


@kernel
def polish(ga, gb, corners, Ra, Rb, d, value, n):
    """(separation, direction) no worse than that of ``n``, which is ``value``."""
    level = LEVEL * (ga.outer + gb.outer)
    both = ga.skin + gb.skin
    of_a, line = straight_part(ga, corners, Ra, scale3(-1.0, n), level)
    of_b, other = straight_part(gb, corners, Rb, n, level)
    if of_a == 2 or of_b == 2:
        m = scale3(-1.0, line) if of_a == 2 else other
        low = dot3(m, core_difference(ga, gb, corners, Ra, Rb, d, m)[0]) - both
        return (low, m) if low >= value else (value, n)
    # Two unit vectors across n; the first one across the lines too, the second one only if there are none.
    freedom = 2
    t = (0.0, n[2], -n[1]) if abs(n[0]) < 0.7 else (-n[2], 0.0, n[0])
    m = n
    if of_a + of_b > 0:
        line = line if of_a == 1 else other
        freedom = 1
        crossed = cross3(line, other)
        size = dot3(crossed, crossed)
        if of_a + of_b == 2 and size > 1e-6:
            m = scale3((1.0 if dot3(crossed, n) > 0.0 else -1.0) / sqrt(size), crossed)
            low = dot3(m, core_difference(ga, gb, corners, Ra, Rb, d, m)[0]) - both
            return (low, m) if low >= value else (value, n)
        m = sub3(n, scale3(dot3(n, line), line))
        m = scale3(1.0 / sqrt(dot3(m, m)), m)
        t = cross3(line, m)
    for _ in range(STEPS):
        t = sub3(t, scale3(dot3(t, m), m))
        t = scale3(1.0 / sqrt(dot3(t, t)), t)
        u = cross3(m, t)
        w, _ = core_difference(ga, gb, corners, Ra, Rb, d, m)
        g0, g1 = dot3(t, w), dot3(u, w)
        h00 = (slope(ga, gb, corners, Ra, Rb, d, m, t, STEP, t) - slope(ga, gb, corners, Ra, Rb, d, m, t, -STEP, t)) / (2.0 * STEP)
        if freedom == 1:
            a0, a1 = -g0 / h00, 0.0
        else:
            h01 = (slope(ga, gb, corners, Ra, Rb, d, m, t, STEP, u) - slope(ga, gb, corners, Ra, Rb, d, m, t, -STEP, u)) / (2.0 * STEP)
            h11 = (slope(ga, gb, corners, Ra, Rb, d, m, u, STEP, u) - slope(ga, gb, corners, Ra, Rb, d, m, u, -STEP, u)) / (2.0 * STEP)
            det = h00 * h11 - h01 * h01
            a0, a1 = (h01 * g1 - h11 * g0) / det, (h01 * g0 - h00 * g1) / det
        size = a0 * a0 + a1 * a1
        if not size < 1e-4:
            break
        m = add3(m, add3(scale3(a0, t), scale3(a1, u)))
        m = scale3(1.0 / sqrt(dot3(m, m)), m)
        if size < 1e-20:
            break
    low = dot3(m, core_difference(ga, gb, corners, Ra, Rb, d, m)[0]) - both
    return (low, m) if low >= value - 1e-14 * (ga.outer + gb.outer) else (value, n)
