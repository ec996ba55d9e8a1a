"""A mechanism being simulated: set it up, step it, run it; the state is always the last good one."""
from __future__ import annotations

import sys
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dalembert.checks import (
    ANYTHING,
    BY_NAME,
    FUNCTION,
    NOT_NEGATIVE,
    NOTHING,
    PORT,
    POSITIVE,
    STEP,
    checked,
    checked_as,
    one_of,
    shown,
    whole,
)
from dalembert.errors import ControlError, DalembertError, GradientError, ModelError, OverlapError, Terminated
from dalembert.formulations.derivatives import Differentiable
from dalembert.formulations.engine import Engine, Formulation, Knot, Start
from dalembert.mechanism.forces import Path
from dalembert.mechanism.maps import CoordinateMap
from dalembert.mechanism.mechanism import JointElement, Mechanism
from dalembert.mechanism.parameters import Parameter, list_parameters, with_parameters
from dalembert.model.functions import raised, try_functions, watched
from dalembert.model.redundancy import Redundancy, analyse_redundancy
from dalembert.progress import Progress
from dalembert.simulation.aims import Aim
from dalembert.simulation.controls import (
    Input,
    InputTables,
    input_count,
    one_knot,
    read_control,
)
from dalembert.simulation.ending import ending_in_order, keep
from dalembert.simulation.energy import EnergyWatch
from dalembert.simulation.history import History
from dalembert.simulation.latest import LastStep, Now, made_again
from dalembert.simulation.paths import path_motion
from dalembert.simulation.record import BUDGET, Controlled, Record
from dalembert.simulation.room import check_run, run_bytes, series_bytes
from dalembert.simulation.setup import Setup
from dalembert.simulation.state import State
from dalembert.simulation.targets import (
    Given,
    Motion,
    Target,
    read_target,
    target_accelerations,
    target_coordinates,
    target_rates,
)
from dalembert.simulation.trajectory import Trajectory, read_trajectory
from dalembert.simulation.turning import warn_of_far_turns

if TYPE_CHECKING:
    from dalembert.gradients.check import Check
    from dalembert.gradients.equilibrium import Equilibrium
    from dalembert.gradients.linearise import Linearisation
    from dalembert.gradients.modes import Modes
    from dalembert.gradients.situation import Situation
    from dalembert.gradients.step import StepJacobian

Control = Callable[["Simulation"], Mapping[str, Input]]
#: "differences", or what gives {input: {what a controller sees: array}}
ControlDerivative = str | Callable[["Simulation"], Mapping[str, Mapping[str, ArrayLike]]]

#: seconds of computing between two looks at the keyboard and the progress bar
CHUNK_SECONDS = 0.2
#: of a step: a duration that differs from whole steps by no more is one of whole steps
ROUNDING = 1e-6
#: how often bodies are moved apart and joints into their limits, in turn
RESOLUTIONS = 10


class Simulation:
    """Runs a ``Mechanism``, as it is now, in a formulation: later changes of the mechanism change no simulation.

    The start is the mechanism's reference pose at rest (or what ``Mechanism.start`` says); ``set_joint`` and
    ``set_velocity`` change it. Time, pose and velocities are those of the current knot.

    ``target_tolerance`` (m or rad): targets of redundant motion drives that disagree by no more than this are moved onto what
    the joints allow, and the trajectory says by how much. ``energy_bound``: a run whose energy rises by more than this part
    of the energy that moves about in it, though nothing puts any in, gives an ``EnergyWarning``; None for no watch.
    """

    #: whether a run of it is under way
    _running = False

    @checked(mechanism=ANYTHING, target_tolerance=NOT_NEGATIVE, energy_bound=NOT_NEGATIVE | NOTHING)
    def __init__(
        self, mechanism: Mechanism, formulation: Formulation, *, target_tolerance: float = 1e-6, energy_bound: float | None = 0.1,
    ) -> None:
        if not isinstance(mechanism, Mechanism):
            raise ModelError(f"Simulation needs a Mechanism, got {shown(mechanism)}")
        if not mechanism.bodies:
            raise ModelError(f"{mechanism.name!r} has no bodies to simulate")
        self._target_tolerance, self._energy_bound = target_tolerance, energy_bound
        self._source = mechanism
        self._formulation = formulation
        self._targets: dict[str, Target] = {}
        self._inputs: dict[str, Input] = {}
        self._knot: Knot | None = None
        self._single: _Single | None = None
        self._last: LastStep | None = None
        self._look: tuple[Knot, Trajectory] | None = None
        self._before: tuple[LastStep, Knot] | None = None
        self._origin: _Origin | None = None
        self._take(mechanism.snapshot())
        self._begin(self._setup.initial(), (0.0, 0, formulation.dt))

    def _take(self, mechanism: Mechanism) -> None:
        """Make the engine of a mechanism that no longer changes."""
        self._mechanism = mechanism
        self._engine: Engine = self._formulation.engine(mechanism)
        self._setup = Setup(mechanism)
        self._single = None
        #: (joints, 6) which of these numbers are coordinates
        self._free = np.arange(6) < np.array([joint.type.freedom for joint in mechanism.joints], dtype=int)[:, None]
        self._kind = f"{type(self._formulation).__name__} of {', '.join(e.name for e in (*mechanism.bodies, *mechanism.joints))}"

    def _begin(self, start: Start, clock: tuple[float, int, float]) -> None:
        """Start from a pose with velocities."""
        self._stands()
        inputs = np.zeros(input_count(self._mechanism))
        self._state = State(self._kind, clock, self._engine.start(start), inputs)
        self._moved = False
        self._knot = self._last = None

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs to go on from here, which is little: the engine is made anew there."""
        names = "_mechanism", "_formulation", "_target_tolerance", "_energy_bound", "_targets", "_inputs", "_state", "_moved", "_origin"
        return {name: getattr(self, name) for name in names} | {"asked": self._setup.keep()}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update({name: value for name, value in kept.items() if name != "asked"})
        self._source = self._mechanism
        self._single = self._knot = self._last = self._look = self._before = None
        self._take(self._mechanism)
        self._setup.restore(kept["asked"])

    def __repr__(self) -> str:
        return f"<simulation of {self._mechanism.name!r} in {type(self._formulation).__name__}, dt = {self._formulation.dt:g} s, at t = {self.time:g} s>"

    # ---- what it is now

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism as it was when the simulation was made, with the parameters set since."""
        return self._mechanism

    @property
    def formulation(self) -> Formulation:
        """The formulation, which owns the step."""
        return self._formulation

    @property
    def engine(self) -> Engine:
        """What steps it, for those that build on it: ``dalembert.formulations.engine`` says what it can."""
        return self._engine

    @property
    def time(self) -> float:
        """Seconds."""
        return self._state.time

    @property
    def state(self) -> State:
        """A copy of all that determines the future, for ``restore``; it can be compared, pickled and saved."""
        return self._state.copy()

    def restore(self, state: State) -> None:
        """Go back to a state of this mechanism in this formulation."""
        self._stands()
        if not isinstance(state, State):
            raise ModelError(f"restore needs a state of a simulation, got {type(state).__name__}")
        if state.kind != self._kind or state.numbers.shape != self._state.numbers.shape:
            raise ModelError(f"the state is one of {state.kind}; this simulation is {self._kind}")
        if state.numbers.dtype != np.float64 or state.inputs.dtype != np.float64 or state.inputs.shape != self._state.inputs.shape:
            raise ModelError(f"the state is one of {state.kind}, but its numbers are of another kind or count: it was made by other means than this package")
        self._state = state.copy()
        self._moved = True
        self._knot = self._last = None

    def reset(self) -> None:
        """Go back to where the first step began: time, pose, velocities, targets and inputs as they were set up until then.

        Parameters set since stay. Other starts: ``set_joint`` after it, or ``restore`` of a state that was kept.
        """
        self._stands()
        origin = self._origin
        if origin is None:
            return
        self._state, self._targets, self._inputs = origin.state.copy(), dict(origin.targets), dict(origin.inputs)
        self._setup.restore(origin.asked)
        self._moved, self._knot, self._last = origin.moved, None, None
        self._single = None if self._targets or self._inputs else self._single

    def _stands(self) -> None:
        """Nothing may move a simulation from within its own run: the steps that follow would be those of neither motion."""
        if self._running:
            raise ControlError(
                f"{self._mechanism.name!r} is in the middle of a run: functions that it calls may look at the simulation, but not run, set or restore it. "
                "A controller returns forces and targets; look ahead on a copy (copy.deepcopy), and change the simulation between runs or steps"
            )

    def _leave(self) -> None:
        """Remember where the first step begins."""
        if self._origin is None:
            self._origin = _Origin(self._state.copy(), self._targets.copy(), self._inputs.copy(), self._setup.keep(), self._moved)

    @property
    def position(self) -> np.ndarray:
        """(bodies, 3) centres of mass, metres."""
        return self._engine.pose(self._state.numbers)[0]

    @property
    def orientation(self) -> np.ndarray:
        """(bodies, 4) unit quaternions, scalar first."""
        return self._engine.pose(self._state.numbers)[1]

    @property
    def velocity(self) -> np.ndarray:
        """(bodies, 3) at the knot, m/s."""
        return self._read().velocity[:, :3].copy()

    @property
    def angular_velocity(self) -> np.ndarray:
        """(bodies, 3) at the knot, body frame, rad/s."""
        return self._read().velocity[:, 3:].copy()

    def coordinates(self, joint: str | None = None) -> np.ndarray:
        """Minimal coordinates (freedom,) of a joint, angles unwrapped; without a name those of all joints, one after the other."""
        if joint is None:
            return self._engine.coordinates(self._state.numbers)[self._free]
        element = self._joint(joint)
        return self._engine.coordinates(self._state.numbers)[element.index, : element.type.freedom].copy()

    def rates(self, joint: str | None = None) -> np.ndarray:
        """Rates (freedom,) of a joint's coordinates, or of those of all joints; for a free rotation, the relative angular velocity in the parent's axes."""
        if joint is None:
            return self._read().rate[self._free]
        element = self._joint(joint)
        return self._read().rate[element.index, : element.type.freedom].copy()

    def path_length(self, path: str) -> float:
        """Length (m) of a path or cable."""
        return self._path(path)[0]

    def path_rate(self, path: str) -> float:
        """How fast the length of a path or cable grows, m/s."""
        return self._path(path)[1]

    def _path(self, name: str) -> tuple[float, float]:
        element = self._mechanism[name]
        if not isinstance(element, Path):
            raise ModelError(f"{element!r} is no path or cable")
        return path_motion(element, *self._engine.pose(self._state.numbers), self._read().velocity)

    def energy(self) -> float:
        """Kinetic plus potential energy at the knot, in J."""
        return self._read().energy

    def energies(self) -> tuple[float, float]:
        """Total and kinetic energy at the knot, in J."""
        knot = self._read()
        return knot.energy, knot.kinetic

    @property
    def pushed(self) -> bool:
        """Whether ``set_input`` gives it inputs."""
        return bool(self._inputs)

    def latest(self) -> Trajectory:
        """The last step as a trajectory of two knots: forces, contacts and all else that a trajectory has, for controllers that measure them.

        One knot where no step was made since the start was set, or the last one failed. Forces at the second knot are those under the inputs of
        the step. The step is made once more for it, and takes as long.
        """
        knot = self._read()
        if self._look is None or self._look[0] is not knot:
            self._look = knot, made_again(self._engine, self._mechanism, type(self._formulation).__name__, self._last, self._state)
        return self._look[1]

    def _now(self, before: bool) -> Now:
        """What the current state tells, and where there is one, that ``before`` the last step."""
        states, knots, last = [self._state], [self._read()], self._last
        if before and last is not None:
            if self._before is None or self._before[0] is not last:
                self._before = last, self._knot_at(last.state, last.followed)
            states, knots = [last.state, self._state], [self._before[1], knots[0]]
        return Now(self._mechanism, self._engine, states, knots)

    def sensor(self, name: str) -> np.ndarray:
        """What a sensor of the mechanism says now, one number per channel. Those of forces take as long as a step."""
        from dalembert.simulation.sensing import measure, of_steps, sensor_named

        sensor = sensor_named(self._mechanism, name)
        return measure(self._mechanism, sensor, self.latest() if sensor.kind.of_forces else self._now(of_steps(sensor)))[-1]

    def redundancy(self) -> Redundancy:
        """Ranks and redundant rows of joints and drives at the current pose (a dense analysis: seconds for 2,000 rows)."""
        self._setup.resume(self._here())
        return analyse_redundancy(self._setup.placement)

    def _read(self) -> Knot:
        """Velocities and energy at the knot; reading changes nothing."""
        if self._knot is None:
            self._knot = self._knot_at(self._state, self._targets if self._moved else {})
        return self._knot

    def _knot_at(self, state: State, followed: Mapping[str, Target]) -> Knot:
        inputs = one_knot(self._mechanism, state.inputs, self._engine.targets(state.numbers))
        rates = target_rates(self._mechanism, followed, state.time)
        with watched(self._mechanism):
            return self._engine.knot(state.numbers, inputs, rates)

    def _here(self) -> Start:
        """Pose and velocities of the current knot, to start anew from."""
        return self._start_from(self._state.numbers, self._read())

    def _start_from(self, numbers: np.ndarray, knot: Knot) -> Start:
        return Start(*self._engine.pose(numbers), knot.velocity, self._engine.coordinates(numbers), self._engine.targets(numbers))

    def _joint(self, name: str) -> JointElement:
        if name not in self._mechanism and name in self._source:
            raise ModelError(f"{name!r} was added to {self._source.name!r} after this simulation was made: make a new Simulation")
        return self._setup.joint(name)

    # ---- parameters

    def parameters(self) -> dict[str, Parameter]:
        """All parameters by name ("elbow.damping", "upper.mass", "gravity"), with their values and units."""
        return list_parameters(self._mechanism)

    @checked(values=BY_NAME)
    def set_parameters(self, values: Mapping[str, ArrayLike]) -> None:
        """Change parameters between runs; pose and velocities stay. Earlier trajectories keep the values they ran with.

        Raises ModelError, and changes nothing, for an unknown name or a value that makes no sense.
        """
        self._stands()
        changed, origin = with_parameters(self._mechanism, values), self._origin
        before = self._mechanism, self._engine, self._setup, self._state
        here, clock = self._here(), self._state.clock
        first = None if origin is None else self._start_from(origin.state.numbers, self._knot_at(origin.state, origin.targets if origin.moved else {}))
        try:
            self._take(changed)
            if origin is not None and first is not None:
                self._setup.resume(first)
                self._begin(self._setup.settle(), origin.state.clock)
                self._origin = origin._replace(state=self._state, asked=self._setup.keep())
            self._setup.resume(here)
            self._begin(self._setup.settle(), clock)
        except Exception:
            self._mechanism, self._engine, self._setup, self._state = before
            self._origin, self._single, self._knot = origin, None, None
            raise

    # ---- setting it up

    @checked
    def set_joint(self, name: str, value: ArrayLike | None = None, *, rate: ArrayLike | None = None) -> None:
        """Move a joint (or a coordinate map) to ``value`` (m or rad), with its subtree; loops are closed again. ``rate``: its speed.

        Joints set before stay where they were put. Raises AssemblyError, and changes nothing, if a loop cannot follow.
        """
        if not (name in self._mechanism and isinstance(self._mechanism[name], CoordinateMap)):
            self._joint(name)
        self._set(lambda setup: setup.move(name, value, rate))

    @checked(coordinates=BY_NAME | NOTHING, rates=BY_NAME | NOTHING)
    def set_joints(self, coordinates: Mapping[str, ArrayLike] | None = None, *, rates: Mapping[str, ArrayLike] | None = None) -> None:
        """``set_joint`` for many joints at once, which is as quick as for one: {joint: coordinates (m or rad)} and {joint: rates}.

        Rates that are not named stay. Raises AssemblyError, and changes nothing, if a loop cannot follow.
        """
        for name in (*(coordinates or {}), *(rates or {})):
            self._joint(name)
        self._set(lambda setup: setup.move_all(coordinates or {}, rates or {}))

    @checked
    def set_velocity(self, body: str, *, linear: ArrayLike | None = None, angular: ArrayLike | None = None) -> None:
        """Velocity of a body: ``linear`` (m/s, world, of the centre of mass), ``angular`` (rad/s, body frame).

        Made consistent with the joints: bodies below it in the tree are carried along, the rest follows as the joints ask,
        and so does the part that is not given.
        """
        def change(setup: Setup) -> Start:
            setup.hold(body, linear, angular)
            return setup.settle()

        self._set(change)

    def _set(self, change: Callable[[Setup], Start]) -> None:
        """Change the start; what a run has reached is what a new setting starts from."""
        self._stands()
        setup = self._setup
        if self._moved:
            setup.resume(self._here())
        before = setup.keep()
        try:
            self._begin(change(setup), self._state.clock)
        except Exception:
            setup.restore(before)
            raise

    @checked
    def set_target(self, joint: str, target: Target | None = None, *, rate: Given | None = None, acceleration: Given | None = None) -> None:
        """Target of a motion-driven joint, or of a servo, from now on.

        A value (coordinates, or with a unit quaternion in place of a rotation vector), a function of time (s) that gives
        one, or a table (times, values), which is interpolated smoothly and must cover the run. Or a ``rate`` (m/s or rad/s) or an
        ``acceleration`` to follow from where the joint is now, numbers or functions of time; given along with a function, they are
        its derivatives, which are differenced otherwise. The target of a velocity servo is a rate, whichever way it is given.
        """
        self._stands()
        element = self._joint(joint)
        if not element.type.follows:
            advice = "make it with drive='motion' or a servo" if element.type.freedom else "it locks every direction"
            raise ModelError(f"joint {joint!r} is not motion-driven and has no servo; {advice}")
        if "rate" in (paces := {servo.follows for servo in element.type.servo if servo is not None}) and not (rate is None and acceleration is None):  # type: ignore[union-attr]
            if len(paces) > 1 or target is not None or acceleration is not None:
                raise ModelError(f"joint {joint!r} has a velocity servo, whose target is a rate: give it as the target alone")
            target, rate = rate, None
        if rate is None and acceleration is None:
            if target is None:
                raise ModelError(f"set_target needs a target, a rate or an acceleration for joint {joint!r}")
            self._targets[joint] = read_target(element, target, self.time)
        elif target is not None and not callable(target):
            raise ModelError(f"a target of joint {joint!r} with a rate or an acceleration must be a function of time")
        else:
            self._targets[joint] = Motion(element, (target, rate, acceleration), self.time, self.coordinates(joint), self.rates(joint))
        self._single = None

    @checked
    def set_input(self, name: str, value: Input | None) -> None:
        """Force of a force-driven joint (N or N m), wrench on a body or tension of a driven path from now on; None ends it.

        Numbers, or a function of time (s) that gives them, which is asked for at the times that the method needs. What a
        controller returns for the same name goes before it.
        """
        self._stands()
        if name not in self._mechanism:
            raise ModelError(f"{self._mechanism.name!r} has nothing named {name!r} to push")
        inputs = {key: item for key, item in self._inputs.items() if key != name}
        if value is not None:
            inputs[name] = value
            InputTables(self._mechanism, self._engine, {}, inputs, self._engine.targets(self._state.numbers), 1, _times(self._state, 1.0), True)
        self._inputs, self._single = inputs, None

    @property
    def commanded(self) -> frozenset[str]:
        """Names of what follows a function of time or a table, by ``set_target``, ``set_input`` or ``follow``."""
        return frozenset(name for given in (self._targets, self._inputs) for name, value in given.items() if callable(value))

    @checked
    def follow(self, joint: str, trajectory: Trajectory, body: str | None = None) -> None:
        """Drive a free joint of the world so that its child moves as ``body`` (its namesake by default) did in a recorded run.

        So that part of a machine can be simulated alone.
        """
        element = self._joint(joint)
        if element.parent is not self._mechanism.world or len(element.type.directions) != 6 or not element.type.has_rows:
            raise ModelError(f"follow needs a Free joint between the world and a body, and {joint!r} is not one")
        series = trajectory.body(body or element.child.name)
        values = self._setup.coordinates_at(element, zip(series.position, series.orientation))
        self.set_target(joint, (trajectory.time, values))

    @checked
    def solve_pose(
        self, wishes: Mapping[str, ArrayLike] | None = None, *, aims: Sequence[Aim] = (), weights: Mapping[str, float] | None = None,
    ) -> dict[str, np.ndarray]:
        """Coordinates of all joints in the pose nearest to wished coordinates, and to ``aims`` of bodies, that the passive joints allow.

        Inverse kinematics of the whole mechanism with its drives free, loops included: targets taken from the answer are consistent.
        ``aims``: where points and frames of bodies shall be, such as ``Aim(body="hand", position=(1, 0, 2))``; ``weights``: how much each
        wish counts (1 by default). The simulation itself stays as it is.
        """
        if self._moved:
            self._setup.resume(self._here())
        return self._setup.solve_pose(wishes or {}, weights or {}, aims)

    def resolve_overlaps(self) -> None:
        """Move bodies that overlap apart, as little as possible, and joints beyond their limits to the nearest end; joints stay closed.

        Does nothing where there are none of either. Raises OverlapError, or AssemblyError for limits, and changes nothing where no such pose is found.
        """
        self._stands()
        engine: Any = self._engine
        if not hasattr(engine, "resolve_overlaps"):
            return
        before, clock = self._state.copy(), self._state.clock
        try:
            for _ in range(RESOLUTIONS):
                overlaps = engine.overlaps(self._state.numbers)
                if not overlaps and not engine.beyond_limits(self._state.numbers):
                    return
                start = self._here()
                if overlaps:
                    position, orientation = engine.resolve_overlaps(self._state.numbers)
                    start = start._replace(position=position, orientation=orientation)
                self._setup.resume(start)
                self._setup.enter_limits()
                self._begin(self._setup.settle(), clock)
            named = ", ".join(pair for pair, _ in overlaps[:5])
            raise OverlapError(f"the overlaps of {self._mechanism.name!r} cannot be resolved within the limits of its joints: {named}", overlaps)
        except DalembertError:
            self.restore(before)
            raise

    # ---- analysing it

    @checked
    def linearise(self, inputs: Sequence[str] | None = None, coordinates: Sequence[str] | None = None) -> Linearisation:
        """The linear part of the motion about the current state, in independent coordinates: A and B of continuous time and of a step.

        ``inputs``: names of force-driven joints, servos (their targets), bodies (wrenches) and driven paths (tensions); by default
        all forces and tensions. ``coordinates``: names of joints ("elbow", "ball[1]") or bodies ("box[2]"), as many as the mechanism
        has freedoms; by default those joints' coordinates that tell its motions apart best. Raises LinearisationError where the
        motion has no linear part.
        """
        from dalembert.gradients.linearise import linearise

        return linearise(self._situation(), inputs, coordinates)

    @checked
    def equilibrium(self, *, stable: bool = False, move: bool = True) -> Equilibrium:
        """The pose near the current one in which all forces are in balance, with its stability.

        Newton's method keeps to the branch that the pose is on, which may be an unstable one; where that fails, and at once with
        ``stable``, the mechanism goes downhill to a pose where it stays by itself. The simulation is put there, at rest, unless
        ``move`` is false. Raises EquilibriumError, and changes nothing, when there is no such pose.
        """
        from dalembert.gradients.equilibrium import find_equilibrium

        found = find_equilibrium(self._situation(goals=True), stable)
        if move:
            self._stands()
            self._setup.resume(found.start)
            self._begin(found.start, self._state.clock)
            self._moved = True
        return found

    @checked
    def modes(self, coordinates: Sequence[str] | None = None) -> Modes:
        """Vibrations about the current pose, which must be an equilibrium: frequencies, damping, shapes, films of each.

        ``coordinates`` as for ``linearise``. Raises EquilibriumError where the forces are not in balance.
        """
        from dalembert.gradients.modes import find_modes

        return find_modes(self._situation(), coordinates)

    @checked_as(GradientError)
    def step_jacobian(self, parameters: Sequence[str] = (), *, gradient_smoothing: float = 0.0) -> StepJacobian:
        """The derivative of the next step by the state before it and by parameters, inputs and targets by name. Changes nothing.

        ``gradient_smoothing`` (m/s) as for ``Trajectory.vjp``.
        """
        from dalembert.gradients.step import step_jacobian

        return step_jacobian(self, parameters, gradient_smoothing)

    @checked(steps=whole("a whole number from 6 to 10000", least=6, most=10_000))
    def check(self, *, steps: int = 40) -> Check:
        """Is this mechanism right in this formulation? A self-test from the current knot on; print it, or ask for its ``ok``. Changes nothing.

        Copies run for ``steps`` steps, and with half steps: joints must hold, energy must not rise where nothing puts any in, rates must be those of
        the coordinates, derivatives must be those of differences, and the other formulations must come to the same poses, or nearer with half the step.
        After an impact, poses of formulations part by what the impact's time differs: begin such checks where nothing touches for a while.
        """
        from dalembert.gradients.check import check_simulation

        return check_simulation(self, steps)

    def _follow_on(self, other: Simulation) -> None:
        """Go on where a simulation of the same mechanism is, with its targets and inputs."""
        self._targets, self._inputs = dict(other._targets), dict(other._inputs)
        self._setup.resume(other._here())
        self._begin(self._setup.settle(), (other.time, 0, self._formulation.dt))
        self._single = None

    def _situation(self, goals: bool = False) -> Situation:
        """What analyses start from; ``goals``: drives are where their targets will be."""
        from dalembert.gradients.situation import Situation

        mechanism, engine, state, dt = self._mechanism, self._engine, self._state.copy(), self._formulation.dt
        targets, inputs, held = dict(self._targets), dict(self._inputs), engine.targets(state.numbers)

        def tables(followed: Mapping[str, Target] = targets) -> InputTables:
            return InputTables(mechanism, engine, followed, inputs, held, 1, _times(state, dt), True)

        start, now = self._here(), tables({}).recorded(1)
        start = start._replace(target=start.target.copy())
        for name, target in targets.items():
            element = mechanism[name]
            value = target_coordinates(element, target(self.time) if callable(target) else target, self.time)
            wanted = np.array([goals or drive != "motion" for drive in element.type.drive])
            start.target[element.index, : len(value)][wanted] = value[wanted]
        gaps = getattr(engine, "gaps", None)
        return Situation(
            mechanism, self._setup.placement.model, engine, start, now, target_accelerations(mechanism, targets, self.time), dt, self.time, tables,
            lambda: [] if gaps is None else gaps(state.numbers),
        )

    # ---- running it

    @checked(port=PORT)
    def view(
        self, *, port: int = 8080, block: bool = True, browser: bool | None = None, ranges: Mapping[str, tuple[float, float]] | None = None,
        control: Control | None = None,
    ) -> Any:
        """Run in real time on a page: pull on bodies with the mouse, move targets and forces by sliders. ``browser``: open one for it, by default where there is a display.

        ``ranges``: ends of the sliders of motion-driven joints, m or rad; ``control``: a controller, as for ``run``, in place of sliders.
        Joints that are ``commanded`` have none either. Returns when Ctrl-C is pressed, or at once with
        the viewer when ``block`` is false; its ``stop`` ends the page.
        """
        from dalembert.view.playground import view_simulation

        return view_simulation(self, port=port, block=block, browser=browser, ranges=ranges or {}, control=control)

    def step(self, control: Mapping[str, Input] | None = None) -> None:
        """Advance by one step, with inputs as a controller would return them."""
        self._stands()
        self._leave()
        if self._single is None:
            self._single = _Single(self._mechanism, self._engine)
        single, state, dt = self._single, self._state, self._formulation.dt
        tables = single.tables(self._targets, self._inputs, self._engine, state, dt, control is not None)
        if control is not None:
            read_control(control, tables, 0)
        followed = self._targets.copy() if self._moved else {}
        self._moved, self._knot, before = True, None, state.numbers.copy()
        try:
            while self._engine.advance(state.numbers, single.recording, tables, 0, 1, dt) < 1:
                if getattr(self._engine, "ended", None) is not None or not self._let_targets_agree(tables, 0):
                    raise self._failure(dt)
            self._state = State(state.kind, state.after(1, dt), state.numbers, tables.at(0))
            self._last = LastStep(State(state.kind, state.clock, before, state.inputs), followed, tables, 0, dt)
        except BaseException:  # a step is made as a whole
            if self._state is state:
                state.numbers[:] = before
                self._knot = self._last = None
            raise

    def residuals(self) -> np.ndarray:
        """(iterations + 1,): what is left of the equations of the next step, in m/s, at its first guess and after each of its Newton iterations.

        The step is tried, not made. Of ``Variational``, for mechanisms without loops, contacts, limits or dry friction.
        """
        engine = self._with_residuals()
        tables = InputTables(self._mechanism, engine, self._targets, self._inputs, engine.targets(self._state.numbers), 1, _times(self._state, self._formulation.dt), False)
        return engine.residuals(self._state.numbers, engine.new_recording(2), tables.window(0, 1), self._formulation.dt)

    def _with_residuals(self) -> Any:
        """The engine, where it can tell what its iterations leave."""
        engine: Any = self._engine
        if not hasattr(engine, "residuals") or self._mechanism.touches or engine.compliance:
            what = f"{self._mechanism.name!r} in {type(self._formulation).__name__}"
            raise ModelError(f"residuals by iteration are there for Variational without loops and contacts, not for {what}")
        return engine

    @checked(duration=POSITIVE, dt=STEP | NOTHING, control_derivative=one_of("differences", None) | FUNCTION)
    def run(
        self, duration: float, *, control: Control | None = None, dt: float | None = None, progress: bool | None = None, tape: bool = False,
        control_derivative: ControlDerivative | None = "differences", residuals: bool = False,
    ) -> Trajectory:
        """Advance by ``duration`` seconds and return what happened.

        ``control(sim)`` is called before each step and returns {joint: force or target, body: wrench, path: tension}: forces
        act over the step, a target is where the driven joint shall be at its end, a wrench is force (world) and torque (body
        axes). A force may also be a function of time (s), which is asked for at the times that the method needs. ``dt`` (s): another step than the formulation's,
        for this run. A duration that is no multiple of the step ends with a shorter one.

        Nothing that is called in a run may itself run, set or restore the simulation, which is a ``ControlError``; copies of it may go ahead.

        Ctrl-C stops the run and returns what was computed, with ``Trajectory.interrupted`` true. An error, of a step or of the controller, and
        ``Terminated`` on SIGTERM bring it along as their ``trajectory``; the simulation stays at the last good knot. A run that would not
        fit into memory is refused before it begins; ``stream`` writes to files instead. ``progress``: show a bar (by default on long runs in a terminal). ``tape``: remember what derivatives
        need, for ``Trajectory.vjp`` and ``Trajectory.jvp``. ``control_derivative``: how the controller's answer changes with what it sees, by
        "differences" of it, or a function of the simulation that returns {input: {what is seen: array}}; None: its inputs count as given.
        ``residuals``: keep what each Newton iteration leaves of each step's equations, as ``Trajectory.residuals``, for which steps are tried several times.
        """
        length = self._formulation.dt if dt is None else dt
        (steps, length), *rest = _pieces(duration, length)
        if rest and tape:
            raise GradientError(f"a run with tape=True is one of whole steps: {duration:g} s is no multiple of dt = {length:g} s")
        run = self._run(steps, length, control, progress, tape, control_derivative, residuals)
        return run if not rest or len(run) <= steps else self._lengthened(run, rest[0][1], control, residuals)

    @checked(duration=POSITIVE, dt=STEP | NOTHING, part=POSITIVE | NOTHING)
    def stream(
        self, duration: float, folder: str | FilePath, *, part: float | None = None, control: Control | None = None, dt: float | None = None,
        progress: bool | None = None,
    ) -> list[FilePath]:
        """Advance by ``duration`` seconds and write what happens to files in a folder as it goes, so that memory sets no limit.

        Each file is a trajectory of ``part`` seconds (by default about 64 MB), complete on the disk before the next one begins; returns their
        paths. ``Trajectory.load(folder)`` reads all as one. What ends the run early, Ctrl-C, a signal or an error, still leaves the
        last part there. ``control``, ``dt`` and ``progress`` as in ``run``.
        """
        from dalembert.simulation import streaming

        (steps, length), *rest = _pieces(duration, self._formulation.dt if dt is None else dt)
        folder, files = streaming.new_folder(FilePath(folder)), []
        most = streaming.PART // (run_bytes(self._engine, self._mechanism) + series_bytes(self._mechanism)) if part is None else round(part / length)
        bar = Progress(steps, self._mechanism.name, "steps", progress)
        try:
            with ending_in_order():  # a signal finds a part that is computed and not yet written, too
                parts = [(first, min(max(1, most), steps - first), length) for first in range(0, steps, max(1, most))]
                for first, count, step in [*parts, *((steps, 1, step) for _, step in rest)]:
                    file = streaming.part_file(folder, len(files))
                    try:
                        run = self._run(count, step, control, False)
                    except BaseException as error:
                        computed = getattr(error, "trajectory", None)
                        if computed is not None and len(computed) > 1:
                            computed.save(file)
                        raise
                    if len(run) > 1 or not files:
                        streaming.write_part(run, file)
                        files.append(file)
                    bar.update(first + len(run) - 1)
                    if run.interrupted or len(run) <= count:
                        break
        finally:
            bar.close()
        return files

    def _lengthened(self, run: Trajectory, dt: float, control: Control | None, residuals: bool) -> Trajectory:
        """The run with one more step of another length."""
        from dalembert.simulation.streaming import join

        try:
            return join([run, self._run(1, dt, control, False, residuals=residuals)])
        except BaseException as error:
            if hasattr(error, "trajectory"):
                error.trajectory = run  # type: ignore[attr-defined]
            raise

    def _run(
        self, steps: int, dt: float, control: Control | None, progress: bool | None, tape: bool = False, derivative: Any = None, residuals: bool = False,
    ) -> Trajectory:
        self._stands()
        self._running = True
        try:
            return self._go(steps, dt, control, progress, tape, derivative, residuals)
        finally:
            self._running = False

    def _go(self, steps: int, dt: float, control: Control | None, progress: bool | None, tape: bool, derivative: Any, residuals: bool) -> Trajectory:
        """Cover some steps and read what happened."""
        engine, begun, mechanism = self._engine, self._state, self._mechanism
        check_run(engine, mechanism, steps)
        self._leave()
        numbers = begun.numbers
        recording = engine.new_recording(steps + 1)
        tables = InputTables(mechanism, engine, self._targets, self._inputs, engine.targets(numbers), steps, _times(begun, dt), control is not None)
        start = engine.coordinates(numbers)
        record = self._record(tables, steps, dt) if tape else None
        history = History(self._with_residuals(), steps) if residuals else None
        if record is not None and control is not None and derivative is not None:
            record.control = Controlled(control, derivative, dict(self._targets), begun.inputs.copy(), tables.times, self._moved, self._formulation)
        engine.record(numbers, recording, 0)
        watch = EnergyWatch(self, control is not None) if self._energy_bound is not None else None
        done, size, interrupted = 0, 1 if control is not None else steps, False
        chunk = min(size, 16)
        bar = Progress(steps, mechanism.name, "steps", progress)

        def finish() -> Trajectory:
            """What was computed."""
            inputs = tables.recorded(done)
            readings = engine.read(recording, inputs, done + 1, dt, start)
            if watch is not None:
                watch.glance = readings.glance
            if tables.agree is not None:
                readings.values["target_correction"] = np.nan_to_num(tables.corrections[: done + 1])
            if history is not None:
                readings.values["residuals"] = history.rows[: done + 1]
            trajectory = read_trajectory(mechanism, type(self._formulation).__name__, _times(begun, dt)(np.arange(done + 1)), readings)
            trajectory.interrupted = interrupted
            if record is not None:
                record.recording, record.inputs, record.steps = recording, inputs, done
                trajectory.record = record
            return trajectory

        try:
            with ending_in_order():
                while done < steps:
                    count = max(1, min(chunk, steps - done - 1))  # the last step alone, for ``latest``
                    if record is not None:
                        count = min(count, record.before(done, numbers))
                        record.engine.tape = record.tape
                    if control is not None:
                        read_control(control(self), tables, done)
                    if history is not None:
                        count = 1
                        history.keep(numbers, tables, done, dt)
                    tick = clock.perf_counter()
                    begins = LastStep(replace(self._state, numbers=numbers.copy()), dict(self._targets) if self._moved else {}, tables, done, dt)
                    self._moved, self._knot = True, None
                    with self._whole(begins.state.numbers, numbers, recording):
                        solved = engine.advance(numbers, recording, tables, done, count, dt)
                        spent = clock.perf_counter() - tick
                        self._state = replace(begun, clock=begun.after(done + solved, dt), inputs=tables.at(max(done + solved - 1, 0)))
                    done += solved
                    self._last = begins if solved == count == 1 else None
                    if solved < count:
                        if getattr(engine, "ended", None) is not None:
                            break
                        if self._let_targets_agree(tables, done):
                            continue
                        raise self._failure(dt)
                    bar.update(done)
                    if size > 1:
                        chunk = max(1, min(4 * chunk, int(solved * CHUNK_SECONDS / max(spent, 1e-6)) + 1))
        except KeyboardInterrupt:
            bar.close()
            interrupted, done = True, self._state.steps_since(begun, dt)
            print(f"interrupted at t = {self.time:.6g} s; the trajectory holds what was computed", file=sys.stderr)
        except BaseException as error:
            done = self._state.steps_since(begun, dt)
            keep(error, finish, self.time)
            raise
        finally:
            bar.close()
            if record is not None:
                record.engine.tape = None
        try:
            with ending_in_order():
                run = finish()
        except KeyboardInterrupt:
            interrupted = True
            run = finish()
        except Terminated as error:
            keep(error, finish, self.time)
            raise
        if watch is not None:
            watch.report(run, dt, self._energy_bound)
        warn_of_far_turns(self._formulation, run.bodies, run.orientation, run.substeps, dt)
        return run

    @contextmanager
    def _whole(self, before: np.ndarray, numbers: np.ndarray, recording: Any) -> Iterator[None]:
        """Steps are made as a whole: what breaks off inside, Ctrl-C too, leaves state and recording as they were."""
        state, mark = self._state, getattr(self._engine, "mark", None)
        page = mark(recording) if mark is not None else None
        try:
            yield
        except BaseException:
            if self._state is state:
                numbers[:] = before
                self._knot = None
                if mark is not None:
                    self._engine.go_back(recording, page)  # type: ignore[attr-defined]
            raise

    def _record(self, tables: InputTables, steps: int, dt: float) -> Record:
        """What a run with a tape writes to."""
        engine = self._engine
        if not isinstance(engine, Differentiable):
            why = getattr(engine, "without_derivatives", "run it without tape=True")
            raise GradientError(f"{type(self._formulation).__name__} cannot differentiate runs of {self._mechanism.name!r} yet: {why}")
        return Record.begin(engine, self._mechanism, tables, steps, dt, None if self._moved else self._setup.keep(), BUDGET)

    def _failure(self, dt: float) -> Exception:
        """Why the step from here cannot be made: what a user's function said, or the engine's own error."""
        said = raised(self._mechanism) or try_functions(self._mechanism, *self._engine.pose(self._state.numbers))
        return self._engine.failure(self.time, dt) if said is None else said

    def _let_targets_agree(self, tables: InputTables, step: int) -> bool:
        """After a failed step: from now on, move targets onto what the joints allow. False when that is not what it needs."""
        if tables.agree is not None or not tables.driven or self._target_tolerance == 0.0:
            return False
        self._setup.resume(self._here())
        if self._setup.agree(tables.target[step + 1], self._target_tolerance)[1] == 0.0:
            return False
        tables.agree = lambda targets: self._setup.agree(targets, self._target_tolerance)
        return True


def _pieces(duration: float, dt: float) -> list[tuple[int, float]]:
    """Numbers of steps and their lengths (s) that make up a duration: those of ``dt``, and a shorter one where they do not."""
    if duration <= ROUNDING * dt:
        raise ModelError(f"a run of {duration:g} s is none at all beside steps of {dt:g} s: let it be longer, or the step smaller")
    steps = int(duration / dt + ROUNDING)
    rest = duration - steps * dt
    whole, last = [(steps, dt)] * (steps > 0), [(1, rest)] * (rest > ROUNDING * dt)
    return whole + last


def _times(state: State, dt: float) -> Callable[[Any], Any]:
    """The times (s) of numbers of steps of ``dt`` from a state: the same however a run is divided."""
    origin, count, _ = state.after(0, dt)
    return lambda steps: origin + (count + steps) * dt


class _Origin(NamedTuple):
    """Where the first step began: the state, what was followed and pushed, what was asked of the start, and whether it had been restored."""

    state: State
    targets: dict[str, Target]
    inputs: dict[str, Input]
    asked: tuple[Any, ...]
    moved: bool


class _Single:
    """What single steps use again and again."""

    def __init__(self, mechanism: Mechanism, engine: Engine) -> None:
        self.mechanism = mechanism
        self.recording = engine.new_recording(2)
        self._tables: dict[bool, InputTables] = {}

    def tables(
        self, targets: Mapping[str, Target], inputs: Mapping[str, Input], engine: Engine, state: State, dt: float, controlled: bool,
    ) -> InputTables:
        """Empty inputs of one step."""
        found = self._tables.get(controlled)
        if found is None or found.driven or inputs:
            held = engine.targets(state.numbers)
            found = InputTables(self.mechanism, engine, targets, inputs, held, 1, _times(state, dt), controlled)
            self._tables[controlled] = found
            return found
        found.times = _times(state, dt)
        found.clear()
        return found
