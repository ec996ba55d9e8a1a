"""Weighted least-norm reactions of redundant joints (Quaternion eq. 31, 32), as post-processing of recorded forces."""
from __future__ import annotations

from collections.abc import Mapping

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


def least_norm(placement: Placement, row_force: np.ndarray, coupling_force: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row forces (joints, 6) and coupling forces with the same effect on every body, least in the weighted norm.

    W^-1 G u with G^T W^-1 G u = G^T (the forces given). The placement is at the pose; compliant rows keep their forces.
    """
    G = row_set(placement).matrix
    held = np.arange(6) < placement.model.joints["locks"][:, None]
    rows = int(held.sum())
    wanted = G.T @ np.concatenate([row_force[held], coupling_force[: G.shape[0] - rows]])
    normal = G.T @ sparse.diags(1.0 / weights) @ G
    shift = SHIFT * normal.diagonal().max(initial=1e-300)
    system = splu(sparse.csc_matrix(normal + shift * sparse.identity(len(wanted))))
    best, left = np.zeros(len(weights)), wanted
    for _ in range(20):
        best += (G @ system.solve(left)) / weights
        before, left = np.abs(left).max(initial=0.0), wanted - G.T @ best
        if not np.abs(left).max(initial=0.0) < 0.5 * before:
            break
    result, tied = row_force.copy(), coupling_force.copy()
    result[held], tied[: len(best) - rows] = best[:rows], best[rows:]
    return result, tied
