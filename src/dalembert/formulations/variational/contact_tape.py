"""Variational runs with contacts that remember what derivatives need, and the adjoint pass over them.

The adjoint of an interval is that of ``adjoint``, with the rows of contacts, limits and dry friction among the equations.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.contact.events import velocity_before
from dalembert.contact.forces import note_state, write_log
from dalembert.contact.geometry import at_knot
from dalembert.contact.kept import KEPT_LIMIT, guess_from_kept, keep_again, keep_nodes, recall_nodes
from dalembert.contact.nodes import Encounter, limit_at_knot
from dalembert.forces.loads import apply_inputs, clear_inputs
from dalembert.formulations.maximal.lasting import pull_forces_at_knot
from dalembert.formulations.maximal.pull_bearings import build_bearing_pull
from dalembert.formulations.maximal.pull_contacts import (
    clear_touch,
    pull_nodes,
)
from dalembert.formulations.maximal.pull_joints import add_to3
from dalembert.formulations.maximal.pull_knot import add_outer
from dalembert.formulations.maximal.pull_pairs import fold_pairs
from dalembert.formulations.maximal.tiny import alive
from dalembert.formulations.maximal.touch_bars import AFTER, BEFORE
from dalembert.formulations.maximal.touching_weights import Touched, build_touched_refinement
from dalembert.formulations.variational.adjoint import (
    PASSES,
    chain,
    load_unknowns,
    pull_accept,
    pull_equations,
)
from dalembert.formulations.variational.contact_step import contact_step, interior_point, nodes, note_after, note_forces
from dalembert.formulations.variational.equations import (
    Interval,
    balance,
    jacobian,
    mean_velocity,
    momentum_after,
    momentum_derivative,
)
from dalembert.formulations.variational.pull_slides import pull_slides
from dalembert.formulations.variational.slides import place_slide
from dalembert.formulations.variational.step import record, write_forces
from dalembert.formulations.variational.tape import clear_step, keep_before, keep_step, new_tape, recall_interval
from dalembert.kernels import kernel
from dalembert.linalg import clear, factor
from dalembert.model.pose import put6
from dalembert.solvers.outcomes import LOG_FULL, SOLVED
from dalembert.spatial.tuples import add3, cross3, load3, load9, mat_t_vec, mat_vec, scale3

node_residual, node_jacobian, relax = nodes.residual, nodes.jacobian, interior_point.relax


class ContactVariationalTape(NamedTuple):
    """``VariationalTape`` with the limits of every interval, and where its contacts stand in the log (first, number)."""

    bodies: np.ndarray
    joints: np.ndarray
    couplings: np.ndarray
    clock: np.ndarray
    limits: np.ndarray
    span: np.ndarray


def new_contact_tape(bodies: int, joints: int, couplings: int, limits: int, room: int) -> ContactVariationalTape:
    """Room for some intervals."""
    return ContactVariationalTape(*new_tape(bodies, joints, couplings, room), np.zeros((room, limits), KEPT_LIMIT), np.zeros((room, 2), np.int64))


@kernel
def tape_contact_steps(model, state, inputs, options, work, scene, recording, forces, log, used, start, first, count, dt, tape, entry, kept, kept_used):
    """``run_contact_steps``, with every step written into the tape from ``entry`` on and its contacts into ``kept``.

    Returns also the length of ``kept``.
    """
    size = 0.0
    clear_inputs(model, work)
    for index in range(count):
        knot = first + index
        before = state.clock[0]
        if used + scene.contacts.shape[0] > log.shape[0] or kept_used + scene.contacts.shape[0] > kept.shape[0]:
            return LOG_FULL, index, size, used, kept_used
        apply_inputs(model, work, inputs, start + index)
        keep_before(model, state, tape, entry + index)
        outcome, iterations, size = contact_step(model, state, inputs.target[start + index + 1], dt, options, work, scene, state)
        if outcome != SOLVED:
            return outcome, index, size, used, kept_used
        keep_step(model, work, tape, entry + index, dt)
        kept_used = keep_nodes(scene, kept, kept_used, tape.span[entry + index], tape.limits[entry + index])
        kick = 2.0 / (before + dt)
        used = write_log(scene, log, used, knot + 1, kick)
        write_forces(model, work, before, dt, recording.row_force[knot], recording.coupling_force[knot])
        note_forces(model, scene, forces, knot, kick)
        note_after(model, work, scene, forces, knot, dt, kick, options.resting)
        note_state(state, forces, knot + 1)
        recording.substeps[knot + 1] = 1
        recording.iterations[knot + 1] = iterations
        record(model, state, recording, knot + 1)
    return SOLVED, count, size, used, kept_used


@kernel
def place_nodes(model, work, scene, dt):
    """Rows at the knot of what is awake."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            look = contact.look
            at_knot(contact, scene, work.bodies)
            place_slide(model, work, scene, contact, look, dt)
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        limit_at_knot(limit, model.joints[limit.joint], work.joints[limit.joint], work.bodies, scene.scratch)


@kernel
def recall_encounter(model, work, scene, tape, kept, begin, entry):
    """Put a taped interval into work and scene, its knot evaluated. ``kept``: the log of contacts from ``begin`` on."""
    recall_interval(model, work, tape, entry)
    recall_nodes(scene, kept, tape.span[entry, 0] - begin, tape.span[entry, 1], tape.limits[entry])
    place_nodes(model, work, scene, tape.clock[entry, 1])


@kernel
def relax_steps(model, work, scene, compliance, tape, kept, begin, first, last, kappa, tolerance, iterations):
    """Solve the steps of a tape again with products ``kappa``, each from the state that it began with. Returns an entry that failed, or -1."""
    for entry in range(first, last):
        recall_encounter(model, work, scene, tape, kept, begin, entry)
        before, dt = tape.clock[entry, 0], tape.clock[entry, 1]
        interval = Interval(model, work, dt, 0.5 * (before + dt), compliance)
        guess_from_kept(scene)
        if relax(Encounter(interval, scene, dt), kappa, tolerance, iterations) != SOLVED:
            return entry
        keep_step(model, work, tape, entry, dt)
        keep_again(scene, kept, tape.span[entry, 0] - begin, tape.span[entry, 1], tape.limits[entry])
    return -1


@kernel
def open_encounter(interval, scene, bars, touch):
    """Evaluate the equations at the solution in work and scene, factor Newton's matrix there, and note the velocities. False when singular."""
    model, work = interval.model, interval.work
    encounter = Encounter(interval, scene, interval.dt)
    _, fine = balance(interval)
    if not fine:
        return False
    _, fine = node_residual(encounter)
    if not fine:
        return False
    clear(work.blocks, work.schedule)
    jacobian(interval)
    node_jacobian(encounter)
    if factor(work.blocks, work.schedule) >= 0:
        return False
    for i in range(model.bodies.shape[0] - 1):
        body, fixed = work.bodies[i], model.bodies[i]
        linear, angular = mean_velocity(body, fixed, interval.dt)
        put6(bars.bodies[i].u, linear, angular)
        put6(work.velocity[i], linear, angular)
        put6(touch.velocity[AFTER, i], load3(body.v), mat_vec(load9(fixed.inertia_inverse), momentum_after(body, fixed, interval.dt)))
        linear, angular = velocity_before(model, work, i)
        put6(touch.velocity[BEFORE, i], linear, angular)
    return True


@kernel
def chain_velocities(interval, bars, touch):
    """From bars of the velocities just after and just before the knot to those of unknowns and momenta."""
    model, work, dt = interval.model, interval.work, interval.dt
    for i in range(model.bodies.shape[0] - 1):
        body, fixed, bar = work.bodies[i], model.bodies[i], bars.bodies[i]
        inverse = load9(fixed.inertia_inverse)
        add_to3(bar.v, 1.0, load3(touch.dvelocity[AFTER, i]))
        after = mat_vec(inverse, load3(touch.dvelocity[AFTER, i, 3:]))
        add_to3(bar.w, 1.0, mat_t_vec(momentum_derivative(body, fixed, dt), after))
        w = load3(body.w)
        add_outer(bar.inertia, 0.5 * dt, add3(scale3(body.s, after), cross3(after, w)), w)
        add_outer(bar.inertia, -1.0, after, load3(touch.velocity[AFTER, i, 3:]))
        linear = load3(touch.dvelocity[BEFORE, i])
        before = mat_vec(inverse, load3(touch.dvelocity[BEFORE, i, 3:]))
        add_to3(bar.before[6:], 1.0 / fixed.mass, linear)
        add_to3(bar.before[9:], 1.0, before)
        v = load3(touch.velocity[BEFORE, i])
        bar.mass -= (linear[0] * v[0] + linear[1] * v[1] + linear[2] * v[2]) / fixed.mass
        add_outer(bar.inertia, -1.0, before, load3(touch.velocity[BEFORE, i, 3:]))
    touch.dvelocity[:] = 0.0
    chain(interval, bars, False)


@kernel
def pull_all_equations(interval, held):
    """Adds F^T b, nodes included."""
    pull_equations(interval, held.bars)
    pull_slides(interval, held.scene, held.bars, held.touch)
    pull_nodes(held.scene, interval.model, interval.work.bodies, held.bars, held.touch, interval.dt, interval.h)
    chain_velocities(interval, held.bars, held.touch)


refine_all = build_touched_refinement("encounter", __file__, width=6, passes=PASSES, load=load_unknowns, pull=pull_all_equations)
bear_back = build_bearing_pull("encounter", __file__, refine=refine_all, chain=chain_velocities)


@kernel
def pull_encounter(interval, scene, bars, touch):
    """``pull_interval`` of an interval with contacts. Returns what is left of the unknowns' bars, relative."""
    pull_accept(interval, bars)
    left = refine_all(interval, Touched(bars, scene, touch))
    more = bear_back(interval, Touched(bars, scene, touch))
    return -1.0 if more < 0.0 else max(left, more)


@kernel
def pull_contact_steps(
    model, work, scene, compliance, tape, kept, begin, first, last, bars, touch, at_knots, knots, ends, resting, impulses, ties,
    pushes, joint_bars, tensions,
):
    """The adjoint from the end of entry ``last - 1`` back to the beginning of entry ``first``, with the cotangents in ``after``.

    ``knots`` (entries,): the knot that an entry begins at, whose cotangents ``at_knots`` are added there, or -1; ``ends``: the knot whose
    forces are what lasts of an entry, or -1. ``at_knots.push`` (knots, n + 1, 6); ``impulses``, ``ties`` as in ``pull_steps``. Writes the bars of inputs and targets per entry.
    Returns the worst residual of the adjoint equations, relative; -1 where one could not be solved.
    """
    worst = 0.0
    for entry in range(last - 1, first - 1, -1):
        recall_encounter(model, work, scene, tape, kept, begin, entry)
        before, dt = tape.clock[entry, 0], tape.clock[entry, 1]
        interval = Interval(model, work, dt, 0.5 * (before + dt), compliance)
        clear_step(model, bars)
        clear_touch(touch)
        if impulses.shape[0] > 0:
            for i in range(model.joints.shape[0]):
                for k in range(model.joints[i].rows):
                    bars.joints[i].mu[k] = impulses[entry, i, k]
            for i in range(model.couplings.shape[0]):
                bars.couplings[i].mu = ties[entry, i]
        if not open_encounter(interval, scene, bars, touch):
            return -1.0
        kick, knot = 2.0 / (before + dt), knots[entry]
        if knot >= 0:
            pull_forces_at_knot(model, work, scene, touch, kick, at_knots.push[knot], at_knots.input[knot], np.inf)
        if ends[entry] >= 0:
            pull_forces_at_knot(model, work, scene, touch, kick, at_knots.push[ends[entry]], at_knots.input[ends[entry]], resting)
        left = pull_encounter(interval, scene, bars, touch)
        if left < 0.0:
            return -1.0
        worst = max(worst, left)
        fold_pairs(scene, touch)
        for i in range(model.bodies.shape[0] - 1):
            bar = bars.bodies[i]
            for c in range(3):
                bar.after[c] = alive(bar.x[c])
                bar.after[3 + c] = alive(bar.phi[c])
            for c in range(6):
                bar.after[6 + c] = alive(bar.before[6 + c])
                bar.after[12 + c] = alive(bar.before[12 + c])
                pushes[entry, i, c] = bar.push[c]
            if knot >= 0:
                for c in range(18):
                    bar.after[c] += at_knots.body[knot, i, c]
        for i in range(model.joints.shape[0]):
            bar = bars.joints[i]
            for k in range(6):
                bar.after[k] = alive(bar.before[k])
                if knot >= 0:
                    bar.after[k] += at_knots.spin[knot, i, k]
                joint_bars[entry, 0, i, k] = bar.input[k]
                joint_bars[entry, 1, i, k] = bar.target[k]
        for i in range(model.couplings.shape[0]):
            tensions[entry, i] = bars.couplings[i].input
    return worst
