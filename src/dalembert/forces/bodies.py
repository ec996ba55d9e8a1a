"""Loads on bodies: forces at points, drag, penalty contact (RedMax 1.9), users' laws; with their derivatives K and D.

A force F of a point X = x + R p with velocity V = v + R (w x p) is a wrench (F, p x R^T F); K and D, (6, 6), are its changes
with position (world) and rotation (body axes), and with linear (world) and angular velocity (body frame):

    dX = dx - R [p] dphi,     dV = dv - R [p] dw - R [w x p] dphi.
"""
from __future__ import annotations

from math import sqrt

from dalembert.kernels import inline, kernel
from dalembert.kernels.calls import call
from dalembert.model.records import DRAG, POINT_FORCE, USER_LOAD
from dalembert.model.turning import add_block
from dalembert.spatial.tuples import (
    add3,
    add9,
    cross3,
    dot3,
    load3,
    mat_mul,
    mat_mul_t,
    mat_t_vec,
    mat_vec,
    outer3,
    scale3,
    scale9,
    skew,
    sub3,
)

ZERO3 = (0.0, 0.0, 0.0)
ZERO9 = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
#: step of differences of users' laws, m, rad, m/s, rad/s
DIFFERENCE = 1e-6


@inline
def point_velocity(R, p, v, w):
    return add3(v, mat_vec(R, cross3(w, p)))


@inline
def penalty_force(numbers, X, V):
    """Force on a point X with velocity V, and its derivatives by both (RedMax eq. 1.48 to 1.61, signs for d < 0)."""
    n = load3(numbers[3:6])
    stiffness, damping, friction, tangential = numbers[7], numbers[8], numbers[9], numbers[10]
    depth = dot3(n, X) - numbers[6]
    if depth >= 0.0:
        return ZERO3, ZERO9, ZERO9
    speed = dot3(n, V)
    normal = outer3(n, n)
    size, by_X, by_V = -stiffness * depth - damping * speed, -stiffness, -damping
    if size < 0.0:  # the damper does not pull it down
        size, by_X, by_V = 0.0, 0.0, 0.0
    F = scale3(size, n)
    F_X = scale9(by_X, normal)
    F_V = scale9(by_V, normal)
    slip = sub3(V, scale3(speed, n))
    fast = sqrt(dot3(slip, slip))
    across = add9(IDENTITY, scale9(-1.0, normal))
    if friction * stiffness * -depth > tangential * fast:
        F = sub3(F, scale3(tangential, slip))
        F_V = add9(F_V, scale9(-tangential, across))
    elif fast > 0.0:
        t = scale3(1.0 / fast, slip)
        F = add3(F, scale3(friction * stiffness * depth, t))
        F_X = add9(F_X, scale9(friction * stiffness, outer3(t, n)))
        F_V = add9(F_V, scale9(friction * stiffness * depth / fast, add9(across, scale9(-1.0, outer3(t, t)))))
    return F, F_X, F_V


@inline
def load_wrench(load, x, R, v, w):
    """Force (world) and torque (body axes) of a load on one body."""
    numbers = load.numbers
    if load.kind == DRAG:
        return scale3(-numbers[0], v), scale3(-numbers[1], w)
    p = load3(numbers)
    if load.kind == POINT_FORCE:
        local = load3(numbers[3:6])
        if numbers[6] != 0.0:
            return mat_vec(R, local), cross3(p, local)
        return local, cross3(p, mat_t_vec(R, local))
    F, _, _ = penalty_force(numbers, add3(x, mat_vec(R, p)), point_velocity(R, p, v, w))
    return F, cross3(p, mat_t_vec(R, F))


@kernel
def add_load_derivatives(K, D, load, x, R, v, w):
    """Add K and D (6, 6) of a load on one body."""
    numbers = load.numbers
    if load.kind == DRAG:
        add_block(D, 0, 0, -numbers[0], IDENTITY)
        add_block(D, 3, 3, -numbers[1], IDENTITY)
        return
    p = load3(numbers)
    arm = skew(p)
    if load.kind == POINT_FORCE:
        local = load3(numbers[3:6])
        if numbers[6] != 0.0:
            add_block(K, 0, 3, -1.0, mat_mul(R, skew(local)))
        else:
            add_block(K, 3, 3, 1.0, mat_mul(arm, skew(mat_t_vec(R, local))))
        return
    F, F_X, F_V = penalty_force(numbers, add3(x, mat_vec(R, p)), point_velocity(R, p, v, w))
    X_phi = scale9(-1.0, mat_mul(R, arm))
    V_phi = scale9(-1.0, mat_mul(R, skew(cross3(w, p))))
    by_phi = add9(mat_mul(F_X, X_phi), mat_mul(F_V, V_phi))
    by_w = mat_mul(F_V, X_phi)
    add_block(K, 0, 0, 1.0, F_X)
    add_block(K, 0, 3, 1.0, by_phi)
    add_block(D, 0, 0, 1.0, F_V)
    add_block(D, 0, 3, 1.0, by_w)
    lever = mat_mul_t(arm, R)
    add_block(K, 3, 0, 1.0, mat_mul(lever, F_X))
    add_block(K, 3, 3, 1.0, add9(mat_mul(lever, by_phi), mat_mul(arm, skew(mat_t_vec(R, F)))))
    add_block(D, 3, 0, 1.0, mat_mul(lever, F_V))
    add_block(D, 3, 3, 1.0, mat_mul(lever, by_w))


@kernel
def user_load(model, work, load, velocity):
    """Call a user's law at the bodies' poses (``x``, ``q``) and velocities (n + 1, 6); wrenches and energy end in ``work.found``."""
    for k in range(load.ends):
        index = model.ends[load.first + k]
        body = work.bodies[index]
        for c in range(3):
            work.given[7 * k + c] = body.x[c]
        for c in range(4):
            work.given[7 * k + 3 + c] = body.q[c]
        for c in range(6):
            work.given[7 * load.ends + 6 * k + c] = velocity[index, c]
    call(load.function, work.given[: 13 * load.ends], work.found[: 6 * load.ends + 1])


@kernel
def user_damping(model, work, load, which, D):
    """D (6, 6) of a user's law for one of its bodies alone, by differences about ``work.velocity``."""
    u = work.velocity[model.ends[load.first + which]]
    for c in range(6):
        for sign in (1.0, -1.0):
            u[c] += sign * DIFFERENCE
            user_load(model, work, load, work.velocity)
            u[c] -= sign * DIFFERENCE
            for r in range(6):
                if sign > 0.0:
                    D[r, c] = work.found[6 * which + r]
                else:
                    D[r, c] = (D[r, c] - work.found[6 * which + r]) / (2.0 * DIFFERENCE)


@kernel
def push_on_bodies(model, work, velocity, moving):
    """Add loads to the bodies' ``load``: those that depend on velocities (n + 1, 6), or those that do not."""
    for i in range(model.loads.shape[0]):
        load = model.loads[i]
        if load.moving != moving:
            continue
        if load.kind == USER_LOAD:
            user_load(model, work, load, velocity)
            for k in range(load.ends):
                target = work.bodies[model.ends[load.first + k]].load
                for c in range(6):
                    target[c] += work.found[6 * k + c]
            continue
        body, u = work.bodies[load.body], velocity[load.body]
        F, T = load_wrench(load, load3(body.x), load9_of(body), load3(u), load3(u[3:]))
        for c in range(3):
            body.load[c] += F[c]
            body.load[3 + c] += T[c]


@inline
def load9_of(body):
    R = body.R
    return (R[0], R[1], R[2], R[3], R[4], R[5], R[6], R[7], R[8])


@kernel
def energy_of_loads(model, work, velocity):
    """Energy of point forces along the world's axes, of penalty springs, and of users' potentials, in J."""
    energy = 0.0
    for i in range(model.loads.shape[0]):
        load = model.loads[i]
        if load.kind == DRAG:
            continue
        if load.kind == USER_LOAD:
            user_load(model, work, load, velocity)
            energy += work.found[6 * load.ends]
            continue
        body, numbers = work.bodies[load.body], load.numbers
        X = add3(load3(body.x), mat_vec(load9_of(body), load3(numbers)))
        if load.kind == POINT_FORCE:
            if numbers[6] == 0.0:
                energy -= dot3(load3(numbers[3:6]), X)
        else:
            depth = min(dot3(load3(numbers[3:6]), X) - numbers[6], 0.0)
            energy += 0.5 * numbers[7] * depth * depth
    return energy
