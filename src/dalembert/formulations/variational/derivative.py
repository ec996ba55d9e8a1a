"""A backward pass over a run of the variational integrator."""
from __future__ import annotations

import numpy as np

from dalembert.errors import GradientError
from dalembert.formulations.derivatives import Cotangents, StartBars
from dalembert.formulations.engine import Inputs
from dalembert.formulations.maximal.adjoint import KnotBars, MaximalAdjoint
from dalembert.formulations.maximal.recording import Recording
from dalembert.formulations.maximal.series import is_kick
from dalembert.formulations.maximal.singular import singular_step
from dalembert.formulations.maximal.tape import Tape
from dalembert.formulations.variational.tape import pull_knots, pull_steps

#: largest residual of the adjoint equations, relative to what they are asked for
LOOSE = 1e-6


class VariationalAdjoint(MaximalAdjoint):
    """The state of a body is position, orientation, momenta and the part of them that paths gave at the knot: (x, phi, p, l, along)."""

    width = 18

    def read(self, first: int, last: int) -> KnotBars:
        cotangents = self.part(first, last)
        if self.reads:
            return self._read(first, last, cotangents, self.inputs_at(first, last), self.prescribed[0, first:last])
        return self._add_poses(self.new_knots(last - first), cotangents)

    def read_seen(self, knot: int, cotangents: Cotangents, inputs: Inputs, rates: np.ndarray) -> KnotBars:
        one = Recording(*(array[knot : knot + 1].copy() for array in self.recording))
        own = self.engine.seen(one, inputs, rates, self.coordinates[knot])["rate"]
        return self._read(knot, knot + 1, cotangents, inputs, np.where(np.isnan(rates), own, rates)[None])

    def _read(self, first: int, last: int, cotangents: Cotangents, inputs: Inputs, rates: np.ndarray) -> KnotBars:
        """What is read at knots with their ``inputs`` and rates (knots, joints, 6) of driven directions."""
        knots, (bodies, joints, couplings) = self.new_knots(last - first), self.engine.sizes
        scratch = np.zeros((2, bodies + 1, 6)), np.zeros((bodies + 1, 6)), np.zeros((joints, 6)), np.zeros(couplings), np.zeros((joints, 6))
        recording = Recording(*(array[first:last] for array in self.recording))
        if not pull_knots(
            self.model, self.engine.reading.work, self.engine.compliance, recording, inputs, self.coordinates[first:last], rates, 0, last - first,
            cotangents, self.bars, knots, scratch,
        ):
            raise GradientError(f"the velocities of {self.mechanism.name!r} cannot be differentiated: the joints hold it in a singular pose")
        return self._add_poses(knots, cotangents)

    @staticmethod
    def _add_poses(knots: KnotBars, cotangents: Cotangents) -> KnotBars:
        knots.body[:, :, :3] += cotangents.position
        knots.body[:, :, 3:6] += cotangents.orientation
        return knots

    def pull(self, tape: Tape, knots: KnotBars, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        (bodies, joints, couplings), count = self.engine.sizes, tape.count
        pushes, rows, tensions = np.zeros((count, bodies, 6)), np.zeros((count, 2, joints, 6)), np.zeros((count, couplings))
        begins = tape.begins()
        worst = pull_steps(
            self.model, self.engine.graph.work, self.engine.compliance, tape.arrays, 0, count, self.bars, knots, begins,
            *self._impulses(tape, begins, first), pushes, rows, tensions,
        )
        if not 0.0 <= worst < LOOSE:
            raise singular_step(self.mechanism, worst)
        return pushes, rows[:, 0], rows[:, 1:2], tensions

    def _impulses(self, tape: Tape, begins: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Cotangents of impulses of rows (substeps, joints, 6) and couplings, from those of forces that steps recorded; or none."""
        (_, joints, couplings), count = self.engine.sizes, tape.count
        if self.pulled is None:
            return np.zeros((0, joints, 6)), np.zeros((0, couplings))
        rows, ties = np.zeros((count, joints, 6)), np.zeros((count, couplings))
        known = self.recorded_forces(first, first + len(self.pulled.row))
        entries = np.array([entry for entry, knot in enumerate(begins) if knot >= 0 and known[knot]], dtype=int)
        kick = 2.0 / tape.arrays.clock[entries].sum(axis=1)
        rows[entries] = kick[:, None, None] * self.pulled.row[begins[entries]]
        ties[entries] = kick[:, None] * self.pulled.tie[begins[entries]]
        return rows, ties

    def recorded_forces(self, first: int, last: int) -> np.ndarray:
        """Means over a kick centred at the knot: equal whole steps before and after (``series.is_kick``)."""
        recording = Recording(*(array[: self.knots] for array in self.recording))
        return np.array([is_kick(recording, knot) for knot in range(first, last)], dtype=bool)

    def damped(self, tape: Tape, first: int, last: int, known: np.ndarray) -> np.ndarray:
        """Mean velocities of the intervals beside a knot, where a step recorded its forces."""
        velocity = super().damped(tape, first, last, known).copy()
        entries = [entry for entry, step in enumerate(tape.steps) if step.start == 0.0 and step.knot < last - first and known[step.knot]]
        if entries:
            at, dt = tape.arrays.bodies[entries], tape.arrays.clock[entries, 1][:, None, None]
            fixed = self.model.bodies[:-1]
            w = at["w"]
            Jw = np.einsum("nij,knj->kni", fixed["inertia"].reshape(-1, 3, 3), w)
            s = np.sqrt(4.0 / dt**2 - np.sum(w * w, axis=-1, keepdims=True))
            spin = at["l"] - at["along"][..., 3:] + 0.5 * dt * (s * Jw + np.cross(w, Jw))
            linear = 0.5 * ((at["p"] - at["along"][..., :3]) / fixed["mass"][:, None] + at["v"])
            angular = 0.5 * np.einsum("nij,knj->kni", fixed["inertia_inverse"].reshape(-1, 3, 3), spin)
            velocity[[tape.steps[entry].knot for entry in entries]] = np.concatenate([linear, angular], axis=-1)
        return velocity

    def start(self) -> StartBars:
        return self.momentum_start()
