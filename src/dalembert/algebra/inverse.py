"""Kernels of inverse dynamics (RedMax eq. in section 2.9, "RNEA") and of its exact derivatives along the tangent.

Every frame varies by s = (pose, twist, acceleration), 18 numbers, s = T s_parent + t d, for changes d of configuration, rates
and accelerations; forces vary by L s, and are gathered from the leaves, all in linear time for one direction.
"""
from __future__ import annotations

from dalembert.formulations.reduced.equations import own_force
from dalembert.kernels import inline, kernel
from dalembert.model.motions import ZERO6, about, along_derivative, along_rate, rate_derivative, unit3
from dalembert.model.tree import POINT
from dalembert.spatial.tuples import add3, cross3, load3, load9, mat_t_vec, mat_vec, scale3
from dalembert.spatial.twists import (
    add6,
    bracket,
    bracket_t,
    dot6,
    load6,
    scale6,
    store6,
    sub6,
    to_child,
    to_parent,
)


@kernel
def inverse_dynamics(gravity, rotors, tree, nodes, tau):
    """Forces tau (n,) that the motion of the nodes asks for, with ``rotors`` (n,) reflected along coordinates; leaves in ``F`` what each joint carries. Needs ``put`` before."""
    g = load3(gravity)
    for i in range(tree.shape[0]):
        node, at = tree[i], nodes[i]
        store6(at.load, ((0.0, 0.0, 0.0), scale3(node.mass, mat_t_vec(load9(at.W), g))))
        own_force(node, at)
    for i in range(tree.shape[0] - 1, -1, -1):
        node, at = tree[i], nodes[i]
        F = load6(at.F)
        for j in range(node.count):
            k = node.dof + j
            tau[k] = dot6(load6(at.S[j]), F)
            if rotors[k] > 0.0:
                tau[k] += rotors[k] * at.a[j]
        if node.parent >= 0:
            above = nodes[node.parent].F
            store6(above, add6(load6(above), to_parent(load9(at.R), load3(at.p), F)))


@inline
def own_variation(node, at, spline, dq, dv, da):
    """What a node's own S q', and S q'' + S' q', change by, brackets left out; and its own displacement S dq."""
    k = node.dof
    eta, twist, change = ZERO6, ZERO6, ZERO6
    for j in range(node.count):
        S = load6(at.S[j])
        eta = add6(eta, scale6(dq[k + j], S))
        twist = add6(twist, scale6(dv[k + j], S))
        change = add6(change, scale6(da[k + j], S))
    if node.kind == POINT:
        # S' q' vanishes whatever the rates are; the columns of a rotation read from child to parent are constant
        if not node.backwards:
            centre = load3(node.centre)
            twist = add6(twist, about(centre, cross3(load3(at.v), eta[0])))
            change = add6(change, about(centre, cross3(load3(at.a), eta[0])))
        return eta, twist, change
    for j in range(node.count):
        first = along_derivative(node, at, spline, j, at.v)
        twist = add6(twist, scale6(dq[k + j], first))
        moved = add6(along_derivative(node, at, spline, j, at.a), rate_derivative(node, at, spline, j, at.v))
        sped = add6(first, along_rate(node, at, spline, unit3(j)))
        change = add6(change, add6(scale6(dq[k + j], moved), scale6(dv[k + j], sped)))
    return eta, twist, change


@inline
def vary_outwards(tree, own, i, dq, dv, da):
    """Variation of a node whose parent's is known, and of the force of its own frame."""
    nodes = own.nodes
    node, at = tree[i], nodes[i]
    R, p, V, Sv = load9(at.R), load3(at.p), load6(at.V), load6(at.Sv)
    eta, twist, change = own_variation(node, at, own.splines[node.spline], dq, dv, da)
    change = add6(change, bracket(V, twist))
    pose, twist = eta, add6(twist, bracket(sub6(V, Sv), eta))
    if node.parent >= 0:
        above = nodes[node.parent]
        pose = add6(pose, to_child(R, p, load6(above.s)))
        twist = add6(twist, to_child(R, p, load6(above.s[6:])))
        change = add6(change, to_child(R, p, load6(above.s[12:])))
        change = add6(change, bracket(to_child(R, p, load6(above.A)), eta))
    change = add6(change, bracket(twist, Sv))
    store6(at.s, pose)
    store6(at.s[6:], twist)
    store6(at.s[12:], change)
    store6(at.e, own_force_variation(node, at, pose, twist, change))


@inline
def vary_inwards(rotors, tree, own, i, dq, da, dtau):
    """Change of tau along a node's coordinates, and of what its subtree asks of the parent."""
    nodes = own.nodes
    node, at = tree[i], nodes[i]
    dF, F, spline = load6(at.e), load6(at.F), own.splines[node.spline]
    eta = ZERO6
    for j in range(node.count):
        eta = add6(eta, scale6(dq[node.dof + j], load6(at.S[j])))
    for j in range(node.count):
        S = load6(at.S[j])
        total = dot6(S, dF)
        if node.kind == POINT:
            if not node.backwards:
                total += dot6(about(load3(node.centre), cross3(S[0], eta[0])), F)
        else:
            total += rotors[node.dof + j] * da[node.dof + j]
            for k in range(node.count):
                total += dq[node.dof + k] * dot6(along_derivative(node, at, spline, k, unit3(j)), F)
        dtau[node.dof + j] = total
    if node.parent >= 0:
        above = nodes[node.parent].e
        store6(above, add6(load6(above), to_parent(load9(at.R), load3(at.p), sub6(dF, bracket_t(eta, F)))))


@kernel
def vary(rotors, tree, own, dq, dv, da, dtau):
    """What tau changes by along a direction (n,) of configuration, rates and accelerations. Needs ``inverse_dynamics`` before."""
    for i in range(tree.shape[0]):
        vary_outwards(tree, own, i, dq, dv, da)
    for i in range(tree.shape[0] - 1, -1, -1):
        vary_inwards(rotors, tree, own, i, dq, da, dtau)


@kernel
def vary_from(rotors, tree, own, first, below, dq, dv, da, dtau):
    """The same along a direction of node ``first`` alone: the nodes ``below`` it vary, and forces of those and of its ancestors."""
    nodes, i = own.nodes, tree[first].parent
    while i >= 0:
        nodes[i].s[:] = 0.0
        nodes[i].e[:] = 0.0
        i = tree[i].parent
    for i in range(first, tree.shape[0]):
        if below[i]:
            vary_outwards(tree, own, i, dq, dv, da)
    for i in range(tree.shape[0] - 1, first - 1, -1):
        if below[i]:
            vary_inwards(rotors, tree, own, i, dq, da, dtau)
    i = tree[first].parent
    while i >= 0:
        vary_inwards(rotors, tree, own, i, dq, da, dtau)
        i = tree[i].parent


@inline
def own_force_variation(node, at, pose, twist, change):
    """How M a - ad(V)^T M V - W of a node's own frame changes; the weight turns in the frame."""
    J, m = load9(node.inertia), node.mass
    w, v = load6(at.V)
    dw, du = twist
    torque = add3(mat_vec(J, change[0]), add3(cross3(dw, mat_vec(J, w)), cross3(w, mat_vec(J, dw))))
    force = scale3(m, add3(change[1], add3(cross3(dw, v), cross3(w, du))))
    return sub6((torque, force), ((0.0, 0.0, 0.0), cross3(load3(at.load[3:]), pose[0])))


@kernel
def inverse_derivatives(rotors, tree, own, room, below, by_q, by_v, by_a):
    """Derivatives (n, n) of tau, zero before, a row for each number that it is differentiated by. ``room`` (2, n) is zero; ``below``
    (nodes,) is scratch.
    """
    unit, zero = room[0], room[1]
    for first in range(tree.shape[0]):
        for i in range(first, tree.shape[0]):
            above = tree[i].parent
            below[i] = i == first or (above >= first and below[above])
        for j in range(tree[first].count):
            k = tree[first].dof + j
            unit[k] = 1.0
            vary_from(rotors, tree, own, first, below, unit, zero, zero, by_q[k])
            vary_from(rotors, tree, own, first, below, zero, unit, zero, by_v[k])
            vary_from(rotors, tree, own, first, below, zero, zero, unit, by_a[k])
            unit[k] = 0.0
