"""The node of a joint direction with limits and dry friction: two one-sided rows and one with a bound, along one row.

    (c - lower)/dt - bound = s >= 0,  gamma >= 0,  s gamma = kappa        and the same for the upper end, mirrored;
    |beta| <= h * friction,  beta against the rate eta of the direction   (a cone of two: Coulomb on one direction).

Impulses are in units of ``weight``, the direction's own inertia, as for contacts (see ``cone``). The product of friction that is weak
against all that moves is measured by less, ``unit``: the same kappa as for limits would ask for sliding at kappa / cap.
"""
from __future__ import annotations

from math import sqrt

from dalembert.contact.cone import cone_step, kept_share, pair_step, wanted
from dalembert.kernels import inline, kernel
from dalembert.model.records import BALL
from dalembert.model.rows import coordinates, direction_gradient
from dalembert.spatial import so3
from dalembert.spatial.tuples import add3, neg3, scale3

#: bounds of friction below this part of the speed that a step begins with count as weak
WEAK = 1e-4


@inline
def coordinate_gradient(joint, i, y, C, R_parent, values):
    """Gradient of one coordinate: for a rotation vector, a component of J_l^-1(phi) times the angular velocity."""
    if joint.free_kind[i] != BALL:
        return direction_gradient(joint, i, y, C, R_parent)
    axis = joint.free_axis[i]
    first = i - axis
    phi = (values[first], values[first + 1], values[first + 2])
    J = so3.right_jacobian_inverse(neg3(phi))
    rows = ((J[0], J[1], J[2]), (J[3], J[4], J[5]), (J[6], J[7], J[8]))
    force = (0.0, 0.0, 0.0)
    on_parent = (0.0, 0.0, 0.0)
    on_child = (0.0, 0.0, 0.0)
    for k in range(3):
        _, parent, child = direction_gradient(joint, first + k, y, C, R_parent)
        on_parent = add3(on_parent, scale3(rows[axis][k], parent))
        on_child = add3(on_child, scale3(rows[axis][k], child))
    return force, on_parent, on_child


@inline
def coordinate_at(joint, at, i, y, C, values):
    """One coordinate at a relative pose, unwrapped against the knot's; ``values`` (6,) is scratch."""
    for k in range(6):
        values[k] = at.coordinate[k]
    coordinates(joint, y, C, values)
    return values[i]


@inline
def product_unit(l, speed):
    """Inertia by which the product of friction is measured, in a step that begins with ``speed``."""
    return min(l.weight, l.cap / (WEAK * speed))


@kernel
def open_limit(l, speed, even):
    """A start inside, near ``gamma0`` and ``beta0``; ``speed`` in units of the direction's rate; ``even``: weak friction is measured as all else."""
    m = l.weight
    l.unit = m if even else product_unit(l, speed)
    for side in range(2):
        l.s[side] = max(l.s[side], speed)
        l.gamma[side] = max(l.gamma0[side], m * speed)
    l.psi = sqrt(l.eta * l.eta + speed * speed)
    l.beta = max(-0.8 * l.cap, min(0.8 * l.cap, l.beta0))


@inline
def limit_products(l):
    """(sum, number, largest) of the complementarity products, in the square of the direction's rate."""
    m = 1.0 / l.weight
    total = 0.0
    count = 0
    worst = 0.0
    for side in range(2):
        if l.awake[side] != 0:
            product = l.s[side] * l.gamma[side] * m
            total += product
            worst = max(worst, product)
            count += 1
    if l.cap > 0.0:
        scalar = (l.cap * l.psi + l.beta * l.eta) / l.unit
        total += scalar
        count += 1
        worst = max(worst, max(scalar, abs(l.cap * l.eta + l.psi * l.beta) / l.unit))
    return total, count, worst


@inline
def limit_products_after(l, step):
    m = 1.0 / l.weight
    total = 0.0
    for side in range(2):
        if l.awake[side] != 0:
            total += (l.s[side] + step * l.ds[side]) * (l.gamma[side] + step * l.dgamma[side]) * m
    if l.cap > 0.0:
        total += (l.cap * (l.psi + step * l.dpsi) + (l.beta + step * l.dbeta) * (l.eta + step * l.deta)) / l.unit
    return total


@kernel
def limit_matrix(l, S):
    """Write the diagonal block (3, 3); returns the weights of the row H (both ends) and of the row G (friction)."""
    for r in range(3):
        for c in range(3):
            S[r, c] = 0.0
        S[r, r] = 1.0
    w0 = 0.0
    w1 = 0.0
    w2 = 0.0
    if l.awake[0] != 0:
        scale = 1.0 / (l.gamma[0] + l.weight * l.s[0])
        S[0, 0] = scale * l.s[0]
        w0 = scale * l.gamma[0]
    if l.awake[1] != 0:
        scale = 1.0 / (l.gamma[1] + l.weight * l.s[1])
        S[1, 1] = scale * l.s[1]
        w1 = -scale * l.gamma[1]
    if l.cap > 0.0:
        b = l.beta / l.cap
        scale = 1.0 / (l.cap + l.weight * l.psi)
        S[2, 2] = scale * (l.psi - b * l.eta)
        w2 = scale * l.cap * (1.0 - b * b)
    return w0, w1, w2


@kernel
def limit_residual(l, kappa, second, rate0, rate1):
    """Residuals of the three rows; ``rate0`` and ``rate1`` are the gaps at the end over dt, less their bounds."""
    r0 = 0.0
    r1 = 0.0
    r2 = 0.0
    if l.awake[0] != 0:
        want = wanted(kappa, l.s[0] * l.gamma[0], l.weight) - (l.ds[0] * l.dgamma[0] if second else 0.0)
        r0 = (l.gamma[0] * rate0 - want) / (l.gamma[0] + l.weight * l.s[0])
    if l.awake[1] != 0:
        want = wanted(kappa, l.s[1] * l.gamma[1], l.weight) - (l.ds[1] * l.dgamma[1] if second else 0.0)
        r1 = (l.gamma[1] * rate1 - want) / (l.gamma[1] + l.weight * l.s[1])
    if l.cap > 0.0:
        scalar = l.cap * l.psi + l.beta * l.eta
        rho = wanted(kappa, scalar, l.unit)
        x = (1.0 - kept_share(kappa, rho, scalar)) * (l.cap * l.eta + l.psi * l.beta)
        rho -= scalar
        if second:
            rho -= l.dbeta * l.deta
            x += l.dpsi * l.dbeta
        r2 = (x + l.beta / l.cap * rho) / (l.cap + l.weight * l.psi)
    return r0, r1, r2


@kernel
def limit_direction(l, kappa, second, rate0, rate1, change, dgamma0, dgamma1, dbeta, deta):
    """Recover the eliminated directions and store all of them; ``change`` is H dv."""
    if l.cap > 0.0:
        scalar = l.cap * l.psi + l.beta * l.eta
        rho = wanted(kappa, scalar, l.unit) - scalar
        if second:
            rho -= l.dbeta * l.deta
        l.dpsi = (rho - l.beta * deta - l.eta * dbeta) / l.cap
    l.ds[0] = change + rate0 - l.s[0]
    l.ds[1] = -change + rate1 - l.s[1]
    l.dgamma[0] = dgamma0
    l.dgamma[1] = dgamma1
    l.dbeta = dbeta
    l.deta = deta


@kernel
def limit_step(l, limit):
    """Largest step, at most ``limit``, that stays inside."""
    for side in range(2):
        if l.awake[side] != 0:
            limit = pair_step(l.s[side], l.ds[side], limit)
            limit = pair_step(l.gamma[side], l.dgamma[side], limit)
    if l.cap > 0.0:
        limit = cone_step(l.cap, l.beta, 0.0, 0.0, l.dbeta, 0.0, limit)
        limit = cone_step(l.psi, l.eta, 0.0, l.dpsi, l.deta, 0.0, limit)
    return limit


@inline
def limit_move(l, step):
    for side in range(2):
        if l.awake[side] != 0:
            l.s[side] += step * l.ds[side]
            l.gamma[side] += step * l.dgamma[side]
    if l.cap > 0.0:
        l.psi += step * l.dpsi
        l.beta += step * l.dbeta
