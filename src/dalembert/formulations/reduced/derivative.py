"""A backward pass over a run in joint coordinates."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.errors import GradientError
from dalembert.formulations.derivatives import Cotangents, StartBars
from dalembert.formulations.engine import Inputs
from dalembert.formulations.maximal.adjoint import KnotBars
from dalembert.formulations.maximal.pull_forces_at_knots import ForceBars, new_force_bars
from dalembert.formulations.maximal.stage_adjoint import StageAdjoint
from dalembert.formulations.maximal.tape import Tape
from dalembert.formulations.reduced.equations import Stage
from dalembert.formulations.reduced.pull_readings import pull_tree_forces, pull_tree_knots
from dalembert.formulations.reduced.pull_start import pull_start
from dalembert.formulations.reduced.pull_tree import NODE_BAR
from dalembert.formulations.reduced.state import NODE_STATE, Scratch
from dalembert.formulations.reduced.step import place_knot
from dalembert.formulations.reduced.tape import pull_knots, pull_steps
from dalembert.model.tree import POINT
from dalembert.solvers.redundant import COMPLIANCE
from dalembert.spatial import quaternion, so3


class ReducedAdjoint(StageAdjoint):
    """The state is coordinates and rates of the nodes, at the last two knots for BDF2; of a free rotation, a turn in its own frame and its angular velocity."""

    width = 6

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        engine = self.engine
        self.node_bars = np.zeros(len(engine.tree.nodes), NODE_BAR)
        self.stage = Stage(engine.model, engine.tree.nodes, engine.work, self.own, engine.ties, engine.options.dt)
        self.places = [(i, j) for i, node in enumerate(engine.tree.nodes) for j in range(node["count"])]
        self.first: np.ndarray | None = None
        #: bars (knots, nodes, 6) of nodes from forces that the tree itself reads
        self.transmitted: np.ndarray | None = None
        engine.ties.compliance[0] = COMPLIANCE

    @property
    def own(self) -> Scratch:
        """Scratch of stages."""
        return self.engine.own

    def new_knots(self, count: int) -> KnotBars:
        """No readings but those of forces, and of controllers, know of inputs."""
        return super().new_knots(count)._replace(body=np.zeros((count, len(self.node_bars), 6)))

    def read(self, first: int, last: int) -> KnotBars:
        """Knots at which nothing is weighed are left out."""
        count, nothing = last - first, np.zeros((0, 0, 0))
        self.first = self._states(np.zeros(1, dtype=int))[0]
        if self.pulled is not None:
            knots = self._read(np.arange(count), first, self.part(first, last), self.new_knots(count))
            if self.transmitted is not None:
                knots.body[:] += self.transmitted
            return knots
        knots = KnotBars(np.zeros((count, len(self.node_bars), 6)), *[nothing] * 6)
        weighed = np.zeros(count, dtype=bool)
        for array in self.cotangents:
            if any(array.strides):  # not zeros that take no room
                weighed |= np.any(array[first:last].reshape(count, -1) != 0.0, axis=1)
        at = np.flatnonzero(weighed)
        return self._read(at, first, Cotangents(*(array[first + at] for array in self.cotangents)), knots)

    def read_seen(self, knot: int, cotangents: Cotangents, inputs: Inputs, rates: np.ndarray) -> KnotBars:
        return self._read(np.zeros(1, dtype=int), knot, cotangents, self.new_knots(1))

    def _read(self, at: np.ndarray, first: int, cotangents: Cotangents, knots: KnotBars) -> KnotBars:
        """What is read at knots ``at`` of the tape, which begins at knot ``first``."""
        if len(at):
            found, joints = np.zeros((len(at), len(self.node_bars), 6)), self.engine.sizes[1]
            read = self._states(at), self.given.target[first + at], self.coordinates[first + at], cotangents, self.bars, self.node_bars, found, np.zeros((joints, 6))
            if self.engine.reads_tree:
                pull_tree_knots(self.stage, self.model._replace(joints=self.model.joints[:0]), *read)
            else:
                pull_knots(self.stage, *read)
            knots.body[at] = found
        return knots

    def _pull_forces(self, tape: Tape, first: int, last: int) -> ForceBars:
        """Cotangents of forces that the tree itself reads are at once those of its nodes."""
        if not self.engine.reads_tree:
            return super()._pull_forces(tape, first, last)
        self.check_forces()
        at, (bodies, joints, couplings) = np.arange(first, last), self.engine.sizes
        bars, prescribed = new_force_bars(len(at), bodies, joints, couplings), self.prescribed
        self.transmitted = np.zeros((len(at), len(self.node_bars), 6))
        held = (at == 0) | (self.knots == 2)
        rates = np.where(self.model.joints["driven"] != 0, prescribed[0], self.recording.rate[: self.knots])
        rates[at[held]] = self.recording.rate[at[held]]
        singular = pull_tree_forces(
            self.stage, self.recording, self.given, first, prescribed[1], rates, held, self._states(at - first), np.ascontiguousarray(self.cotangents.force[first:last]),
            self.bars, self.node_bars, np.zeros((len(self.node_bars), 6)), self.transmitted, bars,
        )
        if singular >= 0:
            raise GradientError(f"the forces of {self.mechanism.name!r} at knot {singular} cannot be differentiated: its coordinates are singular there")
        return bars

    def check_forces(self) -> None:
        """Raise GradientError for forces that have no derivative."""
        super().check_forces()
        if self.engine.reads_tree and (len(self.engine.ties.rows) or self.mechanism.maps):
            raise GradientError(
                f"forces of joints of {self.mechanism.name!r} cannot be differentiated, as loops, springs, couplings or maps meet joints without rows in it: use other outputs"
            )

    def _states(self, knots: np.ndarray) -> np.ndarray:
        return knot_states(self.engine.tree.nodes, self.tape, self.run_of(self.tape), knots, self.engine.tableau.stiffly_accurate)

    def run_of(self, tape: Tape) -> Any:
        """The arrays of a tape as the run went on."""
        return tape.arrays

    def _take_knots(self, knots: KnotBars, first: int, count: int) -> None:
        if self.pulled is not None:
            super()._take_knots(knots, first, count)

    def add_state(self, knots: KnotBars, index: int) -> None:
        self.node_bars["after"] += knots.body[index]

    def pull_stages(self, tape: Tape, knots: KnotBars, begins: np.ndarray, pushes: np.ndarray, rows: np.ndarray, tensions: np.ndarray) -> float:
        return pull_steps(
            self.stage, self.engine.tableau, tape.arrays, tape.count, self.bars, self.node_bars, knots.body, begins, pushes, rows, tensions,
        )

    # ---- the state's own cotangent

    @property
    def _parts(self) -> tuple[str, ...]:
        return ("after", "older") if self.engine.options.method == "bdf2" else ("after",)

    @property
    def state_size(self) -> int:
        return 2 * len(self.places) * len(self._parts)

    def put_state(self, bar: np.ndarray) -> None:
        nodes, places = np.array(self.places, dtype=int).reshape(-1, 2).T
        for part, values in zip(self._parts, bar.reshape(len(self._parts), 2, -1)):
            self.node_bars[part][nodes, places], self.node_bars[part][nodes, 3 + places] = values

    def take_state(self) -> np.ndarray:
        nodes, places = np.array(self.places, dtype=int).reshape(-1, 2).T
        return np.concatenate([self.node_bars[part][nodes, at] for part in self._parts for at in (places, 3 + places)])

    # ---- the start

    def start(self) -> StartBars:
        """Coordinates and rates follow from poses and velocities, joint by joint."""
        engine, count, bodies = self.engine, len(self.node_bars), self.engine.sizes[0]
        assert self.first is not None
        place_knot(engine.model, engine.tree.nodes, self.own, engine.view(engine._new_state())._replace(nodes=self.first))
        pose, velocity = np.zeros((bodies, 6)), np.zeros((bodies, 6))
        pull_start(
            self.stage, self.bars, self.node_bars, np.zeros((6, 6)), np.zeros((6, 6)), np.zeros(6, np.int64), np.zeros(6), np.zeros((count, 6)),
            np.zeros((count, 6)), pose, velocity,
        )
        return StartBars(pose, velocity)


def end_of_step(kept: np.ndarray, last: bool) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and rates (nodes, 3) at the end of a step, in its own coordinates, from the tape of its last stage; ``last``: that is its end."""
    return (kept["xs"], kept["vs"]) if last else (kept["q1"], kept["v1"])


def knot_states(tree: np.ndarray, tape: Tape, arrays: Any, knots: np.ndarray, stiff: bool) -> np.ndarray:
    """(knots, nodes) states at some of the knots that the steps of a tape with these arrays begin and end at; ``stiff``: steps end with a stage."""
    entries, kind = arrays.nodes[: tape.count], arrays.kind[: tape.count]
    starts = np.array([step.start for step in tape.steps])
    at_knot = np.flatnonzero(kind[:, 0] == 0)[starts == 0.0]
    inner = knots < len(at_knot)
    states = np.zeros((len(knots), len(tree)), NODE_STATE)
    for name in ("q", "v", "turn", "chart"):
        states[name][inner] = entries[name][at_knot[knots[inner]]]
    for index in np.flatnonzero(~inner):
        end, last = states[index], entries[-1]
        q, v = end_of_step(last, stiff or kind[-1, 2] > 0)
        end["q"], end["v"], end["turn"], end["chart"] = q, v, last["turn"], last["chart"]
        for i in np.flatnonzero((tree["kind"] == POINT) & (last["chart"] == 0.0)):
            x = tuple(q[i])
            end["turn"][i] = quaternion.normalize(quaternion.multiply(tuple(last["turn"][i]), quaternion.exp(x)))
            end["q"][i], end["v"][i] = 0.0, np.reshape(so3.right_jacobian(x), (3, 3)) @ v[i]
    return states
