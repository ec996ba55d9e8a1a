"""Kernels of the BDF and DIRK methods, which are made of stages (Quaternion section 5)."""
from __future__ import annotations

from dalembert.formulations.implicit.stage import NOT_CONVERGED, SOLVED, inverse, solve_stage
from dalembert.formulations.maximal.knot import apply_inputs, put6, set_targets
from dalembert.kernels import inline, kernel
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import load3, load4, load9, mat_vec, store3, store4

COMPLIANCES = (1.0, 1e-2, 1e-3, 1e-4, 1e2)


@kernel
def aggregate(records, stages, alpha0, alpha1):
    """Aggregate of the last two states for a multistep method (y_p of eq. 25)."""
    for i in range(records.axles.shape[0]):
        axle = records.axles[i]
        for c in range(6):
            axle.rp[c] = alpha0 * axle.r0[c] + alpha1 * axle.r1[c]
    for i in range(stages.shape[0]):
        s = stages[i]
        for c in range(3):
            s.xp[c] = alpha0 * s.x0[c] + alpha1 * s.x1[c]
            s.vp[c] = alpha0 * s.v0[c] + alpha1 * s.v1[c]
        for c in range(4):
            s.qp[c] = alpha0 * s.q0[c] + alpha1 * s.q1[c]
            s.wp[c] = alpha0 * s.w0[c] + alpha1 * s.w1[c]


@kernel
def aggregate_stage(records, stages, a, stage, dt):
    """Aggregate of the last state and of the earlier stages' derivatives (eq. 27)."""
    for i in range(records.axles.shape[0]):
        axle = records.axles[i]
        for c in range(6):
            axle.rp[c] = axle.r0[c]
            for j in range(stage):
                axle.rp[c] += dt * a[stage, j] * axle.k[j, c]
    for i in range(stages.shape[0]):
        s = stages[i]
        store3(s.xp, load3(s.x0))
        store4(s.qp, load4(s.q0))
        store3(s.vp, load3(s.v0))
        store4(s.wp, load4(s.w0))
        for j in range(stage):
            for c in range(3):
                s.xp[c] += dt * a[stage, j] * s.kx[j, c]
                s.vp[c] += dt * a[stage, j] * s.kv[j, c]
            for c in range(4):
                s.qp[c] += dt * a[stage, j] * s.kq[j, c]
                s.wp[c] += dt * a[stage, j] * s.kw[j, c]


@kernel
def keep_stage(records, stages, stage, gamma):
    """Derivatives of a solved stage (eq. 28)."""
    for i in range(records.axles.shape[0]):
        axle = records.axles[i]
        for c in range(6):
            axle.k[stage, c] = (axle.r[c] - axle.rp[c]) / gamma
    for i in range(stages.shape[0]):
        s = stages[i]
        for c in range(3):
            s.kx[stage, c] = s.v[c]
            s.kv[stage, c] = (s.v[c] - s.vp[c]) / gamma
        for c in range(4):
            s.kq[stage, c] = s.w[c]
            s.kw[stage, c] = (s.w[c] - s.wp[c]) / gamma


@kernel
def accept(records, stages, b, dt, gamma, combine):
    """Make the solved step the last state: the last stage's, or the combination of all stages by the weights ``b``."""
    bodies = records.bodies
    for i in range(records.axles.shape[0]):
        axle = records.axles[i]
        for c in range(6):
            axle.r1[c] = axle.r0[c]
            if combine:
                for j in range(b.shape[0]):
                    axle.r0[c] += dt * b[j] * axle.k[j, c]
            else:
                axle.r0[c] = axle.r[c]
    for i in range(stages.shape[0]):
        s, body = stages[i], bodies[i]
        store3(s.x1, load3(s.x0))
        store4(s.q1, load4(s.q0))
        store3(s.v1, load3(s.v0))
        store4(s.w1, load4(s.w0))
        if combine:
            for j in range(b.shape[0]):
                for c in range(3):
                    s.x0[c] += dt * b[j] * s.kx[j, c]
                    s.v0[c] += dt * b[j] * s.kv[j, c]
                for c in range(4):
                    s.q0[c] += dt * b[j] * s.kq[j, c]
                    s.w0[c] += dt * b[j] * s.kw[j, c]
        else:
            for c in range(3):
                s.x0[c] = s.xp[c] + gamma * s.v[c]
                s.v0[c] = s.v[c]
            for c in range(4):
                s.q0[c] = s.qp[c] + gamma * s.w[c]
                s.w0[c] = s.w[c]
        store3(body.x, load3(s.x0))
        store4(body.q, quaternion.normalize(load4(s.q0)))
        omega = knot_spin(s)
        spin = mat_vec(load9(body.inertia), omega)
        for c in range(3):
            body.p[c] = body.mass * s.v0[c]
            body.l[c] = spin[c]


@inline
def knot_spin(s):
    """Angular velocity in the body frame of the last state: 2 vec(q^-1 q')."""
    a = quaternion.multiply(inverse(load4(s.q0)), load4(s.w0))
    return (2.0 * a[1], 2.0 * a[2], 2.0 * a[3])


@kernel
def begin(stages, impulse, coupling_impulse):
    """First guess of a stage: the velocities of the last state, no impulses."""
    for i in range(stages.shape[0]):
        store3(stages[i].v, load3(stages[i].v0))
        store4(stages[i].w, load4(stages[i].w0))
    impulse[:] = 0.0
    coupling_impulse[:] = 0.0


@kernel
def try_stage(records, stages, edges, blocks, schedule, vector, impulse, coupling_impulse, row_residual, coupling_residual, scratch,
              gamma, compliance, tolerance, max_iterations):
    """A stage from its first guess, with one compliance after the other until it is solved."""
    outcome, iterations, size = NOT_CONVERGED, 0, 0.0
    for softness in COMPLIANCES:
        begin(stages, impulse, coupling_impulse)
        outcome, spent, size = solve_stage(
            records, stages, edges, blocks, schedule, vector, impulse, coupling_impulse, row_residual, coupling_residual, scratch,
            gamma, softness * compliance, tolerance, max_iterations,
        )
        iterations += spent
        if outcome == SOLVED or compliance == 0.0:
            break
    return outcome, iterations, size


@kernel
def dirk_step(records, stages, edges, blocks, schedule, vector, impulse, coupling_impulse, row_residual, coupling_residual, scratch,
              tableau, targets, dt, compliance, tolerance, max_iterations):
    """One step of a diagonally implicit Runge-Kutta method (eq. 26 to 28). The state changes only if it is solved.

    ``targets`` (stages, joints, 6): where the driven joints are at the stages.
    """
    a, b = tableau.a, tableau.b
    total = 0
    gamma = dt * a[0, 0]
    size = 0.0
    for stage in range(b.shape[0]):
        gamma = dt * a[stage, stage]
        set_targets(records, targets[stage])
        aggregate_stage(records, stages, a, stage, dt)
        outcome, iterations, size = try_stage(
            records, stages, edges, blocks, schedule, vector, impulse, coupling_impulse, row_residual, coupling_residual, scratch,
            gamma, compliance, tolerance, max_iterations,
        )
        total += iterations
        if outcome != SOLVED:
            return outcome, total, size, gamma
        keep_stage(records, stages, stage, gamma)
    accept(records, stages, b, dt, gamma, not tableau.stiffly_accurate)
    return SOLVED, total, size, gamma


@kernel
def write_forces(impulse, coupling_impulse, gamma, forces, coupling_forces):
    """Forces of the rows at the end of a stage."""
    for i in range(impulse.shape[0]):
        for k in range(6):
            forces[i, k] = impulse[i, k] / gamma
    for i in range(coupling_impulse.shape[0]):
        coupling_forces[i] = coupling_impulse[i] / gamma


@kernel
def run_steps(records, stages, edges, blocks, schedule, vector, impulse, coupling_impulse, row_residual, coupling_residual, scratch,
              clock, base_load, recording, inputs, tableau, multistep, first, count, dt, compliance, tolerance, max_iterations):
    """``count`` steps from knot ``first`` of the recording, which already holds that knot.

    ``multistep``: order of the BDF formula, 0 for a DIRK method throughout. ``clock``: [length of the step before, steps of
    that length behind]. Returns (outcome, steps done, residual).
    """
    size = 0.0
    for index in range(count):
        knot = first + index
        apply_inputs(records, base_load, inputs, index)
        history = clock[1] if clock[0] == dt else 0.0
        if multistep == 1 or (multistep == 2 and history >= 1.0):
            gamma = dt if multistep == 1 else 2.0 / 3.0 * dt
            if multistep == 1:
                aggregate(records, stages, 1.0, 0.0)
            else:
                aggregate(records, stages, 4.0 / 3.0, -1.0 / 3.0)
            set_targets(records, inputs.target[index + 1])
            outcome, iterations, size = try_stage(
                records, stages, edges, blocks, schedule, vector, impulse, coupling_impulse, row_residual, coupling_residual, scratch,
                gamma, compliance, tolerance, max_iterations,
            )
            if outcome == SOLVED:
                accept(records, stages, tableau.b, dt, gamma, False)
        else:
            outcome, iterations, size, gamma = dirk_step(
                records, stages, edges, blocks, schedule, vector, impulse, coupling_impulse, row_residual, coupling_residual,
                scratch, tableau, inputs.stage[min(index, inputs.stage.shape[0] - 1)], dt, compliance, tolerance, max_iterations,
            )
        if outcome != SOLVED:
            restore(records, stages)
            return outcome, index, size
        clock[0], clock[1] = dt, history + 1.0
        write_forces(impulse, coupling_impulse, gamma, recording.row_force[knot + 1], recording.coupling_force[knot + 1])
        recording.substeps[knot + 1] = 1
        recording.iterations[knot + 1] = iterations
        record_knot(records, recording, knot + 1)
    return SOLVED, count, size


@kernel
def record_knot(records, recording, knot):
    """Write poses and momenta of the knot into the recording."""
    bodies = records.bodies
    for i in range(bodies.shape[0] - 1):
        store3(recording.position[knot, i], load3(bodies[i].x))
        store4(recording.orientation[knot, i], load4(bodies[i].q))
        put6(recording.momentum[knot, i], load3(bodies[i].p), load3(bodies[i].l))


@kernel
def restore(records, stages):
    """Put the bodies back to the last accepted state."""
    bodies = records.bodies
    for i in range(stages.shape[0]):
        store3(bodies[i].x, load3(stages[i].x0))
        store4(bodies[i].q, quaternion.normalize(load4(stages[i].q0)))
