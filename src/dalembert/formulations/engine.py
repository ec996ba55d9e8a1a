"""What a formulation is to the rest of the package: options that make an engine, and the engine's contract.

``Simulation``, ``Trajectory``, controls and plots know these types and nothing below them. Arrays are by body and by joint,
in the mechanism's order; the last axis of a joint's numbers has room for six directions.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from dalembert.errors import StepFailure
from dalembert.mechanism.mechanism import Mechanism


class Start(NamedTuple):
    """A pose with velocities that satisfy the joints."""

    position: np.ndarray  # (n, 3)
    orientation: np.ndarray  # (n, 4)
    velocity: np.ndarray  # (n, 6) linear (world), angular (body frame)
    coordinate: np.ndarray  # (joints, 6) unwrapped
    target: np.ndarray  # (joints, 6) of directions that follow one


class Inputs(NamedTuple):
    """Inputs per step, first axis; an array of length zero means that there are none of the kind."""

    wrench: np.ndarray  # (S, n, 6) force (world), torque (body)
    joint: np.ndarray  # (S, joints, 6) forces along the free directions
    target: np.ndarray  # (S + 1, joints, 6) of the driven directions, at the knots
    #: (S, stages, joints, 6) the same at the stages of each step, or of the first one; for reading a run, (S + 1, 2, joints, 6)
    #: rates and accelerations of targets at the knots where they are known, NaN elsewhere, or of length zero
    stage: np.ndarray
    tension: np.ndarray  # (S, couplings) tensions that are added to those of paths, N


class Samples(NamedTuple):
    """Inputs at some fractions of every step: ``per`` rows for each, or with ``per`` zero, where no input is a function of time, one."""

    wrench: np.ndarray  # (rows, n, 6) as in ``Inputs``
    joint: np.ndarray  # (rows, joints, 6)
    tension: np.ndarray  # (rows, couplings)
    #: (S, fractions, 3, joints, 6) targets with their rates and accelerations; of length zero where nothing follows one
    motion: np.ndarray
    per: int


class Source(Protocol):
    """Where an engine takes inputs from: those of whole steps, of a part of one (fractions of it), or at moments of each."""

    #: steps that there are inputs for
    end: int
    #: the times (s) of numbers of steps
    times: Callable[[Any], Any]

    def window(self, first: int, count: int) -> Inputs: ...

    def part(self, step: int, start: float, length: float) -> Inputs: ...

    def samples(self, first: int, count: int, fractions: Sequence[float]) -> Samples: ...


class Knot(NamedTuple):
    """What can be read at one knot."""

    velocity: np.ndarray  # (n, 6) linear (world), angular (body frame)
    rate: np.ndarray  # (joints, 6) along the free directions
    energy: float  # kinetic plus potential, J
    kinetic: float  # J


#: shares of the force along a joint's free direction, in the order of their columns in "share": its own laws, then contacts
SHARES = ("drive", "spring", "damper", "rotor", "friction", "limit")
#: name -> array over the knots
Compute = Callable[[], Mapping[str, np.ndarray]]


@dataclass(frozen=True)
class Readings:
    """A recorded run as a trajectory takes it: what is there at once, and what is computed when somebody asks for it.

    At once: "position" (N, n, 3), "orientation" (N, n, 4), "substeps" (N,), "iterations" (N,). When asked for, at least:
    "velocity", "angular_velocity" (N, n, 3), "coordinate", "rate" (N, joints, 6), "force", "torque" (N, joints, 3),
    "actuation" (N, joints, 6), "share" (N, joints, 6, shares), which add up to it, "violation" (N, joints, 6), "potential" (N,),
    and of gears, constraints and paths "coupling_violation", "coupling" (values), "coupling_rate" and "coupling_force"
    (along the value: positive makes it larger), (N, couplings) each.
    """

    values: dict[str, np.ndarray]
    providers: tuple[tuple[frozenset[str], Compute], ...]
    #: names of what touches, for the log of contacts in "contact_log"
    touching: tuple[str, ...] = ()
    #: (weights, weight of drives, knots) -> "force", "torque", "actuation" with the redundant part least in a weighted norm
    least_norm: Callable[..., Mapping[str, np.ndarray]] | None = None
    #: names of events, for "event_time", "event_kind", "event_position" and "event_orientation" (events first)
    events: tuple[str, ...] = ()
    #: knots in rising order -> kinetic and potential energy (J) there, nearly, at little cost
    glance: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None


class KernelCall(NamedTuple):
    """A kernel that makes whole steps, and its arguments. Its result says at the place ``done`` how many it made.

    ``stops``: where it made fewer, the state is that after the last of them; otherwise it is lost. ``lists``: what the arguments hold besides the state
    depends on where it is, and must be asked for again after steps of ``advance``.
    """

    kernel: Any
    arguments: tuple[Any, ...]
    done: int
    stops: bool = True
    lists: bool = False


class Engine(Protocol):
    """A mechanism in one formulation. It holds no state: numbers (one flat array) go in and are advanced in place.

    It may say more: ``ended``, what ended the motion where ``advance`` stopped, if that was no failure, and None otherwise;
    ``exact_motion``, true where rates and accelerations of targets shall be asked for themselves, not differenced from knot to knot;
    ``kernel_call(numbers, recording, source, count, dt)``, a ``KernelCall`` that makes the first ``count`` steps as ``advance`` does, from a state
    that is ``plain(numbers, dt)``, or else stops before one that ``advance`` must make.
    """

    @property
    def nodes(self) -> tuple[float, ...]:
        """Fractions of a step at which its inner stages ask for inputs."""
        ...

    @property
    def one_start(self) -> bool:
        """Whether only the first step of a run has such stages."""
        ...

    @property
    def input_node(self) -> float:
        """Fraction of a step at which forces that are functions of time are taken."""
        ...

    def start(self, start: Start) -> np.ndarray:
        """The state that begins at a pose, as one flat array."""
        ...

    def pose(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions (n, 3) and orientations (n, 4)."""
        ...

    def coordinates(self, numbers: np.ndarray) -> np.ndarray:
        """(joints, 6) unwrapped."""
        ...

    def targets(self, numbers: np.ndarray) -> np.ndarray:
        """(joints, 6) targets held at the knot."""
        ...

    def knot(self, numbers: np.ndarray, inputs: Inputs, rates: np.ndarray) -> Knot:
        """Velocities, rates and energy at the knot, under the inputs of the step that begins there.

        ``rates`` (joints, 6): of the targets of driven directions there, NaN where that is not known.
        """
        ...

    def new_recording(self, knots: int) -> Any:
        """Room for a run."""
        ...

    def record(self, numbers: np.ndarray, recording: Any, knot: int) -> None:
        """Write the state into a recording."""
        ...

    def advance(self, numbers: np.ndarray, recording: Any, source: Source, first: int, count: int, dt: float) -> int:
        """Advance by ``count`` steps of ``dt`` (s) from knot ``first`` of the recording. Returns how many succeeded."""
        ...

    def failure(self, time: float, dt: float) -> StepFailure:
        """The error for the step that ``advance`` stopped at."""
        ...

    def read(self, recording: Any, inputs: Inputs, knots: int, dt: float, coordinate: np.ndarray) -> Readings:
        """The first ``knots`` knots of a recording; ``coordinate``: (joints, 6) at its first one."""
        ...


class Formulation(Protocol):
    """``Variational``, ``Implicit`` and those to come: options with a step, that make engines."""

    @property
    def dt(self) -> float:
        """Step in seconds."""
        ...

    def engine(self, mechanism: Mechanism) -> Engine:
        """What runs a mechanism, which no longer changes."""
        ...
