"""From the law of a pair of surfaces to the coefficients in the records of their contacts."""
from __future__ import annotations

import numpy as np

from dalembert.mechanism.environment import PairLaw
from dalembert.mechanism.touching import Surface


def coefficient_and_shares(law: PairLaw) -> tuple[float, tuple[float, float]]:
    """The larger one of the coefficients along the direction of friction and across it, and what part of that each is."""
    across = law.friction if law.friction_across is None else law.friction_across
    top = max(law.friction, across)
    return top, (law.friction / top, across / top) if top > 0.0 else (1.0, 1.0)


def write_law(records: np.ndarray, law: PairLaw, a: Surface, b: Surface, world: int) -> None:
    """Write the coefficients between two surfaces; ``world``: the index of the world among the bodies."""
    records["friction"], share = coefficient_and_shares(law)
    records["restitution"] = law.restitution if law.stiffness is None else 0.0
    records["stiffness"], records["damping"] = law.stiffness or 0.0, law.damping or 0.0
    records["spin"], records["roll"] = law.spin_friction or 0.0, law.rolling_friction or 0.0
    if law.friction_across is not None:
        frame = a if law.direction_of in a.names else b
        records["grain_of"] = 1 + (frame.body if frame.body >= 0 else world)
        records["grain"], records["share"] = law.friction_direction, share
