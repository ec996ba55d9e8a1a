"""What steps a mechanism with contacts, limits or dry friction in joint coordinates."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalembert.contact.records import Tape
from dalembert.errors import ModelError
from dalembert.formulations.contact_stages import carry_back
from dalembert.formulations.engine import Inputs, Readings, Start
from dalembert.formulations.maximal.contact_engine import ContactRecording, TouchingEngine
from dalembert.formulations.maximal.reading import Reader
from dalembert.formulations.maximal.recording import new_recording
from dalembert.formulations.reduced.contact_step import (
    CONTACT_BODY_STATE,
    CONTACT_JOINT_STATE,
    ContactState,
    Parts,
    recall_pose,
    run_contact_steps,
)
from dalembert.formulations.reduced.encounter import BODY
from dalembert.formulations.reduced.engine import ReducedEngine
from dalembert.formulations.reduced.maps import OWN_STATE, begin_watch, check_maps
from dalembert.formulations.reduced.options import Reduced
from dalembert.formulations.reduced.state import NODE_STATE, new_scratch
from dalembert.formulations.reduced.step import record
from dalembert.formulations.variational import Variational
from dalembert.mechanism.mechanism import Mechanism
from dalembert.solvers.outcomes import SOLVED

#: no tape
UNTAPED = np.zeros(0)
#: blocks of a node: its diagonal, and rows and columns with two bodies
BLOCKS = 5


class ContactEngine(TouchingEngine, ReducedEngine):
    """A mechanism in which something can touch, in joint coordinates; methods start anew at impacts."""

    #: runs with contacts cannot be differentiated yet
    adjoint = None  # type: ignore[assignment]

    state_type = ContactState

    def __init__(self, mechanism: Mechanism, options: Reduced) -> None:
        for joint in mechanism.joints:
            if not joint.type.has_rows:
                raise ModelError(
                    f"Reduced takes no contacts, limits or dry friction beside joint {joint.name!r} yet: they are equations between two bodies, which a "
                    f"{type(joint.type).__name__} has none of"
                )
        super().__init__(mechanism, options)
        self.one_start = False
        self.at_knot = new_scratch(len(self.tree.nodes), len(self.own.splines))

    def _layout(self) -> tuple[tuple[np.dtype, int], ...]:
        bodies, joints, _ = self.sizes
        return (
            (NODE_STATE, len(self.tree.nodes)), (CONTACT_JOINT_STATE, joints), (OWN_STATE, len(self.maps.own)), (CONTACT_BODY_STATE, bodies), (np.dtype("f8"), self.clock_size),
        )

    @property
    def parts(self) -> Parts:
        """What the kernels of a step take."""
        return Parts(self.model, self.graph.work, self.own, self.tree.nodes, self.ties, self.at_knot)

    def _velocity(self, state: ContactState) -> np.ndarray:
        recording = new_recording(1, *self.sizes)
        record(self.model, self.tree.nodes, self.at_knot, state, recording, 0)
        momentum, bodies = recording.momentum[0], self.model.bodies[:-1]
        spin = np.einsum("nij,nj->ni", bodies["inertia_inverse"].reshape(-1, 3, 3), momentum[:, 3:])
        return np.concatenate([momentum[:, :3] / bodies["mass"][:, None], spin], axis=1)

    def _recall(self, state: ContactState) -> None:
        self.graph.work.joints["coordinate"] = state.joints["coordinate"]
        recall_pose(self.parts, state, False)

    def _analyse(self) -> None:
        """Number the nodes of contacts and limits behind those of the tree, and make room for them."""
        world, first = self.sizes[0], len(self.tree.nodes)
        nodes = [node for array in (self.scene.contacts, self.scene.limits) for node in array]
        for index, node in enumerate(nodes):
            block = BLOCKS * index
            node["node"], node["diagonal"] = first + index, block
            for end, there, back, place in (("a", "block_na", "block_an", 1), ("b", "block_nb", "block_bn", 3)):
                inside = int(node[end]) != world
                node[there], node[back] = (block + place, block + place + 1) if inside else (-1, -1)
        size = len(self.ties.rows) + 3 * len(nodes)
        self.ties = self.ties._replace(S=np.zeros((size, size)), order=np.zeros(size, np.int64), vector=np.zeros(size))
        work = self.work._replace(
            blocks=np.zeros(BLOCKS * len(nodes), [("M", "f8", (BODY, BODY))]), vector=np.zeros(first + len(nodes), [("v", "f8", BODY)]),
        )
        self.graph = self.reading._replace(work=work)

    def resolve_overlaps(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions and orientations near a state's where none overlap: a matter of poses, which maximal coordinates have at hand."""
        position, orientation = self.pose(numbers)
        still = np.zeros((self.sizes[0], 6))
        engine: Any = Variational(dt=self.options.dt).engine(self.mechanism)
        return engine.resolve_overlaps(engine.start(Start(position, orientation, still, self.coordinates(numbers), self.targets(numbers))))

    def _run_steps(
        self, state: Any, inputs: Inputs, recording: ContactRecording, used: int, done: int, first: int, count: int, dt: float,
    ) -> tuple[int, int, float, int]:
        outcome, solved, size, used, _, _ = run_contact_steps(
            self.parts, state, inputs, self.step_options, self.contact_options, self.scene, recording.plain, recording.tape, self.log, used,
            done, first, count, dt, UNTAPED, -1, UNTAPED, 0,
        )
        return outcome, solved, size, used

    def run(self, numbers: np.ndarray, recording: Any, inputs: Inputs, first: int, count: int, dt: float) -> int:
        begin_watch(self.maps, self.view(numbers).maps)
        done = TouchingEngine.run(self, numbers, recording, inputs, first, count, dt)
        check_maps(self.mechanism, self.maps)
        if self.outcome[0] != SOLVED:
            self.note_asked(numbers, inputs, done, dt)
            self.note_trouble()
        return done

    def read(self, recording: ContactRecording, inputs: Inputs, knots: int, dt: float, coordinate: np.ndarray) -> Readings:
        tape = carry_back(Tape(*(array[:knots] for array in recording.tape)))
        return super().read(ContactRecording(recording.plain, tape, recording.pages), inputs, knots, dt, coordinate)

    def _read_after(self, reader: Reader, tape: Tape) -> Mapping[str, np.ndarray]:
        """Momenta are those after the step already."""
        return dict(momentum_after=reader.recording.momentum, rate_after=reader.motion()["rate"])
