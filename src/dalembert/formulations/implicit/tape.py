"""Runs of the BDF and DIRK methods that remember what derivatives need, stage by stage, and the adjoint pass over them."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.forces.loads import apply_inputs, clear_inputs
from dalembert.formulations.implicit.adjoint import add_to4, open_stage, pull_spin, pull_stage, pull_turn
from dalembert.formulations.implicit.equations import Stage, count_others, residual
from dalembert.formulations.implicit.state import inverse, record
from dalembert.formulations.implicit.step import (
    accept,
    aggregate_bdf,
    aggregate_stage,
    bdf_gamma,
    combine,
    finish,
    history_of,
    keep_stage,
    order_of_guess,
    try_stage,
)
from dalembert.formulations.implicit.tableaus import MOST_STAGES
from dalembert.formulations.maximal.pull_joints import add_to3
from dalembert.formulations.maximal.pull_knot import pull_coordinates, pull_kinetic, pull_potential, pull_rates
from dalembert.formulations.maximal.tiny import alive
from dalembert.kernels import inline, kernel
from dalembert.model.pose import aim_all, evaluate_pose, joint_rates, put6, set_targets
from dalembert.model.records import F, fields
from dalembert.solvers.outcomes import SOLVED
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import load3, load4, store3, store4

#: the state before the step, the aggregate of the stage, its solution, and what the step's inputs add to the forces
BODY_TAPE = np.dtype(fields(F, x=3, q=4, v=3, w=4, xp=3, qp=4, vp=3, wp=4, vs=3, ws=4, push=6))
#: coordinates before the step (to unwrap against), aggregate of rates of reflected inertias, impulses, inputs, targets
JOINT_TAPE = np.dtype(fields(F, coordinate=6, rp=6, mu=6, input=6, target=6))
COUPLING_TAPE = np.dtype(fields(F, mu=0, input=0))
#: cotangents of the state at the knot before (x, q, v, w), of what the stages of a step start from, and of their derivatives
BODY_STAGES = np.dtype(fields(F, older=14, total=14, k=(MOST_STAGES, 14)))
JOINT_STAGES = np.dtype(fields(F, older=6, total=6, k=(MOST_STAGES, 6)))


class ImplicitTape(NamedTuple):
    """Per stage (first axis): bodies, joints, couplings; gamma and dt (s); and its number, the number of stages of its step, and the order
    of a BDF formula (0 for a DIRK step).
    """

    bodies: np.ndarray
    joints: np.ndarray
    couplings: np.ndarray
    clock: np.ndarray
    kind: np.ndarray


class StageBars(NamedTuple):
    """What the adjoint of a step of several stages holds besides ``Bars``."""

    bodies: np.ndarray
    joints: np.ndarray


def new_tape(bodies: int, joints: int, couplings: int, room: int) -> ImplicitTape:
    """Room for some stages."""
    return ImplicitTape(
        np.zeros((room, bodies), BODY_TAPE), np.zeros((room, joints), JOINT_TAPE), np.zeros((room, couplings), COUPLING_TAPE), np.zeros((room, 2)),
        np.zeros((room, 3), np.int64),
    )


@kernel
def keep_solved(model, state, work, own, tape, entry, gamma, dt, number, count, order):
    """Write a solved stage into the tape."""
    tape.clock[entry, 0], tape.clock[entry, 1] = gamma, dt
    tape.kind[entry, 0], tape.kind[entry, 1], tape.kind[entry, 2] = number, count, order
    for i in range(model.bodies.shape[0] - 1):
        past, body, kept = state.bodies[i], own.bodies[i], tape.bodies[entry, i]
        store3(kept.x, load3(past.x))
        store4(kept.q, load4(past.q))
        store3(kept.v, load3(past.v))
        store4(kept.w, load4(past.w))
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
            kept.coordinate[k] = state.joints[i].coordinate[k]
            kept.mu[k] = at.mu[k] if k < model.joints[i].rows else 0.0
            kept.input[k] = at.input[k]
            kept.target[k] = at.target[k]
            kept.rp[k] = own.axles[i].rp[k] if own.axles.shape[0] > 0 else 0.0
    for i in range(model.couplings.shape[0]):
        tape.couplings[entry, i].mu = work.couplings[i].mu
        tape.couplings[entry, i].input = work.couplings[i].input


@kernel
def tape_step(model, state, inputs, index, dt, options, work, own, tape, entry):
    """``step``, with its stages written into the tape. Returns (outcome, iterations, residual, stages)."""
    apply_inputs(model, work, inputs, index)
    targets, history = inputs.target[index + 1], history_of(state.clock, dt)
    total, size, stages = 0, 0.0, 1
    if options.multistep == 1 or (options.multistep == 2 and history >= 1.0):
        gamma = bdf_gamma(options.multistep, dt)
        aggregate_bdf(state, own, options.multistep)
        set_targets(model, work, targets)
        outcome, total, size = try_stage(model, state, gamma, order_of_guess(history), options, work, own)
        if outcome != SOLVED:
            return outcome, total, size, 0
        keep_solved(model, state, work, own, tape, entry, gamma, dt, 0, 1, options.multistep)
        accept(state, own, gamma, state)
    else:
        between, tableau, gamma = inputs.stage[min(index, inputs.stage.shape[0] - 1)], options.tableau, dt
        stages = tableau.b.shape[0]
        for number in range(stages):
            gamma = dt * tableau.a[number, number]
            set_targets(model, work, between[number])
            aggregate_stage(state, own, tableau.a, number, dt)
            outcome, iterations, size = try_stage(model, state, gamma, 1, options, work, own)
            total += iterations
            if outcome != SOLVED:
                return outcome, total, size, 0
            keep_stage(own, number, gamma)
            keep_solved(model, state, work, own, tape, entry + number, gamma, dt, number, stages, 0)
        if tableau.stiffly_accurate:
            accept(state, own, gamma, state)
        else:
            combine(state, own, tableau.b, dt, state)
    finish(model, targets, history, dt, work, state)
    return SOLVED, total, size, stages


@kernel
def tape_steps(model, state, inputs, options, work, own, recording, first, count, dt, tape, entry):
    """``run_steps``, with every stage written into the tape from ``entry`` on. Returns also the entries used."""
    size, used = 0.0, 0
    clear_inputs(model, work)
    for index in range(count):
        outcome, iterations, size, stages = tape_step(model, state, inputs, index, dt, options, work, own, tape, entry + used)
        if outcome != SOLVED:
            return outcome, index, size, used
        used += stages
        recording.substeps[first + index + 1] = 1
        recording.iterations[first + index + 1] = iterations
        record(model, state, recording, first + index + 1)
    return SOLVED, count, size, used


@kernel
def recall_stage(model, work, own, tape, entry):
    """Put a taped stage into work and scratch."""
    for i in range(model.bodies.shape[0] - 1):
        body, kept = own.bodies[i], tape.bodies[entry, i]
        store3(body.xp, load3(kept.xp))
        store4(body.qp, load4(kept.qp))
        store3(body.vp, load3(kept.vp))
        store4(body.wp, load4(kept.wp))
        store3(body.v, load3(kept.vs))
        store4(body.w, load4(kept.ws))
        for c in range(6):
            work.bodies[i].push[c] = kept.push[c]
    for i in range(model.joints.shape[0]):
        at, kept = work.joints[i], tape.joints[entry, i]
        for k in range(6):
            at.coordinate[k] = kept.coordinate[k]
            at.mu[k] = kept.mu[k]
            at.input[k] = kept.input[k]
            at.target[k] = kept.target[k]
            if own.axles.shape[0] > 0:
                own.axles[i].rp[k] = kept.rp[k]
    for i in range(model.couplings.shape[0]):
        work.couplings[i].mu = tape.couplings[entry, i].mu
        work.couplings[i].input = tape.couplings[entry, i].input
    aim_all(model, work)


@kernel
def evaluate_stage(stage):
    """The equations at the iterate in work and scratch; False when that is of no use."""
    aim_all(stage.model, stage.work)
    _, fine = residual(stage)
    count_others(stage.model, stage.work, stage.own)
    return fine


@inline
def clear_stage(model, bars):
    """Bars of one stage: nothing yet."""
    for i in range(model.bodies.shape[0] - 1):
        bar = bars.bodies[i]
        for c in range(3):
            bar.x[c] = bar.phi[c] = bar.v[c] = 0.0
        for c in range(4):
            bar.w[c] = bar.passed[c] = 0.0
        for c in range(6):
            bar.push[c] = 0.0
        for c in range(14):
            bar.before[c] = 0.0
    for i in range(model.joints.shape[0]):
        bar = bars.joints[i]
        for k in range(6):
            bar.mu[k] = bar.input[k] = bar.target[k] = bar.before[k] = 0.0
    for i in range(model.couplings.shape[0]):
        bars.couplings[i].mu = bars.couplings[i].input = 0.0


@kernel
def begin_step(model, bars, steps, stiff, b, dt, stages, multistep):
    """Before the last stage of a step: what of the state after it goes to the knot, and what to the stages."""
    for i in range(model.bodies.shape[0] - 1):
        bar, step = bars.bodies[i], steps.bodies[i]
        for c in range(14):
            step.total[c] = step.older[c]
            step.older[c] = 0.0
            for j in range(stages):
                step.k[j, c] = 0.0 if stiff or multistep else dt * b[j] * bar.after[c]
            if not (stiff or multistep):
                step.total[c] += bar.after[c]
                bar.after[c] = 0.0
    for i in range(model.joints.shape[0]):
        bar, step = bars.joints[i], steps.joints[i]
        for k in range(6):
            step.total[k] = step.older[k]
            step.older[k] = 0.0
            for j in range(stages):
                step.k[j, k] = 0.0 if stiff or multistep else dt * b[j] * bar.after[k]
            if not (stiff or multistep):
                step.total[k] += bar.after[k]
                bar.after[k] = 0.0


@kernel
def begin_stage(model, bars, steps, number, last, gamma):
    """Bars of a stage's unknowns and of its aggregate from those of the state after the step, if it is the last one, and of its derivatives."""
    for i in range(model.bodies.shape[0] - 1):
        bar, k = bars.bodies[i], steps.bodies[i].k[number]
        if last:
            add_to3(bar.x, 1.0, load3(bar.after))
            add_to4(bar.before[3:], 1.0, load4(bar.after[3:]))
            add_to3(bar.v, 1.0, load3(bar.after[7:]))
            add_to4(bar.w, 1.0, load4(bar.after[10:]))
        for c in range(3):
            bar.v[c] += k[c] + k[7 + c] / gamma
            bar.before[7 + c] -= k[7 + c] / gamma
        for c in range(4):
            bar.w[c] += k[3 + c] + k[10 + c] / gamma
            bar.before[10 + c] -= k[10 + c] / gamma
    for i in range(model.joints.shape[0]):
        bar, k = bars.joints[i], steps.joints[i].k[number]
        for c in range(6):
            if not last:
                bar.after[c] = 0.0
            bar.after[c] += k[c] / gamma
            bar.before[c] -= k[c] / gamma


@kernel
def end_stage(model, bars, steps, a, number, dt, order):
    """From bars of the aggregate to those of the states and derivatives that it is made of."""
    newer, older = (4.0 / 3.0, -1.0 / 3.0) if order == 2 else (1.0, 0.0)
    for i in range(model.bodies.shape[0] - 1):
        bar, step = bars.bodies[i], steps.bodies[i]
        for c in range(14):
            step.total[c] += newer * bar.before[c]
            step.older[c] += older * bar.before[c]
            for j in range(number):
                step.k[j, c] += dt * a[number, j] * bar.before[c]
    for i in range(model.joints.shape[0]):
        bar, step = bars.joints[i], steps.joints[i]
        for c in range(6):
            step.total[c] += newer * bar.before[c]
            step.older[c] += older * bar.before[c]
            for j in range(number):
                step.k[j, c] += dt * a[number, j] * bar.before[c]


@kernel
def pull_steps(model, work, own, compliance, tableau, tape, last, bars, steps, at_knots, knots, pushes, joint_bars, tensions):
    """The adjoint from the end of stage ``last - 1`` back to the first one, with the cotangents in ``after`` and ``older``.

    ``knots`` (stages,): the knot that a step begins at, by its first stage, or -1. Writes the bars of inputs and targets per stage.
    Returns the worst residual of the adjoint equations, relative; -1 where one could not be solved.
    """
    worst = 0.0
    for entry in range(last - 1, -1, -1):
        gamma, dt = tape.clock[entry, 0], tape.clock[entry, 1]
        number, stages, order = tape.kind[entry, 0], tape.kind[entry, 1], tape.kind[entry, 2]
        stiff = tableau.stiffly_accurate
        if number == stages - 1:
            begin_step(model, bars, steps, stiff, tableau.b, dt, stages, order > 0)
        recall_stage(model, work, own, tape, entry)
        stage = Stage(model, work, own, gamma, compliance)
        clear_stage(model, bars)
        begin_stage(model, bars, steps, number, number == stages - 1, gamma)
        if not open_stage(stage, bars):
            return -1.0
        worst = max(worst, pull_stage(stage, bars))
        end_stage(model, bars, steps, tableau.a, number, dt, order)
        knot = knots[entry]
        for i in range(model.bodies.shape[0] - 1):
            bar = bars.bodies[i]
            for c in range(6):
                pushes[entry, i, c] = bar.push[c]
            if number == 0:
                for c in range(14):
                    bar.after[c] = alive(steps.bodies[i].total[c])
                    if knot >= 0:
                        bar.after[c] += at_knots.body[knot, i, c]
        for i in range(model.joints.shape[0]):
            bar = bars.joints[i]
            for k in range(6):
                joint_bars[entry, 0, i, k] = bar.input[k]
                joint_bars[entry, 1, i, k] = bar.target[k]
                if number == 0:
                    bar.after[k] = alive(steps.joints[i].total[k])
                    if knot >= 0:
                        bar.after[k] += at_knots.spin[knot, i, k]
        for i in range(model.couplings.shape[0]):
            tensions[entry, i] = bars.couplings[i].input
    return worst


@kernel
def pull_knots(model, work, states, targets, coordinates, cot, bars, into, rate):
    """What is read at knots with states (knots, n, 14), weighted with ``cot``, by these states."""
    for knot in range(states.shape[0]):
        clear_stage(model, bars)
        for i in range(model.bodies.shape[0] - 1):
            state, bar = states[knot, i], bars.bodies[i]
            q = load4(state[3:])
            a = quaternion.multiply(inverse(q), load4(state[10:]))
            store3(work.bodies[i].x, load3(state))
            store4(work.bodies[i].q, quaternion.normalize(q))
            put6(bar.u, load3(state[7:]), (2.0 * a[1], 2.0 * a[2], 2.0 * a[3]))
            put6(work.velocity[i], load3(bar.u), load3(bar.u[3:]))
            for c in range(6):
                bar.du[c] = cot.velocity[knot, i, c]
        for i in range(model.joints.shape[0]):
            for k in range(6):
                work.joints[i].target[k] = targets[knot, i, k]
                work.joints[i].coordinate[k] = coordinates[knot, i, k]
        evaluate_pose(model, work)
        joint_rates(model, work, work.velocity, rate)
        pull_rates(model, work, bars, cot.rate[knot])
        pull_coordinates(model, work, bars, cot.coordinate[knot])
        if cot.energy[knot, 0] != 0.0:
            pull_kinetic(model, work, bars, cot.energy[knot, 0], rate)
        if cot.energy[knot, 1] != 0.0:
            pull_potential(model, work, bars, cot.energy[knot, 1])
        for i in range(model.bodies.shape[0] - 1):
            bar, state, target = bars.bodies[i], states[knot, i], into.body[knot, i]
            for c in range(3):
                bar.phi[c] += cot.orientation[knot, i, c]
                target[c] += bar.x[c] + cot.position[knot, i, c]
            q = load4(state[3:])
            by_w, by_q = pull_spin(q, quaternion.multiply(inverse(q), load4(state[10:])), 0.0, load3(bar.du[3:]))
            add_to4(target[3:], 1.0, by_q)
            add_to4(target[3:], 1.0, pull_turn(q, load3(bar.phi)))
            add_to3(target[7:], 1.0, load3(bar.du))
            add_to4(target[10:], 1.0, by_w)
            for c in range(6):
                bar.du[c] = 0.0
