"""Runs of the kinematic solver that remember what derivatives need, and the adjoint pass over them.

A pose follows from targets and geometry alone: rows g(pose, p) = 0, so that ds = -N^-1 G^T W^-1 g_p dp with N = G^T W^-1 G. Velocities are
(x - x_p) / gamma. Forces balance the bodies' equations and are least in the norm of W: with a cotangent G y of them, y weighs these equations.
"""
from __future__ import annotations

from dalembert.forces.loads import clear_inputs
from dalembert.formulations.implicit.adjoint import add_to4, chain_stage, pull_stage_equations
from dalembert.formulations.implicit.equations import Stage, add4, count_others, residual
from dalembert.formulations.implicit.kinematic import gather, normal_matrix, step
from dalembert.formulations.implicit.state import record
from dalembert.formulations.implicit.step import history_of
from dalembert.formulations.implicit.tape import begin_stage, begin_step, clear_stage, end_stage, recall_stage
from dalembert.formulations.maximal.pull_joints import (
    add_to3,
    pull_number,
    pull_rate,
    pull_rows,
)
from dalembert.kernels import inline, kernel
from dalembert.linalg import solve
from dalembert.linalg.rows import store_vector, zeros
from dalembert.model.pose import joint_at_knot, put6
from dalembert.solvers.outcomes import SOLVED
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import load3, load4, load9, scale3, store3, store4

#: what stands in a tape in place of the order of a BDF formula: this more of it for a kinematic step, and the trapezoidal rule
KINEMATIC, TRAPEZOID = 10, 13
#: most passes of refinement
PASSES = 3


@kernel
def keep_before(model, state, tape, entry):
    """Write the state before a step into the tape."""
    for i in range(model.bodies.shape[0] - 1):
        past, kept = state.bodies[i], tape.bodies[entry, i]
        store3(kept.x, load3(past.x))
        store4(kept.q, load4(past.q))
        store3(kept.v, load3(past.v))
        store4(kept.w, load4(past.w))
    for i in range(model.joints.shape[0]):
        for k in range(6):
            tape.joints[entry, i].coordinate[k] = state.joints[i].coordinate[k]


@kernel
def keep_after(model, work, own, tape, entry, gamma, dt, order):
    """Write a solved step into the tape."""
    tape.clock[entry, 0], tape.clock[entry, 1] = gamma, dt
    tape.kind[entry, 0], tape.kind[entry, 1], tape.kind[entry, 2] = 0, 1, order
    for i in range(model.bodies.shape[0] - 1):
        body, kept = own.bodies[i], tape.bodies[entry, i]
        store3(kept.xp, load3(body.xp))
        store4(kept.qp, load4(body.qp))
        store3(kept.vp, load3(body.vp))
        store4(kept.wp, load4(body.wp))
        store3(kept.vs, load3(body.v))
        store4(kept.ws, load4(body.w))
        for c in range(6):
            kept.push[c] = work.bodies[i].push[c]
    for i in range(model.joints.shape[0]):
        at, kept = work.joints[i], tape.joints[entry, i]
        for k in range(6):
            kept.mu[k] = at.mu[k] if k < model.joints[i].rows else 0.0
            kept.input[k] = at.input[k]
            kept.target[k] = at.target[k]
            kept.rp[k] = own.axles[i].rp[k] if own.axles.shape[0] > 0 else 0.0


@kernel
def tape_steps(model, state, inputs, options, work, scratch, recording, first, count, dt, tape, entry):
    """``kinematic.run_steps``, with every step written into the tape from ``entry`` on."""
    size = 0.0
    clear_inputs(model, work)
    for index in range(count):
        knot = first + index + 1
        order = TRAPEZOID if options.multistep == 2 and history_of(state.clock, dt) == 0.0 else KINEMATIC + options.multistep
        keep_before(model, state, tape, entry + index)
        outcome, iterations, size, gamma = step(model, state, inputs, index, dt, options, work, scratch, state)
        if outcome != SOLVED:
            return outcome, index, size
        keep_after(model, work, scratch.own, tape, entry + index, gamma, dt, order)
        for i in range(model.joints.shape[0]):
            for k in range(model.joints[i].rows):
                recording.row_force[knot, i, k] = work.joints[i].mu[k] / gamma
        recording.substeps[knot] = 1
        recording.iterations[knot] = iterations
        record(model, state, recording, knot)
    return SOLVED, count, size


@inline
def turned_by(model, work, vector, i, k):
    """G_k times the bodies' vectors."""
    joint, at = model.joints[i], work.joints[i]
    total = 0.0
    for c in range(6):
        total += at.Gc[k, c] * vector[joint.child].v[c]
        if joint.parent != model.bodies.shape[0] - 1:
            total += at.Gp[k, c] * vector[joint.parent].v[c]
    return total


@kernel
def weigh_bodies(model, work, normal, bars, forces, gamma):
    """Weights ``b`` of the bodies' equations from cotangents (joints, 6) of row forces: G y of those that hold; compliant rows follow.

    N is factored; y is refined.
    """
    vector, world = normal.vector, model.bodies.shape[0] - 1
    for i in range(world):
        for c in range(7):
            bars.bodies[i].b[c] = 0.0
    for _ in range(PASSES):
        for i in range(world):
            put6(vector[i].v, load3(bars.bodies[i].b), load3(bars.bodies[i].b[3:]))
        size = 0.0
        for i in range(model.joints.shape[0]):
            for k in range(model.joints[i].locks):
                left = forces[i, k] / gamma - turned_by(model, work, vector, i, k)
                normal.pulled[i, k] = normal.soft[i, k] * left
                size = max(size, abs(left))
        if size == 0.0:
            break
        for i in range(world):
            store_vector(vector[i].v, zeros())
        gather(model, work, normal)
        solve(normal.blocks, normal.schedule, vector)
        for i in range(world):
            for c in range(6):
                bars.bodies[i].b[c] += vector[i].v[c]
    for i in range(world):
        put6(vector[i].v, load3(bars.bodies[i].b), load3(bars.bodies[i].b[3:]))
    for i in range(model.joints.shape[0]):
        joint, bar = model.joints[i], bars.joints[i]
        for k in range(joint.rows):
            bar.b[k] = turned_by(model, work, vector, i, k) - forces[i, k] / gamma if k >= joint.locks else 0.0


@kernel
def weigh_rows(model, work, normal, bars, pose):
    """Weights ``b`` of the rows from cotangents (n, 6) of the pose: -W^-1 G N^-1 pose, refined."""
    vector, world = normal.vector, model.bodies.shape[0] - 1
    for i in range(model.joints.shape[0]):
        for k in range(6):
            bars.joints[i].b[k] = 0.0
    for _ in range(PASSES):
        for i in range(model.joints.shape[0]):
            for k in range(model.joints[i].locks):
                normal.pulled[i, k] = bars.joints[i].b[k]
        for i in range(world):
            for c in range(6):
                vector[i].v[c] = pose[i, c]
        gather(model, work, normal)
        solve(normal.blocks, normal.schedule, vector)
        for i in range(model.joints.shape[0]):
            for k in range(model.joints[i].locks):
                bars.joints[i].b[k] -= normal.soft[i, k] * turned_by(model, work, vector, i, k)


@kernel
def pull_steps(model, work, scratch, tableau, tape, first, last, bars, steps, at_knots, knots, forces, pose, pushes, joint_bars):
    """The adjoint from the end of step ``last - 1`` back to the beginning of step ``first``, with the cotangents in ``after`` and ``older``.

    ``forces`` (entries, joints, 6): cotangents of the row forces that the steps recorded; ``pose``: room for (n, 6). The rest as in
    ``implicit.tape.pull_steps``. False where N is singular.
    """
    own, normal = scratch.own, scratch.normal
    for entry in range(last - 1, first - 1, -1):
        gamma, dt, order = tape.clock[entry, 0], tape.clock[entry, 1], tape.kind[entry, 2]
        begin_step(model, bars, steps, True, tableau.b, dt, 1, True)
        recall_stage(model, work, own, tape, entry)
        stage = Stage(model, work, own, gamma, 0.0)
        clear_stage(model, bars)
        begin_stage(model, bars, steps, 0, True, gamma)
        _, fine = residual(stage)
        count_others(model, work, own)
        if not fine or normal_matrix(model, work, normal) >= 0:
            return False
        for i in range(model.bodies.shape[0] - 1):
            iterate = own.bodies[i]
            put6(bars.bodies[i].u, load3(iterate.v), load3(iterate.spin))
            put6(work.velocity[i], load3(iterate.v), load3(iterate.spin))
        pull_axles(stage, bars)
        weigh_bodies(model, work, normal, bars, forces[entry], gamma)
        pull_stage_equations(stage, bars)
        if order == TRAPEZOID:
            pull_even(stage, bars, steps)
        pull_pose(stage, normal, bars, pose)
        end_stage(model, bars, steps, tableau.a, 0, dt, order - KINEMATIC)
        if order == TRAPEZOID:  # x_p = x_0 + gamma v_0
            for i in range(model.bodies.shape[0] - 1):
                bar, total = bars.bodies[i], steps.bodies[i].total
                add_to3(total[7:], gamma, load3(bar.before))
                add_to4(total[10:], gamma, load4(bar.before[3:]))
        knot = knots[entry]
        for i in range(model.bodies.shape[0] - 1):
            bar = bars.bodies[i]
            for c in range(6):
                pushes[entry, i, c] = bar.push[c]
            for c in range(14):
                bar.after[c] = steps.bodies[i].total[c]
                if knot >= 0:
                    bar.after[c] += at_knots.body[knot, i, c]
        for i in range(model.joints.shape[0]):
            bar = bars.joints[i]
            for k in range(6):
                joint_bars[entry, 0, i, k] = bar.input[k]
                joint_bars[entry, 1, i, k] = bar.target[k]
                bar.after[k] = steps.joints[i].total[k]
                if knot >= 0:
                    bar.after[k] += at_knots.spin[knot, i, k]
    return True


@inline
def pull_axles(stage, bars):
    """Rates of reflected inertias at the end, weighted with the joints' ``after``."""
    model = stage.model
    for i in range(stage.own.axles.shape[0]):
        joint, bar = model.joints[i], bars.joints[i]
        for k in range(joint.locks, joint.rows):
            direction = joint.row_direction[k]
            if joint.armature[direction] > 0.0 and bar.after[direction] != 0.0:
                pull_rate(model, stage.work, bars, i, k, bar.after[direction])
    chain_stage(stage, bars)


@inline
def pull_even(stage, bars, steps):
    """The trapezoidal rule's accelerations: v_p = (v_0 + v) / 2, and the same of quaternions' rates and of rotors."""
    for i in range(stage.model.bodies.shape[0] - 1):
        bar, total = bars.bodies[i], steps.bodies[i].total
        for c in range(3):
            half = 0.5 * bar.before[7 + c]
            bar.v[c] += half
            total[7 + c] += half
            bar.before[7 + c] = 0.0
        for c in range(4):
            half = 0.5 * bar.before[10 + c]
            bar.w[c] += half
            total[10 + c] += half
            bar.before[10 + c] = 0.0
    for i in range(stage.model.joints.shape[0]):
        bar, total = bars.joints[i], steps.joints[i].total
        for k in range(6):
            half = 0.5 * bar.before[k]
            total[k] += half
            bar.after[k] = half
            bar.before[k] = 0.0
    pull_axles(stage, bars)


@inline
def pull_pose(stage, normal, bars, pose):
    """From bars of v, w (with x = x_p + gamma v) to those of targets and geometry through the pose, and of the aggregate."""
    model, work, gamma = stage.model, stage.work, stage.gamma
    for i in range(model.bodies.shape[0] - 1):
        bar, iterate = bars.bodies[i], stage.own.bodies[i]
        by_x, by_q = scale3(1.0 / gamma, load3(bar.v)), load4(bar.w)
        add_to3(bar.before, -1.0, by_x)
        add_to4(bar.before[3:], -1.0 / gamma, by_q)
        q = add4(load4(iterate.qp), load4(iterate.w), gamma)
        turned = quaternion.multiply(quaternion.conjugate(q), by_q)
        put6(pose[i], by_x, scale3(0.5 / gamma, (turned[1], turned[2], turned[3])))
    weigh_rows(model, work, normal, bars, pose)
    for i in range(model.joints.shape[0]):
        joint, at, bar = model.joints[i], work.joints[i], bars.joints[i]
        y, C, Rp = joint_at_knot(work.bodies, joint)
        force, on_parent, on_child = pull_rows(bar, joint, at, 1.0, y, C, Rp)
        pull_number(bar, joint, 1.0, force, on_parent, on_child, load9(work.bodies[joint.parent].R), load9(work.bodies[joint.child].R))
