"""Motions that the rows of a mechanism leave free at a pose, and ways along them: bodies moved, joints closed again."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.linalg import qr
from scipy.sparse.linalg import splu
from scipy.spatial.transform import Rotation

from dalembert.errors import AssemblyError, LinearisationError
from dalembert.gradients.coordinates import coordinate_rows, coordinates_of
from dalembert.gradients.curved import reaches, turned
from dalembert.model.placement import Placement
from dalembert.model.records import CONSTRAINT
from dalembert.model.redundancy import row_set, tree_motions
from dalembert.model.topology import place, spanning_tree

#: rows with pivots below this one depend on others
RANK = 1e-9
#: pivots below this one are those of a dead centre, or next to it
NEAR = 1e-6
#: rad, or part of a body's reach, by which a pose is moved to see whether rows become independent
NUDGE = 1e-3
#: m or rad, of joints that are closed
CLOSED = 1e-13
#: rounds in which joints are closed
ROUNDS = 30


@dataclass(frozen=True)
class Space:
    """Motions that the rows of a mechanism leave free at a pose.

    ``motions`` (6 n, freedom): orthonormal when rotations are scaled to metres. ``rows``: numbers of rows that are independent;
    ``owners``: names of all rows' elements. ``closing``: numbers of the rows that close loops or drive, in the order of their
    choice, and ``pivots``: what each adds to the ones before.
    """

    motions: np.ndarray
    rows: np.ndarray
    owners: tuple[str, ...]
    closing: np.ndarray
    pivots: np.ndarray
    _sizes: np.ndarray
    _saddle: Any

    @property
    def freedom(self) -> int:
        return self.motions.shape[1]

    def least(self, amounts: np.ndarray) -> np.ndarray:
        """Smallest motions (6 n, ...) that change the independent rows by ``amounts`` (rows, ...)."""
        count = len(self.motions)
        if not len(self.rows):
            return np.zeros((count, *amounts.shape[1:]))
        wanted = (amounts[self.rows].T / self._sizes).T
        return self._saddle.solve(np.concatenate([np.zeros((count, *amounts.shape[1:])), wanted]))[:count]

    def forces(self, wrench: np.ndarray) -> np.ndarray:
        """(rows,) forces of the rows that act as a wrench (6 n,), which leaves the free motions alone, does; redundant rows get none."""
        forces = np.zeros(len(self.owners))
        if len(self.rows):
            forces[self.rows] = self._saddle.solve(np.concatenate([wrench, np.zeros(len(self.rows))]))[len(wrench) :] / self._sizes
        return forces


def free_space(placement: Placement) -> Space:
    """What the rows leave free at the placement's pose: the motions of a spanning tree less what the other rows hold."""
    rows = row_set(placement)
    tree, motions = tree_motions(placement, rows)
    others = np.flatnonzero(~tree)
    scale = np.repeat(np.stack([np.ones(placement.sizes[0]), reaches(placement.model)], axis=1), 3, axis=1).ravel()
    independent, closing, pivots = np.flatnonzero(tree), others, np.zeros(0)
    if len(others) and motions.shape[1]:
        held = rows.matrix[others]
        parts = (held @ motions) / np.sqrt(np.asarray(held.multiply(held).sum(axis=1)).reshape(-1, 1))
        factors: Any = qr(parts.T, pivoting=True)
        Q, R, order = factors
        pivots, closing = np.abs(np.diag(R)), others[order]
        rank = int(np.count_nonzero(pivots > RANK))
        motions = motions @ Q[:, rank:]
        independent = np.sort(np.concatenate([independent, closing[:rank]]))
    motions = np.linalg.qr(scale[:, None] * motions)[0] / scale[:, None]
    G = rows.matrix[independent]
    sizes = np.sqrt(np.asarray(G.multiply(G @ sparse.diags(scale**-2.0)).sum(axis=1)).ravel())
    G = sparse.diags(1.0 / sizes) @ G
    saddle = splu(sparse.bmat([[sparse.diags(scale**2.0), G.T], [G, None]], format="csc")) if len(independent) else None
    return Space(motions, independent, tuple(name for name, _ in rows.owners), closing, pivots, sizes, saddle)


def check_regular(placement: Placement, space: Space) -> None:
    """Raise LinearisationError at a dead centre: where rows depend on others, or nearly so, that do not a little further on."""
    weak = space.closing[: len(space.pivots)][(space.pivots > RANK) & (space.pivots < NEAR)]
    if len(space.owners) > len(space.rows) and space.freedom and not len(weak):
        kept = placement.keep()
        motion = space.motions @ np.random.default_rng(0).choice([-1.0, 1.0], space.freedom)
        move_bodies(placement, NUDGE / np.abs(motion.reshape(-1, 6)[:, 3:]).max(initial=1e-12) * motion)
        try:
            Closer(placement).close()
            beside = free_space(placement).rows
        except AssemblyError:  # a motion that cannot go on
            beside = np.arange(len(space.owners))
        placement.restore(kept)
        placement.evaluate()
        if len(beside) > len(space.rows):
            weak = np.setdiff1d(beside, space.rows)
    if len(weak):
        names = ", ".join(repr(name) for name in dict.fromkeys(space.owners[i] for i in weak))
        raise LinearisationError(
            f"{placement.mechanism.name!r} stands at a dead centre: rows of {names} depend on the others here and not beside it, so that "
            "its motion has no unique linear part. Move it off this pose (set_joint)."
        )


def follow_motion(placement: Placement, motion: np.ndarray) -> None:
    """Move all bodies by a large motion (6 n,): joints of a spanning tree by their coordinates, so that these stay closed."""
    mechanism, joints = placement.mechanism, placement.work.joints
    tree = [mechanism.joints[i] for i in sorted(spanning_tree(mechanism))]
    moved = [c for j in tree for c in coordinates_of(j)]
    changes = iter(coordinate_rows(placement, moved) @ motion)
    values = {}
    for joint in tree:
        before = joints["coordinate"][joint.index, : joint.type.freedom]
        change = np.array([next(changes) for _ in before])
        values[joint.name] = before + change
        balls = [i for i, (kind, _) in enumerate(joint.type.directions) if kind == "ball"]
        if balls:
            values[joint.name][balls] = (Rotation.from_rotvec(change[balls]) * Rotation.from_rotvec(before[balls])).as_rotvec()
    move_bodies(placement, motion)
    bodies = placement.work.bodies
    poses = [(x, Rotation.from_quat(q, scalar_first=True)) for x, q in zip(bodies["x"][:-1].copy(), bodies["q"][:-1].copy())]
    for i, (x, turn) in enumerate(place(mechanism, poses, values)):
        bodies["x"][i], bodies["q"][i] = x, turn.as_quat(scalar_first=True)
    placement.evaluate()


def move_bodies(placement: Placement, motion: np.ndarray) -> None:
    """Move all bodies by a motion (6 n,), and evaluate the pose."""
    bodies, step = placement.work.bodies, motion.reshape(-1, 6)
    bodies["x"][:-1] += step[:, :3]
    bodies["q"][:-1] = turned(bodies["q"][:-1], step[:, 3:])
    placement.evaluate()


class Closer:
    """Closes what motions from a pose open in the joints, by Newton's method with the matrix of that pose while it serves."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.space = free_space(placement)

    def close(self) -> None:
        """Move the bodies as little as possible until the joints are closed. Raises AssemblyError where that does not work."""
        placement, space, size, renewed = self.placement, self.space, np.inf, False
        for _ in range(ROUNDS):
            opened = open_rows(placement)
            new = float(np.abs(opened).max(initial=0.0))
            if new < CLOSED or (renewed and size < 1e-9 and new >= 0.5 * size):
                return
            if not new < 1e3 * size:
                break
            renewed = new > 0.2 * size
            if renewed:
                space = free_space(placement)
            size = new
            move_bodies(placement, space.least(-opened))
        raise AssemblyError(f"the joints of {placement.mechanism.name!r} cannot be closed near this pose: they stay open by {size:.3g} (m or rad)")


def open_rows(placement: Placement) -> np.ndarray:
    """(rows,) how far the rows are open, in the order of ``Numbers.rows``."""
    rows, gaps = placement.opened()
    locked = np.arange(6) < placement.model.joints["locks"][:, None]
    return np.concatenate([rows[locked], gaps[placement.model.couplings["law"] == CONSTRAINT]])
