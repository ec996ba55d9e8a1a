"""A run as a function of parameters by name: what optimisers and the validator repeat."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dalembert.errors import GradientError
from dalembert.formulations.engine import Formulation
from dalembert.gradients.names import Name, read_names
from dalembert.mechanism.mechanism import Body, Mechanism
from dalembert.mechanism.parameters import list_parameters, with_parameters
from dalembert.simulation.setup import Setup
from dalembert.simulation.simulation import Simulation
from dalembert.simulation.trajectory import Trajectory


@dataclass(frozen=True)
class Scenario:
    """``duration`` seconds of a mechanism in a formulation, set up by ``setup(sim)``, with ``inputs`` by name per step.

    ``checked``: whether inertias must be such as bodies have; ``control``, ``control_derivative``: as of ``Simulation.run``, on top of the inputs.
    """

    mechanism: Mechanism
    formulation: Formulation
    duration: float
    setup: Callable[[Simulation], Any] | None = None
    inputs: Mapping[str, Any] | None = None
    checked: bool = True
    control: Callable[[Any], Any] | None = None
    control_derivative: Any = "differences"

    @property
    def steps(self) -> int:
        return max(1, round(self.duration / self.formulation.dt))

    def names(self, parameters: Any) -> list[Name]:
        """Names of parameters, checked."""
        return read_names(self.mechanism, self.steps, parameters)

    def simulation(self, values: Mapping[str, np.ndarray]) -> Simulation:
        """The simulation at its start, with values of parameters in place of the mechanism's own."""
        names = {name.text: name for name in self.names(values)}
        model = {text: value for text, value in values.items() if names[text].kind == "model"}
        targets = any(name.what == "target" for name in names.values())
        sim = self._made(with_parameters(self.mechanism, model, checked=self.checked) if model else self.mechanism) if model or targets else self._again()
        start = {text: value for text, value in values.items() if names[text].kind == "start"}
        if start:
            sim._set(lambda setup: self._begin(setup, start, names))
        for text, value in values.items():
            if names[text].kind == "input" and names[text].what == "target":
                times = sim.time + sim.formulation.dt * np.arange(self.steps + 1)
                sim.set_target(names[text].owner, _Line(times, np.asarray(value, dtype=float)))
        return sim

    def _made(self, mechanism: Mechanism) -> Simulation:
        sim = Simulation(mechanism, self.formulation, energy_bound=None)
        if self.setup is not None:
            self.setup(sim)
        return sim

    @cached_property
    def _first(self) -> tuple[Simulation, Any, Any, bool]:
        sim = self._made(self.mechanism)
        return sim, sim.state, sim._setup.keep(), sim._moved

    def _again(self) -> Simulation:
        """One simulation, at its start again: making one takes longer than a short run."""
        sim, state, setup, moved = self._first
        sim.restore(state)
        sim._setup.restore(setup)
        sim._moved = moved
        return sim

    def _begin(self, setup: Setup, start: Mapping[str, np.ndarray], names: Mapping[str, Name]) -> Any:
        """Ask for coordinates, rates and velocities on top of what set-up asked for."""
        wishes = {names[text].owner: np.atleast_1d(value) for text, value in start.items() if names[text].what == "start"}
        for owner, value in wishes.items():
            setup.place_again(owner, np.asarray(value, dtype=float))
        for text, value in start.items():
            name = names[text]
            if name.what == "start_rate":
                setup.rates = {**setup.rates, name.owner: np.atleast_1d(np.asarray(value, dtype=float))}
            elif name.what == "start_velocity":
                setup.hold(name.owner, value, None)
            elif name.what == "start_angular_velocity":
                setup.hold(name.owner, None, value)
        return setup.settle()

    def run(self, values: Mapping[str, np.ndarray], *, tape: bool = False) -> Trajectory:
        """Run it."""
        sim = self.simulation(values)
        tables = {**(self.inputs or {}), **{text.rpartition(".")[0]: value for text, value in values.items() if text.endswith(".input")}}
        if not tables:
            return sim.run(self.duration, tape=tape, control=self.control, control_derivative=self.control_derivative)
        if self.control is not None:
            raise GradientError("inputs per step and a controller cannot both be given")
        count, steps = [0], {name: np.asarray(table, dtype=float).reshape(self.steps, -1) for name, table in tables.items()}

        def control(_: Simulation) -> dict[str, np.ndarray]:
            count[0] += 1
            return {name: table[count[0] - 1] for name, table in steps.items()}

        return sim.run(self.duration, tape=tape, control=control, control_derivative=None)

    def value(self, name: Name, sim: Simulation) -> np.ndarray:
        """What a parameter is at the start of a simulation of this scenario."""
        if name.kind == "model":
            return np.array(list_parameters(self.mechanism, shifts=True)[name.text].value, dtype=float)
        if name.kind == "start":
            return self._start_value(name, sim)
        if name.what == "input":
            given = (self.inputs or {}).get(name.owner)
            return np.zeros(name.shape) if given is None else np.asarray(given, dtype=float).reshape(name.shape)
        raise GradientError(f"give the values of {name.text!r} (shape {name.shape}): targets have no values of their own")

    def _start_value(self, name: Name, sim: Simulation) -> np.ndarray:
        element = sim.mechanism[name.owner]
        if isinstance(element, Body):
            return (sim.velocity if name.what == "start_velocity" else sim.angular_velocity)[element.index]
        return np.asarray(sim.coordinates(name.owner) if name.what == "start" else sim.rates(name.owner)).reshape(name.shape)


class _Line:
    """Straight lines through targets at the knots, as a function of time."""

    def __init__(self, times: np.ndarray, values: np.ndarray) -> None:
        self.times, self.values = times, values.reshape(len(times), -1)

    def __call__(self, time: float) -> np.ndarray:
        return np.array([np.interp(time, self.times, column) for column in self.values.T])
