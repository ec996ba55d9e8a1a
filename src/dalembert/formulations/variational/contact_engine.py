"""What steps a mechanism with contacts, limits or dry friction by the variational integrator."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalembert.contact.nodes import Encounter
from dalembert.contact.records import Tape
from dalembert.formulations.derivatives import Adjoint, Cotangents, Forward, InputBars
from dalembert.formulations.engine import Inputs
from dalembert.formulations.maximal import examples
from dalembert.formulations.maximal.contact_engine import ContactRecording, Section, TouchingEngine, empty_scene
from dalembert.formulations.maximal.graph import Graph, build_graph
from dalembert.formulations.maximal.reading import Reader
from dalembert.formulations.maximal.touching_tape import TouchingTape
from dalembert.formulations.variational.contact_series import after_series
from dalembert.formulations.variational.contact_step import (
    CONTACT_BODY_STATE,
    CONTACT_JOINT_STATE,
    run_contact_steps,
    solve_encounter,
)
from dalembert.formulations.variational.engine import VariationalEngine
from dalembert.formulations.variational.equations import Interval
from dalembert.formulations.variational.options import Variational
from dalembert.formulations.variational.state import VariationalState, recall
from dalembert.kernels.ahead import Jobs, prepare
from dalembert.mechanism.mechanism import Mechanism


def ahead() -> Jobs:
    """The longest part of a step, and what reads a run."""
    interval = Interval(*examples.model_and_work(), 0.0, 0.0, 0.0)
    yield solve_encounter.part, (Encounter(interval, empty_scene(), 0.0), 0.0, 0, 0.0, 0.0, 0.0)
    yield from examples.reading()


class ContactEngine(TouchingEngine, VariationalEngine):
    """A mechanism in which something can touch, stepped by the variational integrator."""

    body_state, joint_state = CONTACT_BODY_STATE, CONTACT_JOINT_STATE

    def __init__(self, mechanism: Mechanism, options: Variational) -> None:
        prepare(ahead)
        super().__init__(mechanism, options)

    def _velocity(self, state: VariationalState) -> np.ndarray:
        bodies, fixed = state.bodies, self.model.bodies[:-1]
        spin = np.einsum("nij,nj->ni", fixed["inertia_inverse"].reshape(-1, 3, 3), bodies["l"])
        return np.concatenate([bodies["p"] / fixed["mass"][:, None], spin], axis=1)

    def _recall(self, state: VariationalState) -> None:
        recall(self.model, self.graph.work, state)

    def _touching_graph(self, contacts: Sequence[tuple[int, int]], firm: bool = False) -> Graph:
        return build_graph(self.model, contacts=contacts, firm=firm)

    def _step_call(
        self, state: Any, inputs: Inputs, recording: ContactRecording, used: int, done: int, first: int, count: int, dt: float,
    ) -> tuple[Any, Any]:
        return run_contact_steps, (
            self.model, state, inputs, self.contact_options, self.graph.work, self.scene, recording.plain, recording.tape, self.log, used,
            done, first, count, dt,
        )

    def _run_steps(
        self, state: Any, inputs: Inputs, recording: ContactRecording, used: int, done: int, first: int, count: int, dt: float,
    ) -> tuple[int, int, float, int]:
        kernel, arguments = self._step_call(state, inputs, recording, used, done, first, count, dt)
        if self.tape is None:
            return self.enter(kernel, count == 1, *arguments)
        from dalembert.formulations.variational.contact_tape import tape_contact_steps

        tape = self.tape
        outcome, solved, size, used, _ = tape_contact_steps(*arguments, *tape.place)
        tape.count += int(solved)
        return outcome, solved, size, used

    # ---- derivatives

    def new_tape(self, steps: int) -> TouchingTape:
        """Room for what some steps leave behind."""
        from dalembert.formulations.variational.contact_tape import new_contact_tape

        return self.touching_tape(new_contact_tape, steps)

    def adjoint(self, recording: Any, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, cotangents: Cotangents) -> Adjoint:
        """A backward pass over the first ``knots`` knots of a run."""
        from dalembert.formulations.variational.contact_derivative import ContactAdjoint

        return ContactAdjoint(self, recording, inputs, knots, dt, coordinates, cotangents)

    def forward(
        self, recording: Any, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, models: Sequence[Any], step: float, change: InputBars,
    ) -> Forward:
        """A forward pass over the first ``knots`` knots of a run."""
        from dalembert.formulations.variational.contact_forward import ContactForward

        return ContactForward(self, recording, inputs, knots, dt, coordinates, models, step, change)

    def _relax(self, tape: TouchingTape, section: Section, kappa: float) -> int:
        from dalembert.formulations.variational.contact_tape import relax_steps

        return int(relax_steps(
            self.model, section.graph.work, section.scene, self.compliance, tape.arrays, section.kept, section.first, section.begin, section.end, kappa,
            self.options.tolerance, 4 * self.contact_options.max_iterations,
        ))

    def _read_after(self, reader: Reader, tape: Tape) -> Mapping[str, np.ndarray]:
        motion = reader.motion()
        world = np.zeros((reader.knots, 1, 6))
        velocity = np.concatenate([np.concatenate([motion["velocity"], motion["angular_velocity"]], axis=2), world], axis=1)
        rate = motion["rate"].copy()
        after_series(
            self.model, reader.work, self.compliance, reader.recording, reader.inputs, tape, reader.prescribed()[0], velocity, rate,
            np.zeros((self.sizes[1], 6)), np.zeros(self.sizes[2]),
        )
        return dict(momentum_after=np.array([self.momentum_of(one[:-1]) for one in velocity]), rate_after=rate)
