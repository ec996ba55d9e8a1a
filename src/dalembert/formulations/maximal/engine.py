"""What the maximal-coordinate formulations share: a mechanism's records and graph, its state, and what to read off it."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dalembert.formulations.maximal.assembly import direction_rows
from dalembert.formulations.maximal.knot import evaluate_knot, joint_rates, open_amounts, potential_energy
from dalembert.formulations.maximal.series import Motion, motion_series, new_motion
from dalembert.formulations.maximal.system import COMPLIANCE, System, build_system, has_loops, set_softness
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.compile import compile_mechanism


class Recording(NamedTuple):
    """Arrays that a run fills, knot by knot (first axis). What a formulation needs to continue or look back."""

    position: np.ndarray  # (N, n, 3)
    orientation: np.ndarray  # (N, n, 4)
    momentum: np.ndarray  # (N, n, 6) left limits: world, body
    step_before: np.ndarray  # (N,) length of the interval before the knot
    row_force: np.ndarray  # (N, joints, 6), N or N m, mean over the knot's kick
    coupling_force: np.ndarray  # (N, couplings)
    substeps: np.ndarray  # (N,) of the interval before the knot
    iterations: np.ndarray  # (N,)
    spin: np.ndarray  # (N, joints, 6) left limits of the momenta of reflected inertias


class Inputs(NamedTuple):
    """Inputs per step, first axis; an array of length zero means that there are none of the kind."""

    wrench: np.ndarray  # (S, n, 6) force (world), torque (body) on top of the constant loads
    joint: np.ndarray  # (S, joints, 6) forces along the free directions
    target: np.ndarray  # (S + 1, joints, 6) of the driven directions, at the knots
    stage: np.ndarray  # (S, stages, joints, 6) the same at the stages of each step, or of the first one


def no_stages(joints: int) -> np.ndarray:
    """Targets at stages, where there are none."""
    return np.zeros((0, 0, joints, 6))


def new_recording(knots: int, bodies: int, joints: int, couplings: int) -> Recording:
    """Room for a run."""
    return Recording(
        np.zeros((knots, bodies, 3)), np.zeros((knots, bodies, 4)), np.zeros((knots, bodies, 6)), np.zeros(knots),
        np.zeros((knots, joints, 6)), np.zeros((knots, couplings)),
        np.zeros(knots, np.int64), np.zeros(knots, np.int64), np.zeros((knots, joints, 6)),
    )


class MaximalEngine:
    """Records, graph and state of one mechanism in maximal coordinates.

    ``exact``: recorded momenta are those at the knots, and recorded forces hold there; otherwise the momenta are left
    limits, and knot velocities follow by projection. ``nodes``: fractions of a step at which its inner stages aim at
    targets; ``one_start``: only the first step of a run has such stages.
    """

    exact = False
    nodes: tuple[float, ...] = ()
    one_start = False
    options: Any
    #: length of the next step chosen by its error, as a fraction of dt
    stride = 1.0

    def __init__(self, mechanism: Mechanism, dt: float) -> None:
        self.mechanism = mechanism
        self.dt = dt
        self.records = compile_mechanism(mechanism)
        self.system = self._build()
        self.base_load = np.concatenate([self.records.bodies["force"][:-1], self.records.bodies["torque"][:-1]], axis=1)
        self.clock = np.zeros(3)
        self.outcome = (0, 0.0)
        self._mark_active()
        evaluate_knot(self.records)
        set_softness(self.records)
        self.compliance = COMPLIANCE if has_loops(self.records) else 0.0

    def _build(self) -> System:
        return build_system(self.records)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of bodies, joints and couplings."""
        return len(self.records.bodies) - 1, len(self.records.joints), len(self.records.couplings)

    def new_recording(self, knots: int) -> Recording:
        """Room for a run."""
        return new_recording(knots, *self.sizes)

    def tape(self, knots: int) -> Any:
        """What a run recorded besides its poses, for the trajectory's reader: nothing here."""
        return None

    def _mark_active(self) -> None:
        """Flag the joints whose springs or inputs push on their bodies."""
        for element, joint in zip(self.mechanism.joints, self.records.joints):
            joint["active"] = any(joint["stiffness"] > 0.0) or "force" in element.type.drive  # type: ignore[operator]

    def start(self, position: np.ndarray, orientation: np.ndarray, velocity: np.ndarray) -> None:
        """Begin at a pose with consistent velocities (n, 6): a knot with no interval before it."""
        bodies = self.records.bodies
        bodies["x"][:-1], bodies["q"][:-1] = position, orientation
        momentum = self.momentum_of(velocity)
        bodies["p"][:-1], bodies["l"][:-1] = momentum[:, :3], momentum[:, 3:]
        self.clock[:] = 0.0
        self.refresh()
        rates = np.zeros((len(self.records.joints), 6))
        joint_rates(self.records, np.concatenate([velocity, np.zeros((1, 6))]), rates)
        self.records.joints["spin"] = self.records.joints["armature"] * rates

    def refresh(self) -> None:
        """Evaluate everything that follows from the pose."""
        evaluate_knot(self.records)

    def momentum_of(self, velocity: np.ndarray) -> np.ndarray:
        """Momenta (n, 6), world and body, of velocities (n, 6)."""
        bodies = self.records.bodies[:-1]
        angular = np.einsum("nij,nj->ni", bodies["inertia"].reshape(-1, 3, 3), velocity[:, 3:])
        return np.concatenate([bodies["mass"][:, None] * velocity[:, :3], angular], axis=1)

    def state(self) -> tuple[np.ndarray, ...]:
        """A copy of the whole state, for ``restore``."""
        records = self.records
        return records.bodies.copy(), records.joints.copy(), records.couplings.copy(), self.clock.copy()

    def restore(self, state: tuple[np.ndarray, ...]) -> None:
        records = self.records
        records.bodies[:], records.joints[:], records.couplings[:], self.clock[:] = state

    def run(self, recording: Recording, inputs: Inputs, first: int, count: int, dt: float) -> int:
        """Compute ``count`` steps of ``dt`` from knot ``first`` of the recording. Returns how many succeeded."""
        raise NotImplementedError

    def step_error(self, dt: float) -> float:
        """Estimated error (m) of the step just made."""
        raise NotImplementedError

    def opening(self, recording: Recording, knot: int) -> list[np.ndarray]:
        """What a step writes at the knot it starts from."""
        return [recording.row_force[knot], recording.coupling_force[knot]]

    def set_inputs(self, wrench: np.ndarray | None, joint: np.ndarray | None) -> None:
        """Inputs at the knot, for reading velocities and forces there."""
        bodies = self.records.bodies
        load = self.base_load if wrench is None else self.base_load + wrench
        bodies["force"][:-1], bodies["torque"][:-1] = load[:, :3], load[:, 3:]
        self.records.joints["input"] = 0.0 if joint is None else joint

    def read_knot(self) -> tuple[Motion, Recording]:
        """Velocities, rates and forces at the knot (as series of length one)."""
        bodies, joints, couplings = self.sizes
        recording, motion = new_recording(1, bodies, joints, couplings), new_motion(1, bodies, joints)
        self.record(recording, 0)
        records, system = self.records, self.system
        nothing = Inputs(np.zeros((0, bodies, 6)), np.zeros((0, joints, 6)), records.joints["target"][None].copy(), no_stages(joints))
        prescribed = np.stack([records.joints["rate"], records.joints["acceleration"]])[:, None]
        motion_series(
            records, system.blocks, system.structure.schedule, system.vector, self.compliance, recording, nothing,
            self.base_load, prescribed, motion, self.exact,
        )
        return motion, recording

    def potential_energy(self) -> float:
        """Energy of gravity, springs and user potentials at the knot, in J."""
        self.refresh()
        energy = potential_energy(self.records)
        bodies = self.records.bodies
        return energy + sum(p.energy(bodies["x"][p.body.index].copy(), bodies["q"][p.body.index].copy()) for p in self.mechanism.potentials)

    def record(self, recording: Recording, knot: int) -> None:
        """Write the current knot into a recording."""
        bodies = self.records.bodies[:-1]
        recording.position[knot], recording.orientation[knot] = bodies["x"], bodies["q"]
        recording.momentum[knot] = np.concatenate([bodies["p"], bodies["l"]], axis=1)
        recording.step_before[knot] = self.clock[0]
        recording.spin[knot] = self.records.joints["spin"]

    def joint_twist(self, index: int, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Linear and angular rate of a joint's child against its parent in the world, and the child's joint point."""
        self.refresh()
        joint, kind = self.records.joints[index], self.mechanism.joints[index].type
        child = self.records.bodies[int(joint["child"])]
        R = child["R"].reshape(3, 3)
        gradients = np.zeros((kind.freedom, 12))
        direction_rows(self.records, index, gradients)
        linear, angular = np.zeros(3), np.zeros(3)
        for (name, _), rate, gradient in zip(kind.directions, rates, gradients):
            if name in ("slide", "distance"):
                linear += rate * gradient[6:9]
            else:
                angular += rate * (R @ gradient[9:])
        if kind.extra == "helix":
            linear += joint["pitch"] / (2.0 * np.pi) * angular
        return linear, angular, child["x"] + R @ joint["point_child"]

    def violation(self) -> tuple[np.ndarray, np.ndarray]:
        """How far rows (joints, 6) and couplings are open at the knot."""
        _, joints, couplings = self.sizes
        rows, gaps = np.zeros((joints, 6)), np.zeros(couplings)
        self.refresh()
        open_amounts(self.records, rows, gaps)
        return rows, gaps

    def worst_row(self) -> str:
        """Name of the element with the largest residual of the last try."""
        worst, name = -1.0, "none"
        for element, joint in zip(self.mechanism.joints, self.records.joints):
            for k in range(int(joint["locks"])):
                value = abs(float(joint["r"][k]))
                if not value <= worst:
                    worst, name = value, f"row {k} of joint {element.name!r}"
        for element, body in zip(self.mechanism.bodies, self.records.bodies):
            value = float(np.max(np.abs(body["r"][:3])) / body["mass"])
            if not value <= worst:
                worst, name = value, f"body {element.name!r}"
        return name

    def fastest_body(self) -> tuple[str, float]:
        """Name and angular speed (rad/s) of the body that spins fastest."""
        spins = np.linalg.norm(self.records.bodies["w"][:-1], axis=1)
        index = int(np.argmax(spins))
        return self.mechanism.bodies[index].name, float(spins[index])
