"""Redundant rows: how many there are, which ones could go, and how clear the decision is (Quaternion section 6.2, Appendix B).

The step itself needs no row removed (the proximal method solves redundant systems); this analysis is for people and for
choosing a solver: mobility, redundancy, overactuation.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import qr

from dalembert.formulations.maximal.engine import MaximalEngine

RANK_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Redundancy:
    """What the rows of a mechanism do at one pose.

    ``rows`` and ``rank`` of the passive joints, ``driven_rows`` and ``driven_rank`` (how many of the position drives are
    independent of one another and of the joints), ``freedom``: velocities left free, drives held. ``redundant`` and
    ``redundant_drives``: names of elements with rows that could be removed. ``gap``: the smallest pivot kept over the
    largest dropped; a large number is a clear decision.
    """

    rows: int
    rank: int
    driven_rows: int
    driven_rank: int
    freedom: int
    redundant: tuple[tuple[str, int], ...]
    redundant_drives: tuple[tuple[str, int], ...]
    gap: float

    @property
    def fully_constrained(self) -> bool:
        """No velocity is left free: the pose follows from the drives."""
        return self.freedom == 0


def row_matrix(engine: MaximalEngine, driven: bool | None = None) -> tuple[np.ndarray, list[tuple[str, int]]]:
    """Gradients (rows, 6 n) of all constraint rows at the engine's pose, and the (element, row) each belongs to.

    ``driven``: only rows of position drives (True), only the others (False), or all.
    """
    engine.refresh()
    world = engine.sizes[0]
    rows, owners = [], []
    for element, joint in zip(engine.mechanism.joints, engine.records.joints):
        for k in range(int(joint["locks"])):
            if driven is None or driven == (joint["row_direction"][k] >= 0):
                row = np.zeros((world, 6))
                for end, G in (("parent", "Gp"), ("child", "Gc")):
                    if joint[end] != world:
                        row[joint[end]] += joint[G][k]
                rows.append(row.ravel())
                owners.append((element.name, k))
    if driven is not True:
        for element, coupling in zip(engine.mechanism.couplings, engine.records.couplings):
            row = np.zeros((world, 6))
            for slot in range(int(coupling["bodies"])):
                row[coupling["body"][slot]] += coupling["G"][slot]
            rows.append(row.ravel())
            owners.append((element.name, 0))
    return np.array(rows).reshape(-1, 6 * world), owners


def analyse_redundancy(engine: MaximalEngine) -> Redundancy:
    """Rank decisions at the engine's pose: passive rows first, then the drives among what is left."""
    passive, owners = row_matrix(engine, driven=False)
    drives, drive_owners = row_matrix(engine, driven=True)
    rank, order, gap, basis = _pivots(passive)
    left = drives - (drives @ basis) @ basis.T
    left -= (left @ basis) @ basis.T
    scale = np.linalg.norm(drives, axis=1, keepdims=True)
    drive_rank, drive_order, drive_gap, _ = _pivots(left, scale)
    return Redundancy(
        rows=len(passive), rank=rank, driven_rows=len(drives), driven_rank=drive_rank,
        freedom=6 * engine.sizes[0] - rank - drive_rank,
        redundant=tuple(owners[i] for i in sorted(order[rank:])),
        redundant_drives=tuple(drive_owners[i] for i in sorted(drive_order[drive_rank:])), gap=min(gap, drive_gap),
    )


def _pivots(rows: np.ndarray, scale: np.ndarray | None = None) -> tuple[int, np.ndarray, float, np.ndarray]:
    """Rank, order of the rows (independent ones first), gap of the decision, orthonormal basis of their span."""
    if len(rows) == 0:
        return 0, np.zeros(0, dtype=int), np.inf, np.zeros((rows.shape[1], 0))
    scale = np.linalg.norm(rows, axis=1, keepdims=True) if scale is None else scale
    factors: Any = qr((rows / scale).T, mode="economic", pivoting=True, check_finite=False)
    Q, R, order = factors
    pivots = np.abs(np.diag(R))
    rank = int(np.sum(pivots > RANK_TOLERANCE * max(pivots[0], 1.0)))
    gap = np.inf if rank == len(pivots) or rank == 0 else float(pivots[rank - 1] / max(pivots[rank], 1e-300))
    return rank, np.asarray(order), gap, Q[:, :rank]
