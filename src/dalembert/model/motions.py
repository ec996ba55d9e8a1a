"""How a node of the tree moves: its placement in the parent node's frame, its columns S, and their derivatives.

With q the node's coordinates, V = A V_parent + S q' is its twist (RedMax section 2.2). Screws are constant columns; those of a
free rotation about a point r are (J, r x J) with J the Jacobian of its coordinates (RedMax section 2.3.6, eq. 3.34); those of a
spline were evaluated before (model/splines.py). ``at`` is the node's record of the scratch, with ``x``, ``turn`` and ``chart``;
``spline`` that of its spline, any other one for nodes of other kinds.
"""
from __future__ import annotations

from dalembert.kernels import inline
from dalembert.model.rotations import jacobian, jacobian_derivative, jacobian_second, rotation
from dalembert.model.tree import AXIS, LINE, POINT, SPLINE
from dalembert.spatial.charts import about_axis
from dalembert.spatial.tuples import add3, column, cross3, load3, load9, mat_mul, mat_vec, scale3, sub3
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
    M = about_axis(w, q)
    shift = add3(sub3(r, mat_vec(M, r)), scale3(node.lead * q, w))
    return mat_mul(R0, M), add3(load3(node.p0), mat_vec(R0, shift))


@inline
def turned_about_point(node, M):
    """The same of a free rotation ``M``."""
    R0, r = load9(node.R0), load3(node.centre)
    return mat_mul(R0, M), add3(load3(node.p0), mat_vec(R0, sub3(r, mat_vec(M, r))))


@inline
def placement(node, at, spline):
    """Rotation and translation of the node's frame in the parent's."""
    if node.kind == LINE:
        return slid(node, at.x[0])
    if node.kind == AXIS:
        return turned_about_axis(node, at.x[0])
    if node.kind == POINT:
        return turned_about_point(node, rotation(node, int(at.chart), at.turn, at.x))
    if node.kind == SPLINE:
        return along_spline(node, spline)
    return load9(node.R0), load3(node.p0)


@inline
def along_spline(node, spline):
    """The same of a spline that was evaluated."""
    R0 = load9(node.R0)
    return mat_mul(R0, load9(spline.R)), add3(load3(node.p0), mat_vec(R0, load3(spline.p)))


@inline
def about(r, w):
    """The twist of a rotation ``w`` about a point ``r``."""
    return w, cross3(r, w)


@inline
def unit3(j):
    return (1.0 if j == 0 else 0.0, 1.0 if j == 1 else 0.0, 1.0 if j == 2 else 0.0)


@inline
def motion_column(node, at, spline, j):
    """S_j."""
    if node.kind == POINT:
        return about(load3(node.centre), column(jacobian(node, int(at.chart), at.x), j))
    if node.kind == SPLINE:
        return load6(spline.S[j])
    return load6(node.screw)


@inline
def along(node, at, spline, u):
    """S u."""
    if node.kind == POINT:
        return about(load3(node.centre), mat_vec(jacobian(node, int(at.chart), at.x), load3(u)))
    if node.kind == LINE or node.kind == AXIS:
        return scale6(u[0], load6(node.screw))
    if node.kind == SPLINE:
        return spline_along(node, spline.S, u)
    return ZERO6


@inline
def spline_along(node, columns, u):
    """columns u of one or two columns."""
    first = scale6(u[0], load6(columns[0]))
    return add6(first, scale6(u[1], load6(columns[1]))) if node.count == 2 else first


@inline
def along_derivative(node, at, spline, j, u):
    """(dS/dq_j) u."""
    if node.kind == POINT:
        return about(load3(node.centre), mat_vec(jacobian_derivative(node, int(at.chart), at.x, unit3(j)), load3(u)))
    if node.kind == SPLINE:
        return spline_along(node, spline.dS[:, j], u)
    return ZERO6


@inline
def along_rate(node, at, spline, u):
    """S' u, at the node's rates."""
    if node.kind == POINT:
        return about(load3(node.centre), mat_vec(jacobian_derivative(node, int(at.chart), at.x, load3(at.v)), load3(u)))
    if node.kind == SPLINE:
        rate = scale6(at.v[0], spline_along(node, spline.dS[:, 0], u))
        return add6(rate, scale6(at.v[1], spline_along(node, spline.dS[:, 1], u))) if node.count == 2 else rate
    return ZERO6


@inline
def rate_derivative(node, at, spline, j, u):
    """(dS'/dq_j) u, at the node's rates."""
    if node.kind == POINT:
        return about(load3(node.centre), jacobian_second(node, int(at.chart), at.x, unit3(j), load3(at.v), load3(u)))
    if node.kind == SPLINE:
        change = scale6(at.v[0], spline_along(node, spline.ddS[:, 0, j], u))
        return add6(change, scale6(at.v[1], spline_along(node, spline.ddS[:, 1, j], u))) if node.count == 2 else change
    return ZERO6


@inline
def varied_twist(node, at, spline, j, c):
    """What (S q', S q'' + S' q') change by with q_j, when q' and q'' change by 1/c and 1/c^2: two twists, brackets left out."""
    S = motion_column(node, at, spline, j)
    if node.kind != POINT and node.kind != SPLINE:
        return scale6(1.0 / c, S), scale6(1.0 / (c * c), S)
    first = along_derivative(node, at, spline, j, at.v)
    twist = add6(first, scale6(1.0 / c, S))
    change = add6(along_derivative(node, at, spline, j, at.a), rate_derivative(node, at, spline, j, at.v))
    change = add6(change, scale6(1.0 / c, add6(first, along_rate(node, at, spline, unit3(j)))))
    return twist, add6(change, scale6(1.0 / (c * c), S))
