"""The Newton matrix of a stage in linear time: factored from the leaves, solved forwards and transposed (no matrix is formed).

Every node's frame varies by s = (pose, twist, acceleration), 18 numbers, with s = T s_parent + t dq, and the force that its
subtree asks for by L s. Eliminating dq from the leaves adds A^T (L T - B D^-1 r) to the parent's L, where

    T = [[A, 0, 0], [0, A, 0], [0, -ad(S q') A, A]],   D = S^T L t + (dS)^T F + joint terms,   r = S^T L T,   B = L t - ad(S)^T F.

See RedMax section 3.3 for the matrix that this never builds.
"""
from __future__ import annotations

from dalembert.formulations.reduced.joint_forces import add_joint_derivatives
from dalembert.kernels import inline, kernel
from dalembert.model.motions import along_derivative, unit3, varied_twist
from dalembert.model.tree import FOLLOWER, LINE, POINT, SPLINE
from dalembert.spatial.tuples import cross3, inverse9, load3, load9, mat_vec, norm3, scale3
from dalembert.spatial.twists import add6, bracket, bracket_t, dot6, load6, store6, sub6, to_child, to_parent


@inline
def times_adjoint(X, R, p, out):
    """out = X A for (6, 6) blocks: columns (a, b) become (a R^T - b R^T [p], b R^T)."""
    for i in range(6):
        a, b = (X[i, 0], X[i, 1], X[i, 2]), (X[i, 3], X[i, 4], X[i, 5])
        b = mat_vec(R, b)
        a = mat_vec(R, a)
        # row vector b R^T [p] = -(p x (R b))^T ... with [p]^T = -[p]
        lever = cross3(p, b)
        out[i, 0] = a[0] + lever[0]
        out[i, 1] = a[1] + lever[1]
        out[i, 2] = a[2] + lever[2]
        out[i, 3] = b[0]
        out[i, 4] = b[1]
        out[i, 5] = b[2]


@inline
def times_carried(by_twist, by_acceleration, Sv, out):
    """out = by_twist - by_acceleration ad(S q') for (6, 6) blocks: what twists of the parent do, also through accelerations."""
    w, v = Sv
    for row in range(6):
        a = (by_acceleration[row, 0], by_acceleration[row, 1], by_acceleration[row, 2])
        b = (by_acceleration[row, 3], by_acceleration[row, 4], by_acceleration[row, 5])
        # row vector times [w] is (row x w)
        aw, bv, bw = cross3(a, w), cross3(b, v), cross3(b, w)
        for k in range(3):
            out[row, k] = by_twist[row, k] - aw[k] - bv[k]
            out[row, 3 + k] = by_twist[row, 3 + k] - bw[k]


@inline
def add_from_child(L, R, p, X):
    """L += A^T X for (6, 6) blocks."""
    for j in range(6):
        torque, force = to_parent(R, p, ((X[0, j], X[1, j], X[2, j]), (X[3, j], X[4, j], X[5, j])))
        L[0, j] += torque[0]
        L[1, j] += torque[1]
        L[2, j] += torque[2]
        L[3, j] += force[0]
        L[4, j] += force[1]
        L[5, j] += force[2]


@inline
def block_times(L, X):
    """L X for a (6, 6) block and a twist."""
    a, b = X
    out0 = L[0, 0] * a[0] + L[0, 1] * a[1] + L[0, 2] * a[2] + L[0, 3] * b[0] + L[0, 4] * b[1] + L[0, 5] * b[2]
    out1 = L[1, 0] * a[0] + L[1, 1] * a[1] + L[1, 2] * a[2] + L[1, 3] * b[0] + L[1, 4] * b[1] + L[1, 5] * b[2]
    out2 = L[2, 0] * a[0] + L[2, 1] * a[1] + L[2, 2] * a[2] + L[2, 3] * b[0] + L[2, 4] * b[1] + L[2, 5] * b[2]
    out3 = L[3, 0] * a[0] + L[3, 1] * a[1] + L[3, 2] * a[2] + L[3, 3] * b[0] + L[3, 4] * b[1] + L[3, 5] * b[2]
    out4 = L[4, 0] * a[0] + L[4, 1] * a[1] + L[4, 2] * a[2] + L[4, 3] * b[0] + L[4, 4] * b[1] + L[4, 5] * b[2]
    out5 = L[5, 0] * a[0] + L[5, 1] * a[1] + L[5, 2] * a[2] + L[5, 3] * b[0] + L[5, 4] * b[1] + L[5, 5] * b[2]
    return (out0, out1, out2), (out3, out4, out5)


@inline
def row_times(X, L, j):
    """Entry ``j`` of the row X^T L for a (6, 6) block."""
    return X[0][0] * L[0, j] + X[0][1] * L[1, j] + X[0][2] * L[2, j] + X[1][0] * L[3, j] + X[1][1] * L[4, j] + X[1][2] * L[5, j]


@inline
def set_skew(M, row, col, scale, v):
    """scale [v] into a 3x3 block of M."""
    M[row, col] = 0.0
    M[row, col + 1] = -scale * v[2]
    M[row, col + 2] = scale * v[1]
    M[row + 1, col] = scale * v[2]
    M[row + 1, col + 1] = 0.0
    M[row + 1, col + 2] = -scale * v[0]
    M[row + 2, col] = -scale * v[1]
    M[row + 2, col + 1] = scale * v[0]
    M[row + 2, col + 2] = 0.0


@inline
def own_blocks(node, at):
    """L of a frame by itself: [-K, -(adT(M V) + ad(V)^T M) - C, M], with K and C of its loads."""
    L = at.L
    w, v = load6(at.V)
    J = load9(node.inertia)
    m = node.mass
    for i in range(6):
        for j in range(6):
            L[0, i, j] = -at.K[i, j]
            L[1, i, j] = -at.C[i, j]
            L[2, i, j] = 0.0
    if node.body < 0:
        return
    for i in range(3):
        for j in range(3):
            L[2, i, j] = J[3 * i + j]
        L[2, 3 + i, 3 + i] = m
    # -ad(V)^T M V = (w x J w, m w x v); varied: (dw x J w + w x J dw, m (dw x v + w x dv))
    h = mat_vec(J, w)
    for j in range(3):
        e = (1.0 if j == 0 else 0.0, 1.0 if j == 1 else 0.0, 1.0 if j == 2 else 0.0)
        first = cross3(e, h)
        second = cross3(w, (J[j], J[3 + j], J[6 + j]))
        third = scale3(m, cross3(e, v))
        fourth = scale3(m, cross3(w, e))
        for i in range(3):
            L[1, i, j] += first[i] + second[i]
            L[1, 3 + i, j] += third[i]
            L[1, 3 + i, 3 + j] += fourth[i]


@inline
def variations(node, at, spline, j, c):
    """How pose, twist and acceleration of a node's frame change with its coordinate ``j``: the column t_j."""
    S, V, Sv = load6(at.S[j]), load6(at.V), load6(at.Sv)
    own, accelerated = varied_twist(node, at, spline, j, c)
    twist = add6(bracket(sub6(V, Sv), S), own)
    # A a_parent = a - (S q'' + S' q' + ad(V) S q')
    carried = load6(at.t[j][12:])
    change = add6(bracket(carried, S), accelerated)
    change = add6(change, sub6(bracket(V, own), bracket(Sv, twist)))
    return S, twist, change


@kernel
def factor(stage):
    """Factor the Newton matrix at the iterate. Returns False when a pivot is singular."""
    nodes, own, c = stage.tree, stage.own, stage.c
    P = own.P
    for i in range(nodes.shape[0]):
        own_blocks(nodes[i], own.nodes[i])
    for i in range(nodes.shape[0] - 1, -1, -1):
        node, at = nodes[i], own.nodes[i]
        R, p = load9(at.R), load3(at.p)
        L, Sv, F = at.L, load6(at.Sv), load6(at.F)
        spline = own.splines[node.spline]
        count = 0 if node.driven else node.count
        for j in range(count):
            carried_acceleration(own, node, at, j)
            X, twist, change = variations(node, at, spline, j, c)
            store6(at.t[j], X)
            store6(at.t[j][6:], twist)
            store6(at.t[j][12:], change)
            Lt = add6(add6(block_times(L[0], X), block_times(L[1], twist)), block_times(L[2], change))
            store6(at.B[j], sub6(Lt, bracket_t(X, F)))
            for k in range(count):
                at.D[k, j] = dot6(load6(at.S[k]), Lt) + varied_column(node, at, spline, k, j, F)
        if node.parent < 0 and count == 0:
            continue
        if node.parent >= 0:
            # L T, block by block
            times_adjoint(L[0], R, p, P[0])
            times_carried(L[1], L[2], Sv, P[3])
            times_adjoint(P[3], R, p, P[1])
            times_adjoint(L[2], R, p, P[2])
        if count > 0:
            add_joint_derivatives(stage, node, at)
            if not invert(at.D, count):
                return False
            for j in range(count):
                at.scale[j] = abs(at.D[j, j]) * reach(node, at, j)
            divide(at, count)
        if node.parent < 0:
            continue
        for j in range(count):
            S = load6(at.S[j])
            for block in range(3):
                for col in range(6):
                    at.r[j, 6 * block + col] = row_times(S, P[block], col)
        for j in range(count):
            for block in range(3):
                for row in range(6):
                    for col in range(6):
                        P[block, row, col] -= at.B[j, row] * at.r[j, 6 * block + col]
        above = own.nodes[node.parent]
        for block in range(3):
            add_from_child(above.L[block], R, p, P[block])
    return True


@inline
def divide(at, count):
    """B becomes B D^-1."""
    for row in range(6):
        b0, b1, b2 = at.B[0, row], at.B[1, row], at.B[2, row]
        for j in range(count):
            at.B[j, row] = b0 * at.D[0, j]
            if count > 1:
                at.B[j, row] += b1 * at.D[1, j]
            if count > 2:
                at.B[j, row] += b2 * at.D[2, j]


@inline
def carried_acceleration(own, node, at, j):
    """A a_parent of a node's frame, into the place of the column's last part."""
    if node.parent < 0:
        for k in range(6):
            at.t[j, 12 + k] = 0.0
    else:
        store6(at.t[j][12:], to_child(load9(at.R), load3(at.p), load6(own.nodes[node.parent].A)))


@inline
def varied_column(node, at, spline, k, j, F):
    """(dS_k/dq_j) . F."""
    if node.kind != POINT and node.kind != SPLINE:
        return 0.0
    return dot6(along_derivative(node, at, spline, j, unit3(k)), F)


@inline
def reach(node, at, j):
    """How far (m) a node's frame moves with its coordinate ``j``."""
    if node.kind == LINE:
        return 1.0
    if node.kind == SPLINE:
        w, v = load6(at.S[j])
        return norm3(v) + node.length * norm3(w)
    return node.length


@inline
def invert(D, count):
    """Invert the leading part of a 3x3 block in place. Returns False when it is singular."""
    if count == 1:
        D[0, 0] = 1.0 / D[0, 0]
        return abs(D[0, 0]) < 1e300
    for j in range(count, 3):
        for k in range(3):
            D[j, k] = 0.0
            D[k, j] = 0.0
        D[j, j] = 1.0
    M = inverse9((D[0, 0], D[0, 1], D[0, 2], D[1, 0], D[1, 1], D[1, 2], D[2, 0], D[2, 1], D[2, 2]))
    size = 0.0
    for j in range(3):
        for k in range(3):
            D[j, k] = M[3 * j + k]
            size = max(size, abs(M[3 * j + k]))
            if not abs(M[3 * j + k]) < 1e300:
                return False
    return size < 1e300


@kernel
def solve(tree, own):
    """dq and s of all nodes with H dq + J^T e = g, from ``g`` and the wrenches ``e`` on the nodes; ``e`` is overwritten.

    Nodes that follow a map move by the column in their ``t[0]``, with ``dq`` as it is.
    """
    for i in range(tree.shape[0] - 1, -1, -1):
        gather(tree[i], own.nodes[i], own.nodes)
    for i in range(tree.shape[0]):
        spread(tree[i], own.nodes[i], own.nodes)


@kernel
def solve_part(tree, own, members):
    """``solve`` for the nodes of one tree, from its root outwards; the others stay as they are."""
    for k in range(members.shape[0] - 1, -1, -1):
        gather(tree[members[k]], own.nodes[members[k]], own.nodes)
    for i in members:
        spread(tree[i], own.nodes[i], own.nodes)


@inline
def gather(node, at, nodes):
    """Inwards: the right-hand side of a node, and what it hands on to its parent."""
    e = load6(at.e)
    for j in range(0 if node.driven else node.count):
        at.u[j] = at.g[j] - dot6(load6(at.S[j]), e)
    if node.parent < 0:
        return
    for j in range(0 if node.driven else node.count):
        B = load6(at.B[j])
        e = add6(e, ((at.u[j] * B[0][0], at.u[j] * B[0][1], at.u[j] * B[0][2]), (at.u[j] * B[1][0], at.u[j] * B[1][1], at.u[j] * B[1][2])))
    if node.driven == FOLLOWER:
        t = at.t[0]
        e = add6(e, add6(add6(block_times(at.L[0], load6(t)), block_times(at.L[1], load6(t[6:]))), block_times(at.L[2], load6(t[12:]))))
        e = sub6(e, bracket_t(load6(t), load6(at.F)))
    above = nodes[node.parent].e
    store6(above, add6(load6(above), to_parent(load9(at.R), load3(at.p), e)))


@inline
def spread(node, at, nodes):
    """Outwards: a node's dq and s from its parent's s."""
    count = 0 if node.driven else node.count
    s = at.s
    if node.parent < 0:
        for k in range(18):
            s[k] = 0.0
    else:
        above = nodes[node.parent].s
        for j in range(count):
            total = 0.0
            for k in range(18):
                total += at.r[j, k] * above[k]
            at.u[j] -= total
        carry(at, above, s)
    if node.driven == FOLLOWER:
        for k in range(18):
            s[k] += at.t[0, k]
        return
    for j in range(node.count):
        at.dq[j] = 0.0
    for j in range(count):
        for k in range(count):
            at.dq[j] += at.D[j, k] * at.u[k]
    for j in range(count):
        for k in range(18):
            s[k] += at.t[j, k] * at.dq[j]


@inline
def carry(at, above, s):
    """s = T s_parent."""
    R, p = load9(at.R), load3(at.p)
    twist = to_child(R, p, load6(above[6:]))
    store6(s, to_child(R, p, load6(above)))
    store6(s[6:], twist)
    store6(s[12:], sub6(to_child(R, p, load6(above[12:])), bracket(load6(at.Sv), twist)))


@kernel
def solve_transposed(tree, own):
    """z (in ``dq``) with H^T z = g + J_s^T s: the same factors the other way; ``s`` holds cotangents of the nodes' variations.

    Leaves in ``e`` the adjoint of the nodes' wrenches: what -J z is in ``solve``'s terms. ``s`` is overwritten.
    """
    nodes = own.nodes
    for i in range(tree.shape[0] - 1, -1, -1):
        node, at = tree[i], nodes[i]
        count, s = 0 if node.driven else node.count, at.s
        for j in range(count):
            total = at.g[j]
            for k in range(18):
                total += at.t[j, k] * s[k]
            at.dq[j] = total
        for j in range(count):
            at.u[j] = 0.0
            for k in range(count):
                at.u[j] += at.D[k, j] * at.dq[k]
        if node.parent < 0:
            continue
        above = nodes[node.parent].s
        carry_back(at, s, above)
        for j in range(count):
            for k in range(18):
                above[k] -= at.r[j, k] * at.u[j]
    for i in range(tree.shape[0]):
        node, at = tree[i], nodes[i]
        count = 0 if node.driven else node.count
        e = to_child(load9(at.R), load3(at.p), load6(nodes[node.parent].e)) if node.parent >= 0 else ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
        for j in range(node.count):
            at.dq[j] = 0.0
        down = e
        for j in range(count):
            at.dq[j] = at.u[j] + (dot6(load6(at.B[j]), e) if node.parent >= 0 else 0.0)
        for j in range(count):
            S = load6(at.S[j])
            z = at.dq[j]
            down = sub6(down, ((z * S[0][0], z * S[0][1], z * S[0][2]), (z * S[1][0], z * S[1][1], z * S[1][2])))
        store6(at.e, down)


@inline
def carry_back(at, s, above):
    """s_parent += T^T s."""
    R, p = load9(at.R), load3(at.p)
    last = load6(s[12:])
    twist = sub6(load6(s[6:]), bracket_t(load6(at.Sv), last))
    store6(above, add6(load6(above), to_parent(R, p, load6(s))))
    store6(above[6:], add6(load6(above[6:]), to_parent(R, p, twist)))
    store6(above[12:], add6(load6(above[12:]), to_parent(R, p, last)))
