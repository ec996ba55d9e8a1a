"""Forces and axes of a run as arrows: where joints are, along what they move, what they and contacts transmit."""
from __future__ import annotations

import numpy as np

from dalembert.contact.series import ContactSeries
from dalembert.simulation.trajectory import Trajectory, rotate

#: knots from which the scale of the arrows is taken
SAMPLED = 400
#: contact forces below this part of the largest one are rounding of the solver
FAINT = 1e-7


def acting_rows(series: ContactSeries) -> np.ndarray:
    """Rows of a series whose forces act at a knot, in order of time: one for each contact, of split steps the first part."""
    return np.unique(np.stack([series.knot, series.pair, series.part], axis=1), axis=0, return_index=True)[1]


class Arrows:
    """Arrows of a trajectory in the world: ``joints`` and ``contacts`` at its knots, ``scale`` in m per N, for a mechanism of ``size`` (m)."""

    def __init__(self, trajectory: Trajectory, size: float) -> None:
        self.trajectory = trajectory
        model = trajectory.model
        joints = [] if model is None else model.joints
        self._child = np.array([j.child.index for j in joints], dtype=int)
        self._parent = np.array([j.parent.index for j in joints], dtype=int)
        self._point = np.array([j.point_child for j in joints]).reshape(-1, 3)
        self._axis = np.zeros((len(joints), 3))
        for k, joint in enumerate(joints):
            directions = joint.type.directions
            if len(directions) == 1 and directions[0][0] in ("turn", "slide"):
                self._axis[k] = joint.frame_child @ joint.type.basis[:, directions[0][1]]
        self._frame = np.array([j.frame_parent for j in joints]).reshape(-1, 3, 3)
        self._read_contacts()
        self.longest = 2.0 * size
        self.scale = 0.35 * size / self._typical()

    def _read_contacts(self) -> None:
        """Rows (point, force on the first of the pair) sorted by the knot that they act at; of split steps, the first part."""
        start = np.zeros(len(self.trajectory) + 1, dtype=int)
        self._contacts, self._start = np.zeros((0, 6)), start
        if not self.trajectory.touching:
            return
        series = self.trajectory.contacts()
        force = series.normal_force[:, None] * series.normal + series.friction_force
        size = np.linalg.norm(force, axis=1)
        acting = acting_rows(series)
        chosen = acting[size[acting] > FAINT * size.max(initial=0.0)]
        self._contacts = np.concatenate([series.point[chosen], force[chosen]], axis=1)
        start[1:] = np.cumsum(np.bincount(series.knot[chosen] - 1, minlength=len(self.trajectory)))

    def _typical(self) -> float:
        """The largest force (N) of an ordinary moment: the median over knots at which anything is pushed, if it is not rounding."""
        knots = np.unique(np.linspace(0, len(self.trajectory) - 1, SAMPLED).astype(int))
        largest = np.linalg.norm(self.joints(knots)[..., 6:], axis=-1).max(axis=1, initial=0.0)
        for i, knot in enumerate(knots):
            largest[i] = max(largest[i], np.linalg.norm(self.contacts(int(knot))[:, 3:], axis=1).max(initial=0.0))
        usual = float(np.median(largest[largest > 0.0])) if (largest > 0.0).any() else 0.0
        return max(usual, 1e-6 * float(self.trajectory.mass.sum()))

    @property
    def touching(self) -> bool:
        """True when anything ever touched."""
        return len(self._contacts) > 0

    def joints(self, knots: np.ndarray) -> np.ndarray:
        """(knots, joints, 9): where each joint is, along what it turns or slides, and the force on its child (N), in the world."""
        if not len(self._child):
            return np.zeros((len(knots), 0, 9))
        position, orientation = self.trajectory.position[knots], self.trajectory.orientation[knots]
        q = orientation[:, self._child]
        shape = (len(knots), len(self._child), 3)
        at = position[:, self._child] + rotate(q, np.broadcast_to(self._point, shape))
        axis = rotate(q, np.broadcast_to(self._axis, shape))
        local = np.einsum("jab,njb->nja", self._frame, self.trajectory._get("force")[knots])
        world = np.concatenate([orientation, np.broadcast_to([1.0, 0.0, 0.0, 0.0], (len(knots), 1, 4))], axis=1)
        return np.nan_to_num(np.concatenate([at, axis, rotate(world[:, self._parent], local)], axis=2))

    def contacts(self, knot: int) -> np.ndarray:
        """(contacts, 6): where something touches, and the force (N) on the first of the two; at the end, those of the knot before."""
        knot = min(knot, len(self.trajectory) - 2)
        return self._contacts[self._start[knot] : self._start[knot + 1]]

    def tips(self, at: np.ndarray, force: np.ndarray) -> np.ndarray:
        """(..., 3) where arrows of forces end; those of blows are cut at ``longest`` (m)."""
        length = self.scale * np.linalg.norm(force, axis=-1, keepdims=True)
        return at + self.scale * force * np.minimum(1.0, self.longest / np.maximum(length, 1e-300))

