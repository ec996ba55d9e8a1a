"""A small mechanism for bad inputs, and what must not change when one is refused."""
from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

import dalembert as da


def arm() -> da.Mechanism:
    """Two bodies on joints that are driven, limited and sprung."""
    mechanism = da.Mechanism("arm")
    mechanism.body("upper", da.Rod(length=1.0, radius=0.05, mass=1.0), position=(0, 0, -0.5))
    mechanism.body("lower", da.Rod(length=1.0, radius=0.05, mass=1.0), position=(0, 0, -1.5))
    mechanism.joint("shoulder", da.Revolute(axis="x", drive="motion"), "world", "upper")
    mechanism.joint("elbow", da.Revolute(axis="x", damping=0.1, drive="force"), "upper", "lower", at=(0, 0, -1))
    mechanism.path("cord", [("world", (0.1, 0, 0)), ("lower", (0, 0, -1.5))], stiffness=1.0, drive="force")
    return mechanism


def summary(mechanism: da.Mechanism) -> Any:
    """Everything that a mechanism holds, to be compared."""
    return {entry.name: repr(getattr(mechanism, entry.name)) for entry in fields(mechanism)} | {"names": sorted(mechanism._names)}


def same(a: da.State, b: da.State) -> bool:
    return a == b and bool(np.isfinite(a.numbers).all())
