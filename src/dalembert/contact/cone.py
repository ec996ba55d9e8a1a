"""The node of a contact in the interior point method: complementarity, its linearisation, steps that stay inside.

With the gap's slack s, the impulses gamma (normal) and beta (tangential, 2), the sliding velocity eta = T v and its
bound psi, a contact asks for (Variational eq. 22, 27; kappa -> 0)

    s gamma = kappa,    (mu gamma, beta) o (psi, eta) = kappa e,

where o is the Jordan product of the second-order cone: the exact friction cone by maximum dissipation. The linearised
cone has edge impulses beta_i >= 0 along unit vectors b_i instead, with

    beta_i (b_i . eta + psi) = kappa,    (mu gamma - sum beta_i) psi = kappa.

Both leave three unknowns (gamma, beta) with three rows: s, psi and beta_i are eliminated here, whatever the number of edges.
A TWIST has the second of these alone, with the gamma that its contact has (``twists``). All impulses and kappa are measured in units of ``weight``, the pair's reduced mass, so that kappa is in m^2/s^2.
"""
from __future__ import annotations

from math import cos, pi, sin, sqrt

from dalembert.contact.records import TWIST
from dalembert.kernels import inline, kernel

#: angle (rad) by which friction may miss the direction against the sliding velocity
ASKEW = 1e-7


@inline
def wanted(kappa, product, weight):
    """What a product is aimed at: ``kappa`` (m^2/s^2); if that is negative, a hundredth of itself, but no less than -kappa/10.

    The second way keeps the ratios of large products, and leaves small ones alone.
    """
    if kappa >= 0.0:
        return kappa * weight
    if product <= 0.0:
        return -kappa * weight
    return max(0.01 * product, min(product, -0.1 * kappa * weight))


@inline
def kept_share(kappa, want, product):
    """The share of the cone's vector product that stays when the scalar one goes to ``want``."""
    return want / product if kappa < 0.0 and product > 0.0 else 0.0


@inline
def pair_step(x, dx, limit):
    """Largest step, at most ``limit``, that keeps x + step dx >= 0."""
    if x + limit * dx < 0.0:
        return -x / dx
    return limit


@inline
def cone_step(x0, x1, x2, d0, d1, d2, limit):
    """Largest step, at most ``limit``, that keeps (x0, x1, x2) + step d in the second-order cone."""
    a = d0 * d0 - d1 * d1 - d2 * d2
    b = x0 * d0 - x1 * d1 - x2 * d2
    c = max(x0 * x0 - x1 * x1 - x2 * x2, 0.0)
    # a t^2 + 2 b t + c = 0, the smallest positive root
    root = b * b - a * c
    if root > 0.0:
        root = sqrt(root)
        if b < 0.0:
            t = c / (root - b)
            limit = min(limit, t)
        elif a < 0.0:
            t = -(b + root) / a
            limit = min(limit, t)
    return pair_step(x0, d0, limit)


@inline
def edge_direction(contact, i):
    """Unit vector of one edge of the linearised cone in the contact's tangent frame."""
    angle = 2.0 * pi * i / contact.edges
    return cos(angle), sin(angle)


@inline
def sliding_bound(contact):
    """The least psi that the sliding velocity allows: its length, or its largest part against an edge."""
    if contact.edges == 0:
        return sqrt(contact.eta[0] * contact.eta[0] + contact.eta[1] * contact.eta[1])
    bound = 0.0
    for i in range(contact.edges):
        bx, by = edge_direction(contact, i)
        bound = max(bound, -bx * contact.eta[0] - by * contact.eta[1])
    return bound


@kernel
def open_contact(c, speed, gap_rate):
    """A start inside all cones, near ``gamma0`` and ``beta0``; ``speed`` (m/s) says how far inside at least."""
    m = c.weight
    c.s = max(gap_rate, speed)
    c.gamma = max(c.gamma0, m * speed)
    if c.kind == TWIST:
        c.s = 0.0
        c.gamma = c.gamma0
    slide = sqrt(c.eta[0] * c.eta[0] + c.eta[1] * c.eta[1])
    c.psi = sqrt(slide * slide + speed * speed)
    c.beta[0] = 0.0
    c.beta[1] = 0.0
    if c.edges > 0:
        for i in range(c.edges):
            c.edge[i] = c.friction * c.gamma / (2.0 * c.edges)
        c.psi = slide + speed
    elif c.friction > 0.0:
        cap = c.friction * c.gamma
        size = sqrt(c.beta0[0] * c.beta0[0] + c.beta0[1] * c.beta0[1])
        share = 1.0 if size <= 0.8 * cap else 0.8 * cap / size
        c.beta[0] = share * c.beta0[0]
        c.beta[1] = share * c.beta0[1]


@inline
def complementarity(c):
    """(sum of the products, their number, largest product) of a contact, in m^2/s^2."""
    m = 1.0 / c.weight
    normal = c.s * c.gamma * m
    if c.friction == 0.0:
        return normal, 1, normal
    if c.edges > 0:
        total = normal
        worst = normal
        spare = c.friction * c.gamma
        for i in range(c.edges):
            bx, by = edge_direction(c, i)
            product = c.edge[i] * (bx * c.eta[0] + by * c.eta[1] + c.psi) * m
            spare -= c.edge[i]
            total += product
            worst = max(worst, product)
        product = spare * c.psi * m
        return total + product, c.edges + 2, max(worst, product)
    u0 = c.friction * c.gamma
    scalar = (u0 * c.psi + c.beta[0] * c.eta[0] + c.beta[1] * c.eta[1]) * m
    # Sliding and friction may miss the same line by an angle of ASKEW.
    askew = ASKEW * u0 * c.psi
    x = (abs(u0 * c.eta[0] + c.psi * c.beta[0]) - askew) * m
    y = (abs(u0 * c.eta[1] + c.psi * c.beta[1]) - askew) * m
    return normal + scalar, 1 if c.kind == TWIST else 2, max(normal, max(scalar, max(x, y)))


@inline
def products_after(c, step):
    """Sum of the products after a step along the direction, in m^2/s^2."""
    m = 1.0 / c.weight
    gamma = c.gamma + step * c.dgamma
    total = (c.s + step * c.ds) * gamma * m
    if c.friction == 0.0:
        return total
    psi = c.psi + step * c.dpsi
    ex = c.eta[0] + step * c.deta[0]
    ey = c.eta[1] + step * c.deta[1]
    if c.edges > 0:
        spare = c.friction * gamma
        for i in range(c.edges):
            bx, by = edge_direction(c, i)
            impulse = c.edge[i] + step * c.dedge[i]
            spare -= impulse
            total += impulse * (bx * ex + by * ey + psi) * m
        return total + spare * psi * m
    total += (c.friction * gamma * psi + (c.beta[0] + step * c.dbeta[0]) * ex + (c.beta[1] + step * c.dbeta[1]) * ey) * m
    return total


@inline
def edge_sums(c, kappa, second):
    """What eliminating the edge impulses leaves: d(beta) = q - A d(eta) - a d(psi), d(sum) = q0 - a . d(eta) - a0 d(psi)."""
    qx = 0.0
    qy = 0.0
    q0 = 0.0
    axx = 0.0
    axy = 0.0
    ayy = 0.0
    ax = 0.0
    ay = 0.0
    a0 = 0.0
    total = 0.0
    for i in range(c.edges):
        bx, by = edge_direction(c, i)
        speed = bx * c.eta[0] + by * c.eta[1] + c.psi
        push = wanted(kappa, c.edge[i] * speed, c.weight) - c.edge[i] * speed
        if second:
            push -= c.dedge[i] * (bx * c.deta[0] + by * c.deta[1] + c.dpsi)
        push /= speed
        ratio = c.edge[i] / speed
        qx += bx * push
        qy += by * push
        q0 += push
        axx += bx * bx * ratio
        axy += bx * by * ratio
        ayy += by * by * ratio
        ax += bx * ratio
        ay += by * ratio
        a0 += ratio
        total += c.edge[i]
    return qx, qy, q0, axx, axy, ayy, ax, ay, a0, total


@kernel
def node_matrix(c, S, tangential):
    """Write the diagonal block S (3, 3); returns the weights (w0; w00, w01, w11) of the rows H and T in the contact's rows.

    Row 0 is w0 H dv + S[0, 0] dgamma; rows 1 and 2 are (w00 w01; w01 w11) T dv + S[1:, :] (dgamma, dbeta).
    """
    S[0, 0] = 1.0
    S[0, 1] = 0.0
    S[0, 2] = 0.0
    w0 = 0.0
    if c.kind != TWIST:
        scale = 1.0 / (c.gamma + c.weight * c.s)
        S[0, 0] = scale * c.s
        w0 = scale * c.gamma
        if c.soft > 0.0:
            S[0, 0] += w0 * c.soft
    mu = c.friction
    if not tangential:
        S[1, 0] = 0.0
        S[2, 0] = 0.0
        S[1, 1] = 1.0
        S[1, 2] = 0.0
        S[2, 1] = 0.0
        S[2, 2] = 1.0
        return w0, 0.0, 0.0, 0.0
    if c.edges > 0:
        _, _, _, axx, axy, ayy, ax, ay, a0, total = edge_sums(c, 0.0, False)
        spare = mu * c.gamma - total
        denominator = c.psi * a0 + spare
        share = c.psi / denominator
        S[1, 0] = -share * mu * ax
        S[2, 0] = -share * mu * ay
        S[1, 1] = 1.0
        S[1, 2] = 0.0
        S[2, 1] = 0.0
        S[2, 2] = 1.0
        return w0, axx - share * ax * ax, axy - share * ax * ay, ayy - share * ay * ay
    u0 = mu * c.gamma
    bx = c.beta[0] / u0
    by = c.beta[1] / u0
    scale = 1.0 / (u0 + c.weight * c.psi)
    ex = c.eta[0]
    ey = c.eta[1]
    S[1, 0] = scale * mu * (ex - bx * c.psi)
    S[2, 0] = scale * mu * (ey - by * c.psi)
    S[1, 1] = scale * (c.psi - bx * ex)
    S[1, 2] = -scale * bx * ey
    S[2, 1] = -scale * by * ex
    S[2, 2] = scale * (c.psi - by * ey)
    scale *= u0
    return w0, scale * (1.0 - bx * bx), -scale * bx * by, scale * (1.0 - by * by)


@kernel
def node_residual(c, kappa, second, gap_rate):
    """The three rows' residuals for products ``kappa`` (m^2/s^2, see ``wanted``); with ``second``, the last direction's products are taken off."""
    r0 = 0.0
    if c.kind != TWIST:
        normal = wanted(kappa, c.s * c.gamma, c.weight)
        if second:
            normal -= c.ds * c.dgamma
        r0 = (c.gamma * gap_rate - normal) / (c.gamma + c.weight * c.s)
    mu = c.friction
    if mu == 0.0:
        return r0, 0.0, 0.0
    if c.edges > 0:
        qx, qy, q0, _, _, _, ax, ay, a0, total = edge_sums(c, kappa, second)
        spare = mu * c.gamma - total
        want = wanted(kappa, spare * c.psi, c.weight) - spare * c.psi
        if second:
            fall = 0.0
            for i in range(c.edges):
                fall += c.dedge[i]
            want -= (mu * c.dgamma - fall) * c.dpsi
        # psi (mu dgamma - d(sum)) + spare dpsi = want, without dgamma and d(eta)
        dpsi = (want + c.psi * q0) / (c.psi * a0 + spare)
        return r0, -(qx - ax * dpsi), -(qy - ay * dpsi)
    u0 = mu * c.gamma
    scalar = u0 * c.psi + c.beta[0] * c.eta[0] + c.beta[1] * c.eta[1]
    rho = wanted(kappa, scalar, c.weight)
    leave = 1.0 - kept_share(kappa, rho, scalar)
    rho -= scalar
    x = leave * (u0 * c.eta[0] + c.psi * c.beta[0])
    y = leave * (u0 * c.eta[1] + c.psi * c.beta[1])
    if second:
        rho -= mu * c.dgamma * c.dpsi + c.dbeta[0] * c.deta[0] + c.dbeta[1] * c.deta[1]
        x += mu * c.dgamma * c.deta[0] + c.dpsi * c.dbeta[0]
        y += mu * c.dgamma * c.deta[1] + c.dpsi * c.dbeta[1]
    scale = 1.0 / (u0 + c.weight * c.psi)
    return r0, scale * (x + c.beta[0] * rho / u0), scale * (y + c.beta[1] * rho / u0)


@kernel
def node_direction(c, kappa, second, gap_rate, gap_change, dgamma, dbeta0, dbeta1, deta0, deta1):
    """Recover the eliminated directions from those of the impulses and velocities, and store all of them.

    The tangential impulses follow the normal one along the cone far more closely than a solution of the whole node can
    say: they are computed again from the node's own rows.
    """
    mu = c.friction
    ds = gap_change + gap_rate - c.s
    if c.soft > 0.0:
        ds += c.soft * dgamma
    if mu > 0.0:
        if c.edges > 0:
            _, _, q0, _, _, _, ax, ay, a0, total = edge_sums(c, kappa, second)
            spare = mu * c.gamma - total
            want = wanted(kappa, spare * c.psi, c.weight) - spare * c.psi
            if second:
                fall = 0.0
                for i in range(c.edges):
                    fall += c.dedge[i]
                want -= (mu * c.dgamma - fall) * c.dpsi
            dpsi = (want - c.psi * (mu * dgamma - q0 + ax * deta0 + ay * deta1)) / (c.psi * a0 + spare)
            for i in range(c.edges):
                bx, by = edge_direction(c, i)
                speed = bx * c.eta[0] + by * c.eta[1] + c.psi
                push = wanted(kappa, c.edge[i] * speed, c.weight) - c.edge[i] * speed
                if second:
                    push -= c.dedge[i] * (bx * c.deta[0] + by * c.deta[1] + c.dpsi)
                c.dedge[i] = (push - c.edge[i] * (bx * deta0 + by * deta1 + dpsi)) / speed
            dbeta0 = 0.0
            dbeta1 = 0.0
            for i in range(c.edges):
                bx, by = edge_direction(c, i)
                dbeta0 += bx * c.dedge[i]
                dbeta1 += by * c.dedge[i]
        else:
            u0 = mu * c.gamma
            scalar = u0 * c.psi + c.beta[0] * c.eta[0] + c.beta[1] * c.eta[1]
            rho = wanted(kappa, scalar, c.weight)
            leave = 1.0 - kept_share(kappa, rho, scalar)
            rho -= scalar
            ex = c.eta[0]
            ey = c.eta[1]
            bx = c.beta[0] / u0
            by = c.beta[1] / u0
            x = leave * (u0 * ex + c.psi * c.beta[0])
            y = leave * (u0 * ey + c.psi * c.beta[1])
            if second:
                rho -= mu * c.dgamma * c.dpsi + c.dbeta[0] * c.deta[0] + c.dbeta[1] * c.deta[1]
                x += mu * c.dgamma * c.deta[0] + c.dpsi * c.dbeta[0]
                y += mu * c.dgamma * c.deta[1] + c.dpsi * c.dbeta[1]
            x += bx * rho + mu * (ex - bx * c.psi) * dgamma + u0 * ((1.0 - bx * bx) * deta0 - bx * by * deta1)
            y += by * rho + mu * (ey - by * c.psi) * dgamma + u0 * ((1.0 - by * by) * deta1 - bx * by * deta0)
            a = c.psi - bx * ex
            d = c.psi - by * ey
            determinant = a * d - bx * ey * by * ex
            dbeta0 = -(d * x + bx * ey * y) / determinant
            dbeta1 = -(by * ex * x + a * y) / determinant
            dpsi = (rho - c.psi * mu * dgamma - c.beta[0] * deta0 - c.beta[1] * deta1 - c.eta[0] * dbeta0 - c.eta[1] * dbeta1) / u0
        c.dpsi = dpsi
    c.ds = ds
    c.dgamma = dgamma
    c.dbeta[0] = dbeta0
    c.dbeta[1] = dbeta1
    c.deta[0] = deta0
    c.deta[1] = deta1


@kernel
def node_step(c, limit):
    """Largest step, at most ``limit``, that keeps a contact inside its cones."""
    limit = pair_step(c.s, c.ds, limit)
    limit = pair_step(c.gamma, c.dgamma, limit)
    if c.friction == 0.0:
        return limit
    if c.edges > 0:
        spare = c.friction * c.gamma
        dspare = c.friction * c.dgamma
        for i in range(c.edges):
            bx, by = edge_direction(c, i)
            limit = pair_step(c.edge[i], c.dedge[i], limit)
            limit = pair_step(bx * c.eta[0] + by * c.eta[1] + c.psi, bx * c.deta[0] + by * c.deta[1] + c.dpsi, limit)
            spare -= c.edge[i]
            dspare -= c.dedge[i]
        limit = pair_step(spare, dspare, limit)
        return pair_step(c.psi, c.dpsi, limit)
    limit = cone_step(c.friction * c.gamma, c.beta[0], c.beta[1], c.friction * c.dgamma, c.dbeta[0], c.dbeta[1], limit)
    return cone_step(c.psi, c.eta[0], c.eta[1], c.dpsi, c.deta[0], c.deta[1], limit)


@inline
def node_move(c, step):
    """Move a contact's variables along the direction; eta follows from the velocities."""
    c.s += step * c.ds
    c.gamma += step * c.dgamma
    c.psi += step * c.dpsi
    c.beta[0] += step * c.dbeta[0]
    c.beta[1] += step * c.dbeta[1]
    for i in range(c.edges):
        c.edge[i] += step * c.dedge[i]
