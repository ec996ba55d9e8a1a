"""Second derivatives of the coordinates at a knot, from the articulated inertias of the tree: linear in the nodes."""
from __future__ import annotations

from dalembert.formulations.reduced.equations import inverse_dynamics
from dalembert.formulations.reduced.tree_solve import (
    add_from_child,
    block_times,
    divide,
    invert,
    row_times,
    solve,
    times_adjoint,
)
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import load3, load9
from dalembert.spatial.twists import dot6, load6, store6


@kernel
def accelerate(stage):
    """Write ``a`` of all nodes, and ``F`` with it, at their ``x`` and ``v``; driven nodes keep theirs. False when a pivot is singular.

    Along the coordinates M a = tau - h: inverse dynamics without accelerations, one solve, and inverse dynamics with them.
    """
    tree, nodes = stage.tree, stage.own.nodes
    for i in range(tree.shape[0]):
        for j in range(0 if tree[i].driven else tree[i].count):
            nodes[i].a[j] = 0.0
    if not inverse_dynamics(stage) or not factor_inertia(stage):
        return False
    for i in range(tree.shape[0]):
        nodes[i].e[:] = 0.0
    solve(tree, stage.own)
    for i in range(tree.shape[0]):
        for j in range(0 if tree[i].driven else tree[i].count):
            nodes[i].a[j] = -nodes[i].dq[j]
    return inverse_dynamics(stage)


@inline
def own_inertia(node, at):
    """The inertia of a node's own frame, and no other block."""
    at.L[:] = 0.0
    at.t[:] = 0.0
    at.r[:] = 0.0
    if node.body >= 0:
        for i in range(3):
            for j in range(3):
                at.L[2, i, j] = node.inertia[3 * i + j]
            at.L[2, 3 + i, 3 + i] = node.mass


@kernel
def factor_inertia(stage):
    """Factor the mass matrix of the coordinates: what ``tree_solve.factor`` does, of accelerations alone."""
    tree, own = stage.tree, stage.own
    P = own.P[2]
    for i in range(tree.shape[0]):
        own_inertia(tree[i], own.nodes[i])
    for i in range(tree.shape[0] - 1, -1, -1):
        node, at = tree[i], own.nodes[i]
        R, p, L = load9(at.R), load3(at.p), at.L[2]
        count = 0 if node.driven else node.count
        for j in range(count):
            S = load6(at.S[j])
            store6(at.t[j][12:], S)
            LS = block_times(L, S)
            store6(at.B[j], LS)
            for k in range(count):
                at.D[k, j] = dot6(load6(at.S[k]), LS)
            if node.joint >= 0:
                at.D[j, j] += stage.model.joints[node.joint].armature[node.direction + j]
        if count > 0:
            if not invert(at.D, count):
                return False
            divide(at, count)
        if node.parent < 0:
            continue
        times_adjoint(L, R, p, P)
        for j in range(count):
            S = load6(at.S[j])
            for col in range(6):
                at.r[j, 12 + col] = row_times(S, P, col)
        for j in range(count):
            for row in range(6):
                for col in range(6):
                    P[row, col] -= at.B[j, row] * at.r[j, 12 + col]
        add_from_child(own.nodes[node.parent].L[2], R, p, P)
    return True
