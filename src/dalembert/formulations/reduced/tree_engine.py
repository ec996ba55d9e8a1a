"""What engines in joint coordinates share: a tree, and what to read off a state that only the tree knows."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.formulations.engine import Inputs, Knot
from dalembert.formulations.maximal.engine import MaximalEngine
from dalembert.formulations.maximal.recording import Recording, new_recording
from dalembert.formulations.reduced.reading import TreeReader
from dalembert.formulations.reduced.ties import Ties
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.compile import compile_model
from dalembert.model.tree import Tree, build_tree


class TreeEngine(MaximalEngine):
    """Forces are read by acceleration-level solves on the graph of bodies and joints, or on the tree where that knows more joints."""

    exact, needs_rows = True, False
    tree: Tree
    ties: Ties

    def write_knot(self, numbers: np.ndarray, recording: Recording, knot: int) -> None:
        """Poses, momenta, coordinates and rates of a state."""
        raise NotImplementedError

    @property
    def reads_tree(self) -> bool:
        """Whether the graph of bodies and joints does not know all joints, and the tree itself is read."""
        return not all(joint.type.has_rows for joint in self.mechanism.joints)

    def _one_knot(self, numbers: np.ndarray) -> Recording:
        recording = new_recording(1, *self.sizes)
        self.write_knot(numbers, recording, 0)
        return recording

    def pose(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions (n, 3) and orientations (n, 4)."""
        recording = self._one_knot(numbers)
        return recording.position[0], recording.orientation[0]

    def coordinates(self, numbers: np.ndarray) -> np.ndarray:
        """(joints, 6) unwrapped."""
        return self.view(numbers).joints["coordinate"].copy() if self.reads_tree else super().coordinates(numbers)

    def knot(self, numbers: np.ndarray, inputs: Inputs, rates: np.ndarray) -> Knot:
        """Velocities, rates and energy at the knot, under the inputs of the step that begins there."""
        if not self.reads_tree:
            return super().knot(numbers, inputs, rates)
        recording = self._one_knot(numbers)
        reader = self._reader(recording, inputs, self.whole, recording.coordinate[0])
        found = reader.velocities()
        velocity, rate = np.concatenate([found["velocity"][0], found["angular_velocity"][0]], axis=1), found["rate"][0]
        kinetic = 0.5 * float(np.sum(self.momentum_of(velocity) * velocity) + np.sum(self.model.joints["armature"] * rate**2))
        return Knot(velocity, rate, kinetic + float(reader.pose()["potential"][0]), kinetic)

    # ---- derivatives

    def model_of(self, mechanism: Mechanism) -> Any:
        """What forward passes take of a mechanism whose numbers are others."""
        from dalembert.formulations.reduced.sensitivities import Built

        model = compile_model(mechanism)
        tree = build_tree(mechanism, model)
        return Built(model._replace(splines=tree.splines), tree)

    def start_velocity(self, numbers: np.ndarray) -> np.ndarray:
        """(n, 6) velocities of a state."""
        momentum, bodies = self._one_knot(numbers).momentum[0], self.model.bodies[:-1]
        spin = np.einsum("nij,nj->ni", bodies["inertia_inverse"].reshape(-1, 3, 3), momentum[:, 3:])
        return np.concatenate([momentum[:, :3] / bodies["mass"][:, None], spin], axis=1)

    # ---- reading

    def _reader(self, recording: Recording, inputs: Inputs, dt: float, coordinate: np.ndarray, pushed: np.ndarray | None = None) -> Any:
        if not self.reads_tree:
            return super()._reader(recording, inputs, dt, coordinate, pushed)
        return TreeReader(
            self.mechanism, self.model, self.compliance, recording, inputs, dt, coordinate, self.exact, self.trusted(recording), self.reading,
            pushed, tree=self.tree, ties=self.ties,
        )
