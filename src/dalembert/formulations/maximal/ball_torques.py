"""Forces of limits and dry friction on ball joints as torques about the parent's axes, along which everything else on such a joint is read.

Solvers push along coordinates: the components of the rotation vector phi, whose rates are J_l^-1(phi) times the angular velocity. A force f along
them is the torque J_l^-T(phi) f = f + phi x f / 2 + c phi x (phi x f) with c = (1 - (t/2) cot(t/2)) / t^2, t = |phi|.
"""
from __future__ import annotations

import numpy as np

from dalembert.model.records import BALL

#: rad, below which c is 1/12
SMALL = 1e-4


def pushed_balls(joints: np.ndarray, limits: np.ndarray) -> list[tuple[int, int]]:
    """(joint, first of its three directions) of the balls among the records of ``joints`` along whose coordinates something of ``limits`` pushes."""
    ends = {(int(limit["joint"]), int(limit["direction"])) for limit in limits}
    found = {(i, d - int(joints[i]["free_axis"][d])) for i, d in ends if joints[i]["free_kind"][d] == BALL}
    return sorted(found)


def along_axes(balls: list[tuple[int, int]], coordinate: np.ndarray, force: np.ndarray) -> np.ndarray:
    """Forces (..., joints, 6) along coordinates (..., joints, 6), with those of ``balls`` as torques about the parent's axes."""
    if not balls:
        return force
    force = force.copy()
    for i, first in balls:
        at = (..., i, slice(first, first + 3))
        phi, f = coordinate[at], force[at]
        half = 0.5 * np.linalg.norm(phi, axis=-1, keepdims=True)
        t = np.maximum(half, 0.5 * SMALL)
        c = np.where(half > 0.5 * SMALL, (1.0 - t / np.tan(t)) / (4.0 * t * t), 1.0 / 12.0)
        across = np.cross(phi, f)
        force[at] = f + 0.5 * across + c * np.cross(phi, across)
    return force
