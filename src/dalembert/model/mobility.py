"""Poses without a rigid motion: a chain pulled taut, a mechanism at a dead centre."""
from __future__ import annotations

import numpy as np
from scipy.linalg import svd
from scipy.spatial.transform import Rotation

from dalembert.model.assembly import constraint_rows, mass_blocks
from dalembert.model.placement import Placement

#: singular values below this part of the largest count as none
RANK = 1e-4
#: largest displacement (m) or rotation (rad) of the difference quotient
STEP = 1e-5
#: a share of the bending of the rows that is more than rounding
SHARE = 0.05
#: rows beyond which the dense analysis takes too long
MOST_ROWS = 2000


def blocking_elements(placement: Placement, velocity: np.ndarray) -> list[str]:
    """Joints and gears that let velocities (n, 6) begin but not go on, those with the largest part first; none as a rule.

    Velocities with G v = 0 go on if accelerations with G a = -G' v exist. Where G loses rank, G' v may have a part that no
    acceleration answers: the rows are then stressed against one another by forces that nothing determines.
    """
    rows = constraint_rows(placement)
    G = rows.matrix().toarray()
    if not 0 < len(G) <= MOST_ROWS or not np.abs(velocity).max() > 0.0:
        return []
    step = STEP / np.abs(velocity).max()
    kept = placement.keep()
    bending = np.zeros(len(G))
    for sign in (1.0, -1.0):
        position, orientation = kept[0]["x"][:-1] + sign * step * velocity[:, :3], kept[0]["q"][:-1]
        turned = Rotation.from_quat(orientation, scalar_first=True) * Rotation.from_rotvec(sign * step * velocity[:, 3:])
        placement.put(position, turned.as_quat(scalar_first=True))
        bending += sign * (constraint_rows(placement).matrix() @ velocity.ravel()) / (2.0 * step)
    placement.restore(kept)
    inverse = np.linalg.inv(np.linalg.cholesky(mass_blocks(placement.model)))
    scaled = np.einsum("rnj,nij->rni", G.reshape(len(G), -1, 6), inverse).reshape(G.shape)
    U, sizes, _ = svd(scaled, full_matrices=False)
    held = U[:, sizes > RANK * sizes[0]]
    rest = bending - held @ (held.T @ bending)
    if not np.linalg.norm(rest) > SHARE * np.linalg.norm(bending) + 1e-9 * np.abs(velocity).max() ** 2:
        return []
    shares: dict[str, float] = {}
    for owner, value in zip(rows.owners, rest):
        shares[owner] = max(shares.get(owner, 0.0), abs(float(value)))
    top = max(shares.values())
    return [owner for owner in sorted(shares, key=lambda name: -shares[name]) if shares[owner] > 0.01 * top]
