"""Kernels of the mass matrix (composite bodies, "CRBA") and of the regressor of inertial parameters."""
from __future__ import annotations

from dalembert.formulations.reduced.tree_solve import add_from_child, block_times, times_adjoint
from dalembert.kernels import kernel
from dalembert.model.motions import unit3
from dalembert.spatial.tuples import add3, cross3, load3, load9, mat_t_vec, sub3
from dalembert.spatial.twists import dot6, load6, to_parent


@kernel
def mass_matrix(rotors, tree, nodes, product, M):
    """M (n, n), zero before, with the inertia of ``rotors`` (n,). ``product`` (6, 6) is scratch. Needs ``put`` before."""
    for i in range(tree.shape[0]):
        node, composite = tree[i], nodes[i].K
        composite[:] = 0.0
        J = load9(node.inertia)
        for r in range(3):
            composite[3 + r, 3 + r] = node.mass
            for c in range(3):
                composite[r, c] = J[3 * r + c]
    for i in range(tree.shape[0] - 1, -1, -1):
        node, at = tree[i], nodes[i]
        if node.parent >= 0:
            R, p = load9(at.R), load3(at.p)
            times_adjoint(at.K, R, p, product)
            add_from_child(nodes[node.parent].K, R, p, product)
        for j in range(node.count):
            F, above, here = block_times(at.K, load6(at.S[j])), i, node.dof + j
            while above >= 0:
                up, there = tree[above], nodes[above]
                for k in range(up.count):
                    value = dot6(load6(there.S[k]), F)
                    M[up.dof + k, here] = value
                    M[here, up.dof + k] = value
                F = to_parent(load9(there.R), load3(there.p), F)
                above = up.parent
            M[here, here] += rotors[here]


@kernel
def regressor(gravity, tree, nodes, Y):
    """Y (n, 10 bodies), zero before: tau = Y pi but for rotors, for the motion of the nodes. Needs ``put`` before.

    Per body the mass, the first moment (3) and the inertia xx, xy, yy, xz, yz, zz, both about the frame's origin, in body axes:

        force = m l + alpha x h + w x (w x h),   torque = I alpha + w x I w + h x l,   l: acceleration of the origin less gravity.
    """
    for i in range(tree.shape[0]):
        if tree[i].body < 0:
            continue
        at = nodes[i]
        w, v = load6(at.V)
        alpha, b = load6(at.A)
        l = sub3(add3(b, cross3(w, v)), mat_t_vec(load9(at.W), load3(gravity)))
        for c in range(10):
            torque, force = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
            if c == 0:
                force = l
            elif c < 4:
                e = unit3(c - 1)
                torque = cross3(e, l)
                force = add3(cross3(alpha, e), cross3(w, cross3(w, e)))
            else:
                torque = add3(inertia_times(c - 4, alpha), cross3(w, inertia_times(c - 4, w)))
            F, above = (torque, force), i
            while above >= 0:
                up, there = tree[above], nodes[above]
                for k in range(up.count):
                    Y[up.dof + k, 10 * tree[i].body + c] = dot6(load6(there.S[k]), F)
                F = to_parent(load9(there.R), load3(there.p), F)
                above = up.parent


@kernel
def inertia_times(entry, w):
    """I w for a unit entry xx, xy, yy, xz, yz or zz of I."""
    if entry == 0:
        return (w[0], 0.0, 0.0)
    if entry == 1:
        return (w[1], w[0], 0.0)
    if entry == 2:
        return (0.0, w[1], 0.0)
    if entry == 3:
        return (w[2], 0.0, w[0])
    if entry == 4:
        return (0.0, w[2], w[1])
    return (0.0, 0.0, w[2])
