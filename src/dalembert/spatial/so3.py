"""Rotation vectors and the Jacobians of the exponential map of SO(3), with their directional derivatives.

exp(phi + d) = exp(J_l(phi) d) exp(phi) = exp(phi) exp(J_r(phi) d) to first order in d, and J_r(phi) = J_l(-phi) = J_l(phi)^T:
the right Jacobian turns rates of a rotation vector into the angular velocity in the body frame, the left one into that in
the world frame. Matrices are row-major 9-tuples. The inverses exist for |phi| < 2 pi.

With t = |phi|^2 and theta = |phi|:

    exp(phi)  = I + a [phi] + b [phi]^2      a = sin(theta) / theta
    J_l       = I + b [phi] + c [phi]^2      b = (1 - cos(theta)) / t,  c = (1 - a) / t
    J_l^-1    = I - [phi] / 2 + e [phi]^2    e = (1 - g) / t,  g = (theta / 2) cot(theta / 2)
"""
from __future__ import annotations

from math import cos, factorial, pi, sin, sqrt

from scipy.special import zeta

from dalembert.kernels import inline
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import add3, cross3, dot3, scale3, sub3, transpose

# Power series in t of a, b, c, e and of the derivatives of b, c, e by t. They serve for t < 1, where the closed forms cancel.
_A = tuple((-1) ** k / factorial(2 * k + 1) for k in range(11))
_B = tuple((-1) ** k / factorial(2 * k + 2) for k in range(11))
_C = tuple((-1) ** k / factorial(2 * k + 3) for k in range(11))
_E = tuple(2 * float(zeta(2 * k)) / (2 * pi) ** (2 * k) for k in range(1, 14))
_DB = tuple(k * _B[k] for k in range(1, 11))
_DC = tuple(k * _C[k] for k in range(1, 11))
_DE = tuple(k * _E[k] for k in range(1, 13))
_DDB = tuple(k * _DB[k] for k in range(1, 10))
_DDC = tuple(k * _DC[k] for k in range(1, 10))


@inline
def _polynomial(coefficients, t):
    value = 0.0
    for k in range(len(coefficients) - 1, -1, -1):
        value = value * t + coefficients[k]
    return value


@inline
def _abc(t):
    """a, b, c at t = |phi|^2."""
    if t < 1.0:
        return _polynomial(_A, t), _polynomial(_B, t), _polynomial(_C, t)
    theta = sqrt(t)
    a = sin(theta) / theta
    s = sin(0.5 * theta)
    return a, 2.0 * s * s / t, (1.0 - a) / t


@inline
def _abc_rates(t):
    """The derivatives of b and c by t."""
    if t < 1.0:
        return _polynomial(_DB, t), _polynomial(_DC, t)
    a, b, c = _abc(t)
    return (0.5 * a - b) / t, (0.5 * (a - cos(sqrt(t))) / t - c) / t


@inline
def _abc_second(t):
    """The second derivatives of b and c by t."""
    if t < 1.0:
        return _polynomial(_DDB, t), _polynomial(_DDC, t)
    a, _, _ = _abc(t)
    a_rate = 0.5 * (cos(sqrt(t)) - a) / t
    b_rate, c_rate = _abc_rates(t)
    return (0.5 * a_rate - 2.0 * b_rate) / t, (0.5 * (0.5 * a + 3.0 * a_rate) / t - 2.0 * c_rate) / t


@inline
def _e(t):
    """e at t = |phi|^2."""
    if t < 1.0:
        return _polynomial(_E, t)
    h = 0.5 * sqrt(t)
    return (1.0 - h * cos(h) / sin(h)) / t


@inline
def _e_rate(t):
    """The derivative of e by t."""
    if t < 1.0:
        return _polynomial(_DE, t)
    h = 0.5 * sqrt(t)
    s = sin(h)
    g_rate = (cos(h) / (h * s) - 1.0 / (s * s)) / 8.0
    return -(g_rate + _e(t)) / t


@inline
def _combine(phi, t, p, q):
    """I + p [phi] + q [phi]^2, with t = |phi|^2."""
    x, y, z = phi[0], phi[1], phi[2]
    return (1.0 + q * (x * x - t), q * x * y - p * z, q * x * z + p * y,
            q * x * y + p * z, 1.0 + q * (y * y - t), q * y * z - p * x,
            q * x * z - p * y, q * y * z + p * x, 1.0 + q * (z * z - t))


@inline
def _combine_rate(phi, dphi, t, p, q, dp, dq):
    """The derivative of _combine when phi changes by dphi, p by dp and q by dq."""
    x, y, z = phi[0], phi[1], phi[2]
    u, v, w = dphi[0], dphi[1], dphi[2]
    dt = 2.0 * dot3(phi, dphi)
    kx, ky, kz = dp * x + p * u, dp * y + p * v, dp * z + p * w
    xy = dq * x * y + q * (x * v + u * y)
    xz = dq * x * z + q * (x * w + u * z)
    yz = dq * y * z + q * (y * w + v * z)
    trace = dq * t + q * dt
    return (dq * x * x + 2.0 * q * x * u - trace, xy - kz, xz + ky,
            xy + kz, dq * y * y + 2.0 * q * y * v - trace, yz - kx,
            xz - ky, yz + kx, dq * z * z + 2.0 * q * z * w - trace)


@inline
def exp_matrix(phi):
    """The rotation matrix of a rotation vector."""
    t = dot3(phi, phi)
    a, b, _ = _abc(t)
    return _combine(phi, t, a, b)


@inline
def log_matrix(R):
    """The rotation vector, at most pi long, of a rotation matrix."""
    return quaternion.log(quaternion.from_matrix(R))


@inline
def left_jacobian(phi):
    """J_l(phi)."""
    t = dot3(phi, phi)
    _, b, c = _abc(t)
    return _combine(phi, t, b, c)


@inline
def right_jacobian(phi):
    """J_r(phi)."""
    return transpose(left_jacobian(phi))


@inline
def left_jacobian_inverse(phi):
    """J_l(phi)^-1."""
    t = dot3(phi, phi)
    return _combine(phi, t, -0.5, _e(t))


@inline
def right_jacobian_inverse(phi):
    """J_r(phi)^-1."""
    return transpose(left_jacobian_inverse(phi))


@inline
def left_jacobian_derivative(phi, dphi):
    """The derivative of J_l at phi in the direction dphi."""
    t = dot3(phi, phi)
    dt = 2.0 * dot3(phi, dphi)
    _, b, c = _abc(t)
    b_rate, c_rate = _abc_rates(t)
    return _combine_rate(phi, dphi, t, b, c, b_rate * dt, c_rate * dt)


@inline
def right_jacobian_derivative(phi, dphi):
    """The derivative of J_r at phi in the direction dphi."""
    return transpose(left_jacobian_derivative(phi, dphi))


@inline
def right_jacobian_second(phi, d, e, u):
    """The second derivative of J_r(phi) u in the directions d and e: a vector."""
    t = dot3(phi, phi)
    _, _, c = _abc(t)
    b1, c1 = _abc_rates(t)
    b2, c2 = _abc_second(t)
    along_d, along_e, across = dot3(phi, d), dot3(phi, e), dot3(d, e)
    to_d, to_e, both = 2.0 * along_d, 2.0 * along_e, 4.0 * along_d * along_e
    phi_u, d_u, e_u = cross3(phi, u), cross3(d, u), cross3(e, u)
    turn = add3(scale3(b2 * both + 2.0 * b1 * across, phi_u), add3(scale3(b1 * to_d, e_u), scale3(b1 * to_e, d_u)))
    twice = add3(
        scale3(c2 * both + 2.0 * c1 * across, cross3(phi, phi_u)),
        add3(
            scale3(c1 * to_d, add3(cross3(e, phi_u), cross3(phi, e_u))),
            add3(scale3(c1 * to_e, add3(cross3(d, phi_u), cross3(phi, d_u))), scale3(c, add3(cross3(d, e_u), cross3(e, d_u)))),
        ),
    )
    return sub3(twice, turn)


@inline
def left_jacobian_inverse_derivative(phi, dphi):
    """The derivative of J_l^-1 at phi in the direction dphi."""
    t = dot3(phi, phi)
    dt = 2.0 * dot3(phi, dphi)
    return _combine_rate(phi, dphi, t, -0.5, _e(t), 0.0, _e_rate(t) * dt)


@inline
def right_jacobian_inverse_derivative(phi, dphi):
    """The derivative of J_r^-1 at phi in the direction dphi."""
    return transpose(left_jacobian_inverse_derivative(phi, dphi))
