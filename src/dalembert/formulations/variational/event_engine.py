"""Variational runs whose impact times are resolved: a step ends where something strikes, velocities jump there, and the next begins.

A step in which a flight ends is divided at its end, which is the root of the gap as a function of the step's length; one in which a slide
ends is divided where its speed is zero. There the momenta are closed by half a kick to those of the knot, the impact changes them (``blows``), and
the run begins anew.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from dalembert.contact.flights import CLOSED, PAST, SLIDE_ON, STAY, STILL, UP_TO, next_slide_end
from dalembert.contact.records import ENTRY
from dalembert.errors import GradientError, StepFailure
from dalembert.formulations.derivatives import Adjoint, Cotangents, Forward, InputBars
from dalembert.formulations.engine import Inputs, KernelCall, Source
from dalembert.formulations.maximal.checks import refuse_surfaces
from dalembert.formulations.maximal.kinks import Kink
from dalembert.formulations.maximal.substeps import Cover
from dalembert.formulations.maximal.tape import Step
from dalembert.formulations.maximal.touching_tape import TouchingTape
from dalembert.formulations.variational.blows import OPEN, Blow, Closed, blows, halt
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
#: a slide that is as slow as this part of its speed before the step is at its end
HALTED = 1e-5


class Struck(NamedTuple):
    """What was closed when something struck: numbers of contacts and of limits' ends in the scene."""

    contacts: np.ndarray
    ends: list[tuple[int, int]]


class Slider(NamedTuple):
    """A contact, or a direction with dry friction, whose slide may be at its end within a step."""

    contact: int  # its number in the scene, -1 where it is a limit
    limit: int
    speed: float  # m/s, rad/s, before the step
    way: np.ndarray  # (3,) direction of its slide (world), or a sign


class _Unsolved(Exception):
    """A step on the way to an event has no solution."""


class EventEngine(ContactEngine):
    """``ContactEngine`` with ``events="exact"``."""

    def __init__(self, mechanism: Mechanism, options: Variational) -> None:
        super().__init__(mechanism, options)
        refuse_surfaces(mechanism, 'Variational with events="exact"')
        self.problem = ""
        #: whether the last step ended where a flight or a slide did, and these slides
        self.ended, self.halted = False, list[Slider]()
        self._go(UP_TO)

    def _go(self, events: int) -> None:
        self.contact_options = self.contact_options._replace(events=events)

    def kernel_call(self, numbers: np.ndarray, recording: Any, source: Source, count: int, dt: float) -> KernelCall | None:
        """There is none: Python looks for events between steps."""
        return None

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
                strikes, self.ended, self.halted = strikes + 1, False, []
                self._strike(cover, start)
            elif self.outcome[0] == MET:
                found = self._meet(cover, start, length)
                if found is None:
                    part *= 0.5
                else:
                    start, part, strikes = 1.0 if found == 1.0 - start else start + found, 1.0, strikes + 1
                    if self.ended:
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

    def _meet(self, cover: Cover, start: float, longest: float) -> float | None:
        """Make the step up to an event, of at most ``longest`` (part of the interval); its length, or None where none is solved."""
        sliders = self._sliders(cover, longest)
        self.ended = True
        found = self._find(cover, start, longest, sliders)
        if found is None and sliders:  # slides that turn, and do not end
            self._go(SLIDE_ON)
            solved = cover.step(start, longest)
            self._go(UP_TO)
            if solved:
                cover.keep()
                self.ended = False
                return longest
            if self.outcome[0] == MET:
                found = self._find(cover, start, longest, [])
        return found

    def _sliders(self, cover: Cover, length: float) -> list[Slider]:
        """What ends its slide in the step just tried, of such a ``length`` (part of the interval)."""
        state, scene, work = self.view(cover.numbers), self.scene, self.graph.work
        dt, before, count = length * cover.dt, float(state.clock[0]), len(self.scene.contacts)
        v, found, node = self._velocity(state).ravel(), [], -1
        while True:
            node = next_slide_end(self.model, work, scene, dt / (before + dt), before == 0.0, node + 1)
            if node < 0:
                return found
            if node < count:
                way = self._tangents(node) @ v @ scene.contacts["Ga"][node, 1:, :3]
                found.append(Slider(node, -1, float(np.linalg.norm(way)), way / np.linalg.norm(way)))
            else:
                rate = float(self._limit_row(node - count) @ v)
                found.append(Slider(-1, node - count, abs(rate), np.array([np.sign(rate), 0.0, 0.0])))

    def _tangents(self, contact: int) -> np.ndarray:
        """(2, 6n) rows of a contact's tangents."""
        one = self.scene.contacts[contact]
        return np.array([self._row(int(one["a"]), one["Ga"][k], int(one["b"]), one["Gb"][k]) for k in (1, 2)])

    def _limit_row(self, limit: int) -> np.ndarray:
        one = self.scene.limits[limit]
        return self._row(int(one["a"]), one["Ga"], int(one["b"]), one["Gb"])

    def _slide(self, slider: Slider, v: np.ndarray) -> tuple[float, float]:
        """(speed of a slide along its way, its size) at the knot in the scene with velocities v (6n,); infinite where it does not touch."""
        if slider.contact < 0:
            rate = float(self._limit_row(slider.limit) @ v)
            return rate * float(slider.way[0]), abs(rate)
        contacts = self.scene.contacts
        if contacts["used"][slider.contact] == 0 or contacts["gap0"][slider.contact] > CLOSED:
            return np.inf, np.inf
        sliding = self._tangents(slider.contact) @ v
        return float(sliding @ (contacts["Ga"][slider.contact, 1:, :3] @ slider.way)), float(np.linalg.norm(sliding))

    def _find(self, cover: Cover, start: float, longest: float, sliders: list[Slider]) -> float | None:
        """Make the step that ends at the first event, at most ``longest`` (part of the interval); its length, or None where none is solved."""
        before, seen = cover.keep_state(), {}
        open_at_first = self._least_flight("gap0")
        if not self._least_flight() < 0.0:  # slides alone
            open_at_first = np.inf

        def gap(length: float) -> float:
            if length not in seen:
                if not cover.step(start, length):
                    cover.restore(before)
                    raise _Unsolved
                seen[length] = self._least_flight()
                if sliders:
                    v = self._stand(cover, start + length)[2].ravel()
                    seen[length] = min(seen[length], *(self._slide(slider, v)[0] for slider in sliders))
                cover.restore(before)
            return seen[length]

        self._go(PAST)
        try:
            last, shortest = longest, 0.0
            if open_at_first > CLOSED:
                seen[0.0] = min(open_at_first, *(slider.speed for slider in sliders)) if sliders else open_at_first
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
            self.halted, flying = [], self._least_flight()
            if sliders:
                v = self._stand(cover, start + length)[2].ravel()
                self.halted = [slider for slider in sliders if self._slide(slider, v)[1] < HALTED * slider.speed]
                if flying > CLOSED and not self.halted:
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
        """The impact at the state's knot, at a part ``start`` of the interval, or the end of slides; the state begins anew after it."""
        inputs, rates, before = self._stand(cover, start)
        struck = self.struck()
        closed = self.closed(struck)
        found = blows(closed, before.ravel(), max(self.options.resting_speed, STILL), self.options.impacts)
        slides = self.ended and self.halted and not found
        if slides:
            struck, who = self._stopped(struck)
            found = [halt(self.closed(struck), who, before.ravel())]
        if self.tape is not None:
            self._tape_event(cover, start, inputs, rates, struck, found, bool(slides))
        self.begin_anew(cover.numbers, found[-1].after.reshape(-1, 6) if found else before)
        if start in (0.0, 1.0):
            self.record(cover.numbers, cover.recording, cover.knot + int(start))
        if not slides:
            recording: Any = cover.recording
            recording.pages.append(self._blow_log(struck, found, cover.knot + 1, cover.dt))

    def _stand(self, cover: Cover, start: float) -> tuple[Inputs, np.ndarray, np.ndarray]:
        """Rows at the state's knot, at a part ``start`` of the interval, into work and scene; returns inputs, rates of driven directions and velocities (n, 6) there."""
        begin, events = min(start, 1.0 - REST), self.contact_options.events
        inputs = cover.source.part(cover.knot, begin, 1.0 - begin)
        self._go(STAY)
        self.run(cover.numbers, cover.recording, inputs, cover.knot, 1, (1.0 - begin) * cover.dt)
        self._go(events)
        rates = (inputs.target[1] - inputs.target[0]) / ((1.0 - begin) * cover.dt)
        inputs = self.filled(inputs)
        return inputs, rates, self.struck_velocity(cover.numbers, inputs, rates)

    def _stopped(self, struck: Struck) -> tuple[Struck, np.ndarray]:
        """What is closed, with the directions whose slides end among its ends of limits; and which of it comes to a halt."""
        ends = [(slider.limit, 0) for slider in self.halted if slider.contact < 0]
        which = [int(np.flatnonzero(struck.contacts == slider.contact)[0]) for slider in self.halted if slider.contact >= 0]
        first = len(struck.contacts) + len(struck.ends)
        return Struck(struck.contacts, [*struck.ends, *ends]), np.array([*which, *range(first, first + len(ends))])

    def new_tape(self, steps: int) -> TouchingTape:
        """Room for what some steps leave behind; impacts have no derivatives by the bounds of bearings."""
        borne = next((joint.name for joint in self.mechanism.joints if joint.type.bearing is not None), None)
        if borne is not None:
            raise GradientError(
                f"runs of {self.mechanism.name!r} with events=\"exact\" cannot be differentiated yet: joint {borne!r} has a bearing, whose friction follows its load; "
                "use friction= (a bound), or steps without events"
            )
        return super().new_tape(steps)

    def _tape_event(
        self, cover: Cover, start: float, inputs: Inputs, rates: np.ndarray, struck: Struck, found: list[Blow], slides: bool,
    ) -> None:
        """Write an impact, or the end of slides, into the tape. Of the closed, the one that ended a flight is the one that closes fastest."""
        assert self.tape is not None
        if len(self.model.driven):
            raise GradientError(f"runs of {self.mechanism.name!r} with events=\"exact\" and prescribed motion cannot be differentiated yet")
        timed = self.ended and start < 1.0
        rate = self.closed(struck).rows[:, 0] @ self.struck_velocity(cover.numbers, inputs, rates).ravel()
        ended, way = int(np.argmin(rate)), None
        if slides:
            ended, slider = int(found[0].who[0]), min(self.halted, key=lambda slider: slider.contact < 0)
            way = slider.way if slider.contact < 0 else np.array([0.0, *(self.scene.contacts["Ga"][slider.contact, 1:, :3] @ slider.way)])
        self.tape.events.append(Event(
            self.tape.count, cover.knot, start, timed, self._places.copy(), cover.numbers.copy(), inputs, rates, struck, ended, way, found,
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
        """The rows of what is closed, in work and scene, and the bodies' inertia and joints, of the engine's model or another one."""
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
        model = self.model if model is None else model
        return Closed(rows, restitution, friction, self.mass_matrix(model), self.held_rows(model))

    def _row(self, a: int, row_a: np.ndarray, b: int, row_b: np.ndarray) -> np.ndarray:
        row = np.zeros((self.sizes[0] + 1, 6))
        row[a] += row_a
        row[b] += row_b
        return row[:-1].ravel()

    def held_rows(self, model: Model) -> np.ndarray:
        """(h, 6n) rows of what the joints hold, at the knot in the work."""
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
        return np.array(held).reshape(-1, 6 * n)

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
            for blow in event.blows if event.way is None else ():
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
