"""Rotations by three angles: the twelve Euler charts (RedMax section 2.4.5, tables 1 and 2).

A chart "abc" is E = R_a(q1) R_b(q2) R_c(q3), each about the axes reached so far. With w1, w2, w3 its three axes in the frame at
hand, the columns of J in omega = J q' (body frame) are

    J3 = w3,   J2 = R_3^T w2,   J1 = R_3^T R_2^T w1,     dJ_i/dq_j = J_i x J_j for j > i, and 0 otherwise.
"""
from __future__ import annotations

from math import atan2, cos, hypot, sin

from dalembert.kernels import inline
from dalembert.spatial.tuples import add3, cross3, dot3, mat_mul, scale3

#: chart k + 1 is the k-th of these; 0 is none of them
CHARTS = ("xyx", "xzx", "yzy", "yxy", "zxz", "zyz", "xyz", "xzy", "yzx", "yxz", "zxy", "zyx")
_FIRST, _SECOND, _THIRD = (tuple("xyz".index(chart[k]) for chart in CHARTS) for k in range(3))


@inline
def chart_axes(chart):
    """The numbers of the three axes of a chart, 1 to 12."""
    return _FIRST[chart - 1], _SECOND[chart - 1], _THIRD[chart - 1]


@inline
def about_axis(w, angle):
    """The matrix of a rotation about a unit vector."""
    c, s = cos(angle), sin(angle)
    k = 1.0 - c
    return (
        c + k * w[0] * w[0], k * w[0] * w[1] - s * w[2], k * w[0] * w[2] + s * w[1],
        k * w[0] * w[1] + s * w[2], c + k * w[1] * w[1], k * w[1] * w[2] - s * w[0],
        k * w[0] * w[2] - s * w[1], k * w[1] * w[2] + s * w[0], c + k * w[2] * w[2],
    )


@inline
def turned_back(w, angle, v):
    """R^T v for the rotation R about a unit vector w."""
    c, s = cos(angle), sin(angle)
    return add3(add3(scale3(c, v), scale3(-s, cross3(w, v))), scale3((1.0 - c) * dot3(w, v), w))


@inline
def chart_rotation(w1, w2, w3, q):
    """E by its three angles."""
    return mat_mul(about_axis(w1, q[0]), mat_mul(about_axis(w2, q[1]), about_axis(w3, q[2])))


@inline
def chart_columns(w1, w2, w3, q):
    """J1, J2, J3."""
    return turned_back(w3, q[2], turned_back(w2, q[1], w1)), turned_back(w3, q[2], w2), w3


@inline
def chart_columns_derivative(J1, J2, J3, d):
    """The derivatives of the three columns in the direction d."""
    return cross3(J1, add3(scale3(d[1], J2), scale3(d[2], J3))), cross3(J2, scale3(d[2], J3)), (0.0, 0.0, 0.0)


@inline
def chart_second(J1, J2, J3, d, e, u):
    """The second derivative of J u in the directions d and e: a vector."""
    ahead = add3(scale3(d[1], J2), scale3(d[2], J3))
    dJ1, dJ2, _ = chart_columns_derivative(J1, J2, J3, e)
    first = add3(cross3(dJ1, ahead), cross3(J1, scale3(d[1], dJ2)))
    return add3(scale3(u[0], first), scale3(u[1] * d[2], cross3(dJ2, J3)))


@inline
def chart_determinant(chart, q):
    """The determinant of J but for its sign: sin q2, or cos q2 of a chart with three different axes."""
    a, _, c = chart_axes(chart)
    return abs(sin(q[1])) if a == c else abs(cos(q[1]))


@inline
def _at(E, r, c) -> float:
    """Element of a row-major 9-tuple."""
    rows = ((E[0], E[1], E[2]), (E[3], E[4], E[5]), (E[6], E[7], E[8]))
    return rows[r][c]  # pyright: ignore[reportReturnType]


@inline
def chart_angles(chart, E):
    """The angles of a rotation: q2 in [0, pi], or in [-pi/2, pi/2] with three different axes; the others in (-pi, pi]."""
    i, j, k = chart_axes(chart)
    if i == k:
        k = 3 - i - j
        s = 1.0 if (j - i) % 3 == 1 else -1.0
        return (
            atan2(_at(E, j, i), -s * _at(E, k, i)), atan2(hypot(_at(E, i, j), _at(E, i, k)), _at(E, i, i)),
            atan2(_at(E, i, j), s * _at(E, i, k)),
        )
    s = 1.0 if (j - i) % 3 == 1 else -1.0
    return (
        atan2(-s * _at(E, j, k), _at(E, k, k)), atan2(s * _at(E, i, k), hypot(_at(E, i, i), _at(E, i, j))),
        atan2(-s * _at(E, i, j), _at(E, i, i)),
    )
