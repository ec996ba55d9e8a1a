"""Where episodes start: drawn around the start of the simulation by the environment's own generator, with parameters drawn anew."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dalembert.checks import numbers, shown, spread
from dalembert.errors import AssemblyError, ModelError
from dalembert.mechanism.mechanism import Body, JointElement, Mechanism
from dalembert.mechanism.parameters import list_parameters
from dalembert.simulation.simulation import Simulation
from dalembert.simulation.state import State

#: how often a start that the loops do not allow is drawn again
TRIES = 20

Generator = np.random.Generator


class Start(NamedTuple):
    """Where an episode starts: goals and parameters by name, and the state."""

    goals: dict[str, np.ndarray]
    parameters: dict[str, Any]
    state: State


class _Offsets(NamedTuple):
    """Coordinates and rates of joints, velocities (6,) of bodies."""

    coordinates: dict[str, np.ndarray]
    rates: dict[str, np.ndarray]
    velocities: dict[str, np.ndarray]


class Starts:
    """Draws starts. ``noise``: half-widths of uniform distributions about the start, by name: a joint ("hinge"), its "hinge.rate", and
    "ball.velocity" or "ball.angular_velocity" of a body; one number or one per direction. ``randomise``: parameters by name, each a
    pair (low, high) or a function of the generator. ``goals``: functions of the generator, by name. ``bank``: how many poses and velocities there are
    to choose from, each made when it is first chosen and then kept, or None for a new one each time.
    """

    def __init__(
        self, simulation: Simulation, noise: Mapping[str, Any], randomise: Mapping[str, Any], goals: Mapping[str, Callable[[Generator], Any]], bank: int | None,
    ) -> None:
        mechanism = simulation.mechanism
        if bank is not None and randomise:
            raise ModelError("starts= and randomise= exclude each other: with other parameters, a start that was kept is another one")
        self._bank, self._kept = bank, dict[int, State]()
        self._noise = {name: _noise(mechanism, name, value) for name, value in noise.items()}
        self._parameters = {name: _range(mechanism, name, value) for name, value in randomise.items()}
        for name, goal in goals.items():
            if not callable(goal):
                raise ModelError(f"goal {name!r} must be a function of a random generator that gives numbers, got {shown(goal)}")
        self._goals = dict(goals)
        used = {name.rpartition(".")[0] if name not in mechanism else name for name in noise}
        self._at = {j.name: (simulation.coordinates(j.name), simulation.rates(j.name)) for j in mechanism.joints if j.name in used}
        self._speed = {
            b.name: np.concatenate([simulation.velocity[b.index], simulation.angular_velocity[b.index]]) for b in mechanism.bodies if b.name in used
        }

    def goal_sizes(self) -> dict[str, int]:
        """How many numbers each goal is."""
        return {name: goal.size for name, goal in self._draw_goals(np.random.default_rng(0)).items()}

    def _draw_goals(self, rng: Generator) -> dict[str, np.ndarray]:
        return {name: numbers(None)(np.atleast_1d(goal(rng)), f"goal {name!r}") for name, goal in self._goals.items()}

    def draw(self, simulation: Simulation, rng: Generator) -> Start:
        """A new start, always the same from the same generator. The simulation is used to find it; parameters that are drawn, it has."""
        goals = self._draw_goals(rng)
        if self._bank is not None and self._noise:
            return Start(goals, {}, self._from_bank(simulation, int(rng.integers(self._bank))))
        parameters = {name: draw(rng) for name, draw in self._parameters.items()}
        if parameters:
            simulation.reset()
            simulation.set_parameters(parameters)
        self._place(simulation, rng)
        return Start(goals, parameters, simulation.state)

    def _from_bank(self, simulation: Simulation, number: int) -> State:
        if number not in self._kept:
            self._place(simulation, np.random.default_rng(number))
            self._kept[number] = simulation.state
        return self._kept[number]

    def _place(self, simulation: Simulation, rng: Generator) -> None:
        """Put a simulation at a random pose with random velocities. Those that the loops do not allow are drawn again."""
        for attempt in range(TRIES):
            simulation.reset()
            offsets = self._draw(rng)
            try:
                if offsets.coordinates or offsets.rates:
                    simulation.set_joints(offsets.coordinates, rates=offsets.rates)
                for body, speed in offsets.velocities.items():
                    simulation.set_velocity(body, linear=speed[:3], angular=speed[3:])
                return
            except AssemblyError as error:
                if attempt == TRIES - 1:
                    raise ModelError(f"none of {TRIES} random starts of {simulation.mechanism.name!r} can be assembled; make noise= smaller ({error})") from error

    def _draw(self, rng: Generator) -> _Offsets:
        drawn = _Offsets({}, {}, {})
        for element, part, width in self._noise.values():
            offset = rng.uniform(-width, width)
            if part == "coordinate":
                drawn.coordinates[element] = self._at[element][0] + offset
            elif part == "rate":
                drawn.rates[element] = self._at[element][1] + offset
            else:
                speed = drawn.velocities.setdefault(element, self._speed[element].copy())
                speed[:3] += offset if part == "velocity" else 0.0
                speed[3:] += offset if part == "angular_velocity" else 0.0
        return drawn


def _noise(mechanism: Mechanism, name: str, value: Any) -> tuple[str, str, np.ndarray]:
    """Element, part and half-widths."""
    owner, part = (name, "coordinate") if name in mechanism else (name.rpartition(".")[0], name.rpartition(".")[2])
    element = mechanism[owner] if owner in mechanism else None  # noqa: SIM401, it is no dict
    if isinstance(element, JointElement) and element.type.freedom and part in ("coordinate", "rate"):
        size = element.type.freedom
    elif isinstance(element, Body) and element is not mechanism.world and part in ("velocity", "angular_velocity"):
        size = 3
    else:
        raise ModelError(f"noise= has {name!r}, which is no joint of {mechanism.name!r}, no 'joint.rate' and no 'body.velocity' or 'body.angular_velocity'")
    return owner, part, np.abs(spread(value, size, f"the noise of {name!r}"))


def _range(mechanism: Mechanism, name: str, value: Any) -> Callable[[Generator], Any]:
    """A function that draws a parameter."""
    known = list_parameters(mechanism)
    if name not in known:
        near = [n for n in known if n.startswith(f"{str(name).rpartition('.')[0]}.")]
        raise ModelError(f"randomise= has {name!r}, which is no parameter of {mechanism.name!r}; it has: {', '.join(sorted(near or known))}")
    if callable(value):
        return value
    shape = np.shape(known[name].value)
    ends = numbers()(value, f"the range of parameter {name!r}")
    if ends.shape not in ((2,), (2, *shape)) or not np.all(ends[0] <= ends[1]):
        raise ModelError(f"the range of parameter {name!r} must be a pair (low, high) or a function of a random generator, got {shown(value)}")
    low, high = (np.broadcast_to(end, shape) for end in ends)
    return lambda rng: rng.uniform(low, high)
