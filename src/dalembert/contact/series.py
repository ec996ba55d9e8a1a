"""What a run says about its contacts: gaps, forces, points and normals, step by step."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalembert.errors import ModelError


@dataclass(frozen=True)
class ContactSeries:
    """Contacts that were near or closed in some step, one row per contact and step (first axis, M rows).

    ``knot``: index of the knot that the step ended at; ``pair``: index into ``names``; ``part``: which of the pair's points.
    ``gap`` in m, at that knot; ``normal_force`` in N, ``friction_force`` (3,) in N on the first of the pair, and ``point`` and
    ``normal`` (from the second to the first) in the world, all at the knot the step began at; in ``Implicit`` at the one it
    ended at, points and normals of steps with impacts excepted. A step that was split has the contacts of all its substeps.
    """

    time: np.ndarray
    names: tuple[str, ...]
    knot: np.ndarray
    pair: np.ndarray
    part: np.ndarray
    gap: np.ndarray
    normal_force: np.ndarray
    friction_force: np.ndarray
    point: np.ndarray
    normal: np.ndarray

    def __len__(self) -> int:
        return len(self.knot)

    def of(self, *names: str) -> ContactSeries:
        """The contacts of one pair, named "body / ground" or by its two elements in any order, or of all pairs of one element."""
        wanted = [i for i, label in enumerate(self.names) if label == names[0] or set(names) <= set(label.split(" / "))]
        if not wanted:
            raise ModelError(f"nothing named {' / '.join(names)!r} came near anything; near pairs were: {', '.join(self.names) or 'none'}")
        return self._where(np.isin(self.pair, wanted))

    def at(self, knot: int) -> ContactSeries:
        """The contacts of the step that ended at a knot; negative ones count from the end."""
        if not -len(self.time) <= knot < len(self.time):
            raise ModelError(f"there is no knot {knot}: these contacts are of {len(self.time)} knots")
        return self._where(self.knot == (knot if knot >= 0 else len(self.time) + knot))

    def least_gap(self) -> np.ndarray:
        """(N,) smallest gap at each knot, infinite where nothing was near."""
        least = np.full(len(self.time), np.inf)
        np.minimum.at(least, self.knot, self.gap)
        return least

    def total_force(self) -> np.ndarray:
        """(N, 3) sum of all forces on the first ones of the pairs, in the steps that ended at each knot (N)."""
        total = np.zeros((len(self.time), 3))
        np.add.at(total, self.knot, self.normal_force[:, None] * self.normal + self.friction_force)
        return total

    def _where(self, mask: np.ndarray) -> ContactSeries:
        rows = {name: getattr(self, name)[mask] for name in ("knot", "pair", "part", "gap", "normal_force", "friction_force", "point", "normal")}
        return ContactSeries(time=self.time, names=self.names, **rows)


def read_log(time: np.ndarray, names: tuple[str, ...], log: np.ndarray) -> ContactSeries:
    """A series from the log of a run."""
    return ContactSeries(
        time, names, log["knot"].copy(), log["owner"].copy(), log["part"].copy(), log["gap"].copy(), log["normal_force"].copy(),
        log["friction_force"].copy(), log["point"].copy(), log["normal"].copy(),
    )
