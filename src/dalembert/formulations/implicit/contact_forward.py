"""A forward pass over a run of the BDF and DIRK methods with contacts, limits or dry friction."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.contact.clipped import move_clipped
from dalembert.contact.nodes import Encounter
from dalembert.contact.records import POLYHEDRON
from dalembert.contact.records import Tape as Forces
from dalembert.formulations.contact_stages import AFTER_SMOOTH, AT_KNOT, BY_TWO, carry_back
from dalembert.formulations.derivatives import InputBars
from dalembert.formulations.engine import Inputs
from dalembert.formulations.implicit.contact_derivative import touch_of
from dalembert.formulations.implicit.contact_tape import (
    node_residual,
    open_encounter,
    place_rows,
    recall_encounter,
)
from dalembert.formulations.implicit.derivative import relative
from dalembert.formulations.implicit.encounter import balance_at_end
from dalembert.formulations.implicit.equations import Stage
from dalembert.formulations.implicit.forward import ImplicitForward
from dalembert.formulations.implicit.state import Scratch
from dalembert.formulations.maximal.contact_engine import ContactRecording, Section
from dalembert.formulations.maximal.forward import OFFSETS
from dalembert.formulations.maximal.graph import Graph
from dalembert.formulations.maximal.lasting import find_blows, lasting_forces, put_momenta, resting_at
from dalembert.formulations.maximal.stage_forces import read_steps
from dalembert.formulations.maximal.tape import Tape
from dalembert.formulations.maximal.touch_bars import BEFORE, FALL, Touch
from dalembert.formulations.maximal.touching_adjoint import forces_as_loads, turned_forces
from dalembert.formulations.maximal.touching_forward import TouchingNodes, bound_again, linear_rows
from dalembert.formulations.maximal.touching_tape import TouchingTape
from dalembert.kernels import kernel
from dalembert.model.pose import aim_all
from dalembert.model.records import Model


@kernel
def evaluate_encounter(stage, scene, codes, found_at, rows_at, before, fall):
    """Features at the knot, rows where they are taken, and the equations at the iterate; False when that is of no use."""
    model, work = stage.model, stage.work
    aim_all(model, work)
    move_clipped(scene, found_at, codes)
    place_rows(model, work, scene, rows_at)
    bound_again(scene, before, fall, stage.gamma)
    _, fine = balance_at_end(stage)
    if not fine:
        return False
    _, fine = node_residual(Encounter(stage, scene, stage.gamma))
    return fine


def spin_of(q: np.ndarray, w: np.ndarray) -> np.ndarray:
    """omega = 2 vec(q^-1 q')."""
    return 2.0 * relative(q, w)[:, 1:]


class ContactForward(ImplicitForward):
    """``models`` are those of ``touching_model``."""

    def __init__(
        self, engine: Any, recording: ContactRecording, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, models: Sequence[Any], step: float,
        change: InputBars,
    ) -> None:
        forces = Forces(*(array[:knots] for array in recording.tape))
        carried = carry_back(forces)
        loads = forces_as_loads(inputs, carried, knots, engine.balls, coordinates)
        super().__init__(engine, recording.plain, loads, knots, dt, coordinates, [one.model for one in models], step, change)
        self.sources, self.pressing = read_steps(forces), carried.friction + carried.limit
        bodies, joints, _ = engine.sizes
        self.exerts = 6 * bodies + 6 * joints
        #: tangents of what the step that ends at a knot exerts on bodies and along directions; at the first, of the first step
        self.exerting = np.zeros((knots, self.exerts))
        self.nodes = TouchingNodes(engine, models, step, OFFSETS)
        self.section: Section | None = None
        self.touch: Touch | None = None
        # contacts are smaller than what joints hold; and of polyhedra other features may touch not far from here
        self.reach = 0.02 if np.any(engine.pairs.shapes.geometries["form"] == POLYHEDRON) else 0.2

    @property
    def graph(self) -> Graph:
        return self.engine.graph if self.section is None else self.section.graph

    @property
    def own(self) -> Scratch:
        return self.engine.own if self.section is None else self.section.more

    def segment(self, tape: Tape, first: int, last: int) -> None:
        assert isinstance(tape, TouchingTape)
        self.sections, self.tape = list(self.engine.sections(tape)), tape
        super().segment(tape, first, last)
        self.section = None

    def _after(self, arrays: Any, entry: int, count: int, order: int, dt: float) -> np.ndarray:
        return super()._after(self.tape.run.arrays, entry, count, order, dt)  # as the run went on

    def open_nodes(self, tape: Tape, entry: int) -> None:
        section = next(section for section in self.sections if section.begin <= entry < section.end)
        if section is not self.section:
            self.section, self.touch = section, touch_of(self.engine, section)
        self.nodes.section = section
        self.recall(tape, entry)
        assert self.touch is not None
        self.touching = self.nodes.awake(self.touch.found_at)
        self.more_passes = 6 * int(self.nodes.borne.sum())
        self.resting = resting_at(int(tape.arrays.rows[entry]), self.engine.options.resting_speed)

    def recall(self, tape: Tape, entry: int) -> None:
        section = self.section
        assert section is not None
        self.scene = section.scene
        recall_encounter(
            self.model, section.graph.work, section.more, self.scene, tape.arrays, section.kept, section.first, entry, self.touch,
        )

    def move_nodes(self, tape: Tape, entry: int, offset: float, yp: np.ndarray, tangent: np.ndarray, model: Model) -> None:
        self.scene = self.nodes.put(offset, tangent, model)
        assert self.touch is not None
        arrays, touch = tape.arrays, self.touch
        body, older, rows, gamma = arrays.bodies[entry], arrays.older[entry], int(arrays.rows[entry]), float(arrays.clock[entry, 0])
        parts = ("x", "q", "v", "w"), (slice(0, 3), slice(3, 7), slice(7, 10), slice(10, 14))
        x, q, v, w = (body[name] + offset * self.state[:, part] for name, part in zip(*parts))
        q1, v1, w1 = (older[name] + offset * self.older[:, part] for name, part in list(zip(*parts))[1:])
        _put(touch.found_at, x, q)
        omega = spin_of(q, w)
        fall = np.zeros((len(x), 6))
        if rows == AFTER_SMOOTH:
            fall = 0.5 * np.concatenate([v - v1, omega - spin_of(q1, w1)], axis=1)
        touch.velocity[FALL, :-1] = fall
        touch.velocity[BEFORE, :-1] = np.concatenate([v, omega], axis=1) - fall
        if rows not in (AT_KNOT, AFTER_SMOOTH):
            vg, wg = (2.0 * v - v1, 2.0 * w - w1) if rows == BY_TWO else (v, w)
            x, q = body["xp"] + offset * yp[:, :3] + gamma * vg, body["qp"] + offset * yp[:, 3:7] + gamma * wg
        _put(touch.rows_at, x, q)

    def evaluate(self, stage: Stage) -> bool:
        assert self.touch is not None
        return evaluate_encounter(
            stage, self.scene, self.nodes.codes, self.touch.found_at, self.touch.rows_at, self.touch.velocity[BEFORE], self.touch.velocity[FALL],
        )

    def open(self, stage: Stage) -> bool:
        assert self.touch is not None
        place_rows(self.model, stage.work, self.scene, self.touch.rows_at)
        return open_encounter(stage, self.scene, self.bars, self.touch)

    def hold(self) -> None:
        work = self.graph.work
        self.nodes.hold(work)
        self.blows, self.ends = np.zeros(len(self.scene.contacts), bool), np.zeros((len(self.scene.limits), 2), bool)
        put_momenta(self.model, work, self.touch)
        find_blows(self.model, work, self.scene, self.resting, self.blows, self.ends)

    def node_forces(self, gamma: float) -> np.ndarray:
        bodies, joints, _ = self.engine.sizes
        wrench, along = np.zeros((bodies, 6)), np.zeros((joints, 6))
        lasting_forces(self.scene, self.blows, self.ends, 1.0 / gamma, wrench, along)
        return np.concatenate([wrench.ravel(), along.ravel()])

    def node_values(self, model: Model, gamma: float) -> np.ndarray:
        values = self.nodes.read(self.scene, self.graph.work.bodies, gamma, model is self.model)
        self.nodes.read_bounds(model, self.graph.work, self.scene, values)
        return values

    def loads(self, mu: np.ndarray, change: np.ndarray) -> float:
        return self.nodes.loads(mu, change)

    def node_rows(self, values: np.ndarray, tangent: np.ndarray, gamma: float) -> np.ndarray:
        rows = np.zeros_like(tangent)
        seen = np.array(values)
        laws = self.nodes.with_bounds(seen, self.nodes.laws, gamma)
        linear_rows(self.scene, np.zeros((3, 3)), seen, tangent, laws, gamma, rows)
        return rows

    def advance(self, tape: Tape, index: int, step: Any, knot: int) -> None:
        super().advance(tape, index, step, knot)
        if knot == 0 and step.start == 0.0:
            self.exerting[0] = self.exerted
        self.exerting[knot + 1] = self.exerted

    def outputs(self) -> dict[str, np.ndarray]:
        """Forces at knots are those of the steps that they are read from."""
        bodies, joints, _ = self.engine.sizes
        wrench, along = np.split(self.exerting[self.sources], [6 * bodies], axis=1)
        self.felt = wrench.reshape(self.knots, bodies, 6), along.reshape(self.knots, joints, 6)
        return super().outputs()

    def turn_felt(self) -> None:
        self.felt = self.felt[0], turned_forces(self, self.pressing, self.felt[1])

    def close_nodes(self) -> None:
        self.nodes.put(0.0, np.zeros((len(self.touching), 3)), self.model)  # the scene is used again


def _put(bodies: np.ndarray, x: np.ndarray, q: np.ndarray) -> None:
    """Poses into records of bodies, the world left out."""
    bodies["x"][:-1] = x
    bodies["R"][:-1] = Rotation.from_quat(q, scalar_first=True).as_matrix().reshape(-1, 9)
