"""Kernels of kinematics: configurations put on the tree, Jacobians of points with their time derivatives, moves along the tangent.

Rates of a free rotation are the angular velocity in the parent's axes, so its three columns S are those axes seen from the
node, S_j = (b_j, r x b_j) with B = [b_0 b_1 b_2] orthonormal. Read from parent to child, B = F E^T turns with the child (F: the
joint's axes on the child, E = exp(q)); read from child to parent, B = -F on the joint's parent, and is constant.
"""
from __future__ import annotations

from dalembert.formulations.reduced.equations import accelerate_node, place_node
from dalembert.kernels import inline, kernel
from dalembert.model.frames import ball_vector
from dalembert.model.motions import about, along_rate, unit3
from dalembert.model.rotations import in_node
from dalembert.model.tree import POINT
from dalembert.spatial import quaternion, so3
from dalembert.spatial.tuples import (
    add3,
    column,
    cross3,
    load3,
    load9,
    mat_mul,
    mat_mul_t,
    mat_vec,
    scale9,
    store3,
    store4,
    store9,
    sub3,
)
from dalembert.spatial.twists import dot6, load6, store6, to_parent


@inline
def free_turn(node, phi):
    """The rotation of a free rotation's node beyond its fixed placement, and B."""
    E, axes = so3.exp_matrix(phi), load9(node.frame)
    return in_node(node, E), scale9(-1.0, axes) if node.backwards else mat_mul_t(axes, E)


@kernel
def put(model, tree, own, q, v, a):
    """Placement, twist, columns and acceleration of all nodes at a configuration with rates and accelerations (n,)."""
    for i in range(tree.shape[0]):
        node, at = tree[i], own.nodes[i]
        first = node.dof
        if node.kind == POINT:
            M, B = free_turn(node, load3(q[first:]))
            at.chart = 0.0
            store4(at.turn, quaternion.from_matrix(M))
            store3(at.x, (0.0, 0.0, 0.0))
            store3(at.v, mat_vec(B, load3(v[first:])))
            store3(at.a, mat_vec(B, load3(a[first:])))
            place_node(model, tree, own, i)
            for j in range(3):
                store6(at.S[j], about(load3(node.centre), column(B, j)))
        else:
            for j in range(node.count):
                at.x[j], at.v[j], at.a[j] = q[first + j], v[first + j], a[first + j]
            place_node(model, tree, own, i)
        accelerate_node(tree, own, i)


@inline
def column_rate(node, at, spline, j):
    """S_j' in the node's frame."""
    if node.kind == POINT:
        if node.backwards:
            return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        return about(load3(node.centre), cross3(load3(at.S[j]), load3(at.v)))
    return along_rate(node, at, spline, unit3(j))


@kernel
def point_jacobian(tree, own, i, P, P_rate, J, J_rate):
    """Jacobian (6, n) of a world point ``P`` that moves with node ``i``, linear then angular, world axes, and its time derivative.

    ``P_rate``: the velocity of the point, zero for one that the body moves past. J and J_rate are zero before.
    """
    point, velocity = load3(P), load3(P_rate)
    while i >= 0:
        node, at = tree[i], own.nodes[i]
        spline = own.splines[node.spline]
        W = load9(at.W)
        w, u = load6(at.V)
        spin, speed = mat_vec(W, w), mat_vec(W, u)
        arm, arm_rate = sub3(point, load3(at.place)), sub3(velocity, speed)
        for j in range(node.count):
            S, dS = load6(at.S[j]), column_rate(node, at, spline, j)
            turn, move = mat_vec(W, S[0]), mat_vec(W, S[1])
            turn_rate = add3(cross3(spin, turn), mat_vec(W, dS[0]))
            move_rate = add3(cross3(spin, move), mat_vec(W, dS[1]))
            linear = add3(move, cross3(turn, arm))
            linear_rate = add3(add3(move_rate, cross3(turn_rate, arm)), cross3(turn, arm_rate))
            k = node.dof + j
            for c in range(3):
                J[c, k], J[3 + c, k] = linear[c], turn[c]
                J_rate[c, k], J_rate[3 + c, k] = linear_rate[c], turn_rate[c]
        i = node.parent


@kernel
def body_jacobians(tree, own, J, J_rate):
    """Jacobians (bodies, 6, n) of the centres of mass, as in ``point_jacobian``, and their time derivatives."""
    for i in range(tree.shape[0]):
        body = tree[i].body
        if body >= 0:
            at = own.nodes[i]
            store3(at.u, mat_vec(load9(at.W), load3(at.V[3:])))
            point_jacobian(tree, own, i, at.place, at.u, J[body], J_rate[body])


@kernel
def body_poses(tree, nodes, position, rotation, velocity, acceleration):
    """Positions (bodies, 3), rotations (bodies, 9), velocities and accelerations (bodies, 6), linear then angular, world axes."""
    for i in range(tree.shape[0]):
        body, at = tree[i].body, nodes[i]
        if body < 0:
            continue
        W = load9(at.W)
        w, u = load6(at.V)
        alpha, b = load6(at.A)
        store3(position[body], load3(at.place))
        store9(rotation[body], W)
        store3(velocity[body], mat_vec(W, u))
        store3(velocity[body][3:], mat_vec(W, w))
        store3(acceleration[body], mat_vec(W, add3(b, cross3(w, u))))
        store3(acceleration[body][3:], mat_vec(W, alpha))


@kernel
def gather_wrenches(tree, nodes, wrenches, tau):
    """tau (n,) = J^T y for wrenches (nodes, 6), torque then force, in the nodes' frames (RedMax Algorithm 6)."""
    for i in range(tree.shape[0]):
        store6(nodes[i].e, load6(wrenches[i]))
    for i in range(tree.shape[0] - 1, -1, -1):
        node, at = tree[i], nodes[i]
        e = load6(at.e)
        for j in range(node.count):
            tau[node.dof + j] = dot6(load6(at.S[j]), e)
        if node.parent >= 0:
            above = nodes[node.parent].e
            up = to_parent(load9(at.R), load3(at.p), e)
            store6(above, (add3(load3(above), up[0]), add3(load3(above[3:]), up[1])))


@kernel
def integrate(tree, q, v, dt, after):
    """The configuration that rates ``v`` lead to in ``dt`` seconds; rotation vectors are those nearest to the old ones."""
    for i in range(tree.shape[0]):
        node = tree[i]
        k = node.dof
        if node.kind == POINT:
            old, step = load3(q[k:]), load3(v[k:])
            step = (dt * step[0], dt * step[1], dt * step[2])
            store3(after[k:], ball_vector(mat_mul(so3.exp_matrix(step), so3.exp_matrix(old)), old))
        else:
            for j in range(node.count):
                after[k + j] = q[k + j] + dt * v[k + j]


@kernel
def difference(tree, q0, q1, v):
    """The rates that lead from one configuration to another in one second."""
    for i in range(tree.shape[0]):
        node = tree[i]
        k = node.dof
        if node.kind == POINT:
            store3(v[k:], so3.log_matrix(mat_mul_t(so3.exp_matrix(load3(q1[k:])), so3.exp_matrix(load3(q0[k:])))))
        else:
            for j in range(node.count):
                v[k + j] = q1[k + j] - q0[k + j]


@kernel
def tangent_blocks(phi, rotation, left, left_inverse):
    """exp(phi), J_l(phi) and J_l(phi)^-1, (9,) each."""
    p = load3(phi)
    store9(rotation, so3.exp_matrix(p))
    store9(left, so3.left_jacobian(p))
    store9(left_inverse, so3.left_jacobian_inverse(p))
