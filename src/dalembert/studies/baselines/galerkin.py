"""Variational integrators of order two and three for n-link pendulums in minimal coordinates, the angles of their hinges.

The motion of a step is a polynomial through control points q^0, ..., q^s; with the quadrature (b, c) the discrete Lagrangian is
Ld = sum_i h b_i L(q(c_i), q'(c_i)). The discrete Euler-Lagrange equations p0 + dLd/dq^0 = 0 and dLd/dq^j = 0 between are solved for
q^1, ..., q^s by Newton's method with the exact Jacobian; p1 = dLd/dq^s. One control point and the midpoint give order two, two and the nodes of
Radau order three.
"""
from __future__ import annotations

import numpy as np

#: by order: places of the control points in a step, weights and nodes of the quadrature
RULES = {2: ((0.0, 1.0), (1.0,), (0.5,)), 3: ((0.0, 0.5, 1.0), (0.75, 0.25), (1.0 / 3.0, 1.0))}
#: after which the paper gives up
MOST = 100


class NoRootError(ArithmeticError):
    """Newton's method did not reach its tolerance."""


class MinimalPendulum:
    """``da.zoo.pendulum(n)``, from the horizontal at rest; ``angles`` (n,) of the hinges and their momenta (n,), N m s."""

    def __init__(self, n: int, order: int, h: float, tolerance: float) -> None:
        self.n, self.h, self.tolerance, self.iterations = n, h, tolerance, 0
        control, self.b, c = RULES[order]
        shapes = [np.poly1d(np.polyfit(control, unit, len(control) - 1)) for unit in np.eye(len(control))]
        self.value = np.array([[shape(node) for shape in shapes] for node in c])
        self.slope = np.array([[shape.deriv()(node) for shape in shapes] for node in c]) / h
        beyond = n - 1.0 - np.maximum.outer(np.arange(n), np.arange(n))
        self.A = beyond + 0.5  # masses of 1 kg and links of 1 m: inertia that absolute rates share
        np.fill_diagonal(self.A, beyond.diagonal() + 0.25 + (3.0 * 0.05**2 + 1.0) / 12.0)
        self.weight = 9.81 * (n - np.arange(n) - 0.5)
        self.sum = np.tri(n)  # absolute angles from those of the hinges
        self.angles, self.momenta = np.zeros(n), np.zeros(n)
        self.angles[0] = 0.5 * np.pi  # from hanging

    def lagrangian(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
        """First derivatives L_q, L_v and second ones L_qq, L_qv, L_vv, by the hinges' angles and rates."""
        a, w, S = self.sum @ q, self.sum @ v, self.sum
        cosine, sine = self.A * np.cos(np.subtract.outer(a, a)), self.A * np.sin(np.subtract.outer(a, a))
        by_q, by_v = -w * (sine @ w) - self.weight * np.sin(a), cosine @ w
        by_qq = w[:, None] * cosine * w - np.diag(w * (cosine @ w) + self.weight * np.cos(a))
        by_qv = (sine * w).T - np.diag(sine @ w)
        return S.T @ by_q, S.T @ by_v, S.T @ by_qq @ S, S.T @ by_qv @ S, S.T @ cosine @ S

    def gradients(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of Ld by the control points, (s + 1, n), and its second derivatives (s + 1, n, s + 1, n)."""
        first, second = np.zeros(points.shape), np.zeros(points.shape * 2)
        for b, value, slope in zip(self.b, self.value, self.slope):
            by_q, by_v, by_qq, by_qv, by_vv = self.lagrangian(value @ points, slope @ points)
            first += self.h * b * (np.outer(value, by_q) + np.outer(slope, by_v))
            for left, right, block in ((value, value, by_qq), (value, slope, by_qv), (slope, value, by_qv.T), (slope, slope, by_vv)):
                second += self.h * b * np.einsum("j,k,mn->jmkn", left, right, block)
        return first, second

    def step(self) -> None:
        """One step; NoRootError where the tolerance (N m s) is not reached."""
        s, n = len(self.value[0]) - 1, self.n
        rate = np.linalg.solve(self.lagrangian(self.angles, np.zeros(n))[4], self.momenta)
        points = np.array([self.angles + k / s * self.h * rate for k in range(s + 1)])
        for _ in range(MOST):
            first, second = self.gradients(points)
            residual = first[:s].copy()
            residual[0] += self.momenta
            if np.linalg.norm(residual) < self.tolerance:
                self.angles, self.momenta = points[s], first[s]
                return
            self.iterations += 1
            points[1:] -= np.linalg.solve(second[:s, :, 1:].reshape(s * n, s * n), residual.ravel()).reshape(s, n)
        raise NoRootError(f"residual {np.linalg.norm(residual):.1e} N m s after {MOST} iterations")
