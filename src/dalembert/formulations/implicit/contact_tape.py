"""Runs of the BDF and DIRK methods with contacts that remember what derivatives need, and the adjoint pass over them.

The adjoint of a stage is that of ``adjoint``, with the rows of contacts, limits and dry friction among the equations. Their rows are
taken at a pose of their own (``contact_stages``), the knot's or that of the stage's first guess, whose bars go to the knots that it is made of.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.contact.geometry import at_knot
from dalembert.contact.kept import KEPT_LIMIT, guess_from_kept, keep_again, recall_nodes
from dalembert.contact.nodes import Encounter, limit_at_knot
from dalembert.formulations.contact_stages import AFTER_SMOOTH, AT_KNOT, BY_TWO
from dalembert.formulations.implicit.adjoint import (
    PASSES,
    add_to4,
    chain_stage,
    load_unknowns,
    pull_axles,
    pull_spin,
    pull_stage_equations,
    pull_turn,
)
from dalembert.formulations.implicit.encounter import angular_velocity, balance_at_end, interior_point, nodes
from dalembert.formulations.implicit.equations import Stage, add4, jacobian
from dalembert.formulations.implicit.state import inverse
from dalembert.formulations.implicit.tape import (
    begin_stage,
    begin_step,
    clear_stage,
    end_stage,
    new_tape,
    recall_stage,
)
from dalembert.formulations.maximal.lasting import pull_forces_at_knot, put_momenta, resting_at
from dalembert.formulations.maximal.pull_bearings import build_bearing_pull
from dalembert.formulations.maximal.pull_contacts import (
    clear_touch,
    pull_nodes,
)
from dalembert.formulations.maximal.pull_joints import add_to3
from dalembert.formulations.maximal.pull_pairs import fold_pairs
from dalembert.formulations.maximal.tiny import alive
from dalembert.formulations.maximal.touch_bars import AFTER, BEFORE, FALL
from dalembert.formulations.maximal.touching_weights import Touched, build_touched_refinement
from dalembert.kernels import inline, kernel
from dalembert.linalg import clear, factor
from dalembert.model.pose import put6
from dalembert.model.records import F, fields
from dalembert.solvers.outcomes import SOLVED
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import add3, load3, load4, scale3, store3, store9, sub3

node_residual, node_jacobian, relax = nodes.residual, nodes.jacobian, interior_point.relax

#: of the knot before the one that a step begins at
OLDER = np.dtype(fields(F, q=4, v=3, w=4))


class ContactImplicitTape(NamedTuple):
    """``ImplicitTape`` with the knot before, limits, where an entry's contacts stand in the log, and where their rows are taken."""

    bodies: np.ndarray
    joints: np.ndarray
    couplings: np.ndarray
    clock: np.ndarray
    kind: np.ndarray
    older: np.ndarray
    limits: np.ndarray
    span: np.ndarray
    rows: np.ndarray


def new_contact_tape(bodies: int, joints: int, couplings: int, limits: int, room: int) -> ContactImplicitTape:
    """Room for some stages."""
    return ContactImplicitTape(
        *new_tape(bodies, joints, couplings, room), np.zeros((room, bodies), OLDER), np.zeros((room, limits), KEPT_LIMIT),
        np.zeros((room, 2), np.int64), np.zeros(room, np.int64),
    )


@inline
def guessed(kept, older, rows):
    """Rates of a body (v, w) that the first guess of a stage carries on."""
    v, w = load3(kept.v), load4(kept.w)
    if rows == BY_TWO:
        return sub3(scale3(2.0, v), load3(older.v)), add4((2.0 * w[0], 2.0 * w[1], 2.0 * w[2], 2.0 * w[3]), load4(older.w), -1.0)
    return v, w


@kernel
def place_rows(model, work, scene, rows_at):
    """Rows of what is awake at a pose of their own."""
    for i in range(scene.contacts.shape[0]):
        if scene.contacts[i].awake != 0:
            at_knot(scene.contacts[i], scene, rows_at)
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        limit_at_knot(limit, model.joints[limit.joint], work.joints[limit.joint], rows_at, scene.scratch)


@kernel
def recall_encounter(model, work, own, scene, tape, kept, begin, entry, touch):
    """Put a taped stage into work, scratch and scene: the pose where rows are taken, and the velocities that restitution looks at."""
    recall_stage(model, work, own, tape, entry)
    rows, gamma = tape.rows[entry], tape.clock[entry, 0]
    for i in range(model.bodies.shape[0] - 1):
        at, body, older = touch.rows_at[i], tape.bodies[entry, i], tape.older[entry, i]
        x, q = load3(body.x), load4(body.q)
        store3(touch.found_at[i].x, x)
        store9(touch.found_at[i].R, quaternion.to_matrix(quaternion.normalize(q)))
        v, omega = load3(body.v), angular_velocity(q, load4(body.w))
        fall, turn = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        if rows == AFTER_SMOOTH:
            fall = scale3(0.5, sub3(v, load3(older.v)))
            turn = scale3(0.5, sub3(omega, angular_velocity(load4(older.q), load4(older.w))))
        elif rows != AT_KNOT:
            vg, wg = guessed(body, older, rows)
            x = add3(load3(body.xp), scale3(gamma, vg))
            q = add4(load4(body.qp), wg, gamma)
        store3(at.x, x)
        store9(at.R, quaternion.to_matrix(quaternion.normalize(q)))
        put6(touch.velocity[FALL, i], fall, turn)
        put6(touch.velocity[BEFORE, i], sub3(v, fall), sub3(omega, turn))
    recall_nodes(scene, kept, tape.span[entry, 0] - begin, tape.span[entry, 1], tape.limits[entry])
    place_rows(model, work, scene, touch.rows_at)


@kernel
def relax_stages(model, work, own, scene, compliance, tape, kept, begin, first, last, touch, kappa, tolerance, iterations):
    """Solve the stages of a tape again with products ``kappa``, each from what it began with. Returns an entry that failed, or -1."""
    for entry in range(first, last):
        recall_encounter(model, work, own, scene, tape, kept, begin, entry, touch)
        gamma = tape.clock[entry, 0]
        stage = Stage(model, work, own, gamma, compliance)
        guess_from_kept(scene)
        if relax(Encounter(stage, scene, gamma), kappa, tolerance, iterations) != SOLVED:
            return entry
        for i in range(model.bodies.shape[0] - 1):
            for c in range(3):
                tape.bodies[entry, i].vs[c] = own.bodies[i].v[c]
            for c in range(4):
                tape.bodies[entry, i].ws[c] = own.bodies[i].w[c]
        for i in range(model.joints.shape[0]):
            for k in range(model.joints[i].rows):
                tape.joints[entry, i].mu[k] = work.joints[i].mu[k]
        for i in range(model.couplings.shape[0]):
            tape.couplings[entry, i].mu = work.couplings[i].mu
        keep_again(scene, kept, tape.span[entry, 0] - begin, tape.span[entry, 1], tape.limits[entry])
    return -1


@kernel
def open_encounter(stage, scene, bars, touch):
    """Evaluate the equations at the solution, factor Newton's matrix there, note the velocities. False when singular."""
    model, work = stage.model, stage.work
    encounter = Encounter(stage, scene, stage.gamma)
    _, fine = balance_at_end(stage)
    if not fine:
        return False
    _, fine = node_residual(encounter)
    if not fine:
        return False
    clear(work.blocks, work.schedule)
    jacobian(stage)
    node_jacobian(encounter)
    if factor(work.blocks, work.schedule) >= 0:
        return False
    for i in range(model.bodies.shape[0] - 1):
        iterate = stage.own.bodies[i]
        put6(bars.bodies[i].u, load3(iterate.v), load3(iterate.spin))
        put6(work.velocity[i], load3(iterate.v), load3(iterate.spin))
        put6(touch.velocity[AFTER, i], load3(iterate.v), load3(iterate.spin))
    return True


@kernel
def chain_nodes(stage, bars, touch):
    """From bars of the velocities and of the pose at the end of the stage, as nodes see them, to those of unknowns and aggregate."""
    for i in range(stage.model.bodies.shape[0] - 1):
        bar = bars.bodies[i]
        for c in range(6):
            bar.du[c] += touch.dvelocity[AFTER, i, c]
            touch.dvelocity[AFTER, i, c] = 0.0
        for c in range(3):
            bar.x[c] += bar.xn[c]
            bar.phi[c] += bar.phin[c]
            bar.xn[c] = bar.phin[c] = 0.0
    chain_stage(stage, bars)


@kernel
def pull_all_equations(stage, held):
    """Adds F^T b, nodes included."""
    pull_stage_equations(stage, held.bars)
    pull_nodes(held.scene, stage.model, stage.work.bodies, held.bars, held.touch, stage.gamma, stage.gamma)
    chain_nodes(stage, held.bars, held.touch)


refine_all = build_touched_refinement("encounter", __file__, width=7, passes=PASSES, load=load_unknowns, pull=pull_all_equations)
bear_back = build_bearing_pull("encounter", __file__, refine=refine_all, chain=chain_nodes)


@kernel
def pull_encounter(stage, scene, bars, touch):
    """``pull_stage`` of a stage with contacts. Returns what is left of the unknowns' bars, relative."""
    pull_axles(stage, bars)
    chain_stage(stage, bars)
    left = refine_all(stage, Touched(bars, scene, touch))
    more = bear_back(stage, Touched(bars, scene, touch))
    return -1.0 if more < 0.0 else max(left, more)


@kernel
def pull_where_rows_are(model, tape, entry, bars, touch, steps):
    """From bars of the pose where rows are taken, and of the velocities that restitution looks at, to those of the last two knots."""
    rows, gamma = tape.rows[entry], tape.clock[entry, 0]
    for i in range(model.bodies.shape[0] - 1):
        body, older, bar, step, at = tape.bodies[entry, i], tape.older[entry, i], bars.bodies[i], steps.bodies[i], touch.rows_bar[i]
        q, w = load4(body.q), load4(body.w)
        found = touch.found_bar[i]
        add_to3(step.total, 1.0, load3(found.x))
        add_to4(step.total[3:], 1.0, pull_turn(q, load3(found.phi)))
        x_bar, phi_bar = load3(at.x), load3(at.phi)
        if rows in (AT_KNOT, AFTER_SMOOTH):
            add_to3(step.total, 1.0, x_bar)
            add_to4(step.total[3:], 1.0, pull_turn(q, phi_bar))
        else:
            _, wg = guessed(body, older, rows)
            q_bar = pull_turn(add4(load4(body.qp), wg, gamma), phi_bar)
            add_to3(bar.before, 1.0, x_bar)
            add_to4(bar.before[3:], 1.0, q_bar)
            newer = 2.0 * gamma if rows == BY_TWO else gamma
            add_to3(step.total[7:], newer, x_bar)
            add_to4(step.total[10:], newer, q_bar)
            if rows == BY_TWO:
                add_to3(step.older[7:], -gamma, x_bar)
                add_to4(step.older[10:], -gamma, q_bar)
        before, fall = touch.dvelocity[BEFORE, i], touch.dvelocity[FALL, i]
        share = 0.5 if rows == AFTER_SMOOTH else 1.0
        linear, angular = scale3(share, load3(before)), scale3(share, load3(before[3:]))
        if rows == AFTER_SMOOTH:
            down, turn = scale3(0.5, sub3(load3(before), load3(fall))), scale3(0.5, sub3(load3(before[3:]), load3(fall[3:])))
            linear, angular = add3(linear, scale3(0.5, load3(fall))), add3(angular, scale3(0.5, load3(fall[3:])))
            q1, w1 = load4(older.q), load4(older.w)
            by_w, by_q = pull_spin(q1, quaternion.multiply(inverse(q1), w1), 0.0, turn)
            add_to3(step.older[7:], 1.0, down)
            add_to4(step.older[10:], 1.0, by_w)
            add_to4(step.older[3:], 1.0, by_q)
        by_w, by_q = pull_spin(q, quaternion.multiply(inverse(q), w), 0.0, angular)
        add_to3(step.total[7:], 1.0, linear)
        add_to4(step.total[10:], 1.0, by_w)
        add_to4(step.total[3:], 1.0, by_q)
        for c in range(3):
            at.x[c] = at.phi[c] = found.x[c] = found.phi[c] = 0.0


@kernel
def pull_contact_stages(
    model, work, own, scene, compliance, tableau, tape, kept, begin, first, last, bars, touch, steps, exerting, exerted, along, resting, at_knots, knots,
    pushes, joint_bars, tensions,
):
    """The adjoint from the end of stage ``last - 1`` back to the beginning of stage ``first``, with the cotangents in ``after`` and ``older``.

    ``exerting`` (stages,): at which bars ``exerted`` (knots, n + 1, 6) on bodies and ``along`` (knots, joints, 6) directions a stage's nodes exert something, or -1.

    ``knots`` (stages,): the knot that a step begins at, by its first stage, or -1. Writes the bars of inputs and targets per stage.
    Returns the worst residual of the adjoint equations, relative; -1 where one could not be solved.
    """
    worst = 0.0
    for entry in range(last - 1, first - 1, -1):
        gamma, dt = tape.clock[entry, 0], tape.clock[entry, 1]
        number, stages, order = tape.kind[entry, 0], tape.kind[entry, 1], tape.kind[entry, 2]
        if number == stages - 1:
            begin_step(model, bars, steps, tableau.stiffly_accurate, tableau.b, dt, stages, order > 0)
        recall_encounter(model, work, own, scene, tape, kept, begin, entry, touch)
        stage = Stage(model, work, own, gamma, compliance)
        clear_stage(model, bars)
        clear_touch(touch)
        begin_stage(model, bars, steps, number, number == stages - 1, gamma)
        if not open_encounter(stage, scene, bars, touch):
            return -1.0
        if exerting[entry] >= 0:
            put_momenta(model, work, touch)
            speed = resting_at(tape.rows[entry], resting)
            pull_forces_at_knot(model, work, scene, touch, 1.0 / gamma, exerted[exerting[entry]], along[exerting[entry]], speed)
        left = pull_encounter(stage, scene, bars, touch)
        if left < 0.0:
            return -1.0
        worst = max(worst, left)
        fold_pairs(scene, touch)
        pull_where_rows_are(model, tape, entry, bars, touch, steps)
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
