"""Kernels of BDF and DIRK runs with contacts, limits and dry friction.

A step is tried with the method itself, every stage as a contact problem. Where something closes or opens in it, it is made
by backward Euler instead, over which velocities may jump: v and gap(q + dt v) >= 0 at its end, Newton's law of restitution
for what closes fast; and the method starts anew from there. So does a DIRK method that is not stiffly accurate as soon as
something is near: its stages say nothing of the gaps at the end.
"""
from __future__ import annotations

from math import inf, sqrt

import numpy as np

from dalembert.contact.events import approach, end_gap, limit_approach, prepare, strays, tunnels, wake
from dalembert.contact.forces import keep_forces, keep_places, note_state, write_log
from dalembert.contact.narrow import find_features
from dalembert.contact.nodes import limit_at_end
from dalembert.contact.records import LASTING_BODY, LASTING_JOINT
from dalembert.forces.loads import apply_inputs, clear_inputs
from dalembert.formulations.implicit.encounter import (
    WOKEN,
    carry_on,
    guess,
    place_rows,
    place_rows_at_guess,
    put_end,
    recall_pose,
    try_encounter,
)
from dalembert.formulations.implicit.state import BODY_STATE, JOINT_STATE, recall, record
from dalembert.formulations.implicit.step import (
    accept,
    aggregate_bdf,
    aggregate_stage,
    bdf_gamma,
    combine,
    finish,
    history_of,
    keep_stage,
    turns_far,
)
from dalembert.kernels import inline, kernel
from dalembert.model.pose import evaluate_pose, set_targets
from dalembert.solvers.outcomes import LOG_FULL, LOST, SOLVED, TOO_FAST
from dalembert.spatial.tuples import load3, load4

CONTACT_BODY_STATE = np.dtype(BODY_STATE.descr + LASTING_BODY)
CONTACT_JOINT_STATE = np.dtype(JOINT_STATE.descr + LASTING_JOINT)

#: gaps below this speed (m/s, rad/s) times dt count as closed: what the interior point leaves is far below
CLOSED = 1e-5
#: what opens faster, and what closes with a larger impulse, than these parts of what gravity does in a step, is an event
OPENS, PUSHES = 0.1, 1e-3


@inline
def changes(gap0, gap, push, least, speed, dt):
    """True when a gap closes with an impulse, or one that was closed opens with a speed, worth mentioning beside ``speed`` (m/s).

    ``push``: impulse over weight. What grazes, like the rim of a wheel, goes on as it is.
    """
    if gap0 < least:
        return gap > OPENS * speed * dt
    return gap < least and push > PUSHES * speed


@kernel
def is_settled(scene, dt, speed):
    """True when what touches at the knot, and nothing else, does so at the end of the stage."""
    least = CLOSED * dt
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0 and changes(contact.gap0, contact.gap, contact.gamma / contact.weight, least, speed, dt):
            return False
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for side in range(2):
            if limit.awake[side] != 0:
                gap0, gap = end_gap(limit, side, limit.c0), end_gap(limit, side, limit.c)
                if changes(gap0, gap, limit.gamma[side] / limit.weight, least, speed, dt):
                    return False
    return True


@kernel
def is_coming(model, work, scene, least, fast):
    """True when something will close in this step, or is closed and still comes nearer by more than ``fast`` (m/s)."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake == 0:
            continue
        if contact.gap0 >= least and contact.gap < 0.0:
            return True
        if contact.gap0 < least and approach(model, work, contact.a, contact.b, contact.Ga[0], contact.Gb[0]) < -fast:
            return True
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for side in range(2):
            if limit.awake[side] == 0:
                continue
            closed = end_gap(limit, side, limit.c0) < least
            if not closed and end_gap(limit, side, limit.c) < 0.0:
                return True
            if closed and limit_approach(model, work, limit, side) < -fast:
                return True
    return False


@kernel
def multistep_encounter(model, state, dt, touching, work, own, scene, count, speed):
    """A step of BDF2 as a contact problem. Returns (outcome, iterations, residual, gamma)."""
    gamma = bdf_gamma(2, dt)
    aggregate_bdf(state, own, 2)
    guess(state, own, 2)
    place_rows_at_guess(model, work, own, gamma, scene)
    outcome, iterations, size = try_encounter(model, state, gamma, (gamma / dt) ** 2, touching, work, own, scene, count, speed, 2, False)
    if outcome == SOLVED and not is_settled(scene, dt, speed):
        outcome = WOKEN
    return outcome, iterations, size, gamma


@kernel
def dirk_encounter(model, state, targets, dt, options, touching, work, own, scene, count, speed):
    """The stages of a DIRK method, each a contact problem. Returns (outcome, iterations, residual, gamma of the last one)."""
    tableau, total, gamma, size = options.tableau, 0, dt, 0.0
    for stage in range(tableau.b.shape[0]):
        gamma = dt * tableau.a[stage, stage]
        set_targets(model, work, targets[stage])
        aggregate_stage(state, own, tableau.a, stage, dt)
        guess(state, own, 1)
        place_rows_at_guess(model, work, own, gamma, scene)
        outcome, iterations, size = try_encounter(model, state, gamma, (gamma / dt) ** 2, touching, work, own, scene, count, speed, 1, False)
        total += iterations
        if outcome == SOLVED and not is_settled(scene, dt, speed):
            outcome = WOKEN
        if outcome != SOLVED:
            return outcome, total, size, gamma
        keep_stage(own, stage, gamma)
    if not tableau.stiffly_accurate:
        combined_end(model, state, tableau.b, dt, work, own, scene)
        if wake(work, scene) > 0:
            return WOKEN, total, size, gamma
    return SOLVED, total, size, gamma


@kernel
def combined_end(model, state, b, dt, work, own, scene):
    """Put the end pose of a method that is not stiffly accurate where contacts look for it."""
    for i in range(own.bodies.shape[0]):
        body, past = own.bodies[i], state.bodies[i]
        x, q = load3(past.x), load4(past.q)
        for j in range(b.shape[0]):
            k, turn = body.kx[j], body.kq[j]
            s = dt * b[j]
            x = (x[0] + s * k[0], x[1] + s * k[1], x[2] + s * k[2])
            q = (q[0] + s * turn[0], q[1] + s * turn[1], q[2] + s * turn[2], q[3] + s * turn[3])
        put_end(work.bodies[i], x, q)
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        limit_at_end(limit, model.joints[limit.joint], work.joints[limit.joint], work.bodies, scene.scratch)


@kernel
def euler_encounter(model, state, targets, dt, touching, work, own, scene, count, speed):
    """A step of backward Euler over which velocities may jump, with the rows of the knot, which is in the work."""
    set_targets(model, work, targets)
    aggregate_bdf(state, own, 1)
    return try_encounter(model, state, dt, 1.0, touching, work, own, scene, count, speed, 1, True)


@kernel
def contact_step(model, state, inputs, index, dt, options, touching, work, own, scene, after):
    """One step of length ``dt`` with the inputs ``index``. Returns (outcome, iterations, residual, gamma by which forces follow).

    ``after``, which may be ``state`` itself, is written only if the step is solved.
    """
    targets, history = inputs.target[index + 1], history_of(state.clock, dt)
    smooth = history >= 1.0
    recall(model, work, state)
    recall_pose(model, work, state, smooth)
    if strays(model, work, state.bodies, touching.sizes, dt, False):
        return LOST, 0, 0.0, dt
    evaluate_pose(model, work)
    find_features(work.bodies, scene.contacts, scene.shapes)
    carry_on(work, state, dt)
    g = load3(model.gravity)
    speed = max(dt * sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]), 1e-3)
    count = prepare(model, work, scene, dt, dt, speed)
    outcome, total, size, gamma, resting = WOKEN, 0, 0.0, dt, inf
    able = options.multistep != 1 and (options.tableau.stiffly_accurate or count == 0)
    if able and not is_coming(model, work, scene, CLOSED * dt, touching.resting + speed):
        if options.multistep == 2 and smooth:
            set_targets(model, work, targets)
            outcome, total, size, gamma = multistep_encounter(model, state, dt, touching, work, own, scene, count, speed)
        else:
            between = inputs.stage[min(index, inputs.stage.shape[0] - 1)]
            outcome, total, size, gamma = dirk_encounter(model, state, between, dt, options, touching, work, own, scene, count, speed)
    whole = outcome == SOLVED and options.multistep == 0 and not options.tableau.stiffly_accurate
    if outcome != SOLVED:
        if total > 0:
            recall(model, work, state)
            recall_pose(model, work, state, smooth)
            evaluate_pose(model, work)
            place_rows(model, work, scene)
        history, gamma, resting = -1.0, dt, touching.resting
        outcome, iterations, size = euler_encounter(model, state, targets, dt, touching, work, own, scene, count, speed)
        total += iterations
    if outcome == SOLVED:
        recall_pose(model, work, state, smooth)
        if tunnels(work, scene) or (touching.compliance > 0.0 and turns_far(state, own, gamma)):
            return TOO_FAST, total, size, gamma
        if strays(model, work, state.bodies, touching.sizes, 0.0, True):
            return LOST, total, size, gamma
        keep_places(state, after)
        keep_forces(model, work, scene, after, 1.0 / gamma, resting)
        if whole:
            combine(state, own, options.tableau.b, dt, after)
        else:
            accept(state, own, gamma, after)
        finish(model, targets, history, dt, work, after)
    return outcome, total, size, gamma


@kernel
def run_contact_steps(model, state, inputs, options, touching, work, own, scene, recording, tape, log, used, start, first, count, dt):
    """``count`` steps from knot ``first`` of the recording, with the inputs from step ``start`` on. ``used``: length of the log so far.

    Returns (outcome, steps done, residual of the last try, length of the log).
    """
    size = 0.0
    clear_inputs(model, work)
    for index in range(count):
        knot = first + index
        begins = state.clock[0] == 0.0
        if used + scene.contacts.shape[0] > log.shape[0]:
            return LOG_FULL, index, size, used
        apply_inputs(model, work, inputs, start + index)
        outcome, iterations, size, gamma = contact_step(
            model, state, inputs, start + index, dt, options, touching, work, own, scene, state,
        )
        if outcome != SOLVED:
            return outcome, index, size, used
        used = write_log(scene, log, used, knot + 1, 1.0 / gamma)
        if begins:  # nothing else says what acts at a start
            note_state(state, tape, knot)
            tape.steps[knot, 0] = 0.0
        note_state(state, tape, knot + 1)
        recording.substeps[knot + 1] = 1
        recording.iterations[knot + 1] = iterations
        record(model, state, recording, knot + 1)
    return SOLVED, count, size, used
