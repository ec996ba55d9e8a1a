"""How a node of the tree moves: its placement in the parent node's frame, its columns S, and their derivatives.

With q the node's coordinates, V = A V_parent + S q' is its twist (RedMax section 2.2). Screws are constant columns; those of a
free rotation about a point r are (J, r x J) with J the right Jacobian of its rotation vector (RedMax section 2.3.6, eq. 3.34).
"""
from __future__ import annotations

from math import cos, sin

from dalembert.kernels import inline
from dalembert.model.tree import AXIS, LINE, POINT
from dalembert.spatial import quaternion, so3
from dalembert.spatial.tuples import add3, column, cross3, load3, load4, load9, mat_mul, mat_vec, scale3, sub3
from dalembert.spatial.twists import add6, load6, scale6

ZERO3 = (0.0, 0.0, 0.0)
ZERO6 = (ZERO3, ZERO3)


@inline
def slid(node, q):
    """Rotation and translation of a slide's frame in the parent's, at its coordinate."""
    R0 = load9(node.R0)
    return R0, add3(load3(node.p0), mat_vec(R0, scale3(q, load3(node.screw[3:]))))


@inline
def turned_about_axis(node, q):
    """The same of a turn about an axis, with its lead."""
    R0, w, r = load9(node.R0), load3(node.screw), load3(node.centre)
    c, s = cos(q), sin(q)
    k = 1.0 - c
    M = (
        c + k * w[0] * w[0], k * w[0] * w[1] - s * w[2], k * w[0] * w[2] + s * w[1],
        k * w[0] * w[1] + s * w[2], c + k * w[1] * w[1], k * w[1] * w[2] - s * w[0],
        k * w[0] * w[2] - s * w[1], k * w[1] * w[2] + s * w[0], c + k * w[2] * w[2],
    )
    shift = add3(sub3(r, mat_vec(M, r)), scale3(node.lead * q, w))
    return mat_mul(R0, M), add3(load3(node.p0), mat_vec(R0, shift))


@inline
def turned_about_point(node, M):
    """The same of a free rotation ``M``."""
    R0, r = load9(node.R0), load3(node.centre)
    return mat_mul(R0, M), add3(load3(node.p0), mat_vec(R0, sub3(r, mat_vec(M, r))))


@inline
def placement(node, turn, q):
    """Rotation and translation of the node's frame in the parent's; ``turn``: where a free rotation's vector starts from."""
    if node.kind == LINE:
        return slid(node, q[0])
    if node.kind == AXIS:
        return turned_about_axis(node, q[0])
    if node.kind == POINT:
        return turned_about_point(node, mat_mul(quaternion.to_matrix(load4(turn)), so3.exp_matrix(load3(q))))
    return load9(node.R0), load3(node.p0)


@inline
def about(r, w):
    """The twist of a rotation ``w`` about a point ``r``."""
    return w, cross3(r, w)


@inline
def unit3(j):
    return (1.0 if j == 0 else 0.0, 1.0 if j == 1 else 0.0, 1.0 if j == 2 else 0.0)


@inline
def motion_column(node, q, j):
    """S_j."""
    if node.kind == POINT:
        return about(load3(node.centre), column(so3.right_jacobian(load3(q)), j))
    return load6(node.screw)


@inline
def along(node, q, u):
    """S u."""
    if node.kind == POINT:
        return about(load3(node.centre), mat_vec(so3.right_jacobian(load3(q)), load3(u)))
    if node.kind == LINE or node.kind == AXIS:
        return scale6(u[0], load6(node.screw))
    return ZERO6


@inline
def along_derivative(node, q, j, u):
    """(dS/dq_j) u."""
    if node.kind == POINT:
        return about(load3(node.centre), mat_vec(so3.right_jacobian_derivative(load3(q), unit3(j)), load3(u)))
    return ZERO6


@inline
def along_rate(node, q, v, u):
    """S' u, with q' = v."""
    if node.kind == POINT:
        return about(load3(node.centre), mat_vec(so3.right_jacobian_derivative(load3(q), load3(v)), load3(u)))
    return ZERO6


@inline
def rate_derivative(node, q, j, v, u):
    """(dS'/dq_j) u, with q' = v."""
    if node.kind == POINT:
        return about(load3(node.centre), so3.right_jacobian_second(load3(q), unit3(j), load3(v), load3(u)))
    return ZERO6


@inline
def varied_twist(node, q, v, a, j, c):
    """What (S q', S q'' + S' q') change by with q_j, when q' and q'' change by 1/c and 1/c^2: two twists, brackets left out."""
    S = motion_column(node, q, j)
    if node.kind != POINT:
        return scale6(1.0 / c, S), scale6(1.0 / (c * c), S)
    first = along_derivative(node, q, j, v)
    e = unit3(j)
    twist = add6(first, scale6(1.0 / c, S))
    change = add6(along_derivative(node, q, j, a), rate_derivative(node, q, j, v, v))
    change = add6(change, scale6(1.0 / c, add6(first, along_rate(node, q, v, e))))
    return twist, add6(change, scale6(1.0 / (c * c), S))
