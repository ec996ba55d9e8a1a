"""What pushes along a joint's own coordinates: springs, dampers, servos, rotors, inputs; with their derivatives (RedMax 2.5).

Coordinates of a node are those of its joint's directions, so a law acts on them as it stands. The springs and dampers of a
free rotation are a torque on the child in the parent's axes, turned into the node's frame and onto its coordinates.
"""
from __future__ import annotations

from dalembert.forces.ball import rotation_spring, rotation_spring_change
from dalembert.forces.laws import servo, spring_damper
from dalembert.kernels import inline, kernel
from dalembert.model.motions import unit3
from dalembert.model.rotations import in_joint, jacobian, jacobian_derivative, rotation
from dalembert.model.tree import FOLLOWER, POINT
from dalembert.spatial.tuples import (
    add3,
    cross3,
    diagonal9,
    load3,
    load9,
    mat_t_vec,
    mat_vec,
    neg3,
    scale3,
    sub3,
)

ZERO3 = (0.0, 0.0, 0.0)


@inline
def direction_force(joint, at, k, coordinate, rate):
    """Force along a direction (N or N m), and its derivatives by coordinate and rate."""
    force, K, D, _ = spring_damper(joint.stiffness[k], joint.damping[k], coordinate - joint.rest[k], rate)
    if joint.follows[k]:
        held, K_servo, D_servo, _ = servo(joint, k, at.target[k], coordinate, rate)
        return force + held + at.input[k], K + K_servo, D + D_servo
    return force + at.input[k], K, D


@inline
def laws_of_ball(joint, k):
    """Stiffness (N m/rad) and damping (N m s/rad) of a free rotation whose first direction is ``k``."""
    return load3(joint.stiffness[k:]), diagonal9(load3(joint.damping[k:]))


@inline
def ball_torque(stage, node, at):
    """Torque of springs, dampers and inputs of a free rotation on the node's body, in its frame."""
    joint, tie, k = stage.model.joints[node.joint], stage.work.joints[node.joint], node.direction
    stiffness, damping = laws_of_ball(joint, k)
    E = in_joint(node, rotation(node, int(at.chart), at.turn, at.x))
    push, _ = rotation_spring(load9(node.rest), stiffness, E)
    push = add3(push, sub3(load3(tie.input[k:]), mat_vec(damping, spin_in_parent(node, at, E))))
    return mat_vec(load9(node.frame), neg3(push) if node.backwards else mat_t_vec(E, push))


@inline
def spin_in_parent(node, at, E):
    """Angular velocity of the joint's child in its parent, in the parent's canonical axes."""
    own = mat_t_vec(load9(node.frame), mat_vec(jacobian(node, int(at.chart), at.x), load3(at.v)))
    return neg3(own) if node.backwards else mat_vec(E, own)


@kernel
def evaluate_joint_forces(stage):
    """Write ``tau`` of all nodes: forces along their coordinates, rotors included."""
    tree, own = stage.tree, stage.own.nodes
    for i in range(tree.shape[0]):
        node, at = tree[i], own[i]
        for j in range(3):
            at.tau[j] = 0.0
        if node.joint < 0 or node.count == 0 or (node.driven != 0 and node.driven != FOLLOWER):
            continue
        if node.kind == POINT:
            torque = mat_t_vec(jacobian(node, int(at.chart), at.x), ball_torque(stage, node, at))
            for j in range(3):
                at.tau[j] = torque[j]
            continue
        joint, tie = stage.model.joints[node.joint], stage.work.joints[node.joint]
        for j in range(node.count):
            k = node.direction + j
            at.tau[j] = direction_force(joint, tie, k, at.x[j], at.v[j])[0] - joint.armature[k] * at.a[j]


@inline
def add_joint_derivatives(stage, node, at):
    """Add what ``tau`` changes by with the node's own coordinates, negated, to the pivot D; rates go with 1/c."""
    if node.joint < 0:
        return
    joint, tie, c = stage.model.joints[node.joint], stage.work.joints[node.joint], stage.c
    if node.kind != POINT:
        for j in range(node.count):
            k = node.direction + j
            _, K, D = direction_force(joint, tie, k, at.x[j], at.v[j])
            at.D[j, j] += joint.armature[k] / (c * c) - K - D / c
        return
    add_ball_derivatives(stage, node, at, joint)


@kernel
def add_ball_derivatives(stage, node, at, joint):
    """The same for a free rotation."""
    chart, c = int(at.chart), stage.c
    E = in_joint(node, rotation(node, chart, at.turn, at.x))
    J, torque = jacobian(node, chart, at.x), ball_torque(stage, node, at)
    for j in range(3):
        dtau = varied_ball(node, at, joint, E, J, torque, ZERO3, unit3(j), scale3(1.0 / c, unit3(j)))
        for i in range(3):
            at.D[i, j] -= dtau[i]


@inline
def varied_ball(node, at, joint, E, J, torque, turn, dx, dv):
    """Change of a free rotation's tau = J^T T with a turn in the node's frame, its coordinates and rates; T: the torque there, J: their Jacobian.

    In the joint's frame T is E^T p, or -p read backwards, with p = spring(E) + input - damping omega.
    """
    stiffness, damping = laws_of_ball(joint, node.direction)
    frame, rest = load9(node.frame), load9(node.rest)
    v = load3(at.v)
    dJ = jacobian_derivative(node, int(at.chart), at.x, dx)
    turned = mat_t_vec(frame, add3(turn, mat_vec(J, dx)))
    w, dw = mat_t_vec(frame, mat_vec(J, v)), mat_t_vec(frame, add3(mat_vec(dJ, v), mat_vec(J, dv)))
    if node.backwards:
        # E^T turns on by ``turned`` in the parent's axes, E by the opposite in its own
        dT = neg3(add3(rotation_spring_change(rest, stiffness, E, neg3(mat_t_vec(E, turned))), mat_vec(damping, dw)))
    else:
        # omega = E w
        domega = mat_vec(E, add3(cross3(turned, w), dw))
        dp = sub3(rotation_spring_change(rest, stiffness, E, turned), mat_vec(damping, domega))
        dT = add3(mat_t_vec(E, dp), cross3(mat_t_vec(frame, torque), turned))
    return add3(mat_t_vec(dJ, torque), mat_t_vec(J, mat_vec(frame, dT)))
