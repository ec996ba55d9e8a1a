"""Contacts, limits and dry friction as nodes of a step problem's graph: leaves when they touch the environment.

To the equations of the step come the impulses of the contacts at the knot, together with the complementarity of every
contact and limit at the end of the step (Variational eq. 29, Appendix D). A formulation says how its bodies move, by
kernels of its step problem (``step``, with ``model`` and ``work``) and a body's index:

    velocity(step, i)                           -> linear (world) and angular (body) velocity by which friction is measured
    velocity_terms(step, i)                     -> numbers that ``rate_gradient`` needs, once for all rows
    rate_gradient(step, i, terms, row, out)     gradient by the body's unknowns of the rate along a row of six
    end_gradient(step, i, row, out)             the same, over dt, of what has the gradient ``row`` at the end pose
    push(step, i, row, impulse)                 takes an impulse along a row off the body's residual

Its residual leaves the end pose in the work's ``xn`` and ``Rn``.
"""
from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any, NamedTuple

from dalembert.contact.cone import node_direction, node_matrix, node_residual, node_step, sliding_bound
from dalembert.contact.geometry import at_end
from dalembert.contact.limits import (
    coordinate_at,
    coordinate_gradient,
    limit_direction,
    limit_matrix,
    limit_residual,
    limit_step,
)
from dalembert.contact.records import Scene
from dalembert.contact.smoothed import smoothed_matrix
from dalembert.contact.smoothed_limits import limit_matrix_smoothed
from dalembert.kernels import inline, kernel, specialise
from dalembert.linalg.compact import compact
from dalembert.model.frames import relative
from dalembert.model.pose import put6
from dalembert.model.records import Work
from dalembert.model.rows import direction_gradient
from dalembert.spatial.tuples import load3, load9, neg3


class Encounter(NamedTuple):
    """A step problem with what may touch in it; gaps at the end are divided by ``dt`` (s)."""

    step: Any
    scene: Scene
    dt: float


class Nodes(NamedTuple):
    """Kernels of an ``Encounter``'s nodes."""

    residual: Any
    jacobian: Any
    load: Any
    directions: Any
    smoothed: Any


@kernel
def limit_at_end(limit, joint, at, bodies, scratch):
    """Coordinate of a limited direction at the end of the step and its gradient."""
    parent = bodies[limit.a]
    child = bodies[limit.b]
    Rp = load9(parent.Rn)
    y, C = relative(joint, load3(parent.xn), Rp, load3(child.xn), load9(child.Rn))
    limit.c = coordinate_at(joint, at, limit.direction, y, C, scratch)
    force, on_parent, on_child = coordinate_gradient(joint, limit.direction, y, C, Rp, scratch)
    put6(limit.Ha, neg3(force), on_parent)
    put6(limit.Hb, force, on_child)


@kernel
def limit_at_knot(limit, joint, at, bodies, scratch):
    """Coordinate of a limited direction at the knot and its row."""
    parent = bodies[limit.a]
    child = bodies[limit.b]
    Rp = load9(parent.R)
    y, C = relative(joint, load3(parent.x), Rp, load3(child.x), load9(child.R))
    limit.c0 = coordinate_at(joint, at, limit.direction, y, C, scratch)
    if limit.bears != 0:  # rubs against the rate itself, also of a free rotation
        force, on_parent, on_child = direction_gradient(joint, limit.direction, y, C, Rp)
    else:
        force, on_parent, on_child = coordinate_gradient(joint, limit.direction, y, C, Rp, scratch)
    put6(limit.Ga, neg3(force), on_parent)
    put6(limit.Gb, force, on_child)


@inline
def limit_rate(limit, side, dt, noise):
    """Gap of one end of a limit at the end of the step over dt, less its bound (see ``gap_rate``)."""
    gap = limit.c - limit.end[0] if side == 0 else limit.end[1] - limit.c
    rate = gap / dt - limit.bound[side]
    return limit.s[side] if abs(rate - limit.s[side]) <= noise else rate


@inline
def gap_speed(contact, dt):
    """What the slack of a contact is at a solution: gap at the end of the step over dt, less its bound, and what compliance adds to that."""
    speed = contact.gap / dt - contact.bound
    if contact.soft > 0.0:
        speed += contact.drag * contact.rate + contact.soft * contact.gamma
    return speed


@inline
def gap_rate(contact, dt, noise):
    """Gap at the end of the step over dt, less its bound; the slack itself once the two agree to rounding.

    A slack may be far smaller than the rounding of a gap: differences of that size would only shuffle impulses about.
    """
    rate = gap_speed(contact, dt)
    return contact.s if abs(rate - contact.s) <= noise else rate


@inline
def limit_impulse(limit):
    """Impulse along a direction: of both ends, of dry friction."""
    ends = 0.0
    if limit.awake[0] != 0:
        ends += limit.gamma[0]
    if limit.awake[1] != 0:
        ends -= limit.gamma[1]
    return ends, limit.beta if limit.cap > 0.0 else 0.0


@inline
def takes_part(limit):
    """Whether a limit's node does anything."""
    return limit.awake[0] != 0 or limit.awake[1] != 0 or limit.cap > 0.0 or limit.bears != 0


@inline
def flow(row, linear, angular):
    """Rate along a row of six."""
    return row[0] * linear[0] + row[1] * linear[1] + row[2] * linear[2] + row[3] * angular[0] + row[4] * angular[1] + row[5] * angular[2]


@kernel
def awake_part(work, scene):
    """The work of a step with the schedule of what is awake: everything else is left out of its linear systems."""
    asleep = scene.room.asleep
    for i in range(scene.contacts.shape[0]):
        asleep[scene.contacts[i].node] = 1 if scene.contacts[i].awake == 0 else 0
    for i in range(scene.limits.shape[0]):
        asleep[scene.limits[i].node] = 0 if takes_part(scene.limits[i]) else 1
    return Work(
        work.bodies, work.joints, work.couplings, work.ends, work.velocity, work.K, work.D, work.given, work.found, work.blocks,
        compact(work.schedule, scene.room), work.vector,
    )


@kernel
def gather(scene):
    """The scene with nothing but the contacts that are awake, side by side: in a heap most of what is near sleeps, and what stands far apart in memory is slow to read."""
    contacts, gathered = scene.contacts, scene.gathered
    count = 0
    for i in range(contacts.shape[0]):
        if contacts[i].awake != 0:
            gathered[count] = contacts[i]
            count += 1
    return Scene(
        gathered[:count], gathered, scene.limits, scene.heights, scene.terrain, scene.shapes, scene.scratch, scene.counts, scene.islands, scene.room,
    )


@kernel
def scatter(scene, awake):
    """Put the contacts of ``gather`` back."""
    count = 0
    for i in range(scene.contacts.shape[0]):
        if scene.contacts[i].awake != 0:
            scene.contacts[i] = awake.contacts[count]
            count += 1


@kernel
def load_nodes(encounter, kappa, second, noise):
    """Residuals of the nodes' rows for products ``kappa`` into the solver's vector."""
    scene, vector, dt = encounter.scene, encounter.step.work.vector, encounter.dt
    contacts = scene.contacts
    for i in range(contacts.shape[0]):
        contact = contacts[i]
        v = vector[contact.node].v
        if contact.awake == 0:
            v[0] = 0.0
            v[1] = 0.0
            v[2] = 0.0
            continue
        v[0], v[1], v[2] = node_residual(contact, kappa, second, gap_rate(contact, dt, noise))
    limits = scene.limits
    for i in range(limits.shape[0]):
        limit = limits[i]
        v = vector[limit.node].v
        v[0], v[1], v[2] = limit_residual(limit, kappa, second, limit_rate(limit, 0, dt, noise), limit_rate(limit, 1, dt, noise))


def build_nodes(
    name: str, file: str, *, unknowns: int, velocity: Callable, velocity_terms: Callable, rate_gradient: Callable, end_gradient: Callable,
    push: Callable,
) -> Nodes:
    """The kernels of nodes for a formulation whose bodies have so many ``unknowns``.

    ``residual(encounter)`` -> (largest residual in m/s, False when it is not finite), after that of the step itself; ``jacobian(encounter)`` writes
    the nodes' blocks; ``load(encounter, kappa, second, noise)`` the solver's vector; ``directions(encounter, kappa, second,
    fraction, noise)`` recovers those of slacks and impulses from the solution and returns the step that keeps ``fraction``
    of the way inside; ``smoothed(encounter, kappa)`` writes the blocks as ``smoothed`` and ``smoothed_limits`` have them, of what is awake alone.
    """

    def opening(step, contact):
        """Rate along the normal of a contact."""
        world = step.work.bodies.shape[0] - 1
        rate = 0.0
        for side in range(2):
            body = contact.a if side == 0 else contact.b
            if body != world:
                linear, angular = velocity(step, body)
                rate += flow(contact.Ga[0] if side == 0 else contact.Gb[0], linear, angular)
        return rate

    opening = specialise(opening, f"{name}_opening", file)

    def residual(encounter):
        step, scene, dt = encounter.step, encounter.scene, encounter.dt
        work = step.work
        bodies = work.bodies
        world = bodies.shape[0] - 1
        size = 0.0
        contacts = scene.contacts
        for i in range(contacts.shape[0]):
            contact = contacts[i]
            if contact.awake == 0:
                continue
            at_end(contact, scene, bodies)
            eta0 = contact.past[0] - contact.drift[0]
            eta1 = contact.past[1] - contact.drift[1]
            for side in range(2):
                body = contact.a if side == 0 else contact.b
                if body == world:
                    continue
                G = contact.Ga if side == 0 else contact.Gb
                S = contact.Sa if side == 0 else contact.Sb
                push(step, body, G[0], contact.gamma)
                push(step, body, G[1], contact.beta[0])
                push(step, body, G[2], contact.beta[1])
                linear, angular = velocity(step, body)
                eta0 += flow(S[0], linear, angular)
                eta1 += flow(S[1], linear, angular)
            contact.eta[0] = eta0
            contact.eta[1] = eta1
            if contact.drag > 0.0:
                contact.rate = opening(step, contact)
            # eta bends with omega, which a step along a line does not see: the cone may be left by so much
            contact.psi = max(contact.psi, (1.0 + 1e-12) * sliding_bound(contact))
            size = max(size, abs(gap_speed(contact, dt) - contact.s))
        limits = scene.limits
        for i in range(limits.shape[0]):
            limit = limits[i]
            limit_at_end(limit, step.model.joints[limit.joint], work.joints[limit.joint], bodies, scene.scratch)
            ends, drag = limit_impulse(limit)
            linear, angular = velocity(step, limit.b)
            eta0 = flow(limit.Gb, linear, angular)
            push(step, limit.b, limit.Gb, ends + drag)
            if limit.a != world:
                linear, angular = velocity(step, limit.a)
                eta0 += flow(limit.Ga, linear, angular)
                push(step, limit.a, limit.Ga, ends + drag)
            limit.eta = eta0
            limit.psi = max(limit.psi, (1.0 + 1e-12) * abs(limit.eta))
            for side in range(2):
                if limit.awake[side] != 0:
                    size = max(size, abs(limit_rate(limit, side, dt, 0.0) - limit.s[side]))
        return size, isfinite(size)

    def sleep(blocks, diagonal, there_a, back_a, there_b, back_b):
        """Make a node say nothing: its unknowns stay as they are."""
        D = blocks[diagonal].M
        for r in range(3):
            for c in range(3):
                D[r, c] = 0.0
            D[r, r] = 1.0
        for index in (there_a, there_b):
            if index >= 0:
                for r in range(3):
                    for c in range(unknowns):
                        blocks[index].M[r, c] = 0.0
        for index in (back_a, back_b):
            if index >= 0:
                for r in range(unknowns):
                    for c in range(3):
                        blocks[index].M[r, c] = 0.0

    sleep = specialise(sleep, f"{name}_sleep", file)

    def contact_side(step, there, back, body, G, S, H, K, T, w0, w00, w01, w11):
        """Blocks between a contact and one of its bodies; K and T get the gradients of the gap and of the sliding velocity."""
        row = step.work.blocks[there].M
        column = step.work.blocks[back].M
        terms = velocity_terms(step, body)
        end_gradient(step, body, H, K)
        rate_gradient(step, body, terms, S[0], T[0])
        rate_gradient(step, body, terms, S[1], T[1])
        for c in range(unknowns):
            row[0, c] = w0 * K[c]
            row[1, c] = w00 * T[0, c] + w01 * T[1, c]
            row[2, c] = w01 * T[0, c] + w11 * T[1, c]
        for c in range(6):
            column[c, 0] = -G[0, c]
            column[c, 1] = -G[1, c]
            column[c, 2] = -G[2, c]
        for c in range(6, unknowns):
            column[c, 0] = 0.0
            column[c, 1] = 0.0
            column[c, 2] = 0.0

    contact_side = specialise(contact_side, f"{name}_contact_side", file)

    def drag_side(step, there, body, row, K, drag, w0):
        """What ``drag`` times the rate of the gap adds to its gradient."""
        rate_gradient(step, body, velocity_terms(step, body), row, step.work.blocks[there].M[0])
        for c in range(unknowns):
            K[c] += drag * step.work.blocks[there].M[0, c]
            step.work.blocks[there].M[0, c] = w0 * K[c]

    drag_side = specialise(drag_side, f"{name}_drag_side", file)

    def limit_side(step, there, back, body, G, H, K, T, w0, w1, w2):
        """Blocks between a limit and one of its bodies."""
        row = step.work.blocks[there].M
        column = step.work.blocks[back].M
        end_gradient(step, body, H, K)
        rate_gradient(step, body, velocity_terms(step, body), G, T)
        for c in range(unknowns):
            row[0, c] = w0 * K[c]
            row[1, c] = w1 * K[c]
            row[2, c] = w2 * T[c]
        for c in range(6):
            column[c, 0] = -G[c]
            column[c, 1] = G[c]
            column[c, 2] = -G[c]
        for c in range(6, unknowns):
            column[c, 0] = 0.0
            column[c, 1] = 0.0
            column[c, 2] = 0.0

    limit_side = specialise(limit_side, f"{name}_limit_side", file)

    def contact_blocks(encounter, smoothing):
        """Blocks of the contacts, by their cones or, where ``smoothing`` is positive, smoothed by so much (m^2/s^2)."""
        step, scene = encounter.step, encounter.scene
        blocks = step.work.blocks
        contacts = scene.contacts
        for i in range(contacts.shape[0]):
            c = contacts[i]
            if c.awake == 0:
                if smoothing == 0.0:
                    sleep(blocks, c.diagonal, c.block_na, c.block_an, c.block_nb, c.block_bn)
                continue
            if smoothing > 0.0:
                w0, w00, w01, w11 = smoothed_matrix(c, blocks[c.diagonal].M, smoothing)
            else:
                w0, w00, w01, w11 = node_matrix(c, blocks[c.diagonal].M, c.friction > 0.0)
            if c.block_na >= 0:
                contact_side(step, c.block_na, c.block_an, c.a, c.Ga, c.Sa, c.Ha, c.Ka, c.Ta, w0, w00, w01, w11)
            if c.block_nb >= 0:
                contact_side(step, c.block_nb, c.block_bn, c.b, c.Gb, c.Sb, c.Hb, c.Kb, c.Tb, w0, w00, w01, w11)
            if c.drag > 0.0:
                if c.block_na >= 0:
                    drag_side(step, c.block_na, c.a, c.Ga[0], c.Ka, c.drag, w0)
                if c.block_nb >= 0:
                    drag_side(step, c.block_nb, c.b, c.Gb[0], c.Kb, c.drag, w0)

    contact_blocks = specialise(contact_blocks, f"{name}_contact_blocks", file)

    def limit_blocks(encounter, smoothing):
        """Blocks of the limits, in the same way."""
        step, scene = encounter.step, encounter.scene
        blocks = step.work.blocks
        limits = scene.limits
        for i in range(limits.shape[0]):
            l = limits[i]
            if smoothing > 0.0:
                if not takes_part(l):
                    continue
                w0, w1, w2 = limit_matrix_smoothed(l, blocks[l.diagonal].M, smoothing)
            else:
                w0, w1, w2 = limit_matrix(l, blocks[l.diagonal].M)
            if l.block_na >= 0:
                limit_side(step, l.block_na, l.block_an, l.a, l.Ga, l.Ha, l.Ka, l.Ta, w0, w1, w2)
            limit_side(step, l.block_nb, l.block_bn, l.b, l.Gb, l.Hb, l.Kb, l.Tb, w0, w1, w2)

    limit_blocks = specialise(limit_blocks, f"{name}_limit_blocks", file)

    def jacobian(encounter):
        contact_blocks(encounter, 0.0)
        limit_blocks(encounter, 0.0)

    def smoothed(encounter, kappa):
        contact_blocks(encounter, kappa)
        limit_blocks(encounter, kappa)

    def change(gradient, d):
        """Minus a gradient times a body's direction."""
        total = 0.0
        for c in range(unknowns):
            total -= gradient[c] * d[c]
        return total

    change = specialise(change, f"{name}_change", file)

    def directions(encounter, kappa, second, fraction, noise):
        step, scene, dt = encounter.step, encounter.scene, encounter.dt
        bodies, vector = step.work.bodies, step.work.vector
        world = bodies.shape[0] - 1
        far = 1.0 / fraction
        contacts = scene.contacts
        for i in range(contacts.shape[0]):
            contact = contacts[i]
            if contact.awake == 0:
                continue
            gap = 0.0
            eta0 = 0.0
            eta1 = 0.0
            if contact.a != world:
                d = vector[bodies[contact.a].node].v
                gap += change(contact.Ka, d)
                eta0 += change(contact.Ta[0], d)
                eta1 += change(contact.Ta[1], d)
            if contact.b != world:
                d = vector[bodies[contact.b].node].v
                gap += change(contact.Kb, d)
                eta0 += change(contact.Tb[0], d)
                eta1 += change(contact.Tb[1], d)
            v = vector[contact.node].v
            node_direction(contact, kappa, second, gap_rate(contact, dt, noise), gap, -v[0], -v[1], -v[2], eta0, eta1)
            far = node_step(contact, far)
        limits = scene.limits
        for i in range(limits.shape[0]):
            limit = limits[i]
            d = vector[bodies[limit.b].node].v
            gap = change(limit.Kb, d)
            eta0 = change(limit.Tb, d)
            if limit.a != world:
                d = vector[bodies[limit.a].node].v
                gap += change(limit.Ka, d)
                eta0 += change(limit.Ta, d)
            v = vector[limit.node].v
            limit_direction(limit, kappa, second, limit_rate(limit, 0, dt, noise), limit_rate(limit, 1, dt, noise), gap, -v[0], -v[1], -v[2], eta0)
            far = limit_step(limit, far)
        return min(1.0, fraction * far)

    return Nodes(
        specialise(residual, f"{name}_residual", file), specialise(jacobian, f"{name}_jacobian", file), load_nodes,
        specialise(directions, f"{name}_directions", file), specialise(smoothed, f"{name}_smoothed", file),
    )
