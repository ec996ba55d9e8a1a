"""A forward pass over a variational run with contacts, limits or dry friction."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalembert.contact.clipped import move_clipped
from dalembert.contact.events import velocity_before
from dalembert.contact.nodes import Encounter
from dalembert.contact.records import POLYHEDRON, new_tape
from dalembert.formulations.derivatives import InputBars
from dalembert.formulations.engine import Inputs
from dalembert.formulations.maximal.contact_engine import Section
from dalembert.formulations.maximal.forward import OFFSETS
from dalembert.formulations.maximal.graph import Graph
from dalembert.formulations.maximal.knot import evaluate_knot
from dalembert.formulations.maximal.lasting import find_blows, lasting_forces
from dalembert.formulations.maximal.tape import Tape
from dalembert.formulations.maximal.touch_bars import BEFORE, FALL, new_touch
from dalembert.formulations.maximal.touching_adjoint import forces_as_loads, turned_forces
from dalembert.formulations.maximal.touching_forward import TouchingNodes, bound_again, linear_rows
from dalembert.formulations.maximal.touching_tape import TouchingTape
from dalembert.formulations.variational.contact_step import note_forces
from dalembert.formulations.variational.contact_tape import (
    node_residual,
    open_encounter,
    place_nodes,
    recall_encounter,
)
from dalembert.formulations.variational.equations import Interval, balance
from dalembert.formulations.variational.forward import VariationalForward
from dalembert.kernels import kernel
from dalembert.model.pose import aim_all, put6
from dalembert.model.records import Model


@kernel
def evaluate_encounter(interval, scene, velocity, codes):
    """Evaluate the knot in the work, features and rows there, and the equations at the iterate; False when that is of no use."""
    model, work = interval.model, interval.work
    evaluate_knot(model, work)
    aim_all(model, work)
    move_clipped(scene, work.bodies, codes)
    place_nodes(model, work, scene, interval.dt)
    for i in range(model.bodies.shape[0] - 1):
        linear, angular = velocity_before(model, work, i)
        put6(velocity[BEFORE, i], linear, angular)
    bound_again(scene, velocity[BEFORE], velocity[FALL], interval.dt)
    _, fine = balance(interval)
    if not fine:
        return False
    _, fine = node_residual(Encounter(interval, scene, interval.dt))
    return fine


class ContactForward(VariationalForward):
    """``models`` are those of ``touching_model``."""

    def __init__(
        self, engine: Any, recording: Any, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, models: Sequence[Any], step: float,
        change: InputBars,
    ) -> None:
        plain, tape = recording.plain, recording.tape
        loads = forces_as_loads(inputs, tape, knots, engine.balls, coordinates)
        super().__init__(engine, plain, loads, knots, dt, coordinates, [one.model for one in models], step, change)
        self.pressing = (tape.friction + tape.limit)[:knots]
        self.nodes = TouchingNodes(engine, models, step, OFFSETS)
        self.section: Section | None = None
        self.velocity = np.zeros((3, engine.sizes[0] + 1, 6))
        #: tangents of what lasts of the step just made, on bodies and along directions
        self.lasts = np.zeros((engine.sizes[0], 6)), np.zeros((engine.sizes[1], 6))
        # contacts are smaller than what joints hold; and of polyhedra other features may touch not far from here
        self.reach = 0.02 if np.any(engine.pairs.shapes.geometries["form"] == POLYHEDRON) else 0.2

    @property
    def graph(self) -> Graph:
        return self.engine.graph if self.section is None else self.section.graph

    def segment(self, tape: Tape, first: int, last: int) -> None:
        assert isinstance(tape, TouchingTape)
        self.sections = list(self.engine.sections(tape))
        super().segment(tape, first, last)
        self.section = None

    def open_nodes(self, tape: Tape, index: int) -> None:
        self.section = next(section for section in self.sections if section.begin <= index < section.end)
        self.nodes.section = self.section
        self.recall(tape, index)
        self.touching = self.nodes.awake(self.graph.work.bodies)
        bodies, joints, _ = self.engine.sizes
        self.more_passes = 6 * int(self.nodes.borne.sum())
        self.numbers = 3 * len(self.touching) + 12 * bodies + 12 * joints

    def hold(self) -> None:
        self.nodes.hold(self.graph.work)
        self.blows, self.ends = np.zeros(len(self.scene.contacts), bool), np.zeros((len(self.scene.limits), 2), bool)
        find_blows(self.model, self.graph.work, self.scene, self.engine.options.resting_speed, self.blows, self.ends)

    def recall(self, tape: Tape, index: int) -> None:
        assert self.section is not None
        self.scene, section = self.section.scene, self.section
        recall_encounter(self.model, section.graph.work, self.scene, tape.arrays, section.kept, section.first, index)

    def move_nodes(self, offset: float, tangent: np.ndarray, model: Model) -> None:
        self.scene = self.nodes.put(offset, tangent, model)

    def evaluate(self, interval: Interval) -> bool:
        return evaluate_encounter(interval, self.scene, self.velocity, self.nodes.codes)

    def open(self, interval: Interval) -> bool:
        self.scene = self.nodes.put(0.0, np.zeros((len(self.touching), 3)), self.model)
        place_nodes(self.model, interval.work, self.scene, interval.dt)  # with the numbers of the run itself
        at_knot = interval.work.bodies, self.bars.bodies
        touch = new_touch(self.scene, self.engine.sizes[0], at_knot, at_knot)
        return open_encounter(interval, self.scene, self.bars, touch)

    def node_values(self, model: Model, dt: float, h: float) -> np.ndarray:
        """What nodes look at; forces at the knot, and those that last, on bodies (n, 6) and along directions (joints, 6)."""
        bodies, joints, _ = self.engine.sizes
        values, at = self.nodes.read(self.scene, self.graph.work.bodies, dt, model is self.model), new_tape(1, bodies, joints)
        self.nodes.read_bounds(model, self.graph.work, self.scene, values)
        note_forces(model, self.scene, at, 0, 1.0 / h)
        lasting_forces(self.scene, self.blows, self.ends, 1.0 / h, at.lasting[0], at.lasting_along[0])
        parts = values, at.wrench[0], at.friction[0] + at.limit[0], at.lasting[0], at.lasting_along[0]
        return np.concatenate([part.ravel() for part in parts])

    def loads(self, mu: np.ndarray, change: np.ndarray) -> float:
        return self.nodes.loads(mu, change)

    def node_rows(self, values: np.ndarray, tangent: np.ndarray, h: float) -> np.ndarray:
        rows, laws = np.zeros_like(tangent), self.nodes.laws.copy()
        # dry friction acts for as long as the kick
        laws[len(self.nodes.contacts) :] += self.scene.limits["friction"] * 0.5 * (self.longer[0] + self.longer[1]) / h
        seen = values[: rows.size].reshape(-1, 3).copy()
        laws = self.nodes.with_bounds(seen, laws, h)
        linear_rows(self.scene, np.zeros((3, 3)), seen, tangent, laws, h, rows)
        return rows

    def note_nodes(self, values: np.ndarray, step: Any, knot: int) -> None:
        self.nodes.put(0.0, np.zeros((len(self.touching), 3)), self.model)  # the scene is used again
        bodies, joints, _ = self.engine.sizes
        sizes = np.cumsum([3 * len(self.touching), 6 * bodies, 6 * joints, 6 * bodies])
        _, wrench, along, lasting, lasting_along = np.split(values, sizes)
        self.lasts = lasting.reshape(-1, 6), lasting_along.reshape(-1, 6)
        if step.start == 0.0:
            self.felt[0][knot], self.felt[1][knot] = wrench.reshape(-1, 6), along.reshape(-1, 6)
        self.lasting = lasting.reshape(-1, 6), lasting_along.reshape(-1, 6)
        if knot == self.knots - 2:
            self.felt[0][knot + 1], self.felt[1][knot + 1] = self.lasting

    def turn_felt(self) -> None:
        self.felt = self.felt[0], turned_forces(self, self.pressing, self.felt[1])
