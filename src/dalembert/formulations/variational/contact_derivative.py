"""A backward pass over a variational run with contacts, limits or dry friction."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.formulations.derivatives import Cotangents
from dalembert.formulations.engine import Inputs
from dalembert.formulations.maximal.adjoint import KnotBars
from dalembert.formulations.maximal.ball_torques import pull_along_axes
from dalembert.formulations.maximal.singular import singular_step
from dalembert.formulations.maximal.tape import Tape
from dalembert.formulations.maximal.touching_adjoint import TouchingAdjoint, forces_as_loads, only_coordinates
from dalembert.formulations.maximal.touching_tape import TouchingTape
from dalembert.formulations.variational.contact_tape import pull_contact_steps
from dalembert.formulations.variational.derivative import LOOSE, VariationalAdjoint
from dalembert.model.functions import watched


class ContactAdjoint(TouchingAdjoint, VariationalAdjoint):
    """Velocities at knots are read with the forces of contacts there, whose bars go to the impulses of the step that begins there."""

    def __init__(self, engine: Any, recording: Any, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, cotangents: Cotangents) -> None:
        tape = recording.tape
        super().__init__(engine, recording.plain, forces_as_loads(inputs, tape, knots, engine.balls, coordinates), knots, dt, coordinates, cotangents)
        self.pressing, self.lasting = (tape.friction + tape.limit)[:knots], tape.lasting_along

    #: bars of what lasted of a step, on bodies and along directions, that a controller at its end saw
    seen: tuple[np.ndarray, np.ndarray] | None = None

    def add_seen(self, knot: int, cotangents: Cotangents, inputs: Inputs, rates: np.ndarray) -> KnotBars:
        knots = super().add_seen(knot, cotangents, inputs, rates)
        here = self.engine.balls, self.coordinates[knot : knot + 1], self.lasting[knot : knot + 1]
        along, coordinate = pull_along_axes(*here, knots.input)
        self.seen = knots.push, along
        if np.any(coordinate):
            with watched(self.mechanism):
                self.add_state(self.read_seen(knot, only_coordinates(cotangents, coordinate), inputs, rates), 0)
        return knots

    def pull(self, tape: Tape, knots: KnotBars, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        assert isinstance(tape, TouchingTape)
        knots = knots._replace(input=self.turned(first, knots.input)[0])
        (bodies, joints, couplings), count, engine = self.engine.sizes, tape.count, self.engine
        pushes, rows, tensions = np.zeros((count, bodies, 6)), np.zeros((count, 2, joints, 6)), np.zeros((count, couplings))
        begins = tape.begins()
        ends = np.full(count, -1, dtype=np.int64)
        if len(knots.push) > tape.steps[-1].knot + 1:
            ends[-1] = tape.steps[-1].knot + 1
        if self.seen is not None:
            ends[-1] = len(knots.push)
            knots = knots._replace(push=np.concatenate([knots.push, self.seen[0]]), input=np.concatenate([knots.input, self.seen[1]]))
            self.seen = None
        felt = knots._replace(push=np.concatenate([knots.push, np.zeros((len(knots.push), 1, 6))], axis=1))
        impulses = self._impulses(tape, begins, first)
        for section, touch in self.sections(tape):
            worst = pull_contact_steps(
                self.model, section.graph.work, section.scene, engine.compliance, tape.arrays, section.kept, section.first, section.begin, section.end,
                self.bars, touch, felt, begins, ends, engine.options.resting_speed, *impulses, pushes, rows, tensions,
            )
            if not 0.0 <= worst < LOOSE:
                raise singular_step(self.mechanism, worst)
        return pushes, rows[:, 0], rows[:, 1:2], tensions
