"""A variational integrator in the coordinates of planar bodies that keeps constraints of position and of velocity, after Gear, Gupta and Leimkuhler.

With g the gaps of the pins, G their gradient, p momenta, lambda and gamma the multipliers of g(q) = 0 and G(q) M^-1 p = 0 (the principle of Kinon,
Betsch and Schneider, discretised as the symplectic Euler method is):

    q1 = q0 + h M^-1 (p1 + G0^T gamma),    p1 = p0 - h (V'(q0) + G0^T lambda + d(G0 M^-1 p1)/dq0^T gamma),    g(q1) = 0,    G1 M^-1 p1 = 0
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class PlanarLinkage:
    """Bodies (x, y, angle) with masses (n,) and inertias (n,), and pins (body a, point on it, body b, point on it); -1 is the world."""

    mass: np.ndarray
    inertia: np.ndarray
    pins: tuple[tuple[int, tuple[float, float], int, tuple[float, float]], ...]
    gravity: float = 9.81

    @property
    def weights(self) -> np.ndarray:
        """(3 n,): the diagonal of the mass matrix."""
        return np.stack([self.mass, self.mass, self.inertia], axis=1).ravel()

    def energy(self, q: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Kinetic and potential energy of (..., 3 n) coordinates and momenta, J."""
        return 0.5 * (p**2 / self.weights).sum(-1), self.gravity * (self.mass * q[..., 1::3]).sum(-1)

    def rows(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Gaps g (m), their gradient G, and the gradient of G v, all at q."""
        g, G, H = np.zeros(2 * len(self.pins)), np.zeros((2 * len(self.pins), len(q))), np.zeros((2 * len(self.pins), len(q)))
        for k, (a, on_a, b, on_b) in enumerate(self.pins):
            row = slice(2 * k, 2 * k + 2)
            for sign, body, point in ((1.0, a, on_a), (-1.0, b, on_b)):
                if body < 0:
                    g[row] += sign * np.array(point)
                    continue
                i, angle = 3 * body, q[3 * body + 2]
                arm = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ point
                g[row] += sign * (q[i : i + 2] + arm)
                G[row, i : i + 2] += sign * np.eye(2)
                G[row, i + 2] += sign * np.array([-arm[1], arm[0]])
                H[row, i + 2] -= sign * v[i + 2] * arm
        return g, G, H


def step(linkage: PlanarLinkage, q0: np.ndarray, p0: np.ndarray, h: float, tolerance: float = 1e-10) -> tuple[np.ndarray, np.ndarray]:
    """One step of ``h`` seconds by Newton's method; least squares where the pins are dependent, as when all bars are parallel."""
    n, m, w = len(q0), 2 * len(linkage.pins), linkage.weights
    push = np.zeros(n)
    push[1::3] = linkage.gravity * linkage.mass
    _, G0, _ = linkage.rows(q0, p0 / w)
    q1, p1, lam, gamma = q0 + h * p0 / w, p0.copy(), np.zeros(m), np.zeros(m)
    for _ in range(30):
        _, _, H0 = linkage.rows(q0, p1 / w)
        g, G1, H1 = linkage.rows(q1, p1 / w)
        residual = np.concatenate([q1 - q0 - h * (p1 + G0.T @ gamma) / w, p1 - p0 + h * (push + G0.T @ lam + H0.T @ gamma), g, G1 @ (p1 / w)])
        if np.abs(residual).max() < tolerance:
            break
        _, _, unit = linkage.rows(q0, 1.0 / w)  # H0 is linear in p1, body by body
        J = np.zeros((2 * (n + m),) * 2)
        J[:n, :n], J[:n, n : 2 * n], J[:n, 2 * n + m :] = np.eye(n), -h * np.diag(1.0 / w), -h * (G0 / w).T
        J[n : 2 * n, n : 2 * n] = np.eye(n) + h * np.diag(unit.T @ gamma)
        J[n : 2 * n, 2 * n : 2 * n + m], J[n : 2 * n, 2 * n + m :] = h * G0.T, h * H0.T
        J[2 * n : 2 * n + m, :n] = G1
        J[2 * n + m :, :n], J[2 * n + m :, n : 2 * n] = H1, G1 / w
        change = np.linalg.lstsq(J, -residual, rcond=1e-12)[0]
        q1, p1 = q1 + change[:n], p1 + change[n : 2 * n]
        lam, gamma = lam + change[2 * n : 2 * n + m], gamma + change[2 * n + m :]
    return q1, p1
