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
from dalembert.spatial.tuples import dot3, transpose

# Power series in t of a, b, c, e and of the derivatives of b, c, e by t. They serve for t < 1, where the closed forms cancel.
_A = tuple((-1) ** k / factorial(2 * k + 1) for k in range(11))
_B = tuple((-1) ** k / factorial(2 * k + 2) for k in range(11))
_C = tuple((-1) ** k / factorial(2 * k + 3) for k in range(11))
_E = tuple(2 * float(zeta(2 * k)) / (2 * pi) ** (2 * k) for k in range(1, 14))
_DB = tuple(k * _B[k] for k in range(1, 11))
_DC = tuple(k * _C[k] for k in range(1, 11))
_DE = tuple(k * _E[k] for k in range(1, 13))


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
def left_jacobian_inverse_derivative(phi, dphi):
    """The derivative of J_l^-1 at phi in the direction dphi."""
    t = dot3(phi, phi)
    dt = 2.0 * dot3(phi, dphi)
    return _combine_rate(phi, dphi, t, -0.5, _e(t), 0.0, _e_rate(t) * dt)


@inline
def right_jacobian_inverse_derivative(phi, dphi):
    """The derivative of J_r^-1 at phi in the direction dphi."""
    return transpose(left_jacobian_inverse_derivative(phi, dphi))
