"""Many states of one mechanism that are stepped together: arrays in, arrays out."""
from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dalembert.checks import ANYTHING, BY_NAME, NOTHING, checked, shown, whole
from dalembert.ensemble.inputs import Widths, spread
from dalembert.ensemble.placing import Moves, Placer, placed
from dalembert.ensemble.reading import Knots, Reader, contact_wrenches, read_one_by_one
from dalembert.ensemble.stepping import States, Stepper
from dalembert.ensemble.workers import processors
from dalembert.errors import DalembertError, ModelError
from dalembert.formulations.engine import Formulation
from dalembert.mechanism.mechanism import JointElement, Mechanism
from dalembert.mechanism.parameters import Parameter, list_parameters
from dalembert.model.functions import watched
from dalembert.simulation.simulation import Simulation
from dalembert.simulation.state import State

COUNT = whole("a whole number from 1 to 10000000", least=1, most=10_000_000)


class Batch:
    """``n`` states of a mechanism, as it is now, in a formulation, stepped together by some threads (one per core by default).

    Arrays have the states as their first axis. Each state is stepped exactly as a ``Simulation`` would: results are the same to the bit, whatever
    the number of threads. A state whose step has no solution stands where it is, with ``failed`` true, until it is reset; the others go on.
    """

    @checked(mechanism=ANYTHING, n=COUNT, threads=COUNT | NOTHING)
    def __init__(self, mechanism: Mechanism, formulation: Formulation, n: int, *, threads: int | None = None) -> None:
        if not isinstance(mechanism, Mechanism):
            raise ModelError(f"Batch needs a Mechanism, got {shown(mechanism)}")
        self._formulation, self._n = formulation, n
        self._threads = min(n, processors() if threads is None else threads)
        self._mechanism = mechanism.snapshot()
        #: of states with parameters of their own, by index
        self._own: dict[int, Mechanism] = {}
        self._make()
        self._starts = [self._simulations[0].state] * n
        self.reset()

    def _make(self) -> None:
        """Simulations for all threads, and for states with parameters of their own."""
        shared = [Simulation(self._mechanism, self._formulation, energy_bound=None) for _ in range(self._threads)]
        self._simulations = [shared[i * self._threads // self._n] for i in range(self._n)]
        for i, own in self._own.items():
            self._simulations[i] = Simulation(own, self._formulation, energy_bound=None)
        self._states = States(self._simulations)
        self._steppers: dict[tuple[int, bool], Stepper] = {}
        self._placers: dict[int, Placer] = {}
        ends = [-(-t * self._n // self._threads) for t in range(self._threads + 1)]
        #: the states of each thread
        self._blocks = [np.arange(a, b) for a, b in pairwise(ends)]
        self._pool: ThreadPoolExecutor | None = None
        self._knots: Knots | None = None
        self._whole = False

    def __repr__(self) -> str:
        return f"<batch of {self._n} states of {self._mechanism.name!r} in {type(self._formulation).__name__}, dt = {self._formulation.dt:g} s>"

    def __len__(self) -> int:
        return self._n

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name not in ("_simulations", "_states", "_steppers", "_placers", "_blocks", "_pool", "_knots", "_reader", "_widths")}
        return {**kept, "states": [self._states.get(i) for i in range(self._n)], "failures": self._states.failures}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        states, failures = kept.pop("states"), kept.pop("failures")
        vars(self).update(kept)
        self._make()
        for i, state in enumerate(states):
            self._states.put(i, state)
        self._states.failures = failures

    # ---- what it is

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism as it was when the batch was made."""
        return self._mechanism

    @property
    def formulation(self) -> Formulation:
        """The formulation, which owns the step."""
        return self._formulation

    @property
    def threads(self) -> int:
        """How many threads step the states."""
        return self._threads

    def parameters(self, index: int = 0) -> dict[str, Parameter]:
        """All parameters of one state by name, with their values and units."""
        return list_parameters(self._simulations[self._index(index)].mechanism)

    def state(self, index: int) -> State:
        """A copy of one state, to go on with in a ``Simulation`` or to ``restore``."""
        return self._states.get(self._index(index))

    # ---- where the states are

    @property
    def time(self) -> np.ndarray:
        """(n,) seconds."""
        return self._states.time

    @property
    def failed(self) -> np.ndarray:
        """(n,) which states stand still because a step of theirs had no solution."""
        found = np.zeros(self._n, bool)
        found[list(self._states.failures)] = True
        return found

    def failure(self, index: int) -> Exception | None:
        """Why a state stands still: the error that a ``Simulation`` would have raised; None for one that goes on."""
        return self._states.failures.get(self._index(index))

    @property
    def position(self) -> np.ndarray:
        """(n, bodies, 3) centres of mass, metres."""
        return self._read(False).position.copy()

    @property
    def orientation(self) -> np.ndarray:
        """(n, bodies, 4) unit quaternions, scalar first."""
        return self._read(False).orientation.copy()

    @property
    def velocity(self) -> np.ndarray:
        """(n, bodies, 3) m/s."""
        return self._read().velocity[:, :, :3].copy()

    @property
    def angular_velocity(self) -> np.ndarray:
        """(n, bodies, 3) body frame, rad/s."""
        return self._read().velocity[:, :, 3:].copy()

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the columns of ``coordinates()`` and ``rates()``: joints, with a number where they have several."""
        return tuple(
            j.name if j.type.freedom == 1 else f"{j.name}[{k}]" for j in self._mechanism.joints for k in range(j.type.freedom)
        )

    @checked
    def coordinates(self, joint: str | None = None) -> np.ndarray:
        """(n, freedom) minimal coordinates of a joint, angles unwrapped; without a name those of all joints, one after the other."""
        return self._along(self._read().coordinate, joint)

    @checked
    def rates(self, joint: str | None = None) -> np.ndarray:
        """(n, freedom) rates of a joint's coordinates; without a name those of all joints, one after the other."""
        return self._along(self._read().rate, joint)

    def energy(self) -> np.ndarray:
        """(n,) kinetic plus potential energy, J."""
        return self._read().energy.copy()

    @property
    def contact_wrench(self) -> np.ndarray:
        """(n, bodies, 6) what contacts that last exert on each body: force (world, N) and torque (body axes, N m). Blows do not count."""
        return contact_wrenches(self._states)

    def _along(self, table: np.ndarray, joint: str | None) -> np.ndarray:
        if joint is None:
            return np.concatenate([table[:, j.index, : j.type.freedom] for j in self._mechanism.joints] or [np.zeros((self._n, 0))], axis=1)
        element = self._joint(joint)
        return table[:, element.index, : element.type.freedom].copy()

    def _joint(self, name: str) -> JointElement:
        element = self._mechanism[name]
        if not isinstance(element, JointElement):
            raise ModelError(f"{name!r} is {element!r}, not a joint")
        return element

    def _read(self, whole: bool = True) -> Knots:
        """What is read of the states as they are now, once; not ``whole``: poses alone."""
        if self._knots is not None and (self._whole or not whole):
            return self._knots
        reader, posed = self._reader, self._knots is not None
        if reader is None:
            self._knots, self._whole = read_one_by_one(self._states), True
            return self._knots
        reader.refresh()
        with watched_all({id(s): s.mechanism for s in self._simulations}.values()):
            if not posed:
                self._in_threads(reader.pose, self._blocks)
            if whole:
                reader.take()
                self._in_threads(reader.see, self._blocks)
        self._knots, self._whole = reader.knots(), whole
        return self._knots

    def _index(self, index: Any) -> int:
        if isinstance(index, bool | np.bool_) or not isinstance(index, int | np.integer) or not 0 <= index < self._n:
            raise ModelError(f"the index of a state must be a whole number from 0 to {self._n - 1}, got {shown(index)}")
        return int(index)

    def _indices(self, indices: Any) -> list[int]:
        """Chosen states: all, some by their numbers, or by n truth values."""
        if indices is None:
            return list(range(self._n))
        try:
            found = np.asarray(indices)
        except ValueError:  # ragged
            found = np.asarray(None)
        if found.dtype == bool and found.shape == (self._n,):
            return np.flatnonzero(found).tolist()
        if found.size == 0 and found.ndim == 1:
            return []
        if found.ndim != 1 or found.dtype.kind not in "iu":
            raise ModelError(f"indices must be whole numbers from 0 to {self._n - 1}, or {self._n} truth values, got {shown(indices)}")
        chosen = [self._index(i) for i in found]
        if len(set(chosen)) < len(chosen):
            raise ModelError(f"indices must not name a state twice, got {shown(indices)}")
        return chosen

    # ---- setting states

    @checked(coordinates=BY_NAME | NOTHING, rates=BY_NAME | NOTHING, indices=ANYTHING)
    def reset(
        self, indices: Sequence[int] | np.ndarray | None = None, *, coordinates: Mapping[str, ArrayLike] | None = None,
        rates: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        """Put states (all by default) back to the start, at time zero, failures forgotten; or there with joints at ``coordinates`` and ``rates``.

        These by joint, (k, freedom) for k chosen states, or one for all of them. Joints move as with ``Simulation.set_joint``: loops are closed again.
        Raises AssemblyError, and resets none, where a loop cannot follow.
        """
        chosen = self._indices(indices)
        moves = self._moves(coordinates or {}, rates or {}, len(chosen))
        starts = [placed(self._placer(i), i, moves, row) if moves else self._starts[i] for row, i in enumerate(chosen)]
        for i, start in zip(chosen, starts):
            self._put(i, start)

    @cached_property
    def _widths(self) -> Widths:
        return Widths(self._mechanism)

    @cached_property
    def _reader(self) -> Reader | None:
        return Reader.of(self._states)

    def _placer(self, index: int) -> Placer:
        """What moves joints of a state's start: states without parameters of their own share one."""
        key = index if index in self._own else -1
        if key not in self._placers:
            self._placers[key] = Placer(self._simulations[index], self._starts[index])
        return self._placers[key]

    def _moves(self, coordinates: Mapping[str, ArrayLike], rates: Mapping[str, ArrayLike], count: int) -> Moves:
        """What resets shall move, checked."""
        found = {}
        for name in dict.fromkeys([*coordinates, *rates]):
            freedom = self._joint(name).type.freedom
            found[name] = tuple(
                spread(given[name], count, freedom, f"{what} of joint {name!r}", ModelError) if name in given else None
                for given, what in ((coordinates, "coordinates"), (rates, "rates"))
            )
        return found

    def _put(self, index: int, state: State) -> None:
        self._states.put(index, state)
        self._states.failures.pop(index, None)
        self._knots = None

    def restore(self, index: int, state: State) -> None:
        """Put one state to where another one of this mechanism and formulation is: of a batch or of a ``Simulation``."""
        i = self._index(index)
        self._simulations[i].restore(state)
        self._put(i, self._simulations[i].state)

    @checked(values=BY_NAME, indices=ANYTHING)
    def set_parameters(self, values: Mapping[str, ArrayLike], indices: Sequence[int] | np.ndarray | None = None) -> None:
        """Give states (all by default) parameters of their own: arrays by name, (k, ...) for k chosen states, or one value for all of them.

        Names as in ``Simulation.set_parameters``; poses and velocities stay, at the start too. Raises ModelError, and changes nothing, for an unknown name or a
        value that makes no sense.
        """
        chosen, known = self._indices(indices), self.parameters()
        table = {}
        for name, value in values.items():
            shape = np.shape(known[name].value) if name in known else None
            given = np.asarray(value)
            table[name] = [value] * len(chosen) if shape is None or given.shape == shape else list(given)
            if len(table[name]) != len(chosen):
                raise ModelError(f"parameter {name!r} must have shape {(len(chosen), *(shape or ()))} for {len(chosen)} states, got {given.shape}")
        changed = {}
        for row, i in enumerate(chosen):
            one, start, here = {name: rows[row] for name, rows in table.items()}, self._starts[i], self._states.get(i)
            try:
                simulation = self._with_parameters(i, start, one)
                new = simulation.state
                if here != start:
                    simulation = self._with_parameters(i, here, one)
            except DalembertError as error:
                error.add_note(f"This was state {i} of the batch; none was changed.")
                raise
            changed[i] = simulation, new
        for i, (simulation, start) in changed.items():
            self._simulations[i], self._own[i], self._starts[i] = simulation, simulation.mechanism, start
            self._placers.pop(i, None)
            self._states.made[i] += 1
            self._states.put(i, simulation.state)
        self._knots = None

    def _with_parameters(self, index: int, state: State, values: Mapping[str, Any]) -> Simulation:
        """A simulation of a state of its own, with other parameters than before."""
        simulation = Simulation.__new__(Simulation)
        vars(simulation).update(vars(self._simulations[index]), _origin=None)  # what the two share, setting parameters makes anew
        simulation.restore(state)
        simulation.set_parameters(values)
        return simulation

    # ---- running

    @checked(inputs=BY_NAME | NOTHING, steps=COUNT)
    def step(self, inputs: Mapping[str, ArrayLike] | None = None, steps: int = 1) -> None:
        """Advance all states that have not failed by some steps, with the same inputs in each.

        ``inputs``: {joint: force or target, body: wrench, path: tension}, each (n, width), or (width,) for all states, as ``Simulation.step`` takes them.
        """
        given = None if inputs is None else self._widths.read(inputs, self._n)
        key = steps, given is not None
        if key not in self._steppers:
            self._steppers[key] = Stepper(self._states, *key)
        stepper = self._steppers[key]
        stepper.fill(given or {})
        stand = list(self._states.failures)
        blocks = [left for block in self._blocks if len(left := np.setdiff1d(block, stand))] if stand else self._blocks
        with InterruptsHeldBack():
            self._knots = None
            self._in_threads(lambda block: stepper.step(block, given), blocks)

    def _in_threads(self, job: Callable[[np.ndarray], None], blocks: list[np.ndarray]) -> None:
        """Do a job for the states of each thread; the first of them is this one."""
        others = [self._threads_pool().submit(job, block) for block in blocks[1:]]
        try:
            for block in blocks[:1]:
                job(block)
        finally:
            for other in others:
                other.result()

    def _threads_pool(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(max(1, self._threads - 1), thread_name_prefix="dalembert")
        return self._pool


@contextmanager
def watched_all(mechanisms: Iterable[Mechanism]) -> Iterator[None]:
    """Raise what Python functions of the mechanisms raise inside."""
    with ExitStack() as stack:
        for mechanism in mechanisms:
            stack.enter_context(watched(mechanism))
        yield


class InterruptsHeldBack:
    """Ctrl-C waits until the steps of all states are made: they stay together."""

    def __enter__(self) -> None:
        self._seen: list[Any] = []
        self._before: Any = None
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, lambda *about: self._seen.append(about))

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            if self._seen and callable(self._before):
                self._before(*self._seen[0])
