"""Friction in joints by the load that they carry (RedMax 2.11): what a bearing's surfaces bear, and the bounds that follow.

The paper spreads a joint's reaction over contact points around its surfaces (``spread``, eq. 2.125), which overrates the load
on a ring by up to 4/pi. Here a surface carries the resultant: two ends and a collar, a ball, a plate (see ``Bearing``). With
several free directions at once the bounds b_i span an ellipsoid, |beta_i / b_i| <= 1, and friction takes out the most
energy: beta_i = -b_i^2 eta_i / |b eta|.

A step finds friction for given bounds of each direction, and ``bear`` the bounds for what the joint's rows then carry and what rates answer
(``shared_bound``), in turn until both agree: Algorithm 8 with the step itself in the place of its two programs.
"""
from __future__ import annotations

from math import sqrt

import numpy as np

from dalembert.contact.shared_bound import begin_answers, learn_answers, least_in_ball
from dalembert.kernels import inline, kernel
from dalembert.model.records import SECOND, SLIDE
from dalembert.spatial.tuples import add3, column, cross3, dot3, load3, load9, mat_t_vec, mat_vec, scale3, sub3

#: friction is right that differs from that of the load by less than this many times the step's tolerance, and no part less than CLOSE; after PATIENT rounds by half as
#: much again, and so on
AGREE, CLOSE, PATIENT = 1e3, 1e-10, 10
#: part of the square of its bounds by which friction on them may seem to be inside
SURFACE = 1e-9
#: friction of the step before below this part of its bound held
HELD = 0.999
#: bounds below this part of the direction's inertia times 1 m/s or 1 rad/s are none; agreement is asked for as if they were at least LEAST of it;
#: no length at all
NONE, LEAST, TINY = 1e-8, 1e-3, 1e-300


@inline
def bearing_bounds(bears, numbers, F, M, a):
    """Bounds along slides and about axes for a force F and a moment M on the bearing, a its pin's axis or its plate's normal.

    ``numbers``: coefficient, radius, 1/length, radius of the collar. F and M may be impulses: so are the bounds then.
    """
    friction, radius, inverse_length, collar = numbers
    along, twist = dot3(F, a), dot3(M, a)
    if bears == 2:
        load = sqrt(dot3(F, F))
        return friction * load, friction * radius * load
    across = sub3(F, scale3(along, a))
    tilt = sub3(M, scale3(twist, a))
    if bears == 3:
        load = max(abs(along), sqrt(dot3(tilt, tilt)) / radius) + abs(twist) / radius
        return friction * load, friction * radius * load
    lever = scale3(inverse_length, cross3(tilt, a))
    one = add3(scale3(0.5, across), lever)
    other = sub3(scale3(0.5, across), lever)
    load = sqrt(dot3(one, one)) + sqrt(dot3(other, other))
    return friction * (load + abs(along) + abs(twist) / radius), friction * (radius * load + collar * abs(along))


@inline
def reaction(work, joint, at):
    """Impulse and its moment about the child's joint point that a joint's rows exert on the child, in the child's frame."""
    F = (0.0, 0.0, 0.0)
    T = (0.0, 0.0, 0.0)
    for k in range(joint.locks):
        if joint.row_direction[k] < 0:
            F = add3(F, scale3(at.mu[k], load3(at.Gc[k])))
            T = add3(T, scale3(at.mu[k], load3(at.Gc[k, 3:])))
    local = mat_t_vec(load9(work.bodies[joint.child].R), F)
    return local, sub3(T, cross3(load3(joint.point_child), local))


@inline
def pin_axis(work, joint, limit):
    """The axis of a bearing's pin, or the normal of its plate, in the child's frame."""
    if joint.free_kind[limit.direction] == SECOND:
        return column(load9(joint.frame_child), limit.pin)
    axis = mat_vec(load9(work.bodies[joint.parent].R), column(load9(joint.frame_parent), limit.pin))
    return mat_t_vec(load9(work.bodies[joint.child].R), axis)


@inline
def reach_of(limits, first, beyond):
    """How far friction goes towards its full bounds, all directions of a bearing together."""
    total = 0.0
    for k in range(first, beyond):
        if limits[k].full > 0.0:
            total += (limits[k].beta / limits[k].full) ** 2
    return sqrt(total)


@kernel
def guess_bounds(limits):
    """Bounds to begin with, by those of the step before (``full``) and its friction (``beta0``): all of them if it was at rest."""
    i = 0
    while i < limits.shape[0]:
        share = max(limits[i].share, 1)
        if limits[i].bears != 0:
            for k in range(i, i + share):
                limits[k].beta = limits[k].beta0
            at_rest = reach_of(limits, i, i + share) < HELD
            for k in range(i, i + share):
                limit = limits[k]
                size = limit.full if at_rest else abs(limit.beta0)
                limit.cap = size if size > NONE * limit.weight else 0.0
        i += share


@kernel
def bear(model, work, limits, attempt, tolerance):
    """Compare the friction of all bearings with that of what the joints' rows carry in the step just solved, and set their bounds anew.

    Returns how many were not right. ``attempt``: how often the step was solved before; ``tolerance``: with which it is solved.
    """
    wrong = 0
    i = 0
    while i < limits.shape[0]:
        if limits[i].bears != 0:
            joint = model.joints[limits[i].joint]
            F, M = reaction(work, joint, work.joints[limits[i].joint])
            wrong += bear_load(work, joint, limits, i, F, M, attempt, tolerance)
        i += max(limits[i].share, 1)
    return wrong


@inline
def bear_load(work, joint, limits, first, F, M, attempt, tolerance):
    """Set the bounds of a bearing, whose records begin with ``first``, by the impulse F and its moment M that its surfaces carry.

    Both act on the child at its joint point, in its frame. Returns 1 when the bounds were not right.
    """
    limit = limits[first]
    beyond = first + limit.share
    agree = max(AGREE * tolerance, CLOSE)
    for _ in range(PATIENT, attempt):
        agree *= 1.5
    b = limit.bearing
    slide, turn = bearing_bounds(limit.bears, (b[0], b[1], b[2], b[3]), F, M, pin_axis(work, joint, limit))
    for k in range(first, beyond):
        limits[k].full = slide if joint.free_kind[limits[k].direction] == SLIDE else turn
    return 1 if set_bounds(limits, first, beyond, attempt == 0) > agree else 0


@inline
def set_bounds(limits, first, beyond, begins):
    """Bounds of a bearing's directions by its full ones and the motion; returns by which part friction was off. ``begins``: the step was solved once.

    What slides has all of its bound, what is held what it has, and rests. Where friction lies inside the full bounds, the bearing is asked to rest.
    """
    before, held = 0.0, True
    for k in range(first, beyond):
        l = limits[k]
        l.reach = max(l.full, NONE * l.weight)
        if is_held(l):
            l.asked[0], l.asked[1] = l.beta, 0.0
        else:
            l.asked[0], l.asked[1] = (-l.cap if l.beta < 0.0 else l.cap), l.eta
            held = False
        before += (l.asked[0] / l.reach) ** 2
    if begins:
        begin_answers(limits, first, beyond)
    else:
        learn_answers(limits, first, beyond)
    free = least_in_ball(limits, first, beyond)
    inside = free <= 1.0 and (held or before < 1.0 - SURFACE)
    off = 0.0
    for k in range(first, beyond):
        l = limits[k]
        l.tried[0], l.tried[1] = l.asked[0], l.asked[1]
        if not l.full > NONE * l.weight:
            off = max(off, 1.0 if l.cap > 0.0 else 0.0)
            l.cap = 0.0
            continue
        # what slid at full bounds slides on, whatever little is known of answers says
        nearest = l.goal[0] * l.full / (max(free, TINY) if free <= 1.0 and not inside else 1.0)
        if not inside and abs(nearest) < NONE * l.weight:
            nearest = 0.0
        off = max(off, abs(nearest - l.asked[0]) / max(l.full, LEAST * l.weight))
        l.cap = l.full if inside else abs(nearest)
    return off


@inline
def is_held(limit):
    """True when friction along a direction stays within its bound by more than it would take to stop what still moves: the direction rests.

    What slides stays below its bound too, by what the interior point leaves: beside a hard impact that may be much of it.
    """
    return limit.cap > 0.0 and abs(limit.eta) * limit.weight < limit.cap - abs(limit.beta)


def spread(normals: np.ndarray, wrench: np.ndarray, inertia: np.ndarray | None = None, softness: float = 1e-9) -> np.ndarray:
    """Loads (k,) of contact points that together exert a ``wrench`` (6,) on a body, the smallest that do (RedMax eq. 2.125).

    ``normals`` (k, 6): wrench of a unit load on each point; ``inertia`` (6, 6) of the body, the metric of the paper; loads of
    either sign, as a bearing's points cannot come apart. The sign is that of the wrench (the paper's alpha has the other one).
    """
    inverse = np.eye(6) if inertia is None else np.linalg.inv(inertia)
    A = normals @ inverse @ normals.T
    return np.linalg.solve(A + softness * np.trace(A) / len(A) * np.eye(len(A)), normals @ inverse @ wrench)


def journal_points(count: int, radius: float, length: float) -> np.ndarray:
    """(2 count + 2, 6) unit loads, moment and then force, on rings of points at both ends of a pin along x, and along the pin."""
    rows = []
    for end in (-0.5 * length, 0.5 * length):
        for angle in 2.0 * np.pi * np.arange(count) / count:
            normal = np.array([0.0, np.cos(angle), np.sin(angle)])
            rows.append(np.concatenate([np.cross(np.array([end, 0.0, 0.0]) + radius * normal, normal), normal]))
    rows += [np.array([0, 0, 0, sign, 0, 0]) for sign in (1.0, -1.0)]
    return np.array(rows)
