"""From a recording to what a trajectory offers, read off the tree: for mechanisms with joints that it alone knows."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dalembert.errors import ModelError, StepFailure
from dalembert.formulations.engine import Inputs, Knot, Readings
from dalembert.formulations.maximal.engine import MaximalEngine
from dalembert.formulations.maximal.reading import MOTION, POSE, Reader
from dalembert.formulations.maximal.recording import Recording, new_recording
from dalembert.formulations.maximal.series import Motion, new_motion
from dalembert.formulations.reduced.equations import Stage
from dalembert.formulations.reduced.knots import force_series, potential_series, velocity_series
from dalembert.formulations.reduced.start import node_name
from dalembert.formulations.reduced.state import new_scratch
from dalembert.formulations.reduced.ties import Ties
from dalembert.model.compile import new_work
from dalembert.model.functions import watched
from dalembert.model.tree import SPLINE, Tree

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
        return Readings(found.values, ((POSE, self.pose), (VELOCITY, self.velocities), (MOTION - VELOCITY, self.motion)), least_norm=self.least_norm)

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


class TreeReading(MaximalEngine):
    """What engines in joint coordinates share that read their states: off the graph of bodies and joints, or off the tree."""

    tree: Tree
    ties: Ties
    #: which joints a failed step leads beyond their splines
    left: str = ""

    @property
    def reads_tree(self) -> bool:
        """Whether the graph of bodies and joints does not know all joints, and the tree itself is read."""
        return not all(joint.type.has_rows for joint in self.mechanism.joints)

    def coordinates(self, numbers: np.ndarray) -> np.ndarray:
        return self.view(numbers).joints["coordinate"].copy() if self.reads_tree else super().coordinates(numbers)

    def knot(self, numbers: np.ndarray, inputs: Inputs, rates: np.ndarray) -> Knot:
        if not self.reads_tree:
            return super().knot(numbers, inputs, rates)
        recording = new_recording(1, *self.sizes)
        self.record(numbers, recording, 0)
        reader = self._reader(recording, inputs, self.whole, recording.coordinate[0])
        found = reader.velocities()
        velocity, rate = np.concatenate([found["velocity"][0], found["angular_velocity"][0]], axis=1), found["rate"][0]
        kinetic = 0.5 * float(np.sum(self.momentum_of(velocity) * velocity) + np.sum(self.model.joints["armature"] * rate**2))
        return Knot(velocity, rate, kinetic + float(reader.pose()["potential"][0]), kinetic)

    def _reader(self, recording: Recording, inputs: Inputs, dt: float, coordinate: np.ndarray, pushed: np.ndarray | None = None) -> Any:
        if not self.reads_tree:
            return super()._reader(recording, inputs, dt, coordinate, pushed)
        return TreeReader(
            self.mechanism, self.model, self.compliance, recording, inputs, dt, coordinate, self.exact, self.trusted(recording), pushed,
            tree=self.tree, ties=self.ties,
        )

    def beyond(self, x: np.ndarray) -> str:
        """Joints whose coordinates lie beyond their splines, in words; ``x`` (nodes, 3)."""
        found = []
        for index in np.flatnonzero((self.tree.nodes["kind"] == SPLINE) & (self.tree.nodes["closed"] == 0)):
            node = self.tree.nodes[index]
            ends, own = node["cells"][: node["count"]], x[index, : node["count"]]
            if np.any(own < -1e-9) or np.any(own > ends + 1e-9):
                found.append(f"joint {node_name(self.mechanism, self.tree, int(index))!r} would be at {np.round(own, 6).tolist()}, and its spline goes from 0 to {ends.tolist()}")
        return "; ".join(found)

    def left_spline(self, where: str) -> StepFailure | None:
        """The error of a step that leads beyond a spline, if that is what the last one did."""
        if not self.left:
            return None
        return StepFailure(f"{where} leads beyond a spline: {self.left}. Stop the run before, or give the spline more control frames.")
