"""Redundant rows: how many there are, which ones could go, and how clear the decision is (Quaternion section 6.2, Appendix B).

The step itself needs no row removed (the proximal method solves redundant systems); this analysis is for people and for
choosing a solver: mobility, redundancy, overactuation.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
from scipy.linalg import qr

from dalembert.formulations.maximal.engine import MaximalEngine
from dalembert.mechanism.topology import spanning_tree, tree_order

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


class RowSet(NamedTuple):
    """Gradients of all constraint rows at a pose: joints' rows in their order, then couplings."""

    matrix: Any  # sparse (rows, 6 n)
    owners: list[tuple[str, int]]  # element and number of the row in it
    joint: np.ndarray  # index of the row's joint, -1 for a coupling
    driven: np.ndarray  # bool: the row of a position drive


def row_set(engine: MaximalEngine) -> RowSet:
    """The rows at the engine's pose."""
    engine.refresh()
    joints, couplings, world = engine.records.joints, engine.records.couplings, engine.sizes[0]
    joint, k = np.nonzero(np.arange(6) < joints["locks"][:, None])
    coupling, slot = np.nonzero(np.arange(4) < couplings["bodies"][:, None])
    row = np.concatenate([np.arange(len(joint)), np.arange(len(joint)), len(joint) + coupling])
    body = np.concatenate([joints["parent"][joint], joints["child"][joint], couplings["body"][coupling, slot]])
    gradient = np.concatenate([joints["Gp"][joint, k], joints["Gc"][joint, k], couplings["G"][coupling, slot]])
    held = body != world
    columns = (6 * body[held, None] + np.arange(6)).ravel()
    entries = gradient[held].ravel(), (np.repeat(row[held], 6), columns)
    names = [element.name for element in engine.mechanism.joints]
    return RowSet(
        matrix=sparse.csr_matrix(entries, shape=(len(joint) + len(couplings), 6 * world)),
        owners=[(names[i], int(n)) for i, n in zip(joint, k)] + [(element.name, 0) for element in engine.mechanism.couplings],
        joint=np.concatenate([joint, np.full(len(couplings), -1)]),
        driven=np.concatenate([joints["row_direction"][joint, k] >= 0, np.zeros(len(couplings), dtype=bool)]),
    )


def analyse_redundancy(engine: MaximalEngine) -> Redundancy:
    """Rank decisions at the engine's pose: passive rows first, then the drives among what is left.

    The rows of a spanning tree are independent. The others count by their part along the velocities that the tree
    leaves, as many as its joints have freedoms: a dense rank-revealing QR of so few columns takes no time.
    """
    rows = row_set(engine)
    tree, motions = _tree_motions(engine, rows)
    size = np.sqrt(rows.matrix.multiply(rows.matrix).sum(axis=1)).reshape(-1, 1)
    parts = (rows.matrix @ motions) / np.asarray(size)
    closing, drives = np.flatnonzero(~(tree | rows.driven)), np.flatnonzero(rows.driven)
    rank, order, gap, left = _pivots(parts[closing])
    drive_rank, drive_order, drive_gap, _ = _pivots(parts[drives] @ left)
    return Redundancy(
        rows=int(np.count_nonzero(~rows.driven)), rank=int(np.count_nonzero(tree)) + rank, driven_rows=len(drives), driven_rank=drive_rank,
        freedom=motions.shape[1] - rank - drive_rank,
        redundant=tuple(rows.owners[i] for i in sorted(closing[order[rank:]])),
        redundant_drives=tuple(rows.owners[i] for i in sorted(drives[drive_order[drive_rank:]])), gap=min(gap, drive_gap),
    )


def _tree_motions(engine: MaximalEngine, rows: RowSet) -> tuple[np.ndarray, np.ndarray]:
    """Which rows are independent in a spanning tree, and an orthonormal basis (6 n, f) of the velocities that they leave.

    From body to body, G_here u_here + G_there u_there = 0 gives u_there but for what the joint leaves free.
    """
    mechanism, world = engine.mechanism, engine.sizes[0]
    order = tree_order(mechanism, spanning_tree(mechanism))
    reached = {there for _, _, there in order}
    independent = np.zeros(len(rows.owners), dtype=bool)
    velocity = {-1: np.zeros((6, 0))}
    count = 0
    for body in (b for b in range(world) if b not in reached):
        velocity[body] = np.hstack([np.zeros((6, count)), np.eye(6)])
        count += 6
    for joint, here, there in order:
        own = np.flatnonzero((rows.joint == joint) & ~rows.driven)
        G = rows.matrix[own].toarray().reshape(len(own), world, 6)
        rank, pivots, _, free = _pivots(G[:, there])
        own, G = own[pivots[:rank]], G[pivots[:rank]]
        independent[own] = True
        known = velocity[here]
        follow = -np.linalg.pinv(G[:, there]) @ (G[:, here] @ known) if here >= 0 else np.zeros((6, known.shape[1]))
        velocity[there] = np.hstack([follow, np.zeros((6, count - known.shape[1])), free])
        count += free.shape[1]
    motions = np.vstack([np.hstack([velocity[b], np.zeros((6, count - velocity[b].shape[1]))]) for b in range(world)])
    return independent, np.linalg.qr(motions)[0]


def _pivots(rows: np.ndarray) -> tuple[int, np.ndarray, float, np.ndarray]:
    """Rank, order of the rows (independent ones first), gap of the decision, orthonormal basis of what they leave (columns)."""
    if len(rows) == 0:
        return 0, np.zeros(0, dtype=int), np.inf, np.eye(rows.shape[1])
    factors: Any = qr(rows.T, pivoting=True, check_finite=False)
    Q, R, order = factors
    pivots = np.abs(np.diag(R))
    rank = int(np.count_nonzero(pivots > RANK_TOLERANCE))
    gap = np.inf if rank == len(pivots) or rank == 0 else float(pivots[rank - 1] / max(pivots[rank], 1e-300))
    return rank, np.asarray(order), gap, Q[:, rank:]
