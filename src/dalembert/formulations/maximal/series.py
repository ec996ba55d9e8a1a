"""What can be read off a recorded run, knot by knot: coordinates, violations, velocities, energies, joint forces."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.forces.ball import ball_spring
from dalembert.forces.bodies import push_on_bodies
from dalembert.forces.couplings import coupling_rate, push_along_paths
from dalembert.forces.directions import servo_at, spring
from dalembert.forces.loads import apply_inputs, clear_inputs, evaluate_loads, potential_energy
from dalembert.formulations.maximal.knot import accelerate, evaluate_knot, project
from dalembert.kernels import allocating, inline, kernel
from dalembert.model.frames import frame_rotation
from dalembert.model.pose import aim_all, joint_at_knot, joint_rates, open_amounts, put6
from dalembert.model.records import BALL, COMPLIANT, CONSTRAINT
from dalembert.model.rows import direction_gradient
from dalembert.spatial.tuples import add3, cross3, load3, load9, mat_t_vec, mat_vec, scale3, store3, store4, sub3

#: shares of the force along a free direction, in the order of their columns
SHARES = ("drive", "spring", "damper", "rotor")
DRIVE, SPRING, DAMPER, ROTOR = range(4)


class Motion(NamedTuple):
    """What ``motion_series`` writes, over the knots (first axis)."""

    velocity: np.ndarray  # (N, n + 1, 6) linear (world) and angular (body frame); the world comes last
    rate: np.ndarray  # (N, joints, 6) along the free directions
    force: np.ndarray  # (N, joints, 3) parent on child, in the joint's frame on the parent
    torque: np.ndarray  # (N, joints, 3)
    actuation: np.ndarray  # (N, joints, 6) along the free directions
    share: np.ndarray  # (N, joints, 6, shares) what it is made of
    coupling_rate: np.ndarray  # (N, couplings)


def new_motion(knots: int, bodies: int, joints: int, couplings: int) -> Motion:
    """Room for ``motion_series``."""
    rate, force, torque, actuation = (np.zeros((knots, joints, n)) for n in (6, 3, 3, 6))
    share = np.zeros((knots, joints, 6, len(SHARES)))
    return Motion(np.zeros((knots, bodies + 1, 6)), rate, force, torque, actuation, share, np.zeros((knots, couplings)))


@inline
def recall(model, work, recording, inputs, knot):
    """Put a recorded knot, with the inputs of its step, into the work and evaluate it."""
    bodies = work.bodies
    for i in range(bodies.shape[0] - 1):
        store3(bodies[i].x, load3(recording.position[knot, i]))
        store4(bodies[i].q, recording.orientation[knot, i])
        store3(bodies[i].p, load3(recording.momentum[knot, i]))
        store3(bodies[i].l, load3(recording.momentum[knot, i, 3:]))
    given = max(inputs.wrench.shape[0], max(inputs.joint.shape[0], inputs.tension.shape[0]))
    clear_inputs(model, work)
    apply_inputs(model, work, inputs, min(knot, max(given - 1, 0)))
    for i in range(work.joints.shape[0]):
        for k in range(6):
            work.joints[i].target[k] = inputs.target[knot, i, k]
            work.joints[i].spin[k] = recording.spin[knot, i, k]
    evaluate_knot(model, work)


@kernel
def pose_series(model, work, recording, inputs, coordinate, violation, coupling_violation, potential, coupling):
    """Coordinates (N, joints, 6), open rows (N, joints, 6), open couplings (N, couplings), potential energy (N,), and values of
    couplings (N, couplings).
    """
    for knot in range(coordinate.shape[0]):
        recall(model, work, recording, inputs, knot)
        aim_all(model, work)
        for i in range(model.joints.shape[0]):
            for k in range(model.joints[i].free):
                coordinate[knot, i, k] = work.joints[i].coordinate[k]
        open_amounts(model, work, violation[knot], coupling_violation[knot])
        potential[knot] = potential_energy(model, work)
        for i in range(model.couplings.shape[0]):
            coupling[knot, i] = work.couplings[i].value


@inline
def is_kick(recording, knot):
    """True when the forces recorded for a knot are the mean over a kick centred there: equal whole steps before and after."""
    if knot == 0 or knot == recording.step_before.shape[0] - 1:
        return False
    if recording.substeps[knot] != 1 or recording.substeps[knot + 1] != 1:
        return False
    return recording.step_before[knot] == recording.step_before[knot + 1]


@inline
def ask_for_rates(model, work, rates, drives):
    """Let reflected inertias keep their rates (joints, 6), and with ``drives`` the driven directions too: at a start these may
    not move as their targets do yet.
    """
    for i in range(model.joints.shape[0]):
        joint, at = model.joints[i], work.joints[i]
        for k in range(joint.rows):
            direction = joint.row_direction[k]
            if joint.row_kind[k] == COMPLIANT:
                at.spin[direction] = joint.armature[direction] * rates[i, direction]
            elif direction >= 0 and drives:
                at.r[k] = rates[i, direction]


@allocating
def motion_series(model, work, compliance, recording, inputs, prescribed, motion, exact, trusted):
    """Knot velocities and what the joints transmit: the arrays of ``motion``.

    With ``exact`` the momenta were recorded at the knots themselves. Otherwise a knot's momentum is its left limit plus the
    half kick of the interval before, projected on the joints. Where no force was recorded for the knot itself it comes from
    an acceleration-level solve, and replaces what was recorded: at the ends of a run and where steps change or were divided;
    and everywhere with ``exact``, since multipliers of stages and first steps do not converge; never where a knot is ``trusted``
    (N,), whose forces hold or are not asked for. Velocities of such steps may miss the joints by the error of the method, but not those that forces are taken for.
    ``prescribed`` (2, N, joints, 6): rates and accelerations of the driven directions; NaN for a rate that is not known, which is
    then the one just before the knot.
    """
    bodies, joints = work.bodies, work.joints
    velocity = motion.velocity
    wanted = velocity[0].copy()
    closed = velocity[0].copy()
    acceleration = velocity[0].copy()
    impulse = recording.row_force[0].copy()
    coupling_impulse = recording.coupling_force[0].copy()
    for knot in range(velocity.shape[0]):
        recall(model, work, recording, inputs, knot)
        for i in range(joints.shape[0]):
            for k in range(6):
                joints[i].rate[k] = prescribed[0, knot, i, k]
                joints[i].acceleration[k] = prescribed[1, knot, i, k]
            for k in range(model.joints[i].rows):
                direction = model.joints[i].row_direction[k]
                joints[i].r[k] = joints[i].rate[direction] if direction >= 0 else 0.0
        for i in range(work.couplings.shape[0]):
            work.couplings[i].r = 0.0
        for i in range(bodies.shape[0] - 1):
            momentum = recording.momentum[knot, i]
            linear = scale3(1.0 / model.bodies[i].mass, load3(momentum))
            put6(velocity[knot, i], linear, mat_vec(load9(model.bodies[i].inertia_inverse), load3(momentum[3:])))
        if exact:
            joint_rates(model, work, velocity[knot], motion.rate[knot])
            known = trusted[knot]
            if not known:
                ask_for_rates(model, work, motion.rate[knot], knot == 0 or velocity.shape[0] == 2)
                project(model, work, compliance, recording.momentum[knot], 0.0, 1e-13, closed, impulse, coupling_impulse)
        else:
            half = 0.5 * recording.step_before[knot]
            joint_rates(model, work, velocity[knot], motion.rate[knot])
            for i in model.driven:
                for k in range(model.joints[i].locks):
                    if joints[i].r[k] != joints[i].r[k]:
                        joints[i].r[k] = motion.rate[knot, i, model.joints[i].row_direction[k]]
            push_on_bodies(model, work, velocity[knot], 1)
            for i in range(bodies.shape[0] - 1):
                for c in range(6):
                    wanted[i, c] = recording.momentum[knot, i, c] + half * bodies[i].load[c]
            project(model, work, compliance, wanted, half, 1e-13, velocity[knot], impulse, coupling_impulse)
            joint_rates(model, work, velocity[knot], motion.rate[knot])
            known = trusted[knot] or is_kick(recording, knot)
        evaluate_loads(model, work)
        moving = closed if exact and not known else velocity[knot]
        push_on_bodies(model, work, moving, 1)
        push_along_paths(model, work, moving)
        if not known:
            accelerate(model, work, compliance, moving, recording.row_force[knot], recording.coupling_force[knot], exact, wanted, acceleration)
        for i in range(model.couplings.shape[0]):
            motion.coupling_rate[knot, i] = coupling_rate(model, work, i, velocity[knot])
            if model.couplings[i].law != CONSTRAINT:
                recording.coupling_force[knot, i] = work.couplings[i].mu
        transmit_all(model, work, recording.row_force[knot], motion, knot)


@kernel
def force_series(model, work, recording, inputs, motion):
    """What the joints transmit at recorded knots, from the recorded forces of their rows and the rates in ``motion``."""
    for knot in range(motion.force.shape[0]):
        recall(model, work, recording, inputs, knot)
        transmit_all(model, work, recording.row_force[knot], motion, knot)


@inline
def transmit_all(model, work, row_force, motion, knot):
    for i in range(model.joints.shape[0]):
        transmit(
            work.bodies, model.joints[i], work.joints[i], row_force[i], motion.rate[knot, i], motion.force[knot, i], motion.torque[knot, i],
            motion.actuation[knot, i], motion.share[knot, i],
        )


@kernel
def transmit(bodies, joint, at, row_force, rate, force, torque, actuation, share):
    """What a joint transmits to its child, at the joint's point, in the joint's frame on the parent (DESIGN section 4).

    ``share`` (6, shares): what ``actuation`` is made of.
    """
    y, C, R_parent = joint_at_knot(bodies, joint)
    push = (0.0, 0.0, 0.0)
    twist = (0.0, 0.0, 0.0)
    for d in range(joint.free):
        share[d, DRIVE] = at.input[d]
        if joint.free_kind[d] != BALL:
            share[d, SPRING] = spring(joint, at, d)[0]
        elif joint.free_axis[d] == 0:
            local, _ = ball_spring(joint, d, frame_rotation(joint, C))
            for c in range(3):
                share[d + c, SPRING] = local[c]
    for k in range(joint.rows):
        push = add3(push, scale3(row_force[k], load3(at.Gc[k])))
        twist = add3(twist, scale3(row_force[k], load3(at.Gc[k, 3:])))
        d = joint.row_direction[k]
        if d >= 0:
            share[d, DAMPER] = -joint.damping[d] * rate[d]
            if joint.row_kind[k] == COMPLIANT and joint.armature[d] > 0.0:
                share[d, ROTOR] = row_force[k] - share[d, DAMPER]
                if joint.follows[d]:
                    share[d, DRIVE] += servo_at(joint, at, d, rate[d])[0]
                    share[d, ROTOR] -= servo_at(joint, at, d, rate[d])[0]
            elif joint.row_kind[k] == COMPLIANT and joint.follows[d]:
                share[d, DRIVE] += row_force[k] - share[d, DAMPER]
            elif joint.row_kind[k] == COMPLIANT:
                share[d, DAMPER] = row_force[k]
            else:  # the row holds everything that acts along a driven direction
                share[d, DRIVE] = row_force[k] - share[d, SPRING] - share[d, DAMPER]
    for d in range(joint.free):
        actuation[d] = share[d, DRIVE] + share[d, SPRING] + share[d, DAMPER] + share[d, ROTOR]
        if not joint.driven[d]:
            size = at.input[d] + share[d, SPRING]
            line, _, on_child = direction_gradient(joint, d, y, C, R_parent)
            push = add3(push, scale3(size, line))
            twist = add3(twist, scale3(size, on_child))
    frame = load9(joint.report_frame)
    in_parent = mat_t_vec(R_parent, push)
    arm = mat_vec(C, load3(joint.point_child))
    store3(force, mat_t_vec(frame, in_parent))
    store3(torque, mat_t_vec(frame, sub3(mat_vec(C, twist), cross3(arm, in_parent))))
