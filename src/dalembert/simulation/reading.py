"""From a recording to a trajectory: the recorded poses at once, everything else when somebody asks for it."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dalembert.formulations.formulation import Formulation
from dalembert.formulations.maximal.engine import Inputs, Recording
from dalembert.formulations.maximal.least_norm import least_norm, row_weights
from dalembert.formulations.maximal.series import force_series, motion_series, new_motion, pose_series
from dalembert.mechanism.mechanism import Mechanism
from dalembert.simulation.trajectory import Trajectory

POSE = frozenset({"coordinate", "violation", "coupling_violation", "potential"})
MOTION = frozenset({"velocity", "angular_velocity", "rate", "force", "torque", "actuation", "row_force", "coupling_force"})


class Reader:
    """Derives series from a recording, on an engine of its own."""

    def __init__(self, mechanism: Mechanism, formulation: Formulation, recording: Recording, inputs: Inputs, start: np.ndarray) -> None:
        self.mechanism, self.formulation = mechanism, formulation
        self.recording, self.inputs, self.start = recording, inputs, start
        self._engine: Any = None
        self._pose: dict[str, np.ndarray] | None = None

    @property
    def engine(self) -> Any:
        if self._engine is None:
            self._engine = self.formulation.reader(self.mechanism)
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

    def motion(self) -> Mapping[str, np.ndarray]:
        """Knot velocities, joint rates, and the forces that the joints transmit."""
        coordinate = self.pose()["coordinate"]
        engine = self.engine
        system, motion, prescribed = engine.system, new_motion(self.knots, *engine.sizes[:2]), self._prescribed(coordinate)
        motion_series(
            engine.records, system.blocks, system.structure.schedule, system.vector, engine.compliance,
            self.recording, self.inputs, engine.base_load, prescribed, motion, engine.exact,
        )
        motion.actuation[:] += self._rotor_force(prescribed)
        return dict(
            velocity=motion.velocity[:, :-1, :3], angular_velocity=motion.velocity[:, :-1, 3:], rate=motion.rate,
            force=motion.force, torque=motion.torque, actuation=motion.actuation,
            row_force=self.recording.row_force, coupling_force=self.recording.coupling_force,
        )

    def least_norm(self, weights: Mapping[str, ArrayLike] | None, drive_weight: float, knots: np.ndarray) -> Mapping[str, np.ndarray]:
        """Forces, torques and actuation at some knots with the redundant part chosen least in a weighted norm."""
        self.motion()
        engine, recording = self.engine, self.recording
        per_row = row_weights(engine, weights, drive_weight)
        short = Recording(*(np.ascontiguousarray(array[knots]) for array in recording))
        steps = np.minimum(knots, self.knots - 2)
        wrench, joint = (t[steps] if len(t) else t for t in (self.inputs.wrench, self.inputs.joint))
        inputs = Inputs(wrench, joint, np.ascontiguousarray(self.inputs.target[knots]), self.inputs.stage)
        for i in range(len(knots)):
            engine.records.bodies["x"][:-1], engine.records.bodies["q"][:-1] = short.position[i], short.orientation[i]
            short.row_force[i], short.coupling_force[i] = least_norm(engine, short.row_force[i], short.coupling_force[i], per_row)
        joints = engine.sizes[1]
        force, torque, actuation = (np.zeros((len(knots), joints, n)) for n in (3, 3, 6))
        force_series(engine.records, short, inputs, engine.base_load, force, torque, actuation)
        actuation += self._rotor_force(self._prescribed(self.pose()["coordinate"]))[knots]
        return dict(force=force, torque=torque, actuation=actuation)

    def _rotor_force(self, prescribed: np.ndarray) -> np.ndarray:
        """What drives need besides to accelerate the reflected inertias of their own directions."""
        joints = self.engine.records.joints
        return np.where(joints["driven"] != 0, joints["armature"], 0.0) * prescribed[1]

    def _prescribed(self, coordinate: np.ndarray) -> np.ndarray:
        """(2, N, joints, 6): rates and accelerations of the driven directions, by differences of their coordinates."""
        prescribed = np.zeros((2, *coordinate.shape))
        rate, acceleration = prescribed[0], prescribed[1]
        driven = self.engine.records.joints["driven"].astype(bool)
        if driven.any() and self.knots > 3:
            dt = self.formulation.dt
            rate[:, driven] = np.gradient(coordinate[:, driven], dt, axis=0, edge_order=2)
            p = coordinate[:, driven]
            second = acceleration[:, driven]
            second[1:-1] = (p[2:] - 2.0 * p[1:-1] + p[:-2]) / dt**2
            second[0] = (2.0 * p[0] - 5.0 * p[1] + 4.0 * p[2] - p[3]) / dt**2
            second[-1] = (2.0 * p[-1] - 5.0 * p[-2] + 4.0 * p[-3] - p[-4]) / dt**2
            acceleration[:, driven] = second
        return prescribed


def _armature(mechanism: Mechanism) -> np.ndarray | None:
    """(joints, 6) inertias along the free directions, None where all are zero."""
    armature = np.zeros((len(mechanism.joints), 6))
    for joint in mechanism.joints:
        armature[joint.index, : joint.type.freedom] = joint.type.armature
    return armature if armature.any() else None


def with_contact_forces(inputs: Inputs, tape: Any) -> Inputs:
    """Inputs with the forces of contacts, limits and dry friction added: to a reader they are loads like any other."""
    if tape is None:
        return inputs
    wrench, push = tape[0].wrench[:-1], tape[0].push[:-1]
    return Inputs(
        wrench + inputs.wrench if len(inputs.wrench) else wrench.copy(), push + inputs.joint if len(inputs.joint) else push.copy(), inputs.target, inputs.stage,
    )


def read_trajectory(mechanism: Mechanism, formulation: Formulation, recording: Recording, inputs: Inputs, start: np.ndarray, time: float, tape: Any = None) -> Trajectory:
    """A trajectory over a recording. ``start``: coordinates (joints, 6) at its first knot, to unwrap the rest against.

    ``tape``: what a run with contacts recorded besides (forces per knot, the log of contacts, the names in it).
    """
    inputs = with_contact_forces(inputs, tape)
    reader = Reader(mechanism, formulation, recording, inputs, start)
    values = dict(
        time=time + formulation.dt * np.arange(len(recording.step_before)), position=recording.position,
        orientation=recording.orientation, substeps=recording.substeps, iterations=recording.iterations,
    )
    if tape is not None:
        values.update(contact_wrench=tape[0].wrench, momentum_after=tape[0].after, contact_log=tape[1])
    return Trajectory(
        mechanism=mechanism.name, formulation=type(formulation).__name__,
        bodies=tuple(b.name for b in mechanism.bodies), joints=tuple(j.name for j in mechanism.joints),
        couplings=tuple(c.name for c in mechanism.couplings),
        coordinate_units=tuple(tuple("m" if kind in ("slide", "distance") else "rad" for kind, _ in j.type.directions) for j in mechanism.joints),
        mass=np.array([b.mass for b in mechanism.bodies]), inertia=np.array([b.inertia for b in mechanism.bodies]),
        armature=_armature(mechanism), model=mechanism, touching=() if tape is None else tape[2], _values=values,
        _providers=((POSE, reader.pose), (MOTION, reader.motion)), _least_norm=reader.least_norm,
    )
