"""Steps of many states: kernels in one call where they need no Python in between, single simulations for all else."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalembert.ensemble.inputs import InputTables
from dalembert.formulations.engine import KernelCall
from dalembert.kernels.many import Many
from dalembert.simulation.simulation import Simulation
from dalembert.simulation.state import State


class States:
    """What determines the future of n states (first axis), and the simulation that each is stepped by: states of one thread share one.

    ``origin`` and ``count``: time (s) at the last start and steps since then. ``plain``: kernels may make the next step.
    """

    def __init__(self, simulations: list[Simulation]) -> None:
        self.simulations, n = simulations, len(simulations)
        state = simulations[0].state
        self.kind, self.dt = state.kind, simulations[0].formulation.dt
        self.numbers, self.inputs = np.tile(state.numbers, (n, 1)), np.tile(state.inputs, (n, 1))
        self.origin, self.count = np.zeros(n), np.zeros(n, np.int64)
        self.plain, self.failures = np.zeros(n, bool), dict[int, Exception]()
        #: how often a state was put elsewhere than its kernel did, and how often it was given another simulation
        self.moves, self.made = np.zeros(n, np.int64), np.zeros(n, np.int64)

    def held(self) -> np.ndarray:
        """(n, joints, 6) targets that the states hold."""
        return np.stack([simulation.engine.targets(numbers) for simulation, numbers in zip(self.simulations, self.numbers)])

    @property
    def time(self) -> np.ndarray:
        """(n,) seconds."""
        return self.origin + self.count * self.dt

    def get(self, index: int) -> State:
        """A copy of one state."""
        clock = float(self.origin[index]), int(self.count[index]), self.dt
        return State(self.kind, clock, self.numbers[index].copy(), self.inputs[index].copy())

    def put(self, index: int, state: State) -> None:
        """Put one state in its place."""
        origin, count, _ = state.after(0, self.dt)
        self.numbers[index], self.inputs[index], self.origin[index], self.count[index] = state.numbers, state.inputs, origin, count
        engine: Any = self.simulations[index].engine
        self.plain[index] = hasattr(engine, "kernel_call") and engine.plain(self.numbers[index], self.dt)
        self.moves[index] += 1


class Stepper:
    """Makes ``steps`` steps of chosen states, all with inputs (``controlled``) or all without."""

    def __init__(self, states: States, steps: int, controlled: bool) -> None:
        self.states, self.steps = states, steps
        first = states.simulations[0]
        self.tables = InputTables(first.mechanism, first.engine, len(states.numbers), steps, controlled)
        self._recordings: dict[int, Any] = {}
        self._last: np.ndarray | None = None
        self._seen = np.full(len(states.numbers), -1, np.int64)
        self._call = self._kernel_call(0)
        self._many = None if self._call is None else Many(self._call.kernel, self._call.arguments, len(states.numbers))

    def _kernel_call(self, index: int) -> KernelCall | None:
        simulation = self.states.simulations[index]
        engine: Any = simulation.engine
        if not hasattr(engine, "kernel_call"):
            return None
        if id(simulation) not in self._recordings:
            self._recordings[id(simulation)] = engine.new_recording(self.steps + 1)
        return engine.kernel_call(self.states.numbers[index], self._recordings[id(simulation)], self.tables.of(index), self.steps, self.states.dt)

    def fill(self, given: Mapping[str, np.ndarray]) -> None:
        """Take inputs (n, width) by name for the next steps."""
        self.tables.fill(given, self.states.held, self._lengths)
        self._last = self.tables.last() if self.tables.controlled else None

    def _lengths(self) -> np.ndarray:
        """(n, steps) lengths of the next steps as their times say, s."""
        states = self.states
        return np.diff(states.origin[:, None] + (states.count[:, None] + np.arange(self.steps + 1)) * states.dt)

    def step(self, chosen: np.ndarray, given: Mapping[str, np.ndarray] | None) -> None:
        """Step states (k,), all of one thread, with the inputs in the tables; ``given`` (n, width): the same by name."""
        states, ends = self.states, (int(chosen[0]), int(chosen[-1]) + 1)
        part: Any = slice(*ends) if ends[1] - ends[0] == len(chosen) else chosen  # which is quicker
        states.inputs[part] = 0.0 if self._last is None else self._last[part]
        left: np.ndarray | None = None
        if self._many is not None and self._call is not None:
            plain = states.plain[part]
            quick, part = (chosen, part) if plain.all() else (chosen[plain], chosen[plain])
            self._refresh(quick, part)
            before = None if self._call.stops else states.numbers[quick]
            self._many.call(quick)
            done = self._many.found[part, self._call.done]
            if len(quick) == len(chosen) and done.min() == self.steps:
                states.count[part] += self.steps
                return
            done = done.astype(np.int64)
            if before is not None:
                short = done < self.steps
                states.numbers[quick[short]], done[short] = before[short], 0
            states.count[part] += done
            left = np.full(len(states.numbers), self.steps)
            left[quick] -= done
        for i in chosen.tolist():
            steps = self.steps if left is None else int(left[i])
            if steps > 0:
                self._step_alone(i, steps, given)

    def _refresh(self, chosen: np.ndarray, part: Any) -> None:
        """Make the arguments of states again that were put elsewhere; ``part`` picks the same ones."""
        states = self.states
        assert self._call is not None
        stale = self._seen[part] != (states.moves if self._call.lists else states.made)[part]
        for i in chosen[stale].tolist() if stale.any() else ():
            call = self._kernel_call(i)
            assert call is not None
            assert self._many is not None
            self._many.put(i, call.arguments)
            self._seen[i] = (states.moves if self._call.lists else states.made)[i]

    def _step_alone(self, index: int, steps: int, given: Mapping[str, np.ndarray] | None) -> None:
        """Step one state by its simulation; what goes wrong is kept as its failure."""
        states, simulation = self.states, self.states.simulations[index]
        control = None if given is None else {name: values[index] for name, values in given.items()}
        simulation.restore(states.get(index))
        try:
            for _ in range(steps):
                simulation.step(control)
        except Exception as error:
            states.failures[index] = error
        states.put(index, simulation.state)
