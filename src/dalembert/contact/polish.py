"""The last digits of a direction between two shapes of which one is a cylinder, a cone or an ellipsoid: Newton's method on the separation.

Where an edge, an axis, the side of a cylinder or that of a cone lies across the direction it stays across; what freedom is left is used up by Newton steps, with
derivatives by differences along circles. The gradient of the separation along a circle is the component of the support points' difference. Directions across an edge
are those across it, which make a great circle; those across some line on the side of a cone make a smaller one about its axis.
"""
from __future__ import annotations

from math import cos, sin, sqrt

from dalembert.contact.records import BASE, CONE, CYLINDER, ELLIPSOID, POLYHEDRON, TIP
from dalembert.contact.support import core_difference, rim_point, slope_of
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
        if g.form == CONE:
            if 1.0 + along < 0.5 * (level / g.radius) ** 2:
                return 2, mat_vec(R, scale3(-1.0, axis))
            side = sub3(scale3((TIP - BASE) * g.half, axis), rim_point(g, local))
            length = sqrt(dot3(side, side))
            return (1, mat_vec(R, scale3(1.0 / length, side))) if abs(dot3(side, local)) < level else (0, zero)
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
def circle_of(g, R, line):
    """(unit vector, cosine to it) of the directions to which a straight part with the direction ``line`` (world) belongs."""
    return (mat_vec(R, load3(g.axis)), slope_of(g)) if g.form == CONE else (line, 0.0)


@inline
def on_circle(m, v, c, angle):
    """A unit vector with the cosine c to v, next to m, turned about v by ``angle``."""
    across = sub3(m, scale3(dot3(m, v), v))
    t = scale3(sqrt((1.0 - c * c) / dot3(across, across)), across)
    return add3(scale3(c, v), add3(scale3(cos(angle), t), scale3(sin(angle), cross3(v, t))))


@inline
def circle_slope(ga, gb, corners, Ra, Rb, d, m, v):
    """Slope of the separation as a direction m turns about v."""
    return dot3(cross3(v, m), core_difference(ga, gb, corners, Ra, Rb, d, m)[0])


@inline
def crossing_of_circles(m, u, a, v, b):
    """The direction nearest to m with the cosines a to u and b to v, and whether there is one."""
    w = cross3(u, v)
    area = dot3(w, w)
    if area < 1e-6:
        return m, False
    same = dot3(u, v)
    x = (a - same * b) / area
    y = (b - same * a) / area
    z = sqrt(max(1.0 - x * a - y * b, 0.0) / area)
    m = add3(add3(scale3(x, u), scale3(y, v)), scale3(z if dot3(w, m) > 0.0 else -z, w))
    return scale3(1.0 / sqrt(dot3(m, m)), m), True


@kernel
def around_circle(ga, gb, corners, Ra, Rb, d, m, v, c):
    """From a direction on to the one with the largest separation among those with the cosine c to v."""
    m = on_circle(m, v, c, 0.0)
    for _ in range(STEPS):
        g = circle_slope(ga, gb, corners, Ra, Rb, d, m, v)
        up = circle_slope(ga, gb, corners, Ra, Rb, d, on_circle(m, v, c, STEP), v)
        down = circle_slope(ga, gb, corners, Ra, Rb, d, on_circle(m, v, c, -STEP), v)
        angle = -2.0 * STEP * g / (up - down) if up != down else 0.0
        if not abs(angle) < 1e-2:
            break
        m = on_circle(m, v, c, angle)
        if abs(angle) < 1e-10:
            break
    return m


@inline
def slope(ga, gb, corners, Ra, Rb, d, n, t, angle, s):
    """Slope of the separation along s, from n turned by ``angle`` towards t."""
    m = add3(scale3(cos(angle), n), scale3(sin(angle), t))
    w, _ = core_difference(ga, gb, corners, Ra, Rb, d, m)
    same = dot3(s, t)
    s = add3(scale3(same, sub3(scale3(cos(angle), t), scale3(sin(angle), n))), sub3(s, scale3(same, t)))
    return dot3(s, w)


@kernel
def all_around(ga, gb, corners, Ra, Rb, d, n):
    """From a direction on to the one with the largest separation next to it."""
    m = n
    t = (0.0, n[2], -n[1]) if abs(n[0]) < 0.7 else (-n[2], 0.0, n[0])
    for _ in range(STEPS):
        t = sub3(t, scale3(dot3(t, m), m))
        t = scale3(1.0 / sqrt(dot3(t, t)), t)
        u = cross3(m, t)
        w, _ = core_difference(ga, gb, corners, Ra, Rb, d, m)
        g0, g1 = dot3(t, w), dot3(u, w)
        h00 = (slope(ga, gb, corners, Ra, Rb, d, m, t, STEP, t) - slope(ga, gb, corners, Ra, Rb, d, m, t, -STEP, t)) / (2.0 * STEP)
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
    return m


@kernel
def polish(ga, gb, corners, Ra, Rb, d, value, n):
    """(separation, direction) no worse than that of ``n``, which is ``value``."""
    scale = ga.outer + gb.outer
    of_a, line = straight_part(ga, corners, Ra, scale3(-1.0, n), LEVEL * scale)
    of_b, other = straight_part(gb, corners, Rb, n, LEVEL * scale)
    on_a, a = circle_of(ga, Ra, line)
    on_b, b = circle_of(gb, Rb, other)
    for way in range(4):  # across what is straight in both, in one, in none: the first that is no worse
        m = n
        if way == 0:
            if of_a == 2 or of_b == 2:
                m = scale3(-1.0, line) if of_a == 2 else other
            elif of_a == 1 and of_b == 1:
                m, crossing = crossing_of_circles(n, on_a, -a, on_b, b)
                if not crossing:
                    continue
            else:
                continue
        elif way == 1:
            if of_a != 1:
                continue
            m = around_circle(ga, gb, corners, Ra, Rb, d, n, on_a, -a)
        elif way == 2:
            if of_b != 1:
                continue
            m = around_circle(ga, gb, corners, Ra, Rb, d, n, on_b, b)
        else:
            m = all_around(ga, gb, corners, Ra, Rb, d, n)
        low = dot3(m, core_difference(ga, gb, corners, Ra, Rb, d, m)[0]) - ga.skin - gb.skin
        if low >= value - (1e-14 * scale if way > 0 else 0.0):
            return low, m
    return value, n
