"""Kernels for fully constrained mechanisms (Quaternion section 6.3): the drives determine the pose, forces follow.

Per step: Gauss-Newton on all rows (eq. 33), velocities by the integration formula (F1, F2), multipliers in one solve
(eq. 32). Both systems are the matrix G^T W^-1 G on the graph of the bodies alone.
"""
from __future__ import annotations

from math import isfinite

import numpy as np

from dalembert.formulations.implicit_step import accept, aggregate, dot4, record_knot, residual, restore
from dalembert.formulations.maximal.knot import apply_inputs, evaluate_knot, joint_at_knot, set_targets
from dalembert.kernel import inline, kernel
from dalembert.linalg import clear, factor, solve
from dalembert.mechanism.rows import consistent, row_value
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import add3, load3, load4, scale3, store3, store4

SOLVED, INCONSISTENT, SINGULAR = 0, 1, 2
FLIP = 0.3
#: an iteration that shrinks the open rows by at least this factor keeps the factor for the next one
REUSE = 0.1
NO_WEIGHTS = np.zeros(1)


@kernel
def open_rows(records, rows):
    """Open amounts (joints, 6) of all constraint rows at the pose; returns the largest, or infinity when a joint flipped."""
    bodies, joints = records.bodies, records.joints
    size = 0.0
    for i in range(joints.shape[0]):
        joint = joints[i]
        y, C, _ = joint_at_knot(bodies, joint)
        if not consistent(joint, C, FLIP):
            return 1e300
        for k in range(joint.locks):
            rows[i, k] = row_value(joint, k, y, C)
            size = max(size, abs(rows[i, k]))
            if not isfinite(rows[i, k]):
                return 1e300
    return size


@kernel
def normal_matrix(records, blocks, schedule, diagonal, between, weights):
    """Write and factor G^T W^-1 G. Returns -1, or the body that the rows do not hold."""
    bodies, joints = records.bodies, records.joints
    world = bodies.shape[0] - 1
    clear(blocks, schedule)
    for i in range(world):
        blocks[diagonal[i]].M[:6, :6] = 0.0
    for i in range(joints.shape[0]):
        for c in range(2):
            if between[i, c] >= 0:
                blocks[between[i, c]].M[:6, :6] = 0.0
    for i in range(joints.shape[0]):
        joint = joints[i]
        for k in range(joint.locks):
            soft = 1.0 / weights[i, k]
            for r in range(6):
                a, b = soft * joint.Gp[k, r], soft * joint.Gc[k, r]
                for c in range(6):
                    blocks[diagonal[joint.child]].M[r, c] += b * joint.Gc[k, c]
                    if joint.parent != world:
                        blocks[diagonal[joint.parent]].M[r, c] += a * joint.Gp[k, c]
                        blocks[between[i, 0]].M[r, c] += a * joint.Gc[k, c]
                        blocks[between[i, 1]].M[r, c] += b * joint.Gp[k, c]
    return factor(blocks, schedule)


@kernel
def gather(records, vector, rows):
    """vector = G^T rows."""
    bodies, joints = records.bodies, records.joints
    world = bodies.shape[0] - 1
    for i in range(world):
        vector[i].v[:] = 0.0
    for i in range(joints.shape[0]):
        joint = joints[i]
        for k in range(joint.locks):
            for c in range(6):
                vector[joint.child].v[c] += joint.Gc[k, c] * rows[i, k]
                if joint.parent != world:
                    vector[joint.parent].v[c] += joint.Gp[k, c] * rows[i, k]


@kernel
def find_pose(records, blocks, schedule, vector, diagonal, between, ones, rows, tolerance, max_iterations):
    """Gauss-Newton on the pose in the records. Returns (outcome, iterations, largest open row).

    A factor is used again as long as the rows close fast. There is always one, which the multipliers may use too.
    """
    bodies = records.bodies
    evaluate_knot(records)
    size = open_rows(records, rows)
    fresh = False
    for iteration in range(max_iterations):
        if size < tolerance and iteration > 0:
            return SOLVED, iteration, size
        if not fresh and normal_matrix(records, blocks, schedule, diagonal, between, ones) >= 0:
            return SINGULAR, iteration, size
        gather(records, vector, rows)
        solve(blocks, schedule, vector)
        step = 1.0
        done = 0.0
        while True:
            turn(bodies, vector, step - done)
            done = step
            evaluate_knot(records)
            new = open_rows(records, rows)
            if new < size or new < tolerance:
                break
            step *= 0.5
            if step < 1e-3:
                break
        if step < 1e-3:
            turn(bodies, vector, -done)
            evaluate_knot(records)
            size = open_rows(records, rows)
            if size < 1e-11 or not fresh:
                return SOLVED if size < 1e-11 else INCONSISTENT, iteration, size
            fresh = False
            continue
        fresh = new < REUSE * size
        size = new
    return SOLVED if size < 1e-11 else INCONSISTENT, max_iterations, size


@kernel
def turn(bodies, vector, step):
    """Move all bodies against a Gauss-Newton direction."""
    for i in range(bodies.shape[0] - 1):
        d = vector[i].v
        store3(bodies[i].x, add3(load3(bodies[i].x), scale3(-step, load3(d))))
        rotation = quaternion.exp(scale3(-step, (d[3], d[4], d[5])))
        store4(bodies[i].q, quaternion.normalize(quaternion.multiply(load4(bodies[i].q), rotation)))


@kernel
def find_impulses(records, stages, blocks, schedule, vector, diagonal, between, weights, reuse, impulse, coupling_impulse, rows, coupling_rows, gamma):
    """Impulses of all rows, least in the weighted norm, that balance the bodies at the stage's pose and velocities.

    ``reuse``: the factor at hand belongs to these weights, at a pose nearby; refinement makes up for the difference.
    """
    bodies, joints = records.bodies, records.joints
    world = bodies.shape[0] - 1
    impulse[:] = 0.0
    residual(records, stages, impulse, coupling_impulse, rows, coupling_rows, gamma)
    for i in range(joints.shape[0]):
        for k in range(joints[i].locks, joints[i].rows):
            impulse[i, k] = -rows[i, k]
            subtract(stages, joints[i], k, impulse[i, k], world)
    if not reuse and normal_matrix(records, blocks, schedule, diagonal, between, weights) >= 0:
        return False
    before = 1e300
    for _ in range(8):
        size = 0.0
        for i in range(world):
            for c in range(6):
                vector[i].v[c] = stages[i].r[c]
                size = max(size, abs(stages[i].r[c]) / bodies[i].mass)
        if size < 1e-13 or size > 0.5 * before:
            break
        before = size
        solve(blocks, schedule, vector)
        for i in range(joints.shape[0]):
            joint = joints[i]
            for k in range(joint.locks):
                total = 0.0
                for c in range(6):
                    total += joint.Gc[k, c] * vector[joint.child].v[c]
                    if joint.parent != world:
                        total += joint.Gp[k, c] * vector[joint.parent].v[c]
                total /= weights[i, k]
                impulse[i, k] += total
                subtract(stages, joint, k, total, world)
    return True


@inline
def subtract(stages, joint, k, size, world):
    """Take a row's impulse out of the residuals of its bodies."""
    for c in range(6):
        stages[joint.child].r[c] -= size * joint.Gc[k, c]
        if joint.parent != world:
            stages[joint.parent].r[c] -= size * joint.Gp[k, c]


@kernel
def guess_pose(records, stages, dt, history):
    """First guess of a pose: the last one carried on with its velocity, and with the velocity's change where it is known."""
    bodies = records.bodies
    bend = 0.5 if history >= 2.0 else 0.0
    for i in range(bodies.shape[0] - 1):
        s = stages[i]
        for c in range(3):
            bodies[i].x[c] = s.x0[c] + dt * (s.v0[c] + bend * (s.v0[c] - s.v1[c]))
        q = load4(s.q0)
        w = (s.w0[0], s.w0[1], s.w0[2], s.w0[3])
        turned = (
            q[0] + dt * (w[0] + bend * (w[0] - s.w1[0])), q[1] + dt * (w[1] + bend * (w[1] - s.w1[1])),
            q[2] + dt * (w[2] + bend * (w[2] - s.w1[2])), q[3] + dt * (w[3] + bend * (w[3] - s.w1[3])),
        )
        store4(bodies[i].q, quaternion.normalize(turned))


@kernel
def run_steps(records, stages, blocks, schedule, vector, diagonal, between, ones, weights, impulse, coupling_impulse, rows, coupling_rows,
              clock, base_load, recording, inputs, multistep, reuse, first, count, dt, tolerance, max_iterations):
    """``count`` steps from knot ``first`` of the recording. Returns (outcome, steps done, largest open row)."""
    bodies = records.bodies
    size = 0.0
    for index in range(count):
        knot = first + index
        apply_inputs(records, base_load, inputs, index)
        set_targets(records, inputs.target[index + 1])
        history = clock[1] if clock[0] == dt else 0.0
        second = multistep == 2 and history >= 1.0
        gamma = 2.0 / 3.0 * dt if second else dt
        aggregate(records, stages, 4.0 / 3.0 if second else 1.0, -1.0 / 3.0 if second else 0.0)
        guess_pose(records, stages, dt, history)
        outcome, iterations, size = find_pose(
            records, blocks, schedule, vector, diagonal, between, ones, rows, max(1e-13, min(1e-12, tolerance * dt)), max_iterations
        )
        if outcome != SOLVED:
            restore(records, stages)
            return outcome, index, size
        for i in range(bodies.shape[0] - 1):
            stage, q = stages[i], load4(bodies[i].q)
            sign = 1.0 if dot4(q, load4(stage.q0)) > 0.0 else -1.0
            for c in range(3):
                stage.v[c] = (bodies[i].x[c] - stage.xp[c]) / gamma
            for c in range(4):
                stage.w[c] = (sign * q[c] - stage.qp[c]) / gamma
        if not find_impulses(
            records, stages, blocks, schedule, vector, diagonal, between, weights, reuse, impulse, coupling_impulse, rows,
            coupling_rows, gamma,
        ):
            restore(records, stages)
            return SINGULAR, index, size
        accept(records, stages, NO_WEIGHTS, dt, gamma, False)
        clock[0], clock[1] = dt, history + 1.0
        recording.row_force[knot + 1] = impulse / gamma
        recording.substeps[knot + 1] = 1
        recording.iterations[knot + 1] = iterations
        record_knot(records, recording, knot + 1)
    return SOLVED, count, size
