"""Newton's method on a step problem with contacts smoothed by ``kappa``, before the interior point method is asked.

It solves the same equations as the interior point method in the end, all products of contacts equal to its aim (``contact/smoothed.py``, eq. 1 and 2),
but directly: its iterates need not stay inside cones, so that it starts from the forces of the step before, and a full Newton step finds
out who is open, sticks and slides. Where that settles, as it does in most steps in which nothing hits anything, it ends after one to three iterations. It
gives up early, and says so: then the interior point method has to follow its path.

A solution is one by the same measures: residuals below the tolerance, slacks and impulses inside their cones, products below ``SHARP`` times the aim, and equal
to ``CENTRED`` where several contacts press and some slide. Since the smoothed equations have the state of the step alone in them, so have the impulses.
"""
from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

from dalembert.contact.cone import sliding_bound
from dalembert.contact.nodes import Nodes, gap_speed
from dalembert.contact.smoothed import settle, smoothed_residual
from dalembert.kernels import inline, kernel, specialise
from dalembert.linalg import clear, factor, solve
from dalembert.solvers.interior_point import (
    CENTRED,
    LARGEST,
    NOISE,
    ROUNDING,
    SHARP,
    aim,
    off_centre,
    presses,
    products,
    slides_on_many,
)
from dalembert.solvers.outcomes import NOT_CONVERGED, SINGULAR, SOLVED

#: a step is tried with the products that the interior point method aims at, and then so many times less sharply, as there
SHARPNESS = (1.0, 100.0)
#: but only as long as they stay below this part of the square of what gravity does in a step: slacks of what carries weight are then no more
#: than this part of that velocity
BLUNTEST = 2e-6
#: most iterations; it gives up when three have not made the residual smaller by this factor
MOST, SLOW = 10, 0.5
#: products are aimed at this part of the square of what the contacts' equations miss, if that is more than they shall be in the end
SMOOTH = 1e-3
#: residuals of contacts below this part of the tolerance, or of the slack that belongs to the largest impulse, are left alone
LEFT = 0.5
#: where several contacts press and some slide, slacks are found to this part, in at most so many iterations more: the motion depends on their shares
FINE, POLISHING = 1e-3, 2


@inline
def can_be_smoothed(scene):
    """Whether contacts have round cones, and no limit and no dry friction takes part."""
    for i in range(scene.contacts.shape[0]):
        if scene.contacts[i].awake != 0 and scene.contacts[i].edges > 0:
            return False
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        if limit.awake[0] != 0 or limit.awake[1] != 0 or limit.cap > 0.0 or limit.bears != 0:
            return False
    return True


@kernel
def missed(scene, kappa):
    """Largest residual (m/s) of the contacts' equations."""
    size = 0.0
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            r0, r1, r2 = smoothed_residual(contact, kappa, 0.0)
            size = max(size, abs(r0) / min(contact.tau, 1.0))
            size = max(size, max(abs(r1), abs(r2)) / min(contact.sigma, 1.0))
    return size


@kernel
def aim_at(scene, speed, blunt):
    """What the interior point method would aim at (m^2/s^2), by the impulses of the iterate, and the largest of them over its weight (m/s)."""
    top = 0.0
    pressing = 0
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            top = max(top, contact.gamma / contact.weight)
            pressing += 1 if presses(contact) else 0
    return aim(top, pressing, speed, blunt), top


@kernel
def load_smoothed(encounter, kappa, noise):
    """Residuals of the nodes' rows into the solver's vector."""
    scene, vector = encounter.scene, encounter.step.work.vector
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            v = vector[contact.node].v
            v[0], v[1], v[2] = smoothed_residual(contact, kappa, noise)


@kernel
def settle_all(scene, kappa):
    """Put all contacts inside their cones; False where a sliding velocity is beyond its bound."""
    fine = True
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            settle(contact, kappa)
            fine = fine and contact.psi >= sliding_bound(contact)
    return fine


@kernel
def unsettle(scene):
    """Contacts as they are while the iteration goes on; their slacks are those that ``balance`` finds."""
    for i in range(scene.contacts.shape[0]):
        if scene.contacts[i].awake != 0:
            scene.contacts[i].psi = 0.0


def build_smoothed_newton(
    name: str, file: str, *, nodes: Nodes, mobility: Callable, residual: Callable, measure: Callable, jacobian: Callable, load_vector: Callable, move: Callable,
) -> Any:
    """The kernel ``smoothed_newton(encounter, tolerance, max_iterations, speed, blunt)`` -> (outcome, iterations, residual) of a formulation's step problem.

    Kernels as in ``build_interior_point``; ``mobility(step, i, row)`` is row M^-1 row^T of a body by itself (1/kg). The step's schedule is that of
    what is awake (``awake_part``).
    """
    node_residual, node_jacobian = nodes.residual, nodes.smoothed

    def scale(step, contact):
        """Inertias that a contact's impulses feel of its two bodies alone."""
        world = step.work.bodies.shape[0] - 1
        normal = 0.0
        first = 0.0
        second = 0.0
        if contact.a != world:
            normal += mobility(step, contact.a, contact.Ga[0])
            first += mobility(step, contact.a, contact.Ga[1])
            second += mobility(step, contact.a, contact.Ga[2])
        if contact.b != world:
            normal += mobility(step, contact.b, contact.Gb[0])
            first += mobility(step, contact.b, contact.Gb[1])
            second += mobility(step, contact.b, contact.Gb[2])
        contact.tau = 1.0 / sqrt(contact.weight * (normal + contact.soft))
        contact.sigma = 1.0 / sqrt(contact.weight * max(first, second))

    scale = specialise(scale, f"{name}_scale", file)

    def balance(encounter):
        """Size (m/s) of the residuals but those of the contacts' own equations, whose rates it puts in place; False when it is not finite."""
        step, contacts = encounter.step, encounter.scene.contacts
        rows, fine = residual(step)
        if not fine:
            return 0.0, False
        _, fine = node_residual(encounter)
        if not fine:
            return 0.0, False
        for i in range(contacts.shape[0]):
            if contacts[i].awake != 0:
                contacts[i].s = gap_speed(contacts[i], encounter.dt)
        own, fine = measure(step)
        return max(rows, own), fine

    balance = specialise(balance, f"{name}_balance", file)

    def smoothed_newton(encounter, tolerance, max_iterations, speed, blunt):
        step, scene, dt = encounter.step, encounter.scene, encounter.dt
        bodies, blocks, schedule, vector = step.work.bodies, step.work.blocks, step.work.schedule, step.work.vector
        if not can_be_smoothed(scene):
            return NOT_CONVERGED, 0, 0.0
        for i in range(scene.contacts.shape[0]):
            contact = scene.contacts[i]
            contact.psi = 0.0
            contact.s = 0.0
            contact.gamma = contact.gamma0
            contact.beta[0] = contact.beta0[0]
            contact.beta[1] = contact.beta0[1]
            if contact.awake != 0:
                scale(step, contact)
        for i in range(scene.limits.shape[0]):
            limit = scene.limits[i]
            limit.gamma[0] = 0.0
            limit.gamma[1] = 0.0
            limit.beta = 0.0
            limit.psi = 0.0
        size, fine = balance(encounter)
        if not fine:
            return NOT_CONVERGED, 0, size
        reach = 1.0
        for i in range(bodies.shape[0] - 1):
            for c in range(3):
                reach = max(reach, abs(bodies[i].x[c]))
        tolerance = max(tolerance, ROUNDING * reach / dt)
        goal, top = aim_at(scene, speed, blunt)
        own = missed(scene, goal)
        kappa = max(goal, SMOOTH * own * own)
        last, before, earlier = 1e300, 1e300, 1e300
        iteration, polishing = 0, 0
        while iteration < min(MOST, max_iterations):
            iteration += 1
            clear(blocks, schedule)
            jacobian(step)
            node_jacobian(encounter, kappa)
            if factor(blocks, schedule) >= 0:
                return SINGULAR, iteration, size
            load_vector(step, step.compliance if iteration == 2 else 0.0)
            slack = goal / max(top, speed)
            load_smoothed(encounter, kappa, NOISE * tolerance if polishing > 0 else LEFT * min(tolerance, slack))
            solve(blocks, schedule, vector)
            move(step, 1.0)
            for i in range(scene.contacts.shape[0]):
                contact = scene.contacts[i]
                if contact.awake != 0:
                    v = vector[contact.node].v
                    contact.gamma -= v[0]
                    contact.beta[0] -= v[1]
                    contact.beta[1] -= v[2]
            unsettle(scene)
            size, fine = balance(encounter)
            if not fine:
                return NOT_CONVERGED, iteration, size
            goal, top = aim_at(scene, speed, blunt)
            if top > LARGEST or (blunt > 1.0 and goal > BLUNTEST * speed * speed):
                break
            own = missed(scene, goal)
            size = max(size, own)
            if size <= tolerance and settle_all(scene, goal):
                _, worst, _, least = products(scene, speed, blunt)
                if worst <= SHARP * least and off_centre(scene, goal) < CENTRED:
                    if polishing == POLISHING or own <= FINE * goal / max(top, speed) or not slides_on_many(scene, goal):
                        return SOLVED, iteration, size
                    polishing += 1
                    unsettle(scene)
                    size, fine = balance(encounter)
                    if not fine:
                        return NOT_CONVERGED, iteration, size
            if size > tolerance and size > SLOW * earlier:
                break
            earlier, before, last = before, last, size
            kappa = max(goal, SMOOTH * own * own)
        return NOT_CONVERGED, iteration, size

    return specialise(smoothed_newton, name, file)
