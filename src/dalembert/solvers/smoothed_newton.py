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
from math import inf, sqrt
from typing import Any

from dalembert.contact.cone import sliding_bound
from dalembert.contact.nodes import Nodes, gap_speed, limit_rate, takes_part
from dalembert.contact.records import TWIST
from dalembert.contact.smoothed import settle, smoothed_residual, smoothed_rows
from dalembert.contact.smoothed_limits import begin_limit, limit_residual_smoothed, limit_rows, settle_limit, take_off
from dalembert.kernels import inline, kernel, specialise
from dalembert.linalg import clear, factor, solve
from dalembert.solvers.interior_point import (
    CENTRED,
    NOISE,
    ROUNDING,
    SHARP,
    aim,
    off_centre,
    presses,
    products,
    rubs,
    runs_away,
    sharpness,
    slides_on_many,
)
from dalembert.solvers.outcomes import NOT_CONVERGED, SINGULAR, SOLVED, TAKEN_BACK

#: a step whose equations rounding keeps from being solved is tried with products so many times less sharp, as the interior point method does, ...
BLUNT = 100.0
#: ... but only as long as they stay below this part of the square of what gravity does in a step: slacks of what carries weight are then no more
#: than this part of that velocity
BLUNTEST = 2e-6
#: most iterations; at the sharpest products it gives up when so many in a row have not made the residual smaller by this factor
MOST, IDLE, SLOW = 30, 4, 0.5
#: products are aimed at this part of the square of what the equations miss, if that is more than they shall be in the end
SMOOTH = 1e-3
#: where that was too bold for a whole step to help, they begin again at BACK of that square; then they fall no faster than by FALL, only where contacts
#: miss no more than NEAR times their root, and are raised again after so many directions in a row of which no more than a quarter could be gone
BACK, FALL, NEAR, STALLS = 0.1, 0.05, 3.0, 2
#: or where contacts miss more than so many times their root
LOST = 100.0
#: so they do from the first iteration where more contacts than this take part, as in heaps of boxes, where boldness loses more than it gains:
#: then they go by this part of what the bodies' equations miss, too
MANY, UNBALANCED = 50, 0.2
#: up to then a whole step helps that does not make the sum of squares larger by this factor
BOLD = 4.0
#: a step along a direction is no longer halved below this
SHORTEST = 0.2
#: impulses between two bodies that touch (gaps in m) begin as so many times what gravity does to the pair's reduced mass in the step
BETWEEN, TOUCHING = 3.0, 1e-6
#: impulses beyond so many times what gravity does in a step are large
MUCH = 10.0
#: residuals of contacts below this part of the tolerance, or of the slack that belongs to the largest impulse, are left alone
LEFT = 0.5
#: where several contacts press and some slide, slacks are found to this part, in at most so many iterations more: the motion depends on their shares
FINE, POLISHING = 1e-3, 2


@inline
def can_be_smoothed(scene):
    """Whether all contacts have round cones."""
    for i in range(scene.contacts.shape[0]):
        if scene.contacts[i].awake != 0 and scene.contacts[i].edges > 0:
            return False
    return True


@kernel
def missed(scene, kappa):
    """What the equations of contacts and limits miss: the largest (m/s), and the sum of squares."""
    worst, total = 0.0, 0.0
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            r0, r1, r2 = smoothed_residual(contact, kappa)
            worst = max(worst, abs(r0) / min(contact.tau, 1.0))
            worst = max(worst, max(abs(r1), abs(r2)) / min(contact.sigma, 1.0))
            total += r0 * r0 + r1 * r1 + r2 * r2
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        if takes_part(limit):
            r0, r1, r2 = limit_residual_smoothed(limit, kappa)
            worst = max(worst, max(max(abs(r0), abs(r1)), abs(r2)))
            total += r0 * r0 + r1 * r1 + r2 * r2
    return worst, total


@kernel
def aim_at(scene, speed, blunt):
    """What the interior point method would aim at (m^2/s^2), by the impulses of the iterate, and the least slack (m/s) of what holds then."""
    top = 0.0
    pressing = 0
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            top = max(top, contact.gamma / contact.weight)
            pressing += 1 if presses(contact) else 0
    firm = max(top, speed)
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        top = max(top, max(max(limit.gamma[0], limit.gamma[1]) / limit.weight, rubs(limit, speed)))
        if limit.cap > 0.0:
            firm = max(firm, limit.cap / limit.unit)
    goal = aim(top, pressing, speed, blunt)
    return goal, goal / max(firm, top)


@kernel
def load_smoothed(encounter, kappa, noise):
    """Residuals of the nodes' rows into the solver's vector."""
    scene, vector = encounter.scene, encounter.step.work.vector
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            v = vector[contact.node].v
            v[0], v[1], v[2] = smoothed_rows(contact, kappa, noise)
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        if takes_part(limit):
            v = vector[limit.node].v
            v[0], v[1], v[2] = limit_rows(limit, kappa, noise)


@kernel
def is_taken_back(scene, dt, speed):
    """Whether an impulse that is large beside what gravity does, which makes ``speed`` (m/s), meets no answer of its gap, since a joint takes it back whole: what the
    contact gives way by alone bounds it then, and it would grow from step to step.
    """
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        large = contact.awake != 0 and contact.kind != TWIST and contact.stiffness == 0.0 and contact.gamma > MUCH * speed * contact.weight
        if large and contact.gap / dt - contact.bound < 0.5 * contact.soft * contact.gamma:
            return True
    return False


@kernel
def push_all(encounter, step):
    """Impulses less ``step`` times the solution of the nodes' rows."""
    scene, vector = encounter.scene, encounter.step.work.vector
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            v = vector[contact.node].v
            contact.gamma -= step * v[0]
            contact.beta[0] -= step * v[1]
            contact.beta[1] -= step * v[2]
            contact.psi = 0.0
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        if takes_part(limit):
            v = vector[limit.node].v
            take_off(limit, step * v[0], step * v[1], step * v[2])


@kernel
def settle_all(scene, kappa):
    """Put all contacts and limits inside their cones; False where a sliding velocity is beyond its bound."""
    fine = True
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            settle(contact, kappa)
            fine = fine and contact.psi >= sliding_bound(contact)
    for i in range(scene.limits.shape[0]):
        if takes_part(scene.limits[i]):
            fine = settle_limit(scene.limits[i], kappa) and fine
    return fine


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
        step, contacts, limits, dt = encounter.step, encounter.scene.contacts, encounter.scene.limits, encounter.dt
        rows, fine = residual(step)
        if not fine:
            return 0.0, False
        _, fine = node_residual(encounter)
        if not fine:
            return 0.0, False
        for i in range(contacts.shape[0]):
            if contacts[i].awake != 0:
                contacts[i].s = gap_speed(contacts[i], dt)
        for i in range(limits.shape[0]):
            for side in range(2):
                limits[i].s[side] = limit_rate(limits[i], side, dt, 0.0)
        own, fine = measure(step)
        return max(rows, own), fine

    balance = specialise(balance, f"{name}_balance", file)

    def begin(encounter, speed, warm):
        """Impulses to start from: those of the last solution, or else a guess."""
        step, scene = encounter.step, encounter.scene
        world = step.work.bodies.shape[0] - 1
        for i in range(scene.contacts.shape[0]):
            contact = scene.contacts[i]
            contact.psi = 0.0
            contact.s = 0.0
            if not warm:
                contact.gamma = contact.gamma0
                contact.beta[0] = contact.beta0[0]
                contact.beta[1] = contact.beta0[1]
                if contact.b != world and contact.gap0 < TOUCHING:
                    contact.gamma = BETWEEN * contact.weight * speed
            if contact.kind == TWIST:
                contact.gamma = contact.gamma0
            if contact.awake != 0:
                scale(step, contact)
        for i in range(scene.limits.shape[0]):
            begin_limit(scene.limits[i], speed, warm)

    begin = specialise(begin, f"{name}_begin", file)

    def search(encounter, rows, kappa, tolerance, careful):
        """Go along the direction as far as that makes the equations' misses less; returns (the residuals of ``balance``, those of contacts, how far)."""
        step, scene = encounter.step, encounter.scene
        _, merit = missed(scene, kappa)
        merit = (merit + rows * rows) * (1.0 if careful else BOLD)
        far, done = 1.0, 0.0
        while True:
            move(step, far - done)
            push_all(encounter, far - done)
            done = far
            rows, fine = balance(encounter)
            worst, new = missed(scene, kappa)
            if fine and (new + rows * rows < merit or max(worst, rows) < max(tolerance, sqrt(kappa))):
                return rows, worst, far
            if far < SHORTEST:
                return rows if fine else inf, worst, far
            far *= 0.5

    search = specialise(search, f"{name}_search", file)

    def smoothed_newton(encounter, tolerance, max_iterations, speed, warm):
        step, scene, dt = encounter.step, encounter.scene, encounter.dt
        bodies, blocks, schedule, vector = step.work.bodies, step.work.blocks, step.work.schedule, step.work.vector
        if not can_be_smoothed(scene):
            return NOT_CONVERGED, 0, 0.0
        begin(encounter, speed, warm)
        rows, fine = balance(encounter)
        if not fine:
            return NOT_CONVERGED, 0, rows
        reach = 1.0
        for i in range(bodies.shape[0] - 1):
            for c in range(3):
                reach = max(reach, abs(bodies[i].x[c]))
        sharp = sharpness(tolerance)
        tolerance, blunt = max(tolerance, ROUNDING * reach / dt), sharp
        goal, slack = aim_at(scene, speed, blunt)
        own, _ = missed(scene, goal)
        size, least = max(rows, own), inf
        careful = scene.contacts.shape[0] > MANY
        missing = own + UNBALANCED * rows if careful else own
        kappa = max(goal, (BACK if careful and warm else SMOOTH) * missing * missing)
        iteration, polishing, idle, stalls = 0, 0, 0, 0
        while iteration < min(MOST, max_iterations):
            iteration += 1
            clear(blocks, schedule)
            jacobian(step)
            node_jacobian(encounter, kappa)
            if factor(blocks, schedule) >= 0:
                return SINGULAR, iteration, size
            load_vector(step, step.compliance if iteration == 2 else 0.0)
            load_smoothed(encounter, kappa, NOISE * tolerance if polishing > 0 else LEFT * min(tolerance, slack))
            solve(blocks, schedule, vector)
            rows, worst, far = search(encounter, rows, kappa, tolerance, careful)
            if rows == inf:
                return NOT_CONVERGED, iteration, rows
            last = kappa
            goal, slack = aim_at(scene, speed, blunt)
            own, _ = missed(scene, goal)
            size = max(rows, own)
            if size <= tolerance and settle_all(scene, goal):
                if runs_away(scene) or is_taken_back(scene, dt, speed):
                    return TAKEN_BACK, iteration, size
                _, largest, _, aimed = products(scene, speed, blunt)
                if largest <= SHARP * aimed and off_centre(scene, goal) < CENTRED:
                    if polishing == POLISHING or own <= FINE * slack or not slides_on_many(scene, goal):
                        return SOLVED, iteration, size
                    polishing += 1
                push_all(encounter, 0.0)
                rows, fine = balance(encounter)
                if not fine:
                    return NOT_CONVERGED, iteration, size
            if far < 1.0 and not careful:
                careful, kappa = True, max(kappa, BACK * worst * worst)
            elif not careful:
                kappa = SMOOTH * own * own
            elif worst > LOST * sqrt(kappa):
                kappa = BACK * worst * worst
            elif worst < NEAR * sqrt(kappa):
                kappa = min(kappa, max(SMOOTH * own * own, FALL * kappa))
            elif far < 0.5:
                stalls += 1
                if stalls == STALLS:
                    kappa, stalls = max(kappa, BACK * worst * worst), 0
            else:
                stalls = 0
            kappa = max(goal, kappa)
            idle = 0 if last > goal or size < SLOW * least else idle + 1
            least = min(least, size) if idle > 0 else size
            if idle == IDLE:
                if blunt > sharp or BLUNT * goal > BLUNTEST * speed * speed:
                    break
                idle, blunt = 0, BLUNT * sharp
                goal, slack = aim_at(scene, speed, blunt)
                kappa = goal
        return NOT_CONVERGED, iteration, size

    return specialise(smoothed_newton, name, file)
