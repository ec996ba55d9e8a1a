"""Checks of options that formulations have in common."""
from __future__ import annotations

from typing import Any

from dalembert.checks import NOT_NEGATIVE, NOTHING, POSITIVE, SHARE, STEP, Rule, check_fields, one_of, whole
from dalembert.errors import ModelError
from dalembert.mechanism.mechanism import Mechanism

#: rules of options by name; others keep their annotations
RULES = {
    "dt": STEP, "tolerance": POSITIVE, "max_iterations": whole("a whole number from 1 to 10000", least=1, most=10_000),
    "max_halvings": whole("a whole number from 0 to 30", least=0, most=30), "cone": one_of("exact", "linear"), "impacts": one_of("limited", "newton"),
    "cone_edges": whole("an even number from 4 to 16", least=4, most=16), "resting_speed": NOT_NEGATIVE, "stabilization": SHARE,
    "drive_weight": POSITIVE, "accuracy": POSITIVE | NOTHING, "rtol": POSITIVE, "atol": POSITIVE,
}


def check_options(options: Any, **own: Rule) -> None:
    """Options of a formulation, one by one, with rules of its ``own``; what goes together is its own business."""
    check_fields(options, **RULES | own)
    if options.cone_edges % 2:
        raise ModelError(f"{type(options).__name__}: cone_edges must be {RULES['cone_edges'].words}, got {options.cone_edges}")


def refuse_moving(mechanism: Mechanism, formulation: str) -> None:
    """Joints that exist in joint coordinates alone."""
    for joint in mechanism.joints:
        if not joint.type.has_rows:
            raise ModelError(
                f"{formulation} cannot take joint {joint.name!r}: a {type(joint.type).__name__} is no set of equations between two bodies. "
                "Use Reduced, whose unknowns are its coordinates."
            )


def refuse_conveyors(mechanism: Mechanism, what: str) -> None:
    """Grounds whose surfaces move, where nothing asks how fast."""
    for ground in mechanism.grounds:
        if ground.velocity.any():
            raise ModelError(f"{what} does not take the conveyor {ground.name!r}: set its velocity to zero, or choose steps of another method")
