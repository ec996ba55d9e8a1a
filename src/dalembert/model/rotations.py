"""The coordinates of a free rotation: a rotation vector from where it was at the last knot, or the angles of a chart.

``chart`` is 0 for the vector, or a chart's number (spatial/charts.py), whose axes are those of the joint's frame. Read from child
to parent a chart is the inverse rotation: the same three angles, last one first, about the axes negated.
"""
from __future__ import annotations

from dalembert.kernels import inline, kernel
from dalembert.spatial import quaternion, so3
from dalembert.spatial.charts import (
    chart_angles,
    chart_axes,
    chart_columns,
    chart_columns_derivative,
    chart_rotation,
    chart_second,
)
from dalembert.spatial.tuples import column, load3, load4, load9, mat_mul, mat_mul_t, mat_t_mul, neg3, transpose


@inline
def node_axes(node, chart):
    """The three axes of a chart in the node's frame."""
    a, b, c = chart_axes(chart)
    frame = load9(node.frame)
    first, second, third = column(frame, a), column(frame, b), column(frame, c)
    return (neg3(third), neg3(second), neg3(first)) if node.backwards else (first, second, third)


@kernel
def rotation(node, chart, turn, q):
    """The rotation at coordinates ``q``, in the node's frame; ``turn``: where a rotation vector starts from."""
    if chart > 0:
        w1, w2, w3 = node_axes(node, chart)
        return chart_rotation(w1, w2, w3, load3(q))
    return mat_mul(quaternion.to_matrix(load4(turn)), so3.exp_matrix(load3(q)))


@inline
def in_joint(node, M):
    """A node's rotation as that of the joint's child frame in its parent frame."""
    frame = load9(node.frame)
    E = mat_t_mul(frame, mat_mul(M, frame))
    return transpose(E) if node.backwards else E


@inline
def in_node(node, E):
    """The inverse of ``in_joint``."""
    frame = load9(node.frame)
    return mat_mul(frame, mat_mul_t(transpose(E) if node.backwards else E, frame))


@kernel
def coordinates_of(node, chart, turn, M):
    """The coordinates of a rotation in the node's frame."""
    if chart > 0:
        q = chart_angles(chart, in_joint(node, M))
        return (q[2], q[1], q[0]) if node.backwards else q
    return so3.log_matrix(mat_t_mul(quaternion.to_matrix(load4(turn)), M))


@inline
def _matrix(J1, J2, J3):
    return (J1[0], J2[0], J3[0], J1[1], J2[1], J3[1], J1[2], J2[2], J3[2])


@kernel
def jacobian(node, chart, q):
    """J in omega = J q', in the node's frame."""
    if chart > 0:
        w1, w2, w3 = node_axes(node, chart)
        J1, J2, J3 = chart_columns(w1, w2, w3, load3(q))
        return _matrix(J1, J2, J3)
    return so3.right_jacobian(load3(q))


@kernel
def jacobian_derivative(node, chart, q, d):
    """The derivative of J in the direction ``d``."""
    if chart > 0:
        w1, w2, w3 = node_axes(node, chart)
        J1, J2, J3 = chart_columns(w1, w2, w3, load3(q))
        D1, D2, D3 = chart_columns_derivative(J1, J2, J3, d)
        return _matrix(D1, D2, D3)
    return so3.right_jacobian_derivative(load3(q), d)


@kernel
def jacobian_second(node, chart, q, d, e, u):
    """The second derivative of J u in the directions ``d`` and ``e``: a vector."""
    if chart > 0:
        w1, w2, w3 = node_axes(node, chart)
        J1, J2, J3 = chart_columns(w1, w2, w3, load3(q))
        return chart_second(J1, J2, J3, d, e, u)
    return so3.right_jacobian_second(load3(q), d, e, u)
