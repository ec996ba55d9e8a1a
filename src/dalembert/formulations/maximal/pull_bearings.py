"""The adjoint of bearings: how the bounds of their friction follow from what their joints carry and how they move, backwards.

A step with bearings solves F(u, c) = 0 for its unknowns u with bounds c, and c = C(u). Weights of F that hold c fixed give bars k of the bounds; with T the bars that a
bar of one bound makes of all of them through C and F, the bounds' own bars are (1 - T)^-1 k. A pull only adds, so that each bound is pulled once for its column
of T, and all of them once more with what is missing.

Where a bearing slides, its bounds are b_i = f_i |z_i| / |z| with z_i = f_i eta_i and f the full bounds (``contact.bearing``); where it rests, b = f.
"""
from __future__ import annotations

from collections.abc import Callable
from math import sqrt

from dalembert.contact.bearing import bearing_bounds, is_held, pin_axis, reaction
from dalembert.formulations.maximal.pull_contacts import add_to6, pull_limit_row
from dalembert.formulations.maximal.pull_joints import add_to3, pull_wrench
from dalembert.formulations.maximal.touch_bars import AFTER
from dalembert.kernels import inline, kernel, specialise
from dalembert.model.hessians import add_row
from dalembert.model.pose import joint_at_knot
from dalembert.model.records import SECOND, SLIDE
from dalembert.model.rows import row_gradient
from dalembert.spatial.tuples import add3, column, cross3, dot3, load3, load9, mat_t_vec, mat_vec, scale3, sub3

ZERO3 = (0.0, 0.0, 0.0)


@inline
def sign_of(x):
    return 1.0 if x >= 0.0 else -1.0


@inline
def along_itself(scale, v):
    """``scale`` times the unit vector of v: the gradient of a length."""
    size = sqrt(dot3(v, v))
    return scale3(scale / size, v) if size > 0.0 else scale3(0.0, v)


@inline
def pull_bounds(bears, numbers, F, M, a, slide, turn):
    """Bars of F, M, a and of the four numbers of ``bearing_bounds`` from those of both bounds."""
    friction, radius, inverse_length, collar = numbers
    along, twist = dot3(F, a), dot3(M, a)
    if bears == 2:
        load = sqrt(dot3(F, F))
        both = slide + radius * turn
        return along_itself(friction * both, F), ZERO3, ZERO3, (load * both, friction * load * turn, 0.0, 0.0)
    across, tilt = sub3(F, scale3(along, a)), sub3(M, scale3(twist, a))
    if bears == 3:
        tipped = sqrt(dot3(tilt, tilt))
        flat = abs(along) >= tipped / radius
        load = (abs(along) if flat else tipped / radius) + abs(twist) / radius
        both = slide + radius * turn
        by_load = friction * both
        by_along = by_load * sign_of(along) if flat else 0.0
        by_tilt = along_itself(0.0 if flat else by_load / radius, tilt)
        by_twist = by_load * sign_of(twist) / radius
        by_radius = friction * load * turn - by_load * ((0.0 if flat else tipped) + abs(twist)) / (radius * radius)
        by_across, by_axis = ZERO3, ZERO3
        by_numbers = (load * both, by_radius, 0.0, 0.0)
    else:
        tipping = cross3(tilt, a)
        lever = scale3(inverse_length, tipping)
        one, other = add3(scale3(0.5, across), lever), sub3(scale3(0.5, across), lever)
        load = sqrt(dot3(one, one)) + sqrt(dot3(other, other))
        by_load = friction * (slide + radius * turn)
        by_one, by_other = along_itself(by_load, one), along_itself(by_load, other)
        by_across, by_lever = scale3(0.5, add3(by_one, by_other)), sub3(by_one, by_other)
        by_tilt = scale3(inverse_length, cross3(a, by_lever))
        by_axis = scale3(inverse_length, cross3(by_lever, tilt))
        by_along = friction * (slide + collar * turn) * sign_of(along)
        by_twist = friction * slide * sign_of(twist) / radius
        by_friction = slide * (load + abs(along) + abs(twist) / radius) + turn * (radius * load + collar * abs(along))
        by_radius = friction * (turn * load - slide * abs(twist) / (radius * radius))
        by_numbers = (by_friction, by_radius, dot3(by_lever, tipping), friction * turn * abs(along))
    by_along -= dot3(by_across, a)
    by_twist -= dot3(by_tilt, a)
    by_axis = sub3(by_axis, add3(scale3(along, by_across), scale3(twist, by_tilt)))
    by_axis = add3(by_axis, add3(scale3(by_along, F), scale3(by_twist, M)))
    return add3(by_across, scale3(by_along, a)), add3(by_tilt, scale3(by_twist, a)), by_axis, by_numbers


@inline
def rests(limits, first, beyond):
    """Whether a bearing rests in all its directions."""
    still = True
    for k in range(first, beyond):
        still = still and (not limits[k].cap > 0.0 or is_held(limits[k]))
    return still


@inline
def full_bounds(work, joint, at, limit):
    """Load of a bearing in the child's frame, its axis, and its bounds along slides and about axes."""
    F, M = reaction(work, joint, at)
    a, b = pin_axis(work, joint, limit), limit.bearing
    slide, turn = bearing_bounds(limit.bears, (b[0], b[1], b[2], b[3]), F, M, a)
    return F, M, a, slide, turn


@inline
def straight_bounds(limit, F, M, a, signs):
    """``bearing_bounds`` with the signs of the load along the axis and of its twist given.

    Rows that exert neither stay at the kink of both, whatever moves, but for rounding and for trials whose rows are open.
    """
    b = limit.bearing
    slide, turn = bearing_bounds(limit.bears, (b[0], b[1], b[2], b[3]), F, M, a)
    if limit.bears == 2:
        return slide, turn
    along, twist = dot3(F, a), dot3(M, a)
    twisted = b[0] * (signs[1] * twist - abs(twist)) / b[1]
    if limit.bears == 3:
        return slide + twisted, turn + b[1] * twisted
    pushed = b[0] * (signs[0] * along - abs(along))
    return slide + pushed + twisted, turn + b[3] * pushed


@kernel
def note_bearings(model, work, limits, resting, facing, signs):
    """(limits,) which bearings rest, and the signs of the bounds that ``find_bounds`` gives of those that slide along several directions; (limits, 2)
    signs of loads along their axes and of their twists.
    """
    first = 0
    while first < limits.shape[0]:
        beyond = first + max(limits[first].share, 1)
        still = limits[first].bears != 0 and rests(limits, first, beyond)
        if limits[first].bears != 0:
            F, M, a, _, _ = full_bounds(work, model.joints[limits[first].joint], work.joints[limits[first].joint], limits[first])
            signs[first, 0], signs[first, 1] = sign_of(dot3(F, a)), sign_of(dot3(M, a))
        for k in range(first, beyond):
            resting[k] = still
            if limits[first].bears != 0 and not still and beyond - first > 1:
                facing[k] = sign_of(limits[k].eta)
        first = beyond


@kernel
def find_bounds(model, work, limits, resting, signs, bounds):
    """(limits,) bounds of all bearings by what their joints carry; ``resting``, ``signs``: as ``note_bearings`` found them."""
    first = 0
    while first < limits.shape[0]:
        beyond = first + max(limits[first].share, 1)
        if limits[first].bears != 0:
            joint = model.joints[limits[first].joint]
            F, M, a, _, _ = full_bounds(work, joint, work.joints[limits[first].joint], limits[first])
            slide, turn = straight_bounds(limits[first], F, M, a, signs[first])
            size = 0.0
            for k in range(first, beyond):
                bounds[k] = slide if joint.free_kind[limits[k].direction] == SLIDE else turn
                size += (bounds[k] * limits[k].eta) ** 2
            if not resting[first] and beyond - first > 1 and size > 0.0:
                for k in range(first, beyond):
                    bounds[k] *= bounds[k] * limits[k].eta / sqrt(size)  # with the sign of the motion
        first = beyond


@kernel
def pull_bearing(model, work, scene, bars, touch, first):
    """The bounds of a bearing whose records begin with ``first``, weighed with ``seed``: by loads, motion, poses and numbers."""
    limits, own = scene.limits, touch.limits
    limit = limits[first]
    index = limit.joint
    joint, at, bar = model.joints[index], work.joints[index], bars.joints[index]
    beyond = first + limit.share
    F, M, a, slide, turn = full_bounds(work, joint, at, limit)
    size = 0.0
    for k in range(first, beyond):
        full = slide if joint.free_kind[limits[k].direction] == SLIDE else turn
        size += (full * limits[k].eta) ** 2
    size = sqrt(size)
    shared = limit.share > 1 and size > 0.0 and not rests(limits, first, beyond)
    weighed = 0.0  # of the z_i
    if shared:
        for k in range(first, beyond):
            full = slide if joint.free_kind[limits[k].direction] == SLIDE else turn
            weighed += own[k].seed * full * abs(full * limits[k].eta)
    by_slide, by_turn = 0.0, 0.0
    for k in range(first, beyond):
        slides = joint.free_kind[limits[k].direction] == SLIDE
        full, eta, by_full = slide if slides else turn, limits[k].eta, own[k].seed
        if shared:
            z = full * eta
            by_z = own[k].seed * full * sign_of(eta) / size - weighed * z / size**3
            by_full = own[k].seed * abs(z) / size + by_z * eta
            a_, b_, by_eta = limits[k].a, limits[k].b, by_z * full
            for c in range(6):
                touch.field[0, 0, c] = by_eta * touch.velocity[AFTER, a_, c]
                touch.field[1, 0, c] = by_eta * touch.velocity[AFTER, b_, c]
            add_to6(touch.dvelocity[AFTER, a_], by_eta, limits[k].Ga)
            add_to6(touch.dvelocity[AFTER, b_], by_eta, limits[k].Gb)
            pull_limit_row(limits[k], joint, bars, touch)
        if slides:
            by_slide += by_full
        else:
            by_turn += by_full
    b = limit.bearing
    by_F, by_M, by_axis, by_numbers = pull_bounds(limit.bears, (b[0], b[1], b[2], b[3]), F, M, a, by_slide, by_turn)
    for c in range(4):
        own[first].bearing[c] += by_numbers[c]
    # the axis
    if joint.free_kind[limit.direction] == SECOND:
        add_to3(bar.turn_child, 1.0, cross3(a, by_axis))
    else:
        Rp, Rc = load9(work.bodies[joint.parent].R), load9(work.bodies[joint.child].R)
        turned = cross3(column(load9(joint.frame_parent), limit.pin), mat_t_vec(Rp, mat_vec(Rc, by_axis)))
        add_to3(bars.bodies[joint.child].phi, 1.0, cross3(by_axis, a))
        add_to3(bars.bodies[joint.parent].phi, 1.0, turned)
        add_to3(bar.turn_parent, 1.0, turned)
    # the load: M is about the child's joint point
    add_to3(bar.point_child, -1.0, cross3(F, by_M))
    by_F = sub3(by_F, cross3(by_M, load3(joint.point_child)))
    add_to3(bars.bodies[joint.child].phi, 1.0, cross3(by_F, F))
    line = mat_vec(load9(work.bodies[joint.child].R), by_F)
    y, C, Rp = joint_at_knot(work.bodies, joint)
    f, T_parent, T_child = ZERO3, ZERO3, ZERO3
    bars.K[:] = 0.0
    for k in range(joint.locks):
        if joint.row_direction[k] < 0:
            force, on_parent, on_child = row_gradient(joint, at, k, y, C, Rp)
            mu = at.mu[k]
            bar.mu[k] += dot3(force, line) + dot3(on_child, by_M)
            add_row(bars.K, joint, at, k, mu, y, C, Rp)
            f, T_parent, T_child = add3(f, scale3(mu, force)), add3(T_parent, scale3(mu, on_parent)), add3(T_child, scale3(mu, on_child))
    still, moved = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0), (line[0], line[1], line[2], by_M[0], by_M[1], by_M[2])
    pull_wrench(bars, index, joint, work.bodies, 1.0, still, moved, f, T_parent, T_child)


@kernel
def solve_small(A, x):
    """Solve with the first rows of A in place by elimination with pivots; False where one vanishes."""
    n = x.shape[0]
    for k in range(n):
        at = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[at, k]):
                at = i
        if not abs(A[at, k]) > 0.0:
            return False
        if at != k:
            x[k], x[at] = x[at], x[k]
            for j in range(n):
                A[k, j], A[at, j] = A[at, j], A[k, j]
        for i in range(k + 1, n):
            share = A[i, k] / A[k, k]
            x[i] -= share * x[k]
            for j in range(k, n):
                A[i, j] -= share * A[k, j]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            x[k] -= A[k, j] * x[j]
        x[k] /= A[k, k]
    return True


@kernel
def take_bounds(scene, touch, row):
    """Bars of the bounds of bearings so far, which are none then."""
    count = 0
    for k in range(scene.limits.shape[0]):
        if scene.limits[k].bears != 0:
            row[count] = touch.limits[k].cap
            count += 1
        touch.limits[k].cap = 0.0


@kernel
def pull_seeds(model, work, scene, bars, touch, seeds):
    """The bounds of all bearings, weighed with ``seeds``."""
    count, first, limits = 0, 0, scene.limits
    while first < limits.shape[0]:
        beyond = first + max(limits[first].share, 1)
        if limits[first].bears != 0:
            some = False
            for k in range(first, beyond):
                touch.limits[k].seed = seeds[count]
                some = some or seeds[count] != 0.0
                count += 1
            if some:
                pull_bearing(model, work, scene, bars, touch, first)
        first = beyond


def build_bearing_pull(name: str, file: str, *, refine: Callable, chain: Callable) -> Callable:
    """The kernel (step, ``Touched``) that goes on after a first ``refine``: bounds of bearings backwards. ``chain(step, bars, touch)`` passes on velocities.

    Returns what is left of the unknowns' bars, relative, or -1 where bounds have no derivative.
    """
    def bear_back(step, held):
        bounds, worst = held.touch.bounds, 0.0
        count = bounds.shape[1]
        if count == 0:
            return 0.0
        total, made, seeds = bounds[count], bounds[count + 1], bounds[count + 2]
        take_bounds(held.scene, held.touch, total)
        size = 0.0
        for j in range(count):
            size = max(size, abs(total[j]))
        if not size > 0.0:
            return 0.0
        for j in range(count):
            for i in range(count):
                seeds[i] = size if i == j else 0.0
            pull_seeds(step.model, step.work, held.scene, held.bars, held.touch, seeds)
            chain(step, held.bars, held.touch)
            worst = max(worst, refine(step, held))
            take_bounds(held.scene, held.touch, made)
            for i in range(count):
                bounds[i, j] = (1.0 if i == j else 0.0) - made[i] / size
        if not solve_small(bounds, total):
            return -1.0
        for j in range(count):
            seeds[j] = total[j] - size
        pull_seeds(step.model, step.work, held.scene, held.bars, held.touch, seeds)
        chain(step, held.bars, held.touch)
        worst = max(worst, refine(step, held))
        take_bounds(held.scene, held.touch, made)
        return worst

    return specialise(bear_back, f"{name}_bear_back", file)
