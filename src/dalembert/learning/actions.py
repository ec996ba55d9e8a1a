"""Actions by name: numbers between -1 and 1 that become forces, targets, tensions and wrenches within their bounds."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dalembert.checks import choices, numbers, shown
from dalembert.errors import ControlError, ModelError
from dalembert.mechanism.forces import Path
from dalembert.mechanism.mechanism import Body, JointElement, Mechanism

#: parts of a wrench on a body
WRENCH = {"force": slice(0, 3), "torque": slice(3, 6)}


class _Part(NamedTuple):
    """Some numbers of an action: for which element, which of its ``width`` numbers, and which of the action's."""

    element: str
    width: int
    numbers: slice
    taken: slice


class Actions:
    """What an action moves: ``bounds`` by name, each a number b for -b to b, a pair (low, high), or pairs for several directions.

    Names are those of joints with a drive or a servo (forces or targets), of driven paths (tensions) and, with "force" or "torque" after
    a dot, of bodies: "ball.torque", three numbers. ``low``, ``high`` (count,): ends in N, N m, m or rad.
    """

    def __init__(self, mechanism: Mechanism, bounds: Mapping[str, Any]) -> None:
        self.mechanism, self.names = mechanism, tuple(bounds)
        self._parts: list[_Part] = []
        ends, count = [], 0
        for name, bound in bounds.items():
            element, width, part = _addressed(mechanism, name)
            size = part.stop - part.start
            ends.append(_ends(name, bound, size))
            self._parts.append(_Part(element, width, part, slice(count, count + size)))
            count += size
        if not count:
            raise ModelError(f"an environment needs actions, such as actions={{'motor': 10.0}}; {mechanism.name!r} has the inputs: {', '.join(inputs_of(mechanism)) or 'none'}")
        self.low, self.high = np.concatenate(ends)[:, 0], np.concatenate(ends)[:, 1]
        self.count = count
        self._middle, self._half = 0.5 * (self.low + self.high), 0.5 * (self.high - self.low)
        self._whole = all(part.numbers == slice(0, part.width) for part in self._parts)

    def read(self, action: Any, *lead: int) -> np.ndarray:
        """(*lead, count) an action as it was given, within -1 and 1. Raises ControlError for one of another shape, or with numbers that are not finite."""
        given = np.asarray(action, dtype=float)
        if given.shape != (*lead, self.count):
            raise ControlError(f"an action is {self.count} numbers between -1 and 1 in shape {(*lead, self.count)}, got shape {given.shape}")
        if not np.isfinite(given).all():
            raise ControlError(f"an action must be finite, got {shown(action)}")
        return np.minimum(np.maximum(given, -1.0), 1.0)

    def inputs(self, action: np.ndarray) -> dict[str, np.ndarray]:
        """What a controller returns for an action (..., count): arrays (..., width) by the names of elements."""
        scaled = self._middle + self._half * action
        if self._whole:
            return {part.element: scaled[..., part.taken] for part in self._parts}
        found: dict[str, np.ndarray] = {}
        for part in self._parts:
            if part.element not in found:
                found[part.element] = np.zeros((*action.shape[:-1], part.width))
            found[part.element][..., part.numbers] = scaled[..., part.taken]
        return found


def inputs_of(mechanism: Mechanism) -> list[str]:
    """Names of joints and paths that take an input."""
    return [j.name for j in mechanism.joints if _driven(j)] + [p.name for p in mechanism.paths if p.drive is not None]


def _driven(joint: JointElement) -> int:
    """How many of a joint's directions take an input."""
    return sum(not (drive is None and servo is None) for drive, servo in zip(joint.type.drive, joint.type.servo))  # type: ignore[arg-type]


def _addressed(mechanism: Mechanism, name: Any) -> tuple[str, int, slice]:
    """The element that a name of an action means, how many numbers it takes, and which of these are meant."""
    owner, _, part = str(name).rpartition(".")
    if name not in mechanism and part in WRENCH and owner in mechanism and isinstance(body := mechanism[owner], Body) and body is not mechanism.world:
        return owner, 6, WRENCH[part]
    element = mechanism[name] if isinstance(name, str) and name in mechanism else None
    width = _driven(element) if isinstance(element, JointElement) else int(isinstance(element, Path) and element.drive is not None)
    if width == 0:
        raise ModelError(f"{shown(name)} takes no action: actions are joints with a drive or a servo, driven paths, and forces or torques on bodies ('ball.torque'); {choices(name, inputs_of(mechanism))}")
    return str(name), width, slice(0, width)


def _ends(name: str, bound: Any, size: int) -> np.ndarray:
    """(size, 2) low and high ends."""
    what = f"the bound of action {name!r}"
    given = numbers()(bound, what)
    if given.ndim == 0:
        given = np.array([-abs(float(given)), abs(float(given))])
    if given.shape not in ((2,), (size, 2)):
        raise ModelError(f"{what} must be a number, a pair (low, high) or {size} pairs, got {shown(bound)}")
    ends = np.array(np.broadcast_to(given, (size, 2)))
    if not (ends[:, 0] < ends[:, 1]).all():
        raise ModelError(f"{what}: the low end must lie below the high one, got {shown(bound)}")
    return ends
