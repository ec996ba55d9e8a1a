"""Matrices of the stages of a taped run, for trees of slides and turns: how the equations change with coordinates, rates and accelerations.

With every frame varied by s = (pose, twist, acceleration) as in ``tree_solve``, L here is of the whole subtree with its coordinates held: a
coordinate's column is S . L s for the nodes below it, down which s is carried, and S . (what its own frame passes on) for those above.
"""
from __future__ import annotations

from dalembert.formulations.reduced.equations import Stage, load_derivatives, residual
from dalembert.formulations.reduced.joint_forces import direction_force
from dalembert.formulations.reduced.tape import recall_stage
from dalembert.formulations.reduced.tree_solve import (
    add_from_child,
    block_times,
    carried_acceleration,
    own_blocks,
    row_times,
    times_adjoint,
    times_carried,
    variations,
)
from dalembert.kernels import kernel
from dalembert.spatial.tuples import load3, load9
from dalembert.spatial.twists import add6, bracket, bracket_t, dot6, load6, store6, sub6, to_child, to_parent


@kernel
def gather_blocks(tree, own, c):
    """L of all subtrees, S . L of all nodes into ``r``, columns of the coordinates into ``t[0]`` (all three at once) and ``t[1]`` (rates alone)."""
    P = own.P
    for i in range(tree.shape[0]):
        own_blocks(tree[i], own.nodes[i])
    for i in range(tree.shape[0] - 1, -1, -1):
        node, at = tree[i], own.nodes[i]
        R, p, Sv = load9(at.R), load3(at.p), load6(at.Sv)
        if node.count > 0:
            S = load6(at.S[0])
            for block in range(3):
                for col in range(6):
                    at.r[0, 6 * block + col] = row_times(S, at.L[block], col)
            carried_acceleration(own, node, at, 0)
            X, twist, change = variations(node, at, own.splines[node.spline], 0, c)
            store6(at.t[0], X)
            store6(at.t[0][6:], twist)
            store6(at.t[0][12:], change)
            store6(at.t[1][6:], S)
            store6(at.t[1][12:], bracket(sub6(load6(at.V), Sv), S))
        if node.parent >= 0:
            times_adjoint(at.L[0], R, p, P[0])
            times_carried(at.L[1], at.L[2], Sv, P[3])
            times_adjoint(P[3], R, p, P[1])
            times_adjoint(at.L[2], R, p, P[2])
            for block in range(3):
                add_from_child(own.nodes[node.parent].L[block], R, p, P[block])


@kernel
def write_column(model, tree, work, own, c, index, below, H, D, M):
    """Column of one node's coordinate in all three matrices. ``below`` (nodes,): scratch."""
    nodes = own.nodes
    node, at = tree[index], nodes[index]
    k = node.dof
    whole, rates = at.t[0], at.t[1]
    L, F, S = at.L, load6(at.F), load6(at.S[0])
    all_force = add6(add6(block_times(L[0], load6(whole)), block_times(L[1], load6(whole[6:]))), block_times(L[2], load6(whole[12:])))
    rate_force = add6(block_times(L[1], load6(rates[6:])), block_times(L[2], load6(rates[12:])))
    inertia = block_times(L[2], S)
    H[k, k], D[k, k], M[k, k] = dot6(S, all_force), dot6(S, rate_force), dot6(S, inertia)
    if node.joint >= 0:
        joint = model.joints[node.joint]
        _, stiffness, damping = direction_force(joint, work.joints[node.joint], node.direction, at.x[0], at.v[0])
        rotor = joint.armature[node.direction]
        H[k, k] += rotor / (c * c) - stiffness - damping / c
        D[k, k] -= damping
        M[k, k] += rotor
    # inwards: what the frame passes on to those above it
    up, i = sub6(all_force, bracket_t(S, F)), index
    while tree[i].parent >= 0:
        R, p = load9(nodes[i].R), load3(nodes[i].p)
        up, rate_force, inertia = to_parent(R, p, up), to_parent(R, p, rate_force), to_parent(R, p, inertia)
        i = tree[i].parent
        if tree[i].count > 0:
            row, above = tree[i].dof, load6(nodes[i].S[0])
            H[row, k], D[row, k] = dot6(above, up), dot6(above, rate_force)
            M[row, k] = M[k, row] = dot6(above, inertia)
    # outwards: how the frames below it vary
    for j in range(18):
        at.s[j] = whole[j]
    for j in range(12):
        at.r[1, j] = rates[6 + j]
    for i in range(index, tree.shape[0]):
        above = tree[i].parent
        below[i] = i == index or (above >= index and below[above])
        if i == index or not below[i]:
            continue
        here, parent = nodes[i], nodes[above]
        R, p, Sv = load9(here.R), load3(here.p), load6(here.Sv)
        pose, twist = to_child(R, p, load6(parent.s)), to_child(R, p, load6(parent.s[6:]))
        change = sub6(to_child(R, p, load6(parent.s[12:])), bracket(Sv, twist))
        store6(here.s, pose)
        store6(here.s[6:], twist)
        store6(here.s[12:], change)
        rate_twist = to_child(R, p, load6(parent.r[1]))
        rate_change = sub6(to_child(R, p, load6(parent.r[1][6:])), bracket(Sv, rate_twist))
        store6(here.r[1], rate_twist)
        store6(here.r[1][6:], rate_change)
        if tree[i].count > 0:
            r, row = here.r[0], tree[i].dof
            H[row, k] = dot6(load6(r), pose) + dot6(load6(r[6:]), twist) + dot6(load6(r[12:]), change)
            D[row, k] = dot6(load6(r[6:]), rate_twist) + dot6(load6(r[12:]), rate_change)


@kernel
def stage_matrices(stage, tape, count, below, H, D, M):
    """H, D, M (stages, n, n): derivatives of the equations by the coordinates with what follows from them, by rates alone, by accelerations alone.

    Returns False where an entry could not be evaluated.
    """
    for entry in range(count):
        here = Stage(stage.model, stage.tree, stage.work, stage.own, stage.ties, tape.clock[entry, 0])
        recall_stage(here, tape, entry)
        if not residual(here)[1]:
            return False
        load_derivatives(here)
        gather_blocks(here.tree, here.own, here.c)
        for index in range(here.tree.shape[0]):
            if here.tree[index].count > 0:
                write_column(here.model, here.tree, here.work, here.own, here.c, index, below, H[entry], D[entry], M[entry])
    return True
