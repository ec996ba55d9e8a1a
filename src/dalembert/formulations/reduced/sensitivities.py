"""A forward pass over a run in joint coordinates."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import GradientError
from dalembert.formulations.derivatives import InputBars
from dalembert.formulations.engine import Inputs, Start
from dalembert.formulations.maximal.bars import new_bars
from dalembert.formulations.maximal.forward import BesideReader, VelocityForward, check_finite, turn_between, turned
from dalembert.formulations.maximal.recording import Recording
from dalembert.formulations.reduced.adjoint import open_stage
from dalembert.formulations.reduced.derivative import end_of_step
from dalembert.formulations.reduced.equations import Stage, residual
from dalembert.formulations.reduced.knots import write_joints
from dalembert.formulations.reduced.reading import TreeReader
from dalembert.formulations.reduced.start import Starter
from dalembert.formulations.reduced.state import NODE_STATE
from dalembert.formulations.reduced.step import accept, begin_step, direction, follow_targets, place_knot
from dalembert.formulations.reduced.tape import recall_stage
from dalembert.model.frames import ball_vector
from dalembert.model.moving import nearest_coordinates
from dalembert.model.placement import Placement
from dalembert.model.records import Model
from dalembert.model.rotations import in_joint, rotation
from dalembert.model.tree import POINT, TARGET, Tree

#: passes of refinement: Newton's matrix leaves out how rows of loops turn, which matters where impacts load them
PASSES = 20


class Built(NamedTuple):
    """A mechanism as the kernels of joint coordinates take it."""

    model: Model
    tree: Tree


class TreeReaderBeside(BesideReader, TreeReader):
    """The same of what the tree itself reads."""


def ball_of(node: Any, at: Any, near: np.ndarray) -> np.ndarray:
    """The rotation vector (3,) of a free rotation's joint, the one near to another."""
    E = in_joint(node, rotation(node, int(at["chart"]), at["turn"], at["x"]))
    return np.array(ball_vector(E, tuple(near)))


class Tangent(NamedTuple):
    """Of coordinates and rates (nodes, 3) at a knot; of a free rotation, a turn in its own frame and its angular velocity."""

    q: np.ndarray
    v: np.ndarray


class ReducedForward(VelocityForward):
    """The tangent of a state is that of coordinates and rates, at the last two knots. Where a mechanism's numbers change, free rotations
    stay as they are in the frames of their joints.
    """

    def __init__(self, engine: Any, recording: Recording, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray,
                 models: Sequence[Any], step: float, change: InputBars) -> None:
        super().__init__(engine, recording, inputs, knots, dt, coordinates, [built.model for built in models], step, change)
        #: the tree of each model
        self.trees = {id(built.model): built.tree for built in models} | {id(engine.model): engine.tree}

    def begin(self, pose: np.ndarray, velocity: np.ndarray, target: np.ndarray) -> None:
        engine, start = self.engine, self.recording
        self.base = Built(engine.model, engine.tree)
        self.bars = new_bars(self.model)
        self.entry = 0
        q, speeds = start.orientation[0], self.speeds(start.momentum[0])
        self.vectors = np.flatnonzero((engine.tree.nodes["kind"] == POINT) & (engine.starter.charts == 0))
        self.moving = [joint for joint in self.mechanism.joints if not joint.type.has_rows]

        def starting(step: float, built: Any) -> np.ndarray:
            here = self.built(built)
            place = start.position[0] + step * pose[:, :3], turned(q, step * pose[:, 3:])
            placement = Placement(self.mechanism, here.model, engine.reading.work)
            placement.put(*place, self.coordinates[0])
            coordinate = placement.work.joints["coordinate"].copy()
            for element in self.moving:
                coordinate[element.index, : element.type.freedom] = nearest_coordinates(placement, element)
            begun = Start(*place, speeds + step * velocity, coordinate, engine.reading.work.joints["target"].copy())
            state = self.fresh()
            Starter(self.mechanism, here.model, here.tree, self.own, engine.starter.charts, engine.starter.switch).start(begun, state)
            nodes = state.nodes.copy()
            turns = self.frames(here)
            nodes["turn"][self.vectors] = conjugated(turns, nodes["turn"][self.vectors])
            nodes["v"][self.vectors] = np.einsum("nij,nj->ni", turns, nodes["v"][self.vectors])
            return nodes

        self.values = starting(0.0, self.model)
        size = max(np.abs(pose).max(initial=0.0), 0.1 * np.abs(velocity).max(initial=0.0))
        found = self.difference(lambda step, built: self.flat(starting(step, built), self.values), size) * np.ones((2, len(self.values), 3))
        self.state = Tangent(*found)
        self.older = Tangent(*np.zeros_like(found))
        self.velocity = np.zeros((self.knots, engine.sizes[0], 6))
        self.note(0)

    # ---- mechanisms beside this one

    def built(self, model: Model) -> Built:
        return Built(model, self.trees[id(model)])

    def frames(self, here: Built) -> np.ndarray:
        """Rotations (vectors, 3, 3) from the axes that free rotations of another mechanism are written in to those of this one."""
        own, other = (tree.nodes["frame"][self.vectors].reshape(-1, 3, 3) for tree in (self.base.tree, here.tree))
        return own @ np.swapaxes(other, 1, 2)

    # ---- states beside this one

    def flat(self, nodes: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """(2, nodes, 3) coordinates and rates, free rotations as turns from those of a reference."""
        q, v = nodes["q"].copy(), nodes["v"].copy()
        q[self.vectors] = turn_between(reference["turn"][self.vectors], nodes["turn"][self.vectors])
        return np.stack([q, v])

    def moved(self, nodes: np.ndarray, step: float, here: Built) -> np.ndarray:
        """A state ``step`` along its tangents, as another mechanism has it."""
        beside, vectors = nodes.copy(), self.vectors
        beside["q"] += step * self.state.q
        beside["v"] += step * self.state.v
        beside["q1"] += step * self.older.q
        beside["v1"] += step * self.older.v
        for name, part in (("turn", self.state), ("turn1", self.older)):
            beside[name][vectors] = turned(nodes[name][vectors], step * part.q[vectors])
        for name in ("q", "q1"):
            beside[name][vectors] = 0.0
        back = np.swapaxes(self.frames(here), 1, 2)
        for name in ("turn", "turn1"):
            beside[name][vectors] = conjugated(back, beside[name][vectors])
        for name in ("v", "v1"):
            beside[name][vectors] = np.einsum("nij,nj->ni", back, beside[name][vectors])
        return beside

    def stage(self, here: Built, c: float) -> Stage:
        return Stage(here.model, here.tree.nodes, self.work, self.own, self.ties, c)

    def state_of(self, nodes: np.ndarray) -> Any:
        return self.fresh()._replace(nodes=nodes)

    def fresh(self) -> Any:
        """A state with nothing in it."""
        return self.engine.view(self.engine._new_state())

    def note(self, knot: int) -> None:
        engine, own = self.engine, self.own.nodes
        bodies = engine.tree.node_of

        def placed(step: float, built: Any) -> np.ndarray:
            here = self.built(built)
            place_knot(here.model, here.tree.nodes, self.own, self.state_of(self.moved(self.values, step, here)))
            W = own["W"][bodies].reshape(-1, 3, 3)
            turn = matrix_turns(np.swapaxes(self._turns, 1, 2) @ W)
            moving = np.einsum("nij,nj->ni", W, own["V"][bodies, 3:])
            return np.stack([own["place"][bodies], turn, moving, own["V"][bodies, :3]])

        place_knot(engine.model, engine.tree.nodes, self.own, self.state_of(self.values))
        self._turns = own["W"][bodies].reshape(-1, 3, 3).copy()
        size = max(np.abs(self.state.q).max(initial=0.0), 0.1 * np.abs(self.state.v).max(initial=0.0))
        position, turn, linear, spin = self.difference(placed, size) * np.ones((4, len(bodies), 3))
        self.tangent.position[knot], self.orientation[knot] = position, turn
        self.velocity[knot, :, :3], self.velocity[knot, :, 3:] = linear, spin
        self.tangent.momentum[knot] = engine.momentum_of(self.velocity[knot])
        if engine.reads_tree:
            self._note_coordinates(knot, size)

    def _note_coordinates(self, knot: int, size: float) -> None:
        """Tangents of coordinates and rates along the joints of the tree."""
        own, recorded = self.own, self.recording.coordinate[knot]

        def along(step: float, built: Any) -> np.ndarray:
            here = self.built(built)
            state = self.state_of(self.moved(self.values, step, here))
            coordinate, rate = np.zeros(recorded.shape), np.zeros(recorded.shape)
            place_knot(here.model, here.tree.nodes, own, state)
            write_joints(here.tree.nodes, own, state, coordinate, rate)
            for node, at in zip(here.tree.nodes, own.nodes):
                places = int(node["joint"]), slice(int(node["direction"]), int(node["direction"]) + int(node["count"]))
                if node["joint"] >= 0 and node["count"] > 0:
                    coordinate[places] = at["x"][: node["count"]] if node["kind"] != POINT else ball_of(node, at, recorded[places])
            return np.stack([coordinate, rate])

        self.tangent.coordinate[knot], self.tangent.rate[knot] = self.difference(along, size) * np.ones((2, *recorded.shape))

    # ---- what is read

    def reader_beside(self, model: Model, recording: Recording, inputs: Inputs) -> Any:
        engine = self.engine
        if not engine.reads_tree:
            return super().reader_beside(model, recording, inputs)
        return TreeReaderBeside(
            self.mechanism, model, engine.compliance, recording, inputs, self.dt, self.coordinates[0], engine.exact, engine.trusted(recording), engine.reading,
            tree=self.trees[id(model)], ties=engine.ties,
        )

    def values_of(self, reader: Any, model: Model) -> dict[str, np.ndarray]:
        if not self.engine.reads_tree:
            return super().values_of(reader, model)
        pose, moving = reader.pose(), reader.velocities()
        fixed, v, w = model.bodies[:-1], moving["velocity"], moving["angular_velocity"]
        kinetic = 0.5 * np.einsum("b,nbi,nbi->n", fixed["mass"], v, v) + 0.5 * np.einsum("nbi,bij,nbj->n", w, fixed["inertia"].reshape(-1, 3, 3), w)
        kinetic = kinetic + 0.5 * np.einsum("jd,njd->n", model.joints["armature"], moving["rate"] ** 2)
        found = dict(**moving, kinetic=kinetic, coordinate=pose["coordinate"], potential=pose["potential"])
        if not len(self.engine.ties.rows) and not self.mechanism.maps:  # with them, such forces cannot be read
            motion = reader.motion()
            found |= dict(force=motion["force"], torque=motion["torque"])
        return found

    # ---- steps

    def segment(self, tape: Any, first: int, last: int) -> None:
        self.entry = 0
        super().segment(tape, first, last)

    def advance(self, tape: Any, index: int, step: Any, knot: int) -> None:
        arrays, tableau = tape.arrays, self.engine.tableau
        count, order = int(arrays.kind[self.entry, 1]), int(arrays.kind[self.entry, 2])
        dt = float(arrays.clock[self.entry, 1])
        self.values = state_at(arrays.nodes[self.entry])
        slopes: list[np.ndarray] = []
        found = np.zeros((3, len(self.values), 3))
        begun = np.stack([self.state.q, self.state.v])
        begun[0, self.vectors] = 0.0
        for number in range(count):
            entry = self.entry + number
            c = float(arrays.clock[entry, 0])
            before = self._aggregates(order) if order else begun + dt * sum((a * k for a, k in zip(tableau.a[number], slopes)), np.zeros_like(begun))
            found = self._stage(tape, entry, knot, step.start + step.length * (1.0 if order else tableau.c[number]), c, before)
            slopes.append(found[1:])
        end, stiff = found[:2], bool(order) or tableau.stiffly_accurate
        if not stiff:
            end = begun + dt * sum((b * k for b, k in zip(tableau.b, slopes)), np.zeros_like(begun))
        last = self.entry + count - 1
        self._accept(end_of_step(arrays.nodes[last], stiff), end_of_step(self.run_of(tape).nodes[last], stiff), end)
        self.entry += count

    def run_of(self, tape: Any) -> Any:
        """The arrays of a tape as the run went on."""
        return tape.arrays

    def _aggregates(self, order: int) -> np.ndarray:
        """Tangents (2, nodes, 3) of the aggregates of the last two knots."""
        stage, own = self.stage(self.base, self.dt), self.own.nodes

        def made(step: float, _: Any) -> np.ndarray:
            begin_step(stage, self.state_of(self.moved(self.values, step, self.base)), order)
            return np.stack([own["aq"], own["av"]])

        return self.along(made, self._size())

    def _size(self) -> float:
        return max(*(np.abs(part.q).max(initial=0.0) + 0.1 * np.abs(part.v).max(initial=0.0) for part in (self.state, self.older)), 1e-300)

    def _accept(self, at: tuple[np.ndarray, np.ndarray], run: tuple[np.ndarray, np.ndarray], end: np.ndarray) -> None:
        """The tangent of the state after a step from those of coordinates and rates at its end, which are ``at``; the run goes on from ``run``."""
        stage, own = self.stage(self.base, self.dt), self.own.nodes

        def made(step: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
            before, after = self.state_of(self.moved(self.values, step, self.base)), self.state_of(self.values.copy())
            own["x"], own["v"] = q + step * end[0], v + step * end[1]
            accept(stage, before, after)
            return after.nodes

        reference = made(0.0, *at)
        size = max(self._size(), np.abs(end[0]).max(initial=0.0), 0.1 * np.abs(end[1]).max(initial=0.0))
        found = self.along(lambda step, _: self.flat(made(step, *at), reference), size)
        self.values = made(0.0, *run)
        self.older, self.state = self.state, Tangent(*found)

    # ---- what may touch: nothing here

    @property
    def work(self) -> Any:
        """The work that a stage is differentiated in."""
        return self.engine.work

    @property
    def ties(self) -> Any:
        return self.engine.ties

    @property
    def own(self) -> Any:
        return self.engine.own

    def open_nodes(self, tape: Any, entry: int) -> None:
        """Begin a stage: which nodes are part of it."""

    def recall(self, stage: Stage, tape: Any, entry: int) -> None:
        """Put a stage into work and scratch."""
        recall_stage(stage, tape.arrays, entry)

    def move_nodes(self, stage: Stage, tape: Any, entry: int, beside: np.ndarray, step: float, tangent: np.ndarray) -> None:
        """Numbers of the nodes of a stage's model, where their rows are taken, with the state ``beside`` that of the tape, and impulses (nodes, 3)."""

    def evaluate(self, stage: Stage) -> bool:
        """The equations at what is in work and scratch."""
        return residual(stage)[1]

    def open(self, stage: Stage) -> bool:
        """Factor Newton's matrix at the solution."""
        return open_stage(stage, self.bars)

    def node_values(self, c: float) -> np.ndarray:
        """(nodes, 3) what the nodes look at."""
        return np.zeros((0, 3))

    #: numbers of what nodes exert in a stage, and their tangents in the last one
    exerts: int = 0
    exerted: np.ndarray = np.zeros(0)

    def node_forces(self, c: float) -> np.ndarray:
        """(``exerts``,) what the nodes exert."""
        return np.zeros(0)

    def solve_nodes(self, stage: Stage, values: np.ndarray, tangent: np.ndarray) -> np.ndarray:
        """Newton's directions of nodes of the tree and rows from their residuals, and of contacts (nodes, 3) from tangents of ``node_values`` and impulses."""
        direction(stage, False)
        return tangent

    def close_nodes(self) -> None:
        """A stage is done."""

    def _open(self, tape: Any, entry: int, knot: int, c: float, tangent: np.ndarray) -> Stage:
        """A taped stage with its factored matrix."""
        stage = self.stage(self.base, c)
        self.recall(stage, tape, entry)
        self.move_nodes(stage, tape, entry, self.values, 0.0, tangent)
        if not self.open(stage):
            raise GradientError(f"the step at knot {knot} of {self.mechanism.name!r} cannot be differentiated: its equations are singular")
        return stage

    def _stage(self, tape: Any, entry: int, knot: int, share: float, c: float, before: np.ndarray) -> np.ndarray:
        """Tangents (3, nodes, 3) of coordinates, rates and accelerations at the end of a stage, from those (2, nodes, 3) of its aggregates."""
        self.open_nodes(tape, entry)
        arrays, work, own, rows = tape.arrays, self.work, self.own.nodes, self.ties.rows
        nodes, joints = arrays.nodes[entry], arrays.joints[entry]
        push, given, target, tension = self.inputs_of(knot, share)
        count, tied = len(own), len(rows)
        dv, dmu, dnode = np.zeros((count, 3)), np.zeros(tied), np.zeros((len(self.touching), 3))
        whole = 3 * len(dnode) + 12 * count + tied + self.exerts
        self._open(tape, entry, knot, c, dnode)
        rates, forces = own["v"].copy(), rows["mu"].copy()
        driven = self.engine.tree.nodes["driven"] == TARGET

        def evaluate(step: float, built: Any) -> np.ndarray:
            here = self.built(built)
            stage = self.stage(here, c)
            self.recall(stage, tape, entry)
            frames = self.frames(here)
            back, beside = np.swapaxes(frames, 1, 2), self.moved(self.values, step, here)
            own["turn"] = beside["turn"]
            for name, value, tangent in (("aq", nodes["aq"], before[0]), ("av", nodes["av"], before[1]), ("v", rates, dv)):
                moved = value + step * tangent
                moved[self.vectors] = np.einsum("nij,nj->ni", back, moved[self.vectors])
                own[name] = moved
            work.bodies["push"][:-1] = arrays.bodies[entry]["push"] + step * push
            work.joints["input"] = joints["input"] + step * given
            work.couplings["input"] = arrays.couplings[entry]["input"] + step * tension
            rows["mu"] = forces + step * dmu
            follow_targets(stage, joints["target"] + step * target)
            self.move_nodes(stage, tape, entry, beside, step, dnode)
            if not self.evaluate(stage):
                raise GradientError(f"the step at knot {knot} of {self.mechanism.name!r} has no neighbours to be differentiated with")
            found = np.stack([own["g"], own["x"], own["v"], own["a"]])
            found[:, self.vectors] = np.einsum("nij,knj->kni", frames, found[:, self.vectors])
            return np.concatenate([self.node_values(c).ravel(), found.ravel(), rows["r"], self.node_forces(c)])

        def split(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
            touching, tree, tying, exerted = np.split(values * np.ones(whole), np.cumsum([3 * len(dnode), 12 * count, tied]))
            return touching.reshape(-1, 3), tree.reshape(4, count, 3), tying, exerted

        size = max(self._size(), np.abs(before[0]).max(initial=0.0), 0.1 * np.abs(before[1]).max(initial=0.0), np.abs(target).max(initial=0.0))
        size = max(size, *(1e-3 * np.abs(part).max(initial=0.0) for part in (push, given, tension)))
        for _ in range(PASSES):
            values, left, right, _ = split(self.difference(evaluate, size))
            stage = self._open(tape, entry, knot, c, dnode)
            scale = max(np.abs(dv).max(initial=0.0), np.abs(dmu).max(initial=0.0), 1e-300)
            own["g"], rows["r"] = left[0], right
            dnode = self.solve_nodes(stage, values, dnode)
            change, pushed = np.where(driven[:, None], 0.0, own["dq"] / c), rows["dmu"].copy()
            dv, dmu = dv - change, dmu - pushed
            size = max(size, 0.1 * np.abs(dv).max(initial=0.0))
            if max(np.abs(change).max(initial=0.0), np.abs(pushed).max(initial=0.0)) < 1e-11 * scale:
                break
        _, after, _, self.exerted = split(check_finite(self.difference(evaluate, size), self.mechanism.name))
        self.close_nodes()
        return after[1:]


def state_at(kept: np.ndarray) -> np.ndarray:
    """The state before a step from what its tape has."""
    nodes = np.zeros(len(kept), NODE_STATE)
    for name in NODE_STATE.names or ():
        nodes[name] = kept[name]
    return nodes


def matrix_turns(matrices: np.ndarray) -> np.ndarray:
    """Rotation vectors (n, 3) of rotation matrices (n, 3, 3)."""
    return Rotation.from_matrix(matrices).as_rotvec()


def conjugated(frames: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """Quaternions (n, 4) of rotations written in other axes, F R F^T."""
    if not len(turns):
        return turns
    return np.concatenate([turns[:, :1], np.einsum("nij,nj->ni", frames, turns[:, 1:])], axis=1)
