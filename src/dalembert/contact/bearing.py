"""Friction in joints by the load that they carry (RedMax 2.11): what a bearing's surfaces bear, and the bounds that follow.

The paper spreads a joint's reaction over contact points around its surfaces (``spread``, eq. 2.125), which overrates the load
on a ring by up to 4/pi. Here a surface carries the resultant: two ends and a collar, a ball, a plate (see ``Bearing``). With
several free directions at once the bounds b_i span an ellipsoid, |beta_i / b_i| <= 1, and friction takes out the most
energy: beta_i = -b_i^2 eta_i / |b eta|.

A step finds friction for given bounds, and ``bear`` the bounds for what the joint's rows then carry, in turn until both agree:
Algorithm 8 with the step itself in the place of its two programs.
"""
from __future__ import annotations

from math import sqrt

import numpy as np

from dalembert.kernels import inline, kernel
from dalembert.model.records import DISTANCE, SECOND, SLIDE
from dalembert.spatial.tuples import add3, column, cross3, dot3, load3, load9, mat_t_vec, mat_vec, scale3, sub3

#: bounds that differ by less than this part from those of the load are right; from round PATIENT on ten times as much, and so on
AGREE, PATIENT = 1e-8, 5
#: rates (m/s or rad/s) below this are rest, and so is friction that stays below this part of its bound
STILL, HELD = 1e-9, 0.999
#: bounds below this part of the direction's inertia times 1 m/s or 1 rad/s are none
NONE = 1e-8


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
def full_bound(joint, limit, slide, turn):
    kind = joint.free_kind[limit.direction]
    return slide if kind in (SLIDE, DISTANCE) else turn


@kernel
def bear(model, work, limits, attempt):
    """Compare the friction of all bearings with that of the loads in the step just solved, and set their bounds anew.

    Returns how many were not right. ``attempt``: how often the step was solved before.
    """
    wrong = 0
    agree = AGREE
    for _ in range(PATIENT, attempt):
        agree *= 10.0
    i = 0
    while i < limits.shape[0]:
        limit = limits[i]
        if limit.bears == 0:
            i += 1
            continue
        share = limit.share
        joint, at = model.joints[limit.joint], work.joints[limit.joint]
        F, M = reaction(work, joint, at)
        b = limit.bearing
        slide, turn = bearing_bounds(limit.bears, (b[0], b[1], b[2], b[3]), F, M, pin_axis(work, joint, limit))
        power = 0.0
        reach = 0.0
        for k in range(i, i + share):
            l = limits[k]
            bound = full_bound(joint, l, slide, turn)
            if abs(l.eta) > STILL and abs(l.beta) >= HELD * l.cap:
                power += bound * bound * l.eta * l.eta
            if bound > 0.0 and l.cap > 0.0:
                reach += (l.beta / bound) ** 2
        reach = sqrt(reach)
        if power > 0.0 or reach > 1.0 + agree:
            off = 0.0
            for k in range(i, i + share):
                l = limits[k]
                bound = full_bound(joint, l, slide, turn)
                if power > 0.0:
                    slides = abs(l.eta) > STILL and abs(l.beta) >= HELD * l.cap
                    want = bound * bound * abs(l.eta) / sqrt(power) if slides else 0.0
                else:
                    want = abs(l.beta) / reach
                if want < NONE * l.weight:
                    want = 0.0
                if bound > 0.0:
                    off = max(off, abs(want - l.cap) / bound)
                elif l.cap > 0.0:
                    off = 1.0
                l.cap = want
            if off > agree:
                wrong += 1
        i += share
    return wrong


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
