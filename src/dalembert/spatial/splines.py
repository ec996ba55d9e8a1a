"""Cubic B-splines of rigid motions, piece by piece as products of exponentials of polynomials (RedMax section 2.4.12, 2.4.13).

A piece is Q(q) = C exp(xi_1 f_1(q)) exp(xi_2 f_2(q)) ..., with constant screws xi (angular, linear) and cubic polynomials f of one or
two local coordinates in [0, 1]. Curves are the cumulative form of eq. 2.74, surfaces the tensor product of eq. 2.78.
"""
from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

#: powers of the coordinate (rows) to the four basis functions (columns), eq. 2.68
BASIS = np.array([[1.0, 4.0, 1.0, 0.0], [-3.0, 0.0, 3.0, 0.0], [3.0, -6.0, 3.0, 0.0], [-1.0, 3.0, -3.0, 1.0]]) / 6.0
#: the last three cumulative basis functions, eq. 2.72
CUMULATIVE = np.cumsum(BASIS[:, ::-1], axis=1)[:, ::-1][:, 1:]


class Piece(NamedTuple):
    """``C`` (4, 4), ``screws`` (factors, 6), ``powers`` (factors, 4, 1 or 4): coefficients by the powers of the coordinates."""

    C: np.ndarray
    screws: np.ndarray
    powers: np.ndarray

    def seen_from(self, G: np.ndarray) -> Piece:
        """G Q G^-1: the same motion in the axes in which a frame stands at ``G`` (4, 4)."""
        return Piece(G @ self.C @ np.linalg.inv(G), self.screws @ adjoint(G).T, self.powers)

    def backwards(self) -> Piece:
        """Q^-1: the factors in the other order, negated."""
        return Piece(np.linalg.inv(self.C), -(self.screws @ adjoint(self.C).T)[::-1], self.powers[::-1])

    def pose(self, local: np.ndarray) -> np.ndarray:
        """Q (4, 4) at local coordinates (1,) or (2,)."""
        powers = [np.asarray(q) ** np.arange(4) for q in local]
        Q = self.C
        for screw, c in zip(self.screws, self.powers):
            f = powers[0] @ c @ (powers[1] if len(powers) == 2 else np.ones(1))
            Q = Q @ expm(f * hat(screw))
        return Q


def hat(twist: np.ndarray) -> np.ndarray:
    """A twist (angular, linear) as a (4, 4) matrix."""
    w = twist[:3]
    return np.array([[0.0, -w[2], w[1], twist[3]], [w[2], 0.0, -w[0], twist[4]], [-w[1], w[0], 0.0, twist[5]], [0.0, 0.0, 0.0, 0.0]])


def adjoint(G: np.ndarray) -> np.ndarray:
    """(6, 6): twists of a frame at ``G`` (4, 4) in the axes that it stands in."""
    R = G[:3, :3]
    return np.block([[R, np.zeros((3, 3))], [hat(np.concatenate([G[:3, 3], np.zeros(3)]))[:3, :3] @ R, R]])


def twist_between(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """log(A^-1 B), (angular, linear), of two frames (4, 4) less than half a turn apart."""
    T = np.linalg.inv(A) @ B
    w = Rotation.from_matrix(T[:3, :3]).as_rotvec()
    W = hat(np.concatenate([w, np.zeros(3)]))[:3, :3]
    t = float(w @ w)
    half = 0.5 * np.sqrt(t)
    e = 1.0 / 12.0 + t / 720.0 + t * t / 30240.0 if t < 1e-3 else (1.0 - half / np.tan(half)) / t
    return np.concatenate([w, (np.eye(3) - 0.5 * W + e * W @ W) @ T[:3, 3]])


def curve_pieces(frames: np.ndarray, closed: bool) -> list[Piece]:
    """The pieces of a curve through control frames (n, 4, 4): n - 3 of them, n of a closed one."""
    n = len(frames)
    pieces = []
    for first in range(n if closed else n - 3):
        control = [frames[(first + k) % n] for k in range(4)]
        screws = np.array([twist_between(a, b) for a, b in itertools.pairwise(control)])
        pieces.append(Piece(control[0], screws, CUMULATIVE.T[:, :, None].copy()))
    return pieces


def surface_pieces(control: np.ndarray) -> list[Piece]:
    """The patches, row by row, of a surface with control values (m, n, 6): positions, then angles about x, y, z in turn."""
    screws = np.concatenate([np.eye(6)[3:], np.eye(6)[:3]])
    m, n = control.shape[:2]
    return [
        Piece(np.eye(4), screws, np.array([BASIS @ control[i : i + 4, j : j + 4, k] @ BASIS.T for k in range(6)]))
        for i in range(m - 3) for j in range(n - 3)
    ]


def locate(pieces: tuple[int, ...], closed: bool, q: np.ndarray) -> tuple[int, np.ndarray]:
    """The number of the piece at coordinates ``q`` and the local coordinates in it; beyond the ends the last pieces go on."""
    number, local = 0, np.zeros(len(pieces))
    for d, count in enumerate(pieces):
        floor = int(np.floor(q[d]))
        cell = floor % count if closed else min(max(floor, 0), count - 1)
        local[d] = q[d] - (floor if closed else cell)
        number = number * count + cell
    return number, local
