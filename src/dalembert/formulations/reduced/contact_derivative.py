"""A backward pass over a run with contacts, limits or dry friction in joint coordinates."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.formulations.implicit.contact_derivative import touch_of
from dalembert.formulations.maximal.adjoint import KnotBars
from dalembert.formulations.maximal.contact_engine import Section
from dalembert.formulations.maximal.stage_forces import StageForces
from dalembert.formulations.maximal.tape import Tape
from dalembert.formulations.maximal.touch_bars import Touch
from dalembert.formulations.maximal.touching_tape import TouchingTape
from dalembert.formulations.reduced.contact_adjoint import pull_contact_steps
from dalembert.formulations.reduced.derivative import ReducedAdjoint
from dalembert.formulations.reduced.equations import Stage
from dalembert.formulations.reduced.pull_tree import NODE_BAR


class ContactAdjoint(StageForces, ReducedAdjoint):
    """What bounces, and rows at a guessed pose, look back to the knot before the last one, whatever the method."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.seen = np.zeros(len(self.node_bars), NODE_BAR)

    @property
    def _parts(self) -> tuple[str, ...]:
        return "after", "older"

    def run_of(self, tape: Tape) -> Any:
        assert isinstance(tape, TouchingTape)
        return tape.run.arrays

    def pull(self, tape: Tape, knots: KnotBars, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        self.entries = self.exerting(tape, first)
        return super().pull(tape, knots, first)

    def new_touch(self, section: Section) -> Touch:
        return touch_of(self.engine, section)

    def pull_stages(self, tape: Tape, knots: KnotBars, begins: np.ndarray, pushes: np.ndarray, rows: np.ndarray, tensions: np.ndarray) -> float:
        assert isinstance(tape, TouchingTape)
        engine, worst = self.engine, 0.0
        for section, touch in self.sections(tape):
            stage = Stage(self.model, engine.tree.nodes, section.graph.work, engine.own, section.more, engine.options.dt)
            found = pull_contact_steps(
                stage, engine.at_knot, section.scene, engine.tableau, tape.arrays, section.kept, section.first, section.begin, section.end, self.bars,
                touch, self.node_bars, self.seen, self.entries, *self.exerted, engine.options.resting_speed, knots.body, begins, pushes, rows, tensions,
            )
            if found < 0.0:
                return found
            worst = max(worst, found)
        return worst
