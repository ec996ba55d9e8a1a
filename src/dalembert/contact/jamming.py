"""Bearings that can jam: their friction presses their surfaces, and the pressure raises their friction by more than it was.

What slides in such a bearing has no motion that rigid bodies could follow (Painleve's paradox; a drawer pulled at its side).
"""
from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from dalembert.contact.bearing import bearing_bounds, pin_axis, reaction
from dalembert.model.assembly import constraint_rows, mass_blocks
from dalembert.model.placement import Placement
from dalembert.model.pose import direction_rows
from dalembert.model.records import SLIDE


def jamming_bearings(placement: Placement, limits: np.ndarray) -> list[tuple[str, float]]:
    """Names of joints whose bearings can jam at the placement's pose, with the gains of their friction, the largest first.

    ``limits``: records of a scene. With A_ij the bound along i that a unit of friction along j calls for, through what the joints' rows then carry,
    the gain is the largest eigenvalue of A: from one on, friction feeds itself.
    """
    found: dict[str, float] = {}
    first = 0
    while first < len(limits):
        share = max(int(limits[first]["share"]), 1)
        if limits[first]["bears"]:
            group = limits[first : first + share]
            gain = float(np.abs(np.linalg.eigvals(_gains(placement, group))).max())
            name = placement.mechanism.joints[int(group[0]["joint"])].name
            if gain >= 1.0:
                found[name] = max(gain, found.get(name, 0.0))
        first += share
    return sorted(found.items(), key=lambda item: -item[1])


def _gains(placement: Placement, group: np.ndarray) -> np.ndarray:
    """Bounds of a bearing's directions (rows) by a unit of friction along each of them (columns)."""
    model, work, index = placement.model, placement.work, int(group[0]["joint"])
    joint, count = model.joints[index], 6 * placement.sizes[0]
    gradients = np.zeros((int(joint["free"]), 12))
    direction_rows(model, work, index, gradients)
    rows = constraint_rows(placement)
    G, M = rows.matrix(), sparse.block_diag(list(mass_blocks(model)))
    own = np.flatnonzero(np.array(rows.owners) == placement.mechanism.joints[index].name)
    softness = 1e-9 * np.asarray(G.multiply(G).sum(axis=1)).ravel() / model.bodies["mass"][:-1].min()
    solver = splu(sparse.bmat([[M, -G.T], [G, sparse.diags(softness)]], format="csc"))
    gains = np.zeros((len(group), len(group)))
    for j, limit in enumerate(group):
        push = np.zeros(count + G.shape[0])
        for body, part in ((int(joint["parent"]), gradients[limit["direction"], :6]), (int(joint["child"]), gradients[limit["direction"], 6:])):
            if body < placement.sizes[0]:
                push[6 * body : 6 * body + 6] += part
        work.joints["mu"][index] = 0.0
        work.joints["mu"][index, : len(own)] = solver.solve(push)[count:][own]
        F, T = reaction(work, joint, work.joints[index])
        b = limit["bearing"]
        slide, turn = bearing_bounds(int(limit["bears"]), (b[0], b[1], b[2], b[3]), F, T, pin_axis(work, joint, limit))
        gains[:, j] = [slide if joint["free_kind"][one["direction"]] == SLIDE else turn for one in group]
    return gains
