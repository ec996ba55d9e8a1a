"""From a recording to a trajectory: the recorded poses at once, everything else when somebody asks for it."""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dalembert.formulations.maximal.engine import Inputs, MaximalEngine, Recording
from dalembert.formulations.maximal.series import force_series, pose_series, velocity_series
from dalembert.formulations.variational import Variational
from dalembert.mechanism.mechanism import Mechanism
from dalembert.trajectory import Trajectory

POSE = frozenset({"coordinate", "violation", "coupling_violation", "potential"})
VELOCITY = frozenset({"velocity", "angular_velocity", "rate", "row_force", "coupling_force"})
FORCE = frozenset({"force", "torque", "actuation"})


class Reader:
    """Derives series from a recording, on an engine of its own."""

    def __init__(self, mechanism: Mechanism, formulation: Variational, recording: Recording, inputs: Inputs, start: np.ndarray) -> None:
        self.mechanism, self.formulation = mechanism, formulation
        self.recording, self.inputs, self.start = recording, inputs, start
        self._engine: MaximalEngine | None = None
        self._pose: dict[str, np.ndarray] | None = None
        self._velocity: dict[str, np.ndarray] | None = None

    @property
    def engine(self) -> MaximalEngine:
        if self._engine is None:
            self._engine = self.formulation.engine(self.mechanism)
        self._engine.records.joints["coordinate"] = self.start
        return self._engine

    @property
    def knots(self) -> int:
        return len(self.recording.step_before)

    def pose(self) -> Mapping[str, np.ndarray]:
        """Coordinates, violations, potential energy."""
        if self._pose is None:
            engine = self.engine
            _, joints, couplings = engine.sizes
            coordinate, violation = np.zeros((self.knots, joints, 6)), np.zeros((self.knots, joints, 6))
            gaps, potential = np.zeros((self.knots, couplings)), np.zeros(self.knots)
            pose_series(engine.records, self.recording, self.inputs, engine.base_load, coordinate, violation, gaps, potential)
            for p in self.mechanism.potentials:
                where, turned = self.recording.position[:, p.body.index], self.recording.orientation[:, p.body.index]
                potential += [p.energy(x.copy(), q.copy()) for x, q in zip(where, turned)]
            self._pose = dict(coordinate=coordinate, violation=violation, coupling_violation=gaps, potential=potential)
        return self._pose

    def velocity(self) -> Mapping[str, np.ndarray]:
        """Knot velocities, joint rates, and row forces with the start and the end filled in."""
        if self._velocity is None:
            coordinate = self.pose()["coordinate"]
            engine = self.engine
            system = engine.system
            prescribed, acceleration = self._prescribed(coordinate)
            velocity = np.zeros((self.knots, engine.sizes[0] + 1, 6))
            velocity_series(
                engine.records, system.blocks, system.structure.schedule, system.vector, self.recording, self.inputs,
                engine.base_load, prescribed, acceleration, velocity,
            )
            rate = engine.rate_series(self.recording, velocity)
            self._velocity = dict(
                velocity=velocity[:, :-1, :3], angular_velocity=velocity[:, :-1, 3:], rate=rate,
                row_force=self.recording.row_force, coupling_force=self.recording.coupling_force,
            )
        return self._velocity

    def _prescribed(self, coordinate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rates and accelerations of the driven directions, by differences of their coordinates."""
        rate, acceleration = np.zeros_like(coordinate), np.zeros_like(coordinate)
        driven = self.engine.records.joints["driven"].astype(bool)
        if driven.any() and self.knots > 3:
            dt = self.formulation.dt
            rate[:, driven] = np.gradient(coordinate[:, driven], dt, axis=0, edge_order=2)
            acceleration[:, driven] = np.gradient(rate[:, driven], dt, axis=0, edge_order=2)
        return rate, acceleration

    def force(self) -> Mapping[str, np.ndarray]:
        """Forces and torques that the joints transmit."""
        self.velocity()
        engine = self.engine
        joints = engine.sizes[1]
        force, torque, actuation = (np.zeros((self.knots, joints, n)) for n in (3, 3, 6))
        force_series(engine.records, self.recording, self.inputs, engine.base_load, force, torque, actuation)
        return dict(force=force, torque=torque, actuation=actuation)


def read_trajectory(mechanism: Mechanism, formulation: Variational, recording: Recording, inputs: Inputs, start: np.ndarray, time: float) -> Trajectory:
    """A trajectory over a recording. ``start``: coordinates (joints, 6) at its first knot, to unwrap the rest against."""
    reader = Reader(mechanism, formulation, recording, inputs, start)
    values = dict(
        time=time + formulation.dt * np.arange(len(recording.step_before)), position=recording.position,
        orientation=recording.orientation, substeps=recording.substeps, iterations=recording.iterations,
    )
    return Trajectory(
        mechanism=mechanism.name, formulation=type(formulation).__name__,
        bodies=tuple(b.name for b in mechanism.bodies), joints=tuple(j.name for j in mechanism.joints),
        couplings=tuple(c.name for c in mechanism.couplings), freedom=tuple(j.type.freedom for j in mechanism.joints),
        mass=np.array([b.mass for b in mechanism.bodies]), inertia=np.array([b.inertia for b in mechanism.bodies]),
        _values=values, _providers=((POSE, reader.pose), (VELOCITY, reader.velocity), (FORCE, reader.force)),
    )
