"""Forces of limits and dry friction on ball joints as torques about the parent's axes, along which everything else on such a joint is read.

Solvers push along coordinates: the components of the rotation vector phi, whose rates are J_l^-1(phi) times the angular velocity. A force f along
them is the torque J_l^-T(phi) f = f + phi x f / 2 + c phi x (phi x f) with c = (1 - (t/2) cot(t/2)) / t^2, t = |phi|. Derivatives of what is read
go through both f and phi.
"""
from __future__ import annotations

import numpy as np

from dalembert.model.records import BALL

#: rad, below which c is 1/12
SMALL = 1e-4
#: rad, below which derivatives take c as a series
SERIES = 0.05


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


def _cross(v: np.ndarray) -> np.ndarray:
    """(..., 3, 3) the matrices of v x."""
    matrix = np.zeros((*v.shape, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        matrix[..., k, j], matrix[..., j, k] = v[..., i], -v[..., i]
    return matrix


def _derivatives(phi: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(..., 3, 3) of the torque by the force and by phi."""
    t = np.linalg.norm(phi, axis=-1)[..., None, None]
    near, at = t < SERIES, np.maximum(t, SERIES)
    half = 0.5 * at
    c = np.where(near, 1.0 / 12.0 + t**2 / 720.0 + t**4 / 30240.0, (1.0 - half / np.tan(half)) / at**2)
    # dc/dt / t
    slope = np.where(near, 1.0 / 360.0 + t**2 / 7560.0, (-2.0 / at + 0.5 / np.tan(half) + 0.25 * at / np.sin(half) ** 2) / at**3)
    across, turned = _cross(phi), np.cross(phi, f)
    by_force = np.eye(3) + 0.5 * across + c * across @ across
    by_phi = -0.5 * _cross(f) - c * (_cross(turned) + across @ _cross(f)) + slope * np.cross(phi, turned)[..., :, None] * phi[..., None, :]
    return by_force, by_phi


def pull_along_axes(balls: list[tuple[int, int]], coordinate: np.ndarray, force: np.ndarray, bar: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bars of forces and of coordinates from those of what ``along_axes`` gives; all (..., joints, 6)."""
    forces, coordinates = bar.copy(), np.zeros_like(bar)
    for i, first in balls:
        at = (..., i, slice(first, first + 3))
        by_force, by_phi = _derivatives(coordinate[at], force[at])
        forces[at] = np.einsum("...kc,...k->...c", by_force, bar[at])
        coordinates[at] = np.einsum("...kc,...k->...c", by_phi, bar[at])
    return forces, coordinates


def push_along_axes(balls: list[tuple[int, int]], coordinate: np.ndarray, force: np.ndarray, turning: np.ndarray, change: np.ndarray) -> np.ndarray:
    """The tangent of what ``along_axes`` gives from those of coordinates (``turning``) and forces (``change``); all (..., joints, 6)."""
    found = change.copy()
    for i, first in balls:
        at = (..., i, slice(first, first + 3))
        by_force, by_phi = _derivatives(coordinate[at], force[at])
        found[at] = np.einsum("...kc,...c->...k", by_force, change[at]) + np.einsum("...kc,...c->...k", by_phi, turning[at])
    return found
