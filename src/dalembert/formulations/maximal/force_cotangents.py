"""From cotangents of joint forces and torques to those of poses, velocities and impulses at the knots.

Where rows are redundant the forces meant are those of least norm (Quaternion eq. 40 to 42, with E_x at the least-norm multipliers):
lambda = W^-1 G u with G^T lambda = G^T lambda_0 for any forces lambda_0 that the run has. For a cotangent g of lambda, with
N y = G^T W^-1 g and rho = W^-1 (g - G y), that of lambda_0 is G y, and the pose's comes from rho^T dG u + (lambda_0 - lambda)^T dG y.
"""
from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import GradientError
from dalembert.formulations.maximal.pull_forces_at_knots import (
    ForceBars,
    new_force_bars,
    pull_accelerated,
    pull_shared,
    pull_transmitted,
)
from dalembert.formulations.maximal.recording import Recording
from dalembert.model.least_norm import LeastNorm, row_weights
from dalembert.model.placement import Placement

if TYPE_CHECKING:
    from dalembert.formulations.maximal.adjoint import MaximalAdjoint


class ForceCotangents:
    """The forces of a run, for a backward pass. ``weights``, ``drive_weight``: of the norm that is least, as ``Trajectory.least_norm`` has them."""

    def __init__(self, adjoint: MaximalAdjoint, weights: Any, drive_weight: float) -> None:
        self.adjoint, self.engine, self.model = adjoint, adjoint.engine, adjoint.model
        self.weights, self.drive_weight = weights, drive_weight

    @cached_property
    def redundant(self) -> bool:
        """Whether rows may be redundant."""
        return self.engine.compliance > 0.0 or self.weights is not None

    @cached_property
    def reading(self) -> dict[str, np.ndarray]:
        """Velocities (N, n, 6), row forces and coupling forces at all knots, as a trajectory reads them."""
        adjoint = self.adjoint
        copies = Recording(*(array[: adjoint.knots].copy() for array in adjoint.recording))
        reader = self.engine._reader(copies, adjoint.given, adjoint.dt, adjoint.coordinates[0])
        motion = reader.plain_motion()
        return dict(
            velocity=np.concatenate([motion["velocity"], motion["angular_velocity"]], axis=-1), row_force=motion["row_force"],
            coupling_force=motion["coupling_force"], prescribed=reader.prescribed(),
        )

    def pull(self, first: int, last: int, known: np.ndarray, held: np.ndarray, damped: np.ndarray) -> ForceBars:
        """Bars at knots ``first`` to ``last - 1``. ``known``: forces there were recorded by steps, and their bars are left in ``row``
        and ``tie``; ``held``: drives keep their own rates there; ``damped`` (knots, n, 6): velocities that dampers saw.
        """
        adjoint, count = self.adjoint, last - first
        part = slice(first, last)
        bodies, joints, couplings = self.engine.sizes
        read = self.reading
        velocity, rows, ties = (np.ascontiguousarray(read[name][part]) for name in ("velocity", "row_force", "coupling_force"))
        recording = Recording(*(array[part] for array in adjoint.recording))
        inputs, coordinates = adjoint.inputs_at(first, last), np.ascontiguousarray(adjoint.coordinates[part])
        into, work = new_force_bars(count, bodies, joints, couplings), self.engine.reading.work
        cot = np.ascontiguousarray(adjoint.cotangents.force[part])
        at = self.model, work, recording, inputs, coordinates
        shares = self._share(first, rows, ties) if self.redundant else None
        best = (rows, ties) if shares is None else (shares.rows, shares.ties)
        pull_transmitted(*at, damped, *best, cot, adjoint.bars, into)
        if shares is not None:
            first_motion, second, rho, left = shares.pull(into)
            pull_shared(*at, damped, *best, first_motion, second, rho, left, adjoint.bars, into)
        scratch = (
            np.zeros((bodies + 1, 6)), np.zeros((joints, 6)), np.zeros(couplings), np.zeros((joints, 6)), np.zeros((bodies, 6)), np.zeros((bodies, 19)),
        )
        prescribed = np.ascontiguousarray(read["prescribed"][0, part])
        if not pull_accelerated(
            self.model, work, self.engine.compliance, *at[2:], velocity, rows, ties, prescribed, known, self.engine.exact, held, adjoint.bars, into, scratch,
        ):
            raise GradientError(f"the forces of {adjoint.mechanism.name!r} cannot be differentiated: the joints hold it in a singular pose")
        return into

    def _share(self, first: int, rows: np.ndarray, ties: np.ndarray) -> _Shares:
        return _Shares(self, first, rows, ties)


class _Shares:
    """Least-norm forces at some knots, and the factors that their cotangents need."""

    def __init__(self, owner: ForceCotangents, first: int, rows: np.ndarray, ties: np.ndarray) -> None:
        adjoint, self.model = owner.adjoint, owner.model
        self.placement = Placement(adjoint.mechanism, owner.model, owner.engine.reading.work)
        self.per_row = row_weights(self.placement, owner.weights, owner.drive_weight)
        self.poses = [(adjoint.recording.position[first + i], adjoint.recording.orientation[first + i], adjoint.coordinates[first + i]) for i in range(len(rows))]
        self.given, self.rows, self.ties = (rows, ties), rows.copy(), ties.copy()
        self.systems: list[LeastNorm] = []
        for i, pose in enumerate(self.poses):
            self.placement.put(*pose)
            self.systems.append(LeastNorm(self.placement, self.per_row))
            self.rows[i], self.ties[i] = self.systems[-1].share(rows[i], ties[i])

    def pull(self, into: ForceBars) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Replace the bars of least-norm forces in ``into`` by those of the given ones; returns u, y, rho and lambda_0 - lambda at all knots."""
        bodies, joints, couplings = self.placement.sizes
        count = len(self.rows)
        u, y = np.zeros((count, bodies, 6)), np.zeros((count, bodies, 6))
        rho, left = np.zeros((count, joints + couplings, 6)), np.zeros((count, joints + couplings, 6))
        for i, system in enumerate(self.systems):
            weighted = system.pull(into.row[i], into.tie[i])
            y[i] = weighted.motion.reshape(-1, 6)
            u[i] = system.motion.reshape(-1, 6)
            system.put(weighted.rho, rho[i, :joints], rho[i, joints:, 0])
            left[i, :joints], left[i, joints:, 0] = self.given[0][i] - self.rows[i], self.given[1][i] - self.ties[i]
            system.put(weighted.bar, into.row[i], into.tie[i])
        return u, y, rho, left
