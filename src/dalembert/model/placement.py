"""A mechanism at a pose: what set-up and analysis work on, outside of any step."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.compile import compile_model, new_work, reference_pose
from dalembert.model.pose import aim_all, evaluate_pose, open_amounts
from dalembert.model.records import Model, Work


@dataclass(frozen=True)
class Placement:
    """A mechanism, its model, and scratch whose bodies stand at a pose (``x``, ``q``) and whose joints have their
    coordinates and targets there.
    """

    mechanism: Mechanism
    model: Model
    work: Work

    @classmethod
    def of(cls, mechanism: Mechanism, model: Model | None = None) -> Placement:
        """At the reference pose."""
        model = compile_model(mechanism) if model is None else model
        placement = cls(mechanism, model, new_work(model))
        reference_pose(mechanism, placement.work)
        placement.evaluate()
        return placement

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of bodies, joints and couplings."""
        return len(self.model.bodies) - 1, len(self.model.joints), len(self.model.couplings)

    def put(self, position: np.ndarray, orientation: np.ndarray, coordinate: np.ndarray | None = None) -> None:
        """Move the bodies to positions (n, 3) and orientations (n, 4); ``coordinate`` (joints, 6): to unwrap against."""
        self.work.bodies["x"][:-1], self.work.bodies["q"][:-1] = position, orientation
        if coordinate is not None:
            self.work.joints["coordinate"] = coordinate
        self.evaluate()

    def evaluate(self) -> None:
        """Rotations, coordinates and row gradients at the pose."""
        aim_all(self.model, self.work)
        evaluate_pose(self.model, self.work)

    def keep(self) -> tuple[np.ndarray, np.ndarray]:
        """Pose, coordinates and targets, for ``restore``."""
        return self.work.bodies.copy(), self.work.joints.copy()

    def restore(self, kept: tuple[np.ndarray, np.ndarray]) -> None:
        """Go back to what was kept."""
        self.work.bodies[:], self.work.joints[:] = kept

    def opened(self) -> tuple[np.ndarray, np.ndarray]:
        """How far rows (joints, 6) and couplings are open, m or rad."""
        _, joints, couplings = self.sizes
        rows, gaps = np.zeros((joints, 6)), np.zeros(couplings)
        open_amounts(self.model, self.work, rows, gaps)
        return rows, gaps
