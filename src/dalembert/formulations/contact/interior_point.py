"""The primal-dual interior point method that solves a step with contacts (Variational, Appendix D)."""
from __future__ import annotations

from dalembert.contact.limits import (
    limit_move,
    limit_products,
    limit_products_after,
    open_limit,
)
from dalembert.contact.node import (
    complementarity,
    node_move,
    open_contact,
    products_after,
)
from dalembert.formulations.contact.equations import (
    contact_jacobian,
    contact_residual,
    directions,
    limit_rate,
    load_contacts,
)
from dalembert.formulations.variational.equations import (
    NOT_CONVERGED,
    SINGULAR,
    SOLVED,
    first_guess,
    jacobian,
    load_vector,
    move,
    rounding_floor,
)
from dalembert.kernels import inline, kernel
from dalembert.linalg import clear, factor, solve

#: what the complementarity products are aimed at in the end (m^2/s^2): AIM, or SOFT times the square of the largest impulse
#: over its weight. A node's pivot is then never below SOFT, which keeps rounding out of the impulses. One number for all
#: contacts, since where impulses are not unique their shares would follow the ratios.
AIM, SOFT = 1e-12, 3e-9
#: a step is solved when every product is below this many times the aim
SHARP = 5.0
#: part of the way to the boundary of the cones that a step may go
BOUNDARY = 0.99
#: a predictor that gets no further than this is not corrected
SHORT = 0.2
#: once the products (m^2/s^2) are below LATE, they are shrunk alike, if a step gets at least LONG that way: making them
#: equal would move impulses that are not unique, by far more than is left to the boundary.
LATE, LONG = 1e-6, 0.7
#: gaps are known to this part of the bodies' distance from the origin
ROUNDING = 4e-13


@kernel
def products(scene, blunt):
    """Complementarity products of everything awake, in m^2/s^2: their mean, the largest, their number, and what to aim at.

    ``blunt``: how many times less sharp than usual the aim is.
    """
    top = 0.0
    total = 0.0
    count = 0
    worst = 0.0
    for i in range(scene.contacts.shape[0]):
        if scene.contacts[i].awake != 0:
            a, b, c = complementarity(scene.contacts[i])
            top = max(top, scene.contacts[i].gamma / scene.contacts[i].weight)
            total += a
            count += b
            worst = max(worst, c)
    for i in range(scene.limits.shape[0]):
        a, b, c = limit_products(scene.limits[i])
        top = max(top, max(scene.limits[i].gamma[0], scene.limits[i].gamma[1]) / scene.limits[i].weight)
        total += a
        count += b
        worst = max(worst, c)
    return total / max(count, 1), worst, count, blunt * max(AIM, SOFT * top * top)


@kernel
def mean_after(scene, step, count):
    """Mean product after a step along the direction."""
    total = 0.0
    for i in range(scene.contacts.shape[0]):
        if scene.contacts[i].awake != 0:
            total += products_after(scene.contacts[i], step)
    for i in range(scene.limits.shape[0]):
        total += limit_products_after(scene.limits[i], step)
    return total / count


@kernel
def open_all(records, scene, dt, speed):
    """A start inside all cones: by ``speed`` (m/s), or by as much as the fastest thing would go too far."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            speed = max(speed, contact.bound - contact.gap / dt)
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for side in range(2):
            if limit.awake[side] != 0:
                speed = max(speed, -limit_rate(limit, side, dt, 0.0))
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            open_contact(contact, speed, contact.gap / dt - contact.bound)
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for side in range(2):
            limit.s[side] = limit_rate(limit, side, dt, 0.0)
        open_limit(limit, speed)


@kernel
def interior_point(records, scene, blocks, schedule, vector, dt, h, compliance, tolerance, max_iterations, speed, blunt, scratch):
    """Solve the step's equations and complementarity. Returns (outcome, iterations, residual)."""
    size, fine = contact_residual(records, scene, dt, h, scratch)
    if not fine:
        first_guess(records, 0.0)
        size, fine = contact_residual(records, scene, dt, h, scratch)
        if not fine:
            return NOT_CONVERGED, 0, size
    open_all(records, scene, dt, speed)
    size, fine = contact_residual(records, scene, dt, h, scratch)
    reach = 1.0
    for i in range(records.bodies.shape[0] - 1):
        for c in range(3):
            reach = max(reach, abs(records.bodies[i].x[c]))
    tolerance = max(tolerance, ROUNDING * reach / dt)
    noise = 0.02 * tolerance
    iterations = 0
    while True:
        mean, worst, count, goal = products(scene, blunt)
        if size <= tolerance and worst <= SHARP * goal:
            return SOLVED, iterations, size
        if iterations == max_iterations:
            return NOT_CONVERGED, iterations, size
        iterations += 1
        clear(blocks, schedule)
        jacobian(records, blocks, dt, h, compliance)
        contact_jacobian(records, scene, blocks, dt)
        if factor(blocks, schedule) >= 0:
            return SINGULAR, iterations, size
        pull = compliance if iterations == 2 else 0.0
        late = count > 0 and max(mean, size) < LATE
        kappa = -goal if late else 0.0
        load_vector(records, vector, pull)
        load_contacts(scene, vector, dt, kappa, False, noise)
        solve(blocks, schedule, vector)
        step = 1.0
        if count > 0:
            step = directions(records, scene, vector, dt, kappa, False, BOUNDARY, noise)
            if not late or step < LONG:
                ratio = max(mean_after(scene, step, count), 0.0) / mean
                kappa = max(ratio * ratio * ratio * mean, goal)
                # After a short step the second-order terms say nothing: centre first.
                second = step > SHORT
                if step <= SHORT:
                    kappa = max(kappa, 0.5 * mean)
                load_vector(records, vector, pull)
                load_contacts(scene, vector, dt, kappa, second, noise)
                solve(blocks, schedule, vector)
                step = directions(records, scene, vector, dt, kappa, second, BOUNDARY, noise)
        done = 0.0
        while True:
            move_all_by(records, scene, vector, step, done)
            done = step
            new, fine = contact_residual(records, scene, dt, h, scratch)
            if fine and (new <= 2.0 * size or new <= 10.0 * tolerance or new <= 0.1 * speed):
                break
            step *= 0.5
            if step < 1e-5:
                break
        if step < 1e-5:
            if size < max(rounding_floor(records, dt), tolerance) and worst <= SHARP * goal:
                return SOLVED, iterations, size
            return NOT_CONVERGED, iterations, size
        size = new


@inline
def move_all_by(records, scene, vector, step, done):
    """Go from ``done`` to ``step`` along the direction. ``vector`` holds minus the bodies' direction, the nodes their own."""
    move(records, vector, step - done)
    for i in range(scene.contacts.shape[0]):
        if scene.contacts[i].awake != 0:
            node_move(scene.contacts[i], step - done)
    for i in range(scene.limits.shape[0]):
        limit_move(scene.limits[i], step - done)
