"""What a mechanism is at a pose: rotations, coordinates, row gradients, how far rows are open; and rates for velocities there.

The pose is that of the work's bodies (``x``, ``q``); everything is written into the work.
"""
from __future__ import annotations

from dalembert.kernels import inline, kernel
from dalembert.model.couplings import evaluate_coupling
from dalembert.model.frames import relative
from dalembert.model.records import CONSTRAINT
from dalembert.model.rows import aim, coordinates, direction_gradient, row_gradient, row_value
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import dot3, load3, load4, load9, neg3, store9, sub3


@inline
def put6(target, force, torque):
    """Write a force and a torque into a row of six."""
    target[0] = force[0]
    target[1] = force[1]
    target[2] = force[2]
    target[3] = torque[0]
    target[4] = torque[1]
    target[5] = torque[2]


@inline
def joint_at_knot(bodies, joint):
    """``y``, ``C`` and the parent's rotation of a joint at the knot."""
    parent = bodies[joint.parent]
    child = bodies[joint.child]
    R_parent = load9(parent.R)
    y, C = relative(joint, load3(parent.x), R_parent, load3(child.x), load9(child.R))
    return y, C, R_parent


@inline
def write_gradients(joint, at, rows, y, C, R_parent):
    """Gradients of a joint's first ``rows`` rows by parent and child."""
    for k in range(rows):
        if joint.row_direction[k] >= 0:
            force, parent, child = direction_gradient(joint, joint.row_direction[k], y, C, R_parent)
        else:
            force, parent, child = row_gradient(joint, at, k, y, C, R_parent)
        put6(at.Gp[k], neg3(force), parent)
        put6(at.Gc[k], force, child)


@inline
def rotate_bodies(bodies):
    """Rotation matrices of the bodies' orientations."""
    for i in range(bodies.shape[0] - 1):
        store9(bodies[i].R, quaternion.to_matrix(load4(bodies[i].q)))


@kernel
def evaluate_pose(model, work):
    """Rotations, coordinates and row gradients of all elements."""
    bodies = work.bodies
    rotate_bodies(bodies)
    for i in range(model.joints.shape[0]):
        joint = model.joints[i]
        at = work.joints[i]
        y, C, R_parent = joint_at_knot(bodies, joint)
        if joint.free > 0:
            coordinates(joint, y, C, at.coordinate)
        write_gradients(joint, at, joint.rows, y, C, R_parent)
    for i in range(model.couplings.shape[0]):
        evaluate_coupling(model, work, i, False)


@kernel
def aim_all(model, work):
    """Point the driven rows of all joints at their targets."""
    for i in model.driven:
        aim(model.joints[i], work.joints[i])


@kernel
def set_targets(model, work, targets):
    """Aim the driven joints at ``targets`` (joints, 6)."""
    for i in model.driven:
        joint = model.joints[i]
        at = work.joints[i]
        for k in range(joint.free):
            at.target[k] = targets[i, k]
        aim(joint, at)


@inline
def add_to_slot(G, slot, weight, force, torque):
    """Add a weighted gradient to one row of a block."""
    if slot >= 0:
        for c in range(3):
            G[slot, c] += weight * force[c]
            G[slot, 3 + c] += weight * torque[c]


@kernel
def open_amounts(model, work, rows, gaps):
    """How far each row (joints, 6) and each coupling is open. Needs ``evaluate_pose`` before."""
    joints = work.joints
    for i in range(model.joints.shape[0]):
        joint = model.joints[i]
        y, C, _ = joint_at_knot(work.bodies, joint)
        for k in range(joint.rows):
            rows[i, k] = row_value(joint, joints[i], k, y, C)
    for i in range(model.couplings.shape[0]):
        gaps[i] = work.couplings[i].value if model.couplings[i].law == CONSTRAINT else 0.0


@kernel
def joint_rates(model, work, velocity, rates):
    """Rates (joints, 6) along the free directions for velocities (n + 1, 6). Needs ``evaluate_pose`` before."""
    for i in range(model.joints.shape[0]):
        joint = model.joints[i]
        y, C, R_parent = joint_at_knot(work.bodies, joint)
        up = velocity[joint.parent]
        uc = velocity[joint.child]
        for k in range(joint.free):
            force, parent, child = direction_gradient(joint, k, y, C, R_parent)
            rates[i, k] = dot3(force, sub3(load3(uc), load3(up))) + dot3(parent, load3(up[3:])) + dot3(child, load3(uc[3:]))


@kernel
def direction_rows(model, work, index, gradients):
    """Gradients (free, 12) of a joint's free directions, parent then child. Needs ``evaluate_pose`` before."""
    joint = model.joints[index]
    y, C, R_parent = joint_at_knot(work.bodies, joint)
    for i in range(joint.free):
        force, parent, child = direction_gradient(joint, i, y, C, R_parent)
        put6(gradients[i, :6], neg3(force), parent)
        put6(gradients[i, 6:], force, child)
