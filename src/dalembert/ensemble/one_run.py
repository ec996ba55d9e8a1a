"""One run of an ensemble, from its row of the plan to its record: what every worker does, wherever it is."""
from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.checks import choices, shown
from dalembert.ensemble.record import FAILURE, Record, of_result, packed
from dalembert.ensemble.samples import generator
from dalembert.errors import ModelError, Terminated
from dalembert.formulations.engine import Formulation
from dalembert.kernels.calls import is_compiled
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.parameters import Parameter, list_parameters, with_parameters
from dalembert.simulation.simulation import Simulation
from dalembert.simulation.trajectory import Trajectory

#: index, parameters and starts of a run
Row = tuple[int, dict[str, Any], dict[str, Any]]
#: parameters that are vectors or matrices, for which one number for all makes no sense
VECTORS = ("gravity", "force", "torque", "inertia", "point_parent", "point_child", "turn_parent", "turn_child", "centre_of_mass", "points", "point", "position")
#: one number of a parameter that has several
COMPONENT = re.compile(r"(.+)\[\s*(\d+(?:\s*,\s*\d+)*)\s*\]")
#: what a start of a joint is called that is a speed
RATE = ".rate"
#: making simulations is Python's work, of which only one thread does any at a time; users' functions are shared by threads
_making, _alone = threading.RLock(), threading.RLock()


@dataclass(frozen=True, eq=False)
class Job:
    """What all runs of an ensemble have in common; ``control`` is given parameters and a generator where ``controllers`` is true."""

    source: Mechanism | Callable[..., Mechanism]
    formulation: Formulation
    duration: float
    control: Callable[..., Any] | None
    controllers: bool
    prepare: Callable[[Simulation, Mapping[str, Any]], Any] | None
    reduce: str | Callable[[Trajectory], Any]
    seed: int

    def outcome(self, row: Row) -> bytes | None:
        """The record of a run, also of one that failed; None for one that Ctrl-C ended."""
        index, parameters, starts = row
        reached = 0.0
        try:
            mechanism = self.mechanism(parameters)
            with _alone if _calls_python(mechanism) else nullcontext():
                with _making:
                    simulation = self.started(mechanism, parameters, starts)
                trajectory = simulation.run(self.duration, control=self.controller(index, parameters), progress=False)
                if trajectory.interrupted:
                    return None
                reached = float(trajectory.time[-1])
                record = of_result(index, self.reduced(trajectory, simulation))
        except Terminated:
            raise
        except (Exception, SystemExit) as error:
            computed = getattr(error, "trajectory", None)
            reached = reached if computed is None else float(computed.time[-1])
            record = Record(index, FAILURE, {}, dict(error=type(error).__name__, message=" ".join(str(error).split()), time=reached))
        return packed(record)

    def mechanism(self, parameters: Mapping[str, Any]) -> Mechanism:
        """The mechanism with the parameters of a run."""
        if isinstance(self.source, Mechanism):
            mechanism = self.source
        else:
            taken = arguments_of(self.source, parameters)
            mechanism = self.source(**{name: parameters[name] for name in taken})
            if not isinstance(mechanism, Mechanism):
                raise ModelError(f"the function that makes the mechanism must return one, got {shown(mechanism)}")
            parameters = {name: value for name, value in parameters.items() if name not in taken}
        mine = {name: value for name, value in parameters.items() if is_of_mechanism(name)}
        return with_parameters(mechanism, whole_values(mechanism, mine)) if mine else mechanism

    def started(self, mechanism: Mechanism, parameters: Mapping[str, Any], starts: Mapping[str, Any]) -> Simulation:
        """A simulation where the run begins."""
        simulation = Simulation(mechanism, self.formulation)
        for joint, (value, rate) in joint_starts(simulation.mechanism, starts).items():
            simulation.set_joint(joint, value, rate=rate)
        if self.prepare is not None:
            self.prepare(simulation, dict(parameters))
        return simulation

    def controller(self, index: int, parameters: Mapping[str, Any]) -> Callable[..., Any] | None:
        """The controller of one run, which shares no memory with those of others."""
        if self.control is None or not self.controllers:
            return deepcopy(self.control)
        made = self.control(dict(parameters), generator(self.seed, index))
        if made is not None and not callable(made):
            raise ModelError(f"controls must return a controller for each run, got {shown(made)}")
        return made

    def reduced(self, trajectory: Trajectory, simulation: Simulation) -> Any:
        """What is kept of a run."""
        if callable(self.reduce):
            return self.reduce(trajectory)
        return trajectory if self.reduce == "trajectory" else end_of(simulation)


def end_of(simulation: Simulation) -> dict[str, Any]:
    """Where a simulation is: its time (s), poses and velocities of bodies, coordinates and rates of joints (joints, 6), its energy (J)."""
    joints = simulation.mechanism.joints
    coordinate, rate = np.zeros((len(joints), 6)), np.zeros((len(joints), 6))
    for joint in joints:
        coordinate[joint.index, : joint.type.freedom] = simulation.coordinates(joint.name)
        rate[joint.index, : joint.type.freedom] = simulation.rates(joint.name)
    return dict(
        time=simulation.time, position=simulation.position, orientation=simulation.orientation, velocity=simulation.velocity,
        angular_velocity=simulation.angular_velocity, coordinate=coordinate, rate=rate, energy=simulation.energy(),
    )


def is_of_mechanism(name: str) -> bool:
    """Whether a parameter's name is one of a mechanism: "elbow.damping", "gravity", "gravity[2]"."""
    return "." in name or name.partition("[")[0] == "gravity"


def whole_values(mechanism: Mechanism, given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters with those of which only components are given, as in "elbow.point_parent[2]", filled up by what the mechanism has."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        part = COMPONENT.fullmatch(name)
        if part is None:
            found[name] = value
            continue
        base, place = part.group(1), tuple(int(number) for number in part.group(2).split(","))
        if base not in found:
            found[base] = np.array(known_parameter(mechanism, base).value, dtype=float)
        try:
            found[base][place] = value
        except (IndexError, ValueError, TypeError):
            raise ModelError(f"parameter {base!r} is {shown(found[base].tolist())}: it has no number {name.removeprefix(base)} that could be {shown(value)}") from None
    return found


def known_parameter(mechanism: Mechanism, name: str) -> Parameter:
    """A parameter by name, or a ModelError that says what it may have been meant to be."""
    known = list_parameters(mechanism, shifts=True)
    if name not in known:
        raise ModelError(f"{mechanism.name!r} has no parameter {name!r}; {choices(name, known)}")
    return known[name]


def arguments_of(function: Callable[..., Any], parameters: Mapping[str, Any]) -> list[str]:
    """Those of the parameters that are arguments of a function."""
    known = inspect.signature(function).parameters.values()
    names = [p.name for p in known if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    free = any(p.kind == p.VAR_KEYWORD for p in known)
    return [name for name in parameters if name in names or (free and not is_of_mechanism(name))]


def joint_starts(mechanism: Mechanism, starts: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Coordinates and rates by joint: "elbow" is where it starts, "elbow.rate" how fast."""
    found: dict[str, tuple[Any, Any]] = {}
    for name, value in starts.items():
        joint = name.removesuffix(RATE) if name not in mechanism else name
        place, rate = found.get(joint, (None, None))
        found[joint] = (value, rate) if joint == name else (place, value)
    return found


def check_names(job: Job, parameters: Mapping[str, Any], starts: Mapping[str, Any]) -> None:
    """A ModelError for a name that no run could take, before any begins."""
    taken = [] if isinstance(job.source, Mechanism) else arguments_of(job.source, parameters)
    takes_any = job.controllers or job.prepare is not None
    for name in parameters:
        if name in taken:
            continue
        if isinstance(job.source, Mechanism) and is_of_mechanism(name):
            first = {name: parameters[name][0]}
            for base in whole_values(job.source, first):
                old = np.shape(known_parameter(job.source, base).value)
                if base.rpartition(".")[2] in VECTORS and base == name and np.shape(first[name]) != old:
                    raise ModelError(f"parameter {name!r} is numbers of shape {old}: vary one of them, as in '{name}[{', '.join('0' for _ in old)}]', or give lists of all")
        elif not is_of_mechanism(name) and not takes_any:
            raise ModelError(f"nothing takes the parameter {name!r}: parameters of mechanisms are such as 'elbow.damping', and others go to a function that makes the mechanism, to controls=... or to prepare=...")
    if isinstance(job.source, Mechanism):
        for joint in joint_starts(job.source, starts):
            if joint not in job.source:
                raise ModelError(f"starts: {job.source.name!r} has no joint {joint!r}; {choices(joint, [j.name for j in job.source.joints])}")


def _calls_python(mechanism: Mechanism) -> bool:
    """Whether kernels call functions of the user's that are not compiled: what these raise is kept in one place for all threads."""
    elements = *mechanism.constraints, *mechanism.force_laws, *mechanism.paths, *mechanism.maps
    functions = [getattr(element, name, None) for element in elements for name in ("function", "gradient", "energy", "law", "jacobian")]
    return any(function is not None and not is_compiled(function) for function in functions)
