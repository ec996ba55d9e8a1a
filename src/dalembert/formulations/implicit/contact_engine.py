"""What steps a mechanism with contacts, limits or dry friction by the BDF and DIRK methods."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalembert.contact.kept import KEPT_CONTACT
from dalembert.contact.nodes import Encounter
from dalembert.contact.records import Scene, Tape
from dalembert.formulations.contact_stages import carry_back
from dalembert.formulations.derivatives import Adjoint, Cotangents, Forward, InputBars
from dalembert.formulations.engine import Inputs, Readings
from dalembert.formulations.implicit.contact_step import (
    CONTACT_BODY_STATE,
    CONTACT_JOINT_STATE,
    Parts,
    run_contact_steps,
)
from dalembert.formulations.implicit.contact_tape import new_contact_tape
from dalembert.formulations.implicit.encounter import recall_pose, solve_encounter
from dalembert.formulations.implicit.engine import ImplicitEngine, example_stage
from dalembert.formulations.implicit.equations import BODY
from dalembert.formulations.implicit.options import Implicit
from dalembert.formulations.implicit.state import ImplicitState, Scratch, recall
from dalembert.formulations.maximal import examples
from dalembert.formulations.maximal.contact_engine import ContactRecording, Section, TouchingEngine, empty_scene
from dalembert.formulations.maximal.graph import Graph, build_graph
from dalembert.formulations.maximal.reading import Reader
from dalembert.formulations.maximal.touching_tape import TouchingTape
from dalembert.kernels.ahead import Jobs
from dalembert.mechanism.mechanism import Mechanism

NOTHING_KEPT = np.zeros(0, KEPT_CONTACT)


def ahead() -> Jobs:
    """The longest part of a step, and what reads a run."""
    stage = example_stage()
    yield solve_encounter.part, (Encounter(stage, empty_scene(), 0.0), 0.0, 0, 0.0, 0.0, 0.0)
    yield from examples.reading()


class ContactEngine(TouchingEngine, ImplicitEngine):
    """A mechanism in which something can touch, stepped by BDF or DIRK methods, which start anew at impacts."""

    body_state, joint_state = CONTACT_BODY_STATE, CONTACT_JOINT_STATE
    jobs = staticmethod(ahead)
    listed = (*TouchingEngine.listed, "own")
    too_fast = "a body goes past another, or turns by more than a radian, even in the shortest"

    def __init__(self, mechanism: Mechanism, options: Implicit) -> None:
        super().__init__(mechanism, options)
        self.one_start = False
        self.couples = bool(np.any(self.graph.edges >= 0))
        self._untaped = new_contact_tape(*self.sizes, len(self.scene.limits), 0)

    def _counted(self) -> np.ndarray:
        """All: limits look at any."""
        return np.ones(self.sizes[1], dtype=bool)

    def _velocity(self, state: ImplicitState) -> np.ndarray:
        bodies = state.bodies
        q, w = bodies["q"], bodies["w"]
        spin = 2.0 * (q[:, :1] * w[:, 1:] - w[:, :1] * q[:, 1:] - np.cross(q[:, 1:], w[:, 1:]))
        return np.concatenate([bodies["v"], spin], axis=1)

    def _recall(self, state: ImplicitState) -> None:
        recall(self.model, self.graph.work, state)
        recall_pose(self.model, self.graph.work, state, False)

    def _touching_graph(self, contacts: Sequence[tuple[int, int]], firm: bool = False) -> Graph:
        graph = build_graph(self.model, BODY, couple_bodies=self.couples, contacts=contacts, firm=firm)
        self.own = self.own._replace(edges=graph.edges, loose=graph.work.schedule)
        return graph

    def _step_call(
        self, state: Any, inputs: Inputs, recording: ContactRecording, used: int, done: int, first: int, count: int, dt: float,
    ) -> tuple[Any, Any]:
        tape = self.tape
        taping = (self._untaped, -1, NOTHING_KEPT, 0) if tape is None else tape.place
        return run_contact_steps, (
            Parts(self.model, self.graph.work, self.own), state, inputs, self.step_options, self.contact_options, self.scene,
            recording.plain, recording.tape, self.log, used, done, first, count, dt, *taping,
        )

    def _run_steps(
        self, state: Any, inputs: Inputs, recording: ContactRecording, used: int, done: int, first: int, count: int, dt: float,
    ) -> tuple[int, int, float, int]:
        tape, (kernel, arguments) = self.tape, self._step_call(state, inputs, recording, used, done, first, count, dt)
        outcome, solved, size, used, entry, _ = self.enter(kernel, tape is None and count == 1, *arguments)
        if tape is not None:
            tape.count = int(entry)
        return outcome, solved, size, used

    def run(self, numbers: np.ndarray, recording: Any, inputs: Inputs, first: int, count: int, dt: float) -> int:
        done = super().run(numbers, recording, inputs, first, count, dt)
        return self._note(numbers, self.outcome[0], done, self.outcome[1], inputs, dt)

    # ---- derivatives

    def new_tape(self, steps: int) -> TouchingTape:
        """Room for what some steps leave behind."""
        return self.touching_tape(new_contact_tape, steps, 1 if self.options.method == "bdf1" else len(self.tableau.b))

    def _firm_graph(self, scene: Scene) -> tuple[Graph, Scratch]:
        own = self.own
        try:
            return self._graph_of(scene, True), self.own
        finally:
            self.own = own

    def _relax(self, tape: TouchingTape, section: Section, kappa: float) -> int:
        from dalembert.formulations.implicit.contact_derivative import touch_of
        from dalembert.formulations.implicit.contact_tape import relax_stages

        return int(relax_stages(
            self.model, section.graph.work, section.more, section.scene, self.compliance, tape.arrays, section.kept, section.first, section.begin,
            section.end, touch_of(self, section), kappa, self.options.tolerance, 4 * self.contact_options.max_iterations,
        ))

    def adjoint(self, recording: Any, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, cotangents: Cotangents) -> Adjoint:
        """A backward pass over the first ``knots`` knots of a run."""
        from dalembert.formulations.implicit.contact_derivative import ContactAdjoint

        return ContactAdjoint(self, recording, inputs, knots, dt, coordinates, cotangents)

    def forward(
        self, recording: Any, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, models: Sequence[Any], step: float, change: InputBars,
    ) -> Forward:
        """A forward pass over the first ``knots`` knots of a run."""
        from dalembert.formulations.implicit.contact_forward import ContactForward

        return ContactForward(self, recording, inputs, knots, dt, coordinates, models, step, change)

    def read(self, recording: ContactRecording, inputs: Inputs, knots: int, dt: float, coordinate: np.ndarray) -> Readings:
        tape = carry_back(Tape(*(array[:knots] for array in recording.tape)))
        return super().read(ContactRecording(recording.plain, tape, recording.pages), inputs, knots, dt, coordinate)

    def _read_after(self, reader: Reader, tape: Tape) -> Mapping[str, np.ndarray]:
        """Momenta are those after the step already."""
        return dict(momentum_after=reader.recording.momentum, rate_after=reader.motion()["rate"])
