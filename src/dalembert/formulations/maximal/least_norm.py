"""Weighted least-norm reactions of redundant joints (Quaternion eq. 31, 32), as post-processing of recorded forces."""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import ModelError
from dalembert.formulations.maximal.engine import MaximalEngine
from dalembert.formulations.maximal.redundancy import row_matrix


def row_weights(engine: MaximalEngine, weights: Mapping[str, ArrayLike] | None, drive_weight: float) -> np.ndarray:
    """A weight per constraint row: of its joint (a number, or one per row), ``drive_weight`` for position drives, else 1."""
    given = dict(weights or {})
    if not (np.isfinite(drive_weight) and drive_weight > 0.0):
        raise ModelError(f"the weight of drives must be positive, got {drive_weight}")
    values: list[float] = []
    for element, joint in zip(engine.mechanism.joints, engine.records.joints):
        locks = int(joint["locks"])
        default = [drive_weight if joint["row_direction"][k] >= 0 else 1.0 for k in range(locks)]
        asked = given.pop(element.name, default)
        row = np.broadcast_to(np.asarray(asked, dtype=float), (locks,)) if np.ndim(asked) == 0 else np.asarray(asked, dtype=float)
        if row.shape != (locks,) or not np.all(np.isfinite(row)) or np.any(row <= 0.0):
            raise ModelError(f"weights of joint {element.name!r} must be positive, one number or {locks} (one per row), got {asked}")
        values.extend(row)
    values.extend([1.0] * len(engine.records.couplings))
    if given:
        raise ModelError(f"weights for unknown joints: {', '.join(given)}")
    return np.array(values)


def least_norm(engine: MaximalEngine, row_force: np.ndarray, coupling_force: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row forces (joints, 6) and coupling forces with the same effect on every body, least in the weighted norm.

    The engine is at the pose; compliant rows keep their forces.
    """
    G, _ = row_matrix(engine)
    locks = engine.records.joints["locks"]
    held = np.arange(6) < locks[:, None]
    current = np.concatenate([row_force[held], coupling_force])
    scaled = G / np.sqrt(weights)[:, None]
    best = np.linalg.lstsq(scaled.T, G.T @ current, rcond=1e-10)[0] / np.sqrt(weights)
    result = row_force.copy()
    count = int(held.sum())
    result[held] = best[:count]
    return result, best[count:]
