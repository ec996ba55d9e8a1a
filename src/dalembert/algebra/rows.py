"""Kernels of what the tree leaves out: rows of joints that close loops and of couplings, and forces of springs, dampers and loads."""
from __future__ import annotations

from dalembert.formulations.reduced.equations import gather_loads, place_bodies
from dalembert.formulations.reduced.joint_forces import evaluate_joint_forces
from dalembert.formulations.reduced.tie_equations import evaluate_closed, evaluate_direction, evaluate_tie
from dalembert.formulations.reduced.ties import CLOSED, DIRECTION, LAW
from dalembert.kernels import kernel
from dalembert.model.bias import bias, coupling_bias
from dalembert.model.couplings import evaluate_coupling
from dalembert.model.pose import joint_at_knot, write_gradients
from dalembert.model.rows import coordinates, row_axes
from dalembert.model.tree import POINT
from dalembert.spatial.tuples import add3, cross3, dot3, load3, load9, mat_t_vec, scale3
from dalembert.spatial.twists import add6, dot6, load6, scale6, store6, sub6, to_parent


@kernel
def evaluate_outside(stage):
    """Poses of the bodies, and gradients of joints outside of the tree and of couplings. Needs ``put`` before."""
    model, work = stage.model, stage.work
    place_bodies(stage.tree, stage.own.nodes, work)
    for i in stage.ties.loops:
        joint, at = model.joints[i], work.joints[i]
        y, C, R_parent = joint_at_knot(work.bodies, joint)
        if joint.free > 0:
            coordinates(joint, y, C, at.coordinate)
        write_gradients(joint, at, joint.locks, y, C, R_parent)
    for i in range(model.couplings.shape[0]):
        evaluate_coupling(model, work, i, False)


@kernel
def loop_rows(stage, chosen, values, G):
    """How far the chosen rows are open, and their Jacobian (rows, n), zero before. Needs ``evaluate_outside`` before."""
    tree, nodes, ties = stage.tree, stage.own.nodes, stage.ties
    for m in range(chosen.shape[0]):
        row = ties.rows[chosen[m]]
        if row.kind == CLOSED:
            evaluate_closed(stage, row)
        else:
            evaluate_tie(stage, row)
        values[m] = row.r
        for e in range(row.first, row.first + row.ends):
            W, i = load6(ties.ends[e].G), ties.ends[e].node
            while i >= 0:
                node, at = tree[i], nodes[i]
                for k in range(node.count):
                    G[m, node.dof + k] += dot6(load6(at.S[k]), W)
                W = to_parent(load9(at.R), load3(at.p), W)
                i = node.parent


@kernel
def loop_bias(stage, chosen, found):
    """Second time derivatives of the chosen rows when no rate changes: G' v. Needs ``loop_rows`` before."""
    model, work, ties, nodes = stage.model, stage.work, stage.ties, stage.own.nodes
    for m in range(chosen.shape[0]):
        row = ties.rows[chosen[m]]
        total = 0.0
        if row.kind == CLOSED:
            joint, at, k = model.joints[row.index], work.joints[row.index], row.part
            y, C, R_parent = joint_at_knot(work.bodies, joint)
            up, uc = work.velocity[joint.parent], work.velocity[joint.child]
            a, b = row_axes(joint, at, k)
            total = bias(
                joint, int(joint.row_kind[k]), 0, a, b, y, C, R_parent, load3(up), load3(up[3:]), load3(uc), load3(uc[3:]),
            )
        else:
            total = coupling_bias(model, work, row.index, work.velocity)
        for e in range(row.first, row.first + row.ends):
            at = nodes[ties.ends[e].node]
            w, v = load6(at.V)
            alpha, linear = load6(at.A)
            total += dot6(load6(ties.ends[e].G), (alpha, add3(linear, cross3(w, v))))
        found[m] = total


@kernel
def passive_forces(stage, tau):
    """tau (n,): what springs, dampers, servos, wrenches and loads push with, gravity apart. Needs ``evaluate_outside`` before."""
    model, tree, nodes, ties = stage.model, stage.tree, stage.own.nodes, stage.ties
    gather_loads(stage)
    g = load3(model.gravity)
    for i in range(tree.shape[0]):
        at = nodes[i]
        if tree[i].body >= 0:
            weight = scale3(tree[i].mass, mat_t_vec(load9(at.W), g))
            store6(at.e, sub6(load6(at.load), ((0.0, 0.0, 0.0), weight)))
        else:
            at.e[:] = 0.0
    for k in range(ties.rows.shape[0]):
        row = ties.rows[k]
        row.mu = 0.0
        if row.kind == DIRECTION:
            evaluate_direction(stage, row)
        elif row.kind == LAW:
            evaluate_tie(stage, row)
        else:
            continue
        for e in range(row.first, row.first + row.ends):
            on = nodes[ties.ends[e].node].e
            store6(on, add6(load6(on), scale6(-row.r, load6(ties.ends[e].G))))
    evaluate_joint_forces(stage)
    for i in range(tree.shape[0] - 1, -1, -1):
        node, at = tree[i], nodes[i]
        e, own = load6(at.e), load3(at.tau)
        for j in range(node.count):
            S = load6(at.S[j])
            tau[node.dof + j] = dot6(S, e) + (dot3(S[0], own) if node.kind == POINT else own[j])
        if node.parent >= 0:
            above = nodes[node.parent].e
            store6(above, add6(load6(above), to_parent(load9(at.R), load3(at.p), e)))
