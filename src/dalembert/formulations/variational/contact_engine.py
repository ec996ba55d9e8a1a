"""A mechanism with contacts, limits or dry friction in the variational formulation: its scene, its graph, its runs."""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.contact.build import GroundList, build_limits
from dalembert.contact.general import GeneralPairs
from dalembert.contact.geometry import at_knot
from dalembert.contact.narrow import find_features
from dalembert.contact.records import CONTACT, ENTRY, LIMIT, Scene, Tape
from dalembert.contact.shapes import PairList, compile_shapes
from dalembert.errors import OverlapError, StepFailure
from dalembert.formulations.contact.interior_point import interior_point
from dalembert.formulations.contact.step import LOG_FULL, LOST, run_contact_steps
from dalembert.formulations.maximal import examples
from dalembert.formulations.maximal.assembly import close_loops
from dalembert.formulations.maximal.engine import Inputs, Recording
from dalembert.formulations.maximal.knot import evaluate_knot
from dalembert.formulations.maximal.system import build_system
from dalembert.formulations.variational import Variational, VariationalEngine
from dalembert.formulations.variational.equations import SOLVED
from dalembert.kernels.ahead import Jobs, prepare
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.touching import Touching
from dalembert.model.records import BODY, COUPLING, JOINT, Records

#: interior point iterations per Newton iteration that the formulation allows
PATIENCE = 2
#: contacts that may stay listed when they are no longer near
SPARE = 32
#: depth (m) from which bodies count as overlapping at the start
OVERLAP = 1e-7


def ahead() -> Jobs:
    """The longest part of a step, and what reads a run."""
    scene = Scene(np.zeros(0, CONTACT), np.zeros(0, LIMIT), np.zeros((2, 2)), np.zeros(4), compile_shapes([], 0))
    numbers = (0.0, 0.0, 0.0, 0.0, 0, 0.0, 0.0)
    yield interior_point.part, (examples.records(), scene, *examples.graph(), *numbers, np.zeros(6))  # type: ignore[attr-defined]
    yield from examples.reading()


class ContactEngine(VariationalEngine):
    """An engine with a second copy of the records, whose graph has the contacts as nodes.

    ``records`` and ``system`` stay those of the mechanism without contacts, by which knots are read.
    """

    def __init__(self, mechanism: Mechanism, options: Variational) -> None:
        prepare(ahead)
        super().__init__(mechanism, options)
        records = self.records
        self.step_records = records._replace(bodies=records.bodies.copy(), joints=records.joints.copy(), couplings=records.couplings.copy())
        edges = options.cone_edges if options.cone == "linear" else 0
        self.labels: list[str] = []
        touching = Touching(mechanism)
        self.grounds = GroundList(mechanism, touching, records, edges, self.labels)
        self.pairs = PairList(touching, self.grounds.weights, edges)
        self.pairs.size = np.maximum(self.pairs.size, self.grounds.size)
        contacts = self.grounds.contacts.copy()
        limits = build_limits(mechanism, records)
        terrain = mechanism.terrains[0] if mechanism.terrains else None
        heights = terrain.heights if terrain else np.zeros((2, 2))
        frame = np.concatenate([terrain.origin, terrain.spacing]) if terrain else np.array([0.0, 0.0, 1.0, 1.0])
        self.scene = Scene(contacts, limits, heights, frame, self.pairs.shapes)
        self._fresh = True
        self._general: GeneralPairs | None = None
        self.places = np.zeros((len(records.bodies) - 1, 9))
        self.scratch = np.zeros(6)
        self.log = np.zeros(max(4096, 4 * len(contacts)), ENTRY)
        self._pages: list[np.ndarray] = []
        self._tape: Tape | None = None
        self._last: tuple[np.ndarray, np.ndarray] | None = None
        self._analyse()

    def _mark_active(self) -> None:
        super()._mark_active()
        for element, joint in zip(self.mechanism.joints, self.records.joints):
            joint["active"] |= element.type.bounded

    def _analyse(self) -> None:
        """Analyse the graph of bodies, joints, contacts and limits, and tell contacts and limits where their blocks are."""
        contacts, limits = self.scene.contacts, self.scene.limits
        nodes = [contacts[i] for i in range(len(contacts))] + [limits[i] for i in range(len(limits))]
        self.step_system = build_system(self.step_records, contacts=[(int(n["a"]), int(n["b"])) for n in nodes])
        structure, world = self.step_system.structure, len(self.records.bodies) - 1
        first = len(structure.diagonal) - len(nodes)
        for index, node in enumerate(nodes, first):
            node["node"], node["diagonal"] = index, structure.diagonal[index]
            for end, there, back in (("a", "block_na", "block_an"), ("b", "block_nb", "block_bn")):
                body = int(node[end])
                node[there] = structure.block(index, body) if body != world else -1
                node[back] = structure.block(body, index) if body != world else -1

    def _list_pairs(self, stretch: float) -> None:
        """Look for near pairs and grounds again; analyse the graph again if there are new ones."""
        bodies = self.step_records.bodies
        self.places = self.pairs.places(bodies, self.options.dt, stretch)
        near, ground = self.pairs.near(bodies, self.places), self.grounds.near(bodies, self.places)
        listed, old = self.grounds.listed, self.scene.contacts
        needed = len(ground) + sum(self.pairs.slots(key) for key in near)
        if set(near) <= set(self.pairs.keys) and np.isin(ground, listed).all() and len(old) <= 2 * needed + SPARE:
            return
        kept = {key: old[int(p["first"]) : int(p["first"]) + int(p["slots"])] for key, p in zip(self.pairs.keys, self.pairs.shapes.pairs)}
        standing = self.grounds.build(ground, old)
        slots, shapes = self.pairs.build(near, len(standing), self.labels)
        for key, pair in zip(near, shapes.pairs):
            if key in kept:
                begin = int(pair["first"]) - len(standing)
                for name in ("gamma1", "beta1"):
                    slots[name][begin : begin + int(pair["slots"])] = kept[key][name]
        self.scene = self.scene._replace(contacts=np.concatenate([standing, slots]), shapes=shapes)
        if len(self.log) < 4 * len(self.scene.contacts):
            self.log = np.zeros(8 * len(self.scene.contacts), ENTRY)
        self._analyse()

    def _find_general(self) -> bool:
        """Find the features of pairs that need ``coal``, at the knot; returns whether there are any near."""
        pairs = self.scene.shapes.pairs
        if not (len(pairs) and pairs["general"].any()):
            return False
        if self._general is None:
            self._general = GeneralPairs(self.pairs)
        evaluate_knot(self.step_records)
        self._general.update(self.scene.contacts, self.step_records.bodies)
        return True

    def overlaps(self) -> list[tuple[str, float]]:
        """Pairs that overlap at the knot, with their depths (m), deepest first."""
        _copy_state(self.records, self.step_records)
        self._list_pairs(1.0)
        evaluate_knot(self.step_records)
        contacts = self.scene.contacts
        find_features(self.step_records.bodies, contacts, self.scene.shapes)
        self._find_general()
        depth: dict[str, float] = {}
        for i in np.flatnonzero(contacts["used"]):
            at_knot(contacts[i], self.scene, self.step_records.bodies)
            gap = float(contacts["gap0"][i])
            if gap < -OVERLAP:
                label = self.labels[int(contacts["owner"][i])]
                depth[label] = max(depth.get(label, 0.0), -gap)
        return sorted(depth.items(), key=lambda item: -item[1])

    def resolve_overlaps(self) -> None:
        """Move bodies apart until none overlap, in the mass metric, by repeated linearised least-norm steps."""
        bodies = self.records.bodies
        for _ in range(200):
            if not self.overlaps():
                return
            contacts = self.scene.contacts
            for i in np.flatnonzero((contacts["used"] != 0) & (contacts["gap0"] < 0.0)):
                contact = contacts[i]
                at_knot(contact, self.scene, self.step_records.bodies)
                shares = [0.0 if b == len(bodies) - 1 else 1.0 / bodies["mass"][b] for b in (contact["a"], contact["b"])]
                push = (1.02 * max(-float(contact["gap0"]), 0.0) + OVERLAP) * contact["n0"] / sum(shares)
                for end, sign, share in (("a", 1.0, shares[0]), ("b", -1.0, shares[1])):
                    body = int(contact[end])
                    if share > 0.0:
                        for records in (self.records, self.step_records):
                            records.bodies["x"][body] += sign * share * push
            if len(self.mechanism.joints):
                close_loops(self.mechanism, self.records, {})
        pairs = ", ".join(label for label, _ in self.overlaps()[:5])
        raise OverlapError(f"the overlaps of {self.mechanism.name!r} cannot be resolved by moving bodies apart: {pairs}", self.overlaps())

    def _check_start(self) -> None:
        overlaps = self.overlaps()
        if overlaps:
            listed = "; ".join(f"{label} by {depth:.3g} m" for label, depth in overlaps[:5])
            more = f" and {len(overlaps) - 5} more" if len(overlaps) > 5 else ""
            raise OverlapError(
                f"{self.mechanism.name!r} starts with bodies inside one another: {listed}{more}. "
                "Move them apart, or call resolve_overlaps() on the simulation.", overlaps,
            )
        self._fresh = False

    def new_recording(self, knots: int) -> Recording:
        bodies, joints, _ = self.sizes
        self._tape = Tape(np.zeros((knots, bodies, 6)), np.zeros((knots, joints, 6)), np.zeros((knots, bodies, 6)))
        self._pages = []
        return super().new_recording(knots)

    def tape(self, knots: int) -> tuple[Tape, np.ndarray, tuple[str, ...]]:
        """What the run since ``new_recording`` recorded besides poses: forces per knot, the log of contacts, names in it."""
        assert self._tape is not None
        tape = Tape(*(array[:knots] for array in self._tape))
        after = tape.after
        bodies = self.records.bodies[:-1]
        after[-1] = np.concatenate([bodies["p"], bodies["l"]], axis=1)
        log = np.concatenate(self._pages) if self._pages else np.zeros(0, ENTRY)
        return tape, log, tuple(self.labels)

    def opening(self, recording: Recording, knot: int) -> list[np.ndarray]:
        assert self._tape is not None
        return [*super().opening(recording, knot), *(array[knot] for array in self._tape)]

    def state(self) -> tuple[Any, ...]:
        return *super().state(), len(self._pages), self._last

    def restore(self, state: tuple[Any, ...]) -> None:
        super().restore(state[:-2])
        del self._pages[state[-2] :]
        self._last = state[-1]

    def set_inputs(self, wrench: np.ndarray | None, joint: np.ndarray | None) -> None:
        if self._last is not None and self.clock[0] > 0.0:
            wrench = self._last[0] if wrench is None else wrench + self._last[0]
            joint = self._last[1] if joint is None else joint + self._last[1]
        super().set_inputs(wrench, joint)

    def run(self, recording: Recording, inputs: Inputs, first: int, count: int, dt: float) -> int:
        options = self.options
        assert self._tape is not None
        if self._fresh:
            self._check_start()
        _copy_state(self.records, self.step_records)
        done, used, lost = 0, 0, 0
        while done < count:
            system = self.step_system
            stride = 1 if self._find_general() else count - done
            rest = Inputs(inputs.wrench[done:], inputs.joint[done:], inputs.target[done:], inputs.stage)
            outcome, solved, size, used = run_contact_steps(
                self.step_records, self.scene, system.blocks, system.structure.schedule, system.vector, self.places, self.clock, self.base_load,
                recording, self._tape, self.log, used, rest, first + done, stride, dt, self.compliance, options.tolerance,
                PATIENCE * options.max_iterations, options.resting_speed, self.scratch,
            )
            self.outcome = (int(outcome), float(size))
            done += int(solved)
            lost = lost + 1 if solved == 0 else 0
            if outcome == LOG_FULL:
                used = self._turn_page(used)
            elif outcome == LOST and lost < 20:
                self._list_pairs(2.0**lost)
            elif outcome != SOLVED:
                break
        self._turn_page(used)
        _copy_state(self.step_records, self.records)
        if done:
            self._last = self._tape.wrench[first + done - 1].copy(), self._tape.push[first + done - 1].copy()
        return done

    def _turn_page(self, used: int) -> int:
        """Put the log aside; one that was full too early grows."""
        self._pages.append(self.log[:used].copy())
        if used < len(self.log) // 2:
            return 0
        self.log = np.zeros(2 * len(self.log), ENTRY)
        return 0

    def start(self, position: np.ndarray, orientation: np.ndarray, velocity: np.ndarray) -> None:
        super().start(position, orientation, velocity)
        self._last = None
        self._fresh = True
        for name in ("gamma1", "beta1"):
            self.scene.contacts[name] = 0.0
            self.scene.limits[name] = 0.0

    def failure(self, time: float) -> StepFailure:
        error = super().failure(time)
        contact = self.worst_contact()
        return StepFailure(f"{error} The contact furthest from its solution is {contact}.") if contact else error

    def worst_contact(self) -> str:
        """Name of the contact with the largest residual or product of the last try."""
        worst, name = 0.0, ""
        dt = self.options.dt
        for contact in self.scene.contacts[self.scene.contacts["awake"] != 0]:
            miss = abs(float(contact["gap"] / dt - contact["bound"] - contact["s"]))
            product = float(contact["s"] * contact["gamma"] / contact["weight"])
            value = max(miss, np.sqrt(max(product, 0.0)))
            if not value <= worst:
                worst, name = value, f"{self.labels[int(contact['owner'])]!r} (point {int(contact['part'])})"
        return name

    @property
    def solved(self) -> bool:
        return self.outcome[0] == SOLVED


def _copy_state(source: Records, target: Records) -> None:
    """Copy everything but the whole numbers at the head of each record, which say where its blocks are."""
    for a, b, head in ((source.bodies, target.bodies, _HEAD[0]), (source.joints, target.joints, _HEAD[1]), (source.couplings, target.couplings, _HEAD[2])):
        if len(a):
            b.view(np.uint8).reshape(len(b), -1)[:, head:] = a.view(np.uint8).reshape(len(a), -1)[:, head:]


def _head(dtype: np.dtype) -> int:
    """Bytes before the first number that is not whole."""
    return min(int(offset) for kind, offset, *_ in dtype.fields.values() if kind.base == np.float64)  # type: ignore[union-attr]


_HEAD = tuple(_head(dtype) for dtype in (BODY, JOINT, COUPLING))
