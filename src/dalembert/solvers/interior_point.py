"""The primal-dual interior point method (Variational, Appendix D), on any step problem with contacts.

The problem is an ``Encounter``: a step problem as ``newton`` has it (with kernels of the same names), and its scene.
"""
from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any, NamedTuple

from dalembert.contact.cone import complementarity, node_move, open_contact, products_after
from dalembert.contact.limits import limit_move, limit_products, limit_products_after, open_limit
from dalembert.contact.nodes import Nodes, gap_speed, limit_rate
from dalembert.contact.records import TWIST
from dalembert.kernels import inline, kernel, specialise
from dalembert.linalg import clear, factor, solve
from dalembert.solvers.outcomes import NOT_CONVERGED, SINGULAR, SOLVED

#: what the complementarity products are aimed at in the end (m^2/s^2): AIM, SOFT times the square of the largest impulse
#: over its weight, or, where several contacts press, REST times that of what gravity does in the step. A node's pivot is then never below SOFT, which keeps rounding
#: out of the impulses; and slacks of what rests are so far above the rounding of gaps that they say how impulses are shared that are not
#: unique. One number for all contacts, since these shares would follow the ratios.
AIM, SOFT, REST = 1e-18, 3e-9, 5e-10
#: for a tolerance (m/s) below USUAL they end so many times smaller as it is, but no more than FINEST times, from where on rounding says more than they
USUAL, FINEST = 1e-10, 1e-2
#: a step is solved when every product is below this many times the aim
SHARP = 5.0
#: part of the way to the boundary of the cones that a step may go
BOUNDARY = 0.99
#: a predictor that gets no further than this is not corrected
SHORT = 0.2
#: once the products (m^2/s^2) are below LATE, they are shrunk alike, if a step gets at least LONG that way: making them
#: equal would move impulses that are not unique, by far more than is left to the boundary.
LATE, LONG = 1e-6, 0.7
#: bounds of sliding velocities above the root of this many products belong to what slides, or holds with little to spare
SLIDING = 1e-4
#: where several contacts press and some slide, products are made equal to this part in the end, in at most so many iterations: impulses
#: that are not unique, and slides that depend on them, are then functions of the step alone, and have a derivative. Below EARLY (m^2/s^2)
#: they are made equal to LEVEL before they are shrunk: near their end, cones are too sharp for long ways.
CENTRED, CENTRING, LEVEL, EARLY = 1e-6, 8, 1e-3, 1e-5
#: products that are shrunk alike stop at a tenth of the aim (``cone.wanted``), those that will be made equal at the aim itself
FLOOR = 10.0
#: gaps are known to this part of the bodies' distance from the origin
ROUNDING = 4e-13
#: a relaxed solution begins at this speed (m/s) inside the cones, products go down to this part of their mean in an iteration, and are
#: as they shall be to this part
START, FALL, EVEN = 0.1, 0.2, 1e-9
#: mismatch of a slack and its gap, as part of the tolerance, that is left alone
NOISE = 1e-3
#: impulses over weights (m/s) beyond which their rounding would be as large as what a step may miss: nothing answers them, and they only seem to solve it
LARGEST = 4e5
#: shortest step of the line search
SHORTEST = 1e-5
#: a step that is not solved is tried from a start so many times further inside the cones, near whose boundary it may have come to a halt; from one that is inside
#: by what slides fastest (zero), since where friction presses what slides into the ground, only an impulse of that size ends it; from one that is very far inside, since
#: light bodies that friction wedges in stop heavy ones; and so many times less sharply than usual (second), before it is split; in the end without the impulses of the step
#: before. Rigid contacts give way by the third: by as much as slacks are at least, so that gaps stay positive, and impulses that joints take back whole, which no gap answers,
#: find an end; in later tries by more than slacks are, so that they do where gaps are a hair below zero
TRIES = (
    (1.0, 1.0, SOFT / FLOOR), (20.0, 1.0, 10.0 * SOFT), (0.0, 1.0, 10.0 * SOFT), (2e4, 1.0, 10.0 * SOFT), (20.0, 100.0, 10.0 * SOFT), (20.0, 1e4, 10.0 * SOFT), (20.0, 1.0, 10.0 * SOFT),
)
#: tries from this one on are without restitution, with which friction that wedges in what would rise may leave no motion
WITHOUT = 4


class InteriorPoint(NamedTuple):
    """``solve(encounter, tolerance, max_iterations, speed, blunt)`` -> (outcome, iterations, residual), and what it is made of.

    ``residual(encounter)`` -> (size in m/s, False when the iterate is of no use); ``move(encounter, step)``: iterate plus
    ``step`` times the direction; ``relax(encounter, kappa, tolerance, max_iterations)`` -> outcome: all products ``kappa`` (m^2/s^2).
    """

    solve: Any
    residual: Any
    move: Any
    relax: Any


@inline
def aim(top, pressing, speed, blunt):
    """What products are aimed at (m^2/s^2): ``top`` is the largest impulse over its weight (m/s), ``pressing`` the number of contacts that press."""
    rest = REST * speed * speed if pressing > 1 else 0.0
    return blunt * max(AIM, max(SOFT * top * top, rest))


@inline
def sharpness(tolerance):
    """How much smaller than usual products end for a tolerance (m/s)."""
    return max(min(tolerance / USUAL, 1.0), FINEST)


@inline
def presses(contact):
    """Whether a contact is closed rather than open."""
    return contact.kind != TWIST and contact.gamma > contact.weight * contact.s


@inline
def rubs(limit, speed):
    """How fast dry friction makes a joint direction in the step (m/s or rad/s): as it does, or as gravity would, which makes ``speed``, but no more than its bound could."""
    return min(limit.cap, max(abs(limit.beta), speed * limit.unit)) / limit.unit if limit.cap > 0.0 else 0.0


@kernel
def products(scene, speed, blunt):
    """Complementarity products of everything awake, in m^2/s^2: their mean, the largest, their number, and what to aim at.

    ``speed`` (m/s): what gravity does in a step; ``blunt``: how many times less sharp than usual the aim is.
    """
    top = 0.0
    total = 0.0
    count = 0
    worst = 0.0
    pressing = 0
    for i in range(scene.contacts.shape[0]):
        if scene.contacts[i].awake != 0:
            pressing += 1 if presses(scene.contacts[i]) else 0
            a, b, c = complementarity(scene.contacts[i])
            top = max(top, scene.contacts[i].gamma / scene.contacts[i].weight)
            total += a
            count += b
            worst = max(worst, c)
    for i in range(scene.limits.shape[0]):
        a, b, c = limit_products(scene.limits[i])
        top = max(top, max(max(scene.limits[i].gamma[0], scene.limits[i].gamma[1]) / scene.limits[i].weight, rubs(scene.limits[i], speed)))
        total += a
        count += b
        worst = max(worst, c)
    return total / max(count, 1), worst, count, aim(top, pressing, speed, blunt)


@kernel
def runs_away(scene):
    """Whether an impulse is so large that its rounding decides what it does."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0 and contact.gamma > LARGEST * contact.weight:
            return True
    return False


@kernel
def slides_on_many(scene, goal):
    """Whether several contacts press and some of them slide: then the motion depends on how they share what they carry."""
    count = 0
    slides = False
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0 and presses(contact):
            count += 1
            slides = slides or (contact.friction > 0.0 and contact.psi * contact.psi > SLIDING * goal)
    return count > 1 and slides


@kernel
def off_centre(scene, goal):
    """By how much, as part of it, products of contacts miss what they are aimed at; zero where only one presses or none slides."""
    if not slides_on_many(scene, goal):
        return 0.0
    worst = 0.0
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            if contact.kind != TWIST:
                worst = max(worst, abs(contact.s * contact.gamma / contact.weight - goal) / goal)
            if contact.friction > 0.0 and contact.edges == 0:
                product = contact.friction * contact.gamma * contact.psi + contact.beta[0] * contact.eta[0] + contact.beta[1] * contact.eta[1]
                worst = max(worst, abs(product / contact.weight - goal) / goal)
    return worst


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
def open_all(scene, dt, speed, even):
    """A start inside all cones: by ``speed`` (m/s), or by as much as the fastest thing would go too far; ``even`` as in ``open_limit``."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            speed = max(speed, -gap_speed(contact, dt))
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for side in range(2):
            if limit.awake[side] != 0:
                speed = max(speed, -limit_rate(limit, side, dt, 0.0))
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0:
            open_contact(contact, speed, gap_speed(contact, dt))
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for side in range(2):
            limit.s[side] = limit_rate(limit, side, dt, 0.0)
        open_limit(limit, speed, even)


@kernel
def fastest_slide(scene):
    """Largest velocity (m/s) against which friction acts."""
    speed = 0.0
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0 and contact.friction > 0.0:
            speed = max(speed, sqrt(contact.eta[0] * contact.eta[0] + contact.eta[1] * contact.eta[1]))
    return speed


@kernel
def clear_nodes(scene):
    """No impulses, so that the first residual says nothing of an earlier step."""
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        contact.gamma = 0.0
        contact.beta[0] = 0.0
        contact.beta[1] = 0.0
        contact.psi = 0.0
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        limit.gamma[0] = 0.0
        limit.gamma[1] = 0.0
        limit.beta = 0.0
        limit.psi = 0.0


@kernel
def move_nodes(scene, step):
    """Slacks and impulses plus ``step`` times their directions."""
    for i in range(scene.contacts.shape[0]):
        if scene.contacts[i].awake != 0:
            node_move(scene.contacts[i], step)
    for i in range(scene.limits.shape[0]):
        limit_move(scene.limits[i], step)


class Linear(NamedTuple):
    """How an encounter's linear systems are solved.

    ``factorise(encounter)`` -> False when the matrix is singular; ``load(encounter, second)``: the step's residuals into the work's
    ``vector``, ``second``: of the second iteration; ``solve(encounter)``: from residuals, the nodes' among them, to minus the
    directions of the step and directions of the nodes, in place; ``turn(step)``: the last of them is the one to go.
    """

    factorise: Any
    load: Any
    solve: Any
    turn: Any


def on_graph(name: str, file: str, *, nodes: Nodes, jacobian: Callable, load_vector: Callable, turn: Callable) -> Linear:
    """Linear systems by the blocks of a graph with the contacts as nodes; the kernels as in ``newton.on_graph``."""
    node_jacobian = nodes.jacobian

    def factorise(encounter):
        step = encounter.step
        blocks, schedule = step.work.blocks, step.work.schedule
        clear(blocks, schedule)
        jacobian(step)
        node_jacobian(encounter)
        return factor(blocks, schedule) < 0

    def load(encounter, second):
        step = encounter.step
        load_vector(step, step.compliance if second else 0.0)

    def solve_all(encounter):
        work = encounter.step.work
        solve(work.blocks, work.schedule, work.vector)

    return Linear(
        specialise(factorise, f"{name}_factorise", file), specialise(load, f"{name}_load", file), specialise(solve_all, f"{name}_solve", file), turn,
    )


def build_interior_point(
    name: str, file: str, *, nodes: Nodes, linear: Linear, residual: Callable, measure: Callable, restart: Callable, move: Callable,
    floor: Callable,
) -> InteriorPoint:
    """The kernels for a formulation's step problem, whose own kernels are those of ``build_newton`` on a graph.

    But for two: ``residual`` need not measure what impulses of contacts change, which is what ``measure(step)`` is for,
    with the same returns.
    """
    node_residual, _, load_nodes, directions, _ = nodes
    factorise, load, solve_all, turn = linear

    def whole_residual(encounter):
        step = encounter.step
        rows, fine = residual(step)
        if not fine:
            return 0.0, False
        missed, fine = node_residual(encounter)
        if not fine:
            return 0.0, False
        own, fine = measure(step)
        return max(rows, missed, own), fine

    whole_residual = specialise(whole_residual, f"{name}_residual", file)

    def whole_move(encounter, step):
        # the solver's vector holds minus the bodies' direction, the nodes their own
        move(encounter.step, step)
        move_nodes(encounter.scene, step)

    whole_move = specialise(whole_move, f"{name}_move", file)

    def interior_point(encounter, tolerance, max_iterations, speed, wide, blunt):
        step, scene, dt = encounter.step, encounter.scene, encounter.dt
        bodies = step.work.bodies
        clear_nodes(scene)
        size, fine = whole_residual(encounter)
        if not fine:
            if not restart(step):
                return NOT_CONVERGED, 0, size
            size, fine = whole_residual(encounter)
            if not fine:
                return NOT_CONVERGED, 0, size
        inside = wide * speed if wide > 0.0 else max(speed, fastest_slide(scene))
        open_all(scene, dt, inside, False)
        size, fine = whole_residual(encounter)
        reach = 1.0
        for i in range(bodies.shape[0] - 1):
            for c in range(3):
                reach = max(reach, abs(bodies[i].x[c]))
        tolerance = max(tolerance, ROUNDING * reach / dt)
        noise = NOISE * tolerance
        iterations, levelling, centring, centre = 0, 0, 0, 0.0
        while True:
            mean, worst, count, goal = products(scene, speed, blunt)
            # at least one iteration, as in ``newton``
            if size <= tolerance and worst <= SHARP * goal and iterations > 0:
                if runs_away(scene):
                    return NOT_CONVERGED, iterations, size
                centre = goal if centring == 0 else centre
                if centring == CENTRING or off_centre(scene, centre) < CENTRED:
                    return SOLVED, iterations, size
                centring += 1
            if iterations == max_iterations:
                return NOT_CONVERGED, iterations, size
            iterations += 1
            if not factorise(encounter):
                return SINGULAR, iterations, size
            again = iterations == 2
            late = count > 0 and max(mean, size) < LATE
            # What will be made equal is shrunk to the aim and not beyond: back up from there cones are too sharp.
            least = FLOOR if late and off_centre(scene, goal) > 0.0 else 1.0
            kappa = centre if centring > 0 else -least * goal if late else 0.0
            early = centring == 0 and levelling < CENTRING and max(mean, size) < EARLY and mean > 10.0 * goal
            level = early and off_centre(scene, mean) > LEVEL
            if level:
                levelling += 1
                kappa = mean
            load(encounter, again)
            load_nodes(encounter, kappa, False, noise)
            solve_all(encounter)
            far = 1.0
            if count > 0:
                far = directions(encounter, kappa, False, BOUNDARY, noise)
                if centring == 0 and not level and (not late or far < LONG):
                    ratio = max(mean_after(scene, far, count), 0.0) / mean
                    kappa = max(ratio * ratio * ratio * mean, goal)
                    # After a short step the second-order terms say nothing: centre first.
                    second = far > SHORT
                    if far <= SHORT:
                        kappa = max(kappa, 0.5 * mean)
                    load(encounter, again)
                    load_nodes(encounter, kappa, second, noise)
                    solve_all(encounter)
                    far = directions(encounter, kappa, second, BOUNDARY, noise)
            turn(step)
            done = 0.0
            new = size
            while True:
                whole_move(encounter, far - done)
                done = far
                new, fine = whole_residual(encounter)
                if fine and (new <= 2.0 * size or new <= 10.0 * tolerance or new <= 0.1 * inside):
                    break
                far *= 0.5
                if far < SHORTEST:
                    break
            if far < SHORTEST:
                whole_move(encounter, -done)
                whole_residual(encounter)
                if size < max(floor(step), tolerance) and worst <= SHARP * goal and not runs_away(scene):
                    return SOLVED, iterations, size
                return NOT_CONVERGED, iterations, size
            size = new

    def relax(encounter, kappa, tolerance, max_iterations):
        step, scene, dt = encounter.step, encounter.scene, encounter.dt
        whole_residual(encounter)
        speed = max(sqrt(kappa), START)
        open_all(scene, dt, speed, True)
        size, fine = whole_residual(encounter)
        for iteration in range(max_iterations):
            mean, worst, count, _ = products(scene, 0.0, 1.0)
            even = count == 0 or (abs(mean - kappa) <= EVEN * kappa and worst <= (1.0 + EVEN) * kappa)
            if fine and size <= tolerance and even and iteration > 0:
                return SOLVED
            if not fine or not factorise(encounter):
                return SINGULAR
            aim = max(kappa, FALL * mean)
            load(encounter, iteration == 1)
            load_nodes(encounter, aim, False, 0.0)
            solve_all(encounter)
            far = directions(encounter, aim, False, BOUNDARY, 0.0)
            turn(step)
            done, old = 0.0, size
            while True:
                whole_move(encounter, far - done)
                done = far
                size, fine = whole_residual(encounter)
                if (fine and (size <= 2.0 * old or size <= 10.0 * tolerance or size <= 0.1 * speed)) or far < SHORTEST:
                    break
                far *= 0.5
        return NOT_CONVERGED

    return InteriorPoint(specialise(interior_point, name, file), whole_residual, whole_move, specialise(relax, f"{name}_relax", file))
