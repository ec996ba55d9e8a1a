"""Poses from which no rigid motion goes on, as that of a chain that is pulled taut: steps from there fail at any length, and say so."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import AssemblyError
from dalembert.formulations.maximal.knot import evaluate_knot
from dalembert.model.assembly import settle_velocities
from dalembert.model.mobility import blocking_elements
from dalembert.model.placement import Placement

if TYPE_CHECKING:
    from dalembert.formulations.maximal.engine import MaximalEngine


def taut(engine: MaximalEngine, kick: float) -> str | None:
    """Why no motion goes on from the knot of an engine's last failed step, in words, if that is the reason. ``kick`` (s): for how long forces act on what moves there."""
    if engine.asked is None or not all(joint.type.has_rows for joint in engine.mechanism.joints):
        return None
    numbers = engine.asked[0]
    momentum = engine.momentum_of(engine.start_velocity(numbers))
    placement = engine.placement(numbers)
    evaluate_knot(engine.model, placement.work)
    return no_motion(engine, placement, momentum + kick * placement.work.bodies["load"][:-1])


def no_motion(engine: MaximalEngine, placement: Placement, momentum: np.ndarray) -> str | None:
    """The same for a pose and momenta (n, 6) that begin there."""
    bodies = engine.model.bodies[:-1]
    angular = np.einsum("nij,nj->ni", bodies["inertia_inverse"].reshape(-1, 3, 3), momentum[:, 3:])
    wished = np.concatenate([momentum[:, :3] / bodies["mass"][:, None], angular], axis=1)
    try:
        velocity = settle_velocities(placement, wished, np.zeros((len(bodies), 2), bool), {})
    except AssemblyError:
        return None
    blocking = blocking_elements(placement, velocity)
    if not blocking:
        return None
    names = ", ".join(map(repr, blocking[:4])) + (", ..." if len(blocking) > 4 else "")
    return (
        f"no rigid motion exists at this pose. {names} let bodies begin to move but not go on, as a chain does that is pulled taut; the forces there are undetermined, and a "
        "smaller dt does not help. Give them some slack or a spring"
        + (", or let targets that disagree be moved: Simulation(..., target_tolerance=...)." if len(engine.model.driven) else ".")
    )
