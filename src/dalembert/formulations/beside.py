"""Mechanisms beside one: some steps along a change of its numbers, for differences of sixth order."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dalembert.errors import GradientError
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.parameters import list_parameters, with_parameters

#: offsets of the mechanisms, in steps
OFFSETS = (1.0, -1.0, 2.0, -2.0, 3.0, -3.0)
#: size of a step of the model's numbers: relative to the number, and in m or rad of geometry
STEP, SHIFT = 5e-3, 2e-3
#: of what touches: sizes of shapes, as part of them, and their places (m); beyond it they may touch with other features
TOUCHING, FINE = ("radius", "length", "size", "semi_axes", "position"), 1e-4
#: what both equations and readings are linear in may change by more, and rounding matters less then; also relative to the number
LINEAR, LONG = ("stiffness", "damping", "servo_stiffness", "servo_damping", "linear", "angular", "tangential", "force", "torque", "friction", "gravity"), 5e-2
#: how names of numbers begin that move what may touch
GEOMETRY = ("point", "position", "turn", "centre", "offset", "radius", "size", "length", "semi", "lower", "upper")


def mechanisms_beside(mechanism: Mechanism, change: Mapping[str, np.ndarray], compiled: Callable[[Mechanism], Any], reach: tuple[float, float] = (1.0, 1.0)) -> tuple[list, float]:
    """Models of a mechanism some steps along a change of its numbers, as an engine has them ``compiled``, and the step; ``reach``: of geometry and of
    other numbers, as part of the usual one.
    """
    known = list_parameters(mechanism, shifts=True)
    step = np.inf
    for text, value in change.items():
        here, what = known[text].value, text.rpartition(".")[2]
        moved = np.abs(value) > 0.0
        if not np.any(moved):
            continue
        if what == "inertia":
            part = float(np.abs(np.linalg.eigvals(np.linalg.solve(here, value))).max())
        elif what == "position":
            part = float(np.abs(value).max())
        elif what.startswith(("point", "turn", "centre")):
            part = float(np.abs(value).max()) * STEP / SHIFT
        elif what == "pitch":  # by a length per radian
            part = float(np.abs(value).max()) / (2.0 * np.pi) * STEP / SHIFT
        elif what in ("rest", "offset", "force", "torque", "gravity", "lower", "upper"):
            part = float(np.abs(value).max())
        else:
            sizes = np.abs(np.asarray(here)[moved])
            part = float(np.max(np.abs(value[moved]) / sizes)) if np.all(sizes > 0.0) else np.inf
        # with a second coefficient, which is taken as a part of the first
        linear = text == "gravity" or (what in LINEAR and f"{text}_across" not in known)
        size = LONG if linear else FINE if what in TOUCHING and reach[0] == 1.0 else STEP
        step = min(step, reach[0 if what.startswith(GEOMETRY) else 1] * size / part)
    if step == 0.0:
        raise GradientError(
            f"a tangent of {', '.join(change)} leads away from zero, where a difference to both sides would be negative: use vjp, or a small positive number"
        )
    if not np.isfinite(step):
        return [], 1.0
    models = []
    for offset in OFFSETS:
        values = {text: known[text].value + offset * step * value for text, value in change.items()}
        models.append(compiled(with_parameters(mechanism, values, checked=False)))
    return models, step
