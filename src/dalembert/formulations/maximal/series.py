"""What can be read off a recorded run, knot by knot: coordinates, violations, velocities, energies, joint forces."""
from __future__ import annotations

from dalembert.formulations.maximal.knot import (
    accelerate,
    aim_all,
    apply_inputs,
    coupling_violations,
    evaluate_knot,
    joint_at_knot,
    potential_energy,
    project,
    violations,
)
from dalembert.kernel import inline, kernel
from dalembert.mechanism.records import BALL
from dalembert.mechanism.rows import ball_spring, direction_gradient, frame_rotation
from dalembert.spatial.tuples import add3, cross3, load3, load9, mat_t_vec, mat_vec, scale3, store3, store4, sub3


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
        violations(records, violation[knot])
        coupling_violations(records, coupling_violation[knot])
        potential[knot] = potential_energy(records)


@kernel
def velocity_series(records, blocks, schedule, vector, recording, inputs, base_load, rate, acceleration, velocity):
    """Knot velocities (N, n + 1, 6), and row forces of knots that no kick was recorded for: a start, and the end.

    A knot's momentum is its left limit plus the half kick of the interval before, projected on the joints.
    ``rate`` and ``acceleration`` (N, joints, 6): of the driven directions.
    """
    bodies, joints, _, _ = records
    count = velocity.shape[0]
    wanted = velocity[0].copy()
    impulse = recording.row_force[0].copy()
    coupling_impulse = recording.coupling_force[0].copy()
    for knot in range(count):
        recall(records, recording, inputs, base_load, knot)
        for i in range(joints.shape[0]):
            for k in range(6):
                joints[i].rate[k] = rate[knot, i, k]
                joints[i].acceleration[k] = acceleration[knot, i, k]
        half = 0.5 * recording.step_before[knot]
        for i in range(bodies.shape[0] - 1):
            for c in range(6):
                wanted[i, c] = recording.momentum[knot, i, c] + half * bodies[i].load[c]
        project(records, blocks, schedule, vector, wanted, half, 1e-13, velocity[knot], impulse, coupling_impulse)
        if knot == count - 1 or recording.step_before[knot] == 0.0:
            accelerate(records, blocks, schedule, vector, velocity[knot], recording.row_force[knot], recording.coupling_force[knot])


@kernel
def force_series(records, recording, inputs, base_load, force, torque, actuation):
    """What every joint transmits to its child, at the joint's point in its frame on the parent.

    ``force`` (N, joints, 3), ``torque`` (N, joints, 3), ``actuation`` (N, joints, 6) along the free directions.
    """
    bodies, joints, _, _ = records
    for knot in range(force.shape[0]):
        recall(records, recording, inputs, base_load, knot)
        for i in range(joints.shape[0]):
            joint = joints[i]
            y, C, R_parent = joint_at_knot(bodies, joint)
            push = (0.0, 0.0, 0.0)
            twist = (0.0, 0.0, 0.0)
            for k in range(joint.rows):
                size = recording.row_force[knot, i, k]
                push = add3(push, scale3(size, load3(joint.Gc[k])))
                twist = add3(twist, scale3(size, load3(joint.Gc[k, 3:])))
                if joint.row_direction[k] >= 0:
                    actuation[knot, i, joint.row_direction[k]] += size
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
                        actuation[knot, i, d + c] += local[c]
                actuation[knot, i, d] += size
                line, _, on_child = direction_gradient(joint, d, y, C, R_parent)
                push = add3(push, scale3(size, line))
                twist = add3(twist, scale3(size, on_child))
            frame = load9(joint.report_frame)
            in_parent = mat_t_vec(R_parent, push)
            arm = mat_vec(C, load3(joint.point_child))
            store3(force[knot, i], mat_t_vec(frame, in_parent))
            store3(torque[knot, i], mat_t_vec(frame, sub3(mat_vec(C, twist), cross3(arm, in_parent))))
