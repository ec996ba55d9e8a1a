"""Checks of options that formulations have in common."""
from __future__ import annotations

from typing import Any

from dalembert.checks import NOT_NEGATIVE, NOTHING, POSITIVE, SHARE, STEP, Rule, check_fields, one_of, whole
from dalembert.errors import GradientError, ModelError
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.roughness import OPTIONAL

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


def refuse_surfaces(mechanism: Mechanism, what: str) -> None:
    """Surfaces that move or resist in more ways than by one coefficient of friction, where nothing asks for that."""
    for ground in mechanism.grounds:
        if ground.velocity.any():
            raise ModelError(f"{what} does not take the conveyor {ground.name!r}: set its velocity to zero, or choose steps of another method")
    for name, law in rough(mechanism):
        words = [word for word in OPTIONAL if getattr(law, word, None) is not None]
        if words:
            raise ModelError(f"{what} does not take {words[0]} of {name!r}: leave it out, or choose steps of another method")


def rough(mechanism: Mechanism) -> list[tuple[str, Any]]:
    """All surfaces and pairs by name that may resist in more ways than by one coefficient of friction."""
    pairs = [(" and ".join(sorted(names)), law) for names, law in mechanism.pair_laws.items()]
    return [*((element.name, element) for element in (*mechanism.grounds, *mechanism.obstacles)), *pairs]


def refuse_in_gradients(mechanism: Mechanism) -> None:
    """Laws of contacts without derivatives, where a run is to be differentiated."""
    for name, law in rough(mechanism):
        for word in ("spin_friction", "rolling_friction", "stiffness"):
            if getattr(law, word):
                raise GradientError(f"runs with {word} of a contact cannot be differentiated, and {name!r} has some: leave it out")
