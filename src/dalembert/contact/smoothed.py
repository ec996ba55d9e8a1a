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
#: products between this part of their aim and so many times it are solved as products
CURVE = 100.0
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
def closing(a, b, kappa):
    """What (1) misses."""
    root = sqrt((a - b) * (a - b) + 4.0 * kappa)
    return 2.0 * (a * b - kappa) / (a + b + root) if a + b > 0.0 else 0.5 * (a + b - root)


@inline
def near_curve(product, kappa):
    """Whether a product is so near its aim that it is solved as a product.

    Where impulses are shared among many, a projection only doubles in an iteration what is too small; the product itself gets there at once.
    """
    return kappa < CURVE * product and product < CURVE * kappa


@inline
def closing_row(a, b, kappa):
    """What (1) misses as a row of the linear system has it."""
    return (a * b - kappa) / (a + b) if a > 0.0 and near_curve(a * b, kappa) else closing(a, b, kappa)


@inline
def open_share(a, b, kappa):
    """The derivative of ``closing_row`` by a; that by b is what is left to one."""
    if a > 0.0 and near_curve(a * b, kappa):
        return b / (a + b)
    z = a - b
    root = sqrt(z * z + 4.0 * kappa)
    return 2.0 * kappa / (root * (root + z)) if z > 0.0 else 0.5 * (1.0 - z / root)


@inline
def friction_slope(u, d, kappa):
    """Derivatives of B = u - d by |z| (less from one) and by u, and one less B / |z|."""
    spare = d * (2.0 * u - d)
    B = u - d
    bend = kappa * (u * u + B * B) / (spare * spare)
    lag = kappa / spare
    return bend / (1.0 + bend), 2.0 * kappa * B * u / (spare * spare) / (1.0 + bend), lag / (1.0 + lag)


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
    along, lift, across = friction_slope(u, d, kappa)
    return x, y, u - d, along, lift, across


@inline
def in_units(c):
    """u, b and e of (2)."""
    scale = 1.0 / (c.weight * c.sigma)
    return c.friction * c.gamma * scale, c.beta[0] * scale, c.beta[1] * scale, c.sigma * c.eta[0], c.sigma * c.eta[1]


@inline
def rubs_near_curve(u, bx, by, ex, ey, kappa):
    """Whether friction is solved as a product, u^2 e + (kappa - b . e) b = 0: along b it is (u^2 - b^2) e = -kappa b."""
    b2, along = bx * bx + by * by, bx * ex + by * ey
    if u <= 0.0 or b2 >= u * u or along > 0.5 * kappa:
        return False
    x = u * u * ex - along * bx
    y = u * u * ey - along * by
    return near_curve(sqrt((x * x + y * y) * b2), kappa * b2)


@kernel
def smoothed_residual(c, kappa):
    """What (1) and (2) miss, in m/s, with the rate of the gap in ``s``."""
    r0 = 0.0 if c.kind == TWIST else closing(c.gamma / (c.weight * c.tau), c.tau * c.s, kappa)
    if c.friction == 0.0:
        return r0, 0.0, 0.0
    x, y, B, _, _, _ = friction_terms(c, kappa)
    scale = 1.0 / (c.weight * c.sigma)
    return r0, c.beta[0] * scale - B * x, c.beta[1] * scale - B * y


@kernel
def smoothed_rows(c, kappa, noise):
    """The rows' residuals, in m/s; velocities below ``noise`` (m/s) count as none.

    Where impulses are not unique, rounding of that size would shuffle them about, and with them whatever they do not quite balance.
    """
    r0, r1, r2 = smoothed_residual(c, kappa)
    if abs(r0) <= noise * min(c.tau, 1.0) or c.kind == TWIST:
        r0 = 0.0
    else:
        r0 = closing_row(c.gamma / (c.weight * c.tau), c.tau * c.s, kappa)
    if max(abs(r1), abs(r2)) <= noise * min(c.sigma, 1.0):
        return r0, 0.0, 0.0
    u, bx, by, ex, ey = in_units(c)
    if rubs_near_curve(u, bx, by, ex, ey, kappa):
        k = (kappa - bx * ex - by * ey) / (u * u)
        return r0, ex + k * bx, ey + k * by
    return r0, r1, r2


@kernel
def smoothed_matrix(c, S, kappa):
    """Write the diagonal block S (3, 3) of (1) and (2); returns the weights of the rows H and T as ``node_matrix`` does."""
    m = c.weight
    own = open_share(c.gamma / (m * c.tau), c.tau * c.s, kappa)
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
    scale = 1.0 / (m * c.sigma)
    u, bx, by, ex, ey = in_units(c)
    if rubs_near_curve(u, bx, by, ex, ey, kappa):
        w = 1.0 / (u * u)
        k = (kappa - bx * ex - by * ey) * w
        S[1, 0] = -2.0 * scale * c.friction * k * bx / u
        S[2, 0] = -2.0 * scale * c.friction * k * by / u
        S[1, 1] = scale * (k - w * bx * ex)
        S[1, 2] = -scale * w * bx * ey
        S[2, 1] = -scale * w * by * ex
        S[2, 2] = scale * (k - w * by * ey)
        return w0, c.sigma * (1.0 - w * bx * bx), -c.sigma * w * bx * by, c.sigma * (1.0 - w * by * by)
    x, y, _, along, lift, across = friction_terms(c, kappa)
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

    What presses keeps its impulses and gets the slack that belongs to them, and the bound unless it slides faster than friction could stop at once; what is
    open, and what slides so, the other way round.
    """
    goal = kappa * c.weight
    if c.kind == TWIST or c.gamma > c.weight * c.tau * c.tau * c.s:
        c.s = 0.0 if c.kind == TWIST else goal / c.gamma
        u = c.friction * c.gamma / c.weight
        if c.friction > 0.0 and c.eta[0] * c.eta[0] + c.eta[1] * c.eta[1] <= u * u:
            c.psi = (goal - c.beta[0] * c.eta[0] - c.beta[1] * c.eta[1]) / (c.friction * c.gamma)
            return
    else:
        c.gamma = goal / c.s
    if c.friction > 0.0:
        k = goal / (c.friction * c.gamma)
        c.psi = 0.5 * (k + sqrt(k * k + 4.0 * (c.eta[0] * c.eta[0] + c.eta[1] * c.eta[1])))
        c.beta[0] = -c.friction * c.gamma * c.eta[0] / c.psi
        c.beta[1] = -c.friction * c.gamma * c.eta[1] / c.psi
