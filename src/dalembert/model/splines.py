"""Nodes that move along splines: pose, columns S and their first and second derivatives, evaluated once per iterate.

A piece is Q(q) = C exp(xi_1 f_1) exp(xi_2 f_2) ... with polynomials f of the local coordinates; adding a factor on the right turns
what came before by A = Ad(exp(-xi f)) (RedMax Algorithms 3 and 4, and one derivative more):

    S_i   = xi f_i + A S_i,       dS_ij = xi f_ij + A X_ij,       X_ij = dS_ij + ad(S_i) xi f_j
    ddS_ijk = xi f_ijk + A (ddS_ijk + ad(dS_ik) xi f_j + ad(S_i) xi f_jk + ad(X_ij) xi f_k)

The table holds piece after piece: C (rotation, then position), and for every factor its screw and the coefficients of f.
"""
from __future__ import annotations

from math import floor

import numpy as np

from dalembert.kernels import inline, kernel
from dalembert.model.records import F, fields
from dalembert.spatial import so3
from dalembert.spatial.splines import Piece
from dalembert.spatial.tuples import add3, load3, load9, mat_mul, mat_vec, scale3, store3, store9
from dalembert.spatial.twists import add6, bracket, load6, scale6, store6, to_child

#: pose, columns and their derivatives of a spline node at an iterate
SPLINE_WORK = np.dtype(fields(F, R=9, p=3, S=(2, 6), dS=(2, 2, 6), ddS=(2, 2, 2, 6)))


def table_of(pieces: list[Piece]) -> np.ndarray:
    """The numbers of pieces of one spline, one after the other."""
    rows = []
    for piece in pieces:
        factors = [np.concatenate([screw, powers.ravel()]) for screw, powers in zip(piece.screws, piece.powers)]
        rows.append(np.concatenate([piece.C[:3, :3].ravel(), piece.C[:3, 3], *factors]))
    return np.concatenate(rows)


@inline
def power(order, exponent, t):
    """The derivative of t**exponent of an order, for exponents up to 3."""
    if exponent < order:
        return 0.0
    value = 1.0
    for k in range(order):
        value *= exponent - k
    for _ in range(exponent - order):
        value *= t
    return value


@inline
def polynomial(table, begin, columns, t, s, m, n):
    """The derivative of orders m and n of sum c_ab t^a s^b, with ``columns`` powers of s."""
    value = 0.0
    for a in range(m, 4):
        inner = 0.0
        for b in range(n, columns):
            inner += table[begin + a * columns + b] * power(n, b, s)
        value += inner * power(m, a, t)
    return value


@inline
def cell(closed, count, q):
    """Which of ``count`` cells a coordinate lies in, and where in it; beyond the ends the last cells go on."""
    whole = floor(q)
    if closed:
        return whole % count, q - whole
    inside = min(max(whole, 0), count - 1)
    return inside, q - inside


@kernel
def place_spline(table, node, q, out):
    """Write everything about a spline node at its coordinates ``q`` into its record ``out``."""
    two = node.count == 2
    columns = 4 if two else 1
    index, t = cell(node.closed, node.cells[0], q[0])
    s = 0.0
    if two:
        other, s = cell(node.closed, node.cells[1], q[1])
        index = index * node.cells[1] + other
    width = 6 + 4 * columns
    begin = node.table + index * (12 + node.factors * width)
    R, p = load9(table[begin:]), load3(table[begin + 9 :])
    out.S[:] = 0.0
    out.dS[:] = 0.0
    out.ddS[:] = 0.0
    count = node.count
    for k in range(node.factors):
        first = begin + 12 + k * width
        xi = load6(table[first:])
        f = polynomial(table, first + 6, columns, t, s, 0, 0)
        turn = scale3(f, xi[0])
        E, e = so3.exp_matrix(turn), mat_vec(so3.left_jacobian(turn), scale3(f, xi[1]))
        p = add3(p, mat_vec(R, e))
        R = mat_mul(R, E)
        for i in range(count):
            S = load6(out.S[i])
            for j in range(count):
                f_j = polynomial(table, first + 6, columns, t, s, 1 - j, j)
                X = add6(load6(out.dS[i, j]), scale6(f_j, bracket(S, xi)))
                for l in range(count):
                    f_l = polynomial(table, first + 6, columns, t, s, 1 - l, l)
                    f_jl = polynomial(table, first + 6, columns, t, s, 2 - j - l, j + l)
                    f_ijl = polynomial(table, first + 6, columns, t, s, 3 - i - j - l, i + j + l)
                    Y = add6(load6(out.ddS[i, j, l]), scale6(f_j, bracket(load6(out.dS[i, l]), xi)))
                    Y = add6(Y, add6(scale6(f_jl, bracket(S, xi)), scale6(f_l, bracket(X, xi))))
                    store6(out.ddS[i, j, l], add6(scale6(f_ijl, xi), to_child(E, e, Y)))
        for i in range(count):
            S = load6(out.S[i])
            for j in range(count):
                f_j = polynomial(table, first + 6, columns, t, s, 1 - j, j)
                f_ij = polynomial(table, first + 6, columns, t, s, 2 - i - j, i + j)
                X = add6(load6(out.dS[i, j]), scale6(f_j, bracket(S, xi)))
                store6(out.dS[i, j], add6(scale6(f_ij, xi), to_child(E, e, X)))
        for i in range(count):
            f_i = polynomial(table, first + 6, columns, t, s, 1 - i, i)
            store6(out.S[i], add6(scale6(f_i, xi), to_child(E, e, load6(out.S[i]))))
    store9(out.R, R)
    store3(out.p, p)
