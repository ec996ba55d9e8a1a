"""A mechanism being simulated: set it up, step it, run it; the state is always the last good one."""
from __future__ import annotations

import sys
import time as clock
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dalembert.errors import ModelError
from dalembert.formulations.formulation import Formulation
from dalembert.formulations.maximal.assembly import nearest_pose, settle_velocities
from dalembert.formulations.maximal.engine import Recording
from dalembert.formulations.maximal.redundancy import Redundancy, analyse_redundancy
from dalembert.formulations.maximal.series import Motion
from dalembert.formulations.maximal.substeps import advance
from dalembert.mechanism.mechanism import Body, JointElement, Mechanism, vector
from dalembert.model.topology import spanning_tree, tree_order
from dalembert.progress import Progress
from dalembert.simulation.controls import InputTables, Target, read_control, read_target
from dalembert.simulation.placing import put
from dalembert.simulation.reading import read_trajectory
from dalembert.simulation.trajectory import Trajectory

Control = Callable[["Simulation"], Mapping[str, ArrayLike]]

#: seconds of computing between two looks at the keyboard and the progress bar
CHUNK_SECONDS = 0.2


class Simulation:
    """Runs a ``Mechanism`` in a formulation.

    The start is the mechanism's reference pose at rest (or what ``Mechanism.start`` says); ``set_joint`` and
    ``set_velocity`` change it. Time, pose and velocities are those of the current knot.
    """

    def __init__(self, mechanism: Mechanism, formulation: Formulation) -> None:
        if not isinstance(mechanism, Mechanism):
            raise ModelError(f"Simulation needs a Mechanism, got {mechanism!r}")
        if not mechanism.bodies:
            raise ModelError(f"{mechanism.name!r} has no bodies to simulate")
        self.mechanism = mechanism
        self.formulation = formulation
        self.time = 0.0
        self._engine = formulation.engine(mechanism)
        self._wishes: dict[str, np.ndarray] = {}
        self._rates: dict[str, np.ndarray] = {}
        self._held: dict[str, np.ndarray] = {}
        self._targets: dict[str, Target] = {}
        self._last_inputs: tuple[np.ndarray | None, np.ndarray | None] = (None, None)
        self._motion: Motion | None = None
        self._carried = np.zeros((len(mechanism.bodies), 6))
        wishes = {n: v for n, (v, _) in mechanism.initial_joints.items() if v is not None}
        self._place({n: self._coordinates_of(n, v) for n, v in wishes.items()})
        for name, (_, rate) in mechanism.initial_joints.items():
            if rate is not None:
                self._rates[name] = self._coordinates_of(name, rate)
        for name, (linear, angular) in mechanism.initial_velocities.items():
            self._hold(name, linear, angular)
        self._settle()

    # ---- what it is now

    @property
    def position(self) -> np.ndarray:
        """(bodies, 3) centres of mass, metres."""
        return self._engine.records.bodies["x"][:-1].copy()

    @property
    def orientation(self) -> np.ndarray:
        """(bodies, 4) unit quaternions, scalar first."""
        return self._engine.records.bodies["q"][:-1].copy()

    @property
    def velocity(self) -> np.ndarray:
        """(bodies, 3) at the knot, m/s."""
        return self._knot_velocity()[:, :3].copy()

    @property
    def angular_velocity(self) -> np.ndarray:
        """(bodies, 3) at the knot, body frame, rad/s."""
        return self._knot_velocity()[:, 3:].copy()

    def coordinates(self, joint: str) -> np.ndarray:
        """Minimal coordinates (freedom,) of a joint, angles unwrapped."""
        element = self._joint(joint)
        self._engine.refresh()
        return self._engine.records.joints["coordinate"][element.index, : element.type.freedom].copy()

    def rates(self, joint: str) -> np.ndarray:
        """Rates (freedom,) of a joint's coordinates; for a free rotation, the relative angular velocity in the parent's axes."""
        element = self._joint(joint)
        return self._read().rate[0, element.index, : element.type.freedom].copy()

    def energy(self) -> float:
        """Kinetic plus potential energy at the knot, in J."""
        u = self._knot_velocity()
        kinetic = 0.5 * float(np.sum(self._engine.momentum_of(u) * u))
        kinetic += 0.5 * float(np.sum(self._engine.records.joints["armature"] * self._read().rate[0] ** 2))
        return kinetic + self._engine.potential_energy()

    def redundancy(self) -> Redundancy:
        """Ranks and redundant rows of joints and drives at the current pose (a dense analysis: seconds for 2,000 rows)."""
        return analyse_redundancy(self._engine)

    def _read(self) -> Motion:
        motion = self._motion
        if motion is None:
            self._engine.set_inputs(*self._last_inputs)
            motion, _ = self._engine.read_knot()
            self._motion = motion
        return motion

    def _knot_velocity(self) -> np.ndarray:
        return self._read().velocity[0, :-1]

    def _joint(self, name: str) -> JointElement:
        element = self.mechanism[name]
        if not isinstance(element, JointElement):
            raise ModelError(f"{name!r} is {element!r}, not a joint")
        return element

    def _coordinates_of(self, name: str, value: ArrayLike) -> np.ndarray:
        element = self._joint(name)
        return vector(np.atleast_1d(np.asarray(value, dtype=float)), element.type.freedom, f"coordinates of joint {name!r}")

    # ---- setting it up

    def set_joint(self, name: str, value: ArrayLike | None = None, *, rate: ArrayLike | None = None) -> None:
        """Move a joint to ``value`` (m or rad), with its subtree; loops are closed again. ``rate``: its speed.

        Joints set before stay where they were put. Raises AssemblyError, and changes nothing, if a loop cannot follow.
        """
        wishes = self._wishes if value is None else {**self._wishes, name: self._coordinates_of(name, value)}
        rates = {**self._rates, name: np.zeros(self._joint(name).type.freedom) if rate is None else self._coordinates_of(name, rate)}
        self._keep_velocity()
        before = self._engine.state(), self._wishes, self._rates
        try:
            self._rates = rates
            self._place(wishes, moved=() if value is None else (name,))
            self._settle()
        except Exception:
            self._engine.restore(before[0])
            self._wishes, self._rates = before[1:]
            raise

    def set_velocity(self, body: str, *, linear: ArrayLike | None = None, angular: ArrayLike | None = None) -> None:
        """Velocity of a body: ``linear`` (m/s, world, of the centre of mass), ``angular`` (rad/s, body frame).

        Made consistent with the joints: bodies below it in the tree are carried along, the rest follows as the joints ask.
        """
        self._keep_velocity()
        before = self._engine.state(), dict(self._held)
        try:
            self._hold(body, linear, angular)
            self._settle()
        except Exception:
            self._engine.restore(before[0])
            self._held = before[1]
            raise

    def set_target(self, joint: str, target: Target) -> None:
        """Target of a motion-driven joint from now on.

        A value (coordinates, or with a unit quaternion in place of a rotation vector), a function of time (s) that gives
        one, or a table (times, values), which is interpolated smoothly and must cover the run.
        """
        element = self._joint(joint)
        if "motion" not in element.type.drive:  # type: ignore[operator]
            advice = "make it with drive='motion'" if element.type.freedom else "it locks every direction"
            raise ModelError(f"joint {joint!r} is not motion-driven; {advice}")
        self._targets[joint] = read_target(element, target, self.time)

    def follow(self, joint: str, trajectory: Trajectory, body: str | None = None) -> None:
        """Drive a free joint of the world so that its child moves as ``body`` (its namesake by default) did in a recorded run.

        So that part of a machine can be simulated alone.
        """
        element = self._joint(joint)
        if element.parent is not self.mechanism.world or len(element.type.directions) != 6:
            raise ModelError(f"follow needs a Free joint between the world and a body, and {joint!r} is not one")
        recorded, engine, before = trajectory.body(body or element.child.name), self._engine, self._engine.state()
        values, record = [], engine.records.bodies[element.child.index]
        for position, orientation in zip(recorded.position, recorded.orientation):
            record["x"], record["q"] = position, orientation
            values.append(self.coordinates(joint))
        engine.restore(before)
        engine.refresh()
        self.set_target(joint, (trajectory.time, values))

    def solve_pose(self, wishes: Mapping[str, ArrayLike], *, weights: Mapping[str, float] | None = None) -> dict[str, np.ndarray]:
        """Coordinates of all joints in the pose nearest to wished coordinates that the passive joints allow.

        Inverse kinematics of the whole mechanism with its drives free: targets taken from the answer are consistent.
        ``weights``: how much each wish counts (1 by default). The simulation itself stays as it is.
        """
        asked = {name: self._coordinates_of(name, value) for name, value in wishes.items()}
        for name, weight in (weights or {}).items():
            if name not in asked or not (np.isfinite(weight) and weight > 0.0):
                raise ModelError(f"the weight of {name!r} must be positive and belong to a wish, got {weight}")
        engine, before = self._engine, self._engine.state()
        try:
            nearest_pose(self.mechanism, engine.records, asked, weights or {})
            return {j.name: self.coordinates(j.name) for j in self.mechanism.joints}
        finally:
            engine.restore(before)
            engine.refresh()

    def resolve_overlaps(self) -> None:
        """Move bodies that overlap apart, as little as possible; joints stay closed. Does nothing where none do."""
        resolve = getattr(self._engine, "resolve_overlaps", None)
        if resolve is not None:
            self._keep_velocity()
            resolve()
            self._settle()

    def _hold(self, name: str, linear: ArrayLike | None, angular: ArrayLike | None) -> None:
        body = self.mechanism[name]
        if not isinstance(body, Body) or body is self.mechanism.world:
            raise ModelError(f"set_velocity needs a body of {self.mechanism.name!r}, got {name!r}")
        held = self._held.get(name, np.zeros(6)).copy()
        if linear is not None:
            held[:3] = vector(linear, 3, f"linear velocity of {name!r}")
        if angular is not None:
            held[3:] = vector(angular, 3, f"angular velocity of {name!r}")
        self._held[name] = held

    def _keep_velocity(self) -> None:
        """After a run, the velocities reached are what a new setting starts from."""
        if self._engine.clock[0] > 0.0:
            self._carried = self._knot_velocity().copy()
            self._wishes, self._rates, self._held = {}, {}, {}

    def _place(self, wishes: dict[str, np.ndarray], moved: tuple[str, ...] | None = None) -> None:
        """Put bodies where the wished coordinates say, close the loops, keep within limits."""
        put(self.mechanism, self._engine.records, wishes, wishes if moved is None else moved)
        self._wishes = wishes

    def _settle(self) -> None:
        """Consistent velocities near to those asked for; the engine starts from here."""
        wished, held = self._carried.copy(), np.zeros(len(self.mechanism.bodies), dtype=bool)
        for name, velocity in self._held.items():
            index = self.mechanism[name].index
            wished[index], held[index] = velocity, True
        self._carry(wished, held)
        records = self._engine.records
        for name, rate in self._rates.items():
            records.joints["rate"][self._joint(name).index, : rate.size] = rate
        velocity = settle_velocities(self.mechanism, records, wished, held, self._rates)
        self._engine.start(self.position, self.orientation, velocity)
        self._motion = None

    def _carry(self, wished: np.ndarray, held: np.ndarray) -> None:
        """Let bodies below a held one, or below a joint with a rate, move along with it as if all other joints were locked."""
        tree = tree_order(self.mechanism, spanning_tree(self.mechanism, self._rates))
        bodies = self._engine.records.bodies
        matrices = Rotation.from_quat(bodies["q"], scalar_first=True).as_matrix()
        moving = {int(i) for i in np.flatnonzero(held)}
        for index, here, there in tree:
            joint = self.mechanism.joints[index]
            if held[there] or not (here in moving or joint.name in self._rates):
                continue
            moving.add(there)
            spin = matrices[here] @ wished[here, 3:] if here >= 0 else np.zeros(3)
            speed = wished[here, :3] if here >= 0 else np.zeros(3)
            speed = speed + np.cross(spin, bodies["x"][there] - (bodies["x"][here] if here >= 0 else 0.0))
            if joint.name in self._rates:
                sign = 1.0 if there == joint.child.index else -1.0
                line, turn, point = self._joint_twist(joint)
                spin = spin + sign * turn
                speed = speed + sign * (line + np.cross(turn, bodies["x"][there] - point))
            wished[there] = np.concatenate([speed, matrices[there].T @ spin])

    def _joint_twist(self, joint: JointElement) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Linear and angular rate of a joint in the world, and the point it acts at."""
        return self._engine.joint_twist(joint.index, self._rates[joint.name])

    # ---- running it

    def view(
        self, *, port: int = 8080, block: bool = True, browser: bool | None = None, ranges: Mapping[str, tuple[float, float]] | None = None,
    ) -> Any:
        """Run in real time on a page: pull on bodies with the mouse, move targets and forces by sliders. ``browser``: open one for it, by default where there is a display.

        ``ranges``: ends of the sliders of motion-driven joints, m or rad. Returns when Ctrl-C is pressed, or at once with
        the viewer when ``block`` is false; its ``stop`` ends the page.
        """
        from dalembert.view.playground import view_simulation

        return view_simulation(self, port=port, block=block, browser=browser, ranges=ranges or {})

    def step(self, control: Mapping[str, ArrayLike] | None = None) -> None:
        """Advance by one step, with inputs as a controller would return them."""
        self._run(1, None if control is None else (lambda _: control), record=False)

    def run(self, duration: float, *, control: Control | None = None, progress: bool | None = None) -> Trajectory:
        """Advance by ``duration`` seconds and return what happened.

        ``control(sim)`` is called before each step and returns {joint: force or target, body: wrench}: forces act at
        the knot, a target is where the driven joint shall be at the end of the step, a wrench is force (world) and
        torque (body axes). Ctrl-C stops the run and returns what was computed. ``progress``: show a bar (by default
        on long runs in a terminal).
        """
        if not (np.isfinite(duration) and duration > 0.0):
            raise ModelError(f"run needs a positive duration, got {duration}")
        steps = max(1, round(duration / self.formulation.dt))
        return self._run(steps, control, progress=progress)

    def _run(self, steps: int, control: Control | None, *, record: bool = True, progress: bool | None = None) -> Trajectory:
        engine = self._engine
        recording = engine.new_recording(steps + 1)
        tables = InputTables(self.mechanism, engine, self._targets, steps, self.time, control is not None)
        start = engine.records.joints["coordinate"].copy()
        engine.record(recording, 0)
        start_time = self.time
        done, size = 0, 1 if control is not None or tables.stepwise else steps
        chunk = min(size, 16)
        bar = Progress(steps, self.mechanism.name, "steps", progress)
        try:
            while done < steps:
                count = min(chunk, steps - done)
                if control is not None:
                    read_control(control(self), self.mechanism, engine.records, tables, done)
                if tables.stepwise:
                    tables.add_potentials(done)
                tick = clock.perf_counter()
                solved = advance(engine, recording, tables, done, count)
                spent = clock.perf_counter() - tick
                done += solved
                self.time = start_time + done * self.formulation.dt
                self._motion, self._last_inputs = None, tables.at(max(done - 1, 0))
                if solved < count:
                    raise engine.failure(self.time)
                bar.update(done)
                if size > 1:
                    chunk = max(1, min(4 * chunk, int(chunk * CHUNK_SECONDS / max(spent, 1e-6)) + 1))
        except KeyboardInterrupt:
            if not record:
                raise
            bar.close()
            print(f"interrupted at t = {self.time:.6g} s; the trajectory holds what was computed", file=sys.stderr)
        finally:
            bar.close()
        short = Recording(*(array[: done + 1] for array in recording))
        return read_trajectory(self.mechanism, self.formulation, short, tables.recorded(done), start, start_time, engine.tape(done + 1))
