"""What a pose of a body is wished to be: a point of it at a place, its axes turned in a way."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dalembert.checks import NAME, NOTHING, check_fields, numbers, unit_quaternion
from dalembert.errors import ModelError
from dalembert.model.assembly import Aiming
from dalembert.model.placement import Placement

#: none of them negative; one for all, or one for each
WEIGHTS = "must be a number, or three, none of them negative"


@dataclass(frozen=True, kw_only=True, eq=False)
class Aim:
    """A wish for the pose of a body: its ``point`` (m, body frame from the centre of mass) at ``position`` (m, world), its ``orientation`` (a quaternion).

    ``weight``: how much a miss by a metre counts, ``orientation_weight``: by a radian; one number, or one for each direction of the world, where
    0 leaves it free.
    """

    body: str
    position: ArrayLike | None = None
    orientation: ArrayLike | None = None
    point: ArrayLike = (0.0, 0.0, 0.0)
    weight: ArrayLike = 1.0
    orientation_weight: ArrayLike = 1.0

    def __post_init__(self) -> None:
        check_fields(self, body=NAME, position=numbers(3) | NOTHING, orientation=numbers(4) | NOTHING, point=numbers(3))
        if self.position is None and self.orientation is None:
            raise ModelError(f"an Aim of {self.body!r} needs a position, an orientation or both")
        if self.orientation is not None:
            object.__setattr__(self, "orientation", unit_quaternion(self.orientation, f"Aim of {self.body!r}: orientation"))
        for name in ("weight", "orientation_weight"):
            value = np.asarray(getattr(self, name), dtype=float)
            if value.shape not in ((), (3,)) or not np.isfinite(value).all() or np.any(value < 0.0):
                raise ModelError(f"Aim of {self.body!r}: {name} {WEIGHTS}, got {getattr(self, name)!r}")
            object.__setattr__(self, name, np.broadcast_to(value, (3,)).copy())

    def misses(self, index: int, x: np.ndarray, R: np.ndarray) -> list[Aiming]:
        """By how much a body at a pose misses it."""
        found = []
        if self.position is not None:
            miss = x + R @ np.asarray(self.point) - np.asarray(self.position)
            turns = -R @ _cross_matrix(np.asarray(self.point))
            found += [Aiming(self.body, index, miss[k], np.concatenate([np.eye(3)[k], turns[k]]), w) for k, w in enumerate(self.weight) if w > 0.0]  # type: ignore[arg-type]
        if self.orientation is not None:
            wanted = Rotation.from_quat(np.asarray(self.orientation), scalar_first=True).as_matrix()
            miss = Rotation.from_matrix(wanted.T @ R).as_rotvec()  # R = wanted exp(miss)
            turns = wanted @ _rate_of(miss)
            miss = wanted @ miss
            found += [Aiming(self.body, index, miss[k], np.concatenate([np.zeros(3), turns[k]]), w) for k, w in enumerate(self.orientation_weight) if w > 0.0]  # type: ignore[arg-type]
        return found


def aiming(mechanism: Any, aims: Sequence[Aim]) -> Callable[[Placement], list[Aiming]]:
    """What is missed of some aims at a placement's pose."""
    indices = []
    for aim in aims:
        body = mechanism[aim.body]
        if body not in mechanism.bodies:
            raise ModelError(f"an Aim needs a body that moves, and {aim.body!r} is {body!r}")
        indices.append(body.index)

    def missed(placement: Placement) -> list[Aiming]:
        bodies = placement.work.bodies
        return [miss for aim, i in zip(aims, indices) for miss in aim.misses(i, bodies["x"][i], bodies["R"][i].reshape(3, 3))]

    return missed


def _cross_matrix(v: np.ndarray) -> np.ndarray:
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def _rate_of(phi: np.ndarray) -> np.ndarray:
    """(3, 3) how a rotation vector changes with a small turn about body axes: the inverse of the right Jacobian of SO(3)."""
    angle, K = float(np.linalg.norm(phi)), _cross_matrix(phi)
    bend = 1.0 / 12.0 if angle < 1e-4 else 1.0 / angle**2 - 0.5 / (angle * np.tan(0.5 * angle))
    return np.eye(3) + 0.5 * K + bend * K @ K
