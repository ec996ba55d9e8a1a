"""What engines in maximal coordinates share when something can touch: the list of what is near, overlaps, the log."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from dalembert.contact.build import GroundList, build_limits
from dalembert.contact.forces import note_state
from dalembert.contact.geometry import at_knot, rounding
from dalembert.contact.impacts import NUMBERS
from dalembert.contact.jamming import jamming_bearings
from dalembert.contact.narrow import find_features, measure_pair
from dalembert.contact.records import (
    CIRCLE_SUPPORT,
    CONTACT,
    ENTRY,
    LIMIT,
    PLANE,
    ContactOptions,
    Scene,
    Tape,
    new_tape,
)
from dalembert.contact.shapes import PairList, compile_shapes
from dalembert.contact.twists import twists_of
from dalembert.errors import GradientError, LimitError, OverlapError, StepFailure
from dalembert.formulations.engine import Inputs, KernelCall, Readings, Source, Start
from dalembert.formulations.maximal.ball_torques import along_axes, pushed_balls
from dalembert.formulations.maximal.checks import refuse_in_gradients
from dalembert.formulations.maximal.engine import MaximalEngine
from dalembert.formulations.maximal.graph import Graph
from dalembert.formulations.maximal.reading import Reader
from dalembert.formulations.maximal.recording import Recording
from dalembert.formulations.maximal.touching_tape import TouchingTape
from dalembert.linalg.compact import new_room, no_room
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.touching import Touching
from dalembert.model.assembly import close_loops
from dalembert.model.placement import Placement
from dalembert.model.pose import evaluate_pose
from dalembert.solvers.outcomes import LOG_FULL, LOST, SOLVED, THROUGH

if TYPE_CHECKING:
    from dalembert.formulations.maximal.kinks import Kink

#: interior point iterations per Newton iteration that the formulation allows
PATIENCE = 2
#: depth (m) from which bodies count as overlapping at the start
OVERLAP = 1e-7
#: and by which they may after ``resolve_overlaps``: where friction wedges something in, no step could bring it out
APART = 1e-9
#: m or rad by which steps never leave a joint beyond its limits
STEPPED = 1e-5
#: how often the rooms of bodies that stray within one step are doubled
STRETCHES = 20
#: contacts in lists of what is near that are kept for when they come back
KEPT = 4096

#: contacts for which a tape has room at first in every step
AWAKE = 16

AFTER = frozenset({"momentum_after", "rate_after"})


def joined(*arrays: np.ndarray) -> np.ndarray:
    """Arrays of the same records in one: as bytes, since numpy compares what they are made of at length."""
    return np.concatenate([np.ascontiguousarray(array).view(np.uint8) for array in arrays]).view(arrays[0].dtype)


def empty_scene() -> Scene:
    """A scene with nothing in it, for compiling."""
    nothing = np.zeros(0, CONTACT)
    return Scene(nothing, nothing, np.zeros(0, LIMIT), np.zeros((2, 2)), np.zeros(4), compile_shapes([], 0), np.zeros(6), np.zeros(1), np.zeros((NUMBERS, 1)), no_room())


@dataclass(frozen=True)
class ContactRecording:
    """A recording, the tape of contact forces, and the pages of the log of contacts."""

    plain: Recording
    tape: Tape
    pages: list[np.ndarray]

    @property
    def substeps(self) -> np.ndarray:
        return self.plain.substeps

    @property
    def iterations(self) -> np.ndarray:
        return self.plain.iterations


class Section(NamedTuple):
    """Entries ``begin`` to ``end - 1`` of a tape with their contacts ``kept``, of which ``first`` was the first in the log; scene and
    graph to differentiate them on; which of the grounds' contacts come first in the scene; what a formulation needs besides.
    """

    begin: int
    end: int
    first: int
    kept: np.ndarray
    scene: Scene
    graph: Graph
    standing: np.ndarray
    more: Any


class TouchingEngine(MaximalEngine):
    """An engine whose steps are solved on a graph with the contacts as nodes; ``reading`` is the graph without them.

    Which contacts are part of a step follows from the places in the state alone: poses with rooms around them, for which
    ``scene`` and ``graph`` hold what comes near while no body leaves its room. States end with ``LASTING_BODY`` and
    ``LASTING_JOINT``. It stands before a formulation's own engine in the list of classes.
    """

    lingers = False
    tape: Any
    #: attributes that go with the list of what is near
    listed: ClassVar[tuple[str, ...]] = ("scene", "standing", "graph")

    def __init__(self, mechanism: Mechanism, options: Any) -> None:
        super().__init__(mechanism, options)
        edges = options.cone_edges if options.cone == "linear" else 0
        self.labels: list[str] = []
        touching = Touching(mechanism)
        self.grounds = GroundList(mechanism, touching, edges, self.labels)
        self._own_labels = len(self.labels)
        self.pairs = PairList(touching, self.grounds.weights, edges)
        sizes = np.maximum(self.pairs.size, self.grounds.size)
        self.contact_options = ContactOptions(
            self.compliance, options.tolerance, PATIENCE * options.max_iterations, options.resting_speed, sizes, 0 if options.impacts == "newton" else 2, 0,
        )
        terrain = mechanism.terrains[0] if mechanism.terrains else None
        heights = terrain.heights if terrain else np.zeros((2, 2))
        frame = np.concatenate([terrain.origin, terrain.spacing]) if terrain else np.array([0.0, 0.0, 1.0, 1.0])
        limits = build_limits(Placement.of(mechanism, self.model))
        count = self.sizes[0]
        nothing = np.zeros(0, CONTACT)
        self.scene = Scene(
            nothing, nothing, limits, heights, frame, self.pairs.shapes, np.zeros(6), np.zeros(count), np.zeros((NUMBERS, count)), no_room(),
        )
        #: ball joints along whose coordinates something pushes
        self.balls = pushed_balls(self.model.joints, limits)
        #: indices of the grounds' contacts that come first in the scene
        self.standing = np.zeros(0, int)
        self._listed: tuple[Any, ...] | None = None
        self._lists: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._places = np.full((self.sizes[0], 8), np.nan)
        self._firm: dict[Any, tuple[Scene, Graph, Any]] = {}
        self.log = np.zeros(4096, ENTRY)
        #: the state of the last run, in which a failure stands at its last good knot
        self._running: np.ndarray | None = None

    # ---- states

    def start(self, start: Start) -> np.ndarray:
        numbers = super().start(start)
        self._put_places(numbers, 1.0)
        self._follow(self.view(numbers))  # so that the first step does not wait for it
        return numbers

    def _velocity(self, state: Any) -> np.ndarray:
        """(n, 6) linear (world) and angular (body frame), roughly."""
        raise NotImplementedError

    def _recall(self, state: Any) -> None:
        """Put the state's knot into the work of the graph."""
        raise NotImplementedError

    def _put_places(self, numbers: np.ndarray, stretch: float) -> None:
        """Give every body a room about its pose: a part of its size, more if it is fast."""
        state, sizes = self.view(numbers), self.contact_options.sizes
        place, velocity = state.bodies["place"], self._velocity(state)
        speed = np.linalg.norm(velocity[:, :3], axis=1) + sizes * np.linalg.norm(velocity[:, 3:], axis=1)
        place[:, :3], place[:, 3:7] = self.pose(numbers)
        place[:, 7] = np.where(sizes > 0.0, stretch * (0.1 * sizes + 8.0 * self.options.dt * speed), 0.0)

    def _follow(self, state: Any) -> None:
        """Make scene and graph those of the places in the state."""
        self.follow_places(state.bodies["place"])

    def follow_places(self, places: np.ndarray) -> None:
        """Make scene and graph those of places (n, 8)."""
        if np.array_equal(places, self._places):
            return
        self._places = places.copy()
        near, ground = self.pairs.near(places), self.grounds.near(places)
        listed = (*near, ground.tobytes())
        if listed == self._listed:
            return
        self._listed = listed
        if listed not in self._lists:
            standing = self.grounds.contacts[ground]
            slots, shapes = self.pairs.build(near, len(standing), self.labels)
            contacts = joined(standing, slots)
            contacts = joined(contacts, twists_of(contacts))
            self.scene = self.scene._replace(contacts=contacts, gathered=np.empty_like(contacts), limits=self.scene.limits.copy(), shapes=shapes)
            self.standing = ground
            self._analyse()
            if sum(len(kept["scene"].contacts) for kept in self._lists.values()) > KEPT:
                self._lists.clear()
            self._lists[listed] = {name: getattr(self, name) for name in self.listed}
        vars(self).update(self._lists[listed])
        if len(self.log) < 4 * len(self.scene.contacts):
            self.log = np.zeros(8 * len(self.scene.contacts), ENTRY)

    def _touching_graph(self, contacts: Sequence[tuple[int, int]], firm: bool = False) -> Graph:
        """The graph that steps are solved on, with contacts between these bodies (see ``build_graph``)."""
        raise NotImplementedError

    def _analyse(self) -> None:
        """Analyse the graph of bodies, joints, contacts and limits, and tell contacts and limits where their blocks are."""
        self.graph = self._graph_of(self.scene)
        self.scene = self.scene._replace(room=new_room(self.graph.structure.schedule))

    def _graph_of(self, scene: Scene, firm: bool = False) -> Graph:
        """The graph of a scene, whose records are told where their blocks are."""
        world, arrays = self.sizes[0], (scene.contacts, scene.limits)
        graph = self._touching_graph([pair for array in arrays for pair in zip(array["a"].tolist(), array["b"].tolist())], firm)
        structure, first = graph.structure, graph.contacts
        for array in arrays:
            if not len(array):
                continue
            index = np.arange(first, first + len(array))
            first += len(array)
            array["node"], array["diagonal"] = index, structure.diagonal[index]
            for end, there, back in (("a", "block_na", "block_an"), ("b", "block_nb", "block_bn")):
                body = array[end].astype(np.int64)
                held = body != world
                array[there] = array[back] = -1
                array[there][held], array[back][held] = structure.blocks(index[held], body[held]), structure.blocks(body[held], index[held])
        return graph

    def felt(self, numbers: np.ndarray, inputs: Inputs) -> Inputs:
        state = self.view(numbers)
        wrench, joint = state.bodies["wrench"], state.joints["friction"] + state.joints["limit"]
        if self.balls:  # states may hold the coordinates of the knot before
            at = self.coordinates(numbers) if numbers.ndim == 1 else np.stack([self.coordinates(one) for one in numbers])
            joint = along_axes(self.balls, at, joint)
        return inputs._replace(wrench=inputs.wrench + wrench[..., None, :, :], joint=inputs.joint + joint[..., None, :, :])

    def as_seen(self, recording: Any, inputs: Inputs, knot: int, coordinate: np.ndarray) -> tuple[Recording, Inputs]:
        tape = recording.tape
        felt = inputs._replace(wrench=inputs.wrench + tape.lasting[knot], joint=inputs.joint + along_axes(self.balls, coordinate, tape.lasting_along[knot]))
        return recording.plain, felt

    # ---- overlaps

    def gaps(self, numbers: np.ndarray, rigid: bool = False) -> list[tuple[str, float]]:
        """Pairs that are near one another at the knot, with their gaps (m), the smallest first; ``rigid``: without those that may overlap."""
        state = self.view(numbers)
        self._follow(state)
        work, contacts = self.graph.work, self.scene.contacts
        self._recall(state)
        evaluate_pose(self.model, work)
        find_features(work.bodies, contacts, self.scene.shapes, np.inf)
        gaps: dict[str, float] = {}

        def note(contact: int, gap: float) -> None:
            if rigid and contacts["stiffness"][contact] > 0.0:
                return
            label = self.labels[int(contacts["owner"][contact])]
            gaps[label] = min(gaps.get(label, np.inf), gap)

        for i in np.flatnonzero(contacts["used"]):
            at_knot(contacts[i], self.scene, work.bodies)
            if i < len(self.standing):
                note(int(i), float(contacts["gap0"][i]) + flat_part(contacts[i], work.bodies))
        for pair in self.scene.shapes.pairs:
            measure_pair(work.bodies, pair, self.scene.shapes)
            if pair["gap"] <= pair["margin"]:
                note(int(pair["first"]), float(pair["gap"]))
        return sorted(gaps.items(), key=lambda item: item[1])

    def overlaps(self, numbers: np.ndarray) -> list[tuple[str, float]]:
        """Pairs that overlap at the knot, with their depths (m), deepest first."""
        return [(label, -gap) for label, gap in self.gaps(numbers, rigid=True) if gap < -OVERLAP]

    def resolve_overlaps(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions and orientations near a state's where none overlap: by repeated linearised least-norm steps, in the mass metric."""
        numbers, mass = numbers.copy(), self.model.bodies["mass"]
        state = self.view(numbers)
        for _ in range(200):
            self._put_places(numbers, 1.0)
            if all(gap >= -APART for _, gap in self.gaps(numbers, rigid=True)):
                return self.pose(numbers)
            contacts, shapes, bodies = self.scene.contacts, self.scene.shapes, self.graph.work.bodies

            standing = contacts[: len(self.standing)]
            for contact in standing[(standing["used"] != 0) & (standing["gap0"] < 0.0)]:
                at_knot(contact, self.scene, bodies)
                push_apart(bodies, mass, (int(contact["a"]), int(contact["b"])), float(contact["gap0"]), contact["n0"])
            for pair in shapes.pairs[shapes.pairs["gap"] < 0.0]:
                measure_pair(bodies, pair, shapes)
                ends = tuple(int(shapes.geometries["body"][pair[end]]) for end in ("i", "j"))
                push_apart(bodies, mass, ends, float(pair["gap"]), pair["n"])
            state.bodies["x"] = bodies["x"][:-1]
            if len(self.mechanism.joints):
                placement = self.placement(numbers)
                close_loops(placement, {})
                state.bodies["x"], state.bodies["q"] = placement.work.bodies["x"][:-1], placement.work.bodies["q"][:-1]
        self._put_places(numbers, 1.0)
        found = [(label, -gap) for label, gap in self.gaps(numbers, rigid=True) if gap < -APART]
        pairs = ", ".join(label for label, _ in found[:5])
        raise OverlapError(f"the overlaps of {self.mechanism.name!r} cannot be resolved by moving bodies apart: {pairs}", found)

    def _check_start(self, numbers: np.ndarray) -> None:
        overlaps = self.overlaps(numbers)
        if overlaps:
            listed = "; ".join(f"{label} by {depth:.3g} m" for label, depth in overlaps[:5])
            more = f" and {len(overlaps) - 5} more" if len(overlaps) > 5 else ""
            raise OverlapError(
                f"{self.mechanism.name!r} starts with bodies inside one another: {listed}{more}. "
                "Move them apart, or call resolve_overlaps() on the simulation.", overlaps,
            )

    def beyond_limits(self, numbers: np.ndarray) -> list[tuple[str, float, float, np.ndarray]]:
        """Joints beyond their limits at the knot, the farthest first: names, by how much (m or rad), where, and the two ends."""
        limits, state = self.scene.limits, self.view(numbers)

        def outside(coordinate: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            here = coordinate[limits["joint"], limits["direction"]]
            by = np.maximum(limits["end"][:, 0] - here, here - limits["end"][:, 1])
            return here, by, np.flatnonzero(by > (OVERLAP if state.clock[0] == 0.0 else STEPPED))

        if not len(limits) or not len(outside(state.joints["coordinate"])[2]):  # those to unwrap against, of this knot or the one before
            return []
        here, by, wrong = outside(self.coordinates(numbers))
        return [(self.mechanism.joints[int(limits["joint"][i])].name, float(by[i]), float(here[i]), limits["end"][i]) for i in wrong[np.argsort(-by[wrong])]]

    def check_limits(self, numbers: np.ndarray) -> None:
        """Raise LimitError where joints lie beyond their limits: at a start, or in a state that was not reached under these limits."""
        found = self.beyond_limits(numbers)
        if found:
            listed = "; ".join(f"{name!r} at {here:.6g}, its limits are {ends[0]:.6g} and {ends[1]:.6g}" for name, _, here, ends in found[:5])
            more = f" and {len(found) - 5} more" if len(found) > 5 else ""
            raise LimitError(
                f"{self.mechanism.name!r} starts with joints beyond their limits (m or rad): {listed}{more}. "
                "Move them inside with set_joint(), or call resolve_overlaps() on the simulation.", [(name, by) for name, by, _, _ in found],
            )

    # ---- running

    def watch(self, on: bool) -> None:
        self.contact_options = self.contact_options._replace(limited=0 if self.options.impacts == "newton" else 2 if on else 1)

    def new_recording(self, knots: int) -> Any:
        return ContactRecording(super().new_recording(knots), new_tape(knots, *self.sizes[:2]), [])

    def record(self, numbers: np.ndarray, recording: Any, knot: int) -> None:
        if isinstance(recording, ContactRecording):
            note_state(self.view(numbers), recording.tape, knot)
            recording = recording.plain
        super().record(numbers, recording, knot)

    def mark(self, recording: ContactRecording) -> tuple[int, Any]:
        return len(recording.pages), super().mark(recording)

    def go_back(self, recording: ContactRecording, mark: tuple[int, Any]) -> None:
        del recording.pages[mark[0] :]
        super().go_back(recording, mark[1])

    def opening(self, recording: Any, knot: int) -> list[np.ndarray]:
        return [*super().opening(recording.plain, knot), *(array[knot] for array in recording.tape)]

    def advance(self, numbers: np.ndarray, recording: Any, source: Source, first: int, count: int, dt: float) -> int:
        self.check_limits(numbers)
        if self.view(numbers).clock[0] == 0.0:
            self._check_start(numbers)
        return super().advance(numbers, recording, source, first, count, dt)

    def _step_call(
        self, state: Any, inputs: Inputs, recording: ContactRecording, used: int, done: int, first: int, count: int, dt: float,
    ) -> tuple[Any, Any]:
        """The kernel of ``_run_steps``, and its arguments."""
        raise NotImplementedError

    def _run_steps(
        self, state: Any, inputs: Inputs, recording: ContactRecording, used: int, done: int, first: int, count: int, dt: float,
    ) -> tuple[int, int, float, int]:
        """``count`` steps with the inputs from step ``done`` on, into knots from ``first``, on a log of which so many entries
        are ``used``. Returns (outcome, steps done, residual of the last try, length of the log).
        """
        raise NotImplementedError

    def kernel_call(self, numbers: np.ndarray, recording: ContactRecording, source: Source, count: int, dt: float) -> KernelCall | None:
        state = self.view(numbers)
        self._follow(state)
        return KernelCall(*self._step_call(state, source.window(0, count), recording, 0, 0, 0, count, dt), 1, lists=True)

    def plain(self, numbers: np.ndarray, dt: float) -> bool:
        return super().plain(numbers, dt) and self.view(numbers).clock[0] != 0.0

    def run(self, numbers: np.ndarray, recording: Any, inputs: Inputs, first: int, count: int, dt: float) -> int:
        state, self._running = self.view(numbers), numbers
        self._follow(state)
        done, used, stretch = 0, 0, 1.0
        while done < count:
            stride = count - done
            if self.tape is not None:
                self.tape.turn_to(self._places)
                self.tape.reserve(stride)
                self.tape.grow(len(self.scene.contacts) + stride * min(len(self.scene.contacts), AWAKE))
            outcome, solved, size, used = self._run_steps(state, inputs, recording, used, done, first + done, stride, dt)
            self.outcome = (int(outcome), float(size))
            done += int(solved)
            stretch = 1.0 if solved else stretch
            if outcome == LOG_FULL:
                used = self._turn_page(recording, used)
            elif outcome == LOST and stretch < 2.0**STRETCHES:
                self._put_places(numbers, stretch)
                self._follow(state)
                stretch *= 2.0
            elif outcome != SOLVED:
                break
        self._turn_page(recording, used)
        return done

    def _turn_page(self, recording: ContactRecording, used: int) -> int:
        """Put the log aside; one that was full too early grows."""
        if used:
            recording.pages.append(self.log[:used].copy())
        if used > len(self.log) // 2:
            self.log = np.zeros(2 * len(self.log), ENTRY)
        return 0

    # ---- reading

    def read(self, recording: Any, inputs: Inputs, knots: int, dt: float, coordinate: np.ndarray) -> Readings:
        plain = Recording(*(array[:knots] for array in recording.plain))
        tape = Tape(*(array[:knots] for array in recording.tape))
        if self.balls:
            at = self._reader(plain, inputs, dt, coordinate).pose()["coordinate"]
            tape = tape._replace(friction=along_axes(self.balls, at, tape.friction), limit=along_axes(self.balls, at, tape.limit))
        reader = self._reader(plain, with_forces(inputs, tape), dt, coordinate, np.stack([tape.friction, tape.limit], axis=-1))
        log = joined(*recording.pages) if recording.pages else np.zeros(0, ENTRY)
        names = self._name(log)
        readings = reader.readings(contact_wrench=tape.wrench, contact_log=log)
        provider = AFTER, lambda: self._read_after(reader, tape)
        return Readings(readings.values, (*readings.providers, provider), names, readings.least_norm, glance=readings.glance)

    # ---- derivatives

    def sections(self, tape: TouchingTape) -> Iterator[Section]:
        """The parts of a tape with one list of what was near each, from the last one to the first, to be differentiated.

        Their scenes hold what was awake at some time, and where shapes meet, all that was near.
        """
        here = self._places.copy()
        try:
            for begin, end, places in reversed(tape.sections()):
                self.follow_places(places)
                first = int(tape.arrays.span[begin, 0])
                kept = tape.kept[first : int(tape.arrays.span[end - 1].sum())]
                chosen = np.arange(len(self.scene.contacts)) if len(self.scene.shapes.pairs) else np.unique(kept["index"])
                scene, graph, more = self._section(chosen)
                number = np.zeros(len(self.scene.contacts), np.int32)
                number[chosen] = np.arange(len(chosen))
                kept = kept.copy()
                kept["index"] = number[kept["index"]]
                yield Section(begin, end, first, kept, scene, graph, self.standing[chosen[chosen < len(self.standing)]], more)
        finally:
            self.follow_places(here)

    def kinks(self, tape: TouchingTape) -> list[Kink]:
        """Where the motion on a tape has kinks."""
        from dalembert.formulations.maximal.kinks import find_kinks

        return [kink for section in self.sections(tape) for kink in find_kinks(self, tape, section)]

    def relaxed(self, tape: TouchingTape, smoothing: float) -> TouchingTape:
        """A tape of the same steps, each solved again from its own start with products of ``smoothing`` (m/s) squared."""
        new = tape.copy()
        for section in self.sections(tape):
            failed = self._relax(new, section, smoothing**2)
            if failed >= 0:
                raise GradientError(
                    f"a step of {self.mechanism.name!r} (entry {failed} of its tape) cannot be solved with gradient_smoothing={smoothing:g} m/s: "
                    "try another one"
                )
            indices = new.kept["index"][section.first : section.first + len(section.kept)].copy()
            new.kept[section.first : section.first + len(section.kept)] = section.kept
            new.kept["index"][section.first : section.first + len(section.kept)] = indices
        return new

    def _relax(self, tape: TouchingTape, section: Section, kappa: float) -> int:
        """Solve a section's steps again, into the arrays of a tape and the section's own log. Returns an entry that failed, or -1."""
        raise NotImplementedError

    def _section(self, chosen: np.ndarray) -> tuple[Scene, Graph, Any]:
        """Scene and graph of some of the contacts that are near, for derivatives; and what a formulation needs besides."""
        key = (self._listed, chosen.tobytes())
        if key not in self._firm:
            if len(self._firm) > 64:
                self._firm.clear()
            scene = self.scene._replace(contacts=self.scene.contacts[chosen].copy(), limits=self.scene.limits.copy())
            self._firm[key] = scene, *self._firm_graph(scene)
        return self._firm[key]

    def _firm_graph(self, scene: Scene) -> tuple[Graph, Any]:
        """The graph that derivatives are solved on, and what a formulation needs besides."""
        return self._graph_of(scene, True), None

    def model_of(self, mechanism: Mechanism) -> Any:
        """A mechanism as forward passes take it."""
        from dalembert.formulations.maximal.touching_forward import touching_model

        return touching_model(mechanism)

    def touching_tape(self, new_arrays: Any, steps: int, each: int = 1) -> TouchingTape:
        """Room for what some steps leave behind; ``new_arrays(bodies, joints, couplings, limits, room)``."""
        refuse_in_gradients(self.mechanism)
        return TouchingTape(partial(new_arrays, *self.sizes, len(self.scene.limits)), steps, each, min(len(self.scene.contacts), AWAKE))

    def _name(self, log: np.ndarray) -> tuple[str, ...]:
        """Number the pairs in a log anew: grounds first, then pairs as they came near. Returns their names."""
        own = np.arange(self._own_labels)
        seen, where = np.unique(log["owner"], return_index=True)
        order = np.concatenate([own, seen[np.argsort(where)][seen[np.argsort(where)] >= self._own_labels]]).astype(int)
        number = np.zeros(len(self.labels), np.int32)
        number[order] = np.arange(len(order))
        log["owner"] = number[log["owner"]]
        return tuple(self.labels[i] for i in order)

    def _read_after(self, reader: Reader, tape: Tape) -> Mapping[str, np.ndarray]:
        """Momenta (N, n, 6) and joint rates (N, joints, 6) just after the knots."""
        raise NotImplementedError

    # ---- failures

    def failure(self, time: float, dt: float) -> StepFailure:
        outcome, pair = self.outcome
        if outcome == THROUGH:
            owner = self.scene.contacts["owner"][self.scene.shapes.pairs["first"][int(pair)]]
            return StepFailure(
                f"the step at t = {time:.6g} s of {self.mechanism.name!r} has no solution with dt = {dt:g} s or {1 << self.options.max_halvings} substeps in "
                f"which {self.labels[int(owner)]!r} neither overlap nor pass through one another. Use a smaller dt, or more max_halvings."
            )
        error, contact = super().failure(time, dt), self.worst_contact(dt)
        jams = [] if self._running is None else jamming_bearings(self.placement(self._running), self.scene.limits)
        if jams:
            named = ", ".join(f"{name!r} (by {gain:.3g})" for name, gain in jams[:4])
            return StepFailure(
                f"{error} Bearings can jam there, as friction raises their load and by that itself: {named}; from 1 on, what slides in them may have no "
                "rigid motion, whatever dt. Give them a larger radius or length, less friction, or bodies whose weight is nearer to them."
            )
        return StepFailure(f"{error} The contact furthest from its solution is {contact}.") if contact else error

    def worst_contact(self, dt: float) -> str:
        """Name of the contact with the largest residual or product of the last try."""
        worst, name = 0.0, ""
        for contact in self.scene.contacts[self.scene.contacts["awake"] != 0]:
            miss = abs(float(contact["gap"] / dt - contact["bound"] + contact["drag"] * contact["rate"] + contact["soft"] * contact["gamma"] - contact["s"]))
            product = float(contact["s"] * contact["gamma"] / contact["weight"])
            value = max(miss, np.sqrt(max(product, 0.0)))
            if not value <= worst:
                worst, name = value, f"{self.labels[int(contact['owner'])]!r} (point {int(contact['part'])})"
        return name


def flat_part(contact: np.void, bodies: np.ndarray) -> float:
    """How much (m) of a gap at the knot is missing for a circle that lies flat."""
    if contact["kind"] != PLANE or contact["support"] != CIRCLE_SUPPORT:
        return 0.0
    return rounding(contact, *(tuple(bodies["R"][contact[end]].tolist()) for end in ("a", "b")))


def push_apart(bodies: np.ndarray, mass: np.ndarray, ends: tuple[int, ...], gap: float, n: np.ndarray) -> None:
    """Move two bodies apart along ``n`` so that a gap below zero closes a little more than it has to, the heavier one less."""
    shares = [0.0 if body == len(bodies) - 1 else 1.0 / mass[body] for body in ends]
    way = (1.02 * max(-gap, 0.0) + OVERLAP) * n / sum(shares)
    for body, sign, share in zip(ends, (1.0, -1.0), shares):
        bodies["x"][body] += sign * share * way


def with_forces(inputs: Inputs, tape: Tape) -> Inputs:
    """Inputs at all knots with the forces of contacts, limits and dry friction: to a reader they are loads like any other."""
    knots = np.arange(len(tape.wrench))
    wrench, joint, tension = (
        given[np.minimum(knots, len(given) - 1)] if len(given) else 0.0 for given in (inputs.wrench, inputs.joint, inputs.tension)
    )
    return inputs._replace(
        wrench=wrench + tape.wrench, joint=joint + tape.friction + tape.limit, tension=tension + np.zeros((len(knots), inputs.tension.shape[1])),
    )
