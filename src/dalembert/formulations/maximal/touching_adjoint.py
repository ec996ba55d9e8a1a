"""A backward pass over a run with contacts: scenes as they were, and bars of contacts' numbers by name."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dalembert.contact.records import Tape as Forces
from dalembert.formulations.derivatives import Cotangents
from dalembert.formulations.engine import Inputs
from dalembert.formulations.maximal.adjoint import KnotBars, MaximalAdjoint
from dalembert.formulations.maximal.ball_torques import along_axes, pull_along_axes, push_along_axes
from dalembert.formulations.maximal.contact_engine import Section, with_forces
from dalembert.formulations.maximal.touch_bars import CONTACT_BAR, GEOMETRY_BAR, LIMIT_BAR, Touch, new_touch
from dalembert.formulations.maximal.touching_names import TouchingNames
from dalembert.formulations.maximal.touching_tape import TouchingTape
from dalembert.mechanism.mechanism import Body


def forces_as_loads(inputs: Inputs, forces: Forces, knots: int, balls: list[tuple[int, int]], coordinates: np.ndarray) -> Inputs:
    """Inputs of a run with what contacts, limits and dry friction exert at its knots, where it has coordinates (N, joints, 6)."""
    forces = Forces(*(array[:knots] for array in forces))
    turned = {name: along_axes(balls, coordinates[:knots], getattr(forces, name)) for name in ("friction", "limit")}
    return with_forces(inputs, forces._replace(**turned))


def turned_forces(forward: Any, along: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Tangents (N, joints, 6) of torques of a forward pass, from those of forces ``along`` coordinates."""
    if not forward.engine.balls or not (np.any(along) or np.any(change)):
        return change
    return push_along_axes(forward.engine.balls, forward.coordinates[: len(change)], along, forward.coordinate_tangents(), change)


def only_coordinates(cotangents: Cotangents, coordinate: np.ndarray) -> Cotangents:
    """Cotangents of coordinates (N, joints, 6) and of nothing else, shaped as others."""
    return Cotangents(*(np.broadcast_to(0.0, array.shape) for array in cotangents))._replace(coordinate=coordinate)


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

    #: (N, joints, 6) what limits and dry friction exert along coordinates, as it is read at the knots
    pressing: np.ndarray

    def read(self, first: int, last: int) -> KnotBars:
        """Forces along the coordinates of balls turn with these: what is read with them depends on the pose."""
        knots = super().read(first, last)
        pressed = knots.input if self.pulled is None else knots.input + self.pulled.input if len(knots.input) else self.pulled.input
        if self.engine.balls and np.any(pressed):
            whole = np.zeros(self.coordinates[: self.knots].shape)
            whole[first:last] = self.turned(first, pressed)[1]
            kept, self.cotangents = (self.cotangents, self.pulled, self.reads), only_coordinates(self.cotangents, whole)
            self.pulled, self.reads = None, True
            for bars, more in zip(knots, super().read(first, last)):
                if more.size:
                    bars[:] += more
            self.cotangents, self.pulled, self.reads = kept
        return knots

    def turned(self, first: int, bars: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bars (knots, joints, 6) of torques at knots ``first`` on, as those of forces along coordinates, and of these coordinates."""
        part = slice(first, first + len(bars))
        return pull_along_axes(self.engine.balls, self.coordinates[part], self.pressing[part], bars)

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
            each = self.laws.setdefault((int(pair["i"]), int(pair["j"])), np.zeros(4))
            each += slots["friction"].sum(), slots["restitution"].sum(), *slots["share"].sum(axis=0)

    def parameter(self, name: str) -> np.ndarray | None:
        owner, _, what = name.rpartition(".")
        element = self.owners.get(owner)
        found, more = super().parameter(name), None if element is None else self.names.bar(element, what, self)
        if isinstance(element, Body) and what == "centre_of_mass":
            more = self.names.centre_of_mass(element, self)
        return more if found is None else found if more is None else found + more
