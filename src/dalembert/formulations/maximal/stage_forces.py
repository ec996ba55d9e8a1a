"""Gradients of joint forces where methods are made of stages and something may touch.

Forces of contacts, limits and dry friction at a knot are those of the last stage of a step: of the one that ends there, or of a later one
(``contact_stages.carry_back``). So bars of what they exert at the knots go to the impulses of these stages, and tangents come from there.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.contact.records import Tape as Forces
from dalembert.formulations.contact_stages import carry_back
from dalembert.formulations.derivatives import Cotangents
from dalembert.formulations.engine import Inputs
from dalembert.formulations.maximal.pull_forces_at_knots import ForceBars
from dalembert.formulations.maximal.tape import Step, Tape
from dalembert.formulations.maximal.touching_adjoint import TouchingAdjoint, forces_as_loads


def read_steps(forces: Forces) -> np.ndarray:
    """(knots,) the knot at the end of the step whose forces are read at each; 0: those of the first step."""
    knots = np.arange(len(forces.steps))
    return carry_back(forces._replace(wrench=knots, friction=knots, limit=knots)).wrench


def ends_at_knot(step: Step) -> bool:
    """Whether a substep is the last one before a knot."""
    return step.start + step.length > 1.0 - 1e-12


class StageForces(TouchingAdjoint):
    """A backward pass over stages with contacts, of forces too."""

    def __init__(self, engine: Any, recording: Any, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, cotangents: Cotangents) -> None:
        forces = Forces(*(array[:knots] for array in recording.tape))
        carried = carry_back(forces)
        super().__init__(engine, recording.plain, forces_as_loads(inputs, carried, knots, engine.balls, coordinates), knots, dt, coordinates, cotangents)
        self.pressing = carried.friction + carried.limit
        self.sources = read_steps(forces)
        bodies, joints, _ = engine.sizes
        #: bars of what nodes exert, by the knot whose step's they are: on bodies and the world, and along directions
        self.exerted = np.zeros((knots, bodies + 1, 6)), np.zeros((knots, joints, 6))
        self.all_forces: ForceBars | None = None

    def _pull_forces(self, tape: Tape, first: int, last: int) -> ForceBars:
        """Those of all knots at once: what is read at a knot may come from steps long after it."""
        if self.all_forces is None:
            self.all_forces = super()._pull_forces(tape, 0, self.knots)
            np.add.at(self.exerted[0][:, :-1], self.sources, self.all_forces.push)
            np.add.at(self.exerted[1], self.sources, self.turned(0, self.all_forces.input)[0])
        return ForceBars(*(array[first:last] for array in self.all_forces))

    def exerting(self, tape: Tape, first: int) -> np.ndarray:
        """(entries,) whose bars in ``exerted`` are those of the nodes of an entry, or -1; knots of the tape count from ``first``."""
        found = np.full(tape.count, -1, dtype=np.int64)
        if self.all_forces is None:
            return found
        kind = tape.arrays.kind[: tape.count]
        for entry, step in zip(np.flatnonzero(kind[:, 0] == kind[:, 1] - 1), tape.steps):
            if ends_at_knot(step):
                found[entry] = first + step.knot + 1
            elif first + step.knot == 0 and step.start == 0.0:
                found[entry] = 0
        if first == 0 and ends_at_knot(tape.steps[0]):  # the first step is whole: what is read at both of its ends is the same
            for bars in self.exerted:
                bars[1] += bars[0]
                bars[0] = 0.0
        return found
