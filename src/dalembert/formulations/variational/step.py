"""Kernels of the variational integrator: Newton for one step, and runs of steps."""
from __future__ import annotations

from dalembert.formulations.maximal.knot import apply_inputs, evaluate_knot, put6, set_targets
from dalembert.formulations.variational.equations import (
    NOT_CONVERGED,
    SINGULAR,
    SOLVED,
    TOO_FAST,
    accept_spins,
    clear_impulses,
    first_guess,
    jacobian,
    load_vector,
    move,
    residual,
    rounding_floor,
    spins_too_fast,
)
from dalembert.kernels import kernel
from dalembert.linalg import clear, factor, solve
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import (
    cross3,
    load3,
    load4,
    load9,
    mat_vec,
    scale3,
    store3,
    store4,
    sub3,
)

#: compliances to try, relative to the engine's: poses near a singular one ask for less or more. The answer is the same.
COMPLIANCES = (1.0, 1e-2, 1e-3, 1e-4, 1e2)
#: an iteration that shrinks the residual by at least this factor keeps the factor for the next one
REUSE = 0.02


@kernel
def newton(records, blocks, schedule, vector, dt, h, compliance, tolerance, max_iterations):
    """Solve the step's equations (Variational eq. 20, 31 to 33). Returns (outcome, iterations, residual).

    A factor is used again as long as every iteration shrinks the residual fast. There is always one iteration: with
    small steps the guess alone is within the tolerance, and accepting it would extrapolate for ever.
    """
    size, fine = residual(records, dt, h)
    if not fine:
        first_guess(records, 0.0)
        size, fine = residual(records, dt, h)
        if not fine:
            return TOO_FAST if spins_too_fast(records, dt) else NOT_CONVERGED, 0, size
    iterations = 0
    fresh = False
    while size > tolerance or iterations == 0:
        if iterations == max_iterations:
            return NOT_CONVERGED, iterations, size
        iterations += 1
        if not fresh:
            clear(blocks, schedule)
            jacobian(records, blocks, dt, h, compliance)
            if factor(blocks, schedule) >= 0:
                return SINGULAR, iterations, size
        # What the first iteration puts into redundant rows comes from linearisation alone: the second takes it back.
        load_vector(records, vector, compliance if iterations == 2 else 0.0)
        solve(blocks, schedule, vector)
        step = 1.0
        done = 0.0
        while True:
            move(records, vector, step - done)
            done = step
            new, fine = residual(records, dt, h)
            if fine and (new < size or new <= tolerance):
                break
            step *= 0.5
            if step < 1e-4:
                break
        if step < 1e-4:
            move(records, vector, -done)
            new, _ = residual(records, dt, h)
            if size < rounding_floor(records, dt):
                return SOLVED, iterations, size
            if not fresh:
                return NOT_CONVERGED, iterations, size
            fresh = False
            continue
        fresh = new < REUSE * size
        size = new
    return SOLVED, iterations, size


@kernel
def accept(records, dt):
    """Make the iterate the state of the next knot. Returns the order of extrapolation that would have come nearer to it."""
    bodies = records.bodies
    half = 0.5 * dt
    linear = 0.0
    quadratic = 0.0
    for i in range(bodies.shape[0] - 1):
        body = bodies[i]
        v = load3(body.v)
        w = load3(body.w)
        Jw = mat_vec(load9(body.inertia), w)
        store3(body.x, load3(body.xn))
        store4(body.q, quaternion.normalize(load4(body.qn)))
        store3(body.p, scale3(body.mass, v))
        store3(body.l, scale3(half, sub3(scale3(body.s, Jw), cross3(w, Jw))))
        for k in range(3):
            dv = v[k] - 2.0 * body.v1[k] + body.v2[k]
            dw = w[k] - 2.0 * body.w1[k] + body.w2[k]
            linear = max(linear, abs(dv) + body.length * abs(dw))
            dv -= body.v1[k] - 2.0 * body.v2[k] + body.v3[k]
            dw -= body.w1[k] - 2.0 * body.w2[k] + body.w3[k]
            quadratic = max(quadratic, abs(dv) + body.length * abs(dw))
            body.v3[k] = body.v2[k]
            body.w3[k] = body.w2[k]
            body.v2[k] = body.v1[k]
            body.w2[k] = body.w1[k]
            body.v1[k] = v[k]
            body.w1[k] = w[k]
    return 2.0 if quadratic < linear else 1.0


@kernel
def step(records, blocks, schedule, vector, targets, clock, dt, compliance, tolerance, max_iterations):
    """One interval of length ``dt`` to the ``targets`` at its end; the state and the clock change only if it is solved.

    ``clock``: [length of the interval before (zero at a start), intervals of that length behind, order of the guess].
    """
    evaluate_knot(records)
    set_targets(records, targets)
    before = clock[0]
    history = clock[1] if before == dt else 0.0
    order = clock[2] if history >= 3.0 else (1.0 if history == 2.0 else 0.0)
    outcome, iterations, size = NOT_CONVERGED, 0, 0.0
    for softness in COMPLIANCES:
        first_guess(records, order)
        if iterations > 0:
            clear_impulses(records)
        outcome, spent, size = newton(
            records, blocks, schedule, vector, dt, 0.5 * (before + dt), softness * compliance, tolerance, max_iterations
        )
        iterations += spent
        if outcome == SOLVED or compliance == 0.0:
            break
    if outcome == SOLVED:
        if spins_too_fast(records, dt):
            return TOO_FAST, iterations, size
        accept_spins(records, dt)
        better = accept(records, dt)
        clock[2] = better if history >= 3.0 else 1.0
        clock[0] = dt
        clock[1] = history + 1.0
    return outcome, iterations, size


@kernel
def record(records, recording, knot, step_before):
    """Write the state of the knot into the recording."""
    bodies, joints = records.bodies, records.joints
    recording.step_before[knot] = step_before
    for i in range(bodies.shape[0] - 1):
        body = bodies[i]
        store3(recording.position[knot, i], load3(body.x))
        store4(recording.orientation[knot, i], load4(body.q))
        put6(recording.momentum[knot, i], load3(body.p), load3(body.l))
    for i in range(joints.shape[0]):
        for k in range(6):
            recording.spin[knot, i, k] = joints[i].spin[k]


@kernel
def write_forces(records, before, dt, forces, coupling_forces):
    """Mean forces of the rows over the kick at the knot between intervals of length ``before`` and ``dt``."""
    joints, couplings = records.joints, records.couplings
    kick = 2.0 / (before + dt)
    for i in range(joints.shape[0]):
        for k in range(joints[i].rows):
            forces[i, k] = joints[i].mu[k] * kick
    for i in range(couplings.shape[0]):
        coupling_forces[i] = couplings[i].mu * kick


@kernel
def run_steps(records, blocks, schedule, vector, clock, base_load, recording, inputs, first, count, dt, compliance, tolerance, max_iterations):
    """``count`` steps from knot ``first`` of the recording, which already holds that knot. ``inputs`` start at that knot.

    Returns (outcome, steps done, residual of the last try).
    """
    size = 0.0
    set_targets(records, inputs.target[0])
    for index in range(count):
        knot = first + index
        before = clock[0]
        apply_inputs(records, base_load, inputs, index)
        outcome, iterations, size = step(
            records, blocks, schedule, vector, inputs.target[index + 1], clock, dt, compliance, tolerance, max_iterations
        )
        if outcome != SOLVED:
            return outcome, index, size
        write_forces(records, before, dt, recording.row_force[knot], recording.coupling_force[knot])
        recording.substeps[knot + 1] = 1
        recording.iterations[knot + 1] = iterations
        record(records, recording, knot + 1, dt)
    return SOLVED, count, size
