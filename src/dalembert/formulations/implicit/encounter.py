"""A stage with contacts, limits and dry friction: what its nodes need to know of it, and how it is solved.

An impulse mu enters a stage where smooth forces enter as gamma f, so that the force is mu / gamma; gaps at the end of the
stage are divided by gamma like rows. The rows along which contacts push are taken at one pose for the whole stage, which
is in the work when ``place_rows`` is called.
"""
from __future__ import annotations

from dalembert.contact.bearing import bear
from dalembert.contact.events import ROUNDS, bounce, guess_impulses, wake
from dalembert.contact.geometry import at_knot
from dalembert.contact.nodes import Encounter, build_nodes, flow, limit_at_knot
from dalembert.formulations.implicit.equations import (
    Stage,
    add4,
    balance,
    jacobian,
    load_vector,
    move,
    relative_rate,
    restart,
    rounding_floor,
    spin_derivative,
    subtract_impulse,
    turn,
    unit,
)
from dalembert.formulations.implicit.state import inverse, recall
from dalembert.formulations.maximal.knot import clear_impulses
from dalembert.formulations.maximal.sizes import measure
from dalembert.kernels import inline, kernel
from dalembert.solvers.interior_point import BLUNT, build_interior_point
from dalembert.solvers.outcomes import NOT_CONVERGED, SOLVED
from dalembert.solvers.redundant import COMPLIANCES
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import add3, dot3, load3, load4, load9, mat_vec, scale3, store3, store4, store9, sub3

#: a smooth stage in which something closed that was not expected to
WOKEN = 12


@kernel
def balance_at_end(stage):
    """The equations of a stage, with its pose where nodes look for the end of a step."""
    size, fine = balance(stage)
    for i in range(stage.work.bodies.shape[0] - 1):
        body = stage.work.bodies[i]
        store3(body.xn, load3(body.x))
        store4(body.qn, load4(body.q))
        store9(body.Rn, load9(body.R))
    return size, fine


@inline
def velocity(stage, i):
    """At the end of the stage."""
    return load3(stage.own.bodies[i].v), load3(stage.own.bodies[i].spin)


@inline
def velocity_terms(stage, i):
    """A = 1 - gamma q^-1 w of ``spin_derivative``."""
    gamma = stage.gamma
    a = relative_rate(stage.own.bodies[i], gamma)
    return (1.0 - gamma * a[0], -gamma * a[1], -gamma * a[2], -gamma * a[3])


@inline
def rate_gradient(stage, i, A, row, out):
    """Gradient of the rate along a row at the end of the stage."""
    g = (row[3], row[4], row[5])
    for c in range(3):
        out[c] = row[c]
    for c in range(4):
        out[3 + c] = dot3(g, spin_derivative(A, unit(c))[1])


@inline
def end_gradient(stage, i, row, out):
    """Gradient of what changes by ``row`` with the pose at the end, over gamma."""
    for c in range(3):
        out[c] = row[c]
        out[3 + c] = 2.0 * row[3 + c]
    out[6] = 0.0


@inline
def push(stage, i, row, impulse):
    """An impulse along a row, off the body's residual."""
    subtract_impulse(stage.work.bodies[i].r, row, impulse)


nodes = build_nodes(
    "nodes", __file__, unknowns=7, velocity=velocity, velocity_terms=velocity_terms, rate_gradient=rate_gradient, end_gradient=end_gradient,
    push=push,
)
interior_point = build_interior_point(
    "interior_point", __file__, nodes=nodes, residual=balance_at_end, measure=measure, restart=restart, jacobian=jacobian,
    load_vector=load_vector, turn=turn, move=move, floor=rounding_floor,
)
solve_encounter = interior_point.solve


@inline
def angular_velocity(q, w):
    """omega = 2 vec(q^-1 q')."""
    a = quaternion.multiply(inverse(q), w)
    return (2.0 * a[1], 2.0 * a[2], 2.0 * a[3])


@kernel
def recall_pose(model, work, state, smooth):
    """Put the knot's pose and the momenta just before it into the work.

    After a ``smooth`` step these are means over it, as impacts may lie anywhere in the next one; ``v`` and ``w`` of the work
    are what velocities change by in half a step.
    """
    for i in range(model.bodies.shape[0] - 1):
        body, past, fixed = work.bodies[i], state.bodies[i], model.bodies[i]
        store3(body.x, load3(past.x))
        store4(body.q, quaternion.normalize(load4(past.q)))
        v, omega = load3(past.v), angular_velocity(load4(past.q), load4(past.w))
        if smooth:
            store3(body.v, scale3(0.5, sub3(v, load3(past.v1))))
            store3(body.w, scale3(0.5, sub3(omega, angular_velocity(load4(past.q1), load4(past.w1)))))
        else:
            store3(body.v, (0.0, 0.0, 0.0))
            store3(body.w, (0.0, 0.0, 0.0))
        store3(body.p, scale3(fixed.mass, sub3(v, load3(body.v))))
        store3(body.l, mat_vec(load9(fixed.inertia), sub3(omega, load3(body.w))))


@inline
def fall_of(work, a, b, row_a, row_b):
    """What the rate along a row changes by in half a step."""
    world = work.bodies.shape[0] - 1
    fall = 0.0
    if a != world:
        fall += flow(row_a, load3(work.bodies[a].v), load3(work.bodies[a].w))
    if b != world:
        fall += flow(row_b, load3(work.bodies[b].v), load3(work.bodies[b].w))
    return fall


@kernel
def let_fall(work, scene):
    """What forces do in the rest of the step to what just bounced; without it small bounces would never end."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.bounced == 1:
            contact.bounced = 2
            contact.bound = max(0.0, contact.bound + fall_of(work, contact.a, contact.b, contact.Ga[0], contact.Gb[0]))
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for side in range(2):
            if limit.bounced[side] == 1:
                fall = fall_of(work, limit.a, limit.b, limit.Ga, limit.Gb)
                limit.bounced[side] = 2
                limit.bound[side] = max(0.0, limit.bound[side] + (fall if side == 0 else -fall))


@inline
def put_end(body, x, q):
    """Put a pose where nodes look for the end of a step."""
    turned = quaternion.normalize(q)
    store3(body.xn, x)
    store4(body.qn, turned)
    store9(body.Rn, quaternion.to_matrix(turned))


@kernel
def carry_on(work, state, dt):
    """The end pose of a step with the velocities of the knot."""
    for i in range(state.bodies.shape[0]):
        past = state.bodies[i]
        put_end(work.bodies[i], add3(load3(past.x), scale3(dt, load3(past.v))), add4(load4(past.q), load4(past.w), dt))


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
def place_rows_at_guess(model, work, own, gamma, scene):
    """Take the rows at the pose that the guess leads to: its error is of the second order, and so is theirs."""
    for i in range(own.bodies.shape[0]):
        body, iterate = work.bodies[i], own.bodies[i]
        store3(body.x, add3(load3(iterate.xp), scale3(gamma, load3(iterate.v))))
        store4(body.q, quaternion.normalize(add4(load4(iterate.qp), load4(iterate.w), gamma)))
        store9(body.R, quaternion.to_matrix(load4(body.q)))
    place_rows(model, work, scene)


@kernel
def try_encounter(model, state, gamma, sharp, touching, work, own, scene, count, speed, order, impacts):
    """A stage from its first guess, less sharply and with other compliances until it is solved.

    With ``impacts``, again with what woke up or bounced; without, the outcome is ``WOKEN`` where something did. ``sharp``:
    how much smaller than usual products end, as impulses of a stage are smaller than those of a step.
    """
    outcome, iterations, size = NOT_CONVERGED, 0, 0.0
    compliance = touching.compliance
    for i in range(scene.limits.shape[0]):
        scene.limits[i].cap = gamma * scene.limits[i].friction
    guess_impulses(work, scene, state.bodies, state.joints, gamma)
    for attempt in range(len(BLUNT) + len(COMPLIANCES) - 1):
        if attempt >= len(BLUNT) and compliance == 0.0:
            break
        blunt = BLUNT[attempt] if attempt < len(BLUNT) else BLUNT[0]
        softness = COMPLIANCES[attempt - len(BLUNT) + 1] if attempt >= len(BLUNT) else COMPLIANCES[0]
        encounter = Encounter(Stage(model, work, own, gamma, softness * compliance), scene, gamma)
        for again in range(ROUNDS):
            recall(model, work, state)
            guess(state, own, order)
            clear_impulses(model, work)
            outcome, spent, size = solve_encounter(encounter, touching.tolerance, touching.max_iterations, speed, sharp * blunt)
            iterations += spent
            if outcome != SOLVED:
                break
            woken = wake(work, scene)
            if woken > 0 and not impacts:
                return WOKEN, iterations, size
            wrong = bear(model, work, scene.limits, again)
            if impacts:
                woken += bounce(model, work, scene, gamma, touching.resting)
            if woken + wrong == 0:
                break
            if impacts:
                let_fall(work, scene)
            count += woken
            outcome = NOT_CONVERGED
        if outcome == SOLVED or (count == 0 and compliance == 0.0):
            break
    return outcome, iterations, size
