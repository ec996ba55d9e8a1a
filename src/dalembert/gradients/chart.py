"""Independent coordinates of a mechanism near a pose: which ones, and poses and velocities from them."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.linalg import qr

from dalembert.errors import LinearisationError, ModelError
from dalembert.gradients.coordinates import (
    Coordinate,
    coordinate_rows,
    coordinates_of,
    curved_coordinates,
    deviations,
    named_coordinates,
)
from dalembert.gradients.curved import Numbers, reaches
from dalembert.gradients.space import free_space, move_bodies, open_rows
from dalembert.model.placement import Placement
from dalembert.model.redundancy import row_set

#: independent coordinates must answer a motion by at least this part of what the best one does
DISTINCT = 1e-7
#: rounds in which poses and velocities are corrected
ROUNDS = 30


class Chart:
    """Independent coordinates about a pose.

    ``motions`` (6 n, d): N with G N = 0 and J N = 1, for rows G and the coordinates' gradients J; ``curved``: the coordinates with
    their derivatives.
    """

    def __init__(self, placement: Placement, numbers: Numbers, names: Iterable[str] | None = None) -> None:
        self.placement, self.mechanism = placement, placement.mechanism
        self.G = numbers.rows.gradient()
        self.space = free_space(placement)
        given = None if names is None else named_coordinates(self.mechanism, names)
        self.coordinates = tuple(self._choose(numbers) if given is None else given)
        self.curved = curved_coordinates(placement, numbers, self.coordinates)
        self.J = self.curved.gradient()
        self.motions = self._invert(given is not None)
        self.reference = placement.keep()

    def _choose(self, numbers: Numbers) -> list[Coordinate]:
        """The coordinates that tell the free motions apart best: those of joints first, of bodies where these do not suffice."""
        candidates = [c for j in self.mechanism.joints if j.type.places for c in coordinates_of(j) if j.type.drive[c.index] != "motion"]  # type: ignore[index]
        chosen: list[Coordinate] = []
        left = self.space.motions
        length = float(reaches(self.placement.model).mean())
        for group in (candidates, [c for b in self.mechanism.bodies for c in coordinates_of(b)]):
            if not left.shape[1] or not group:
                continue
            parts = curved_coordinates(self.placement, numbers, group).gradient() @ left
            parts *= np.array([length if c.turns else 1.0 for c in group])[:, None]
            factors: Any = qr(parts.T, pivoting=True)
            Q, R, order = factors
            pivots = np.abs(np.diag(R))
            rank = int(np.count_nonzero(pivots > DISTINCT * max(pivots.max(), 1e-300)))
            chosen += [group[i] for i in sorted(order[:rank])]
            left = left @ Q[:, rank:]
        return chosen

    def _invert(self, given: bool) -> np.ndarray:
        names, freedom = ", ".join(c.name for c in self.coordinates), self.space.freedom
        if len(self.coordinates) != freedom:
            raise ModelError(f"{self.mechanism.name!r} has {freedom} independent coordinates at this pose, got {len(self.coordinates)}: {names or 'none'}")
        if not freedom:
            raise LinearisationError(f"{self.mechanism.name!r} cannot move: its joints and drives leave no coordinate free at this pose")
        parts = self.J @ self.space.motions
        sizes = np.linalg.svd(parts / np.maximum(np.linalg.norm(parts, axis=1, keepdims=True), 1e-300), compute_uv=False)
        if not sizes[-1] > DISTINCT * sizes[0]:
            raise ModelError(
                f"the coordinates {names} do not determine the motion of {self.mechanism.name!r} at this pose"
                + (": choose others, or leave the choice to linearise" if given else "")
            )
        return self.space.motions @ np.linalg.inv(parts)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.coordinates)

    def solve(self, rows: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
        """Motions (6 n, ...) that change rows and coordinates by given amounts."""
        least = self.space.least(rows)
        return least + self.motions @ (coordinates - self.J @ least)

    # ---- poses and velocities near the reference

    def deviation(self) -> np.ndarray:
        """(d,) coordinates of the placement's pose less those of the reference."""
        bodies, joints = self.placement.work.bodies, self.placement.work.joints
        return deviations(self.coordinates, (bodies, joints), self.reference)

    def move(self, coordinates: np.ndarray) -> None:
        """Put the placement where the coordinates (d,) differ by these amounts from the reference, rows open as little as there."""
        self.placement.restore(self.reference)
        move_bodies(self.placement, self.motions @ coordinates)
        for _ in range(ROUNDS):
            opened = open_rows(self.placement)
            missing = coordinates - self.deviation()
            size = max(np.abs(opened).max(initial=0.0), np.abs(missing).max())
            if size < 1e-15:
                return
            before = self.placement.keep()
            move_bodies(self.placement, self.solve(-opened, missing))
            if max(np.abs(open_rows(self.placement)).max(initial=0.0), np.abs(coordinates - self.deviation()).max()) >= size:
                self.placement.restore(before)
                self.placement.evaluate()
                return

    def velocity(self, velocity: np.ndarray, rows: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """(6 n,) velocities at the placement's pose, near to some, with given rates of rows and coordinates."""
        G = row_set(self.placement).matrix
        J = coordinate_rows(self.placement, self.coordinates)
        size = np.inf
        for _ in range(ROUNDS):
            open_rows, missing = rows - G @ velocity, rates - J @ velocity
            new = max(np.abs(open_rows).max(initial=0.0), np.abs(missing).max())
            if not new < size or new == 0.0:
                break
            size, velocity = new, velocity + self.solve(open_rows, missing)
        return velocity
