"""Why position drives could not be followed: the targets that no pose of the mechanism meets, each with what it misses."""
from __future__ import annotations

import numpy as np

from dalembert.errors import AssemblyError
from dalembert.formulations.maximal.assembly import coordinate_errors, nearest_pose
from dalembert.formulations.maximal.engine import MaximalEngine
from dalembert.mechanism.mechanism import JointElement

#: targets missed by less than this are met, m or rad
MET = 1e-8
#: part of the largest miss below which a drive has no share in it
SHARE = 1e-3


def explain_targets(engine: MaximalEngine, start: np.ndarray) -> str:
    """What is wrong with the targets in the records: a sentence that names the drives. The engine stays as it is.

    Looks for the pose that the passive joints allow and that comes nearest to all targets; drives with targets that
    agree with one another are met in it. ``start`` (joints, 6): the targets of the last pose.
    """
    mechanism, records, before = engine.mechanism, engine.records, engine.state()
    wishes = {joint.name: _wish(engine, joint) for joint in mechanism.joints if "position" in joint.type.drive}  # type: ignore[operator]
    try:
        nearest_pose(mechanism, records, wishes, {})
        engine.refresh()
        misses = {name: coordinate_errors(records, mechanism[name].index, mechanism[name].type, wish) for name, wish in wishes.items()}
    except AssemblyError as error:
        return f"its joints cannot be closed near the targets: {error}"
    finally:
        engine.restore(before)
        engine.refresh()
    worst = max(float(np.nanmax(np.abs(miss))) for miss in misses.values())
    if worst > MET:
        found = _listed(engine, misses, SHARE * worst)
        return f"no pose meets the targets of its drives: the nearest one misses {found}. Give targets that agree (Simulation.solve_pose finds some)."
    moved = {name: wish - start[mechanism[name].index, : wish.size] for name, wish in wishes.items()}
    largest = max(float(np.nanmax(np.abs(move))) for move in moved.values())
    return f"its drives move too far in one step: {_listed(engine, moved, 0.5 * largest)}. Use smaller steps or smoother targets."


def _wish(engine: MaximalEngine, joint: JointElement) -> np.ndarray:
    """Targets along a joint's free directions, NaN where it is not driven."""
    record = engine.records.joints[joint.index]
    free = joint.type.freedom
    return np.where(record["driven"][:free], record["target"][:free], np.nan)


def _listed(engine: MaximalEngine, amounts: dict[str, np.ndarray], least: float) -> str:
    """Drives by the size of their amounts, with the units."""
    rows = []
    for name, values in amounts.items():
        kinds = engine.mechanism[name].type.directions
        sizes = [(abs(v), f"{v:.3g} {'m' if kinds[i][0] in ('slide', 'distance') else 'rad'}") for i, v in enumerate(values) if abs(v) > least]
        if sizes:
            rows.append((max(sizes)[0], f"{name!r} by {' and '.join(text for _, text in sizes)}"))
    return ", ".join(text for _, text in sorted(rows, reverse=True))
