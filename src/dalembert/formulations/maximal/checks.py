"""Checks of options that formulations have in common."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.mechanism.mechanism import Mechanism


def check_steps(options: Any) -> None:
    """Step, tolerance, iterations and halvings."""
    name = type(options).__name__
    for field in ("dt", "tolerance"):
        value = getattr(options, field)
        if not (np.isfinite(value) and value > 0.0):
            raise ModelError(f"{name}: {field} must be positive and finite, got {value}")
    for field, least in (("max_iterations", 1), ("max_halvings", 0)):
        if getattr(options, field) < least:
            raise ModelError(f"{name}: {field} must be at least {least}, got {getattr(options, field)}")


def check_contacts(options: Any) -> None:
    """Friction cone and resting speed."""
    name = type(options).__name__
    if options.cone not in ("exact", "linear"):
        raise ModelError(f"{name}: cone must be 'exact' or 'linear', got {options.cone!r}")
    if options.cone_edges not in range(4, 17, 2):
        raise ModelError(f"{name}: cone_edges must be an even number from 4 to 16, got {options.cone_edges!r}")
    if not (np.isfinite(options.resting_speed) and options.resting_speed >= 0.0):
        raise ModelError(f"{name}: resting_speed must not be negative, got {options.resting_speed}")


def refuse_moving(mechanism: Mechanism, formulation: str) -> None:
    """Joints that exist in joint coordinates alone."""
    for joint in mechanism.joints:
        if not joint.type.has_rows:
            raise ModelError(
                f"{formulation} cannot take joint {joint.name!r}: a {type(joint.type).__name__} is no set of equations between two bodies. "
                "Use Reduced, whose unknowns are its coordinates."
            )
