"""Kernels of forward dynamics for given forces, some directions prescribed (RedMax Algorithms 9 and 10), on those of ``Reduced``.

Configurations and rates stand on the nodes of ``motion.put``; prescribed nodes are the driven ones of the tree.
"""
from __future__ import annotations

from dalembert.formulations.reduced.forward import gather, inverse_inertia, own_inertia, place_flow, release
from dalembert.kernels import inline, kernel
from dalembert.model.tree import POINT
from dalembert.spatial.tuples import add3, dot3, load3, load4, scale3, store3, store4


@inline
def to_node(node, at, vector, out):
    """Forces or rates (n,) along a node's coordinates as they are in its own frame: those of a free rotation are turned."""
    k = node.dof
    if node.kind == POINT:
        total = scale3(vector[k], load3(at.S[0]))
        store3(out, add3(total, add3(scale3(vector[k + 1], load3(at.S[1])), scale3(vector[k + 2], load3(at.S[2])))))
        return
    for j in range(node.count):
        out[j] = vector[k + j]


@inline
def from_node(node, at, own, vector):
    """The way back."""
    for j in range(node.count):
        vector[node.dof + j] = dot3(load3(at.S[j]), load3(own)) if node.kind == POINT else own[j]


@kernel
def hybrid_dynamics(flow, nodes, tau, a):
    """Accelerations ``a`` (n,) for forces ``tau`` (n,); of driven nodes ``a`` is given and ``tau`` is found. Needs ``put`` before."""
    tree = flow.tree
    for i in range(tree.shape[0]):
        node, at, own = tree[i], nodes[i], flow.own.nodes[i]
        store3(own.x, load3(at.x))
        store3(own.v, load3(at.v))
        store4(own.turn, load4(at.turn))
        store3(own.tau, (0.0, 0.0, 0.0))
        store3(own.a, (0.0, 0.0, 0.0))
        if node.driven:
            to_node(node, at, a, own.a)
        else:
            to_node(node, at, tau, own.tau)
    place_flow(flow)
    for i in range(tree.shape[0]):
        own_inertia(tree[i], flow.own.nodes[i])
    for i in range(tree.shape[0] - 1, -1, -1):
        gather(tree, flow.own.nodes, i)
    for i in range(tree.shape[0]):
        release(flow, tree, flow.own.nodes, i)
        if tree[i].driven:
            from_node(tree[i], nodes[i], flow.own.nodes[i].tau, tau)
        else:
            from_node(tree[i], nodes[i], flow.own.nodes[i].a, a)


@kernel
def inverse_products(flow, nodes, X, Y):
    """Y = M^-1 X for columns (n, m), driven directions held. Needs ``hybrid_dynamics`` before."""
    tree, answers = flow.tree, flow.own.answers
    for i in range(tree.shape[0]):
        answers[i].e[:] = 0.0
        answers[i].a[:] = 0.0
    for column in range(X.shape[1]):
        for i in range(tree.shape[0]):
            to_node(tree[i], nodes[i], X[:, column], answers[i].f)
        inverse_inertia(flow)
        for i in range(tree.shape[0]):
            from_node(tree[i], nodes[i], answers[i].a, Y[:, column])
