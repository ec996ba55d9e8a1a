"""Ends of joints and dry friction as smoothed projections: eq. (1) and (2) of ``smoothed`` along one direction.

The ends have (1) with tau = 1, since the weight of a direction is the inertia that its two bodies put up. Friction has (2) with the bound of the
direction for mu gamma and numbers for vectors; its product is measured by ``unit``, so that kappa is so much smaller there.
"""
from __future__ import annotations

from math import sqrt

from dalembert.contact.limits import product_unit
from dalembert.contact.smoothed import closing, closing_row, friction_slope, near_curve, open_share, radius_below
from dalembert.kernels import inline, kernel


@inline
def begin_limit(l, speed, warm):
    """Impulses of a direction to start from, if ``warm`` those that it has; ``speed`` (m/s or rad/s) is what gravity makes in a step."""
    l.unit = product_unit(l, speed)
    l.psi = 0.0
    for side in range(2):
        l.s[side] = 0.0
        if l.awake[side] == 0:
            l.gamma[side] = 0.0
        elif not warm:
            l.gamma[side] = l.gamma0[side]
    l.beta = max(-l.cap, min(l.cap, l.beta if warm else l.beta0)) if l.cap > 0.0 else 0.0


@inline
def take_off(l, d0, d1, d2):
    """Take the solution of the node's rows off its impulses."""
    if l.awake[0] != 0:
        l.gamma[0] -= d0
    if l.awake[1] != 0:
        l.gamma[1] -= d1
    if l.cap > 0.0:
        l.beta -= d2


@inline
def rub(l, kappa):
    """Of (2) along the direction: its kappa, u, and z."""
    m = l.weight
    return kappa * l.unit / m, l.cap / m, l.beta / m - l.eta


@inline
def rubs_near(u, b, e, kappa):
    """Whether friction is solved as a product (see ``rubs_near_curve``)."""
    return abs(b) < u and near_curve((b * b - u * u) * b * e, kappa * b * b)


@kernel
def limit_residual_smoothed(l, kappa):
    """What the equations of both ends and of friction miss, in m/s or rad/s."""
    m = l.weight
    r0, r1, r2 = 0.0, 0.0, 0.0
    if l.awake[0] != 0:
        r0 = closing(l.gamma[0] / m, l.s[0], kappa)
    if l.awake[1] != 0:
        r1 = closing(l.gamma[1] / m, l.s[1], kappa)
    if l.cap > 0.0:
        kappa, u, z = rub(l, kappa)
        B = u - radius_below(u, abs(z), kappa)
        r2 = l.beta / m - (B if z >= 0.0 else -B)
    return r0, r1, r2


@kernel
def limit_rows(l, kappa, noise):
    """The rows' residuals, in m/s or rad/s; what is below ``noise`` counts as nothing."""
    r0, r1, r2 = limit_residual_smoothed(l, kappa)
    m = l.weight
    r0 = closing_row(l.gamma[0] / m, l.s[0], kappa) if abs(r0) > noise else 0.0
    r1 = closing_row(l.gamma[1] / m, l.s[1], kappa) if abs(r1) > noise else 0.0
    if abs(r2) <= noise:
        return r0, r1, 0.0
    kappa, u, _ = rub(l, kappa)
    b = l.beta / m
    if rubs_near(u, b, l.eta, kappa):
        r2 = l.eta + (kappa - b * l.eta) * b / (u * u)
    return r0, r1, r2


@kernel
def limit_matrix_smoothed(l, S, kappa):
    """Write the diagonal block (3, 3); returns the weights of the row H (both ends) and of the row G (friction), as ``limit_matrix`` does."""
    m = l.weight
    for r in range(3):
        for c in range(3):
            S[r, c] = 0.0
        S[r, r] = 1.0
    w0, w1, w2 = 0.0, 0.0, 0.0
    if l.awake[0] != 0:
        own = open_share(l.gamma[0] / m, l.s[0], kappa)
        S[0, 0] = own / m
        w0 = 1.0 - own
    if l.awake[1] != 0:
        own = open_share(l.gamma[1] / m, l.s[1], kappa)
        S[1, 1] = own / m
        w1 = own - 1.0
    if l.cap > 0.0:
        kappa, u, z = rub(l, kappa)
        b = l.beta / m
        if rubs_near(u, b, l.eta, kappa):
            S[2, 2] = (kappa - 2.0 * b * l.eta) / (u * u * m)
            return w0, w1, 1.0 - b * b / (u * u)
        along, _, _ = friction_slope(u, radius_below(u, abs(z), kappa), kappa)
        S[2, 2] = along / m
        w2 = 1.0 - along
    return w0, w1, w2


@kernel
def settle_limit(l, kappa):
    """Put a direction that solves its equations to rounding inside its cones, with all products ``kappa``; False where the rate is beyond its bound."""
    goal = kappa * l.weight
    for side in range(2):
        if l.awake[side] != 0:
            if l.gamma[side] > l.weight * l.s[side]:
                l.s[side] = goal / l.gamma[side]
            else:
                l.gamma[side] = goal / l.s[side]
    if l.cap > 0.0:
        goal = kappa * l.unit
        if l.weight * l.eta * l.eta > goal:
            k = goal / l.cap
            l.psi = 0.5 * (k + sqrt(k * k + 4.0 * l.eta * l.eta))
            l.beta = -l.cap * l.eta / l.psi
        else:
            l.psi = (goal - l.beta * l.eta) / l.cap
        return l.psi >= abs(l.eta)
    return True
