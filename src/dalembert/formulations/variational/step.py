"""Kernels of the variational integrator: one step, and runs of steps."""
from __future__ import annotations

from dalembert.forces.loads import apply_inputs, clear_inputs
from dalembert.formulations.maximal.knot import clear_impulses, evaluate_knot
from dalembert.formulations.variational.equations import (
    Interval,
    extrapolate,
    jacobian,
    load_vector,
    move,
    residual,
    restart,
    rounding_floor,
    spin_after,
    spins_too_fast,
    turn,
)
from dalembert.formulations.variational.state import recall
from dalembert.formulations.variational.strain import STRAINED, strains
from dalembert.kernels import inline, kernel
from dalembert.model.pose import put6, set_targets
from dalembert.model.records import CONSTRAINT
from dalembert.solvers.newton import build_newton, on_graph
from dalembert.solvers.outcomes import NOT_CONVERGED, SOLVED, TOO_FAST
from dalembert.solvers.redundant import COMPLIANCES, NUDGES, nudge
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

#: Newton on the equations of an interval (Variational eq. 20, 31 to 33)
newton = build_newton(
    "newton", __file__, linear=on_graph("newton", __file__, jacobian=jacobian, load_vector=load_vector, turn=turn),
    residual=residual, restart=restart, move=move, floor=rounding_floor,
)


@kernel
def accept(model, work, state, after, dt):
    """Write the state of the next knot into ``after``. Returns the order of extrapolation that would have come nearer to it."""
    half = 0.5 * dt
    linear = 0.0
    quadratic = 0.0
    for i in range(model.bodies.shape[0] - 1):
        body, fixed, past, new = work.bodies[i], model.bodies[i], state.bodies[i], after.bodies[i]
        v = load3(body.v)
        w = load3(body.w)
        Jw = mat_vec(load9(fixed.inertia), w)
        store3(new.x, load3(body.xn))
        store4(new.q, quaternion.normalize(load4(body.qn)))
        store3(new.p, scale3(fixed.mass, v))
        new.along[:] = 0.0
        store3(new.l, scale3(half, sub3(scale3(body.s, Jw), cross3(w, Jw))))
        for k in range(3):
            v1, v2, w1, w2 = past.v1[k], past.v2[k], past.w1[k], past.w2[k]
            dv = v[k] - 2.0 * v1 + v2
            dw = w[k] - 2.0 * w1 + w2
            linear = max(linear, abs(dv) + fixed.length * abs(dw))
            dv -= v1 - 2.0 * v2 + past.v3[k]
            dw -= w1 - 2.0 * w2 + past.w3[k]
            quadratic = max(quadratic, abs(dv) + fixed.length * abs(dw))
            new.v3[k] = v2
            new.w3[k] = w2
            new.v2[k] = v1
            new.w2[k] = w1
            new.v1[k] = v[k]
            new.w1[k] = w[k]
    for i in range(model.couplings.shape[0]):
        coupling, tie = model.couplings[i], work.couplings[i]
        if coupling.law != CONSTRAINT:
            for e in range(coupling.first, coupling.first + coupling.ends):
                new, H = after.bodies[model.ends[e]], work.ends[e].H
                for c in range(3):
                    new.p[c] += tie.mu * H[c]
                    new.l[c] += tie.mu * H[3 + c]
                for c in range(6):
                    new.along[c] += tie.mu * H[c]
    return 2.0 if quadratic < linear else 1.0


@kernel
def accept_joints(model, work, after, dt):
    """Write coordinates at the knot (to unwrap the next against), targets, and momenta of reflected inertias into ``after``."""
    for i in range(model.joints.shape[0]):
        joint, at, new = model.joints[i], work.joints[i], after.joints[i]
        for k in range(joint.free):
            new.coordinate[k] = at.coordinate[k]
        for k in range(joint.locks, joint.rows):
            direction = joint.row_direction[k]
            if joint.armature[direction] > 0.0:
                new.spin[direction] = spin_after(work.bodies, joint, at, direction, dt)
    for i in model.driven:
        for k in range(model.joints[i].free):
            after.joints[i].target[k] = work.joints[i].target[k]


@inline
def history_of(clock, dt):
    """How many intervals of length ``dt`` lie behind, and the order to extrapolate them with."""
    history = clock[1] if clock[0] == dt else 0.0
    return history, clock[2] if history >= 3.0 else (1.0 if history == 2.0 else 0.0)


@kernel
def step(model, state, targets, dt, options, work, after):
    """One interval of length ``dt`` to the ``targets`` at its end, with the inputs in the work. Returns (outcome, iterations, residual).

    ``after``, which may be ``state`` itself, is written only if the step is solved.
    """
    recall(model, work, state)
    evaluate_knot(model, work)
    set_targets(model, work, targets)
    before = state.clock[0]
    history, order = history_of(state.clock, dt)
    outcome, iterations, size = NOT_CONVERGED, 0, 0.0
    for attempt in range(len(COMPLIANCES) + NUDGES):
        softness = COMPLIANCES[attempt] if attempt < len(COMPLIANCES) else COMPLIANCES[0]
        if attempt < len(COMPLIANCES):
            extrapolate(model, work, state, order)
        else:
            nudge_all(work, attempt)
        if iterations > 0:
            clear_impulses(model, work)
        interval = Interval(model, work, dt, 0.5 * (before + dt), softness * options.compliance)
        outcome, spent, size = newton(interval, options.tolerance, options.max_iterations)
        iterations += spent
        if outcome == SOLVED or options.compliance == 0.0:
            break
    if spins_too_fast(work, dt):
        return TOO_FAST, iterations, size
    if outcome == SOLVED and strains(model, work, before, dt, options.strain, options.tolerance):
        return STRAINED, iterations, size
    if outcome == SOLVED:
        finish(model, state, history, dt, work, after)
    return outcome, iterations, size


@kernel
def nudge_all(work, attempt):
    """Turn the bodies' velocities a little aside, by parts of the fastest turn."""
    fastest = 0.0
    for i in range(work.bodies.shape[0] - 1):
        for c in range(3):
            fastest = max(fastest, abs(work.bodies[i].w[c]))
    for i in range(work.bodies.shape[0] - 1):
        for c in range(3):
            work.bodies[i].w[c] += nudge(i, attempt) * fastest


@kernel
def finish(model, state, history, dt, work, after):
    """A solved interval: write the state of the next knot."""
    accept_joints(model, work, after, dt)
    better = accept(model, work, state, after, dt)
    after.clock[2] = better if history >= 3.0 else 1.0
    after.clock[0] = dt
    after.clock[1] = history + 1.0


@kernel
def record(model, state, recording, knot):
    """Write the state of the knot into the recording."""
    recording.step_before[knot] = state.clock[0]
    for i in range(model.bodies.shape[0] - 1):
        body = state.bodies[i]
        store3(recording.position[knot, i], load3(body.x))
        store4(recording.orientation[knot, i], load4(body.q))
        put6(recording.momentum[knot, i], load3(body.p), load3(body.l))
    for i in range(model.joints.shape[0]):
        for k in range(model.joints[i].free):
            recording.spin[knot, i, k] = state.joints[i].spin[k]


@kernel
def write_forces(model, work, before, dt, forces, coupling_forces):
    """Mean forces of the rows over the kick at the knot between intervals of length ``before`` and ``dt``."""
    kick = 2.0 / (before + dt)
    for i in range(model.joints.shape[0]):
        for k in range(model.joints[i].rows):
            forces[i, k] = work.joints[i].mu[k] * kick
    for i in range(model.couplings.shape[0]):
        coupling_forces[i] = work.couplings[i].mu * kick


@kernel
def run_steps(model, state, inputs, options, work, recording, first, count, dt):
    """``count`` steps from knot ``first`` of the recording, which already holds that knot. ``inputs`` start at that knot.

    Returns (outcome, steps done, residual of the last try); the state is that of the last step that was solved.
    """
    size = 0.0
    clear_inputs(model, work)
    for index in range(count):
        knot = first + index
        before = state.clock[0]
        apply_inputs(model, work, inputs, index)
        outcome, iterations, size = step(model, state, inputs.target[index + 1], dt, options, work, state)
        if outcome != SOLVED:
            return outcome, index, size
        write_forces(model, work, before, dt, recording.row_force[knot], recording.coupling_force[knot])
        recording.substeps[knot + 1] = 1
        recording.iterations[knot + 1] = iterations
        record(model, state, recording, knot + 1)
    return SOLVED, count, size
