"""A forward pass over a run with contacts, limits or dry friction in joint coordinates."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dalembert.contact.clipped import move_clipped
from dalembert.contact.nodes import Encounter
from dalembert.contact.records import POLYHEDRON
from dalembert.contact.records import Tape as Forces
from dalembert.contact.shapes import PairList
from dalembert.formulations.contact_stages import carry_back
from dalembert.formulations.derivatives import InputBars
from dalembert.formulations.engine import Inputs
from dalembert.formulations.implicit.contact_derivative import touch_of
from dalembert.formulations.implicit.contact_tape import place_rows
from dalembert.formulations.maximal.contact_engine import ContactRecording, Section
from dalembert.formulations.maximal.forward import OFFSETS
from dalembert.formulations.maximal.lasting import find_blows, lasting_forces, put_momenta, resting_at
from dalembert.formulations.maximal.stage_forces import read_steps
from dalembert.formulations.maximal.touch_bars import BEFORE, FALL, Touch
from dalembert.formulations.maximal.touching_adjoint import forces_as_loads, turned_forces
from dalembert.formulations.maximal.touching_forward import TouchingNodes, bound_again, linear_rows
from dalembert.formulations.maximal.touching_tape import TouchingTape
from dalembert.formulations.reduced.contact_adjoint import node_residual, open_encounter
from dalembert.formulations.reduced.contact_tape import recall_encounter, stand
from dalembert.formulations.reduced.encounter import measure, motion_to_end, solve_encounter_system
from dalembert.formulations.reduced.equations import Stage
from dalembert.formulations.reduced.sensitivities import ReducedForward
from dalembert.formulations.reduced.state import NODE_STATE
from dalembert.kernels import kernel
from dalembert.model.records import Model
from dalembert.model.tree import Tree


class TouchingBuilt(NamedTuple):
    """A mechanism as the kernels of joint coordinates take it, with what may touch in it (``TouchingModel``)."""

    model: Model
    tree: Tree
    grounds: np.ndarray
    limits: np.ndarray
    pairs: PairList


@kernel
def evaluate_encounter(stage, scene, codes, touch):
    """Features at the knot, rows where they are taken, and the equations at the iterate; False when that is of no use."""
    move_clipped(scene, touch.found_at, codes)
    place_rows(stage.model, stage.work, scene, touch.rows_at)
    bound_again(scene, touch.velocity[BEFORE], touch.velocity[FALL], stage.c)
    return motion_to_end(stage)[1] and node_residual(Encounter(stage, scene, stage.c))[1] and measure(stage)[1]


class ContactForward(ReducedForward):
    """``models`` are ``TouchingBuilt``."""

    def __init__(
        self, engine: Any, recording: ContactRecording, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, models: Sequence[TouchingBuilt],
        step: float, change: InputBars,
    ) -> None:
        forces = Forces(*(array[:knots] for array in recording.tape))
        carried = carry_back(forces)
        loads = forces_as_loads(inputs, carried, knots, engine.balls, coordinates)
        super().__init__(engine, recording.plain, loads, knots, dt, coordinates, models, step, change)
        self.sources, self.pressing = read_steps(forces), carried.friction + carried.limit
        bodies, joints, _ = engine.sizes
        self.exerts = 6 * bodies + 6 * joints
        #: tangents of what the step that ends at a knot exerts on bodies and along directions; at the first, of the first step
        self.exerting = np.zeros((knots, self.exerts))
        self.nodes = TouchingNodes(engine, models, step, OFFSETS)
        self.section: Section | None = None
        self.touch: Touch | None = None
        self.scene: Any = None
        #: whether what was put last is a state beside the run's, and not another mechanism
        self.beside = False
        # contacts are smaller than what joints hold; and of polyhedra other features may touch not far from here
        self.reach = 0.02 if np.any(engine.pairs.shapes.geometries["form"] == POLYHEDRON) else 0.2

    @property
    def work(self) -> Any:
        return self.engine.work if self.section is None else self.section.graph.work

    @property
    def ties(self) -> Any:
        return self.engine.ties if self.section is None else self.section.more

    def segment(self, tape: Any, first: int, last: int) -> None:
        assert isinstance(tape, TouchingTape)
        self.sections = list(self.engine.sections(tape))
        super().segment(tape, first, last)
        self.section = None

    def run_of(self, tape: Any) -> Any:
        return tape.run.arrays

    def advance(self, tape: Any, index: int, step: Any, knot: int) -> None:
        super().advance(tape, index, step, knot)
        if knot == 0 and step.start == 0.0:
            self.exerting[0] = self.exerted
        self.exerting[knot + 1] = self.exerted

    def open_nodes(self, tape: Any, entry: int) -> None:
        section = next(section for section in self.sections if section.begin <= entry < section.end)
        if section is not self.section:
            self.section, self.touch = section, touch_of(self.engine, section)
        self.nodes.section = section
        self.recall(self.stage(self.base, float(tape.arrays.clock[entry, 0])), tape, entry)
        self.resting = resting_at(int(tape.arrays.rows_at[entry]), self.engine.options.resting_speed)
        assert self.touch is not None
        self.touching = self.nodes.awake(self.touch.found_at)

    def recall(self, stage: Stage, tape: Any, entry: int) -> None:
        section = self.section
        assert section is not None
        self.scene = section.scene
        recall_encounter(stage, self.engine.at_knot, self.scene, tape.arrays, section.kept, section.first, entry, self.touch)

    def move_nodes(self, stage: Stage, tape: Any, entry: int, beside: np.ndarray, step: float, tangent: np.ndarray) -> None:
        self.scene, self.beside = self.nodes.put(step, tangent, stage.model), stage.model is self.model
        knot, past = self.engine.at_knot, tape.arrays.nodes[entry].copy()
        for name in NODE_STATE.names or ():
            past[name] = beside[name]
        stand(stage, knot, past, int(tape.arrays.rows_at[entry]), self.touch)

    def evaluate(self, stage: Stage) -> bool:
        return evaluate_encounter(stage, self.scene, self.nodes.codes, self.touch)

    def open(self, stage: Stage) -> bool:
        assert self.touch is not None
        place_rows(stage.model, stage.work, self.scene, self.touch.rows_at)
        fine = open_encounter(stage, self.scene, self.bars, self.touch)
        self.nodes.hold(stage.work)
        self.blows, self.ends = np.zeros(len(self.scene.contacts), bool), np.zeros((len(self.scene.limits), 2), bool)
        put_momenta(stage.model, stage.work, self.touch)
        find_blows(stage.model, stage.work, self.scene, self.resting, self.blows, self.ends)
        return fine

    def node_values(self, c: float) -> np.ndarray:
        return self.nodes.read(self.scene, self.work.bodies, c, self.beside)

    def solve_nodes(self, stage: Stage, values: np.ndarray, tangent: np.ndarray) -> np.ndarray:
        rows, vector = np.zeros_like(tangent), stage.work.vector["v"]
        linear_rows(self.scene, np.zeros((3, 3)), np.ascontiguousarray(values), tangent, self.nodes.laws, stage.c, rows)
        vector[:] = 0.0
        vector[self.touching, :3] = rows
        stage.ties.pull[0] = 0.0
        solve_encounter_system(Encounter(stage, self.scene, stage.c))
        return tangent - vector[self.touching, :3]

    def node_forces(self, c: float) -> np.ndarray:
        bodies, joints, _ = self.engine.sizes
        wrench, along = np.zeros((bodies, 6)), np.zeros((joints, 6))
        lasting_forces(self.scene, self.blows, self.ends, 1.0 / c, wrench, along)
        return np.concatenate([wrench.ravel(), along.ravel()])

    def outputs(self) -> dict[str, np.ndarray]:
        """Forces at knots are those of the steps that they are read from."""
        bodies, joints, _ = self.engine.sizes
        wrench, along = np.split(self.exerting[self.sources], [6 * bodies], axis=1)
        self.felt = wrench.reshape(self.knots, bodies, 6), along.reshape(self.knots, joints, 6)
        return super().outputs()

    def turn_felt(self) -> None:
        self.felt = self.felt[0], turned_forces(self, self.pressing, self.felt[1])

    def close_nodes(self) -> None:
        stage = self.stage(self.base, self.dt)
        self.nodes.put(0.0, np.zeros((len(self.touching), 3)), stage.model)  # the scene is used again
