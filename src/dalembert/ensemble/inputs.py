"""Inputs of many states by name, checked, and laid out as engines ask for them."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from dalembert.checks import numbers, shown
from dalembert.errors import ControlError
from dalembert.formulations.engine import Engine, Inputs, Samples
from dalembert.mechanism.forces import Path
from dalembert.mechanism.mechanism import Body, JointElement, Mechanism
from dalembert.simulation.controls import coupling_count

finite = numbers()


def input_width(mechanism: Mechanism, name: str) -> int:
    """How many numbers an input has: six of a wrench, one of a tension, one per driven direction of a joint."""
    if name not in mechanism:
        raise ControlError(f"there is an input for {shown(name)}, which {mechanism.name!r} does not have")
    element = mechanism[name]
    if isinstance(element, Body) and element is not mechanism.world:
        return 6
    if isinstance(element, Path) and element.drive is not None:
        return 1
    if not isinstance(element, JointElement):
        raise ControlError(f"there is an input for {element!r}, which takes none")
    width = len(driven_directions(element))
    if not width:
        raise ControlError(f"joint {name!r} has no drive; make it with drive='force', drive='motion' or a servo")
    return width


def driven_directions(element: JointElement) -> list[int]:
    """The directions of a joint that take inputs."""
    kind = element.type
    return [i for i, (drive, servo) in enumerate(zip(kind.drive, kind.servo)) if not (drive is None and servo is None)]  # type: ignore[arg-type]


def spread(value: Any, count: int, width: int, what: str, error: type[Exception] = ControlError) -> np.ndarray:
    """(count, width) numbers from as many, from (width,) for all states, from (count,) where one number is asked for, or from a single one."""
    if type(value) is np.ndarray and value.shape == (count, width) and value.dtype == float and value.flags.c_contiguous and np.isfinite(value).all():
        return value  # as it is, which is quick
    found = finite(value, what, error)  # type: ignore[arg-type]
    if found.ndim == 1 and width == 1 and len(found) == count:
        found = found[:, None]
    if found.ndim > 2 or (found.ndim and found.shape[-1] != width) or (found.ndim == 2 and len(found) not in (1, count)):
        raise error(f"{what} must be {width} numbers, or {count}x{width} for all states, got shape {found.shape}")
    return np.ascontiguousarray(np.broadcast_to(found, (count, width)))


class Widths(dict[str, int]):
    """How many numbers each input of a mechanism has, by name, found when it is first given."""

    def __init__(self, mechanism: Mechanism) -> None:
        super().__init__()
        self.mechanism = mechanism

    def __missing__(self, name: str) -> int:
        self[name] = width = input_width(self.mechanism, name)
        return width

    def read(self, given: Mapping[str, Any], count: int) -> dict[str, np.ndarray]:
        """Inputs by name, each (count, width)."""
        if not isinstance(given, Mapping):
            raise ControlError(f"inputs must be a dict {{joint: force or target, body: wrench}}, got {shown(given)}")
        return {name: spread(value, count, self[name], f"the input for {name!r}") for name, value in given.items()}


class InputTables:
    """Inputs of ``steps`` steps of ``count`` states, the same in every step; ``of(i)`` is what an engine takes those of one state from."""

    def __init__(self, mechanism: Mechanism, engine: Engine, count: int, steps: int, controlled: bool) -> None:
        self.mechanism, self.count, self.steps, self.controlled = mechanism, count, steps, controlled
        self.bodies, self.joints, self.couplings = len(mechanism.bodies), len(mechanism.joints), coupling_count(mechanism)
        forced = controlled and any("force" in j.type.drive for j in mechanism.joints)  # type: ignore[operator]
        pulled = controlled and any(path.drive is not None for path in mechanism.paths)
        self.driven = any(j.type.follows for j in mechanism.joints)
        self.wrench = np.zeros((count, steps if controlled else 0, self.bodies, 6))
        self.joint = np.zeros((count, steps if forced else 0, self.joints, 6))
        self.tension = np.zeros((count, steps if pulled else 0, self.couplings))
        self.target = np.zeros((count, steps + 1, self.joints, 6))
        self.nodes = np.array(engine.nodes)
        staged = 1 if not self.driven or engine.one_start or not len(self.nodes) else steps
        self.stage = np.zeros((count, staged, len(self.nodes), self.joints, 6))
        self.fractions = np.zeros(0)
        self.motion = np.zeros((count, 0, 0, 3, self.joints, 6))
        self._written: set[str] = set()
        #: by name: the parts of the tables that an input is written to, which of its numbers goes there, and whether it ends with the call
        self._places: dict[str, list[tuple[np.ndarray, Any, bool]]] = {}
        self._kept = np.zeros((count, 6 * (self.bodies + self.joints) + self.couplings))

    def of(self, index: int) -> StateInputs:
        return StateInputs(self, index)

    def sample(self, fractions: Sequence[float]) -> None:
        """Make room for targets at moments of every step."""
        if len(self.fractions) == 0:
            self.fractions = np.array(fractions)
            self.motion = np.zeros((self.count, self.steps if self.driven else 0, len(fractions), 3, self.joints, 6))

    def fill(self, given: Mapping[str, np.ndarray], held: Callable[[], np.ndarray], lengths: Callable[[], np.ndarray]) -> None:
        """Write inputs (count, width) by name. ``held()`` (count, joints, 6): targets at the first knot; ``lengths()`` (count, steps): of the steps, s."""
        for name in self._written - given.keys():
            self._put(name, None)
        self._written = set(given)
        if self.driven:
            self.target[:] = held()[:, None]
        for name, values in given.items():
            self._put(name, values)
        if not self.driven:
            return
        for step in range(self.stage.shape[1] if len(self.nodes) else 0):
            self.stage[:, step] = self._between(step, self.nodes)
        for step in range(self.motion.shape[1]):
            self.motion[:, step, :, 0] = self._between(step, self.fractions)
            self.motion[:, step, :, 1] = ((self.target[:, step + 1] - self.target[:, step]) / lengths()[:, step, None, None])[:, None]

    def _between(self, step: int, shares: np.ndarray) -> np.ndarray:
        """(count, shares, joints, 6) targets within a step."""
        first, last = self.target[:, step, None], self.target[:, step + 1, None]
        return first + shares[:, None, None] * (last - first)

    def _put(self, name: str, values: np.ndarray | None) -> None:
        """Write one input; None: forces end."""
        if name not in self._places:
            self._places[name] = self._place(self.mechanism[name])
        for table, column, ends in self._places[name]:
            if values is not None:
                table[:] = values[:, column]
            elif ends:
                table[:] = 0.0

    def _place(self, element: Any) -> list[tuple[np.ndarray, Any, bool]]:
        """The parts of the tables that an element's input is written to."""
        if isinstance(element, Body):
            return [(self.wrench[:, :, element.index], None, True)]
        if isinstance(element, Path):
            return [(self.tension[:, :, element.index - len(self.mechanism.paths)], slice(None), True)]
        forces = [drive == "force" for drive in element.type.drive]
        tables = {True: self.joint, False: self.target[:, 1:]}
        return [(tables[forces[i]][:, :, element.index, i], slice(k, k + 1), forces[i]) for k, i in enumerate(driven_directions(element))]

    def last(self) -> np.ndarray:
        """(count, numbers) what states keep of the inputs of the last step: wrenches, joint forces, tensions. The next call overwrites it."""
        begin = 0
        for table in (self.wrench, self.joint, self.tension):
            end = begin + prod(table.shape[2:])
            if table.shape[1]:
                self._kept[:, begin:end] = table[:, -1].reshape(self.count, -1)
            begin = end
        return self._kept


class StateInputs:
    """The inputs of one state, as engines ask for them (``formulations.engine.Source``): views of the tables."""

    def __init__(self, tables: InputTables, index: int) -> None:
        self.tables, self.index, self.end = tables, index, tables.steps

    def times(self, steps: Any) -> Any:
        raise NotImplementedError("the inputs of a batch are no functions of time")

    def window(self, first: int, count: int) -> Inputs:
        t, i = self.tables, self.index
        return Inputs(t.wrench[i], t.joint[i], t.target[i], t.stage[i], t.tension[i])

    def part(self, step: int, start: float, length: float) -> Inputs:
        raise NotImplementedError("parts of steps are for simulations")

    def samples(self, first: int, count: int, fractions: Sequence[float]) -> Samples:
        t, i = self.tables, self.index
        t.sample(fractions)
        return Samples(t.wrench[i], t.joint[i], t.tension[i], t.motion[i], 0)
