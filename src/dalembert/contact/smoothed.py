"""A contact's complementarity as equations whose unknowns need not stay inside cones: projections, smoothed by ``kappa``.

The products of ``cone`` are asked for as fixed points of projections. With a = gamma / (m tau) and b = tau s, where m is the contact's weight,
tau^2 m the inertia that the normal impulse feels of the two bodies, and s the gap at the end over dt less its bound,

    a = (z + sqrt(z^2 + 4 kappa)) / 2,    z = a - b        <=>    s gamma = kappa m,  s > 0,  gamma > 0.                  (1)

With u = mu gamma / (m sigma), b = beta / (m sigma), e = sigma eta (sigma^2 m: the inertia along the tangents) friction is a radius B along z = b - e,

    b = B z / |z|,    B (1 + kappa / (u^2 - B^2)) = |z|,  0 < B < u      <=>    (mu gamma, beta) o (psi, eta) = kappa m e.     (2)

As kappa -> 0 these are max(0, z) and the projection on a disc of radius u (Alart and Curnier): Newton's method on them finds out which contacts
are open, stick and slide. A TWIST has (2) alone, with gamma given. Its solutions are those of the interior point method with all products equal to ``kappa`` (m^2/s^2).
"""
from __future__ import annotations

from math import sqrt

from dalembert.contact.records import TWIST
from dalembert.kernels import inline, kernel

#: part of the root of kappa below which the bound of friction never falls
LEAST = 1e-6
#: most iterations for the radius of friction; the last of them changes it by no more than this part, and what is left is the square of that
ROUNDS, FOUND = 30, 1e-8


@kernel
def radius_below(u, length, kappa):
    """u - B of (2), for |z| = ``length``: the root d of u - d + kappa/2 (1/d - 1/(2u - d)) = length, convex and falling in 0 < d <= u."""
    over = length - u
    root = sqrt(over * over + 2.0 * kappa)
    d = min(u, kappa / (over + root) if over > 0.0 else 0.5 * (root - over))
    for _ in range(ROUNDS):
        near = 1.0 / d
        far = 1.0 / (2.0 * u - d)
        value = u - d + 0.5 * kappa * (near - far) - length
        change = value / (1.0 + 0.5 * kappa * (near * near + far * far))
        new = min(u, max(d + change, 0.1 * d))
        if abs(new - d) <= FOUND * d:
            return new
        d = new
    return d


@inline
def friction_terms(c, kappa):
    """Of (2) at the iterate: the unit vector along z, B, its derivatives by |z| (less from one) and u, and one less B / |z|."""
    scale = 1.0 / (c.weight * c.sigma)
    u = max(c.friction * c.gamma * scale, LEAST * sqrt(kappa))
    x = c.beta[0] * scale - c.sigma * c.eta[0]
    y = c.beta[1] * scale - c.sigma * c.eta[1]
    length = sqrt(x * x + y * y)
    if length > 0.0:
        x /= length
        y /= length
    else:
        x = 1.0
    d = radius_below(u, length, kappa)
    spare = d * (2.0 * u - d)
    B = u - d
    bend = kappa * (u * u + B * B) / (spare * spare)
    lag = kappa / spare
    return x, y, B, bend / (1.0 + bend), 2.0 * kappa * B * u / (spare * spare) / (1.0 + bend), lag / (1.0 + lag)


@kernel
def smoothed_residual(c, kappa, noise):
    """What (1) and (2) miss, in m/s, with the rate of the gap in ``s``; velocities below ``noise`` (m/s) count as none.

    Where impulses are not unique, rounding of that size would shuffle them about, and with them whatever they do not quite balance.
    """
    a = c.gamma / (c.weight * c.tau)
    b = c.tau * c.s
    root = sqrt((a - b) * (a - b) + 4.0 * kappa)
    r0 = 2.0 * (a * b - kappa) / (a + b + root) if a + b > 0.0 else 0.5 * (a + b - root)
    if abs(r0) <= noise * min(c.tau, 1.0) or c.kind == TWIST:
        r0 = 0.0
    if c.friction == 0.0:
        return r0, 0.0, 0.0
    x, y, B, _, _, _ = friction_terms(c, kappa)
    scale = 1.0 / (c.weight * c.sigma)
    r1 = c.beta[0] * scale - B * x
    r2 = c.beta[1] * scale - B * y
    if max(abs(r1), abs(r2)) <= noise * min(c.sigma, 1.0):
        return r0, 0.0, 0.0
    return r0, r1, r2


@kernel
def smoothed_matrix(c, S, kappa):
    """Write the diagonal block S (3, 3) of (1) and (2); returns the weights of the rows H and T as ``node_matrix`` does."""
    m = c.weight
    a = c.gamma / (m * c.tau)
    z = a - c.tau * c.s
    root = sqrt(z * z + 4.0 * kappa)
    own = 2.0 * kappa / (root * (root + z)) if z > 0.0 else 0.5 * (1.0 - z / root)
    S[0, 0] = own / (m * c.tau)
    S[0, 1] = 0.0
    S[0, 2] = 0.0
    w0 = (1.0 - own) * c.tau
    if c.soft > 0.0:
        S[0, 0] += w0 * c.soft
    if c.kind == TWIST:
        S[0, 0] = 1.0
        w0 = 0.0
    if c.friction == 0.0:
        for r in range(1, 3):
            for k in range(3):
                S[r, k] = 0.0
            S[r, r] = 1.0
        return w0, 0.0, 0.0, 0.0
    x, y, _, along, lift, across = friction_terms(c, kappa)
    scale = 1.0 / (m * c.sigma)
    S[1, 0] = -scale * c.friction * lift * x
    S[2, 0] = -scale * c.friction * lift * y
    S[1, 1] = scale * (along * x * x + across * y * y)
    S[1, 2] = scale * (along - across) * x * y
    S[2, 1] = S[1, 2]
    S[2, 2] = scale * (along * y * y + across * x * x)
    return w0, c.sigma * (1.0 - along * x * x - across * y * y), -c.sigma * (along - across) * x * y, c.sigma * (1.0 - along * y * y - across * x * x)


@kernel
def settle(c, kappa):
    """Put a contact that solves (1) and (2) to rounding inside its cones, with all products ``kappa``.

    What presses keeps its impulses and gets the slack and the bound that belong to them, what is open the other way round.
    """
    goal = kappa * c.weight
    if c.kind == TWIST or c.gamma > c.weight * c.tau * c.tau * c.s:
        c.s = 0.0 if c.kind == TWIST else goal / c.gamma
        if c.friction > 0.0:
            c.psi = (goal - c.beta[0] * c.eta[0] - c.beta[1] * c.eta[1]) / (c.friction * c.gamma)
        return
    c.gamma = goal / c.s
    if c.friction > 0.0:
        k = goal / (c.friction * c.gamma)
        c.psi = 0.5 * (k + sqrt(k * k + 4.0 * (c.eta[0] * c.eta[0] + c.eta[1] * c.eta[1])))
        c.beta[0] = -c.friction * c.gamma * c.eta[0] / c.psi
        c.beta[1] = -c.friction * c.gamma * c.eta[1] / c.psi
