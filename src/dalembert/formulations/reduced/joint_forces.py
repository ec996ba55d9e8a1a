"""What pushes along a joint's own coordinates: springs, dampers, servos, rotors, inputs; with their derivatives (RedMax 2.5).

Coordinates of a node are those of its joint's directions, so a law acts on them as it stands. The springs and dampers of a
free rotation are a torque on the child in the parent's axes, turned into the node's frame and onto its rotation vector.
"""
from __future__ import annotations

from dalembert.forces.ball import add_ball_spring, ball_spring
from dalembert.forces.laws import servo, spring_damper
from dalembert.kernels import inline, kernel
from dalembert.model.frames import frame_rotation
from dalembert.model.motions import unit3
from dalembert.model.tree import POINT, TARGET_NODE
from dalembert.spatial import so3
from dalembert.spatial.tuples import (
    add3,
    cross3,
    diagonal9,
    load3,
    load9,
    mat_mul,
    mat_t_mul,
    mat_t_vec,
    mat_vec,
    neg3,
    sub3,
    transpose,
)

ZERO3 = (0.0, 0.0, 0.0)


@inline
def direction_force(joint, at, k, coordinate, rate):
    """Force along a direction (N or N m), and its derivatives by coordinate and rate."""
    force, K, D, _ = spring_damper(joint.stiffness[k], joint.damping[k], coordinate - joint.rest[k], rate)
    if joint.follows[k]:
        held, K_servo, D_servo, _ = servo(
            joint.servo_stiffness[k], joint.servo_damping[k], joint.servo_bound[k], at.target[k] - coordinate, rate,
        )
        return force + held + at.input[k], K + K_servo, D + D_servo
    return force + at.input[k], K, D


@inline
def ball_torque(stage, node, at):
    """Torque of springs, dampers and inputs of a free rotation on the node's body, in its frame."""
    joint, tie = stage.model.joints[node.joint], stage.work.joints[node.joint]
    k = node.direction
    C = joint_turn(node, at)
    E = frame_rotation(joint, C)
    push, _ = ball_spring(joint, k, E)
    omega = spin_in_parent(node, at, joint, C)
    push = add3(push, (
        tie.input[k] - joint.damping[k] * omega[0], tie.input[k + 1] - joint.damping[k + 1] * omega[1],
        tie.input[k + 2] - joint.damping[k + 2] * omega[2],
    ))
    torque = mat_vec(load9(joint.frame_parent), push)
    return neg3(torque) if node.backwards else mat_t_vec(C, torque)


@inline
def joint_turn(node, at):
    """R_parent^T R_child of the bodies of a free rotation's joint."""
    R = load9(at.R)
    return transpose(R) if node.backwards else R


@inline
def spin_in_parent(node, at, joint, C):
    """Angular velocity of the joint's child in its parent, in the parent's canonical axes."""
    own = mat_vec(so3.right_jacobian(load3(at.x)), load3(at.v))
    local = neg3(own) if node.backwards else mat_vec(C, own)
    return mat_t_vec(load9(joint.frame_parent), local)


@kernel
def evaluate_joint_forces(stage):
    """Write ``tau`` of all nodes: forces along their coordinates, rotors included."""
    tree, own = stage.tree, stage.own.nodes
    for i in range(tree.shape[0]):
        node, at = tree[i], own[i]
        for j in range(3):
            at.tau[j] = 0.0
        if node.joint < 0 or node.count == 0 or node.driven == TARGET_NODE:
            continue
        if node.kind == POINT:
            torque = mat_t_vec(so3.right_jacobian(load3(at.x)), ball_torque(stage, node, at))
            for j in range(3):
                at.tau[j] = torque[j]
            continue
        joint, k = stage.model.joints[node.joint], node.direction
        at.tau[0] = direction_force(joint, stage.work.joints[node.joint], k, at.x[0], at.v[0])[0] - joint.armature[k] * at.a[0]


@inline
def add_joint_derivatives(stage, node, at):
    """Add what ``tau`` changes by with the node's own coordinates, negated, to the pivot D; rates go with 1/c."""
    if node.joint < 0:
        return
    joint, tie, c = stage.model.joints[node.joint], stage.work.joints[node.joint], stage.c
    if node.kind != POINT:
        k = node.direction
        _, K, D = direction_force(joint, tie, k, at.x[0], at.v[0])
        at.D[0, 0] += joint.armature[k] / (c * c) - K - D / c
        return
    add_ball_derivatives(stage, node, at, joint)


@kernel
def add_ball_derivatives(stage, node, at, joint):
    """The same for a free rotation: tau = J^T T with T the torque in the node's frame and J its right Jacobian."""
    k, c, G = node.direction, stage.c, stage.own.ball
    C = joint_turn(node, at)
    E = frame_rotation(joint, C)
    G[:] = 0.0
    add_ball_spring(G, joint, k, E, C)
    first = 3 if node.backwards else 9
    tie = stage.work.joints[node.joint]
    x, v = load3(at.x), load3(at.v)
    J = so3.right_jacobian(x)
    torque = ball_torque(stage, node, at)
    damping = diagonal9((joint.damping[k], joint.damping[k + 1], joint.damping[k + 2]))
    frame = load9(joint.frame_parent)
    around = mat_mul(frame, mat_mul(damping, transpose(frame)))
    pushed = mat_vec(frame, (tie.input[k], tie.input[k + 1], tie.input[k + 2]))
    w = mat_vec(J, v)
    for j in range(3):
        dJ = so3.right_jacobian_derivative(x, unit3(j))
        turned = mat_vec(J, unit3(j))
        dw = add3(mat_vec(dJ, v), mat_vec(J, (unit3(j)[0] / c, unit3(j)[1] / c, unit3(j)[2] / c)))
        dT = (
            G[first, first] * turned[0] + G[first, first + 1] * turned[1] + G[first, first + 2] * turned[2],
            G[first + 1, first] * turned[0] + G[first + 1, first + 1] * turned[1] + G[first + 1, first + 2] * turned[2],
            G[first + 2, first] * turned[0] + G[first + 2, first + 1] * turned[1] + G[first + 2, first + 2] * turned[2],
        )
        if node.backwards:
            # torque on the parent: - around w', with w' = -w in its own axes; inputs are fixed there
            dT = sub3(dT, mat_vec(around, dw))
        else:
            held = sub3(mat_t_vec(C, pushed), mat_vec(mat_t_mul(C, mat_mul(around, C)), w))
            # d(C^T y) = (C^T y) x turned, y = pushed - around C w, dy = -around C (turned x w + dw)
            dT = add3(dT, cross3(held, turned))
            dT = sub3(dT, mat_vec(mat_t_mul(C, mat_mul(around, C)), add3(cross3(turned, w), dw)))
        dtau = add3(mat_t_vec(dJ, torque), mat_t_vec(J, dT))
        for i in range(3):
            at.D[i, j] -= dtau[i]
