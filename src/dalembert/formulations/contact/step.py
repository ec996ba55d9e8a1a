"""Kernels of runs with contacts: one step, what it leaves in the records of the run, and runs of steps."""
from __future__ import annotations

from math import sqrt

from dalembert.contact.narrow import find_features
from dalembert.formulations.contact.events import bounce, prepare, remember, strays, tunnels, wake
from dalembert.formulations.contact.interior_point import interior_point, products
from dalembert.formulations.maximal.knot import apply_inputs, evaluate_knot, put6, set_targets
from dalembert.formulations.variational.equations import (
    NOT_CONVERGED,
    SOLVED,
    TOO_FAST,
    accept_spins,
    clear_impulses,
    first_guess,
    spins_too_fast,
)
from dalembert.formulations.variational.step import COMPLIANCES, accept, record, write_forces
from dalembert.kernels import kernel
from dalembert.spatial.tuples import add3, cross3, dot3, load3, load9, mat_vec, scale3

# Outcomes beyond those of a step without contacts.
LOST, LOG_FULL = 10, 11
#: a step that cannot be solved as sharply as usual is tried so many times less sharply, before it is split
BLUNT = (1.0, 100.0, 1e4)
#: how often a step is solved again with contacts that woke up or bounced
ROUNDS = 12


@kernel
def contact_step(records, scene, blocks, schedule, vector, places, targets, clock, dt, compliance, tolerance, max_iterations, resting, scratch):
    """One interval of length ``dt`` with contacts, to the ``targets`` at its end; the state and the clock change only if it is solved."""
    evaluate_knot(records)
    bodies, gravity = records.bodies, records.gravity
    set_targets(records, targets)
    find_features(bodies, scene.contacts, scene.shapes)
    before = clock[0]
    h = 0.5 * (before + dt)
    history = clock[1] if before == dt else 0.0
    order = clock[2] if history >= 3.0 else (1.0 if history == 2.0 else 0.0)
    speed = max(h * sqrt(gravity[0] * gravity[0] + gravity[1] * gravity[1] + gravity[2] * gravity[2]), 1e-3)
    first_guess(records, 0.0)
    prepare(records, scene, dt, h, speed, scratch)
    _, _, count, _ = products(scene, 1.0)
    outcome, iterations, size = NOT_CONVERGED, 0, 0.0
    for attempt in range(len(BLUNT) + len(COMPLIANCES) - 1):
        if attempt >= len(BLUNT) and compliance == 0.0:
            break
        blunt = BLUNT[attempt] if attempt < len(BLUNT) else BLUNT[0]
        softness = COMPLIANCES[attempt - len(BLUNT) + 1] if attempt >= len(BLUNT) else COMPLIANCES[0]
        for _ in range(ROUNDS):
            first_guess(records, order if count == 0 else 0.0)
            clear_impulses(records)
            outcome, spent, size = interior_point(
                records, scene, blocks, schedule, vector, dt, h, softness * compliance, tolerance, max_iterations, speed, blunt, scratch
            )
            iterations += spent
            if outcome != SOLVED:
                break
            woken = wake(records, scene, dt)
            if woken + bounce(records, scene, dt, resting) == 0:
                break
            count += woken
            outcome = NOT_CONVERGED
        if outcome == SOLVED or (count == 0 and compliance == 0.0):
            break
    if outcome == SOLVED:
        if spins_too_fast(records, dt) or tunnels(records, scene):
            return TOO_FAST, iterations, size
        if strays(bodies, places, 0.0, True):
            return LOST, iterations, size
        accept_spins(records, dt)
        better = accept(records, dt)
        clock[2] = better if history >= 3.0 else 1.0
        remember(scene)
        clock[0] = dt
        clock[1] = history + 1.0
    return outcome, iterations, size


@kernel
def note(records, scene, wrench, push, after, dt, kick):
    """Forces of contacts and limits at the knot: on bodies (n, 6), along joint directions (joints, 6); momenta just after it."""
    bodies = records.bodies
    world = bodies.shape[0] - 1
    wrench[:] = 0.0
    push[:] = 0.0
    for i in range(world):
        body = bodies[i]
        v = load3(body.v1)
        w = load3(body.w1)
        Jw = mat_vec(load9(body.inertia), w)
        s = sqrt(4.0 / (dt * dt) - dot3(w, w))
        put6(after[i], scale3(body.mass, v), scale3(0.5 * dt, add3(scale3(s, Jw), cross3(w, Jw))))
        # the share of smooth forces that belongs to the interval after (the discrete Legendre transform)
        for c in range(6):
            after[i, c] -= 0.5 * dt * body.load[c]
    joints = records.joints
    for i in range(joints.shape[0]):
        joint = joints[i]
        for k in range(joint.rows):
            share = 0.5 * dt * kick * joint.mu[k]
            for c in range(6):
                if joint.parent != world:
                    after[joint.parent, c] -= share * joint.Gp[k, c]
                after[joint.child, c] -= share * joint.Gc[k, c]
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            for k in range(3):
                force = kick * (contact.gamma if k == 0 else contact.beta[k - 1])
                for c in range(6):
                    if contact.a != world:
                        wrench[contact.a, c] += force * contact.Ga[k, c]
                    if contact.b != world:
                        wrench[contact.b, c] += force * contact.Gb[k, c]
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        force = 0.0
        if limit.awake[0] != 0:
            force += limit.gamma[0]
        if limit.awake[1] != 0:
            force -= limit.gamma[1]
        if limit.cap > 0.0:
            force += limit.beta
        push[limit.joint, limit.direction] += kick * force


@kernel
def write_log(scene, log, used, knot, kick):
    """Write the contacts of a step into the log; returns its new length."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake == 0:
            continue
        entry = log[used]
        used += 1
        entry.knot = knot
        entry.owner = contact.owner
        entry.part = contact.part
        entry.a = contact.a
        entry.b = contact.b
        entry.gap = contact.gap
        entry.normal_force = kick * contact.gamma
        for c in range(3):
            entry.point[c] = contact.p0[c]
            entry.normal[c] = contact.n0[c]
            entry.friction_force[c] = kick * (contact.beta[0] * contact.Ga[1, c] + contact.beta[1] * contact.Ga[2, c])
    return used


@kernel
def run_contact_steps(records, scene, blocks, schedule, vector, places, clock, base_load, recording, tape, log, used, inputs, first, count, dt, compliance, tolerance, max_iterations, resting, scratch):
    """``count`` steps from knot ``first`` of the recording. ``used``: length of the log so far.

    Returns (outcome, steps done, residual of the last try, length of the log).
    """
    size = 0.0
    set_targets(records, inputs.target[0])
    for index in range(count):
        knot = first + index
        before = clock[0]
        if strays(records.bodies, places, dt, False):
            return LOST, index, size, used
        if used + scene.contacts.shape[0] > log.shape[0]:
            return LOG_FULL, index, size, used
        apply_inputs(records, base_load, inputs, index)
        outcome, iterations, size = contact_step(
            records, scene, blocks, schedule, vector, places, inputs.target[index + 1], clock, dt, compliance, tolerance, max_iterations,
            resting, scratch,
        )
        if outcome != SOLVED:
            return outcome, index, size, used
        kick = 2.0 / (before + dt)
        used = write_log(scene, log, used, knot + 1, kick)
        write_forces(records, before, dt, recording.row_force[knot], recording.coupling_force[knot])
        note(records, scene, tape.wrench[knot], tape.push[knot], tape.after[knot], dt, kick)
        recording.substeps[knot + 1] = 1
        recording.iterations[knot + 1] = iterations
        record(records, recording, knot + 1, dt)
    return SOLVED, count, size, used
