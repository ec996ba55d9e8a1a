"""Kernels of the BDF and DIRK methods, which are made of stages (Quaternion section 5): one step, and runs of steps."""
from __future__ import annotations

from typing import NamedTuple

from dalembert.forces.loads import apply_inputs, clear_inputs
from dalembert.formulations.implicit.equations import (
    Stage,
    count_others,
    dot4,
    jacobian,
    load_vector,
    move,
    residual,
    restart,
    rounding_floor,
    schedule_of,
    turn,
)
from dalembert.formulations.implicit.state import recall, record
from dalembert.formulations.implicit.tableaus import Tableau
from dalembert.formulations.maximal.knot import clear_impulses
from dalembert.kernels import inline, kernel
from dalembert.model.pose import set_targets
from dalembert.solvers.newton import build_newton, on_graph
from dalembert.solvers.outcomes import NOT_CONVERGED, SOLVED, TOO_FAST
from dalembert.solvers.redundant import COMPLIANCES, NUDGES, nudge
from dalembert.spatial.tuples import load3, load4, store3, store4

#: Newton on the equations of a stage (Quaternion eq. 25, 29, 30)
newton = build_newton(
    "newton", __file__, linear=on_graph("newton", __file__, jacobian=jacobian, load_vector=load_vector, turn=turn, schedule=schedule_of),
    residual=residual, restart=restart, move=move, floor=rounding_floor,
)


#: cosine of half the angle (1 rad) that a body of a mechanism with loops may turn in a step
FAR = 0.8775825618903728
#: iterations from velocities that are carried on, before those of the last state are tried
CARRIED_ITERATIONS = 12


class StepOptions(NamedTuple):
    """What a step takes besides model, state and inputs. ``multistep``: order of the BDF formula, 0 for a DIRK method throughout."""

    compliance: float
    tolerance: float
    max_iterations: int
    multistep: int
    tableau: Tableau


@inline
def aggregate(state, own, alpha0, alpha1):
    """Aggregate of the last two states for a multistep method (y_p of eq. 25)."""
    for i in range(own.axles.shape[0]):
        axle, past = own.axles[i], state.joints[i]
        for c in range(6):
            axle.rp[c] = alpha0 * past.rate[c] + alpha1 * past.rate1[c]
    for i in range(own.bodies.shape[0]):
        body, past = own.bodies[i], state.bodies[i]
        for c in range(3):
            body.xp[c] = alpha0 * past.x[c] + alpha1 * past.x1[c]
            body.vp[c] = alpha0 * past.v[c] + alpha1 * past.v1[c]
        for c in range(4):
            body.qp[c] = alpha0 * past.q[c] + alpha1 * past.q1[c]
            body.wp[c] = alpha0 * past.w[c] + alpha1 * past.w1[c]


@kernel
def aggregate_stage(state, own, a, stage, dt):
    """Aggregate of the last state and of the earlier stages' derivatives (eq. 27)."""
    for i in range(own.axles.shape[0]):
        axle, past = own.axles[i], state.joints[i]
        for c in range(6):
            axle.rp[c] = past.rate[c]
            for j in range(stage):
                axle.rp[c] += dt * a[stage, j] * axle.k[j, c]
    for i in range(own.bodies.shape[0]):
        body, past = own.bodies[i], state.bodies[i]
        store3(body.xp, load3(past.x))
        store4(body.qp, load4(past.q))
        store3(body.vp, load3(past.v))
        store4(body.wp, load4(past.w))
        for j in range(stage):
            for c in range(3):
                body.xp[c] += dt * a[stage, j] * body.kx[j, c]
                body.vp[c] += dt * a[stage, j] * body.kv[j, c]
            for c in range(4):
                body.qp[c] += dt * a[stage, j] * body.kq[j, c]
                body.wp[c] += dt * a[stage, j] * body.kw[j, c]


@kernel
def keep_stage(own, stage, gamma):
    """Derivatives of a solved stage (eq. 28)."""
    for i in range(own.axles.shape[0]):
        axle = own.axles[i]
        for c in range(6):
            axle.k[stage, c] = (axle.r[c] - axle.rp[c]) / gamma
    for i in range(own.bodies.shape[0]):
        body = own.bodies[i]
        for c in range(3):
            body.kx[stage, c] = body.v[c]
            body.kv[stage, c] = (body.v[c] - body.vp[c]) / gamma
        for c in range(4):
            body.kq[stage, c] = body.w[c]
            body.kw[stage, c] = (body.w[c] - body.wp[c]) / gamma


@kernel
def guess(state, own, order):
    """First guess of a stage: the velocities of the last state, or for ``order`` 2 those of the last two carried on."""
    for i in range(own.bodies.shape[0]):
        body, past = own.bodies[i], state.bodies[i]
        for c in range(3):
            body.v[c] = 2.0 * past.v[c] - past.v1[c] if order == 2 else past.v[c]
        for c in range(4):
            body.w[c] = 2.0 * past.w[c] - past.w1[c] if order == 2 else past.w[c]


@kernel
def try_stage(model, state, gamma, order, options, work, own):
    """A stage from its first guess of an ``order``, then from that of the first, with one compliance after the other until it is solved."""
    outcome, iterations, size = NOT_CONVERGED, 0, 0.0
    for attempt in range(2 - order, 1 + len(COMPLIANCES) + NUDGES):
        softness = COMPLIANCES[attempt - 1] if 1 <= attempt <= len(COMPLIANCES) else COMPLIANCES[0]
        recall(model, work, state)
        if attempt <= len(COMPLIANCES):
            guess(state, own, 2 if attempt == 0 else 1)
        else:
            nudge_all(own, attempt - 1)
        clear_impulses(model, work)
        outcome, spent, size = newton(
            Stage(model, work, own, gamma, softness * options.compliance), options.tolerance,
            min(CARRIED_ITERATIONS, options.max_iterations) if attempt == 0 else options.max_iterations,
        )
        iterations += spent
        if outcome == SOLVED or (options.compliance == 0.0 and attempt > 0):
            break
    if outcome == SOLVED and options.compliance > 0.0 and turns_far(state, own, gamma):
        return TOO_FAST, iterations, size
    if outcome == SOLVED:
        count_others(model, work, own)
    return outcome, iterations, size


@kernel
def turns_far(state, own, gamma):
    """True when a body turns so far from the last knot that a loop may have come out on another branch of its assembly."""
    for i in range(own.bodies.shape[0]):
        past, body = load4(state.bodies[i].q), own.bodies[i]
        along, square = 0.0, 0.0
        for c in range(4):
            q = body.qp[c] + gamma * body.w[c]
            along += past[c] * q
            square += q * q
        if along * along < FAR * FAR * square * dot4(past, past):
            return True
    return False


@kernel
def nudge_all(own, attempt):
    """Turn the bodies' velocities a little aside, by parts of the fastest turn."""
    fastest = 0.0
    for i in range(own.bodies.shape[0]):
        for c in range(4):
            fastest = max(fastest, abs(own.bodies[i].w[c]))
    for i in range(own.bodies.shape[0]):
        for c in range(4):
            own.bodies[i].w[c] += nudge(i, attempt) * fastest


@inline
def multistep_step(model, state, targets, dt, history, options, work, own, after):
    """One step of a BDF formula (eq. 25) to the ``targets`` at its end, with ``history`` steps of that length behind it."""
    gamma = bdf_gamma(options.multistep, dt)
    aggregate_bdf(state, own, options.multistep)
    set_targets(model, work, targets)
    outcome, iterations, size = try_stage(model, state, gamma, order_of_guess(history), options, work, own)
    if outcome == SOLVED:
        accept(state, own, gamma, after)
    return outcome, iterations, size


@inline
def bdf_gamma(order, dt):
    return dt if order == 1 else 2.0 / 3.0 * dt


@inline
def aggregate_bdf(state, own, order):
    if order == 1:
        aggregate(state, own, 1.0, 0.0)
    else:
        aggregate(state, own, 4.0 / 3.0, -1.0 / 3.0)


@kernel
def dirk_step(model, state, targets, dt, options, work, own, after):
    """One step of a diagonally implicit Runge-Kutta method (eq. 26 to 28).

    ``targets`` (stages, joints, 6): where the driven joints are at the stages.
    """
    tableau, total, gamma, size = options.tableau, 0, dt, 0.0
    for stage in range(tableau.b.shape[0]):
        gamma = dt * tableau.a[stage, stage]
        set_targets(model, work, targets[stage])
        aggregate_stage(state, own, tableau.a, stage, dt)
        outcome, iterations, size = try_stage(model, state, gamma, 1, options, work, own)
        total += iterations
        if outcome != SOLVED:
            return outcome, total, size
        keep_stage(own, stage, gamma)
    if tableau.stiffly_accurate:
        accept(state, own, gamma, after)
    else:
        combine(state, own, tableau.b, dt, after)
    return SOLVED, total, size


@inline
def shift(state, own, after):
    """The knot becomes the one before, and is the one to add to."""
    for i in range(own.axles.shape[0]):
        past, new = state.joints[i], after.joints[i]
        for c in range(6):
            rate = past.rate[c]
            new.rate1[c] = rate
            new.rate[c] = rate
    for i in range(own.bodies.shape[0]):
        past, new = state.bodies[i], after.bodies[i]
        x, q, v, w = load3(past.x), load4(past.q), load3(past.v), load4(past.w)
        store3(new.x1, x)
        store4(new.q1, q)
        store3(new.v1, v)
        store4(new.w1, w)
        store3(new.x, x)
        store4(new.q, q)
        store3(new.v, v)
        store4(new.w, w)


@inline
def accept(state, own, gamma, after):
    """The last stage is the next knot."""
    shift(state, own, after)
    for i in range(own.axles.shape[0]):
        for c in range(6):
            after.joints[i].rate[c] = own.axles[i].r[c]
    for i in range(own.bodies.shape[0]):
        body, new = own.bodies[i], after.bodies[i]
        for c in range(3):
            new.x[c] = body.xp[c] + gamma * body.v[c]
            new.v[c] = body.v[c]
        for c in range(4):
            new.q[c] = body.qp[c] + gamma * body.w[c]
            new.w[c] = body.w[c]


@kernel
def combine(state, own, b, dt, after):
    """The next knot is the last one plus the stages' derivatives by their weights ``b``."""
    shift(state, own, after)
    for i in range(own.axles.shape[0]):
        for c in range(6):
            for j in range(b.shape[0]):
                after.joints[i].rate[c] += dt * b[j] * own.axles[i].k[j, c]
    for i in range(own.bodies.shape[0]):
        body, new = own.bodies[i], after.bodies[i]
        for j in range(b.shape[0]):
            for c in range(3):
                new.x[c] += dt * b[j] * body.kx[j, c]
                new.v[c] += dt * b[j] * body.kv[j, c]
            for c in range(4):
                new.q[c] += dt * b[j] * body.kq[j, c]
                new.w[c] += dt * b[j] * body.kw[j, c]


@inline
def finish(model, targets, history, dt, work, after):
    """A solved step: coordinates and targets at the next knot, and its clock."""
    for i in range(model.joints.shape[0]):
        joint, new = model.joints[i], after.joints[i]
        for k in range(joint.free):
            new.coordinate[k] = work.joints[i].coordinate[k]
            if joint.follows[k]:
                new.target[k] = targets[i, k]
    after.clock[0], after.clock[1] = dt, history + 1.0


@inline
def history_of(clock, dt):
    """How many steps of length ``dt`` lie behind."""
    return clock[1] if clock[0] == dt else 0.0


@inline
def order_of_guess(history):
    """Whether velocities can be carried on from the last two knots: they are a step of the same length apart."""
    return 2 if history >= 1.0 else 1


@inline
def step(model, state, inputs, index, dt, options, work, own, after):
    """One step of length ``dt`` with the inputs ``index``. Returns (outcome, iterations, residual).

    BDF2 starts, and starts anew where the step changes, by a DIRK step. ``after``, which may be ``state`` itself, is written only if the step is solved.
    """
    apply_inputs(model, work, inputs, index)
    targets, history = inputs.target[index + 1], history_of(state.clock, dt)
    if options.multistep == 1 or (options.multistep == 2 and history >= 1.0):
        outcome, iterations, size = multistep_step(model, state, targets, dt, history, options, work, own, after)
    else:
        between = inputs.stage[min(index, inputs.stage.shape[0] - 1)]
        outcome, iterations, size = dirk_step(model, state, between, dt, options, work, own, after)
    if outcome == SOLVED:
        finish(model, targets, history, dt, work, after)
    return outcome, iterations, size


@kernel
def run_steps(model, state, inputs, options, work, own, recording, first, count, dt):
    """``count`` steps from knot ``first`` of the recording, which already holds that knot. ``inputs`` start at that knot.

    Returns (outcome, steps done, residual of the last try); the state is that of the last step that was solved.
    """
    size = 0.0
    clear_inputs(model, work)
    for index in range(count):
        outcome, iterations, size = step(model, state, inputs, index, dt, options, work, own, state)
        if outcome != SOLVED:
            return outcome, index, size
        recording.substeps[first + index + 1] = 1
        recording.iterations[first + index + 1] = iterations
        record(model, state, recording, first + index + 1)
    return SOLVED, count, size
