"""Inputs of a run: what controllers, targets and functions of time say, checked and laid out per step."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dalembert.checks import HUGE, shown
from dalembert.checks import numbers as numbers_rule
from dalembert.errors import ControlError, ModelError
from dalembert.formulations.engine import Engine, Inputs, Samples
from dalembert.mechanism.forces import Path
from dalembert.mechanism.mechanism import Body, JointElement, Mechanism
from dalembert.simulation.targets import (
    Motion,
    Table,
    Target,
    asked,
    follow_turns,
    target_coordinates,
    target_derivative,
    turns_freely,
)

#: largest change of a driven angle within a step, rad
LARGEST_TURN = 1.5
#: what an input must be
finite = numbers_rule()
#: a force, wrench or tension, or a function of time (s) that gives it
Input = ArrayLike | Callable[[float], ArrayLike]


class InputTables:
    """Inputs of every step of a run, and the targets of the driven joints at every knot and between."""

    def __init__(
        self, mechanism: Mechanism, engine: Engine, targets: Mapping[str, Target], inputs: Mapping[str, Input], held: np.ndarray, steps: int,
        times: Callable[[Any], Any], controlled: bool,
    ) -> None:
        """``held`` (joints, 6): targets at the first knot; ``times``: the times (s) of numbers of steps from there.

        ``inputs``: by name, until a controller says otherwise.
        """
        self.mechanism, self.times, self.end = mechanism, times, steps
        self.nodes, self.one_start, self.input_node = engine.nodes, engine.one_start, engine.input_node
        self.exact_motion = getattr(engine, "exact_motion", False)
        controlled = controlled or bool(inputs)
        joints = len(mechanism.joints)
        forced = controlled and any("force" in j.type.drive for j in mechanism.joints)  # type: ignore[operator]
        pulled = controlled and any(path.drive is not None for path in mechanism.paths)
        #: all inputs of the last step, one after the other; those of a single step are written right into it
        self.flat = np.zeros(input_count(mechanism))
        tables = (np.zeros((steps, *part.shape[1:])) for part in parts(mechanism, self.flat)) if steps > 1 else parts(mechanism, self.flat)
        self.wrench, self.joint, self.tension = (table if there else table[:0] for table, there in zip(tables, (controlled, forced, pulled)))
        self._still = np.zeros((2, joints, 6)), np.zeros((1, len(self.nodes), joints, 6))
        self._places: dict[str, tuple[int, int]] = {}
        #: functions of time by step, and by name: those of a whole run are in every step
        self.timed: dict[int, dict[str, Callable[[float], ArrayLike]]] = {}
        for step in range(steps if inputs else 0):
            read_inputs(inputs, self, step)
        #: moves targets (joints, 6) onto what the joints allow, once that has turned out to be needed; by how much, per knot
        self.agree: Callable[[np.ndarray], tuple[np.ndarray, float]] | None = None
        self.corrections = np.full(steps + 1, np.nan)
        self.functions: dict[str, Callable[[float], ArrayLike]] = {}
        self.driven = any(j.type.follows for j in mechanism.joints)
        if self.driven:
            self.target = np.repeat(held[None], steps + 1, axis=0)
            knots = times(np.arange(steps + 1))
            for name, target in targets.items():
                self._follow(mechanism[name], target, knots)
        else:
            self.target = np.zeros((1, joints, 6))

    def _follow(self, element: JointElement, target: Target, times: np.ndarray) -> None:
        """Write a joint's targets at the knots, after checking them."""
        free = element.type.freedom
        if isinstance(target, Table) and not (target.start <= times[0] + 1e-9 and times[-1] - 1e-9 <= target.end):
            raise ModelError(
                f"the table of targets of joint {element.name!r} covers {target.start:g} to {target.end:g} s, "
                f"the run goes from {times[0]:g} to {times[-1]:g} s"
            )
        if callable(target):
            self.functions[element.name] = target
            values = np.array([target_coordinates(element, target(t), t) for t in times])
            if turns_freely(element):
                values[:, -3:] = follow_turns(values[:, -3:])
            self.target[:, element.index, :free] = values
        else:
            self.target[1:, element.index, :free] = target_coordinates(element, target, times[0])
        drives: Any = element.type.drive
        turning = [
            i for i, (kind, _) in enumerate(element.type.directions) if drives[i] == "motion" and kind in ("turn", "first", "second")
        ]
        jumps = np.abs(np.diff(self.target[:, element.index][:, turning], axis=0))
        if jumps.size and jumps.max() > LARGEST_TURN:
            when = times[int(np.argmax(jumps.max(axis=1)))]
            raise ModelError(f"the target of joint {element.name!r} jumps by {jumps.max():.3g} rad in the step at t = {when:.6g} s, more than a step can follow")

    def between(self, step: int, fractions: ArrayLike) -> np.ndarray:
        """(times, joints, 6) targets within a step: functions at the time itself, values on the way from knot to knot."""
        shares = np.asarray(fractions, dtype=float)
        first, last = self.target[step], self.target[step + 1]
        targets = first + shares[:, None, None] * (last - first)
        for name, function in self.functions.items():
            element = self.mechanism[name]
            for row, share in zip(targets, shares):
                time = self.times(step + share)
                row[element.index, : element.type.freedom] = target_coordinates(element, function(time), time)
        if self.agree is not None:
            targets = np.array([self.agree(row)[0] for row in targets]).reshape(targets.shape)
        return targets

    def _settle_knots(self, first: int, last: int) -> None:
        """Make the targets at some knots agree."""
        for knot in range(first, last + 1):
            if self.agree is not None and np.isnan(self.corrections[knot]):
                self.target[knot], self.corrections[knot] = self.agree(self.target[knot])

    def _forces(self, first: int, count: int, fraction: float) -> tuple[np.ndarray, ...]:
        """Wrenches, joint forces and tensions of some steps, functions of time at a fraction of each."""
        tables = self.wrench[first : first + count], self.joint[first : first + count], self.tension[first : first + count]
        if not self.timed:
            return tables
        wanted = [step for step in range(first, first + count) if step in self.timed]
        if wanted:
            tables = tuple(table.copy() for table in tables)
            for step in wanted:
                time = self.times(step + fraction)
                for name, function in self.timed[step].items():
                    put_input(self.mechanism, name, function(time), tables, step - first)
        return tables

    def window(self, first: int, count: int) -> Inputs:
        """Inputs of ``count`` whole steps from step ``first``."""
        return self._inputs(first, count, self._forces(first, count, self.input_node))

    def _inputs(self, first: int, count: int, forces: tuple[np.ndarray, ...]) -> Inputs:
        wrench, joint, tension = forces
        if not self.driven:
            target, stage = self._still
            return Inputs(wrench, joint, target if count == 1 else np.zeros((count + 1, *target.shape[1:])), stage, tension)
        self._settle_knots(first + 1, first + count)
        staged = 1 if self.one_start or not self.nodes else count
        stage = np.stack([self.between(first + i, self.nodes) for i in range(staged)])
        return Inputs(wrench, joint, self.target[first : first + count + 1], stage, tension)

    def part(self, step: int, start: float, length: float) -> Inputs:
        """Inputs of a part of a step, ``start`` and ``length`` as fractions of it."""
        whole = self._inputs(step, 1, self._forces(step, 1, start + length * self.input_node))
        if not self.driven:
            return whole
        target = self.between(step, [start, start + length])
        stage = self.between(step, start + length * np.array(self.nodes))[None]
        return whole._replace(target=target, stage=stage)

    def samples(self, first: int, count: int, fractions: Sequence[float]) -> Samples:
        """Inputs of ``count`` steps at some fractions of each, and targets with their rates and accelerations."""
        steps = range(first, first + count)
        timed = any(step in self.timed for step in steps)
        if timed:
            rows = [self._forces(step, 1, fraction) for step in steps for fraction in fractions]
            wrench, joint, tension = (np.concatenate(tables) for tables in zip(*rows))
        else:
            wrench, joint, tension = self._forces(first, count, 0.0)
        motion = np.zeros((0, len(fractions), 3, *self.target.shape[1:]))
        if self.driven:
            self._settle_knots(first + 1, first + count)
            motion = np.stack([self._motion(step, fractions) for step in steps])
        return Samples(wrench, joint, tension, motion, len(fractions) if timed else 0)

    def _motion(self, step: int, fractions: Sequence[float]) -> np.ndarray:
        """(fractions, 3, joints, 6) targets within a step, their rates and accelerations."""
        motion = np.zeros((len(fractions), 3, *self.target.shape[1:]))
        motion[:, 0] = self.between(step, fractions)
        length = self.times(step + 1) - self.times(step)
        motion[:, 1] = (self.target[step + 1] - self.target[step]) / length
        for name, function in self.functions.items():
            element = self.mechanism[name]
            for row, share in zip(motion, fractions):
                for order in (1, 2):
                    row[order, element.index, : element.type.freedom] = target_derivative(element, function, self.times(step + share), order)
        return motion

    def only(self, step: int) -> InputTables:
        """The inputs of one step, as a run of that step alone has them."""
        one, times = copy(self), self.times
        one.times, one.end = lambda steps: times(step + steps), 1
        one.wrench, one.joint, one.tension = (table[step : step + 1] for table in (self.wrench, self.joint, self.tension))
        one.flat = self.at(step)
        one.target = self.target[step : step + 2] if self.driven else self.target
        one.corrections = self.corrections[step : step + 2]
        one.timed = {0: self.timed[step]} if step in self.timed else {}
        return one

    def recorded(self, steps: int) -> Inputs:
        """Inputs of the first ``steps`` steps, for reading the run afterwards."""
        target = self.target[: steps + 1] if self.driven else np.zeros((steps + 1, *self.target.shape[1:]))
        wrench, joint, tension = self._forces(0, steps, 0.0)
        return Inputs(wrench, joint, target, self._known_motion(steps), tension)

    def _known_motion(self, steps: int) -> np.ndarray:
        """(knots, 2, joints, 6) rates and accelerations of targets that are known better than by their differences, NaN elsewhere.

        Of length zero where there are none.
        """
        names = [name for name, function in self.functions.items() if self.exact_motion or isinstance(function, Motion)]
        names = [name for name in names if not turns_freely(self.mechanism[name])]
        if self.agree is not None or not names:
            return np.zeros((0, 0, *self.target.shape[1:]))
        motion = np.full((steps + 1, 2, *self.target.shape[1:]), np.nan)
        for name in names:
            element, function = self.mechanism[name], self.functions[name]
            for knot, time in enumerate(self.times(np.arange(steps + 1))):
                for order in (1, 2):
                    motion[knot, order - 1, element.index, : element.type.freedom] = target_derivative(element, function, time, order)
        return motion

    def at(self, step: int) -> np.ndarray:
        """Wrenches (n, 6), joint forces (joints, 6) and tensions (couplings,) at the end of a step, one after the other."""
        found = self.flat.copy()
        if self.end > 1 or self.timed:
            for part, table in zip(parts(self.mechanism, found), self._forces(step, 1, 1.0)):
                part[: len(table)] = table
        return found

    def clear(self) -> None:
        """No inputs, of a single step."""
        self.timed.clear()
        self.flat[:] = 0.0

    def put_number(self, name: str, value: float, step: int) -> bool:
        """Write a force or torque for a joint that takes one number into a step; False where it is something else."""
        place = self._places.get(name)
        if place is None:
            place = self._places[name] = self._place(name)
        joint, direction = place
        if joint < 0 or not isfinite(value) or not abs(value) < HUGE:
            return False
        self.joint[step, joint, direction] = value
        return True

    def _place(self, name: str) -> tuple[int, int]:
        """Joint and direction of the one number that a joint takes as a force; -1 where it is something else."""
        element = self.mechanism[name] if name in self.mechanism else None  # noqa: SIM401
        if not isinstance(element, JointElement) or not element.type.freedom:
            return -1, 0
        drives = element.type.drive
        single = [i for i, (drive, servo) in enumerate(zip(drives, element.type.servo)) if not (drive is None and servo is None)]  # type: ignore[arg-type]
        return (element.index, single[0]) if len(single) == 1 and drives[single[0]] == "force" else (-1, 0)  # type: ignore[index]


def parts(mechanism: Mechanism, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Wrenches (1, n, 6), joint forces (1, joints, 6) and tensions (1, couplings) of a step, which lie one after the other."""
    bodies, joints = 6 * len(mechanism.bodies), 6 * len(mechanism.joints)
    return flat[:bodies].reshape(1, -1, 6), flat[bodies : bodies + joints].reshape(1, -1, 6), flat[bodies + joints :].reshape(1, -1)


def one_knot(mechanism: Mechanism, inputs: np.ndarray, target: np.ndarray) -> Inputs:
    """Inputs for reading a knot, from what ``InputTables.at`` gave and targets (joints, 6) there."""
    wrench, joint, tension = parts(mechanism, inputs)
    return Inputs(wrench, joint, target[None], np.zeros((0, 0, *target.shape)), tension)


def input_count(mechanism: Mechanism) -> int:
    """How many numbers ``InputTables.at`` gives."""
    return 6 * (len(mechanism.bodies) + len(mechanism.joints)) + coupling_count(mechanism)


def coupling_count(mechanism: Mechanism) -> int:
    """Gears, rows of coordinate maps and of constraints, and paths together; the paths come last."""
    mapped = sum(len(m.joints) - m.count for m in mechanism.maps)
    return len(mechanism.couplings) + mapped + sum(c.rows for c in mechanism.constraints) + len(mechanism.paths)


def read_control(answer: Mapping[str, Input] | None, tables: InputTables, step: int) -> None:
    """Check what a controller returned and write it into one step of the tables."""
    if answer is None:
        return
    if not isinstance(answer, Mapping):
        raise ControlError(f"the controller must return a dict {{joint: force or target, body: wrench}}, got {type(answer).__name__}")
    read_inputs(answer, tables, step)


def read_inputs(answer: Mapping[str, Input], tables: InputTables, step: int) -> None:
    """Write inputs by name into one step of the tables: numbers, or functions of time for later."""
    forces = tables.wrench, tables.joint, tables.tension
    for name, value in answer.items():
        if isinstance(value, float) and not tables.timed and tables.put_number(name, value, step):
            continue
        tables.timed.get(step, {}).pop(name, None)
        if callable(value):
            put_input(tables.mechanism, name, asked(value, tables.times(step), f"the input for {shown(name)}"), tuple(table[step : step + 1].copy() for table in forces), 0)
            tables.timed.setdefault(step, {})[name] = value
        else:
            targets = put_input(tables.mechanism, name, value, forces, step)
            if targets:
                tables.functions.pop(name, None)
                tables.corrections[step + 1 :] = np.nan
                for i, number in targets.items():
                    tables.target[step + 1 :, tables.mechanism[name].index, i] = number


def put_input(mechanism: Mechanism, name: str, value: ArrayLike, forces: tuple[np.ndarray, ...], row: int) -> dict[int, float]:
    """Write what is asked of an element into a row of (wrenches, joint forces, tensions); returns targets by direction."""
    if name not in mechanism:
        raise ControlError(f"the controller returned an input for {shown(name)}, which {mechanism.name!r} does not have")
    element = mechanism[name]
    numbers = np.atleast_1d(finite(value, f"the input for {name!r}", ControlError))
    wrench, joint, tension = forces
    if isinstance(element, Body) and element is not mechanism.world:
        if numbers.shape != (6,):
            raise ControlError(f"a wrench on body {name!r} is six numbers, force (world) and torque (body axes), got shape {numbers.shape}")
        wrench[row, element.index] = numbers
    elif isinstance(element, JointElement):
        return _put_joint(element, numbers, joint, row)
    elif isinstance(element, Path) and element.drive is not None:
        if numbers.shape != (1,):
            raise ControlError(f"{element!r} takes one number, a tension (N), got shape {numbers.shape}")
        tension[row, element.index - len(mechanism.paths)] = numbers[0]
    else:
        raise ControlError(f"the controller returned an input for {element!r}, which takes none")
    return {}


def _put_joint(element: JointElement, numbers: np.ndarray, forces: np.ndarray, row: int) -> dict[int, float]:
    drives = element.type.drive
    active = [i for i, (drive, servo) in enumerate(zip(drives, element.type.servo)) if not (drive is None and servo is None)]  # type: ignore[arg-type]
    if not active:
        raise ControlError(f"joint {element.name!r} has no drive; make it with drive='force', drive='motion' or a servo")
    if numbers.shape != (len(active),):
        raise ControlError(f"joint {element.name!r} takes {len(active)} numbers, one per driven direction, got shape {numbers.shape}")
    targets = {}
    for i, number in zip(active, numbers):
        if drives[i] == "force":  # type: ignore[index]
            forces[row, element.index, i] = number
        else:
            targets[i] = float(number)
    return targets
