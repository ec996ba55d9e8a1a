"""Linearly implicit Euler in joint coordinates (RedMax eq. 2.84 and 2.86, with the signs of D and the damping as they must be).

With K and D the derivatives of the forces by position and rate, and a = (v+ - v)/h,

    (M - h D - h^2 K) a = f + h K v:

the same recursion with other inertias and pivots, linear in the bodies (Algorithm 10). The symmetric part of what loads add per body
is taken, which keeps the order; springs and cables between bodies, and loops at the level of rates (eq. 2.106), are rows over
such solves: a law gives mu = f + h K G v + (h^2 K + h D) G a along its number.
"""
from __future__ import annotations

from math import isfinite
from typing import NamedTuple

import numpy as np

from dalembert.forces.ball import rotation_spring_change
from dalembert.formulations.reduced.closing import answer_rows, factor_closed, is_closed, row_flow, takes_part
from dalembert.formulations.reduced.equations import add_load_blocks
from dalembert.formulations.reduced.forward import column_of, gather, inverse_inertia, load_flow, own_inertia, push_flow
from dalembert.formulations.reduced.joint_forces import direction_force, laws_of_ball
from dalembert.formulations.reduced.ties import ACROSS_JOINT, ACROSS_PATH
from dalembert.kernels import inline, kernel
from dalembert.model.motions import ZERO6, unit3
from dalembert.model.records import F, Model, Work, fields
from dalembert.model.rotations import in_joint
from dalembert.model.tree import POINT
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import (
    add3,
    load3,
    load4,
    load9,
    mat_mul,
    mat_mul_t,
    mat_t_mul,
    mat_t_vec,
    mat_vec,
    neg3,
    scale3,
    store3,
    store9,
)
from dalembert.spatial.twists import add6, dot6, load6, store6, to_child, to_parent

#: what loads on a node's body change by with its pose and twist, in the node's frame; its rotation in the world and its twist
NODE_SOFT = np.dtype(fields(F, W=9, V=6, K=(6, 6), C=(6, 6)))


class SoftScratch(NamedTuple):
    """A record per node, and room for the blocks of one load (6, 6)."""

    nodes: np.ndarray
    K: np.ndarray
    D: np.ndarray


class Softening(NamedTuple):
    """Loads with their derivatives."""

    model: Model
    tree: np.ndarray
    work: Work
    own: SoftScratch


def new_soft(nodes: int) -> SoftScratch:
    """Room for the derivatives of forces."""
    return SoftScratch(np.zeros(nodes, NODE_SOFT), np.zeros((6, 6)), np.zeros((6, 6)))


@kernel
def soften_bodies(flow, soft, h):
    """Inertias less h D + h^2 K of the loads on the bodies, and their forces as the motion so far would change them."""
    nodes = flow.own.nodes
    for i in range(flow.tree.shape[0]):
        store9(soft.nodes[i].W, load9(nodes[i].W))
        store6(soft.nodes[i].V, load6(nodes[i].V))
        soft.nodes[i].K[:] = 0.0
        soft.nodes[i].C[:] = 0.0
    add_load_blocks(Softening(flow.model, flow.tree, flow.work, soft))
    for i in range(flow.tree.shape[0]):
        if flow.tree[i].body < 0:
            continue
        at, K, C = nodes[i], soft.nodes[i].K, soft.nodes[i].C
        for r in range(3):
            for c in range(3):
                at.B[3 * r + c] -= 0.5 * (h * (C[r, 3 + c] + C[3 + c, r]) + h * h * (K[r, 3 + c] + K[3 + c, r]))
        k = 0
        for r in range(3):
            for c in range(r, 3):
                at.J[k] -= 0.5 * (h * (C[r, c] + C[c, r]) + h * h * (K[r, c] + K[c, r]))
                at.M[k] -= 0.5 * (h * (C[3 + r, 3 + c] + C[3 + c, 3 + r]) + h * h * (K[3 + r, 3 + c] + K[3 + c, 3 + r]))
                k += 1
        for r in range(6):
            for c in range(6):
                at.F[r] -= h * K[r, c] * at.V[c]


@inline
def soften_joint(flow, node, at, h):
    """What springs, dampers and servos of a joint add to its node's pivot and force."""
    joint, tie = flow.model.joints[node.joint], flow.work.joints[node.joint]
    if node.kind == POINT:
        soften_ball(joint, node, at, h)
        return
    for j in range(node.count):
        _, K, D = direction_force(joint, tie, node.direction + j, at.x[j], at.v[j])
        at.extra[3 * j] = joint.armature[node.direction + j] - h * D - h * h * K
        at.tau[j] += h * K * at.v[j]


@inline
def harden_joint(flow, node, at):
    """Leave the reflected inertia alone in a node's pivot: what comes after a step has no part in how it was made."""
    for k in range(6):
        at.extra[k] = 0.0
    if node.kind != POINT:
        for j in range(node.count):
            at.extra[3 * j] = flow.model.joints[node.joint].armature[node.direction + j]


@kernel
def soften_ball(joint, node, at, h):
    """The same for a free rotation; that its torque turns with it is left out."""
    stiffness, damping = laws_of_ball(joint, node.direction)
    frame, rest = load9(node.frame), load9(node.rest)
    E = in_joint(node, quaternion.to_matrix(load4(at.turn)))
    around = mat_mul(frame, mat_mul_t(damping if node.backwards else mat_t_mul(E, mat_mul(damping, E)), frame))
    K0, K1, K2 = ball_column(node, rest, stiffness, E, frame, 0), ball_column(node, rest, stiffness, E, frame, 1), ball_column(node, rest, stiffness, E, frame, 2)
    K = (K0[0], K1[0], K2[0], K0[1], K1[1], K2[1], K0[2], K1[2], K2[2])
    n = 0
    for r in range(3):
        for c in range(r, 3):
            at.extra[n] = h * around[3 * r + c] - 0.5 * h * h * (K[3 * r + c] + K[3 * c + r])
            n += 1
    store3(at.tau, add3(load3(at.tau), scale3(h, mat_vec(K, load3(at.v)))))


@inline
def ball_column(node, rest, stiffness, E, frame, j):
    """How the torque of a free rotation's springs on the node, in its frame, changes as it turns about its axis ``j``."""
    turned = mat_t_vec(frame, unit3(j))
    if node.backwards:
        return mat_vec(frame, neg3(rotation_spring_change(rest, stiffness, E, neg3(mat_t_vec(E, turned)))))
    return mat_vec(frame, mat_t_vec(E, rotation_spring_change(rest, stiffness, E, turned)))


@kernel
def forces_along(flow):
    """Write what pushes along the coordinates, less what the motion takes at constant rates, into ``f`` of the answers.

    ``F`` of the nodes holds the forces of their own frames, ``tau`` those of the joints; both are used up.
    """
    tree, nodes, answers = flow.tree, flow.own.nodes, flow.own.answers
    g = load3(flow.model.gravity)
    for i in range(tree.shape[0]):
        node, at = tree[i], nodes[i]
        R, p = load9(at.R), load3(at.p)
        A = ((0.0, 0.0, 0.0), neg3(mat_t_vec(R, g))) if node.parent < 0 else to_child(R, p, load6(nodes[node.parent].A))
        A = add6(A, load6(at.c))
        store6(at.A, A)
        store6(at.F, add6(load6(at.F), (mat_vec(load9(node.inertia), A[0]), scale3(node.mass, A[1]))))
    for i in range(tree.shape[0] - 1, -1, -1):
        node, at = tree[i], nodes[i]
        force = load6(at.F)
        for j in range(node.count):
            answers[i].f[j] = at.tau[j] - dot6(column_of(node, at, j), force)
        if node.parent >= 0:
            above = nodes[node.parent].F
            store6(above, add6(load6(above), to_parent(load9(at.R), load3(at.p), force)))
        store6(at.F, ZERO6)
        store6(at.c, ZERO6)


@kernel
def soften_ties(flow, h):
    """What a row adds to its own pivot: the compliance of its law over the step; zero where that is no spring or damper."""
    for i in range(flow.ties.rows.shape[0]):
        row = flow.ties.rows[i]
        row.scale = 0.0
        if not (is_closed(row) or row.kind == ACROSS_JOINT or row.kind == ACROSS_PATH):
            kappa = h * h * row.K + h * row.D
            if kappa < 0.0:
                row.scale = -1.0 / kappa


@kernel
def linearly_implicit_accelerations(flow, soft, h, pull):
    """``a`` of all nodes with v+ = v + h a, after ``place_flow``; that of driven directions is given.

    ``pull``: the part (1/s) of what is open in a loop that rates at the end ask back. Returns False when a number is not finite.
    """
    tree, nodes, answers, ties = flow.tree, flow.own.nodes, flow.own.answers, flow.ties
    for i in range(tree.shape[0]):
        own_inertia(tree[i], nodes[i])
    if flow.loaded and not load_flow(flow):
        return False
    push_flow(flow)
    if flow.model.loads.shape[0] > 0:
        soften_bodies(flow, soft, h)
    for i in range(tree.shape[0]):
        if tree[i].acts and not tree[i].driven:
            soften_joint(flow, tree[i], nodes[i], h)
    forces_along(flow)
    for i in range(tree.shape[0] - 1, -1, -1):
        gather(tree, nodes, i)
    rank = 0
    tied = ties.rows.shape[0] > 0
    if tied:
        soften_ties(flow, h)
        for i in range(tree.shape[0]):
            store3(nodes[i].u, load3(answers[i].f))
        rank = factor_closed(flow)
        for i in range(tree.shape[0]):
            store3(answers[i].f, load3(nodes[i].u))
    for i in range(tree.shape[0]):
        node = tree[i]
        store6(answers[i].e, ZERO6)
        if node.driven and node.joint >= 0:
            for j in range(node.count):
                answers[i].a[j] = nodes[i].a[j]
    inverse_inertia(flow)
    for i in range(tree.shape[0]):
        store3(nodes[i].a, load3(answers[i].a))
    if tied:
        for i in range(ties.rows.shape[0]):
            row = ties.rows[i]
            ties.vector[i] = 0.0
            if takes_part(row):
                ties.vector[i] = -row_change(flow, row)
                if is_closed(row):
                    ties.vector[i] -= (row_flow(flow, row) + pull * row.r) / h
                else:
                    ties.vector[i] += h * row.K * row_flow(flow, row) * row.scale
        for i in range(tree.shape[0]):
            for j in range(3):
                answers[i].f[j] = 0.0
                answers[i].a[j] = 0.0
        answer_rows(flow, rank)
        for i in range(tree.shape[0]):
            if not tree[i].driven:
                for j in range(tree[i].count):
                    nodes[i].a[j] += answers[i].a[j]
    size = 0.0
    for i in range(tree.shape[0]):
        if tree[i].acts and not tree[i].driven:
            harden_joint(flow, tree[i], nodes[i])
        size += abs(nodes[i].a[0]) + abs(nodes[i].a[1]) + abs(nodes[i].a[2])
    return isfinite(size)


@inline
def row_change(flow, row):
    """How the rate of a row's number changes with the answers."""
    total = 0.0
    for e in range(row.first, row.first + row.ends):
        end = flow.ties.ends[e]
        total += dot6(load6(end.G), load6(flow.own.answers[end.node].A))
    return total
