"""Forward dynamics of the trees in linear time: recursive hybrid dynamics (RedMax Algorithm 9).

Second derivatives of the coordinates follow from coordinates, rates and forces; those of driven directions are given, and the
force that this takes is found. The rate of a free rotation is its angular velocity in the node's frame, so that its columns
are constant too. Outwards V = A V_p + S v and c = ad(V) S v; inwards the articulated inertia I and force F of every subtree,

    U = I S,  D = S^T U + rotor,  u = tau - S . F,    to the parent: I - U D^-1 U^T and F + I' c + U D^-1 u;

outwards again a' = A a_p + c, v' = D^-1 (u - U . a'). Gravity is an acceleration of the world, against it.
A symmetric 3x3 matrix is six numbers: xx, xy, xz, yy, yz, zz.
"""
from __future__ import annotations

from math import isfinite
from typing import NamedTuple

import numpy as np

from dalembert.forces.bodies import push_on_bodies
from dalembert.forces.loads import load_bodies
from dalembert.formulations.reduced.joint_forces import ball_torque, direction_force
from dalembert.formulations.reduced.tie_equations import evaluate_ties
from dalembert.formulations.reduced.ties import ACROSS_JOINT, ACROSS_PATH, CLOSED, KEPT, Ties
from dalembert.kernels import inline, kernel
from dalembert.model.motions import (
    ZERO6,
    about,
    along_rate,
    along_spline,
    slid,
    spline_along,
    turned_about_axis,
    turned_about_point,
    unit3,
)
from dalembert.model.pose import put6
from dalembert.model.records import F, Model, Work, fields
from dalembert.model.splines import SPLINE_WORK, place_spline
from dalembert.model.tree import AXIS, LINE, POINT, SPLINE
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import (
    add3,
    cross3,
    load3,
    load4,
    load9,
    mat_mul,
    mat_mul_t,
    mat_t_vec,
    mat_vec,
    neg3,
    scale3,
    skew,
    store3,
    store4,
    store9,
    sub3,
    sym_inverse,
)
from dalembert.spatial.twists import add6, bracket, dot6, load6, scale6, store6, sub6, to_child, to_parent

NODE_FLOW = np.dtype(
    fields(
        # coordinate and rates, of a free rotation its quaternion and angular velocity (``x`` and ``chart`` stay zero there), second
        # derivatives, forces along the coordinates (rotors apart)
        F, x=3, v=3, turn=4, chart=0, a=3, tau=3,
        # placement in the parent node's frame and in the world; twist, velocity part of the acceleration; articulated inertia
        # [[J, B], [B^T, M]] and force; I S, D^-1 and u; acceleration, less gravity's
        R=9, p=3, W=9, place=3, V=6, c=6, J=6, B=9, M=6, F=6, U=(3, 6), D=9, u=3, A=6,
        # what ties push with; what is added to D besides: reflected inertia, and what methods add to it; columns of a spline
        load=6, extra=6, S=(2, 6),
    )
)
#: forces along the coordinates and wrench on the frame; what they change: second derivatives, the frame's acceleration, forces
#: along driven directions; and scratch
NODE_ANSWER = np.dtype(fields(F, f=3, e=6, a=3, A=6, held=3, u=3, F=6))


class FlowScratch(NamedTuple):
    """A record per node for motion, one for answers of the inertia to forces, and one per spline."""

    nodes: np.ndarray
    answers: np.ndarray
    splines: np.ndarray


class Flow(NamedTuple):
    """A mechanism in motion: what a rate of change of the state is made of.

    ``loaded``: wrenches act on bodies besides gravity, or ties do; ``forced``: inputs act along joints that have no law of their
    own; ``closed``: some ties stay closed.
    """

    model: Model
    tree: np.ndarray
    work: Work
    own: FlowScratch
    ties: Ties
    loaded: bool
    forced: bool
    closed: bool


# symmetric matrices

@inline
def load_sym(a):
    """A symmetric matrix from the first six entries of an array."""
    return (a[0], a[1], a[2], a[3], a[4], a[5])


@inline
def store_sym(a, S):
    """a[:6] = S."""
    a[0] = S[0]; a[1] = S[1]; a[2] = S[2]
    a[3] = S[3]; a[4] = S[4]; a[5] = S[5]


@inline
def sym_vec(S, v):
    """S v."""
    return (S[0] * v[0] + S[1] * v[1] + S[2] * v[2],
            S[1] * v[0] + S[3] * v[1] + S[4] * v[2],
            S[2] * v[0] + S[4] * v[1] + S[5] * v[2])


@inline
def sym_full(S):
    """All nine entries."""
    return (S[0], S[1], S[2], S[1], S[3], S[4], S[2], S[4], S[5])


@inline
def sym_less(S, d, a):
    """S - d a a^T."""
    x, y, z = d * a[0], d * a[1], d * a[2]
    return (S[0] - x * a[0], S[1] - x * a[1], S[2] - x * a[2], S[3] - y * a[1], S[4] - y * a[2], S[5] - z * a[2])


@inline
def sym_turned(R, S):
    """R S R^T."""
    T = mat_mul(R, sym_full(S))
    return (T[0] * R[0] + T[1] * R[1] + T[2] * R[2], T[0] * R[3] + T[1] * R[4] + T[2] * R[5], T[0] * R[6] + T[1] * R[7] + T[2] * R[8],
            T[3] * R[3] + T[4] * R[4] + T[5] * R[5], T[3] * R[6] + T[4] * R[7] + T[5] * R[8],
            T[6] * R[6] + T[7] * R[7] + T[8] * R[8])


# nodes

@inline
def column_of(node, at, j):
    """S_j for rates that are angular velocities where a rotation is free."""
    if node.kind == POINT:
        return about(load3(node.centre), unit3(j))
    if node.kind == SPLINE:
        return load6(at.S[j])
    return load6(node.screw)


@inline
def moved_along(node, at, v):
    """S v."""
    if node.kind == POINT:
        return about(load3(node.centre), load3(v))
    if node.kind == LINE or node.kind == AXIS:
        return scale6(v[0], load6(node.screw))
    if node.kind == SPLINE:
        return spline_along(node, at.S, v)
    return ZERO6


@inline
def place_flow(flow):
    """Placement, twist and velocity part of the acceleration of all nodes; inertias and forces of their own frames."""
    tree, nodes = flow.tree, flow.own.nodes
    for i in range(tree.shape[0]):
        node, at = tree[i], nodes[i]
        if node.kind == AXIS:
            R, p = turned_about_axis(node, at.x[0])
        elif node.kind == LINE:
            R, p = slid(node, at.x[0])
        elif node.kind == POINT:
            R, p = turned_about_point(node, quaternion.to_matrix(load4(at.turn)))
        elif node.kind == SPLINE:
            R, p = place_on_spline(flow, node, at)
        else:
            R, p = load9(node.R0), load3(node.p0)
        store9(at.R, R)
        store3(at.p, p)
        V = moved_along(node, at, at.v)
        if node.parent < 0:
            store9(at.W, R)
            store3(at.place, p)
            store6(at.c, ZERO6)
        else:
            above = nodes[node.parent]
            Sv = V
            V = add6(to_child(R, p, load6(above.V)), Sv)
            W = load9(above.W)
            store9(at.W, mat_mul(W, R))
            store3(at.place, add3(load3(above.place), mat_vec(W, p)))
            store6(at.c, bracket(V, Sv))
        store6(at.V, V)
        if node.kind == SPLINE:
            store6(at.c, add6(load6(at.c), along_rate(node, at, flow.own.splines[node.spline], at.v)))


@kernel
def place_on_spline(flow, node, at):
    """Placement on a spline, whose columns are written."""
    spline = flow.own.splines[node.spline]
    place_spline(flow.model.splines, node, at.x, spline)
    for j in range(node.count):
        store6(at.S[j], load6(spline.S[j]))
    return along_spline(node, spline)


@inline
def own_inertia(node, at):
    """Inertia and force M a - ad(V)^T M V of a node's own frame, where its subtree's are to be gathered."""
    w, v = load6(at.V)
    J, m = load9(node.inertia), node.mass
    store_sym(at.J, (J[0], J[1], J[2], J[4], J[5], J[8]))
    store_sym(at.M, (m, 0.0, 0.0, m, 0.0, m))
    for k in range(9):
        at.B[k] = 0.0
    store6(at.F, (cross3(w, mat_vec(J, w)), scale3(m, cross3(w, v))))


@kernel
def load_flow(flow):
    """Subtract the wrenches of inputs, loads and ties, gravity apart, from the forces of the nodes. Returns False where a loop is flipped."""
    model, tree, work, nodes = flow.model, flow.tree, flow.work, flow.own.nodes
    for i in range(tree.shape[0]):
        node, at = tree[i], nodes[i]
        if node.body < 0:
            continue
        body, W = work.bodies[node.body], load9(at.W)
        store9(body.R, W)
        store4(body.q, quaternion.from_matrix(W))
        store3(body.x, load3(at.place))
        w, v = load6(at.V)
        put6(work.velocity[node.body], mat_vec(W, v), w)
    load_bodies(model, work)
    if model.loads.shape[0] > 0:
        push_on_bodies(model, work, work.velocity, 0)
        push_on_bodies(model, work, work.velocity, 1)
    g, tied = load3(model.gravity), flow.ties.rows.shape[0] > 0
    if tied and not push_ties(flow):
        return False
    for i in range(tree.shape[0]):
        node, at = tree[i], nodes[i]
        if node.body < 0:
            continue
        load = work.bodies[node.body].load
        force = sub3(load3(load), scale3(node.mass, g))
        store6(at.F, sub6(load6(at.F), (load3(load[3:]), mat_t_vec(load9(at.W), force))))
        if tied:
            store6(at.F, sub6(load6(at.F), load6(at.load)))
    return True


@kernel
def push_ties(flow):
    """Gradients of all ties, and the wrenches of those that follow a law in ``load``. Returns False where a loop is flipped."""
    nodes, ties = flow.own.nodes, flow.ties
    for i in range(nodes.shape[0]):
        store6(nodes[i].load, ZERO6)
    for i in range(ties.rows.shape[0]):
        ties.rows[i].mu = 0.0
    if not evaluate_ties(flow):
        return False
    for i in range(ties.rows.shape[0]):
        row = ties.rows[i]
        if row.kind == CLOSED or row.kind == KEPT or row.kind == ACROSS_JOINT or row.kind == ACROSS_PATH:
            continue
        row.mu = -row.r  # what the law says: the residual is the force less that
        for e in range(row.first, row.first + row.ends):
            load = nodes[ties.ends[e].node].load
            store6(load, add6(load6(load), scale6(row.mu, load6(ties.ends[e].G))))
    return True


@inline
def push_flow(flow):
    """Write ``tau`` of all nodes: springs, dampers, servos and inputs along their coordinates, rotors apart."""
    model, tree, work, nodes = flow.model, flow.tree, flow.work, flow.own.nodes
    for i in range(tree.shape[0]):
        node, at = tree[i], nodes[i]
        at.tau[0] = 0.0
        at.tau[1] = 0.0
        at.tau[2] = 0.0
        if not (node.acts or flow.forced) or node.joint < 0 or node.count == 0 or node.driven:
            continue
        if node.kind == POINT:
            store3(at.tau, ball_torque(flow, node, at))
        else:
            for j in range(node.count):
                at.tau[j] = direction_force(model.joints[node.joint], work.joints[node.joint], node.direction + j, at.x[j], at.v[j])[0]


@inline
def times_inertia(J, B, M, X):
    """[[J, B], [B^T, M]] X."""
    return add3(sym_vec(J, X[0]), mat_vec(B, X[1])), add3(mat_t_vec(B, X[0]), sym_vec(M, X[1]))


@inline
def without(J, B, M, d, U):
    """[[J, B], [B^T, M]] - d U U^T."""
    x, y, z = d * U[0][0], d * U[0][1], d * U[0][2]
    b = U[1]
    B = (B[0] - x * b[0], B[1] - x * b[1], B[2] - x * b[2], B[3] - y * b[0], B[4] - y * b[1], B[5] - y * b[2], B[6] - z * b[0], B[7] - z * b[1], B[8] - z * b[2])
    return sym_less(J, d, U[0]), B, sym_less(M, d, U[1])


@inline
def gather(tree, nodes, i):
    """Eliminate a node's second derivatives, and add what is left of its inertia and force to the parent's."""
    node, at = tree[i], nodes[i]
    J, B, M, force, c = load_sym(at.J), load9(at.B), load_sym(at.M), load6(at.F), load6(at.c)
    if node.driven:
        c = add6(c, moved_along(node, at, at.a))
    elif node.kind == POINT:
        # columns (e_j, r x e_j): I S = [J + B [r]; B^T + M [r]]
        r = load3(node.centre)
        K = skew(r)
        top, low = mat_mul(B, K), mat_mul(sym_full(M), K)
        X = sym_full(J)
        T = (X[0] + top[0], X[1] + top[1], X[2] + top[2], X[3] + top[3], X[4] + top[4], X[5] + top[5], X[6] + top[6], X[7] + top[7], X[8] + top[8])
        L = (B[0] + low[0], B[3] + low[1], B[6] + low[2], B[1] + low[3], B[4] + low[4], B[7] + low[5], B[2] + low[6], B[5] + low[7], B[8] + low[8])
        E = mat_mul(K, L)
        x = at.extra
        D = sym_inverse((
            T[0] - E[0] + x[0], T[1] - E[1] + x[1], T[2] - E[2] + x[2], T[3] - E[3], T[4] - E[4] + x[3], T[5] - E[5] + x[4],
            T[6] - E[6], T[7] - E[7], T[8] - E[8] + x[5],
        ))
        u = sub3(load3(at.tau), add3(force[0], cross3(force[1], r)))
        store9(at.D, D)
        store3(at.u, u)
        for k in range(3):
            store6(at.U[k], ((T[k], T[3 + k], T[6 + k]), (L[k], L[3 + k], L[6 + k])))
        if node.parent < 0:
            return
        TD, LD = mat_mul(T, D), mat_mul(L, D)
        P, Q, N = mat_mul_t(TD, T), mat_mul_t(TD, L), mat_mul_t(LD, L)
        J = (J[0] - P[0], J[1] - P[1], J[2] - P[2], J[3] - P[4], J[4] - P[5], J[5] - P[8])
        B = (B[0] - Q[0], B[1] - Q[1], B[2] - Q[2], B[3] - Q[3], B[4] - Q[4], B[5] - Q[5], B[6] - Q[6], B[7] - Q[7], B[8] - Q[8])
        M = (M[0] - N[0], M[1] - N[1], M[2] - N[2], M[3] - N[4], M[4] - N[5], M[5] - N[8])
        force = add6(force, (mat_vec(TD, u), mat_vec(LD, u)))
    elif node.count == 2:
        S, T = load6(at.S[0]), load6(at.S[1])
        U, Y = times_inertia(J, B, M, S), times_inertia(J, B, M, T)
        xx, xy, yy = dot6(S, U) + at.extra[0], dot6(S, Y), dot6(T, Y) + at.extra[3]
        d = 1.0 / (xx * yy - xy * xy)
        at.D[0], at.D[1], at.D[3], at.D[4] = d * yy, -d * xy, -d * xy, d * xx
        u, y = at.tau[0] - dot6(S, force), at.tau[1] - dot6(T, force)
        at.u[0], at.u[1] = u, y
        store6(at.U[0], U)
        store6(at.U[1], Y)
        if node.parent < 0:
            return
        # one column after the other, the second without its part along the first
        force = add6(force, add6(scale6(at.D[0] * u + at.D[1] * y, U), scale6(at.D[3] * u + at.D[4] * y, Y)))
        J, B, M = without(J, B, M, 1.0 / xx, U)
        J, B, M = without(J, B, M, xx * d, sub6(Y, scale6(xy / xx, U)))
    elif node.count == 1:
        S = column_of(node, at, 0)
        U = times_inertia(J, B, M, S)
        d = 1.0 / (dot6(S, U) + at.extra[0])
        u = at.tau[0] - dot6(S, force)
        at.D[0] = d
        at.u[0] = u
        store6(at.U[0], U)
        if node.parent < 0:
            return
        J, B, M = without(J, B, M, d, U)
        force = add6(force, scale6(d * u, U))
    if node.parent < 0:
        return
    above = nodes[node.parent]
    R, p = load9(at.R), load3(at.p)
    force = to_parent(R, p, add6(force, times_inertia(J, B, M, c)))
    store6(above.F, add6(load6(above.F), force))
    add_inertia(above, R, p, J, B, M)


@inline
def add_inertia(above, R, p, J, B, M):
    """Add A^T I A to a parent's inertia: turned by R, then moved by p."""
    J, B, M = sym_turned(R, J), mat_mul_t(mat_mul(R, B), R), sym_turned(R, M)
    # B + [p] M, and J - B [p] + [p] (B + [p] M)^T; the columns of M are its rows
    c0, c1, c2 = cross3(p, (M[0], M[1], M[2])), cross3(p, (M[1], M[3], M[4])), cross3(p, (M[2], M[4], M[5]))
    N = (B[0] + c0[0], B[1] + c1[0], B[2] + c2[0], B[3] + c0[1], B[4] + c1[1], B[5] + c2[1], B[6] + c0[2], B[7] + c1[2], B[8] + c2[2])
    # rows of -B [p] are p x row; columns of [p] N^T are p x (row of N)
    r0, r1, r2 = cross3(p, (B[0], B[1], B[2])), cross3(p, (B[3], B[4], B[5])), cross3(p, (B[6], B[7], B[8]))
    n0, n1, n2 = cross3(p, (N[0], N[1], N[2])), cross3(p, (N[3], N[4], N[5])), cross3(p, (N[6], N[7], N[8]))
    own = above.J
    own[0] += J[0] + r0[0] + n0[0]
    own[1] += J[1] + r0[1] + n1[0]
    own[2] += J[2] + r0[2] + n2[0]
    own[3] += J[3] + r1[1] + n1[1]
    own[4] += J[4] + r1[2] + n2[1]
    own[5] += J[5] + r2[2] + n2[2]
    for k in range(9):
        above.B[k] += N[k]
    for k in range(6):
        above.M[k] += M[k]


@inline
def release(flow, tree, nodes, i):
    """Second derivatives and acceleration of a node whose parent's are known; what drives a direction that was given."""
    node, at = tree[i], nodes[i]
    R, p = load9(at.R), load3(at.p)
    if node.parent < 0:
        A = add6(((0.0, 0.0, 0.0), neg3(mat_t_vec(R, load3(flow.model.gravity)))), load6(at.c))
    else:
        A = add6(to_child(R, p, load6(nodes[node.parent].A)), load6(at.c))
    if node.driven:
        A = add6(A, moved_along(node, at, at.a))
        W = add6(load6(at.F), times_inertia(load_sym(at.J), load9(at.B), load_sym(at.M), A))
        for j in range(node.count):
            at.tau[j] = dot6(column_of(node, at, j), W) + at.extra[0 if j == 0 else 3] * at.a[j]
    elif node.kind == POINT:
        u = load3(at.u)
        rest = (u[0] - dot6(load6(at.U[0]), A), u[1] - dot6(load6(at.U[1]), A), u[2] - dot6(load6(at.U[2]), A))
        store3(at.a, mat_vec(load9(at.D), rest))
        A = add6(A, moved_along(node, at, at.a))
    elif node.count == 1:
        at.a[0] = at.D[0] * (at.u[0] - dot6(load6(at.U[0]), A))
        A = add6(A, scale6(at.a[0], column_of(node, at, 0)))
    elif node.count == 2:
        u, y = at.u[0] - dot6(load6(at.U[0]), A), at.u[1] - dot6(load6(at.U[1]), A)
        at.a[0], at.a[1] = at.D[0] * u + at.D[1] * y, at.D[3] * u + at.D[4] * y
        A = add6(A, moved_along(node, at, at.a))
    store6(at.A, A)


@kernel
def placed_dynamics(flow):
    """Second derivatives ``a`` of all nodes, after ``place_flow``. Returns False when one is not finite."""
    tree, nodes = flow.tree, flow.own.nodes
    count = tree.shape[0]
    for i in range(count):
        own_inertia(tree[i], nodes[i])
    if flow.loaded and not load_flow(flow):
        return False
    push_flow(flow)
    for i in range(count - 1, -1, -1):
        gather(tree, nodes, i)
    size = 0.0
    for i in range(count):
        release(flow, tree, nodes, i)
        size += abs(nodes[i].a[0]) + abs(nodes[i].a[1]) + abs(nodes[i].a[2])
    return isfinite(size)


@kernel
def forward_dynamics(flow):
    """``a`` of all nodes from their ``x``, ``turn`` and ``v`` (RedMax Algorithm 9). Returns False when one is not finite.

    Of driven nodes ``a`` is given, and the force that this takes, with the laws of the joint included, is left in ``tau``.
    """
    place_flow(flow)
    return placed_dynamics(flow)


@kernel
def inverse_inertia(flow):
    """Answers ``a`` = M^-1 (f + J^T e), and what frames accelerate by, after ``forward_dynamics`` (RedMax Algorithm 10).

    Driven directions have the ``a`` that they are given, and ``held`` is what this takes.
    """
    tree, nodes, answers = flow.tree, flow.own.nodes, flow.own.answers
    for i in range(tree.shape[0]):
        store6(answers[i].F, scale6(-1.0, load6(answers[i].e)))
    for i in range(tree.shape[0] - 1, -1, -1):
        node, at, answer = tree[i], nodes[i], answers[i]
        force = load6(answer.F)
        if node.driven:
            force = add6(force, times_inertia(load_sym(at.J), load9(at.B), load_sym(at.M), moved_along(node, at, answer.a)))
        else:
            for j in range(node.count):
                answer.u[j] = answer.f[j] - dot6(column_of(node, at, j), force)
            for j in range(node.count):
                force = add6(force, scale6(pivot_times(node, at, j, answer.u), load6(at.U[j])))
        if node.parent >= 0:
            above = answers[node.parent].F
            store6(above, add6(load6(above), to_parent(load9(at.R), load3(at.p), force)))
    for i in range(tree.shape[0]):
        node, at, answer = tree[i], nodes[i], answers[i]
        A = ZERO6 if node.parent < 0 else to_child(load9(at.R), load3(at.p), load6(answers[node.parent].A))
        if not node.driven:
            for j in range(node.count):
                answer.u[j] -= dot6(load6(at.U[j]), A)
            for j in range(node.count):
                answer.a[j] = pivot_times(node, at, j, answer.u)
        A = add6(A, moved_along(node, at, answer.a))
        store6(answer.A, A)
        if node.driven:
            W = add6(load6(answer.F), times_inertia(load_sym(at.J), load9(at.B), load_sym(at.M), A))
            for j in range(node.count):
                answer.held[j] = dot6(column_of(node, at, j), W) + at.extra[0 if j == 0 else 3] * answer.a[j]


@inline
def pivot_times(node, at, j, u):
    """Entry ``j`` of D^-1 u."""
    if node.kind == POINT:
        return at.D[3 * j] * u[0] + at.D[3 * j + 1] * u[1] + at.D[3 * j + 2] * u[2]
    if node.count == 2:
        return at.D[3 * j] * u[0] + at.D[3 * j + 1] * u[1]
    return at.D[0] * u[0]


def new_flow(tree: np.ndarray) -> FlowScratch:
    """Room for forward dynamics of a tree's nodes."""
    splines = int(np.count_nonzero(tree["kind"] == SPLINE))
    scratch = FlowScratch(np.zeros(len(tree), NODE_FLOW), np.zeros(len(tree), NODE_ANSWER), np.zeros(max(splines, 1), SPLINE_WORK))
    scratch.nodes["turn"][:, 0] = 1.0
    scratch.nodes["extra"][:, 0] = tree["rotor"]
    return scratch
