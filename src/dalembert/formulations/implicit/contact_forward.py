"""A forward pass over a run of the BDF and DIRK methods with contacts, limits or dry friction."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.contact.clipped import move_clipped
from dalembert.contact.nodes import Encounter
from dalembert.contact.records import POLYHEDRON
from dalembert.formulations.contact_stages import AFTER_SMOOTH, AT_KNOT, BY_TWO
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
from dalembert.formulations.maximal.contact_engine import Section
from dalembert.formulations.maximal.forward import OFFSETS
from dalembert.formulations.maximal.graph import Graph
from dalembert.formulations.maximal.recording import Recording
from dalembert.formulations.maximal.tape import Tape
from dalembert.formulations.maximal.touch_bars import BEFORE, FALL, Touch
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
        self, engine: Any, recording: Recording, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, models: Sequence[Any], step: float,
        change: InputBars,
    ) -> None:
        super().__init__(engine, recording, inputs, knots, dt, coordinates, [one.model for one in models], step, change)
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
        self.nodes.hold(self.graph.work.bodies)

    def node_values(self, model: Model, gamma: float) -> np.ndarray:
        return self.nodes.read(self.scene, self.graph.work.bodies, gamma, model is self.model)

    def node_rows(self, values: np.ndarray, tangent: np.ndarray, gamma: float) -> np.ndarray:
        rows = np.zeros_like(tangent)
        linear_rows(self.scene, np.zeros((3, 3)), np.ascontiguousarray(values), tangent, self.nodes.laws, gamma, rows)
        return rows

    def outputs(self) -> dict[str, np.ndarray]:
        """All but forces of joints, which depend on those of contacts."""
        return {name: values for name, values in super().outputs().items() if name not in ("force", "torque")}

    def close_nodes(self) -> None:
        self.nodes.put(0.0, np.zeros((len(self.touching), 3)), self.model)  # the scene is used again


def _put(bodies: np.ndarray, x: np.ndarray, q: np.ndarray) -> None:
    """Poses into records of bodies, the world left out."""
    bodies["x"][:-1] = x
    bodies["R"][:-1] = Rotation.from_quat(q, scalar_first=True).as_matrix().reshape(-1, 9)
