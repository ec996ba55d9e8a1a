"""A backward pass over a run with contacts: scenes as they were, and bars of contacts' numbers by name."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dalembert.contact.records import Tape as Forces
from dalembert.formulations.engine import Inputs
from dalembert.formulations.maximal.adjoint import MaximalAdjoint
from dalembert.formulations.maximal.contact_engine import Section, with_forces
from dalembert.formulations.maximal.touch_bars import CONTACT_BAR, GEOMETRY_BAR, LIMIT_BAR, Touch, new_touch
from dalembert.formulations.maximal.touching_names import TouchingNames
from dalembert.formulations.maximal.touching_tape import TouchingTape
from dalembert.mechanism.mechanism import Body


def forces_as_loads(inputs: Inputs, forces: Forces, knots: int) -> Inputs:
    """Inputs of a run with what contacts, limits and dry friction exert at its knots."""
    return with_forces(inputs, Forces(*(array[:knots] for array in forces)))


class TouchingAdjoint(MaximalAdjoint):
    """Bars of contacts with grounds, of limits and of shapes are gathered over all lists of what was near."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        engine = self.engine
        self.grounds = np.zeros(len(engine.grounds.contacts), CONTACT_BAR)
        self.limits = np.zeros(len(engine.scene.limits), LIMIT_BAR)
        self.geometries = np.zeros(len(engine.pairs.found), GEOMETRY_BAR)
        self.laws: dict[tuple[int, int], np.ndarray] = {}  # of pairs of geometries: friction, restitution
        self.names = TouchingNames(engine)

    def sections(self, tape: TouchingTape) -> Iterator[tuple[Section, Touch]]:
        """The lists of what was near from the last one to the first, with room for their bars, which are taken after each."""
        for section in self.engine.sections(tape):
            touch = self.new_touch(section)
            yield section, touch
            self.gather(section, touch)

    def new_touch(self, section: Section) -> Touch:
        """Room for the bars of a section: rows are taken at the knot."""
        at_knot = section.graph.work.bodies, self.bars.bodies
        return new_touch(section.scene, self.engine.sizes[0], at_knot, at_knot)

    def gather(self, section: Section, touch: Touch) -> None:
        """Take the bars of a list of contacts as those of the mechanism's own."""
        standing = section.standing
        for name in CONTACT_BAR.names or ():
            np.add.at(self.grounds[name], standing, touch.contacts[name][: len(standing)])
        for name in LIMIT_BAR.names or ():
            self.limits[name] += touch.limits[name]
        for name in GEOMETRY_BAR.names or ():
            self.geometries[name] += touch.geometries[name]
        for pair in section.scene.shapes.pairs:
            slots = touch.contacts[int(pair["first"]) : int(pair["first"]) + int(pair["slots"])]
            both = self.laws.setdefault((int(pair["i"]), int(pair["j"])), np.zeros(2))
            both += slots["friction"].sum(), slots["restitution"].sum()

    def parameter(self, name: str) -> np.ndarray | None:
        owner, _, what = name.rpartition(".")
        element = self.owners.get(owner)
        found, more = super().parameter(name), None if element is None else self.names.bar(element, what, self)
        if isinstance(element, Body) and what == "centre_of_mass":
            more = self.names.centre_of_mass(element, self)
        return more if found is None else found if more is None else found + more
