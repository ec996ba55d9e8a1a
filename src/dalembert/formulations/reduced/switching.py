"""Changing the chart of a free rotation when its angles come near to their singularity (RedMax section 2.4.5).

After an accepted step, where the determinant of the map from rates to angular velocity is at most one half, the joint takes that
one of the twelve charts whose smaller determinant at the last two knots is largest. Coordinates and rates of both knots are
converted, so that a BDF2 formula keeps its order.
"""
from __future__ import annotations

from dalembert.kernels import inline, kernel
from dalembert.model.frames import unwrap
from dalembert.model.rotations import coordinates_of, jacobian, rotation
from dalembert.model.tree import POINT
from dalembert.spatial.charts import chart_determinant
from dalembert.spatial.tuples import inverse9, load3, mat_vec, store3

#: a chart is left where its determinant is not above this
SMALLEST = 0.5


@inline
def nearest_turns(q, near):
    """Angles modulo a turn nearest to others."""
    return unwrap(q[0], near[0]), unwrap(q[1], near[1]), unwrap(q[2], near[2])


@inline
def best_chart(node, M, M1):
    """The first of the charts with the largest smaller determinant at two rotations."""
    best, largest = 1, -1.0
    for chart in range(1, 13):
        size = min(
            chart_determinant(chart, coordinates_of(node, chart, (1.0, 0.0, 0.0, 0.0), M)),
            chart_determinant(chart, coordinates_of(node, chart, (1.0, 0.0, 0.0, 0.0), M1)),
        )
        if size > largest:
            best, largest = chart, size
    return best


@inline
def converted(node, old, new, q, v, M):
    """Coordinates and rates of a rotation in another chart."""
    x = coordinates_of(node, new, (1.0, 0.0, 0.0, 0.0), M)
    omega = mat_vec(jacobian(node, old, q), load3(v))
    return x, mat_vec(inverse9(jacobian(node, new, x)), omega)


@kernel
def switch_charts(tree, state):
    """Change the charts of all free rotations that come near to a singularity."""
    for i in range(tree.shape[0]):
        node, at = tree[i], state.nodes[i]
        old = int(at.chart)
        if node.kind != POINT or old == 0 or not node.switch or chart_determinant(old, at.q) > SMALLEST:
            continue
        M, M1 = rotation(node, old, at.turn, at.q), rotation(node, old, at.turn, at.q1)
        new = best_chart(node, M, M1)
        if new == old:
            continue
        q, v = converted(node, old, new, at.q, at.v, M)
        q1, v1 = converted(node, old, new, at.q1, at.v1, M1)
        store3(at.q, q)
        store3(at.v, v)
        store3(at.q1, nearest_turns(q1, q))
        store3(at.v1, v1)
        at.chart = new
