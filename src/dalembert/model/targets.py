"""Why motion drives could not be followed: the targets that no pose meets, each with what it misses, or those that move far."""
from __future__ import annotations

import numpy as np

from dalembert.errors import AssemblyError
from dalembert.model.assembly import coordinate_errors, nearest_pose
from dalembert.model.placement import Placement

#: targets missed by less than this are met, m or rad
MET = 1e-11
#: part of the largest miss below which a drive has no share in it
SHARE = 1e-3


def unmet_targets(placement: Placement, end: np.ndarray, met: float = MET) -> str | None:
    """The drives whose targets ``end`` (joints, 6) do not agree, in a sentence; None when a pose meets them all to ``met`` (m or rad).

    Looks for the pose that the passive joints allow and that comes nearest to the targets: a drive that agrees with the
    others is met in it. The placement stays as it is.
    """
    mechanism, before = placement.mechanism, placement.keep()
    wishes = _driven(placement, end)
    if not wishes:
        return None
    try:
        nearest_pose(placement, wishes, {})
        misses = {name: coordinate_errors(placement, mechanism[name], wish) for name, wish in wishes.items()}
    except AssemblyError as error:
        return f"the joints cannot be closed near the targets of the drives: {error}"
    finally:
        placement.restore(before)
    worst = _largest(misses)
    if worst < met:
        return None
    return (
        f"no pose meets the targets of its drives; the nearest one misses {_listed(placement, misses, SHARE * worst)}. "
        "Give targets that agree (Simulation.solve_pose finds some), or let them be moved onto what the joints allow: Simulation(..., target_tolerance=...)."
    )


def agreed_targets(placement: Placement, targets: np.ndarray) -> tuple[np.ndarray, float]:
    """Targets (joints, 6) moved onto what the passive joints allow, and the largest correction (m or rad).

    Starts from the placement's pose and leaves it at the new one. Raises AssemblyError where the joints cannot be closed.
    """
    mechanism, wishes = placement.mechanism, _driven(placement, targets)
    nearest_pose(placement, wishes, {})
    agreed, largest = targets.copy(), 0.0
    for name, wish in wishes.items():
        error = coordinate_errors(placement, mechanism[name], wish)
        driven = ~np.isnan(wish)
        agreed[mechanism[name].index, : len(wish)][driven] += error[driven]
        largest = max(largest, float(np.abs(error[driven]).max()))
    return agreed, largest


def largest_moves(placement: Placement, start: np.ndarray, end: np.ndarray) -> str:
    """The drives that move most from targets ``start`` to targets ``end`` (joints, 6); empty where none does."""
    before, after = _driven(placement, start), _driven(placement, end)
    moves = {name: after[name] - before[name] for name in after}
    largest = _largest(moves)
    return _listed(placement, moves, 0.5 * largest) if largest > 0.0 else ""


def _driven(placement: Placement, targets: np.ndarray) -> dict[str, np.ndarray]:
    """Targets of the motion-driven joints along their free directions, NaN where a direction is not driven."""
    wishes = {}
    for element, joint in zip(placement.mechanism.joints, placement.model.joints):
        driven = joint["driven"][: element.type.freedom].astype(bool)
        if driven.any():
            wishes[element.name] = np.where(driven, targets[element.index, : len(driven)], np.nan)
    return wishes


def _largest(amounts: dict[str, np.ndarray]) -> float:
    return max((float(np.nanmax(np.abs(values))) for values in amounts.values()), default=0.0)


def _listed(placement: Placement, amounts: dict[str, np.ndarray], least: float) -> str:
    """Drives with amounts of at least ``least``, the largest first, with units."""
    rows = []
    for name, values in amounts.items():
        kinds = placement.mechanism[name].type.directions
        units = ["m" if kind in ("slide", "distance") else "rad" for kind, _ in kinds]
        parts = [f"{value:.3g} {unit}" for value, unit in zip(values, units) if abs(value) >= least]
        if parts:
            rows.append((float(np.nanmax(np.abs(values))), f"{name!r} by {' and '.join(parts)}"))
    return ", ".join(text for _, text in sorted(rows, reverse=True))
