"""What many states say: poses, velocities, coordinates, energies; as simulations read theirs, to the bit."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dalembert.ensemble.stepping import States
from dalembert.formulations.engine import Inputs
from dalembert.formulations.maximal.recording import new_recording
from dalembert.formulations.maximal.sight import new_sight, see
from dalembert.kernels.many import Many
from dalembert.model.functions import watched
from dalembert.simulation.controls import one_knot


class Knots(NamedTuple):
    """What can be read at the knots of n states, first axis."""

    position: np.ndarray  # (n, bodies, 3)
    orientation: np.ndarray  # (n, bodies, 4)
    velocity: np.ndarray  # (n, bodies, 6) linear (world), angular (body frame)
    coordinate: np.ndarray  # (n, joints, 6) unwrapped
    rate: np.ndarray  # (n, joints, 6)
    energy: np.ndarray  # (n,) total


def read_one_by_one(states: States) -> Knots:
    """Read all states by the engines of their simulations."""
    found: list[tuple[Any, ...]] = []
    for simulation, numbers, inputs in zip(states.simulations, states.numbers, states.inputs):
        engine, mechanism = simulation.engine, simulation.mechanism
        with watched(mechanism):
            knot = engine.knot(numbers, one_knot(mechanism, inputs, engine.targets(numbers)), np.full((len(mechanism.joints), 6), np.nan))
        found.append((*engine.pose(numbers), knot.velocity, engine.coordinates(numbers), knot.rate, knot.energy))
    return Knots(*(np.array(parts) for parts in zip(*found)))


def contact_wrenches(states: States) -> np.ndarray:
    """(n, bodies, 6) of contacts that last."""
    engine: Any = states.simulations[0].engine
    bodies = engine.view(states.numbers).bodies if hasattr(engine, "view") and hasattr(engine, "felt") else None
    if bodies is None or "wrench" not in (bodies.dtype.names or ()):
        return np.zeros((len(states.numbers), len(states.simulations[0].mechanism.bodies), 6))
    return bodies["wrench"].copy()


class Reader:
    """Reads states by kernels, those of a thread one after the other in its own work."""

    def __init__(self, states: States) -> None:
        self.states, n = states, len(states.numbers)
        engine: Any = states.simulations[0].engine
        sizes = engine.sizes
        self.recording, self.sight = repeated(new_recording(1, *sizes), n), repeated(new_sight(*sizes), n)
        bodies, joints, couplings = sizes
        self.inputs = Inputs(
            np.zeros((n, 1, bodies, 6)), np.zeros((n, 1, joints, 6)), np.zeros((n, 1, joints, 6)), np.zeros((n, 0, 0, joints, 6)), np.zeros((n, 1, couplings)),
        )
        self._by: list[Any] = [None] * n
        self._posing, self._seeing = Many(*self._arguments(0)[0], n), Many(*self._arguments(0)[1], n)

    @classmethod
    def of(cls, states: States) -> Reader | None:
        """A reader of some states; None where they must be read one by one."""
        engine: Any = states.simulations[0].engine
        able = hasattr(engine, "record_call") and engine.record_call(states.numbers[0], new_recording(1, *engine.sizes)) is not None
        return cls(states) if able else None

    def _arguments(self, index: int) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        """Kernels and arguments that write a pose, and that read the knot."""
        engine: Any = self.states.simulations[index].engine
        recording, sight = part(self.recording, index), part(self.sight, index)
        call = engine.record_call(self.states.numbers[index], recording)
        return call[:2], (see, engine.see_arguments(recording, part(self.inputs, index), sight))

    def refresh(self) -> None:
        """Make the arguments of states again whose simulations are others."""
        states, posing, seeing = self.states, self._posing, self._seeing
        for i, simulation in enumerate(states.simulations):
            if self._by[i] is not simulation:
                (_, first), (_, second) = self._arguments(i)
                posing.put(i, first)
                seeing.put(i, second)
                self._by[i] = simulation

    def take(self) -> None:
        """Put inputs, targets and coordinates to unwrap against of all states in their places."""
        states, engine = self.states, self.states.simulations[0].engine
        view, n = engine.view(states.numbers), len(states.numbers)  # type: ignore[attr-defined]
        bodies, joints = self.inputs.wrench[0].size, self.inputs.joint[0].size
        given = states.inputs
        plain = self.inputs._replace(
            wrench=given[:, :bodies].reshape(n, 1, -1, 6), joint=given[:, bodies : bodies + joints].reshape(n, 1, -1, 6), tension=given[:, None, bodies + joints :],
        )
        felt = engine.felt(states.numbers, plain)  # type: ignore[attr-defined]
        self.inputs.wrench[:], self.inputs.joint[:], self.inputs.tension[:] = felt.wrench, felt.joint, felt.tension
        self.inputs.target[:, 0], self.sight.coordinate[:] = view.joints["target"], view.joints["coordinate"]

    def pose(self, chosen: np.ndarray) -> None:
        """Write poses of states (k,), all of one thread."""
        self._posing.call(chosen)

    def see(self, chosen: np.ndarray) -> None:
        """Read states (k,), all of one thread, whose poses are written."""
        self._seeing.call(chosen)

    def knots(self) -> Knots:
        """What was read."""
        recording, sight = self.recording, self.sight
        return Knots(
            recording.position[:, 0], recording.orientation[:, 0], sight.motion.velocity[:, 0, :-1], sight.coordinate, sight.motion.rate[:, 0], sight.energy[:, 0],
        )


def repeated(room: Any, count: int) -> Any:
    """The same arrays ``count`` times, first axis."""
    return type(room)(*(repeated(item, count) if isinstance(item, tuple) else np.repeat(item[None], count, axis=0) for item in room))


def part(room: Any, index: int) -> Any:
    """One of what was repeated."""
    return type(room)(*(part(item, index) if isinstance(item, tuple) else item[index] for item in room))
