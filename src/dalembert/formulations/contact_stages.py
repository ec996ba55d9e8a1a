"""Runs of BDF and DIRK methods with contacts, limits and dry friction, for any formulation that is made of stages.

A step is tried with the method itself, every stage as a contact problem. Where something closes or opens in it, it is made
by backward Euler instead, over which velocities may jump: v and gap(q + dt v) >= 0 at its end, Newton's law of restitution
for what closes fast; and the method starts anew from there. So does a DIRK method that is not stiffly accurate as soon as
something is near: its stages say nothing of the gaps at the end.

An impulse mu enters a stage where smooth forces enter as gamma f, so that the force is mu / gamma; gaps at the end of the
stage are divided by gamma like rows. The rows along which contacts push are taken at one pose for the whole stage, which
is in the work when ``place_rows`` is called.
"""
from __future__ import annotations

from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from dalembert.contact.compliance import soften_stage
from dalembert.contact.events import (
    ROUNDS,
    approach,
    bounce,
    end_gap,
    forget_guesses,
    guess_impulses,
    limit_approach,
    prepare,
    put_all_rows,
    rate_along,
    strays,
    wake,
)
from dalembert.contact.forces import keep_forces, keep_places, note_state, write_log
from dalembert.contact.geometry import at_knot
from dalembert.contact.impacts import clear_islands, deny
from dalembert.contact.narrow import find_features
from dalembert.contact.nodes import Encounter, limit_at_end, limit_at_knot
from dalembert.contact.records import TWIST, Tape
from dalembert.contact.twists import bear_twists, follow_contacts
from dalembert.contact.watch import straighten, watch
from dalembert.forces.loads import apply_inputs, clear_inputs
from dalembert.formulations.implicit.step import bdf_gamma, history_of
from dalembert.kernels import inline, kernel, specialise
from dalembert.model.pose import evaluate_pose
from dalembert.solvers.interior_point import TRIES, WITHOUT, sharpness
from dalembert.solvers.outcomes import GAINED, LOG_FULL, LOST, NOT_CONVERGED, SOLVED, THROUGH, TOO_FAST
from dalembert.solvers.redundant import COMPLIANCES
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import load3, load4, load9, store3, store4, store9

#: a smooth stage in which something closed that was not expected to
WOKEN = 12
#: gaps below this speed (m/s, rad/s) times dt count as closed: what the interior point leaves is far below
CLOSED = 1e-5
#: what opens faster, and what closes with a larger impulse, than these parts of what gravity does in a step, is an event
OPENS, PUSHES = 0.1, 1e-3
#: what slid faster than so many times what gravity does in a step, and at its end with less than this part of that, was stopped by a blow
SLIDES, STOPPED = 2.0, 0.5
#: steps after a start until the forces of contacts have settled
RIPE = 4


def carry_back(tape: Tape) -> Tape:
    """The tape with the forces of ripe steps at the knots before them, back to the last start or impact.

    Multipliers of stages and first steps do not converge, and impacts leave no force at their knot.
    """
    steps, source = tape.steps[:, 0], np.arange(len(tape.steps))
    for knot in reversed(range(len(source) - 1)):
        if steps[knot] < RIPE and steps[knot + 1] == steps[knot] + 1:
            source[knot] = source[knot + 1]
    return tape._replace(wrench=tape.wrench[source], friction=tape.friction[source], limit=tape.limit[source])


class Stages(NamedTuple):
    """How a formulation's stages go: kernels of ``parts``, a NamedTuple with at least ``model`` and ``work``."""

    recall: Any  # (parts, state): coordinates of the knot, to unwrap those of the stages against
    recall_pose: Any  # (parts, state, smooth): the knot's pose and the momenta just before it into the work, see below
    carry_on: Any  # (parts, state, dt): the end pose of a step with the velocities of the knot
    aggregate: Any  # (parts, state, order): of the last knots, for a BDF formula of this order
    aggregate_stage: Any  # (parts, state, a, stage, dt): of the knot and earlier stages; after ``aggregate`` of order 1
    guess: Any  # (parts, state, order): the rates of the last knot, or for order 2 those of the last two carried on
    pose_at_guess: Any  # (parts, gamma): the pose that the guess leads to, into the work
    set_targets: Any  # (parts, targets)
    problem: Any  # (parts, gamma, compliance) -> the step problem
    clear: Any  # (parts): no impulses
    bear: Any  # (parts, gamma, scene, again, tolerance) -> how many bearings are not yet bounded by the load that they carry
    keep_stage: Any  # (parts, stage, gamma): derivatives of a solved stage
    combined_end: Any  # (parts, state, b, dt): the end pose of a method that is not stiffly accurate
    misfits: Any  # (parts, dt, resting) -> whether the velocities at the end of an impact do not fit the joints there
    turns_far: Any  # (parts, state, gamma) -> whether a loop may have come out on another branch
    accept: Any  # (parts, state, gamma, after): the last stage is the next knot
    combine: Any  # (parts, state, b, dt, after): the next knot from the stages' derivatives
    finish: Any  # (parts, state, targets, history, dt, after): coordinates, targets and clock
    record: Any  # (parts, state, recording, knot)
    keep: Any  # (parts, state, scene, taped, entry, kept, used, gamma, dt, number, count, order, rows) -> used: a solved stage for its derivatives


#: poses at which a stage takes the rows of contacts: the knot's, that of its first guess by one knot or by two, the knot's after a smooth step
AT_KNOT, BY_ONE, BY_TWO, AFTER_SMOOTH = range(4)

# After a smooth step the momenta that ``recall_pose`` writes are means over it, as impacts may lie anywhere in the next one; ``v`` and
# ``w`` of the work are what velocities change by in half a step.


@kernel
def let_fall(work, scene):
    """What forces do in the rest of the step to what just bounced; without it small bounces would never end."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.bounced == 1:
            contact.bounced = 2
            contact.bound = max(0.0, contact.bound + rate_along(work, contact.a, contact.b, contact.Ga[0], contact.Gb[0]))
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for side in range(2):
            if limit.bounced[side] == 1:
                fall = rate_along(work, limit.a, limit.b, limit.Ga, limit.Gb)
                limit.bounced[side] = 2
                limit.bound[side] = max(0.0, limit.bound[side] + (fall if side == 0 else -fall))


@kernel
def place_rows(model, work, scene):
    """Take the rows of contacts and limits at the pose in the work; gaps and coordinates remain those of the knot."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.used == 1:
            gap = contact.gap0
            at_knot(contact, scene, work.bodies)
            contact.gap0 = gap
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        c0 = limit.c0
        limit_at_knot(limit, model.joints[limit.joint], work.joints[limit.joint], work.bodies, scene.scratch)
        limit.c0 = c0


@inline
def changes(gap0, gap, push, least, speed, dt):
    """True when a gap closes with an impulse, or one that was closed opens with a speed, worth mentioning beside ``speed`` (m/s).

    ``push``: impulse over weight. What grazes, like the rim of a wheel, goes on as it is.
    """
    if gap0 < least:
        return gap > OPENS * speed * dt
    return gap < least and push > PUSHES * speed


@inline
def stops(model, work, contact, speed):
    """True when friction takes away at once what a contact slides with, as where it presses what slides into the ground (Painleve)."""
    first = approach(model, work, contact.a, contact.b, contact.Ga[1], contact.Gb[1]) - contact.drift[0]
    second = approach(model, work, contact.a, contact.b, contact.Ga[2], contact.Gb[2]) - contact.drift[1]
    before = sqrt(first * first + second * second)
    after = sqrt(contact.eta[0] * contact.eta[0] + contact.eta[1] * contact.eta[1])
    return before > SLIDES * speed and after < STOPPED * before


@kernel
def seizes(model, work, limits, speed):
    """True when the friction of a bearing takes away at once most of what moves in it, as where it jams."""
    first = 0
    while first < limits.shape[0]:
        beyond = first + max(limits[first].share, 1)
        moved, left, taken, slides = 0.0, 0.0, 0.0, False
        for k in range(first, beyond if limits[first].bears != 0 else first):
            limit = limits[k]
            before = approach(model, work, limit.a, limit.b, limit.Ga, limit.Gb)
            slides = slides or abs(before) > SLIDES * speed
            moved += limit.weight * before * before
            left += limit.weight * before * limit.eta
            taken -= limit.beta * before
        if slides and left < STOPPED * moved and taken > STOPPED * moved:
            return True
        first = beyond
    return False


@kernel
def is_settled(model, work, scene, dt, speed):
    """True when what touches at the knot, and nothing else, does so at the end of the stage, and slides without a blow."""
    least = CLOSED * dt
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake == 0 or contact.kind == TWIST:
            continue
        if changes(contact.gap0, contact.gap, contact.gamma / contact.weight, least, speed, dt) or stops(model, work, contact, speed):
            return False
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for side in range(2):
            if limit.awake[side] != 0:
                gap0, gap = end_gap(limit, side, limit.c0), end_gap(limit, side, limit.c)
                if changes(gap0, gap, limit.gamma[side] / limit.weight, least, speed, dt):
                    return False
    return not seizes(model, work, scene.limits, speed)


@kernel
def is_coming(model, work, scene, least, fast):
    """True when something will close in this step, or is closed and still comes nearer by more than ``fast`` (m/s)."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake == 0:
            continue
        if contact.gap0 >= least and contact.gap < 0.0:
            return True
        if contact.stiffness == 0.0 and contact.gap0 < least and approach(model, work, contact.a, contact.b, contact.Ga[0], contact.Gb[0]) < -fast:
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


def build_contact_steps(name: str, file: str, *, stages: Stages, solve: Any, limit_work: Any) -> Any:
    """The kernel ``run(parts, state, inputs, options, touching, scene, recording, tape, log, used, start, first, count, dt, taped, entry,
    kept, kept_used)``.

    It makes ``count`` steps from knot ``first`` of the recording, with the inputs from step ``start`` on; ``used``: length of the log
    so far; ``options``: with ``multistep`` and ``tableau``. With ``entry`` >= 0 its stages are written, for derivatives, into ``taped`` from there on and
    their contacts into ``kept``. It returns (outcome, steps done, residual of the last try, length of the log, next entry, length of
    ``kept``). ``solve``: the interior point of the formulation's step problem;
    ``limit_work``: of ``build_granting`` for it.
    """
    (recall, recall_pose, carry_on, aggregate, aggregate_stage, guess, pose_at_guess, set_targets, problem, clear, bear, keep_stage,
     combined_end, misfits, turns_far, accept, combine, finish, record, keep) = stages

    def return_to_knot(parts, state, smooth):
        """Put the knot's pose into the work, whose bodies went along with the iterate."""
        recall_pose(parts, state, smooth)
        for i in range(parts.work.bodies.shape[0] - 1):
            store9(parts.work.bodies[i].R, quaternion.to_matrix(load4(parts.work.bodies[i].q)))

    return_to_knot = specialise(return_to_knot, f"{name}_return", file)

    def watch_step(parts, state, scene, smooth):
        """``watch`` from the knot to the end of the stage just solved. Where nothing has to be solved again, its bodies are at its end."""
        if scene.shapes.pairs.shape[0] == 0:
            return 0
        return_to_knot(parts, state, smooth)
        bodies = parts.work.bodies
        count = watch(bodies, scene, False)
        if count == 0:
            for i in range(bodies.shape[0] - 1):
                store3(bodies[i].x, load3(bodies[i].xn))
                store4(bodies[i].q, load4(bodies[i].qn))
                store9(bodies[i].R, load9(bodies[i].Rn))
        return count

    watch_step = specialise(watch_step, f"{name}_watch", file)

    def try_encounter(parts, state, gamma, sharp, touching, scene, count, speed, order, impacts, smooth):
        """A stage from its first guess, less sharply and with other compliances until it is solved.

        With ``impacts``, again with what woke up or bounced; without, the outcome is ``WOKEN`` where something did. ``sharp``:
        how much smaller than usual products end, as impulses of a stage are smaller than those of a step.
        """
        model, work = parts.model, parts.work
        outcome, iterations, size = NOT_CONVERGED, 0, 0.0
        compliance, sharp = touching.compliance, sharp * sharpness(touching.tolerance)
        for i in range(scene.limits.shape[0]):
            scene.limits[i].cap = gamma * scene.limits[i].friction
        guess_impulses(work, scene, state.bodies, state.joints, gamma)
        clear_islands(scene)
        for attempt in range(len(TRIES) + len(COMPLIANCES) - 1):
            if attempt >= len(TRIES) and compliance == 0.0:
                break
            if attempt == WITHOUT and touching.limited > 0:
                deny(scene, gamma)
            wide, blunt, give = TRIES[attempt] if attempt < len(TRIES) else TRIES[0]
            softness = COMPLIANCES[attempt - len(TRIES) + 1] if attempt >= len(TRIES) else COMPLIANCES[0]
            encounter = Encounter(problem(parts, gamma, softness * compliance), scene, gamma)
            for again in range(ROUNDS):
                follow_contacts(scene, work.bodies)
                soften_stage(scene, gamma, sharp * give)
                recall(parts, state)
                guess(parts, state, order)
                clear(parts)
                outcome, spent, size = solve(encounter, touching.tolerance, touching.max_iterations, speed, wide, sharp * blunt)
                iterations += spent
                if outcome != SOLVED:
                    break
                woken = wake(work, scene)
                if woken > 0 and not impacts:
                    return WOKEN, iterations, size
                wrong = bear(parts, gamma, scene, again, touching.tolerance) + bear_twists(scene, again)
                if impacts:
                    woken += bounce(model, work, scene, gamma, touching.resting)
                granted = limit_work(encounter, touching.tolerance) if woken + wrong == 0 and touching.limited > 0 else 0
                if granted < 0 and touching.limited > 1:
                    if not impacts:
                        return WOKEN, iterations, size
                    outcome = GAINED
                    break
                if woken + wrong == 0 and granted <= 0:
                    if impacts:  # which returns to the velocities of the knot: after the work
                        woken = watch_step(parts, state, scene, smooth)
                    if woken < 0:
                        return THROUGH, iterations, -1.0 - woken
                    if woken == 0:
                        break
                if impacts:
                    let_fall(work, scene)
                count += woken
                outcome = NOT_CONVERGED
            if outcome == SOLVED or (count == 0 and compliance == 0.0):
                break
            if attempt == len(TRIES) - 2:
                forget_guesses(scene)
            if impacts and (attempt > 0 or outcome == GAINED) and scene.shapes.pairs.shape[0] > 0:
                return_to_knot(parts, state, smooth)
                straighten(work.bodies, scene, max(attempt, 1))
        return outcome, iterations, size

    try_encounter = specialise(try_encounter, f"{name}_try", file)

    def multistep(parts, state, dt, touching, scene, count, speed):
        """A step of BDF2 as a contact problem. Returns (outcome, iterations, residual, gamma)."""
        gamma = bdf_gamma(2, dt)
        aggregate(parts, state, 2)
        guess(parts, state, 2)
        pose_at_guess(parts, gamma)
        place_rows(parts.model, parts.work, scene)
        outcome, iterations, size = try_encounter(parts, state, gamma, (gamma / dt) ** 2, touching, scene, count, speed, 2, False, True)
        if outcome == SOLVED and not is_settled(parts.model, parts.work, scene, dt, speed):
            outcome = WOKEN
        return outcome, iterations, size, gamma

    multistep = specialise(multistep, f"{name}_multistep", file)

    def dirk(parts, state, targets, dt, options, touching, scene, count, speed, taped, entry, kept, kept_used):
        """The stages of a DIRK method, each a contact problem. Returns (outcome, iterations, residual, gamma of the last one, length of ``kept``)."""
        tableau, total, gamma, size = options.tableau, 0, dt, 0.0
        model, work = parts.model, parts.work
        aggregate(parts, state, 1)
        for stage in range(tableau.b.shape[0]):
            gamma = dt * tableau.a[stage, stage]
            set_targets(parts, targets[stage])
            aggregate_stage(parts, state, tableau.a, stage, dt)
            guess(parts, state, 1)
            pose_at_guess(parts, gamma)
            place_rows(model, work, scene)
            outcome, iterations, size = try_encounter(parts, state, gamma, (gamma / dt) ** 2, touching, scene, count, speed, 1, False, True)
            total += iterations
            if outcome == SOLVED and not is_settled(model, work, scene, dt, speed):
                outcome = WOKEN
            if outcome != SOLVED:
                return outcome, total, size, gamma, kept_used
            keep_stage(parts, stage, gamma)
            if entry >= 0:
                kept_used = keep(
                    parts, state, scene, taped, entry + stage, kept, kept_used, gamma, dt, stage, tableau.b.shape[0], 0, BY_ONE,
                )
        if not tableau.stiffly_accurate:
            combined_end(parts, state, tableau.b, dt)
            for i in range(scene.limits.shape[0]):
                limit = scene.limits[i]
                limit_at_end(limit, model.joints[limit.joint], work.joints[limit.joint], work.bodies, scene.scratch)
            if wake(work, scene) > 0:
                return WOKEN, total, size, gamma, kept_used
        return SOLVED, total, size, gamma, kept_used

    dirk = specialise(dirk, f"{name}_dirk", file)

    def contact_step(parts, state, inputs, index, dt, options, touching, scene, after, taped, entry, kept, kept_used):
        """One step of length ``dt`` with the inputs ``index``. Returns (outcome, iterations, residual, gamma by which forces follow, number
        of stages, length of ``kept``).

        ``after``, which may be ``state`` itself, is written only if the step is solved.
        """
        before, stages = kept_used, 1
        model, work = parts.model, parts.work
        targets, history = inputs.target[index + 1], history_of(state.clock, dt)
        smooth = history >= 1.0
        recall(parts, state)
        recall_pose(parts, state, smooth)
        if strays(model, work, state.bodies, touching.sizes, dt, False):
            return LOST, 0, 0.0, dt, 0, before
        evaluate_pose(model, work)
        find_features(work.bodies, scene.contacts, scene.shapes, 0.0)
        carry_on(parts, state, dt)
        g = load3(model.gravity)
        speed = max(dt * sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]), 1e-3)
        met = watch(work.bodies, scene, True)
        if met < 0:
            return THROUGH, 0, -1.0 - met, dt, 0, before
        count = prepare(model, work, scene, dt, dt, speed)
        put_all_rows(scene, work.bodies)
        outcome, total, size, gamma, resting = WOKEN, 0, 0.0, dt, inf
        able = options.multistep != 1 and (options.tableau.stiffly_accurate or count == 0)
        if able and not is_coming(model, work, scene, CLOSED * dt, touching.resting + speed):
            if options.multistep == 2 and smooth:
                aggregate(parts, state, 2)
                set_targets(parts, targets)
                outcome, total, size, gamma = multistep(parts, state, dt, touching, scene, count, speed)
                if entry >= 0 and outcome == SOLVED:
                    kept_used = keep(parts, state, scene, taped, entry, kept, before, gamma, dt, 0, 1, 2, BY_TWO)
            else:
                between = inputs.stage[min(index, inputs.stage.shape[0] - 1)]
                outcome, total, size, gamma, kept_used = dirk(
                    parts, state, between, dt, options, touching, scene, count, speed, taped, entry, kept, before,
                )
                stages = options.tableau.b.shape[0]
        if outcome == SOLVED and watch_step(parts, state, scene, smooth) != 0:
            outcome = WOKEN
        whole = outcome == SOLVED and options.multistep == 0 and not options.tableau.stiffly_accurate
        if outcome != SOLVED:
            if total > 0:
                recall(parts, state)
                recall_pose(parts, state, smooth)
                evaluate_pose(model, work)
                place_rows(model, work, scene)
            history, gamma, resting = -1.0, dt, touching.resting
            aggregate(parts, state, 1)
            set_targets(parts, targets)
            outcome, iterations, size = try_encounter(parts, state, dt, 1.0, touching, scene, count, speed, 1, True, smooth)
            total += iterations
            stages = 1
            if entry >= 0 and outcome == SOLVED:
                kept_used = keep(parts, state, scene, taped, entry, kept, before, dt, dt, 0, 1, 1, AFTER_SMOOTH if smooth else AT_KNOT)
        # of an impact, or of the step with which BDF2 starts anew after it: what the next steps make of velocities that do not fit is not small
        anew = resting < inf or (options.multistep == 2 and not smooth and state.clock[0] > 0.0)
        if outcome == SOLVED and anew and options.multistep != 1 and misfits(parts, dt, touching.resting):
            return GAINED, total, size, gamma, 0, before
        if outcome == SOLVED:
            recall_pose(parts, state, smooth)
            if touching.compliance > 0.0 and turns_far(parts, state, gamma):
                return TOO_FAST, total, size, gamma, 0, before
            if strays(model, work, state.bodies, touching.sizes, 0.0, True):
                return LOST, total, size, gamma, 0, before
            keep_places(state, after)
            keep_forces(model, work, scene, after, 1.0 / gamma, resting)
            if whole:
                combine(parts, state, options.tableau.b, dt, after)
            else:
                accept(parts, state, gamma, after)
            finish(parts, state, targets, history, dt, after)
        return outcome, total, size, gamma, stages, kept_used

    contact_step = specialise(contact_step, f"{name}_step", file)

    def run(
        parts, state, inputs, options, touching, scene, recording, tape, log, used, start, first, count, dt, taped, entry, kept, kept_used,
    ):
        size = 0.0
        model, work = parts.model, parts.work
        clear_inputs(model, work)
        for index in range(count):
            knot = first + index
            begins = state.clock[0] == 0.0
            full = entry >= 0 and kept_used + options.tableau.b.shape[0] * scene.contacts.shape[0] > kept.shape[0]
            if full or used + scene.contacts.shape[0] > log.shape[0]:
                return LOG_FULL, index, size, used, entry, kept_used
            apply_inputs(model, work, inputs, start + index)
            outcome, iterations, size, gamma, stages, kept_used = contact_step(
                parts, state, inputs, start + index, dt, options, touching, scene, state, taped, entry, kept, kept_used,
            )
            if outcome != SOLVED:
                return outcome, index, size, used, entry, kept_used
            if entry >= 0:
                entry += stages
            used = write_log(scene, log, used, knot + 1, 1.0 / gamma)
            if begins:  # nothing else says what acts at a start
                note_state(state, tape, knot)
                tape.steps[knot, 0] = 0.0
            note_state(state, tape, knot + 1)
            recording.substeps[knot + 1] = 1
            recording.iterations[knot + 1] = iterations
            record(parts, state, recording, knot + 1)
        return SOLVED, count, size, used, entry, kept_used

    return specialise(run, f"{name}_run", file)
