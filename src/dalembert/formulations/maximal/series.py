"""What can be read off a recorded run, knot by knot: coordinates, violations, velocities, energies, joint forces."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.formulations.maximal.knot import (
    accelerate,
    aim_all,
    apply_inputs,
    evaluate_knot,
    joint_at_knot,
    joint_rates,
    open_amounts,
    potential_energy,
    project,
    put6,
)
from dalembert.kernels import inline, kernel
from dalembert.model.records import BALL
from dalembert.model.rows import ball_spring, direction_gradient, frame_rotation
from dalembert.spatial.tuples import add3, cross3, load3, load9, mat_t_vec, mat_vec, scale3, store3, store4, sub3


class Motion(NamedTuple):
    """What ``motion_series`` writes, over the knots (first axis)."""

    velocity: np.ndarray  # (N, n + 1, 6) linear (world) and angular (body frame); the world comes last
    rate: np.ndarray  # (N, joints, 6) along the free directions
    force: np.ndarray  # (N, joints, 3) parent on child, in the joint's frame on the parent
    torque: np.ndarray  # (N, joints, 3)
    actuation: np.ndarray  # (N, joints, 6) along the free directions


def new_motion(knots: int, bodies: int, joints: int) -> Motion:
    """Room for ``motion_series``."""
    return Motion(np.zeros((knots, bodies + 1, 6)), *(np.zeros((knots, joints, n)) for n in (6, 3, 3, 6)))


@inline
def recall(records, recording, inputs, base_load, knot):
    """Put a recorded knot, with the inputs of its step, back into the records and evaluate it."""
    bodies = records.bodies
    for i in range(bodies.shape[0] - 1):
        store3(bodies[i].x, load3(recording.position[knot, i]))
        store4(bodies[i].q, recording.orientation[knot, i])
        store3(bodies[i].p, load3(recording.momentum[knot, i]))
        store3(bodies[i].l, load3(recording.momentum[knot, i, 3:]))
    steps = recording.step_before.shape[0] - 1
    apply_inputs(records, base_load, inputs, min(knot, steps - 1))
    for i in range(records.joints.shape[0]):
        for k in range(6):
            records.joints[i].target[k] = inputs.target[knot, i, k]
            records.joints[i].spin[k] = recording.spin[knot, i, k]
    evaluate_knot(records)


@kernel
def pose_series(records, recording, inputs, base_load, coordinate, violation, coupling_violation, potential):
    """Coordinates (N, joints, 6), open rows (N, joints, 6), open couplings (N, couplings), potential energy (N,)."""
    for knot in range(coordinate.shape[0]):
        recall(records, recording, inputs, base_load, knot)
        aim_all(records)
        for i in range(records.joints.shape[0]):
            for k in range(records.joints[i].free):
                coordinate[knot, i, k] = records.joints[i].coordinate[k]
        open_amounts(records, violation[knot], coupling_violation[knot])
        potential[knot] = potential_energy(records)


@kernel
def motion_series(records, blocks, schedule, vector, compliance, recording, inputs, base_load, prescribed, motion, exact):
    """Knot velocities and what the joints transmit: the arrays of ``motion``.

    A knot's momentum is its left limit plus the half kick of the interval before, projected on the joints. Knots that
    no kick was recorded for, a start and the end, get their row forces from an acceleration-level solve.
    ``prescribed`` (2, N, joints, 6): rates and accelerations of the driven directions. ``exact``: momenta and forces were
    recorded for the knots themselves, except for the forces of a start.
    """
    bodies, joints = records.bodies, records.joints
    velocity = motion.velocity
    count = velocity.shape[0]
    wanted = velocity[0].copy()
    impulse = recording.row_force[0].copy()
    coupling_impulse = recording.coupling_force[0].copy()
    for knot in range(count):
        recall(records, recording, inputs, base_load, knot)
        for i in range(joints.shape[0]):
            for k in range(6):
                joints[i].rate[k] = prescribed[0, knot, i, k]
                joints[i].acceleration[k] = prescribed[1, knot, i, k]
            for k in range(joints[i].rows):
                direction = joints[i].row_direction[k]
                joints[i].r[k] = joints[i].rate[direction] if direction >= 0 else 0.0
        for i in range(records.couplings.shape[0]):
            records.couplings[i].r = 0.0
        half = 0.5 * recording.step_before[knot]
        for i in range(bodies.shape[0] - 1):
            for c in range(6):
                wanted[i, c] = recording.momentum[knot, i, c] + half * bodies[i].load[c]
        if exact:
            for i in range(bodies.shape[0] - 1):
                momentum = recording.momentum[knot, i]
                linear = scale3(1.0 / bodies[i].mass, load3(momentum))
                put6(velocity[knot, i], linear, mat_vec(load9(bodies[i].inertia_inverse), load3(momentum[3:])))
        else:
            project(records, blocks, schedule, vector, compliance, wanted, half, 1e-13, velocity[knot], impulse, coupling_impulse)
        joint_rates(records, velocity[knot], motion.rate[knot])
        unknown = recording.substeps[knot] == 0 if exact else knot == count - 1 or recording.step_before[knot] == 0.0
        if unknown:
            accelerate(
                records, blocks, schedule, vector, compliance, velocity[knot], recording.row_force[knot], recording.coupling_force[knot]
            )
        for i in range(joints.shape[0]):
            transmit(bodies, joints[i], recording.row_force[knot, i], motion.force[knot, i], motion.torque[knot, i], motion.actuation[knot, i])


@kernel
def force_series(records, recording, inputs, base_load, force, torque, actuation):
    """What the joints transmit at recorded knots, from the recorded forces of their rows."""
    for knot in range(force.shape[0]):
        recall(records, recording, inputs, base_load, knot)
        for i in range(records.joints.shape[0]):
            transmit(records.bodies, records.joints[i], recording.row_force[knot, i], force[knot, i], torque[knot, i], actuation[knot, i])


@kernel
def transmit(bodies, joint, row_force, force, torque, actuation):
    """What a joint transmits to its child, at the joint's point, in the joint's frame on the parent (DESIGN section 4)."""
    y, C, R_parent = joint_at_knot(bodies, joint)
    push = (0.0, 0.0, 0.0)
    twist = (0.0, 0.0, 0.0)
    for k in range(joint.rows):
        push = add3(push, scale3(row_force[k], load3(joint.Gc[k])))
        twist = add3(twist, scale3(row_force[k], load3(joint.Gc[k, 3:])))
        if joint.row_direction[k] >= 0:
            actuation[joint.row_direction[k]] += row_force[k]
    for d in range(joint.free):
        if joint.driven[d]:
            continue
        size = joint.input[d]
        if joint.free_kind[d] != BALL:
            size -= joint.stiffness[d] * (joint.coordinate[d] - joint.rest[d])
        elif joint.free_axis[d] == 0:
            local, _ = ball_spring(joint, d, frame_rotation(joint, C))
            twist = add3(twist, mat_t_vec(C, mat_vec(load9(joint.frame_parent), local)))
            for c in range(3):
                actuation[d + c] += local[c]
        actuation[d] += size
        line, _, on_child = direction_gradient(joint, d, y, C, R_parent)
        push = add3(push, scale3(size, line))
        twist = add3(twist, scale3(size, on_child))
    frame = load9(joint.report_frame)
    in_parent = mat_t_vec(R_parent, push)
    arm = mat_vec(C, load3(joint.point_child))
    store3(force, mat_t_vec(frame, in_parent))
    store3(torque, mat_t_vec(frame, sub3(mat_vec(C, twist), cross3(arm, in_parent))))
