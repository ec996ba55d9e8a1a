"""What a joint's motion is made of: a sequence of slides, turns, free rotations and splines, each about a frame of its own.

The child's joint frame stands in the parent's at X(q) = H N_1 N_2 ..., a constant times one motion per factor, all of
them seen from the child's joint frame. Table joints have H = 1, so that both frames coincide at zero coordinates.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from dalembert.spatial.splines import Piece, adjoint, hat, locate

#: kinds of factors
SLIDE, TURN, BALL, SPLINE = "slide", "turn", "ball", "spline"


class Factor(NamedTuple):
    """One motion: its ``kind``, the first of the joint's ``direction``s that it is the motion of and how many they are, the frame ``G`` (4, 4) that
    it is about, in the child's joint frame, and in that frame its ``screw`` (angular, linear) or the ``pieces`` of its spline, with
    their number along each coordinate.
    """

    kind: str
    direction: int
    count: int  # pyright: ignore[reportIncompatibleMethodOverride]
    G: np.ndarray
    screw: np.ndarray
    pieces: tuple[Piece, ...] = ()
    cells: tuple[int, ...] = ()
    closed: bool = False

    def seen_from(self, G: np.ndarray, shift: int = 0) -> Factor:
        """The same motion in the axes in which the frame it is described in stands at ``G``, with directions moved on by ``shift``."""
        return self._replace(G=G @ self.G, direction=self.direction + shift)

    def pose(self, q: np.ndarray) -> np.ndarray:
        """N (4, 4) at the factor's own coordinates."""
        return self.G @ self._local(q) @ np.linalg.inv(self.G)

    def _local(self, q: np.ndarray) -> np.ndarray:
        if self.kind == SPLINE:
            number, local = locate(self.cells, self.closed, q)
            return self.pieces[number].pose(local)
        if self.kind == BALL:
            return frame(np.zeros(3), Rotation.from_rotvec(q).as_matrix())
        return expm(q[0] * hat(self.screw))

    def columns(self, q: np.ndarray) -> np.ndarray:
        """(count, 6): twists of N per unit rate, in its own frame; of a free rotation, those of the angular velocity's axes."""
        if self.kind == BALL:
            local = np.concatenate([self._local(q)[:3, :3], np.zeros((3, 3))], axis=1)  # the parent's axes, M^T e
        elif self.kind == SPLINE:
            local = np.array([self._spline_column(q, e) for e in np.eye(self.count)])
        else:
            local = self.screw[None]
        return local @ adjoint(self.G).T

    def _spline_column(self, q: np.ndarray, e: np.ndarray) -> np.ndarray:
        number, local = locate(self.cells, self.closed, q)
        piece, h = self.pieces[number], 1e-3
        # polynomials of low degree: six-point differences leave rounding alone
        change = sum(w * (piece.pose(local + k * h * e) - piece.pose(local - k * h * e)) for k, w in ((1, 45.0), (2, -9.0), (3, 1.0)))
        T = np.linalg.inv(piece.pose(local)) @ change / (60.0 * h)  # type: ignore[operator]
        return np.array([T[2, 1], T[0, 2], T[1, 0], *T[:3, 3]])


def frame(position: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """(4, 4) from a position and a rotation matrix."""
    G = np.eye(4)
    G[:3, :3], G[:3, 3] = rotation, position
    return G


def table_factors(directions: Sequence[tuple[str, int]], basis: np.ndarray, lead: float) -> tuple[Factor, ...]:
    """The factors of a joint of the table: slides first, then turns, along the canonical axes in ``basis`` (3, 3)."""
    found: list[Factor] = []
    G, units = frame(np.zeros(3), basis), np.eye(3)
    for index, (kind, axis) in enumerate(directions):
        if kind == "slide":
            found.append(Factor(SLIDE, index, 1, G, np.concatenate([np.zeros(3), units[axis]])))
        elif kind == "ball":
            if axis == 0:
                found.append(Factor(BALL, index, 3, G, np.zeros(6)))
        elif kind != "distance":
            found.append(Factor(TURN, index, 1, G, np.concatenate([units[axis], lead * units[axis]])))
    return tuple(found)


def motion(offset: np.ndarray, factors: Sequence[Factor], q: np.ndarray) -> np.ndarray:
    """X (4, 4): the child's joint frame in the parent's at a joint's coordinates."""
    X = offset
    for factor in factors:
        X = X @ factor.pose(q[factor.direction : factor.direction + factor.count])
    return X


def motion_columns(factors: Sequence[Factor], q: np.ndarray) -> np.ndarray:
    """(freedom, 6): twists of the child's joint frame, in that frame, per unit rate of each direction."""
    rows = np.zeros((sum(f.count for f in factors), 6))
    onward = np.eye(4)  # from the frame at hand to the last one
    for factor in reversed(factors):
        own = slice(factor.direction, factor.direction + factor.count)
        rows[own] = factor.columns(q[own]) @ adjoint(np.linalg.inv(onward)).T
        onward = factor.pose(q[own]) @ onward
    return rows
