"""The equations of a stage in joint coordinates: inverse dynamics from the roots and back (RedMax section 2.9, REDMAX.md).

A stage finds x with q' = (x - a_q)/c and q'' = (q' - a_v)/c, aggregates a_q, a_v made of earlier states, so that every BDF and
DIRK method is one residual: along every coordinate, what the motion asks for less what the joint's laws give,

    V = A V_p + S q',   a = A a_p + S q'' + S' q' + ad(V) S q',   F = M a - ad(V)^T M V - W + sum A_c^T F_c,   g = S . F - tau,

with W the loads on the body, in its frame. Gravity is one of them.
"""
from __future__ import annotations

from math import isfinite, sqrt
from typing import NamedTuple

import numpy as np

from dalembert.forces.bodies import add_load_derivatives, push_on_bodies, user_damping
from dalembert.forces.loads import load_bodies
from dalembert.formulations.reduced.joint_forces import evaluate_joint_forces
from dalembert.formulations.reduced.map_equations import map_floor, map_residuals, stage_maps
from dalembert.formulations.reduced.state import Scratch
from dalembert.formulations.reduced.tie_equations import evaluate_ties, tie_floor, tie_size
from dalembert.formulations.reduced.ties import Ties
from dalembert.kernels import inline, kernel
from dalembert.model.motions import along, along_rate, motion_column, placement
from dalembert.model.pose import put6
from dalembert.model.records import USER_LOAD, Model, Work
from dalembert.model.splines import place_spline
from dalembert.model.tree import FOLLOWER, SPLINE
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import (
    add3,
    cross3,
    load3,
    load9,
    mat_mul,
    mat_t_vec,
    mat_vec,
    norm3,
    scale3,
    store3,
    store4,
    store9,
)
from dalembert.spatial.twists import add6, bracket, dot6, load6, store6, sub6, to_child, to_parent


class Stage(NamedTuple):
    """The step problem: a stage that ends ``c`` (s) after the aggregate of earlier states in ``own``."""

    model: Model
    tree: np.ndarray
    work: Work
    own: Scratch
    ties: Ties
    c: float


@inline
def place_node(model, tree, own, i):
    """Placement, columns, twist and pose in the world of a node at its coordinates ``x`` and rates ``v``."""
    nodes = own.nodes
    node, at = tree[i], nodes[i]
    spline = own.splines[node.spline]
    if node.kind == SPLINE:
        place_spline(model.splines, node, at.x, spline)
    R, p = placement(node, at, spline)
    store9(at.R, R)
    store3(at.p, p)
    for j in range(node.count):
        store6(at.S[j], motion_column(node, at, spline, j))
    Sv = along(node, at, spline, at.v)
    store6(at.Sv, Sv)
    if node.parent < 0:
        store6(at.V, Sv)
        store9(at.W, R)
        store3(at.place, p)
    else:
        above = nodes[node.parent]
        store6(at.V, add6(to_child(R, p, load6(above.V)), Sv))
        W = load9(above.W)
        store9(at.W, mat_mul(W, R))
        store3(at.place, add3(load3(above.place), mat_vec(W, p)))


@inline
def accelerate_node(tree, own, i):
    """Acceleration of a node's frame for the second derivatives ``a`` of its coordinates."""
    node, at = tree[i], own.nodes[i]
    spline = own.splines[node.spline]
    change = add6(along(node, at, spline, at.a), add6(along_rate(node, at, spline, at.v), bracket(load6(at.V), load6(at.Sv))))
    if node.parent >= 0:
        change = add6(change, to_child(load9(at.R), load3(at.p), load6(own.nodes[node.parent].A)))
    store6(at.A, change)


@kernel
def place_bodies(tree, nodes, work):
    """Poses and velocities of the bodies from their nodes."""
    for i in range(tree.shape[0]):
        node, at = tree[i], nodes[i]
        if node.body < 0:
            continue
        body = work.bodies[node.body]
        W = load9(at.W)
        store9(body.R, W)
        store4(body.q, quaternion.from_matrix(W))
        store3(body.x, load3(at.place))
        w, v = load6(at.V)
        put6(work.velocity[node.body], mat_vec(W, v), w)


@kernel
def gather_loads(stage):
    """Wrenches of gravity, inputs and loads on the bodies, in the frames of their nodes. Needs ``place_bodies`` before."""
    model, tree, work, nodes = stage.model, stage.tree, stage.work, stage.own.nodes
    load_bodies(model, work)
    if model.loads.shape[0] > 0:
        push_on_bodies(model, work, work.velocity, 0)
        push_on_bodies(model, work, work.velocity, 1)
    for i in range(tree.shape[0]):
        node, at = tree[i], nodes[i]
        if node.body >= 0:
            load = work.bodies[node.body].load
            store6(at.load, (load3(load[3:]), mat_t_vec(load9(at.W), load3(load))))


@kernel
def stage_rates(stage):
    """Coordinates and accelerations of the iterate, by the stage rule. Its rates are what is iterated on, but for driven nodes: rates from
    differences of large coordinates would carry their rounding, divided by the step.
    """
    tree, nodes, c = stage.tree, stage.own.nodes, stage.c
    for i in range(nodes.shape[0]):
        at = nodes[i]
        for j in range(3):
            if tree[i].driven:
                at.v[j] = (at.x[j] - at.aq[j]) / c
            else:
                at.x[j] = at.aq[j] + c * at.v[j]
            at.a[j] = (at.v[j] - at.av[j]) / c
    if stage.own.maps.maps.shape[0] > 0:
        stage_maps(stage)


@kernel
def inverse_dynamics(stage):
    """``F`` of all nodes and ``g`` = S . F - tau, for their ``x``, ``v``, ``a``. Returns False when a number is not finite."""
    return evaluate_motion(stage) and balance(stage)


@kernel
def evaluate_motion(stage):
    """From the roots outwards: poses, twists, accelerations, loads. Returns False as ``inverse_dynamics``."""
    tree, nodes = stage.tree, stage.own.nodes
    for i in range(tree.shape[0]):
        place_node(stage.model, tree, stage.own, i)
        accelerate_node(tree, stage.own, i)
    place_bodies(tree, nodes, stage.work)
    gather_loads(stage)
    if stage.ties.rows.shape[0] > 0 and not evaluate_ties(stage):
        return False
    evaluate_joint_forces(stage)
    return True


@kernel
def balance(stage):
    """From the leaves back: ``F`` and ``g``. Returns False as ``inverse_dynamics``."""
    tree, nodes, fine = stage.tree, stage.own.nodes, True
    for i in range(tree.shape[0]):
        own_force(tree[i], nodes[i])
    for i in range(tree.shape[0] - 1, -1, -1):
        node, at = tree[i], nodes[i]
        F = load6(at.F)
        for j in range(node.count):
            at.g[j] = 0.0 if node.driven != 0 and node.driven != FOLLOWER else dot6(load6(at.S[j]), F) - at.tau[j]
            fine = fine and isfinite(at.g[j])
        if node.parent >= 0:
            above = nodes[node.parent].F
            store6(above, add6(load6(above), to_parent(load9(at.R), load3(at.p), F)))
    if stage.own.maps.maps.shape[0] > 0:
        map_residuals(stage)
    return fine


@inline
def own_force(node, at):
    """M a - ad(V)^T M V - W of a node's own frame into its ``F``."""
    w, v = load6(at.V)
    a, b = load6(at.A)
    J = load9(node.inertia)
    torque = add3(mat_vec(J, a), cross3(w, mat_vec(J, w)))
    force = scale3(node.mass, add3(b, cross3(w, v)))
    store6(at.F, sub6((torque, force), load6(at.load)))


@kernel
def load_derivatives(stage):
    """K and C (6, 6) of the loads on all bodies by their pose and twist, in the frames of their nodes."""
    tree, own = stage.tree, stage.own
    for i in range(tree.shape[0]):
        node, at = tree[i], own.nodes[i]
        at.K[:] = 0.0
        at.C[:] = 0.0
        if node.body < 0:
            continue
        # a force that is fixed in the world turns in the body's frame
        force = load3(at.load[3:])
        at.K[3, 1] -= force[2]
        at.K[3, 2] += force[1]
        at.K[4, 0] += force[2]
        at.K[4, 2] -= force[0]
        at.K[5, 0] -= force[1]
        at.K[5, 1] += force[0]
    add_load_blocks(stage)


@kernel
def add_load_blocks(stage):
    """Add the derivatives of loads that depend on pose or velocity to K and C of the nodes; the turning of their forces is not among them."""
    model, tree, work, own = stage.model, stage.tree, stage.work, stage.own
    for index in range(model.loads.shape[0]):
        load = model.loads[index]
        for k in range(load.ends if load.kind == USER_LOAD else 1):
            body = model.ends[load.first + k] if load.kind == USER_LOAD else load.body
            if body == model.bodies.shape[0] - 1:
                continue
            own.K[:] = 0.0
            own.D[:] = 0.0
            at = own.nodes[node_of_body(tree, work, body)]
            u = work.velocity[body]
            if load.kind == USER_LOAD:
                if not load.moving:
                    continue
                user_damping(model, work, load, k, own.D)
            else:
                add_load_derivatives(own.K, own.D, load, load3(work.bodies[body].x), load9(at.W), load3(u), load3(u[3:]))
            add_turned(at, own.K, own.D)


@inline
def node_of_body(tree, work, body):
    """The node of a body."""
    return work.bodies[body].node


@kernel
def add_turned(at, K, D):
    """Add K and D by position and velocity in the world, (force, torque), to those in the node's frame, (torque, force).

    dx = R xi_v, dv = R (dV_v + xi_w x v): the force's own turning is counted once for all loads.
    """
    R, v = load9(at.W), load3(at.V[3:])
    for row in range(6):
        to_x, to_v = (K[row, 0], K[row, 1], K[row, 2]), (D[row, 0], D[row, 1], D[row, 2])
        to_x, to_v = mat_t_vec(R, to_x), mat_t_vec(R, to_v)
        # row . (xi x v) = xi . (v x row)
        swept = cross3(v, to_v)
        for c in range(3):
            K[row, c], D[row, c] = to_x[c], to_v[c]
            K[row, 3 + c] += swept[c]
    for col in range(6):
        K_force, D_force = mat_t_vec(R, (K[0, col], K[1, col], K[2, col])), mat_t_vec(R, (D[0, col], D[1, col], D[2, col]))
        there = col + 3 if col < 3 else col - 3
        for c in range(3):
            at.K[c, there] += K[3 + c, col]
            at.K[3 + c, there] += K_force[c]
            at.C[c, there] += D[3 + c, col]
            at.C[3 + c, there] += D_force[c]


@kernel
def residual(stage):
    """Evaluate all equations at the iterate. Returns (size in m/s, False when a number is not finite)."""
    stage_rates(stage)
    fine = inverse_dynamics(stage)
    return (size_of(stage), True) if fine else (0.0, False)


@inline
def size_of(stage):
    """The largest residual as a velocity (m/s), by the pivots of the last factor."""
    tree, nodes, size = stage.tree, stage.own.nodes, 0.0
    for i in range(tree.shape[0]):
        node, at = tree[i], nodes[i]
        for j in range(0 if node.driven else node.count):
            size = max(size, abs(at.g[j]) * at.scale[j])
    return max(size / stage.c, tie_size(stage))


@kernel
def rounding_floor(stage):
    """The residual that rounding alone can cause, in m/s. Overwrites ``s`` of the nodes.

    Accelerations are differences of rates, so every joint's carries the rounding of a rate divided by c; down a long chain these
    move the far bodies by their levers, and the forces that this takes add up on the way back. ``s`` holds squares of the errors of
    angular and linear acceleration with their product, then the errors of force and torque.
    """
    tree, nodes, size = stage.tree, stage.own.nodes, 0.0
    for i in range(tree.shape[0]):
        node, at = tree[i], nodes[i]
        turning, moving = 0.0, 0.0
        for j in range(node.count):
            turn, move = load6(at.S[j])
            lost = 2e-16 * (abs(at.v[j]) + abs(at.av[j])) / stage.c
            turning += (lost * norm3(turn)) ** 2
            moving += (lost * norm3(move)) ** 2
        both, lever = 0.0, 0.0
        if node.parent >= 0:
            above = nodes[node.parent].s
            lever = norm3(load3(at.p))
            moving += above[2] + 2.0 * lever * above[1] + lever * lever * above[0]
            both = above[1] + lever * above[0]
            turning += above[0]
        at.s[0], at.s[1], at.s[2] = turning, both, moving
        J = load9(node.inertia)
        at.s[3], at.s[4] = node.mass * sqrt(moving), max(abs(J[0]), abs(J[4]), abs(J[8])) * sqrt(turning)
    for i in range(tree.shape[0] - 1, -1, -1):
        node, at = tree[i], nodes[i]
        torque, force = load6(at.F)
        load_torque, load_force = load6(at.load)
        for j in range(0 if node.driven else node.count):
            # rotations mix the parts of a force, and loads may cancel what the motion asks for: sizes count, not parts
            turn, move = load6(at.S[j])
            total = abs(at.tau[j]) + norm3(turn) * (norm3(torque) + norm3(load_torque)) + norm3(move) * (norm3(force) + norm3(load_force))
            lost = norm3(turn) * at.s[4] + norm3(move) * at.s[3]
            size = max(size, (1e-14 * tree.shape[0] * total + lost) * at.scale[j])
        if node.parent >= 0:
            above = nodes[node.parent].s
            above[3] += at.s[3]
            above[4] += at.s[4] + norm3(load3(at.p)) * at.s[3]
    return max(size / stage.c, tie_floor(stage), map_floor(stage))
