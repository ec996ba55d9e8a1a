"""Friction along several directions whose bounds span an ellipsoid, by how the directions' rates answer it.

With u_i = beta_i / b_i for bounds b_i, friction is the least of u.H u / 2 + p.u in the unit ball, where H = b A b and A are the answers of the rates. A
step that was solved for some friction tells one pair of friction and rates; from one such pair to the next A is learned (BFGS), so that directions
that a light body or a far point of mass couples are found in few of them.
"""
from __future__ import annotations

from math import sqrt

from dalembert.kernels import inline, kernel

#: changes of friction below this part of its bounds, or with less of a change of rates along them than this part, teach nothing
LITTLE, ACROSS = 1e-6, 1e-8
#: iterations for the multiplier of the ball, and how near its surface is near enough
MOST, NEAR = 60, 1e-13


@kernel
def begin_answers(limits, first, beyond):
    """As if each direction were by itself."""
    for i in range(first, beyond):
        limits[i].answer[:] = 0.0
        limits[i].answer[i - first] = 1.0 / limits[i].weight


@kernel
def learn_answers(limits, first, beyond):
    """From the friction and rates of the last solution (``tried``) and of this one (``asked``)."""
    ss, yy, sy = 0.0, 0.0, 0.0
    for i in range(first, beyond):
        l = limits[i]
        s, y = l.asked[0] - l.tried[0], l.asked[1] - l.tried[1]
        ss += (s / l.reach) ** 2
        yy += (y * l.reach) ** 2
        sy += s * y
    if not (ss > LITTLE * LITTLE and sy > ACROSS * sqrt(ss * yy)):
        return
    told = 0.0
    for i in range(first, beyond):
        l = limits[i]
        l.goal[0] = 0.0
        for j in range(first, beyond):
            l.goal[0] += l.answer[j - first] * (limits[j].asked[0] - limits[j].tried[0])
        told += l.goal[0] * (l.asked[0] - l.tried[0])
    for i in range(first, beyond):
        y = limits[i].asked[1] - limits[i].tried[1]
        for j in range(first, beyond):
            yj = limits[j].asked[1] - limits[j].tried[1]
            limits[i].answer[j - first] += y * yj / sy - limits[i].goal[0] * limits[j].goal[0] / told


@inline
def factored(limits, first, beyond, multiplier):
    """Cholesky's factor of H + multiplier; False where that is not positive."""
    for i in range(first, beyond):
        l = limits[i]
        for j in range(first, i + 1):
            k = j - first
            total = l.answer[k] * l.reach * limits[j].reach + (multiplier if i == j else 0.0)
            for c in range(k):
                total -= l.factor[c] * limits[j].factor[c]
            if j < i:
                l.factor[k] = total / limits[j].factor[k]
            elif total > 0.0:
                l.factor[k] = sqrt(total)
            else:
                return False
    return True


@inline
def solve_for(limits, first, beyond, place):
    """Solve with the factor for what is in ``goal[place]``."""
    for i in range(first, beyond):
        for j in range(first, i):
            limits[i].goal[place] -= limits[i].factor[j - first] * limits[j].goal[place]
        limits[i].goal[place] /= limits[i].factor[i - first]
    for i in range(beyond - 1, first - 1, -1):
        for j in range(i + 1, beyond):
            limits[i].goal[place] -= limits[j].factor[i - first] * limits[j].goal[place]
        limits[i].goal[place] /= limits[i].factor[i - first]


@inline
def length(limits, first, beyond):
    """Of u."""
    total = 0.0
    for i in range(first, beyond):
        total += limits[i].goal[0] ** 2
    return sqrt(total)


@inline
def descend(limits, first, beyond):
    """-p into the goals: the friction that was asked for is right where rates are what they were."""
    for i in range(first, beyond):
        l = limits[i]
        l.goal[0] = -l.asked[1] * l.reach
        for j in range(first, beyond):
            l.goal[0] += l.answer[j - first] * limits[j].asked[0] * l.reach


@kernel
def least_in_ball(limits, first, beyond):
    """Write u into ``goal[0]``; returns its length without the ball. Bounds are ``reach``, friction and rates are ``asked``."""
    descend(limits, first, beyond)
    trace, size = 0.0, length(limits, first, beyond)
    for i in range(first, beyond):
        trace += limits[i].answer[i - first] * limits[i].reach ** 2
    multiplier = 0.0
    if factored(limits, first, beyond, 0.0):
        solve_for(limits, first, beyond, 0)
        free = length(limits, first, beyond)
        if free <= 1.0:
            return free
    multiplier = max(size - trace, 1e-14 * trace)
    for _ in range(MOST):
        descend(limits, first, beyond)
        if not factored(limits, first, beyond, multiplier):
            multiplier = 2.0 * multiplier
            continue
        solve_for(limits, first, beyond, 0)
        n = length(limits, first, beyond)
        if abs(n - 1.0) < NEAR:
            break
        for i in range(first, beyond):
            limits[i].goal[1] = limits[i].goal[0]
        solve_for(limits, first, beyond, 1)
        slope = 0.0
        for i in range(first, beyond):
            slope += limits[i].goal[0] * limits[i].goal[1]
        multiplier = max(0.0, multiplier + (n - 1.0) * n * n / slope)
    return 2.0
