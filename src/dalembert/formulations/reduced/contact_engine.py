"""What steps a mechanism with contacts, limits or dry friction in joint coordinates."""
from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from dalembert.contact.kept import KEPT_CONTACT
from dalembert.contact.records import Scene, Tape
from dalembert.errors import GradientError, ModelError
from dalembert.formulations.contact_stages import carry_back
from dalembert.formulations.derivatives import Adjoint, Cotangents, Forward, InputBars
from dalembert.formulations.engine import Inputs, KernelCall, Readings, Source, Start
from dalembert.formulations.maximal.contact_engine import ContactRecording, Section, TouchingEngine
from dalembert.formulations.maximal.graph import Graph
from dalembert.formulations.maximal.reading import Reader
from dalembert.formulations.maximal.recording import new_recording
from dalembert.formulations.maximal.touching_tape import TouchingTape
from dalembert.formulations.reduced.contact_step import (
    CONTACT_BODY_STATE,
    CONTACT_JOINT_STATE,
    ContactState,
    Parts,
    recall_pose,
    run_contact_steps,
)
from dalembert.formulations.reduced.contact_tape import keep_ends, new_contact_tape, relax_stages
from dalembert.formulations.reduced.encounter import BODY
from dalembert.formulations.reduced.engine import ReducedEngine
from dalembert.formulations.reduced.equations import Stage
from dalembert.formulations.reduced.maps import OWN_STATE, begin_watch, check_maps
from dalembert.formulations.reduced.options import Reduced
from dalembert.formulations.reduced.state import NODE_STATE, new_scratch
from dalembert.formulations.reduced.step import record
from dalembert.formulations.reduced.ties import Ties
from dalembert.formulations.variational import Variational
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.placement import Placement
from dalembert.model.shared_loads import joints_with_shared_loads
from dalembert.solvers.interior_point import ROUNDING
from dalembert.solvers.outcomes import SOLVED

NOTHING_KEPT = np.zeros(0, KEPT_CONTACT)
#: blocks of a node: its diagonal, and rows and columns with two bodies
BLOCKS = 5


class ContactEngine(TouchingEngine, ReducedEngine):
    """A mechanism in which something can touch, in joint coordinates; methods start anew at impacts."""

    state_type = ContactState
    listed = (*TouchingEngine.listed, "ties")

    def __init__(self, mechanism: Mechanism, options: Reduced) -> None:
        for joint in mechanism.joints:
            if not joint.type.has_rows:
                raise ModelError(
                    f"Reduced takes no contacts, limits or dry friction beside joint {joint.name!r} yet: they are equations between two bodies, which a "
                    f"{type(joint.type).__name__} has none of"
                )
        super().__init__(mechanism, options)
        self._warn_of_shared_loads()
        self.one_start = False
        self.at_knot = new_scratch(len(self.tree.nodes), len(self.own.splines))
        self._untaped = new_contact_tape(len(self.tree.nodes), len(self.ties.rows), *self.sizes, len(self.scene.limits), 0)

    def _warn_of_shared_loads(self) -> None:
        """Say which bearings have friction by a load that depends on the tree: what several joints hold, the tree's own carries."""
        bearing = {joint.name for joint in self.mechanism.joints if joint.type.bearing is not None}
        if bearing and self.ties.loops.size:
            shared = sorted(bearing & joints_with_shared_loads(Placement.of(self.mechanism, self.model)))
            if shared:
                warnings.warn(
                    f"Reduced: the loads of {', '.join(map(repr, shared))} in {self.mechanism.name!r} are shared with other joints in ways that rigid bodies leave open, and "
                    "so is the friction of their bearings: here joints of the spanning tree carry all of it. Variational and Implicit share it evenly; or let one joint hold less.",
                    RuntimeWarning, stacklevel=2,
                )

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
        self.graph, self.ties = self._room(self.scene)

    def _room(self, scene: Scene) -> tuple[Graph, Ties]:
        """Room for the contacts and limits of a scene, whose records are told where their blocks are."""
        world, first = self.sizes[0], len(self.tree.nodes)
        nodes = [node for array in (scene.contacts, scene.limits) for node in array]
        for index, node in enumerate(nodes):
            block = BLOCKS * index
            node["node"], node["diagonal"] = first + index, block
            for end, there, back, place in (("a", "block_na", "block_an", 1), ("b", "block_nb", "block_bn", 3)):
                inside = int(node[end]) != world
                node[there], node[back] = (block + place, block + place + 1) if inside else (-1, -1)
        size = len(self.ties.rows) + 3 * len(nodes)
        ties = self.ties._replace(S=np.zeros((size, size)), order=np.zeros(size, np.int64), vector=np.zeros(size))
        work = self.work._replace(
            blocks=np.zeros(BLOCKS * len(nodes), [("M", "f8", (BODY, BODY))]), vector=np.zeros(first + len(nodes), [("v", "f8", BODY)]),
        )
        return self.reading._replace(work=work, contacts=first), ties

    def resolve_overlaps(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions and orientations near a state's where none overlap: a matter of poses, which maximal coordinates have at hand."""
        position, orientation = self.pose(numbers)
        still = np.zeros((self.sizes[0], 6))
        engine: Any = Variational(dt=self.options.dt).engine(self.mechanism)
        return engine.resolve_overlaps(engine.start(Start(position, orientation, still, self.coordinates(numbers), self.targets(numbers))))

    def kernel_call(self, numbers: np.ndarray, recording: Any, source: Source, count: int, dt: float) -> KernelCall | None:
        if self.mechanism.maps:  # which Python watches over
            return None
        return TouchingEngine.kernel_call(self, numbers, recording, source, count, dt)

    def _step_call(
        self, state: Any, inputs: Inputs, recording: ContactRecording, used: int, done: int, first: int, count: int, dt: float,
    ) -> tuple[Any, Any]:
        tape = self.tape
        taping = (self._untaped, -1, NOTHING_KEPT, 0) if tape is None else tape.place
        return run_contact_steps, (
            self.parts, state, inputs, self.step_options, self.contact_options, self.scene, recording.plain, recording.tape, self.log, used,
            done, first, count, dt, *taping,
        )

    def _run_steps(
        self, state: Any, inputs: Inputs, recording: ContactRecording, used: int, done: int, first: int, count: int, dt: float,
    ) -> tuple[int, int, float, int]:
        tape, (kernel, arguments) = self.tape, self._step_call(state, inputs, recording, used, done, first, count, dt)
        outcome, solved, size, used, entry, _ = self.enter(kernel, tape is None and count == 1, *arguments)
        if tape is not None:
            if not self.tableau.stiffly_accurate:
                keep_ends(tape.arrays, self.tree.nodes, self.tableau.b, tape.count, int(entry))
            tape.count = int(entry)
        return outcome, solved, size, used

    def run(self, numbers: np.ndarray, recording: Any, inputs: Inputs, first: int, count: int, dt: float) -> int:
        if self.tape is None or not self.whole_steps:
            return self.run_plain(numbers, recording, inputs, first, count, dt)
        tape, self.tape = self.tape, None
        try:
            return self._run_kept(tape, numbers, recording, inputs, first, count, dt)
        finally:
            self.tape = tape

    def run_plain(self, numbers: np.ndarray, recording: Any, inputs: Inputs, first: int, count: int, dt: float) -> int:
        """``run``, whose steps are not kept as a whole."""
        begin_watch(self.maps, self.view(numbers).maps)
        done = TouchingEngine.run(self, numbers, recording, inputs, first, count, dt)
        check_maps(self.mechanism, self.maps)
        if self.outcome[0] != SOLVED:
            self.note_asked(numbers, inputs, done, dt)
            self.note_trouble()
        return done

    def _run_kept(self, tape: Any, numbers: np.ndarray, recording: Any, inputs: Inputs, first: int, count: int, dt: float) -> int:
        """Step by step, each kept as a whole."""
        from dalembert.formulations.reduced.stepwise import inputs_of_step

        for index in range(count):
            before, one = numbers.copy(), inputs_of_step(inputs, index)
            if self.run_plain(numbers, recording, one, first + index, 1, dt) == 0:
                return index
            tape.keep(before, numbers, one, dt)
        return count

    # ---- derivatives

    @cached_property
    def whole_steps(self) -> bool:
        """Whether its steps are differentiated as a whole, by differences."""
        bearing = any(joint.type.bearing is not None for joint in self.mechanism.joints)
        return not self.pulls or bearing

    @property
    def reach_beside(self) -> tuple[float, float]:
        """How far mechanisms beside this one are in differences, by geometry and by other numbers, as part of the usual."""
        from dalembert.formulations.reduced.contact_whole import REACH, WIDE

        closes = len(self.grounds.contacts) or len(self.pairs.found) or bool(np.any(np.isfinite(self.scene.limits["end"])))
        return (REACH if closes else WIDE, WIDE) if self.whole_steps else (1.0, 1.0)

    def new_tape(self, steps: int) -> Any:
        """Room for what some steps leave behind."""
        if self.whole_steps:
            from dalembert.formulations.reduced.stepwise import StepTape

            return StepTape(len(self._new_state()), steps)
        make = partial(new_contact_tape, len(self.tree.nodes), len(self.ties.rows))
        return self.touching_tape(make, steps, 1 if self.options.method == "bdf1" else len(self.tableau.b))

    def _firm_graph(self, scene: Scene) -> tuple[Graph, Ties]:
        return self._room(scene)

    def _relax(self, tape: TouchingTape, section: Section, kappa: float) -> int:
        from dalembert.formulations.implicit.contact_derivative import touch_of

        self.ties.compliance[0] = self.compliance
        # no sharper than the run itself (``solvers.interior_point``)
        tolerance = max(self.options.tolerance, ROUNDING * max(1.0, float(np.abs(self._places[:, :3]).max(initial=0.0))) / self.options.dt)
        stage = Stage(self.model, self.tree.nodes, section.graph.work, self.own, section.more, self.options.dt)
        failed = int(relax_stages(
            stage, self.at_knot, section.scene, tape.arrays, section.kept, section.first, section.begin, section.end, touch_of(self, section), kappa,
            tolerance, 4 * self.contact_options.max_iterations,
        ))
        if not self.tableau.stiffly_accurate:
            keep_ends(tape.arrays, self.tree.nodes, self.tableau.b, section.begin, section.end)
        return failed

    def model_of(self, mechanism: Mechanism) -> Any:
        if self.whole_steps:
            from dalembert.formulations.reduced.contact_whole import whole_built

            return whole_built(self, mechanism)
        from dalembert.formulations.reduced.contact_forward import TouchingBuilt

        touching, built = TouchingEngine.model_of(self, mechanism), ReducedEngine.model_of(self, mechanism)
        return TouchingBuilt(built.model, built.tree, touching.grounds, touching.limits, touching.pairs)

    def adjoint(self, recording: Any, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, cotangents: Cotangents) -> Adjoint:
        """A backward pass over the first ``knots`` knots of a run."""
        if self.whole_steps:
            from dalembert.formulations.reduced.contact_whole import ContactSteps, WholeAdjoint

            return WholeAdjoint(ContactSteps(self), self, recording.plain, inputs, knots, dt, coordinates, cotangents)
        from dalembert.formulations.reduced.contact_derivative import ContactAdjoint

        return ContactAdjoint(self, recording, inputs, knots, dt, coordinates, cotangents)

    def forward(
        self, recording: Any, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, models: Sequence[Any], step: float, change: InputBars,
    ) -> Forward:
        """A forward pass over the first ``knots`` knots of a run."""
        if self.whole_steps:
            from dalembert.formulations.reduced.contact_whole import ContactSteps, WholeForward, step_numbers

            free = step_numbers(self)
            return WholeForward(ContactSteps(self), self, recording.plain, inputs, knots, dt, coordinates, models, step, change, free)
        from dalembert.formulations.reduced.contact_forward import ContactForward

        return ContactForward(self, recording, inputs, knots, dt, coordinates, models, step, change)

    def step_matrices(self, tape: Any) -> tuple[np.ndarray, np.ndarray]:
        raise GradientError(f"steps of {self.mechanism.name!r} cannot be differentiated all at once, as something may touch in it: use Simulation.step_jacobian, step by step")

    def read(self, recording: ContactRecording, inputs: Inputs, knots: int, dt: float, coordinate: np.ndarray) -> Readings:
        tape = carry_back(Tape(*(array[:knots] for array in recording.tape)))
        return super().read(ContactRecording(recording.plain, tape, recording.pages), inputs, knots, dt, coordinate)

    def _read_after(self, reader: Reader, tape: Tape) -> Mapping[str, np.ndarray]:
        """Momenta are those after the step already."""
        return dict(momentum_after=reader.recording.momentum, rate_after=reader.motion()["rate"])
