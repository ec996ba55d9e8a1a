"""What the engines in maximal coordinates share: a mechanism's model and graph, and what to read off a state."""
from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from dalembert.errors import StepFailure
from dalembert.forces.loads import potential_energy
from dalembert.formulations.engine import Inputs, KernelCall, Knot, Readings, Source, Start
from dalembert.formulations.maximal.checks import refuse_moving
from dalembert.formulations.maximal.graph import Graph, build_graph, has_loops
from dalembert.formulations.maximal.reading import Reader
from dalembert.formulations.maximal.recording import Recording, new_recording
from dalembert.formulations.maximal.series import motion_series, new_motion
from dalembert.formulations.maximal.sight import Sight, new_sight, see
from dalembert.formulations.maximal.substeps import advance, lingering
from dalembert.formulations.maximal.tape import Tape
from dalembert.kernels import direct
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.compile import compile_model
from dalembert.model.placement import Placement
from dalembert.model.pose import joint_rates
from dalembert.model.records import Model
from dalembert.model.targets import MET, unmet_targets
from dalembert.solvers.redundant import COMPLIANCE


class MaximalEngine:
    """A mechanism's model and graph. States are flat arrays that ``view`` shows as records.

    ``exact``: recorded momenta are those at the knots; otherwise they are left limits, and knot velocities follow by
    projection. ``nodes``: fractions of a step at which its inner stages aim at targets; ``one_start``: only the first step
    of a run has such stages. ``input_node``: the fraction of a step at which forces that are functions of time are taken.
    """

    exact: ClassVar[bool] = False
    #: targets that disagree by more than this (m or rad) cannot be followed
    target_error: ClassVar[float] = MET
    nodes: tuple[float, ...] = ()
    one_start: bool = False
    input_node: float = 0.0
    exact_motion: bool = False
    ended: Any = None
    #: whether intervals after a divided one are divided too until their energy no longer depends on it, and whether the method keeps energy
    lingers: ClassVar[bool] = False
    keeps_energy: ClassVar[bool] = False
    #: whether every joint must be equations between the poses of its bodies
    needs_rows: ClassVar[bool] = True
    options: Any
    #: a NamedTuple of the state's records, and their types
    state_type: ClassVar[Any]
    body_state: ClassVar[np.dtype]
    joint_state: ClassVar[np.dtype]
    clock_size: ClassVar[int] = 3

    def __init__(self, mechanism: Mechanism, options: Any) -> None:
        self.mechanism = mechanism
        self.options = options
        if self.needs_rows:
            refuse_moving(mechanism, type(options).__name__)
        self.model = compile_model(mechanism)
        self.reading = build_graph(self.model)
        self.graph = self._build()
        self.compliance = COMPLIANCE if has_loops(self.model) else 0.0
        self.outcome = (0, 0.0)
        self.whole = options.dt
        #: the state before a whole step that failed, and the targets at its ends (2, joints, 6)
        self.asked: tuple[np.ndarray, np.ndarray] | None = None
        #: where a run writes what derivatives need, if anything
        self.tape: Tape | None = None
        self._views: tuple[Any, Any] = (None, None)
        self._entries: dict[Any, Any] = {}

    def _build(self) -> Graph:
        """The graph that steps are solved on."""
        return self.reading

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of bodies, joints and couplings."""
        return len(self.model.bodies) - 1, len(self.model.joints), len(self.model.couplings)

    @property
    def drive_weight(self) -> float:
        """Weight of drives against joints where forces of redundant rows are least in a norm."""
        return 1.0

    # ---- states

    def _layout(self) -> tuple[tuple[np.dtype, int], ...]:
        """Types and numbers of the records of a state, in the order of ``state_type``."""
        bodies, joints, _ = self.sizes
        return (self.body_state, bodies), (self.joint_state, joints), (np.dtype("f8"), self.clock_size)

    def view(self, numbers: np.ndarray) -> Any:
        """The records of a state, or of many, first axis."""
        if self._views[0] is not numbers:
            parts, begin = [], 0
            for dtype, count in self._layout():
                end = begin + count * dtype.itemsize // 8
                parts.append(numbers[..., begin:end].view(dtype))
                begin = end
            self._views = numbers, self.state_type(*parts)
        return self._views[1]

    def _new_state(self) -> np.ndarray:
        return np.zeros(sum(count * dtype.itemsize // 8 for dtype, count in self._layout()))

    def start(self, start: Start) -> np.ndarray:
        """A knot with no step before it."""
        numbers = self._new_state()
        state = self.view(numbers)
        state.joints["coordinate"], state.joints["target"] = start.coordinate, start.target
        placement = self._place(start.position, start.orientation, start.coordinate)
        rates = np.zeros((self.sizes[1], 6))
        joint_rates(self.model, placement.work, np.concatenate([start.velocity, np.zeros((1, 6))]), rates)
        self._begin(state, start, rates)
        return numbers

    def _begin(self, state: Any, start: Start, rates: np.ndarray) -> None:
        """Write a start into a state; ``rates`` (joints, 6) along the free directions."""
        raise NotImplementedError

    def _place(self, position: np.ndarray, orientation: np.ndarray, coordinate: np.ndarray | None = None) -> Placement:
        """The mechanism at a pose, in the reading work."""
        placement = Placement(self.mechanism, self.model, self.reading.work)
        placement.put(position, orientation, coordinate)
        return placement

    def placement(self, numbers: np.ndarray) -> Placement:
        """The mechanism at a state's pose, with its targets."""
        state = self.view(numbers)
        self.reading.work.joints["target"] = state.joints["target"]
        return self._place(*self.pose(numbers), state.joints["coordinate"])

    def momentum_of(self, velocity: np.ndarray) -> np.ndarray:
        """Momenta (n, 6), world and body, of velocities (n, 6)."""
        bodies = self.model.bodies[:-1]
        angular = np.einsum("nij,nj->ni", bodies["inertia"].reshape(-1, 3, 3), velocity[:, 3:])
        return np.concatenate([bodies["mass"][:, None] * velocity[:, :3], angular], axis=1)

    # ---- what a state says

    def pose(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions (n, 3) and orientations (n, 4)."""
        bodies = self.view(numbers).bodies
        return bodies["x"].copy(), bodies["q"].copy()

    def coordinates(self, numbers: np.ndarray) -> np.ndarray:
        """(joints, 6) unwrapped."""
        return self.placement(numbers).work.joints["coordinate"].copy()

    def targets(self, numbers: np.ndarray) -> np.ndarray:
        """(joints, 6) targets held."""
        return self.view(numbers).joints["target"].copy()

    def knot(self, numbers: np.ndarray, inputs: Inputs, rates: np.ndarray) -> Knot:
        """Velocities, rates and energy at the knot, under the inputs of the step that begins there."""
        recording, sight = new_recording(1, *self.sizes), new_sight(*self.sizes)
        self.record(numbers, recording, 0)
        sight.coordinate[:], sight.prescribed[0, 0] = self.view(numbers).joints["coordinate"], rates
        self.enter(see, True, *self.see_arguments(recording, Inputs(*map(np.ascontiguousarray, self.felt(numbers, inputs))), sight))
        total, kinetic = sight.energy.tolist()
        return Knot(sight.motion.velocity[0, :-1], sight.motion.rate[0], total, kinetic)

    def see_arguments(self, recording: Recording, inputs: Inputs, sight: Sight) -> Any:
        """What ``see`` takes to read the one knot of a recording."""
        return self.model, self.reading.work, self.compliance, recording, inputs, self.exact, sight

    def record_call(self, numbers: np.ndarray, recording: Recording) -> KernelCall | None:
        """What writes a state into the one knot of a recording; None where Python is needed to read a state."""
        return None

    def felt(self, numbers: np.ndarray, inputs: Inputs) -> Inputs:
        """Inputs of a step with what else acts on what is read at the knot that it begins at. Of one state or of many, first axis."""
        return inputs

    def seen(self, recording: Recording, inputs: Inputs, rates: np.ndarray, coordinate: np.ndarray, model: Model | None = None) -> dict[str, np.ndarray]:
        """What a controller sees at the one knot of a recording, as ``knot`` reads it: arrays by name; ``model``: another one than its own."""
        (bodies, joints, couplings), work, model = self.sizes, self.reading.work, self.model if model is None else model
        work.joints["coordinate"], work.joints["target"] = coordinate, inputs.target[0]
        motion = new_motion(1, bodies, joints, couplings)
        motion_series(model, work, self.compliance, recording, inputs, np.stack([rates, np.zeros((joints, 6))])[:, None], motion, self.exact, np.ones(1, bool))
        velocity, rate, fixed = motion.velocity[0, :-1], motion.rate[0], model.bodies[:-1]
        kinetic = 0.5 * np.sum(fixed["mass"] * np.sum(velocity[:, :3] ** 2, axis=1))
        kinetic += 0.5 * np.einsum("ni,nij,nj->", velocity[:, 3:], fixed["inertia"].reshape(-1, 3, 3), velocity[:, 3:]) + 0.5 * np.sum(model.joints["armature"] * rate**2)
        return dict(
            position=recording.position[0].copy(), orientation=recording.orientation[0].copy(), velocity=velocity[:, :3].copy(),
            angular_velocity=velocity[:, 3:].copy(), coordinate=work.joints["coordinate"].copy(), rate=rate.copy(), kinetic=np.array([kinetic]),
            potential=np.array([potential_energy(model, work)]),
        )

    def as_seen(self, recording: Any, inputs: Inputs, knot: int, coordinate: np.ndarray) -> tuple[Recording, Inputs]:
        """A recording, and inputs of the step before a knot together with what else acts on what a controller sees there."""
        return recording, inputs

    # ---- running

    def new_recording(self, knots: int) -> Recording:
        """Room for a run."""
        return new_recording(knots, *self.sizes)

    def record(self, numbers: np.ndarray, recording: Recording, knot: int) -> None:
        """Write the state into a recording."""
        raise NotImplementedError

    def advance(self, numbers: np.ndarray, recording: Recording, source: Source, first: int, count: int, dt: float) -> int:
        """Advance by ``count`` steps of ``dt``, divided where that is needed. Returns how many succeeded."""
        self.whole = dt
        return advance(self, numbers, recording, source, first, count, dt)

    def run(self, numbers: np.ndarray, recording: Recording, inputs: Inputs, first: int, count: int, dt: float) -> int:
        """Compute ``count`` whole steps of ``dt`` from knot ``first`` of the recording. Returns how many succeeded."""
        raise NotImplementedError

    def kernel_call(self, numbers: np.ndarray, recording: Any, source: Source, count: int, dt: float) -> KernelCall | None:
        """What makes ``count`` whole steps without Python in between; None where there is no such kernel."""
        return None

    def plain(self, numbers: np.ndarray, dt: float) -> bool:
        """Whether the next interval of ``dt`` begins with a whole step."""
        return getattr(self.options, "accuracy", None) is None and not lingering(self, numbers, dt)

    def watch(self, on: bool) -> None:
        """Whether steps count as failed that are solved but spoil the energy."""

    def enter(self, kernel: Any, single: bool, *arguments: Any) -> Any:
        """Call a kernel of steps; ``single``: of one step, whose arguments have the same types at every call."""
        if not single:
            return kernel(*arguments)
        if kernel not in self._entries:
            self._entries[kernel] = direct(kernel, *arguments)
        return self._entries[kernel](*arguments)

    def mark(self, recording: Any) -> Any:
        """Where the log of the run stands, for ``go_back``."""
        return None if self.tape is None else self.tape.mark()

    def go_back(self, recording: Any, mark: Any) -> None:
        """Forget what was logged since ``mark``."""
        if self.tape is not None:
            self.tape.go_back(mark)

    def step_error(self, dt: float) -> float:
        """Estimated error (m) of the step just made."""
        raise NotImplementedError

    def opening(self, recording: Recording, knot: int) -> list[np.ndarray]:
        """What a step writes at the knot it starts from."""
        return [recording.row_force[knot], recording.coupling_force[knot]]

    def read(self, recording: Recording, inputs: Inputs, knots: int, dt: float, coordinate: np.ndarray) -> Readings:
        """The first ``knots`` knots of a recording."""
        return self._reader(Recording(*(array[:knots] for array in recording)), inputs, dt, coordinate).readings()

    def _reader(self, recording: Recording, inputs: Inputs, dt: float, coordinate: np.ndarray, pushed: np.ndarray | None = None) -> Reader:
        return Reader(
            self.mechanism, self.model, self.compliance, recording, inputs, dt, coordinate, self.exact, self.trusted(recording), self.reading, pushed,
        )

    def trusted(self, recording: Recording) -> np.ndarray:
        """(N,) knots whose recorded forces hold there without looking at their neighbours."""
        return np.zeros(len(recording.step_before), dtype=bool)

    # ---- failures

    def note_asked(self, numbers: np.ndarray, inputs: Inputs, done: int, dt: float) -> None:
        """Keep what a failed step was asked for; of the parts of a divided one, nothing."""
        if dt == self.whole or getattr(self.options, "accuracy", None) is not None:
            self.asked = numbers.copy(), inputs.target[done : done + 2].copy()

    def unmet(self) -> str | None:
        """Why the targets of a failed step cannot be met, if that is the reason."""
        return None if self.asked is None else unmet_targets(self.placement(self.asked[0]), self.asked[1][1], self.target_error)

    def start_velocity(self, numbers: np.ndarray) -> np.ndarray:
        """(n, 6) velocities of a state."""
        raise NotImplementedError

    def failure(self, time: float, dt: float) -> StepFailure:
        """The error for the step that ``run`` stopped at."""
        raise NotImplementedError

    def worst_row(self) -> str:
        """Name of the element with the largest residual of the last try."""
        worst, name, work = -1.0, "none", self.graph.work
        for element, joint, at in zip(self.mechanism.joints, self.model.joints, work.joints):
            for k in range(int(joint["locks"])):
                value = abs(float(at["r"][k]))
                if not value <= worst:
                    worst, name = value, f"row {k} of joint {element.name!r}"
        for element, fixed, body in zip(self.mechanism.bodies, self.model.bodies, work.bodies):
            value = float(np.max(np.abs(body["r"][:3])) / fixed["mass"])
            if not value <= worst:
                worst, name = value, f"body {element.name!r}"
        return name

    def fastest_body(self) -> tuple[str, float]:
        """Name and angular speed (rad/s) of the body that spins fastest."""
        spins = np.linalg.norm(self.graph.work.bodies["w"][:-1], axis=1)
        index = int(np.argmax(spins))
        return self.mechanism.bodies[index].name, float(spins[index])
