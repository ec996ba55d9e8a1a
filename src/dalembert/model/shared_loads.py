"""Joints whose loads are not determined: they hold what others hold too, and forces of many sizes balance."""
from __future__ import annotations

import numpy as np

from dalembert.model.placement import Placement
from dalembert.model.redundancy import RANK_TOLERANCE, row_set

#: part of a row in what balances by itself from which on it counts
PART = 1e-6


def joints_with_shared_loads(placement: Placement) -> set[str]:
    """Names of the joints with rows among those that are redundant at the placement's pose."""
    rows = row_set(placement)
    gradients = rows.matrix.toarray()
    if not len(gradients):
        return set()
    left, sizes, _ = np.linalg.svd(gradients / np.linalg.norm(gradients, axis=1, keepdims=True).clip(1e-300))
    idle = left[:, np.count_nonzero(sizes > RANK_TOLERANCE) :]
    names = placement.mechanism.joints
    return {names[joint].name for joint in rows.joint[np.any(np.abs(idle) > PART, axis=1)] if joint >= 0}
