"""From a recording to what a trajectory offers: poses at once, everything else when somebody asks for it."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dalembert.formulations.engine import SHARES as ALL_SHARES
from dalembert.formulations.engine import Inputs, Readings
from dalembert.formulations.maximal.graph import Graph
from dalembert.formulations.maximal.recording import Recording
from dalembert.formulations.maximal.series import (
    DRIVE,
    SHARES,
    Motion,
    force_series,
    motion_series,
    new_motion,
    pose_series,
)
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.functions import watched
from dalembert.model.least_norm import least_norm, row_weights
from dalembert.model.placement import Placement
from dalembert.model.records import BALL, Model, Work

POSE = frozenset({"coordinate", "violation", "coupling_violation", "potential", "coupling"})
MOTION = frozenset({"velocity", "angular_velocity", "rate", "force", "torque", "actuation", "share", "row_force", "coupling_force", "coupling_rate"})
#: knots that are glanced at together
GLANCED = 4096


@dataclass
class Reader:
    """Derives series from a recording, with a work of its own on the engine's graph, which is made when it is needed."""

    mechanism: Mechanism
    model: Model
    compliance: float
    recording: Recording
    inputs: Inputs
    dt: float
    start: np.ndarray  # (joints, 6) coordinates at the first knot
    exact: bool
    trusted: np.ndarray  # (N,) with ``exact``: knots whose recorded forces hold there
    #: of bodies, joints and couplings; its own work, which is the engine's, serves for glances
    graph: Graph
    #: (N, joints, 6, 2) forces of dry friction and of limits along the directions, which are part of the inputs too
    pushed: np.ndarray | None = None
    _pose: dict[str, np.ndarray] = field(default_factory=dict)

    @cached_property
    def work(self) -> Work:
        """Scratch that nobody else uses."""
        return self.graph.new_work(self.model)

    @property
    def knots(self) -> int:
        return len(self.recording.step_before)

    def readings(self, **more: np.ndarray) -> Readings:
        """What a trajectory takes; ``more``: values besides."""
        recording = self.recording
        values = dict(
            position=recording.position, orientation=recording.orientation, substeps=recording.substeps, iterations=recording.iterations, **more,
        )
        return Readings(values, ((POSE, self.pose), (MOTION, self.motion)), least_norm=self.least_norm, glance=self.glance)

    def pose(self) -> Mapping[str, np.ndarray]:
        """Coordinates, violations, potential energy."""
        if not self._pose:
            joints, couplings = len(self.model.joints), len(self.model.couplings)
            coordinate, violation = np.zeros((self.knots, joints, 6)), np.zeros((self.knots, joints, 6))
            gaps, potential, values = np.zeros((self.knots, couplings)), np.zeros(self.knots), np.zeros((self.knots, couplings))
            self.work.joints["coordinate"] = self.start
            with watched(self.mechanism):
                pose_series(self.model, self.work, self.recording, self.inputs, coordinate, violation, gaps, potential, values)
            self._pose = dict(coordinate=coordinate, violation=violation, coupling_violation=gaps, potential=potential, coupling=values)
        return self._pose

    def glance(self, knots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Kinetic and potential energy (J) at some knots in rising order, at little cost.

        Where momenta were recorded between knots, the mean of those around a knot stands for its own, and at the last one they are carried on.
        """
        work = self.graph.work
        work.joints["coordinate"] = self.start
        kinetic, potential = zip(*(self._glance(part, work) for part in _parts(knots)))
        return np.concatenate(kinetic), np.concatenate(potential)

    def _glance(self, knots: np.ndarray, work: Work) -> tuple[np.ndarray, np.ndarray]:
        recording, inputs = self._at(knots)
        momentum, spin = recording.momentum, recording.spin
        if not self.exact:
            momentum, spin = (_between(array, knots, self.recording.step_before) for array in (self.recording.momentum, self.recording.spin))
        bodies, armature = self.model.bodies[:-1], self.model.joints["armature"]
        linear = np.einsum("kbi,b->k", momentum[..., :3] ** 2, 1.0 / bodies["mass"])
        turning = np.einsum("kbi,bij,kbj->k", momentum[..., 3:], bodies["inertia_inverse"].reshape(-1, 3, 3), momentum[..., 3:])
        potential = self._glance_at_poses(recording, inputs, work)[1]
        kinetic = linear + turning
        if armature.any():  # rates are recorded where they are unknowns, elsewhere momenta of rotors, or neither
            rate = np.divide(spin, armature, out=np.array(recording.rate), where=spin != 0.0)
            if not rate.any():
                ends = np.maximum(knots - 1, 0), np.minimum(knots + 1, self.knots - 1)
                before, after = (self._glance_at_poses(*self._at(end), work)[0] for end in ends)
                rate = (after - before) / (self.dt * (ends[1] - ends[0]))[:, None, None]
            kinetic += np.einsum("kjd,jd->k", rate**2, armature)
        return 0.5 * kinetic, potential

    def _glance_at_poses(self, recording: Recording, inputs: Inputs, work: Work) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates (k, joints, 6) and potential energies (k,) of a short recording."""
        count, joints, couplings = len(recording.substeps), len(self.model.joints), len(self.model.couplings)
        potential, by_joint, by_coupling = np.zeros(count), np.zeros((2, count, joints, 6)), np.zeros((2, count, couplings))
        with watched(self.mechanism):
            pose_series(self.model, work, recording, inputs, by_joint[0], by_joint[1], by_coupling[0], potential, by_coupling[1])
        return by_joint[0], potential

    def _at(self, knots: np.ndarray) -> tuple[Recording, Inputs]:
        """Some knots of the recording, with the inputs there."""
        given = (self.inputs.wrench, self.inputs.joint, self.inputs.tension)
        wrench, joint, tension = (t[np.minimum(knots, len(t) - 1)] if len(t) else t for t in given)
        inputs = Inputs(wrench, joint, np.ascontiguousarray(self.inputs.target[knots]), self.inputs.stage, tension)
        return Recording(*(np.ascontiguousarray(array[knots]) for array in self.recording)), inputs

    def motion(self) -> Mapping[str, np.ndarray]:
        """Knot velocities, joint rates, and the forces that the joints transmit."""
        return self.plain_motion()

    def plain_motion(self) -> Mapping[str, np.ndarray]:
        """The same with forces as the steps or the solves at the knots gave them."""
        prescribed, recording = self.prescribed(), self.recording
        motion = self._move(prescribed)
        if self.knots == 2 and self.exact and len(self.inputs.stage) == 0:
            prescribed[1] = np.where(self.model.joints["driven"] != 0, np.diff(motion.rate, axis=0) / self.dt, 0.0)
            motion = self._move(prescribed)
        return dict(
            velocity=motion.velocity[:, :-1, :3], angular_velocity=motion.velocity[:, :-1, 3:], rate=motion.rate,
            force=motion.force, torque=motion.torque, row_force=recording.row_force, coupling_force=recording.coupling_force, coupling_rate=motion.coupling_rate,
            **self._shared(motion, np.arange(self.knots), prescribed),
        )

    def _move(self, prescribed: np.ndarray) -> Motion:
        self.work.joints["coordinate"] = self.start
        motion = new_motion(self.knots, len(self.model.bodies) - 1, len(self.model.joints), len(self.model.couplings))
        with watched(self.mechanism):
            motion_series(
                self.model, self.work, self.compliance, self.recording, self.inputs, prescribed, motion, self.exact, self.trusted,
            )
        return motion

    def _shared(self, motion: Motion, knots: np.ndarray, prescribed: np.ndarray) -> dict[str, np.ndarray]:
        """Actuation and its shares: drives need besides what accelerates the reflected inertias of their own directions."""
        rotor = np.where(self.model.joints["driven"] != 0, self.model.joints["armature"], 0.0) * prescribed[1][knots]
        share = np.zeros((*motion.share.shape[:-1], len(ALL_SHARES)))
        share[..., : len(SHARES)] = motion.share
        share[..., DRIVE] += rotor
        if self.pushed is not None:
            share[..., len(SHARES) :] = self.pushed[knots]
            share[..., DRIVE] -= self.pushed[knots].sum(axis=-1)
        return dict(actuation=motion.actuation + rotor, share=share)

    def least_norm(self, weights: Mapping[str, ArrayLike] | None, drive_weight: float, knots: np.ndarray) -> Mapping[str, np.ndarray]:
        """Forces, torques and actuation at some knots with the redundant part chosen least in a weighted norm."""
        return self.share(self.motion()["rate"], weights, drive_weight, knots)

    def share(self, rate: np.ndarray, weights: Mapping[str, ArrayLike] | None, drive_weight: float, knots: np.ndarray) -> Mapping[str, np.ndarray]:
        """The same for forces and rates (N, joints, 6) that are known."""
        placement = Placement(self.mechanism, self.model, self.work)
        per_row = row_weights(placement, weights, drive_weight)
        short, inputs = self._at(knots)
        for i in range(len(knots)):
            placement.put(short.position[i], short.orientation[i])
            short.row_force[i], short.coupling_force[i] = least_norm(placement, short.row_force[i], short.coupling_force[i], per_row)
        motion = new_motion(len(knots), len(self.model.bodies) - 1, len(self.model.joints), len(self.model.couplings))
        motion.rate[:] = rate[knots]
        force_series(self.model, self.work, short, inputs, motion)
        return dict(force=motion.force, torque=motion.torque, **self._shared(motion, knots, self.prescribed()))

    def prescribed(self) -> np.ndarray:
        """(2, N, joints, 6): rates and accelerations of the driven directions, by differences of their targets.

        Those of free rotations are an angular velocity and its rate in the parent's axes. Of second order with four knots or
        more; two tell nothing of accelerations.
        """
        joints = self.model.joints
        prescribed = np.zeros((2, self.knots, len(joints), 6))
        driven = joints["driven"].astype(bool)
        ball = driven & (joints["free_kind"] == BALL)
        if driven.any() and self.knots > 1:
            targets = self.inputs.target[: self.knots]
            moved = np.diff(targets, axis=0)
            for i in np.flatnonzero(ball.any(axis=1)):
                turns = Rotation.from_rotvec(targets[:, i, ball[i]])
                moved[:, i, ball[i]] = (turns[1:] * turns[:-1].inv()).as_rotvec()
            if len(moved) == 1:
                prescribed[0] = moved / self.dt
            else:
                prescribed[0] = _to_the_ends((moved[1:] + moved[:-1]) / (2.0 * self.dt))
                prescribed[1] = _to_the_ends((moved[1:] - moved[:-1]) / self.dt**2)
        known = self.inputs.stage
        if len(known) >= self.knots:
            values = known[: self.knots].swapaxes(0, 1)
            prescribed = np.where(np.isnan(values), prescribed, values)
        prescribed[:, :, ~driven] = 0.0
        return prescribed


def _parts(knots: np.ndarray) -> Iterator[np.ndarray]:
    """Knots in parts that take little room."""
    return (knots[first : first + GLANCED] for first in range(0, len(knots), GLANCED))


def _between(values: np.ndarray, knots: np.ndarray, step_before: np.ndarray) -> np.ndarray:
    """Values at knots from those in the middle of the steps before them; where none went before, the value is the knot's own."""
    last = len(values) - 1
    after = np.where(knots < last, np.minimum(knots + 1, last), np.maximum(last - 1, 0))
    part = np.where(step_before[knots] == 0.0, 0.0, np.where(knots < last, 0.5, -0.5 * (step_before[after] > 0.0)))[:, None, None]
    return (1.0 - part) * values[knots] + part * values[after]


def _to_the_ends(inner: np.ndarray) -> np.ndarray:
    """Values at the inner knots carried on to the first and the last one."""
    first, last = (inner[0], inner[-1]) if len(inner) == 1 else (2.0 * inner[0] - inner[1], 2.0 * inner[-1] - inner[-2])
    return np.concatenate([first[None], inner, last[None]])
