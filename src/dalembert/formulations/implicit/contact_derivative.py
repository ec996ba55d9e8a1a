"""A backward pass over a run of the BDF and DIRK methods with contacts, limits or dry friction."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.formulations.implicit.contact_tape import pull_contact_stages
from dalembert.formulations.implicit.derivative import ImplicitAdjoint
from dalembert.formulations.maximal.adjoint import KnotBars
from dalembert.formulations.maximal.bars import BODY_BAR
from dalembert.formulations.maximal.contact_engine import Section
from dalembert.formulations.maximal.stage_forces import StageForces
from dalembert.formulations.maximal.tape import Tape
from dalembert.formulations.maximal.touch_bars import Touch, new_touch
from dalembert.formulations.maximal.touching_tape import TouchingTape
from dalembert.model.records import BODY_WORK


def touch_of(engine: Any, section: Section) -> Touch:
    """Room for a section's bars, with poses of their own where rows are taken and where features were found."""
    bodies = engine.sizes[0]
    poses = []
    for _ in range(2):
        at = np.zeros(bodies + 1, BODY_WORK)
        at["R"] = np.eye(3).ravel()
        poses.append((at, np.zeros(bodies + 1, BODY_BAR)))
    return new_touch(section.scene, bodies, *poses)


class ContactAdjoint(StageForces, ImplicitAdjoint):
    """What bounces, and rows at a guessed pose, look back to the knot before the last one, whatever the method."""

    @property
    def looks_back(self) -> bool:
        return True

    def pull(self, tape: Tape, knots: KnotBars, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        self.entries = self.exerting(tape, first)
        return super().pull(tape, knots, first)

    def new_touch(self, section: Section) -> Touch:
        return touch_of(self.engine, section)

    def pull_stages(
        self, tape: Tape, knots: KnotBars, begins: np.ndarray, pushes: np.ndarray, rows: np.ndarray, tensions: np.ndarray,
    ) -> float:
        assert isinstance(tape, TouchingTape)
        engine, worst = self.engine, 0.0
        for section, touch in self.sections(tape):
            found = pull_contact_stages(
                self.model, section.graph.work, section.more, section.scene, engine.compliance, engine.tableau, tape.arrays, section.kept, section.first,
                section.begin, section.end, self.bars, touch, self.steps, self.entries, *self.exerted, engine.options.resting_speed, knots, begins, pushes, rows, tensions,
            )
            if found < 0.0:
                return found
            worst = max(worst, found)
        return worst
