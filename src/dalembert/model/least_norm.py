"""Weighted least-norm reactions of redundant joints (Quaternion eq. 31, 32), as post-processing of recorded forces."""
from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike
from scipy.sparse.linalg import splu

from dalembert.errors import ModelError
from dalembert.model.placement import Placement
from dalembert.model.records import CONSTRAINT
from dalembert.model.redundancy import row_set

#: added to the diagonal of G^T W^-1 G, relative to its largest entry: freedoms make it singular; refinement removes the effect
SHIFT = 1e-13


def row_weights(placement: Placement, weights: Mapping[str, ArrayLike] | None, drive_weight: float) -> np.ndarray:
    """A weight per constraint row: of its joint (a number, or one per row), ``drive_weight`` for motion drives, else 1."""
    given = dict(weights or {})
    if not (np.isfinite(drive_weight) and drive_weight > 0.0):
        raise ModelError(f"the weight of drives must be positive, got {drive_weight}")
    values: list[float] = []
    for element, joint in zip(placement.mechanism.joints, placement.model.joints):
        locks = int(joint["locks"])
        default = [drive_weight if joint["row_direction"][k] >= 0 else 1.0 for k in range(locks)]
        asked = given.pop(element.name, default)
        row = np.broadcast_to(np.asarray(asked, dtype=float), (locks,)) if np.ndim(asked) == 0 else np.asarray(asked, dtype=float)
        if row.shape != (locks,) or not np.all(np.isfinite(row)) or np.any(row <= 0.0):
            raise ModelError(f"weights of joint {element.name!r} must be positive, one number or {locks} (one per row), got {asked}")
        values.extend(row)
    values.extend([1.0] * int(np.count_nonzero(placement.model.couplings["law"] == CONSTRAINT)))
    if given:
        raise ModelError(f"weights for unknown joints: {', '.join(given)}")
    return np.array(values)


class Pulled(NamedTuple):
    """The cotangent of given forces, the motion y and rho of a cotangent of least-norm forces (formulations/maximal/force_cotangents.py)."""

    bar: np.ndarray
    motion: np.ndarray
    rho: np.ndarray


class LeastNorm:
    """The weighted least-norm problem at a placement's pose: W^-1 G u with G^T W^-1 G u = G^T (the forces given)."""

    def __init__(self, placement: Placement, weights: np.ndarray) -> None:
        self.G, self.weights = row_set(placement).matrix, weights
        self.held = np.arange(6) < placement.model.joints["locks"][:, None]
        self.rows = int(self.held.sum())
        normal = self.G.T @ sparse.diags(1.0 / weights) @ self.G
        shift = SHIFT * normal.diagonal().max(initial=1e-300)
        self.system = splu(sparse.csc_matrix(normal + shift * sparse.identity(self.G.shape[1])))
        #: (6 n,) the motion u of the forces last shared out
        self.motion = np.zeros(self.G.shape[1])

    def solve(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """u and W^-1 G u for which G^T W^-1 G u is ``wanted``; refined, as freedoms make the matrix singular."""
        motion, best, left = np.zeros(len(wanted)), np.zeros(len(self.weights)), wanted
        for _ in range(20):
            step = self.system.solve(left)
            motion += step
            best += (self.G @ step) / self.weights
            before, left = np.abs(left).max(initial=0.0), wanted - self.G.T @ best
            if not np.abs(left).max(initial=0.0) < 0.5 * before:
                break
        return motion, best

    def flat(self, row_force: np.ndarray, coupling_force: np.ndarray) -> np.ndarray:
        """Forces of joints' rows (joints, 6) and couplings as one vector."""
        return np.concatenate([row_force[self.held], coupling_force[: self.G.shape[0] - self.rows]])

    def put(self, values: np.ndarray, row_force: np.ndarray, coupling_force: np.ndarray) -> None:
        """Write a vector of forces into those of joints' rows and couplings."""
        row_force[self.held], coupling_force[: len(values) - self.rows] = values[: self.rows], values[self.rows :]

    def share(self, row_force: np.ndarray, coupling_force: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Row forces (joints, 6) and coupling forces with the same effect on every body, least in the weighted norm."""
        self.motion, best = self.solve(self.G.T @ self.flat(row_force, coupling_force))
        rows, ties = row_force.copy(), coupling_force.copy()
        self.put(best, rows, ties)
        return rows, ties

    def pull(self, row_bar: np.ndarray, coupling_bar: np.ndarray) -> Pulled:
        """From the cotangent of least-norm forces to that of the given ones."""
        bar = self.flat(row_bar, coupling_bar)
        motion, _ = self.solve(self.G.T @ (bar / self.weights))
        given = self.G @ motion
        return Pulled(given, motion, (bar - given) / self.weights)


def least_norm(placement: Placement, row_force: np.ndarray, coupling_force: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row forces (joints, 6) and coupling forces with the same effect on every body, least in the weighted norm.

    The placement is at the pose; compliant rows keep their forces.
    """
    return LeastNorm(placement, weights).share(row_force, coupling_force)
