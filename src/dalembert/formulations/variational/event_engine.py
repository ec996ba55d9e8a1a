"""Variational runs whose impact times are resolved: a step ends where something strikes, velocities jump there, and the next begins.

A step in which a flight ends is divided at its end, which is the root of the gap as a function of the step's length. There the momenta
are closed by half a kick to those of the knot, the impact changes them (``blows``), and the run begins anew.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from dalembert.contact.flights import CLOSED, PAST, STAY, STILL, UP_TO
from dalembert.contact.records import ENTRY
from dalembert.errors import GradientError, StepFailure
from dalembert.formulations.derivatives import Adjoint, Cotangents, Forward, InputBars
from dalembert.formulations.engine import Inputs, Source
from dalembert.formulations.maximal.kinks import Kink
from dalembert.formulations.maximal.substeps import Cover
from dalembert.formulations.maximal.tape import Step
from dalembert.formulations.maximal.touching_tape import TouchingTape
from dalembert.formulations.variational.blows import OPEN, Blow, Closed, blows
from dalembert.formulations.variational.contact_engine import ContactEngine
from dalembert.formulations.variational.event_maps import Event
from dalembert.formulations.variational.options import Variational
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.pose import joint_rates
from dalembert.model.records import CONSTRAINT, Model
from dalembert.solvers.outcomes import MET, STRIKES

#: most impacts between two knots
CROWD = 10_000
#: impulses below this part of the largest of an impact may as well be none
UNSURE = 1e-6
#: an impact so shortly before the end of an interval (part of it) is one at its end
REST = 1e-9


class Struck(NamedTuple):
    """What was closed when something struck: numbers of contacts and of limits' ends in the scene."""

    contacts: np.ndarray
    ends: list[tuple[int, int]]


class _Unsolved(Exception):
    """A step on the way to an event has no solution."""


class EventEngine(ContactEngine):
    """``ContactEngine`` with ``events="exact"``."""

    def __init__(self, mechanism: Mechanism, options: Variational) -> None:
        super().__init__(mechanism, options)
        self.problem = ""
        #: whether the last step ended where a flight did
        self.ended = False
        self._go(UP_TO)

    def _go(self, events: int) -> None:
        self.contact_options = self.contact_options._replace(events=events)

    def advance(self, numbers: np.ndarray, recording: Any, source: Source, first: int, count: int, dt: float) -> int:
        self.check_limits(numbers)
        if self.view(numbers).clock[0] == 0.0:
            self._check_start(numbers)
        self.whole, done = dt, 0
        while done < count:
            knot = first + done
            made = self.run(numbers, recording, source.window(knot, count - done), knot, count - done, dt)
            if self.tape is not None:
                self.tape.steps += [Step(knot + i, 0.0, 1.0) for i in range(made)]
            done += made
            if done < count:
                if not self._cover(Cover(self, numbers, recording, source, first + done, dt)):
                    break
                done += 1
        return done

    def _cover(self, cover: Cover) -> bool:
        """Cover an interval up to each event in turn; False, and the state as it was, where that is not possible."""
        whole, done, self.problem = cover.keep_state(), False, ""
        try:
            done = self._cover_parts(cover)
        except StepFailure as failure:
            self.problem = str(failure)
        if done:
            cover.close()
        else:
            cover.restore(whole)
        return done

    def _cover_parts(self, cover: Cover) -> bool:
        start, part, strikes = 0.0, 1.0, 0
        while start < 1.0:
            length = (1.0 - start) * part
            if cover.step(start, length):
                cover.keep()
                start, part = 1.0 if part == 1.0 else start + length, 1.0
            elif self.outcome[0] == STRIKES:
                strikes, self.ended = strikes + 1, False
                self._strike(cover, start)
            elif self.outcome[0] == MET:
                found = self._find(cover, start, length)
                if found is None:
                    part *= 0.5
                else:
                    start, part, strikes = 1.0 if found == 1.0 - start else start + found, 1.0, strikes + 1
                    self.ended = True
                    self._strike(cover, start)
            else:
                part *= 0.5
            if strikes >= CROWD:
                raise StepFailure(f"more than {CROWD} impacts follow one another: raise resting_speed, below which nothing bounces")
            if part < 0.5**self.options.max_halvings:
                return False
        return True

    # ---- when

    def _least_flight(self, name: str = "gap") -> float:
        """The least gap (m, rad) of all that flies, at the end of the step just tried or (``gap0``) at its start."""
        contacts, limits = self.scene.contacts, self.scene.limits
        gaps = [contacts[name][(contacts["used"] == 1) & (contacts["awake"] == 0)]]
        at = limits["c" if name == "gap" else "c0"]
        for side, sign in ((0, 1.0), (1, -1.0)):
            gaps.append((sign * (at - limits["end"][:, side]))[limits["awake"][:, side] == 0])
        return float(min((part.min(initial=np.inf) for part in gaps), default=np.inf))

    def _find(self, cover: Cover, start: float, longest: float) -> float | None:
        """Make the step that ends at the first event, at most ``longest`` (part of the interval); its length, or None where none is solved."""
        before, seen = cover.keep_state(), {}
        open_at_first = self._least_flight("gap0")

        def gap(length: float) -> float:
            if length not in seen:
                if not cover.step(start, length):
                    cover.restore(before)
                    raise _Unsolved
                seen[length] = self._least_flight()
                cover.restore(before)
            return seen[length]

        self._go(PAST)
        try:
            last, shortest = longest, 0.0
            if open_at_first > CLOSED:
                seen[0.0] = open_at_first
            else:  # it opens at first: the shortest step after which it is open
                shortest = 0.5 * last
                while gap(shortest) <= 0.0:
                    last, shortest = shortest, 0.5 * shortest
                    if shortest < 1e-12 * longest:
                        return None
            if gap(last) >= 0.0:
                return None
            length = float(brentq(gap, shortest, last, xtol=1e-16, rtol=1e-15))  # type: ignore[arg-type]
            if 1.0 - start - length < REST:
                length = 1.0 - start
            if not cover.step(start, length):
                raise _Unsolved
            if self.overlaps(cover.numbers):  # shapes met before the features that stand for them
                cover.restore(before)
                raise _Unsolved
            cover.keep()
            return length
        except _Unsolved:
            return None
        finally:
            self._go(UP_TO)

    # ---- what

    def _strike(self, cover: Cover, start: float) -> None:
        """The impact at the state's knot, at a part ``start`` of the interval; the state begins anew after it."""
        begin = min(start, 1.0 - REST)
        inputs = cover.source.part(cover.knot, begin, 1.0 - begin)
        self._go(STAY)
        self.run(cover.numbers, cover.recording, inputs, cover.knot, 1, (1.0 - begin) * cover.dt)  # rows into work and scene
        self._go(UP_TO)
        rates = (inputs.target[1] - inputs.target[0]) / ((1.0 - begin) * cover.dt)
        inputs = self.filled(inputs)
        before = self.struck_velocity(cover.numbers, inputs, rates)
        struck = self.struck()
        found = blows(self.closed(struck), before.ravel(), max(self.options.resting_speed, STILL), self.options.impacts)
        if self.tape is not None:
            self._tape_event(cover, start, inputs, rates, struck, found)
        self.begin_anew(cover.numbers, found[-1].after.reshape(-1, 6) if found else before)
        if start in (0.0, 1.0):
            self.record(cover.numbers, cover.recording, cover.knot + int(start))
        recording: Any = cover.recording
        recording.pages.append(self._blow_log(struck, found, cover.knot + 1, cover.dt))

    def _tape_event(self, cover: Cover, start: float, inputs: Inputs, rates: np.ndarray, struck: Struck, found: list[Blow]) -> None:
        """Write an impact into the tape. Of the closed, the one that ended a flight is the one that closes fastest."""
        assert self.tape is not None
        if len(self.model.driven):
            raise GradientError(f"runs of {self.mechanism.name!r} with events=\"exact\" and prescribed motion cannot be differentiated yet")
        timed = self.ended and start < 1.0
        rate = self.closed(struck).rows[:, 0] @ self.struck_velocity(cover.numbers, inputs, rates).ravel()
        self.tape.events.append(Event(
            self.tape.count, cover.knot, start, timed, self._places.copy(), cover.numbers.copy(), inputs, rates, struck, int(np.argmin(rate)), found,
        ))

    def struck_velocity(self, numbers: np.ndarray, inputs: Inputs, rates: np.ndarray) -> np.ndarray:
        """(n, 6) just before an impact at a state's knot: half a kick on, as the joints allow. ``rates`` of driven directions."""
        if self.view(numbers).clock[0] == 0.0:
            return self.start_velocity(numbers)
        return self.knot(numbers, inputs, rates).velocity

    def filled(self, inputs: Inputs) -> Inputs:
        """Inputs of one step with zeros where there are none."""
        bodies, joints, couplings = self.sizes
        wrench, joint, tension = (
            table[:1] if len(table) else np.zeros((1, *shape))
            for table, shape in ((inputs.wrench, (bodies, 6)), (inputs.joint, (joints, 6)), (inputs.tension, (couplings,)))
        )
        return inputs._replace(wrench=wrench, joint=joint, tension=tension, target=inputs.target[:1])

    def struck(self) -> Struck:
        """What is closed in the scene."""
        contacts, limits = self.scene.contacts, self.scene.limits
        ends = [
            (i, side) for i, limit in enumerate(limits) for side, sign in ((0, 1.0), (1, -1.0))
            if sign * (float(limit["c0"]) - float(limit["end"][side])) <= CLOSED
        ]
        return Struck(np.flatnonzero((contacts["used"] == 1) & (contacts["gap0"] <= CLOSED)), ends)

    def closed(self, struck: Struck, model: Model | None = None) -> Closed:
        """The rows of what is closed, in work and scene, and the bodies' mobility, of the engine's model or another one."""
        contacts, limits = self.scene.contacts[struck.contacts], self.scene.limits
        count = len(contacts) + len(struck.ends)
        rows, friction, restitution = np.zeros((count, 3, 6 * self.sizes[0])), np.zeros(count), np.zeros(count)
        for i, contact in enumerate(contacts):
            for k in range(3):
                rows[i, k] = self._row(int(contact["a"]), contact["Ga"][k], int(contact["b"]), contact["Gb"][k])
            friction[i], restitution[i] = contact["friction"], contact["restitution"]
        for i, (index, side) in enumerate(struck.ends, len(contacts)):
            limit = limits[index]
            rows[i, 0] = (1.0 if side == 0 else -1.0) * self._row(int(limit["a"]), limit["Ga"], int(limit["b"]), limit["Gb"])
            restitution[i] = limit["restitution"]
        return Closed(rows, restitution, friction, self.mobility(self.model if model is None else model))

    def _row(self, a: int, row_a: np.ndarray, b: int, row_b: np.ndarray) -> np.ndarray:
        row = np.zeros((self.sizes[0] + 1, 6))
        row[a] += row_a
        row[b] += row_b
        return row[:-1].ravel()

    def mobility(self, model: Model) -> np.ndarray:
        """(6n, 6n) velocities per impulse at the knot in the work, with what the joints hold."""
        n, work = self.sizes[0], self.graph.work
        held = [
            self._row(int(joint["parent"]), at["Gp"][k], int(joint["child"]), at["Gc"][k])
            for joint, at in zip(model.joints, work.joints) for k in range(int(joint["locks"]))
        ]
        for coupling in model.couplings:
            if coupling["law"] == CONSTRAINT:
                row = np.zeros((n + 1, 6))
                for e in range(int(coupling["first"]), int(coupling["first"] + coupling["ends"])):
                    row[int(model.ends[e])] += work.ends["G"][e]
                held.append(row[:-1].ravel())
        N = np.linalg.inv(self.mass_matrix(model))
        if held:
            J = np.array(held)
            B = N @ J.T
            N = N - B @ np.linalg.pinv(J @ B, rcond=1e-12, hermitian=True) @ B.T
        return N

    def mass_matrix(self, model: Model) -> np.ndarray:
        """(6n, 6n) of the bodies, with inertias reflected along the joints' directions in the work."""
        n = self.sizes[0]
        M = np.zeros((6 * n, 6 * n))
        for i in range(n):
            M[6 * i : 6 * i + 3, 6 * i : 6 * i + 3] = model.bodies["mass"][i] * np.eye(3)
            M[6 * i + 3 : 6 * i + 6, 6 * i + 3 : 6 * i + 6] = model.bodies["inertia"][i].reshape(3, 3)
        for joint, at in zip(model.joints, self.graph.work.joints):
            for k in range(int(joint["locks"]), int(joint["rows"])):
                row = self._row(int(joint["parent"]), at["Gp"][k], int(joint["child"]), at["Gc"][k])
                M += joint["armature"][int(joint["row_direction"][k])] * np.outer(row, row)
        return M

    def begin_anew(self, numbers: np.ndarray, velocity: np.ndarray) -> None:
        """A start at the state's knot with velocities (n, 6)."""
        state, momentum = self.view(numbers), self.momentum_of(velocity)
        rates = np.zeros((self.sizes[1], 6))
        joint_rates(self.model, self.placement(numbers).work, np.concatenate([velocity, np.zeros((1, 6))]), rates)
        state.bodies["p"], state.bodies["l"], state.bodies["along"] = momentum[:, :3], momentum[:, 3:], 0.0
        state.bodies["v1"], state.bodies["w1"] = velocity[:, :3], velocity[:, 3:]
        state.joints["spin"] = self.model.joints["armature"] * rates
        state.clock[:] = 0.0

    def _blow_log(self, struck: Struck, found: list[Blow], knot: int, dt: float) -> np.ndarray:
        """What struck as entries of the log of contacts, with impulses as mean forces over a step."""
        log, contacts = np.zeros(len(struck.contacts), ENTRY), self.scene.contacts[struck.contacts]
        impulse = np.zeros((len(struck.contacts) + len(struck.ends), 3))
        for blow in found:
            impulse[blow.who] += blow.impulse
        for name in ("owner", "part", "a", "b"):
            log[name] = contacts[name]
        log["knot"], log["gap"], log["point"], log["normal"] = knot, contacts["gap0"], contacts["p0"], contacts["n0"]
        log["normal_force"] = impulse[: len(contacts), 0] / dt
        log["friction_force"] = np.einsum("ik,ikc->ic", impulse[: len(contacts), 1:], contacts["Ga"][:, 1:, :3]) / dt
        return log

    # ---- derivatives

    def relaxed(self, tape: TouchingTape, smoothing: float) -> TouchingTape:
        raise GradientError("gradient_smoothing is for runs without events: impacts that have a moment of their own are not smoothed")

    def kinks(self, tape: TouchingTape) -> list[Kink]:
        found = super().kinks(tape)
        for event in tape.events:
            for blow in event.blows:
                push = blow.impulse[:, 0]
                if np.any((blow.kind != OPEN) & (push < UNSURE * push.max(initial=0.0))):
                    found.append(Kink(event.knot, "contacts strike together, of which some are not needed"))
        return found

    def adjoint(self, recording: Any, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, cotangents: Cotangents) -> Adjoint:
        from dalembert.formulations.variational.event_adjoint import EventAdjoint

        return EventAdjoint(self, recording, inputs, knots, dt, coordinates, cotangents)

    def forward(
        self, recording: Any, inputs: Inputs, knots: int, dt: float, coordinates: np.ndarray, models: Sequence[Any], step: float, change: InputBars,
    ) -> Forward:
        from dalembert.formulations.variational.event_forward import EventForward

        return EventForward(self, recording, inputs, knots, dt, coordinates, models, step, change)

    # ---- failures

    def failure(self, time: float, dt: float) -> StepFailure:
        if self.problem:
            return StepFailure(f"the step at t = {time:.6g} s of {self.mechanism.name!r} has no solution: {self.problem}")
        return super().failure(time, dt)
