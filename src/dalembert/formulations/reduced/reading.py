"""From a recording to what a trajectory offers, read off the tree: for mechanisms with joints that it alone knows."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import ModelError, StepFailure
from dalembert.formulations.engine import Readings
from dalembert.formulations.maximal.reading import MOTION, POSE, Reader
from dalembert.formulations.maximal.series import Motion, new_motion
from dalembert.formulations.reduced.equations import Stage
from dalembert.formulations.reduced.knots import force_series, potential_series, velocity_series
from dalembert.formulations.reduced.state import new_scratch
from dalembert.formulations.reduced.ties import Ties
from dalembert.model.compile import new_work
from dalembert.model.functions import watched
from dalembert.model.records import Work
from dalembert.model.tree import Tree

VELOCITY = frozenset({"velocity", "angular_velocity", "rate"})


@dataclass
class TreeReader(Reader):
    """Derives series from a recording by the tree, without the graph of bodies and joints."""

    tree: Tree | None = None
    ties: Ties | None = None

    def __post_init__(self) -> None:
        assert self.tree is not None
        assert self.ties is not None
        work = new_work(self.model)
        work.bodies["node"][:-1] = self.tree.node_of
        self.stage = Stage(self.model, self.tree.nodes, work, new_scratch(len(self.tree.nodes), len(self.tree.nodes)), self.ties, 1.0)

    def readings(self, **more: np.ndarray) -> Readings:
        found = super().readings(**more)
        return Readings(found.values, ((POSE, self.pose), (VELOCITY, self.velocities), (MOTION - VELOCITY, self.motion)), least_norm=self.least_norm, glance=self.glance)

    def pose(self) -> Mapping[str, np.ndarray]:
        """Coordinates and potential energy; the joints of the tree are never open."""
        if not self._pose:
            stage, potential = self.stage, np.zeros(self.knots)
            super().pose()
            with watched(self.mechanism):
                potential_series(stage.model, stage.tree, stage.work, stage.own, self.recording, potential)
            loops = np.zeros(len(self.model.joints), dtype=bool)
            loops[stage.ties.loops] = True
            coordinate = np.where(loops[:, None], self._pose["coordinate"], self.recording.coordinate)
            self._pose |= dict(coordinate=coordinate, potential=potential)
        return self._pose

    def _glance(self, knots: np.ndarray, work: Work) -> tuple[np.ndarray, np.ndarray]:
        stage, (recording, _) = self.stage, self._at(knots)
        velocity, potential, bodies = np.zeros((len(knots), len(self.model.bodies), 6)), np.zeros(len(knots)), self.model.bodies[:-1]
        velocity_series(self.model, stage.tree, stage.own, recording, velocity)
        with watched(self.mechanism):
            potential_series(stage.model, stage.tree, stage.work, stage.own, recording, potential)
        linear, angular = velocity[:, :-1, :3], velocity[:, :-1, 3:]
        kinetic = np.einsum("kbi,b->k", linear**2, bodies["mass"]) + np.einsum("kbi,bij,kbj->k", angular, bodies["inertia"].reshape(-1, 3, 3), angular)
        return 0.5 * (kinetic + np.einsum("kjd,jd->k", recording.rate**2, self.model.joints["armature"])), potential

    def velocities(self) -> Mapping[str, np.ndarray]:
        """Knot velocities and joint rates."""
        velocity = np.zeros((self.knots, len(self.model.bodies), 6))
        velocity_series(self.model, self.stage.tree, self.stage.own, self.recording, velocity)
        return dict(velocity=velocity[:, :-1, :3], angular_velocity=velocity[:, :-1, 3:], rate=self.recording.rate)

    def _move(self, prescribed: np.ndarray) -> Motion:
        if len(self.stage.ties.rows):
            names = ", ".join(repr(j.name) for j in self.mechanism.joints if not j.type.has_rows)
            raise ModelError(f"forces of joints cannot be read yet where loops, springs or couplings meet joints without rows, here {names}: read poses, velocities and energies")
        recording, driven = self.recording, self.model.joints["driven"] != 0
        motion = new_motion(self.knots, len(self.model.bodies) - 1, len(self.model.joints), 0)
        motion.rate[:] = recording.rate
        # drives move as their targets do, but for the start, where they may not yet
        rates = np.where(driven, prescribed[0], recording.rate)
        rates[0] = recording.rate[0]
        if self.knots == 2:
            rates[:] = recording.rate
        with watched(self.mechanism):
            knot = force_series(self.stage, recording, self.inputs, prescribed, rates, motion)
        if knot >= 0:
            raise StepFailure(f"forces of {self.mechanism.name!r} at knot {knot} cannot be read: its coordinates are singular there")
        return motion

    def least_norm(self, weights: Mapping[str, ArrayLike] | None, drive_weight: float, knots: np.ndarray) -> Mapping[str, np.ndarray]:
        """Forces of a tree are unique."""
        motion = self.motion()
        return {name: motion[name][knots] for name in ("force", "torque", "actuation", "share")}
