"""Redundant rows: how many there are, which ones could go, and how clear the decision is (Quaternion section 6.2, Appendix B).

The step itself needs no row removed (the proximal method solves redundant systems); this analysis is for people and for
choosing a solver: mobility, redundancy, overactuation.
"""
from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
from scipy.linalg import qr

from dalembert.kernels import kernel
from dalembert.model.compile_forces import coupling_names
from dalembert.model.placement import Placement
from dalembert.model.records import CONSTRAINT
from dalembert.model.topology import spanning_tree, tree_order

RANK_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Redundancy:
    """What the rows of a mechanism do at one pose.

    ``rows`` and ``rank`` of the passive joints, ``driven_rows`` and ``driven_rank`` (how many of the motion drives are
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
    driven: np.ndarray  # bool: the row of a motion drive


def row_set(placement: Placement) -> RowSet:
    """The rows at the placement's pose."""
    placement.evaluate()
    model, joints, at, world = placement.model, placement.model.joints, placement.work.joints, placement.sizes[0]
    couplings = model.couplings[model.couplings["law"] == CONSTRAINT]
    joint, k = np.nonzero(np.arange(6) < joints["locks"][:, None])
    coupling = np.repeat(np.arange(len(couplings)), couplings["ends"])
    ends = np.concatenate([np.arange(c["first"], c["first"] + c["ends"]) for c in couplings]) if len(couplings) else np.zeros(0, dtype=int)
    row = np.concatenate([np.arange(len(joint)), np.arange(len(joint)), len(joint) + coupling])
    body = np.concatenate([joints["parent"][joint], joints["child"][joint], model.ends[ends]])
    gradient = np.concatenate([at["Gp"][joint, k], at["Gc"][joint, k], placement.work.ends["G"][ends]])
    held = body != world
    columns = (6 * body[held, None] + np.arange(6)).ravel()
    entries = gradient[held].ravel(), (np.repeat(row[held], 6), columns)
    names = [element.name for element in placement.mechanism.joints]
    return RowSet(
        matrix=sparse.csr_matrix(entries, shape=(len(joint) + len(couplings), 6 * world)),
        owners=[(names[i], int(n)) for i, n in zip(joint, k)] + [(name, 0) for name in coupling_names(placement.mechanism)[: len(couplings)]],
        joint=np.concatenate([joint, np.full(len(couplings), -1)]),
        driven=np.concatenate([joints["row_direction"][joint, k] >= 0, np.zeros(len(couplings), dtype=bool)]),
    )


def analyse_redundancy(placement: Placement) -> Redundancy:
    """Rank decisions at the placement's pose: passive rows first, then the drives among what is left.

    The rows of a spanning tree are independent. The others count by their part along the velocities that the tree
    leaves: there are few of these, as many as its joints have freedoms.
    """
    rows = row_set(placement)
    tree, motions = tree_motions(placement, rows)
    closing, drives = np.flatnonzero(~(tree | rows.driven)), np.flatnonzero(rows.driven)
    others = rows.matrix[np.concatenate([closing, drives])]
    parts = (others @ motions) / np.sqrt(np.asarray(others.multiply(others).sum(axis=1)).reshape(-1, 1))
    order, gaps, ranks = np.arange(len(parts)), [np.inf], []
    for first, last in ((0, len(closing)), (len(closing), len(parts))):
        pivots = np.zeros(last - first + 1)
        ranks.append(independent_rows(parts, order, first, last, pivots, RANK_TOLERANCE))
        if 0 < ranks[-1] < last - first:
            gaps.append(float(pivots[ranks[-1] - 1] / max(pivots[ranks[-1]], 1e-300)))
    names = [rows.owners[i] for i in np.concatenate([closing, drives])]
    return Redundancy(
        rows=int(np.count_nonzero(~rows.driven)), rank=int(np.count_nonzero(tree)) + ranks[0],
        driven_rows=len(drives), driven_rank=ranks[1], freedom=motions.shape[1] - sum(ranks),
        redundant=tuple(names[i] for i in sorted(order[ranks[0] : len(closing)])),
        redundant_drives=tuple(names[i] for i in sorted(order[len(closing) + ranks[1] :])), gap=float(min(gaps)),
    )


def tree_motions(placement: Placement, rows: RowSet) -> tuple[np.ndarray, np.ndarray]:
    """Which rows are independent in a spanning tree, and a basis (6 n, f) of unit vectors of the velocities that they leave.

    From body to body, G_here u_here + G_there u_there = 0 gives u_there but for what the joint leaves free.
    """
    mechanism, world = placement.mechanism, placement.sizes[0]
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
        factors: Any = qr(G[:, there].T, pivoting=True)
        rank = int(np.count_nonzero(np.abs(np.diag(factors[1])) > RANK_TOLERANCE))
        own, G = own[factors[2][:rank]], G[factors[2][:rank]]
        independent[own] = True
        free, known = factors[0][:, rank:], velocity[here]
        follow = -np.linalg.pinv(G[:, there]) @ (G[:, here] @ known) if here >= 0 else np.zeros((6, known.shape[1]))
        velocity[there] = np.hstack([follow, np.zeros((6, count - known.shape[1])), free])
        count += free.shape[1]
    motions = np.vstack([np.hstack([velocity[b], np.zeros((6, count - velocity[b].shape[1]))]) for b in range(world)])
    return independent, motions / np.linalg.norm(motions, axis=0)


@kernel
def independent_rows(A, order, first, last, pivots, tolerance):
    """Gram-Schmidt with row pivoting among the rows ``first`` to ``last`` of A; those after ``last`` are freed of them too.

    Changes A and the order of its rows; ``pivots``: what was left of each row chosen, and of the largest one not chosen.
    Returns the rank.
    """
    for step in range(last - first + 1):
        size, pick = 0.0, -1
        for i in range(first + step, last):
            square = 0.0
            for c in range(A.shape[1]):
                square += A[i, c] * A[i, c]
            if square > size:
                size, pick = square, i
        pivots[step] = sqrt(size)
        if pick < 0 or not pivots[step] > tolerance:
            return step
        here = first + step
        order[here], order[pick] = order[pick], order[here]
        for c in range(A.shape[1]):
            A[here, c], A[pick, c] = A[pick, c], A[here, c]
            A[here, c] /= pivots[step]
        for i in range(here + 1, A.shape[0]):
            along = 0.0
            for c in range(A.shape[1]):
                along += A[i, c] * A[here, c]
            for c in range(A.shape[1]):
                A[i, c] -= along * A[here, c]
    return last - first
