"""Transposed derivatives of what joints transmit at knots: of the reading itself, and of the accelerations and forces that it is solved from.

A joint's force and torque are a wrench on its child, seen from the parent: f . cot = (wrench) . a, with weights a that follow from
the pose. So their pull is that of a wrench in an equation with the weight a. Row forces that no step recorded solve

    M a + gyroscopic - loads - G^T lambda = 0,    G a + bias = accelerations of drives,
    lambda + d rate - servo + armature (G a + bias) = 0 for compliant rows;

the bias is how the rates G u change along the motion itself, so that its derivative is that of the pull of rates along it, differenced
(sixth order) along that one line.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.forces.ball import ball_spring
from dalembert.forces.bodies import push_on_bodies
from dalembert.forces.couplings import push_along_paths
from dalembert.forces.directions import spring
from dalembert.forces.laws import coupling_law
from dalembert.forces.loads import evaluate_loads
from dalembert.formulations.maximal.knot import knot_matrix, project
from dalembert.formulations.maximal.pull_forces import (
    EQUATIONS,
    pull_coupling_rate,
    pull_coupling_value,
    pull_coupling_wrench,
    pull_law,
    pull_load,
)
from dalembert.formulations.maximal.pull_joints import (
    add_to3,
    pull_at_knot,
    pull_direction_rate,
    pull_joint_wrench,
    pull_rate,
    pull_servo,
)
from dalembert.formulations.maximal.pull_knot import add_outer, pull_project, weigh_knot
from dalembert.formulations.maximal.series import ask_for_rates, recall
from dalembert.kernels import inline, kernel
from dalembert.model.bias import direction_bias
from dalembert.model.frames import frame_rotation
from dalembert.model.pose import aim_all, evaluate_pose, joint_at_knot, joint_rates, put6
from dalembert.model.records import BALL, COMPLIANT, CONSTRAINT
from dalembert.model.rows import direction_gradient
from dalembert.spatial import quaternion, so3
from dalembert.spatial.tuples import (
    add3,
    cross3,
    dot3,
    load3,
    load4,
    load9,
    mat_t_vec,
    mat_vec,
    neg3,
    scale3,
    store3,
    store4,
    sub3,
)

ZERO3 = (0.0, 0.0, 0.0)
#: largest move (m, rad) along the motion by which the derivative of a bias is differenced
STEP = 5e-3


class ForceBars(NamedTuple):
    """Bars over some knots (first axis): of poses, knot velocities, row forces and coupling forces, inputs, targets, and of rates and
    accelerations of driven directions.
    """

    pose: np.ndarray  # (N, n, 6)
    velocity: np.ndarray  # (N, n, 6)
    row: np.ndarray  # (N, joints, 6)
    tie: np.ndarray  # (N, couplings)
    push: np.ndarray  # (N, n, 6)
    input: np.ndarray  # (N, joints, 6)
    target: np.ndarray  # (N, joints, 6)
    tension: np.ndarray  # (N, couplings)
    rate: np.ndarray  # (N, joints, 6)
    acceleration: np.ndarray  # (N, joints, 6)


def new_force_bars(knots: int, bodies: int, joints: int, couplings: int) -> ForceBars:
    """Zeros."""
    body, joint, tie = (bodies, 6), (joints, 6), (couplings,)
    return ForceBars(*(np.zeros((knots, *shape)) for shape in (body, body, joint, tie, body, joint, joint, tie, joint, joint)))


@inline
def clear_knot(model, bars):
    """Bars at one knot: nothing yet."""
    for i in range(model.bodies.shape[0]):
        bar = bars.bodies[i]
        for c in range(3):
            bar.x[c] = bar.phi[c] = 0.0
        for c in range(6):
            bar.b[c] = bar.du[c] = bar.push[c] = bar.before[6 + c] = 0.0
    for i in range(model.joints.shape[0]):
        bar = bars.joints[i]
        for k in range(6):
            bar.b[k] = bar.mu[k] = bar.input[k] = bar.target[k] = bar.before[k] = 0.0
    for i in range(model.couplings.shape[0]):
        bars.couplings[i].b = bars.couplings[i].mu = bars.couplings[i].input = 0.0


@inline
def gather_knot(model, bars, into, knot):
    """Add the bars of one knot to those of all; those of row forces are left out."""
    for i in range(model.bodies.shape[0] - 1):
        bar = bars.bodies[i]
        for c in range(3):
            into.pose[knot, i, c] += bar.x[c]
            into.pose[knot, i, 3 + c] += bar.phi[c]
        for c in range(6):
            into.velocity[knot, i, c] += bar.du[c]
            into.push[knot, i, c] += bar.push[c]
    for i in range(model.joints.shape[0]):
        bar = bars.joints[i]
        for k in range(6):
            into.input[knot, i, k] += bar.input[k]
            into.target[knot, i, k] += bar.target[k]
    for i in range(model.couplings.shape[0]):
        into.tension[knot, i] += bars.couplings[i].input


@inline
def recall_reading(model, work, recording, inputs, coordinates, velocity, row_force, coupling_force, bars, knot):
    """Put a knot as it was read into the work, with velocities (n, 6), row forces and coupling forces; bars at the knot are cleared."""
    for i in range(model.joints.shape[0]):
        for k in range(6):
            work.joints[i].coordinate[k] = coordinates[knot, i, k]
    recall(model, work, recording, inputs, knot)
    aim_all(model, work)
    clear_knot(model, bars)
    for i in range(model.bodies.shape[0] - 1):
        for c in range(6):
            bars.bodies[i].u[c] = work.velocity[i, c] = velocity[knot, i, c]
    for i in range(model.joints.shape[0]):
        for k in range(model.joints[i].rows):
            work.joints[i].mu[k] = row_force[knot, i, k]
    for i in range(model.couplings.shape[0]):
        work.couplings[i].mu = coupling_force[knot, i]


@kernel
def pull_transmitted(model, work, recording, inputs, coordinates, velocity, row_force, coupling_force, cot, bars, into):
    """Forces and torques of joints, weighted with ``cot`` (N, joints, 6), by row forces, poses, inputs, springs and geometry."""
    for knot in range(cot.shape[0]):
        recall_reading(model, work, recording, inputs, coordinates, velocity, row_force, coupling_force, bars, knot)
        for i in range(model.joints.shape[0]):
            pull_transmit(model, work, bars, i, cot[knot, i])
        for i in range(model.joints.shape[0]):
            for k in range(model.joints[i].rows):
                into.row[knot, i, k] += bars.joints[i].mu[k]
        gather_knot(model, bars, into, knot)


@kernel
def pull_transmit(model, work, bars, index, cot):
    """What one joint transmits (``series.transmit``), weighted with ``cot`` (6,); its row forces are in ``mu``."""
    joint, at, bar = model.joints[index], work.joints[index], bars.joints[index]
    some = 0.0
    for c in range(6):
        some = max(some, abs(cot[c]))
    if some == 0.0:
        return
    y, C, Rp = joint_at_knot(work.bodies, joint)
    frame, p = load9(joint.report_frame), load3(joint.point_child)
    f, t = mat_vec(frame, load3(cot)), mat_vec(frame, load3(cot[3:]))
    arm = mat_vec(C, p)
    g = sub3(f, cross3(t, arm))
    parent, child = bars.bodies[joint.parent], bars.bodies[joint.child]
    put6(parent.b, ZERO3, ZERO3)
    put6(child.b, neg3(mat_vec(Rp, g)), neg3(mat_t_vec(C, t)))
    pull_joint_wrench(model, work, bars, index, 1.0)
    put6(child.b, ZERO3, ZERO3)
    # the wrench itself, and how its weights change with the pose, the child's point and the frame that it is reported in
    push, twist = ZERO3, ZERO3
    for k in range(joint.rows):
        push = add3(push, scale3(at.mu[k], load3(at.Gc[k])))
        twist = add3(twist, scale3(at.mu[k], load3(at.Gc[k, 3:])))
    push, twist = add_along(joint, at, y, C, Rp, push, twist)
    P, T = mat_t_vec(Rp, push), mat_vec(C, twist)
    across = cross3(P, t)
    add_to3(parent.phi, 1.0, add3(sub3(cross3(g, P), cross3(T, t)), cross3(arm, across)))
    on_child = mat_t_vec(C, across)
    add_to3(child.phi, 1.0, sub3(cross3(twist, mat_t_vec(C, t)), cross3(p, on_child)))
    add_to3(bar.point_child, -1.0, on_child)
    add_to3(bar.turn_parent, 1.0, add3(cross3(f, P), cross3(t, sub3(T, cross3(arm, P)))))


@inline
def add_along(joint, at, y, C, Rp, push, twist):
    """Add inputs and springs along the free directions to a force (world) and a torque (body axes) on the child."""
    for d in range(joint.free):
        if not joint.driven[d]:
            size = at.input[d]
            if joint.free_kind[d] == BALL:
                axis = joint.free_axis[d]
                size += ball_spring(joint, d - axis, frame_rotation(joint, C))[0][axis]
            else:
                size += spring(joint, at, d)[0]
            line, _, on_child = direction_gradient(joint, d, y, C, Rp)
            push = add3(push, scale3(size, line))
            twist = add3(twist, scale3(size, on_child))
    return push, twist


@kernel
def pull_shared(model, work, recording, inputs, coordinates, velocity, row_force, coupling_force, first, second, rho, left, bars, into):
    """How least-norm forces change with the pose at fixed effect on the bodies: rho^T dG first + left^T dG second.

    ``first``, ``second`` (N, n, 6): motions; ``rho``, ``left`` (N, joints + 1, 6) with couplings' in rows of their own beyond.
    """
    joints = model.joints.shape[0]
    for knot in range(first.shape[0]):
        recall_reading(model, work, recording, inputs, coordinates, velocity, row_force, coupling_force, bars, knot)
        for part in range(2):
            motion, weights = (first, rho) if part == 0 else (second, left)
            for i in range(model.bodies.shape[0] - 1):
                for c in range(6):
                    bars.bodies[i].u[c] = motion[knot, i, c]
            for i in range(joints):
                for k in range(model.joints[i].locks):
                    pull_rate(model, work, bars, i, k, weights[knot, i, k])
            for i in range(model.couplings.shape[0]):
                if model.couplings[i].law == CONSTRAINT:
                    pull_coupling_rate(model, work, bars, i, weights[knot, joints + i, 0])
        for i in range(model.bodies.shape[0] - 1):
            put6(bars.bodies[i].du, ZERO3, ZERO3)
        gather_knot(model, bars, into, knot)


@kernel
def pull_accelerated(
    model, work, compliance, recording, inputs, coordinates, velocity, row_force, coupling_force, prescribed, known, exact, held, bars, into, scratch,
):
    """Row forces that were read by an acceleration-level solve, weighted with ``into.row`` and ``into.tie``, at knots not ``known``.

    With ``exact`` the velocities that forces are taken for are the recorded ones, projected; driven directions keep their own rate
    at knots ``held``. ``prescribed``: rates (N, joints, 6) of driven directions. Returns False where that cannot be done.
    """
    closed, impulse, coupling_impulse, rate, acceleration, kept = scratch
    for knot in range(known.shape[0]):
        if known[knot]:
            continue
        recall_reading(model, work, recording, inputs, coordinates, velocity, row_force, coupling_force, bars, knot)
        if exact:
            joint_rates(model, work, work.velocity, rate)
            for i in range(model.joints.shape[0]):
                for k in range(model.joints[i].rows):
                    direction = model.joints[i].row_direction[k]
                    work.joints[i].r[k] = prescribed[knot, i, direction] if direction >= 0 else 0.0
            for i in range(model.couplings.shape[0]):
                work.couplings[i].r = 0.0
            ask_for_rates(model, work, rate, held[knot])
            project(model, work, compliance, recording.momentum[knot], 0.0, 1e-13, closed, impulse, coupling_impulse)
            for i in range(model.bodies.shape[0] - 1):
                for c in range(6):
                    bars.bodies[i].u[c] = work.velocity[i, c] = closed[i, c]
            for i in range(model.joints.shape[0]):
                for k in range(model.joints[i].rows):
                    work.joints[i].mu[k] = row_force[knot, i, k]
        evaluate_loads(model, work)
        push_on_bodies(model, work, work.velocity, 1)
        push_along_paths(model, work, work.velocity)
        for i in range(model.joints.shape[0]):
            for k in range(model.joints[i].rows):
                bars.joints[i].mu[k] = into.row[knot, i, k]
        for i in range(model.couplings.shape[0]):
            if model.couplings[i].law == CONSTRAINT:
                work.couplings[i].mu = coupling_force[knot, i]
                bars.couplings[i].mu = into.tie[knot, i]
        if knot_matrix(model, work, compliance, 0.0) >= 0:
            return False
        weigh_knot(model, work, bars, 0.0)
        for i in range(model.joints.shape[0]):
            for k in range(6):
                bars.joints[i].mu[k] = 0.0
        for i in range(model.couplings.shape[0]):
            bars.couplings[i].mu = 0.0
        pull_acceleration(model, work, bars, acceleration, kept, into.acceleration[knot])
        if exact:
            pull_closed(model, work, bars, compliance, velocity[knot], rate, held[knot], closed, impulse, coupling_impulse, into.rate[knot])
        gather_knot(model, bars, into, knot)
    return True


@kernel
def pull_acceleration(model, work, bars, acceleration, kept, driven):
    """The equations of accelerations and forces, weighted with ``b``. ``acceleration``, ``kept``: room for (n, 6), (n, 19); adds to ``driven`` (joints, 6)."""
    world = model.bodies.shape[0] - 1
    g = load3(model.gravity)
    accelerations(model, work, bars, acceleration)
    for i in range(world):
        fixed, bar, a = model.bodies[i], bars.bodies[i], acceleration[i]
        b, t, w = load3(bar.b), load3(bar.b[3:]), load3(bar.u[3:])
        J = load9(fixed.inertia)
        across = cross3(t, w)
        bar.mass += dot3(load3(a), b) - dot3(g, b)
        add_to3(bars.gravity, -fixed.mass, b)
        add_outer(bar.inertia, 1.0, t, load3(a[3:]))
        add_outer(bar.inertia, 1.0, across, w)
        add_to3(bar.du[3:], 1.0, add3(cross3(mat_vec(J, w), t), mat_t_vec(J, across)))
        for c in range(6):
            bar.wrench[c] -= bar.b[c]
            bar.push[c] -= bar.b[c]
    for i in range(model.joints.shape[0]):
        joint = model.joints[i]
        pull_joint_wrench(model, work, bars, i, 1.0)
        for k in range(joint.locks, joint.rows):
            if joint.row_kind[k] == COMPLIANT:
                pull_law_at_knot(model, work, bars, i, k)
    for i in range(model.couplings.shape[0]):
        coupling, tie, bar = model.couplings[i], work.couplings[i], bars.couplings[i]
        bar.mu = 0.0
        pull_coupling_wrench(model, work, bars, i, -1.0, EQUATIONS)
        if coupling.law != CONSTRAINT:
            force, K, D, _ = coupling_law(work, coupling, tie, tie.value, tie.rate)
            weight = bar.mu
            pull_law(bar, coupling, force + tie.input, tie.value, tie.rate, weight)
            pull_coupling_value(model, work, bars, i, weight * K, False)
            pull_coupling_rate(model, work, bars, i, weight * D)
    for i in range(model.loads.shape[0]):
        pull_load(model, work, bars, i, 1.0)
    pull_turning_rates(model, work, bars, acceleration, driven)
    pull_bias(model, work, bars, kept)


@inline
def accelerations(model, work, bars, acceleration):
    """(n, 6) of the forces in the work: M a = load + G^T lambda - gyroscopic; ``load`` holds all but those of rows."""
    world = model.bodies.shape[0] - 1
    for i in range(world):
        fixed, w = model.bodies[i], load3(bars.bodies[i].u[3:])
        gyroscopic = cross3(w, mat_vec(load9(fixed.inertia), w))
        for c in range(3):
            acceleration[i, c] = work.bodies[i].load[c]
            acceleration[i, 3 + c] = work.bodies[i].load[3 + c] - gyroscopic[c]
    for i in range(model.joints.shape[0]):
        joint, at = model.joints[i], work.joints[i]
        for k in range(joint.rows):
            for c in range(6):
                acceleration[joint.child, c] += at.mu[k] * at.Gc[k, c]
                if joint.parent != world:
                    acceleration[joint.parent, c] += at.mu[k] * at.Gp[k, c]
    for i in range(model.couplings.shape[0]):
        coupling = model.couplings[i]
        if coupling.law == CONSTRAINT:
            for e in range(coupling.first, coupling.first + coupling.ends):
                if model.ends[e] != world:
                    for c in range(6):
                        acceleration[model.ends[e], c] += work.couplings[i].mu * work.ends[e].G[c]
    for i in range(world):
        fixed, a = model.bodies[i], acceleration[i]
        put6(a, scale3(1.0 / fixed.mass, load3(a)), mat_vec(load9(fixed.inertia_inverse), load3(a[3:])))


@inline
def pull_law_at_knot(model, work, bars, index, k):
    """A compliant row without its rotor: lambda + d rate - servo."""
    joint, at, bar = model.joints[index], work.joints[index], bars.joints[index]
    direction, b = joint.row_direction[k], bar.b[k]
    parent, child = bars.bodies[joint.parent], bars.bodies[joint.child]
    rate = 0.0
    for c in range(6):
        rate += at.Gp[k, c] * parent.u[c] + at.Gc[k, c] * child.u[c]
    weight = b * joint.damping[direction]
    if joint.follows[direction]:
        K, D = pull_servo(bar, joint, direction, -b, at.target[direction], at.coordinate[direction], rate)
        weight -= b * D
        y, C, Rp = joint_at_knot(work.bodies, joint)
        force, on_parent, on_child = direction_gradient(joint, direction, y, C, Rp)
        pull_at_knot(bars, index, joint, work.bodies, -b * K, force, on_parent, on_child)
    pull_rate(model, work, bars, index, k, weight)
    bar.damping[direction] += b * rate


@inline
def row_weight(joint, bar, k):
    """The weight with which G a + bias of a row stands in its equation."""
    return bar.b[k] * (joint.armature[joint.row_direction[k]] if joint.row_kind[k] == COMPLIANT else 1.0)


@inline
def pull_turning_rates(model, work, bars, acceleration, driven):
    """G a of all rows, weighted: the velocities ``u`` are put aside for the accelerations."""
    world = model.bodies.shape[0] - 1
    for i in range(world):
        bar = bars.bodies[i]
        for c in range(6):
            bar.kept_u[c], bar.kept_du[c] = bar.u[c], bar.du[c]
            bar.u[c] = acceleration[i, c]
    for i in range(model.joints.shape[0]):
        joint, bar = model.joints[i], bars.joints[i]
        for k in range(joint.rows):
            direction = joint.row_direction[k]
            rate = pull_rate(model, work, bars, i, k, row_weight(joint, bar, k))
            if joint.row_kind[k] == COMPLIANT:
                y, C, Rp = joint_at_knot(work.bodies, joint)
                up, uc = work.velocity[joint.parent], work.velocity[joint.child]
                turn = direction_bias(joint, direction, y, C, Rp, load3(up), load3(up[3:]), load3(uc), load3(uc[3:]))
                bar.armature[direction] += bar.b[k] * (rate + turn)
            elif direction >= 0:
                driven[i, direction] -= bar.b[k]
    for i in range(model.couplings.shape[0]):
        if model.couplings[i].law == CONSTRAINT:
            pull_coupling_rate(model, work, bars, i, bars.couplings[i].b)
    for i in range(world):
        bar = bars.bodies[i]
        for c in range(6):
            bar.u[c], bar.du[c] = bar.kept_u[c], bar.kept_du[c]


@kernel
def pull_bias(model, work, bars, kept):
    """The bias of all rows, weighted: the pull of G u at poses a little before and after along u itself, differenced. ``kept``: (n, 19)."""
    world = model.bodies.shape[0] - 1
    speed = 0.0
    for i in range(world):
        for c in range(6):
            speed = max(speed, abs(bars.bodies[i].u[c]))
    if speed == 0.0:
        return
    for i in range(world):
        body, bar = work.bodies[i], bars.bodies[i]
        store3(kept[i], load3(body.x))
        store4(kept[i, 3:], load4(body.q))
        put6(kept[i, 7:], load3(bar.x), load3(bar.phi))
        put6(kept[i, 13:], load3(bar.du), load3(bar.du[3:]))
    for n in range(6):
        offset = (1.0, -1.0, 2.0, -2.0, 3.0, -3.0)[n] * STEP / speed
        share = (0.75, -0.75, -0.15, 0.15, 1.0 / 60.0, -1.0 / 60.0)[n] * speed / STEP
        for i in range(world):
            body, bar = work.bodies[i], bars.bodies[i]
            store3(body.x, add3(load3(kept[i]), scale3(offset, load3(bar.u))))
            store4(body.q, quaternion.multiply(load4(kept[i, 3:]), quaternion.exp(scale3(offset, load3(bar.u[3:])))))
            store3(bar.x, ZERO3)
            store3(bar.phi, ZERO3)
            put6(bar.du, ZERO3, ZERO3)
        evaluate_pose(model, work)
        for i in range(model.joints.shape[0]):
            for k in range(model.joints[i].rows):
                pull_rate(model, work, bars, i, k, share * row_weight(model.joints[i], bars.joints[i], k))
        for i in range(model.couplings.shape[0]):
            if model.couplings[i].law == CONSTRAINT:
                pull_coupling_rate(model, work, bars, i, share * bars.couplings[i].b)
        for i in range(world):
            bar = bars.bodies[i]
            turn = scale3(offset, load3(bar.u[3:]))
            x, phi = load3(bar.x), load3(bar.phi)
            add_to3(kept[i, 7:], 1.0, x)
            add_to3(kept[i, 10:], 1.0, mat_vec(so3.exp_matrix(turn), phi))
            add_to3(kept[i, 13:], 1.0, add3(load3(bar.du), scale3(offset, x)))
            add_to3(kept[i, 16:], 1.0, add3(load3(bar.du[3:]), scale3(offset, mat_t_vec(so3.right_jacobian(turn), phi))))
    for i in range(world):
        body, bar = work.bodies[i], bars.bodies[i]
        store3(body.x, load3(kept[i]))
        store4(body.q, load4(kept[i, 3:]))
        store3(bar.x, load3(kept[i, 7:]))
        store3(bar.phi, load3(kept[i, 10:]))
        put6(bar.du, load3(kept[i, 13:]), load3(kept[i, 16:]))
    evaluate_pose(model, work)


@kernel
def pull_closed(model, work, bars, compliance, velocity, rate, held, closed, impulse, coupling_impulse, rate_bars):
    """From bars ``du`` of velocities that were projected on the joints to those of the recorded ones (n, 6), which leaves them in ``du``."""
    world = model.bodies.shape[0] - 1
    for i in range(model.joints.shape[0]):
        for k in range(model.joints[i].rows):
            work.joints[i].mu[k] = impulse[i, k]
            bars.joints[i].mu[k] = 0.0
    for i in range(model.couplings.shape[0]):
        work.couplings[i].mu = coupling_impulse[i]
        bars.couplings[i].mu = 0.0
    pull_project(model, work, bars, compliance, 0.0, closed, rate_bars)
    for i in range(world):
        fixed, bar = model.bodies[i], bars.bodies[i]
        p, l = load3(bar.before[6:]), load3(bar.before[9:])
        for c in range(6):
            bar.u[c] = work.velocity[i, c] = velocity[i, c]
        bar.mass += dot3(load3(bar.u), p)
        add_outer(bar.inertia, 1.0, l, load3(bar.u[3:]))
        put6(bar.du, scale3(fixed.mass, p), mat_t_vec(load9(fixed.inertia), l))
    for i in range(model.joints.shape[0]):
        joint, bar = model.joints[i], bars.joints[i]
        for k in range(joint.rows):
            direction = joint.row_direction[k]
            if joint.row_kind[k] == COMPLIANT:
                # rotors keep the momentum of their own rates
                bar.armature[direction] += bar.before[direction] * rate[i, direction]
                if joint.armature[direction] != 0.0:
                    pull_direction_rate(model, work, bars, i, direction, bar.before[direction] * joint.armature[direction])
            elif direction >= 0 and held:
                pull_direction_rate(model, work, bars, i, direction, rate_bars[i, direction])
                rate_bars[i, direction] = 0.0
