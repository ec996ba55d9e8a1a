"""Restitution that creates no energy: it is granted as far as the impacts of a step take no work in.

Impulses P at a knot, along rows whose rates just before and after it are u- and u+, change the kinetic energy by

    W = P . (u- + u+) / 2.

Without restitution, Coulomb's law and closed gaps leave W <= 0; Newton's law with friction, or with several impacts at once, need
not (Kane's paradox). Bodies that joints and pressed contacts tie together form an island. Where the work of an island is positive, all of
its restitutions are multiplied by the largest part in [0, 1] found for which it is not, by solving the step again. Gaps are closed at the
end of the step, along rows of its start: where shapes turn far within it, work may be left that no restitution explains. Such a step is too long.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dalembert.contact.events import TOUCH, approach, end_gap, limit_approach, rate_along, velocity_before
from dalembert.contact.nodes import flow, limit_impulse
from dalembert.kernels import inline, kernel, specialise
from dalembert.spatial.tuples import add3, dot3, load3, load9, mat_vec, sub3

#: rows of a scene's ``islands``, at the index of an island's first body: that index (of every body); work (J); the size of its terms;
#: the part of the restitutions granted; the largest part that took no work in and the smallest that did, with their works; the
#: work without any restitution; the work of contacts and limits alone; the kinetic energy after the impacts, that of a fall over the step besides; the sum of all impulses (N s);
#: that of their products with the rates after, P . u+
ROOT, WORK, SIZE, PART, LOW, HIGH, WORK_LOW, WORK_HIGH, WORK_NONE, OWN, KINETIC, PRESSED, LAST = range(13)
#: numbers of an island
NUMBERS = 13
#: largest part of the kinetic energy that contacts and limits may put in, and how many times the tolerance rates may be off
GAIN, OFF = 0.01, 10.0
#: angle (rad) within a step by which an impact may change the turn of a body: with more, the methods themselves put energy in
TURN = 0.5
#: work counts as positive above this part of the size of its terms, which is what the interior point leaves of it
ROUNDING = 1e-7
#: a part is large enough when the work is above minus this part of what no restitution at all would take out, or known to so much
NEAR, NARROW = 0.01, 1e-3


@kernel
def has_rotors(model):
    """Whether a joint has armature."""
    for i in range(model.joints.shape[0]):
        for k in range(model.joints[i].armature.shape[0]):
            if model.joints[i].armature[k] > 0.0:
                return True
    return False


@inline
def clear_islands(scene):
    """Nothing is known of any island yet: all restitution is granted."""
    islands = scene.islands
    for i in range(islands.shape[1]):
        islands[PART, i] = 1.0
        islands[LOW, i] = -1.0
        islands[HIGH, i] = 2.0


@inline
def tie(islands, world, a, b):
    """Two bodies are of one island; returns whether that is news."""
    if a == world or b == world or islands[ROOT, a] == islands[ROOT, b]:
        return False
    root = min(islands[ROOT, a], islands[ROOT, b])
    islands[ROOT, a] = root
    islands[ROOT, b] = root
    return True


@kernel
def find_islands(model, scene):
    """Give every body the index of the first one of its island."""
    islands, world = scene.islands, model.bodies.shape[0] - 1
    for i in range(world):
        islands[ROOT, i] = i
    news = True
    while news:
        news = False
        for i in range(model.joints.shape[0]):
            news |= tie(islands, world, model.joints[i].parent, model.joints[i].child)
        for i in range(model.couplings.shape[0]):
            coupling = model.couplings[i]
            for e in range(coupling.first + 1, coupling.first + coupling.ends):
                news |= tie(islands, world, model.ends[e - 1], model.ends[e])
        for i in range(scene.contacts.shape[0]):
            contact = scene.contacts[i]
            if contact.awake != 0 and contact.gamma > TOUCH * contact.weight:
                news |= tie(islands, world, contact.a, contact.b)


@inline
def root_of(islands, world, a, b):
    """The island of a contact or limit."""
    return int(islands[ROOT, a if a != world else b])


@kernel
def choose_parts(islands):
    """Judge the works of all islands and choose which part of the restitutions to try next. Returns how many islands have a new one."""
    count = 0
    for i in range(islands.shape[1]):
        if islands[ROOT, i] != i or islands[SIZE, i] == 0.0:
            continue
        part, work = islands[PART, i], islands[WORK, i]
        if work > ROUNDING * islands[SIZE, i]:
            islands[HIGH, i], islands[WORK_HIGH, i] = part, work
            if part == 0.0:  # restitution is not what adds energy
                continue
        else:
            if part == 0.0:
                islands[WORK_NONE, i] = work
            islands[LOW, i], islands[WORK_LOW, i] = part, work
            high = islands[HIGH, i]
            if high > 1.0 or work > NEAR * islands[WORK_NONE, i] or high - part < NARROW:
                continue
        low, high = islands[LOW, i], islands[HIGH, i]
        if low < 0.0:
            islands[PART, i] = 0.0
        elif high - low < NARROW:
            islands[PART, i] = low
        else:
            aim = 0.3 * NEAR * islands[WORK_NONE, i]
            share = (aim - islands[WORK_LOW, i]) / (islands[WORK_HIGH, i] - islands[WORK_LOW, i])
            islands[PART, i] = low + min(max(share, 0.05), 0.95) * (high - low)
        count += 1
    return count


@kernel
def grant(model, work, scene, dt):
    """Give what bounced the part of its restitution that is granted to its island."""
    islands, world = scene.islands, model.bodies.shape[0] - 1
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if contact.awake != 0 and contact.bounced != 0:
            contact.granted = islands[PART, root_of(islands, world, contact.a, contact.b)]
            rate = approach(model, work, contact.a, contact.b, contact.Ga[0], contact.Gb[0])
            contact.bounced = 1
            contact.bound = contact.gap0 / dt - contact.granted * contact.restitution * rate
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for side in range(2):
            if limit.awake[side] != 0 and limit.bounced[side] != 0:
                limit.granted = islands[PART, root_of(islands, world, limit.a, limit.b)]
                rate = limit_approach(model, work, limit, side)
                limit.bounced[side] = 1
                limit.bound[side] = end_gap(limit, side, limit.c0) / dt - limit.granted * limit.restitution * rate


@kernel
def deny(scene, dt):
    """Grant no restitution at all: with some there may be no motion, as where friction wedges in what would rise."""
    scene.islands[PART] = 0.0
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        contact.granted = 0.0
        if contact.awake != 0 and contact.bounced != 0:
            contact.bounced = 1
            contact.bound = contact.gap0 / dt
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        limit.granted = 0.0
        for side in range(2):
            if limit.awake[side] != 0 and limit.bounced[side] != 0:
                limit.bounced[side] = 1
                limit.bound[side] = end_gap(limit, side, limit.c0) / dt


@kernel
def bounces(scene):
    """Whether anything bounced in the step just solved."""
    for i in range(scene.contacts.shape[0]):
        if scene.contacts[i].awake != 0 and scene.contacts[i].bounced != 0:
            return True
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        if (limit.awake[0] != 0 and limit.bounced[0] != 0) or (limit.awake[1] != 0 and limit.bounced[1] != 0):
            return True
    return False


def build_granting(name: str, file: str, *, velocity: Callable, falls: bool, tree: bool) -> Any:
    """The kernel ``limit_work(encounter, tolerance)`` for a formulation's step problem: to be called once a step is solved with all that bounces.

    It returns how many islands have other restitutions now, with which the step has to be solved again, or -1 where contacts put energy in that
    is not due to restitution. ``tolerance`` (m/s) of the rates; ``velocity``: as of
    ``build_nodes``; ``falls``: whether ``v`` and ``w`` of the work are what velocities still change by up to the knot;
    ``tree``: whether joints hold by the coordinates themselves. Since joints are closed at the knots alone, they do work in an impact,
    of first order in the step: that of their rows' impulses, or in a tree what kinetic energy gains beside the work of gravity.
    """

    def after(step, a, b, row_a, row_b):
        """Rate along a row just after the knot."""
        world = step.work.bodies.shape[0] - 1
        rate = 0.0
        if a != world:
            linear, angular = velocity(step, a)
            rate += flow(row_a, linear, angular)
        if b != world:
            linear, angular = velocity(step, b)
            rate += flow(row_b, linear, angular)
        return rate

    after = specialise(after, f"{name}_after", file)

    def add(step, scene, a, b, row_a, row_b, impulse, drift):
        """Add the work of an impulse along a row to that of its island; what a conveyor does of itself, with ``drift`` (m/s), is no part of it."""
        before = approach(step.model, step.work, a, b, row_a, row_b) - drift
        if falls:
            before += rate_along(step.work, a, b, row_a, row_b)
        rate = after(step, a, b, row_a, row_b) - drift
        root = root_of(scene.islands, step.work.bodies.shape[0] - 1, a, b)
        scene.islands[WORK, root] += 0.5 * impulse * (before + rate)
        scene.islands[SIZE, root] += 0.5 * abs(impulse) * (abs(before) + abs(rate))
        scene.islands[PRESSED, root] += abs(impulse)
        scene.islands[LAST, root] += impulse * rate

    add = specialise(add, f"{name}_add", file)

    def gain(encounter):
        """Write the gain of kinetic energy in a step, less what gravity and conveyors give, as the work of the islands."""
        step, islands = encounter.step, encounter.scene.islands
        model, work, g = step.model, step.work, load3(step.model.gravity)
        islands[WORK] = 0.0
        for i in range(model.bodies.shape[0] - 1):
            body, fixed = work.bodies[i], model.bodies[i]
            v, w = velocity(step, i)
            v0, w0 = velocity_before(model, work, i)
            if falls:
                v0, w0 = add3(v0, load3(body.v)), add3(w0, load3(body.w))
            J = load9(fixed.inertia)
            twice = fixed.mass * (dot3(v, v) - dot3(v0, v0)) + dot3(w, mat_vec(J, w)) - dot3(w0, mat_vec(J, w0))
            islands[WORK, int(islands[ROOT, i])] += 0.5 * twice - encounter.dt * fixed.mass * dot3(g, v)
        for i in range(encounter.scene.contacts.shape[0]):
            contact = encounter.scene.contacts[i]
            if contact.awake != 0:
                islands[WORK, root_of(islands, work.bodies.shape[0] - 1, contact.a, contact.b)] -= contact.beta[0] * contact.drift[0] + contact.beta[1] * contact.drift[1]

    gain = specialise(gain, f"{name}_gain", file)

    def gains(encounter, tolerance):
        """Whether the contacts and limits of an island put in more energy than they may, or change the turn of a body by too much."""
        step, islands, dt = encounter.step, encounter.scene.islands, encounter.dt
        model, work, g = step.model, step.work, load3(step.model.gravity)
        fall = dt * dt * dot3(g, g)
        islands[KINETIC] = 0.0
        for i in range(model.bodies.shape[0] - 1):
            fixed = model.bodies[i]
            v, w = velocity(step, i)
            spun = sub3(w, velocity_before(model, work, i)[1])
            if islands[PRESSED, int(islands[ROOT, i])] > 0.0 and dt * dt * dot3(spun, spun) > TURN * TURN:
                return True
            islands[KINETIC, int(islands[ROOT, i])] += 0.5 * (fixed.mass * (dot3(v, v) + fall) + dot3(w, mat_vec(load9(fixed.inertia), w)))
        for i in range(islands.shape[1]):
            if islands[ROOT, i] == i and islands[OWN, i] > GAIN * islands[KINETIC, i] + OFF * tolerance * islands[PRESSED, i]:
                return True
        return False

    gains = specialise(gains, f"{name}_gains", file)

    def limit_work(encounter, tolerance):
        step, scene = encounter.step, encounter.scene
        find_islands(step.model, scene)
        scene.islands[WORK] = 0.0
        scene.islands[SIZE] = 0.0
        scene.islands[PRESSED] = 0.0
        scene.islands[LAST] = 0.0
        for i in range(scene.contacts.shape[0]):
            contact = scene.contacts[i]
            if contact.awake != 0:
                if contact.stiffness == 0.0:  # what is compliant gives back what it took
                    add(step, scene, contact.a, contact.b, contact.Ga[0], contact.Gb[0], contact.gamma, 0.0)
                for k in range(2):
                    add(step, scene, contact.a, contact.b, contact.Ga[1 + k], contact.Gb[1 + k], contact.beta[k], contact.drift[k])
        for i in range(scene.limits.shape[0]):
            limit = scene.limits[i]
            ends, drag = limit_impulse(limit)
            add(step, scene, limit.a, limit.b, limit.Ga, limit.Gb, ends + drag, 0.0)
        for i in range(scene.islands.shape[1]):  # friction that stops what other forces turn round gives nothing at the end
            scene.islands[OWN, i] = min(scene.islands[WORK, i], scene.islands[LAST, i])
        if tree:
            if step.model.joints.shape[0] > 0 and not has_rotors(step.model):  # whose energy the bodies' does not tell
                gain(encounter)
        else:
            for i in range(step.model.joints.shape[0]):
                joint, at = step.model.joints[i], step.work.joints[i]
                for k in range(joint.locks):
                    if joint.row_direction[k] < 0:  # what is driven does work of its own
                        add(step, scene, joint.parent, joint.child, at.Gp[k], at.Gc[k], at.mu[k], 0.0)
        for i in range(scene.islands.shape[1]):  # what joints give is the error of the step, and no work of contacts
            scene.islands[OWN, i] = min(scene.islands[OWN, i], scene.islands[WORK, i])
        if not bounces(scene):
            return -1 if gains(encounter, tolerance) else 0
        count = choose_parts(scene.islands)
        if count > 0:
            grant(step.model, step.work, scene, encounter.dt)
        return -1 if count == 0 and gains(encounter, tolerance) else count

    return specialise(limit_work, name, file)
