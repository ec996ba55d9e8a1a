"""Runs of the variational integrator that remember what derivatives need, and the adjoint and forward passes over them."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.forces.loads import apply_inputs, clear_inputs
from dalembert.formulations.maximal.knot import evaluate_knot
from dalembert.formulations.maximal.pull_knot import (
    project_knot,
    pull_coordinates,
    pull_kinetic,
    pull_potential,
    pull_project,
    pull_rates,
)
from dalembert.formulations.maximal.tiny import alive
from dalembert.formulations.variational.adjoint import open_interval, pull_interval
from dalembert.formulations.variational.equations import Interval, residual, spin_after
from dalembert.formulations.variational.step import record, step, write_forces
from dalembert.kernels import inline, kernel
from dalembert.model.pose import aim_all, joint_rates, put6
from dalembert.model.records import F, fields
from dalembert.solvers.outcomes import SOLVED
from dalembert.spatial.tuples import load3, load4, load9, mat_vec, scale3, store3, store4

#: the knot with the part of the momenta that paths gave there, the velocities of the interval, and what the step's inputs add to the forces
BODY_TAPE = np.dtype(fields(F, x=3, q=4, p=3, l=3, along=6, v=3, w=3, push=6))
#: coordinates (to unwrap against) and momenta of reflected inertias at the knot, impulses, inputs, and targets at the end
JOINT_TAPE = np.dtype(fields(F, coordinate=6, spin=6, mu=6, input=6, target=6))
COUPLING_TAPE = np.dtype(fields(F, mu=0, input=0))


class VariationalTape(NamedTuple):
    """Per interval (first axis): bodies, joints, couplings; and the lengths (s) of the one before and of itself."""

    bodies: np.ndarray
    joints: np.ndarray
    couplings: np.ndarray
    clock: np.ndarray


def new_tape(bodies: int, joints: int, couplings: int, room: int) -> VariationalTape:
    """Room for some intervals."""
    return VariationalTape(
        np.zeros((room, bodies), BODY_TAPE), np.zeros((room, joints), JOINT_TAPE), np.zeros((room, couplings), COUPLING_TAPE), np.zeros((room, 2)),
    )


@kernel
def keep_before(model, state, tape, entry):
    """Write the state before a step into the tape."""
    for i in range(model.bodies.shape[0] - 1):
        body, kept = state.bodies[i], tape.bodies[entry, i]
        store3(kept.x, load3(body.x))
        store4(kept.q, load4(body.q))
        store3(kept.p, load3(body.p))
        store3(kept.l, load3(body.l))
        for c in range(6):
            kept.along[c] = body.along[c]
    for i in range(model.joints.shape[0]):
        joint, kept = state.joints[i], tape.joints[entry, i]
        for k in range(6):
            kept.coordinate[k] = joint.coordinate[k]
            kept.spin[k] = joint.spin[k]
    tape.clock[entry, 0] = state.clock[0]


@kernel
def keep_step(model, work, tape, entry, dt):
    """Write a solved step into the tape."""
    tape.clock[entry, 1] = dt
    for i in range(model.bodies.shape[0] - 1):
        body, kept = work.bodies[i], tape.bodies[entry, i]
        store3(kept.v, load3(body.v))
        store3(kept.w, load3(body.w))
        for c in range(6):
            kept.push[c] = body.push[c]
    for i in range(model.joints.shape[0]):
        at, kept = work.joints[i], tape.joints[entry, i]
        for k in range(6):
            kept.mu[k] = at.mu[k] if k < model.joints[i].rows else 0.0
            kept.input[k] = at.input[k]
            kept.target[k] = at.target[k]
    for i in range(model.couplings.shape[0]):
        tape.couplings[entry, i].mu = work.couplings[i].mu
        tape.couplings[entry, i].input = work.couplings[i].input


@kernel
def tape_steps(model, state, inputs, options, work, recording, first, count, dt, tape, entry):
    """``run_steps``, with every step written into the tape from ``entry`` on."""
    size = 0.0
    clear_inputs(model, work)
    for index in range(count):
        knot = first + index
        before = state.clock[0]
        apply_inputs(model, work, inputs, index)
        keep_before(model, state, tape, entry + index)
        outcome, iterations, size = step(model, state, inputs.target[index + 1], dt, options, work, state)
        if outcome != SOLVED:
            return outcome, index, size
        keep_step(model, work, tape, entry + index, dt)
        write_forces(model, work, before, dt, recording.row_force[knot], recording.coupling_force[knot])
        recording.substeps[knot + 1] = 1
        recording.iterations[knot + 1] = iterations
        record(model, state, recording, knot + 1)
    return SOLVED, count, size


@kernel
def recall_interval(model, work, tape, entry):
    """Put a taped interval into the work, its knot evaluated."""
    for i in range(model.bodies.shape[0] - 1):
        body, kept = work.bodies[i], tape.bodies[entry, i]
        store3(body.x, load3(kept.x))
        store4(body.q, load4(kept.q))
        store3(body.p, load3(kept.p))
        store3(body.l, load3(kept.l))
        store3(body.v, load3(kept.v))
        store3(body.w, load3(kept.w))
        for c in range(6):
            body.push[c] = kept.push[c]
            body.along[c] = kept.along[c]
    for i in range(model.joints.shape[0]):
        at, kept = work.joints[i], tape.joints[entry, i]
        for k in range(6):
            at.coordinate[k] = kept.coordinate[k]
            at.spin[k] = kept.spin[k]
            at.mu[k] = kept.mu[k]
            at.input[k] = kept.input[k]
            at.target[k] = kept.target[k]
    for i in range(model.couplings.shape[0]):
        work.couplings[i].mu = tape.couplings[entry, i].mu
        work.couplings[i].input = tape.couplings[entry, i].input
    evaluate_knot(model, work)
    aim_all(model, work)


@kernel
def evaluate_interval(interval):
    """Evaluate the knot in the work and the equations at its iterate; False when that is of no use."""
    evaluate_knot(interval.model, interval.work)
    aim_all(interval.model, interval.work)
    _, fine = residual(interval)
    return fine


@kernel
def spins_after(model, work, dt, spins):
    """Momenta (joints, 6) of reflected inertias after the interval in the work."""
    for i in range(model.joints.shape[0]):
        joint = model.joints[i]
        for k in range(joint.locks, joint.rows):
            direction = joint.row_direction[k]
            if joint.armature[direction] > 0.0:
                spins[i, direction] = spin_after(work.bodies, joint, work.joints[i], direction, dt)


@inline
def clear_step(model, bars):
    """Bars of one step: nothing yet."""
    for i in range(model.bodies.shape[0] - 1):
        bar = bars.bodies[i]
        for c in range(3):
            bar.x[c] = bar.phi[c] = bar.v[c] = 0.0
        for c in range(4):
            bar.w[c] = 0.0
        for c in range(6):
            bar.push[c] = 0.0
            bar.before[6 + c] = 0.0
            bar.before[12 + c] = 0.0
    for i in range(model.joints.shape[0]):
        bar = bars.joints[i]
        for k in range(6):
            bar.mu[k] = bar.input[k] = bar.target[k] = bar.before[k] = 0.0
    for i in range(model.couplings.shape[0]):
        bars.couplings[i].mu = bars.couplings[i].input = 0.0


@kernel
def pull_knots(model, work, compliance, recording, inputs, coordinates, prescribed, first, last, cot, bars, into, scratch):
    """What is read at knots ``first`` to ``last - 1``, weighted with ``cot``, by the states there and the inputs that they are read with.

    ``coordinates`` (knots, joints, 6) unwrapped; ``prescribed``: rates (knots, joints, 6) of driven directions.
    """
    velocity, wanted, impulse, coupling_impulse, rate = scratch
    for knot in range(first, last):
        if not asked_for(cot, knot):
            continue
        recall_knot(model, work, recording, inputs, coordinates, knot)
        half = 0.5 * recording.step_before[knot]
        clear_step(model, bars)
        for i in range(model.bodies.shape[0] - 1):
            momentum, fixed, bar = recording.momentum[knot, i], model.bodies[i], bars.bodies[i]
            linear = scale3(1.0 / fixed.mass, load3(momentum))
            angular = mat_vec(load9(fixed.inertia_inverse), load3(momentum[3:]))
            put6(velocity[0, i], linear, angular)
            put6(velocity[1, i], linear, angular)
        project_knot(
            model, work, compliance, half, recording.momentum[knot], prescribed[knot], velocity[0], wanted, impulse, coupling_impulse,
        )
        joint_rates(model, work, velocity[0], rate)
        for i in range(model.bodies.shape[0] - 1):
            for c in range(6):
                bars.bodies[i].u[c] = velocity[0, i, c]
                bars.bodies[i].du[c] = cot.velocity[knot, i, c]
        pull_rates(model, work, bars, cot.rate[knot])
        pull_coordinates(model, work, bars, cot.coordinate[knot])
        if cot.energy[knot, 0] != 0.0:
            pull_kinetic(model, work, bars, cot.energy[knot, 0], rate)
        if cot.energy[knot, 1] != 0.0:
            pull_potential(model, work, bars, cot.energy[knot, 1])
        if pull_project(model, work, bars, compliance, half, velocity[1], into.rate[knot]) < 0.0:
            return False
        for i in range(model.bodies.shape[0] - 1):
            bar, state = bars.bodies[i], into.body[knot, i]
            for c in range(3):
                state[c] += bar.x[c]
                state[3 + c] += bar.phi[c]
            for c in range(6):
                state[6 + c] += bar.before[6 + c]
                into.push[knot, i, c] += bar.push[c]
        for i in range(model.joints.shape[0]):
            bar = bars.joints[i]
            for k in range(6):
                into.spin[knot, i, k] += bar.before[k]
                into.input[knot, i, k] += bar.input[k]
                into.target[knot, i, k] += bar.target[k]
    return True


@inline
def asked_for(cot, knot):
    """Whether anything is read at a knot besides poses."""
    if cot.energy[knot, 0] != 0.0 or cot.energy[knot, 1] != 0.0:
        return True
    for i in range(cot.velocity.shape[1]):
        for c in range(6):
            if cot.velocity[knot, i, c] != 0.0:
                return True
    for i in range(cot.rate.shape[1]):
        for c in range(6):
            if cot.rate[knot, i, c] != 0.0 or cot.coordinate[knot, i, c] != 0.0:
                return True
    return False


@inline
def recall_knot(model, work, recording, inputs, coordinates, knot):
    """Put a recorded knot, with the inputs that it is read with, into the work and evaluate it."""
    for i in range(model.bodies.shape[0] - 1):
        store3(work.bodies[i].x, load3(recording.position[knot, i]))
        store4(work.bodies[i].q, load4(recording.orientation[knot, i]))
        store3(work.bodies[i].p, load3(recording.momentum[knot, i]))
        store3(work.bodies[i].l, load3(recording.momentum[knot, i, 3:]))
    given = max(inputs.wrench.shape[0], max(inputs.joint.shape[0], inputs.tension.shape[0]))
    clear_inputs(model, work)
    apply_inputs(model, work, inputs, min(knot, max(given - 1, 0)))
    for i in range(model.joints.shape[0]):
        at = work.joints[i]
        for k in range(6):
            at.target[k] = inputs.target[knot, i, k]
            at.spin[k] = recording.spin[knot, i, k]
            at.coordinate[k] = coordinates[knot, i, k]
    evaluate_knot(model, work)
    aim_all(model, work)


@kernel
def pull_steps(model, work, compliance, tape, first, last, bars, at_knots, knots, impulses, ties, pushes, joint_bars, tensions):
    """The adjoint from the end of entry ``last - 1`` back to the beginning of entry ``first``, with the cotangents in ``after``.

    ``knots`` (entries,): the knot that an entry begins at, whose cotangents ``at_knots`` are added there, or -1; ``impulses`` (entries, joints, 6): cotangents of impulses of the rows, ``ties``
    (entries, couplings) of those of couplings, or none. Writes the bars of inputs and targets per entry. Returns the worst residual of the adjoint equations, relative; -1 where one could not be solved.
    """
    worst = 0.0
    for entry in range(last - 1, first - 1, -1):
        recall_interval(model, work, tape, entry)
        before, dt = tape.clock[entry, 0], tape.clock[entry, 1]
        interval = Interval(model, work, dt, 0.5 * (before + dt), compliance)
        clear_step(model, bars)
        if impulses.shape[0] > 0:
            for i in range(model.joints.shape[0]):
                for k in range(model.joints[i].rows):
                    bars.joints[i].mu[k] = impulses[entry - first, i, k]
            for i in range(model.couplings.shape[0]):
                bars.couplings[i].mu = ties[entry - first, i]
        if not open_interval(interval, bars):
            return -1.0
        worst = max(worst, pull_interval(interval, bars))
        knot = knots[entry - first]
        for i in range(model.bodies.shape[0] - 1):
            bar = bars.bodies[i]
            for c in range(3):
                bar.after[c] = alive(bar.x[c])
                bar.after[3 + c] = alive(bar.phi[c])
            for c in range(6):
                bar.after[6 + c] = alive(bar.before[6 + c])
                bar.after[12 + c] = alive(bar.before[12 + c])
                pushes[entry - first, i, c] = bar.push[c]
            if knot >= 0:
                for c in range(18):
                    bar.after[c] += at_knots.body[knot, i, c]
        for i in range(model.joints.shape[0]):
            bar = bars.joints[i]
            for k in range(6):
                bar.after[k] = alive(bar.before[k])
                if knot >= 0:
                    bar.after[k] += at_knots.spin[knot, i, k]
                joint_bars[entry - first, 0, i, k] = bar.input[k]
                joint_bars[entry - first, 1, i, k] = bar.target[k]
        for i in range(model.couplings.shape[0]):
            tensions[entry - first, i] = bars.couplings[i].input
    return worst
