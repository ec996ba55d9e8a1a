"""Kernels of variational runs with contacts, limits and dry friction: one step, what it leaves behind, and runs of steps."""
from __future__ import annotations

from math import inf, sqrt

import numpy as np

from dalembert.contact.bearing import bear
from dalembert.contact.compliance import soften_step
from dalembert.contact.events import ROUNDS, bounce, forget_guesses, guess_impulses, prepare, strays, wake
from dalembert.contact.flights import OFF, PAST, STAY, UP_TO, let_fly, meet, next_slide_end
from dalembert.contact.forces import (
    add_force,
    keep_forces,
    keep_places,
    lasting_end,
    lasting_share,
    note_state,
    something_hits,
    write_log,
)
from dalembert.contact.impacts import build_granting, clear_islands, deny
from dalembert.contact.narrow import find_features
from dalembert.contact.nodes import Encounter, awake_part, build_nodes, gather, limit_impulse, scatter
from dalembert.contact.records import LASTING_BODY, LASTING_JOINT
from dalembert.contact.twists import bear_twists, follow_contacts
from dalembert.contact.watch import straighten, was_apart, watch
from dalembert.forces.loads import apply_inputs, clear_inputs
from dalembert.formulations.maximal.knot import clear_impulses, evaluate_knot
from dalembert.formulations.maximal.sizes import measure
from dalembert.formulations.variational.equations import (
    Interval,
    balance,
    extrapolate,
    first_guess,
    jacobian,
    load_vector,
    momentum_after,
    momentum_derivative,
    move,
    restart,
    rotate_gradient,
    rounding_floor,
    spin_after,
    spins_too_fast,
    subtract_impulse,
    turn,
)
from dalembert.formulations.variational.slides import look_at_slides, mend_slides
from dalembert.formulations.variational.state import BODY_STATE, JOINT_STATE, recall
from dalembert.formulations.variational.step import finish, history_of, record, write_forces
from dalembert.kernels import inline, kernel
from dalembert.model.pose import set_targets
from dalembert.model.records import CONSTRAINT
from dalembert.solvers.interior_point import TRIES, WITHOUT, build_interior_point, on_graph, sharpness
from dalembert.solvers.outcomes import (
    GAINED,
    LOG_FULL,
    LOST,
    MET,
    NOT_CONVERGED,
    SOLVED,
    STRIKES,
    TAKEN_BACK,
    THROUGH,
    TOO_FAST,
)
from dalembert.solvers.redundant import COMPLIANCES
from dalembert.solvers.smoothed_newton import build_smoothed_newton
from dalembert.spatial.tuples import dot3, load3, load9, mat_vec

CONTACT_BODY_STATE = np.dtype(BODY_STATE.descr + LASTING_BODY)
CONTACT_JOINT_STATE = np.dtype(JOINT_STATE.descr + LASTING_JOINT)


@inline
def velocity(interval, i):
    """Of the momenta just after the knot: by it friction takes out what Coulomb's law says."""
    body, fixed = interval.work.bodies[i], interval.model.bodies[i]
    return load3(body.v), mat_vec(load9(fixed.inertia_inverse), momentum_after(body, fixed, interval.dt))


@inline
def velocity_terms(interval, i):
    """d(momentum after)/d(omega)."""
    return momentum_derivative(interval.work.bodies[i], interval.model.bodies[i], interval.dt)


@inline
def rate_gradient(interval, i, D, row, out):
    """Gradient of the rate along a row just after the knot."""
    g = mat_vec(load9(interval.model.bodies[i].inertia_inverse), (row[3], row[4], row[5]))
    for c in range(3):
        out[c] = row[c]
        out[3 + c] = g[0] * D[c] + g[1] * D[3 + c] + g[2] * D[6 + c]


@inline
def end_gradient(interval, i, row, out):
    """Gradient of what changes by ``row`` with the pose at the end, over dt."""
    body = interval.work.bodies[i]
    turned = rotate_gradient((row[3], row[4], row[5]), load3(body.w), body.s, interval.dt)
    for c in range(3):
        out[c] = row[c]
        out[3 + c] = turned[c]


@inline
def push(interval, i, row, impulse):
    """An impulse along a row, off the body's residual."""
    subtract_impulse(interval.work.bodies[i].r, row, impulse)


@inline
def mobility(interval, i, row):
    """row M^-1 row^T of a body by itself."""
    fixed, arm = interval.model.bodies[i], (row[3], row[4], row[5])
    return (row[0] * row[0] + row[1] * row[1] + row[2] * row[2]) / fixed.mass + dot3(arm, mat_vec(load9(fixed.inertia_inverse), arm))


nodes = build_nodes(
    "nodes", __file__, unknowns=6, velocity=velocity, velocity_terms=velocity_terms, rate_gradient=rate_gradient, end_gradient=end_gradient,
    push=push,
)
#: the equations of an interval with contacts (Variational eq. 29)
interior_point = build_interior_point(
    "interior_point", __file__, nodes=nodes, linear=on_graph("interior_point", __file__, nodes=nodes, jacobian=jacobian, load_vector=load_vector, turn=turn),
    residual=balance, measure=measure, restart=restart, move=move, floor=rounding_floor,
)
solve_encounter = interior_point.solve
smoothed_newton = build_smoothed_newton(
    "smoothed_newton", __file__, nodes=nodes, mobility=mobility, residual=balance, measure=measure, jacobian=jacobian, load_vector=load_vector, move=move,
)
limit_work = build_granting("limit_work", __file__, velocity=velocity, falls=False, tree=False)


@kernel
def contact_step(model, state, targets, dt, options, work, scene, after):
    """One interval of length ``dt`` with contacts, to the ``targets`` at its end, with the inputs in the work.

    Returns (outcome, iterations, residual); ``after``, which may be ``state`` itself, is written only if it is solved.
    """
    recall(model, work, state)
    if strays(model, work, state.bodies, options.sizes, dt, False):
        return LOST, 0, 0.0
    evaluate_knot(model, work)
    set_targets(model, work, targets)
    find_features(work.bodies, scene.contacts, scene.shapes, 0.0 if options.events == OFF else inf)
    g = load3(model.gravity)
    h = 0.5 * (state.clock[0] + dt)
    history, order = history_of(state.clock, dt)
    speed = max(h * sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]), 1e-3)
    compliance, sharp = options.compliance, sharpness(options.tolerance)
    first_guess(model, work)
    balance(Interval(model, work, dt, h, compliance))
    met = watch(work.bodies, scene, True) if options.events == OFF else 0
    if met < 0:
        return THROUGH, 0, -1.0 - met
    count = prepare(model, work, scene, dt, h, speed)
    look_at_slides(model, work, scene, dt, speed, options.resting)
    if options.events != OFF:
        count = let_fly(model, work, scene, state.clock[0] == 0.0, options.resting)
        if count < 0 or options.events == STAY:
            return STRIKES, 0, 0.0
    guess_impulses(work, scene, state.bodies, state.joints, h)
    clear_islands(scene)
    outcome, iterations, size = NOT_CONVERGED, 0, 0.0
    for attempt in range(len(TRIES) + len(COMPLIANCES) - 1):
        if attempt >= len(TRIES) and compliance == 0.0:
            break
        if attempt > 0:
            mend_slides(scene, True)
        if attempt == WITHOUT and options.limited > 0:
            deny(scene, dt)
        wide, blunt, give = TRIES[attempt] if attempt < len(TRIES) else TRIES[0]
        softness = COMPLIANCES[attempt - len(TRIES) + 1] if attempt >= len(TRIES) else COMPLIANCES[0]
        warm = False
        for again in range(ROUNDS):
            follow_contacts(scene, work.bodies)
            soften_step(model, work, scene, dt, h, sharp * give)
            interval = Interval(model, awake_part(work, scene), dt, h, softness * compliance)
            awake = gather(scene)
            encounter = Encounter(interval, awake, dt)
            outcome = NOT_CONVERGED
            if attempt == 0 and count > 0:
                if not warm:
                    # what rests would begin to swing within the tolerance if it went on from its last changes
                    extrapolate(model, work, state, 0.0 if awake.contacts.shape[0] > 0 else order)
                    clear_impulses(model, work)
                outcome, spent, size = smoothed_newton(encounter, options.tolerance, options.max_iterations, speed, warm)
                iterations += spent
            if outcome == TAKEN_BACK:  # the next try gives way by more
                break
            if outcome != SOLVED:
                extrapolate(model, work, state, order if count == 0 else 0.0)
                clear_impulses(model, work)
                outcome, spent, size = solve_encounter(encounter, options.tolerance, options.max_iterations, speed, wide, sharp * blunt)
                iterations += spent
            scatter(scene, awake)
            if outcome != SOLVED:
                break
            if options.events == OFF:
                woken = wake(work, scene)
                changed = woken + bounce(model, work, scene, dt, options.resting)
            else:
                woken = meet(model, work, scene, 0.5 * dt / h, options.resting, options.events)
                changed = woken
                if woken < 0:
                    return MET, iterations, size
            if options.events != UP_TO:  # slides that end are events
                changed += mend_slides(scene, False)
            changed += bear(model, work, scene.limits, again, options.tolerance) + bear_twists(scene, again)
            if changed == 0:
                woken = watch(work.bodies, scene, False) if options.events != PAST else 0
                if woken < 0:
                    return THROUGH, iterations, -1.0 - woken
                if woken > 0 and options.events != OFF and was_apart(scene):
                    return TOO_FAST, iterations, size
                granted = limit_work(Encounter(interval, scene, dt), options.tolerance) if woken == 0 and options.limited > 0 else 0
                if granted < 0 and options.limited > 1 and options.events == OFF:
                    outcome = GAINED
                    break
                if woken == 0 and granted <= 0:
                    if options.events == UP_TO and next_slide_end(model, work, scene, 0.5 * dt / h, state.clock[0] == 0.0, 0) >= 0:
                        return MET, iterations, size
                    break
            count += woken
            outcome = NOT_CONVERGED
            warm = attempt == 0
        if outcome == SOLVED or (count == 0 and compliance == 0.0):
            break
        if attempt == len(TRIES) - 2:
            forget_guesses(scene)
        if attempt > 0 or outcome == GAINED:
            straighten(work.bodies, scene, max(attempt, 1))
    if outcome == SOLVED:
        if spins_too_fast(work, dt):
            return TOO_FAST, iterations, size
        if strays(model, work, state.bodies, options.sizes, 0.0, True):
            return LOST, iterations, size
        finish(model, state, history, dt, work, after)
        keep_places(state, after)
        keep_forces(model, work, scene, after, 1.0 / h, options.resting)
    return outcome, iterations, size


@kernel
def note_forces(model, scene, tape, knot, kick):
    """Write the forces at the knot between the intervals: on bodies by contacts, along directions by friction and limits."""
    world = model.bodies.shape[0] - 1
    wrench, friction, ends = tape.wrench[knot], tape.friction[knot], tape.limit[knot]
    wrench[:] = 0.0
    friction[:] = 0.0
    ends[:] = 0.0
    for i in range(scene.contacts.shape[0]):
        if scene.contacts[i].awake != 0:
            add_force(wrench, world, scene.contacts[i], kick)
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        end, drag = limit_impulse(limit)
        ends[limit.joint, limit.direction] += kick * end
        friction[limit.joint, limit.direction] += kick * drag


@inline
def add_impulse(after, world, body, scale, G):
    """Add ``scale`` times a row to a body's momenta; the world has none."""
    if body != world:
        for c in range(6):
            after[body, c] += scale * G[c]


@kernel
def note_after(model, work, scene, tape, knot, dt, kick, resting):
    """Write the momenta at the start of the interval after a knot, less the half kick of what lasts.

    The impulse at the knot, P+ - P-, is that of all forces that last over the whole kick, S, and those of impacts and
    joints, I, whose reactions mix what lasts with what answers an impact (see ``after_series``). The interval after has the
    share c = dt/2 / h of S: what is left is P+ - c S = P+ - c (P+ - P- - I). A path's impulse is all of its half kick.
    """
    world = model.bodies.shape[0] - 1
    after = tape.after[knot]
    hit = something_hits(model, work, scene, resting)
    c = 0.5 * dt * kick
    for i in range(world):
        body, fixed = work.bodies[i], model.bodies[i]
        l = momentum_after(body, fixed, dt)
        for k in range(3):
            after[i, k] = (1.0 - c) * fixed.mass * body.v[k] + c * body.p[k]
            after[i, 3 + k] = (1.0 - c) * l[k] + c * body.l[k]
    for i in range(model.joints.shape[0]):
        joint, at = model.joints[i], work.joints[i]
        for k in range(joint.rows):
            answer = c * at.mu[k]
            if k >= joint.locks:
                direction = joint.row_direction[k]
                spin = spin_after(work.bodies, joint, at, direction, dt) if joint.armature[direction] > 0.0 else 0.0
                tape.spin_after[knot, i, direction] = spin
                answer = c * (at.spin[direction] - spin)
            add_impulse(after, world, joint.parent, answer, at.Gp[k])
            add_impulse(after, world, joint.child, answer, at.Gc[k])
    for i in range(model.couplings.shape[0]):
        coupling, mu = model.couplings[i], work.couplings[i].mu
        answer = c * mu if coupling.law == CONSTRAINT else (c - 1.0) * mu
        for e in range(coupling.first, coupling.first + coupling.ends):
            add_impulse(after, world, model.ends[e], answer, work.ends[e].G)
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        # Without joints nothing else answers, and all of an impulse is taken as a blow: the energy then never rises.
        if contact.awake != 0:
            part = 1.0 if model.joints.shape[0] == 0 else 1.0 - lasting_share(model, work, scene, contact, resting, hit)
            for k in range(3):
                blow = c * part * (contact.gamma if k == 0 else contact.beta[k - 1])
                add_impulse(after, world, contact.a, blow, contact.Ga[k])
                add_impulse(after, world, contact.b, blow, contact.Gb[k])
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        blow = c * (limit_impulse(limit)[0] - lasting_end(model, work, limit, resting, hit))
        add_impulse(after, world, limit.a, blow, limit.Ga)
        add_impulse(after, world, limit.b, blow, limit.Gb)


@kernel
def run_contact_steps(model, state, inputs, options, work, scene, recording, tape, log, used, start, first, count, dt):
    """``count`` steps from knot ``first`` of the recording, with the inputs from step ``start`` on. ``used``: length of the log so far.

    Returns (outcome, steps done, residual of the last try, length of the log).
    """
    size = 0.0
    clear_inputs(model, work)
    for index in range(count):
        knot = first + index
        before = state.clock[0]
        if used + scene.contacts.shape[0] > log.shape[0]:
            return LOG_FULL, index, size, used
        apply_inputs(model, work, inputs, start + index)
        outcome, iterations, size = contact_step(model, state, inputs.target[start + index + 1], dt, options, work, scene, state)
        if outcome != SOLVED:
            return outcome, index, size, used
        kick = 2.0 / (before + dt)
        used = write_log(scene, log, used, knot + 1, kick)
        write_forces(model, work, before, dt, recording.row_force[knot], recording.coupling_force[knot])
        note_forces(model, scene, tape, knot, kick)
        note_after(model, work, scene, tape, knot, dt, kick, options.resting)
        note_state(state, tape, knot + 1)
        recording.substeps[knot + 1] = 1
        recording.iterations[knot + 1] = iterations
        record(model, state, recording, knot + 1)
    return SOLVED, count, size, used
