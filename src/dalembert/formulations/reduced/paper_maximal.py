"""The maximal formulation of the RedMax paper (sections 1.1 to 1.13) in plain NumPy: a baseline to compare with, dense and slow.

Unknowns are the twists phi = (omega, nu) of all bodies, in body frames. A step of linearly implicit Euler solves

    (M - h D - h^2 K) phi+ = M phi + h (f - D phi) + G^T lambda + contacts,     G phi+ = -gamma g   (eq. 1.28, 1.88, 1.97)

with f = ad(phi)^T M phi + forces, K and D its derivatives by pose and twist; then E+ = E exp(h phi+) (eq. 1.29). Contact and
friction are quadratic programs (1.11, 1.13); where something may touch, K and D are symmetrised for them, as in 1.9.2. Joints
drift: they hold at velocity level, and Baumgarte's gamma asks back what is open. Joint rows, forces and what touches come from
the rooms that every formulation uses.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.spatial.transform import Rotation

from dalembert.contact.at_pose import Encounters
from dalembert.contact.bearing import bear
from dalembert.contact.projections import ContactProblem, ContactSolution, single_program, staggered_projections
from dalembert.errors import ModelError, StepFailure
from dalembert.forces.bodies import add_load_derivatives, push_on_bodies
from dalembert.forces.couplings import push_along_paths
from dalembert.forces.directions import add_directions, servo_at
from dalembert.forces.laws import coupling_law
from dalembert.forces.loads import evaluate_loads
from dalembert.formulations.engine import Start
from dalembert.formulations.maximal.checks import refuse_surfaces
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.bias import direction_bias
from dalembert.model.frames import frame_rotation
from dalembert.model.placement import Placement
from dalembert.model.pose import joint_at_knot
from dalembert.model.records import COMPLIANT, CONSTRAINT, USER_LOAD

Operator = Callable[[np.ndarray], np.ndarray]

#: rows whose part of the inverse inertia is smaller than this against the largest one count as redundant
REDUNDANT = 1e-10
#: of the agreement of bearings' friction with their load
TOLERANCE = 1e-10


class Motion(NamedTuple):
    """A run: times (N,), positions (N, n, 3), orientations (N, n, 4), velocities (N, n, 6) linear (world) and angular (body frame).

    ``row_force`` (N, joints, 6): forces of the joints' rows in the step that ends at the knot, N or N m; ``contacts``: the
    contact solutions of the steps, None where nothing was near.
    """

    time: np.ndarray
    position: np.ndarray
    orientation: np.ndarray
    velocity: np.ndarray
    row_force: np.ndarray
    contacts: list[ContactSolution | None]


@dataclass(frozen=True, kw_only=True)
class PaperMaximal:
    """Steps ``dt`` (s). ``gamma`` (1/s): Baumgarte's, 1/dt where it is None. ``implicit``: with K and D, or all forces as they are
    at the start of the step (eq. 1.28). ``contact``: "staggered" (Algorithm 7), "qp" (the single program, with ``edges``
    edges), or "frictionless".
    """

    dt: float
    gamma: float | None = None
    implicit: bool = True
    contact: str = "staggered"
    edges: int = 4

    def __post_init__(self) -> None:
        if not (np.isfinite(self.dt) and self.dt > 0.0):
            raise ModelError(f"PaperMaximal: dt must be positive, got {self.dt}")
        if self.gamma is not None and not 0.0 <= self.gamma * self.dt <= 1.0:
            raise ModelError(f"PaperMaximal: gamma must lie between 0 and 1/dt = {1.0 / self.dt:g}, got {self.gamma}")
        if self.contact not in ("staggered", "qp", "frictionless"):
            raise ModelError(f"PaperMaximal: contact must be 'staggered', 'qp' or 'frictionless', got {self.contact!r}")

    def run(self, mechanism: Mechanism, duration: float, start: Start | None = None) -> Motion:
        """Step a mechanism for ``duration`` seconds, from where it says that it starts."""
        if start is None:
            from dalembert.simulation.setup import Setup

            start = Setup(mechanism).initial()
        stepper = Stepper(self, mechanism, start)
        steps = round(duration / self.dt)
        knots = [stepper.knot()]
        for _ in range(steps):
            stepper.step()
            knots.append(stepper.knot())
        position, orientation, velocity, force = (np.array(part) for part in zip(*knots))
        return Motion(self.dt * np.arange(steps + 1), position, orientation, velocity, force, stepper.solutions)


@dataclass
class Linearised:
    """The forces at a knot over all twists: f (6n,), inertia M, and the derivatives K and D of f (6n, 6n)."""

    f: np.ndarray
    M: np.ndarray
    K: np.ndarray
    D: np.ndarray


@dataclass
class Stepper:
    """A mechanism's pose and twists, and how they go on."""

    options: PaperMaximal
    mechanism: Mechanism
    start: Start
    solutions: list[ContactSolution | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        refuse_surfaces(self.mechanism, "PaperMaximal")
        self.placement = Placement.of(self.mechanism)
        self.model, self.work = self.placement.model, self.placement.work
        self.work.joints["target"] = self.start.target
        self.placement.put(self.start.position, self.start.orientation, self.start.coordinate)
        self.encounters = Encounters(self.placement) if self.mechanism.touches else None
        self.count = self.placement.sizes[0]
        self.row_force = np.zeros((len(self.model.joints), 6))
        linear = np.einsum("nji,nj->ni", self.rotations, self.start.velocity[:, :3])
        self.twist = np.hstack([self.start.velocity[:, 3:], linear])

    @property
    def rotations(self) -> np.ndarray:
        return self.work.bodies["R"][:-1].reshape(-1, 3, 3)

    @property
    def velocity(self) -> np.ndarray:
        """(n, 6) linear (world) and angular (body frame): what rows and forces are made for."""
        return np.hstack([np.einsum("nij,nj->ni", self.rotations, self.twist[:, 3:]), self.twist[:, :3]])

    def knot(self) -> tuple[np.ndarray, ...]:
        bodies = self.work.bodies[:-1]
        return bodies["x"].copy(), bodies["q"].copy(), self.velocity, self.row_force.copy()

    def frames(self) -> np.ndarray:
        """(6n, 6n) from twists to velocities (world, body): P with v = R nu."""
        P = np.zeros((self.count, 6, self.count, 6))
        for i, R in enumerate(self.rotations):
            P[i, :3, i, 3:] = R
            P[i, 3:, i, :3] = np.eye(3)
        return P.reshape(6 * self.count, 6 * self.count)

    def step(self) -> None:
        """One step (eq. 1.28, 1.88, 1.29)."""
        h, now = self.options.dt, self.twist.ravel()
        forces = self.linearise()
        D, K = (matrix if self.options.implicit else 0.0 * matrix for matrix in (forces.D, forces.K))
        if self.encounters is not None:
            D, K = 0.5 * (D + D.T), 0.5 * (K + K.T)
        A, b = forces.M - h * D - h * h * K, forces.M @ now + h * (forces.f - D @ now)
        if self.encounters is not None and not np.linalg.eigvalsh(A)[0] > 0.0:
            raise StepFailure(f"{self.mechanism.name!r}: M - h D - h^2 K is not positive definite; use a smaller dt, or implicit=False")
        factor = lu_factor(A)
        G, wanted, owners = self.constraints()
        back = np.linalg.pinv(G @ lu_solve(factor, G.T), rcond=REDUNDANT) if len(G) else np.zeros((0, 0))

        def inverse(columns: np.ndarray) -> np.ndarray:
            """Change of twists with impulses, joints held."""
            free = lu_solve(factor, columns)
            return free - lu_solve(factor, G.T @ (back @ (G @ free))) if len(G) else free

        def carry(velocity: np.ndarray, push: np.ndarray) -> None:
            """Write what the joints' rows carry: G^T lambda is what the equation of motion lacks (a positive force opens the row)."""
            impulse = back @ (G @ lu_solve(factor, A @ velocity - b - push))
            self.work.joints["mu"] = 0.0
            for (joint, row), size in zip(owners, impulse):
                if joint >= 0:
                    self.work.joints["mu"][joint, row] = size

        twist = inverse(b) + lu_solve(factor, G.T @ (back @ wanted))
        solution = self.touch(twist, inverse, carry)
        if solution is not None:
            twist = solution.velocity
        self.solutions.append(solution)
        carry(twist, np.zeros_like(b) if solution is None else self._pushes(solution))
        self.row_force[:] = self.work.joints["mu"] / h
        self.move(twist.reshape(-1, 6))

    def move(self, twist: np.ndarray) -> None:
        """E+ = E exp(h phi+)."""
        if not np.all(np.isfinite(twist)):
            raise StepFailure(f"{self.mechanism.name!r}: the step leads to velocities that are not finite; use a smaller dt")
        h, bodies = self.options.dt, self.work.bodies[:-1]
        turn = Rotation.from_rotvec(h * twist[:, :3])
        position = bodies["x"] + np.einsum("nij,nj->ni", self.rotations, _swept(h * twist[:, :3], h * twist[:, 3:]))
        before = Rotation.from_quat(bodies["q"], scalar_first=True)
        self.placement.put(position, (before * turn).as_quat(scalar_first=True))
        self.twist = twist

    # ---- constraints and contacts

    def constraints(self) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]:
        """Rows G of joints and couplings over the twists, the rates that they ask for, and whose they are (joint or -1, row)."""
        gamma = 1.0 / self.options.dt if self.options.gamma is None else self.options.gamma
        opened, gaps = self.placement.opened()
        rows, wanted, owners = [], [], []
        for i, (joint, at) in enumerate(zip(self.model.joints, self.work.joints)):
            for k in range(int(joint["locks"])):
                row = np.zeros((self.count + 1, 6))
                row[joint["parent"]] += at["Gp"][k]
                row[joint["child"]] += at["Gc"][k]
                rows.append(row)
                wanted.append(-gamma * opened[i, k])
                owners.append((i, k))
        for i, coupling in enumerate(self.model.couplings):
            if coupling["law"] == CONSTRAINT:
                rows.append(self.coupling_row(coupling))
                wanted.append(-gamma * gaps[i])
                owners.append((-1, i))
        stacked = np.array(rows).reshape(-1, self.count + 1, 6)[:, :-1].reshape(-1, 6 * self.count)
        return stacked @ self.frames(), np.array(wanted), owners

    def coupling_row(self, coupling: np.void) -> np.ndarray:
        row = np.zeros((self.count + 1, 6))
        for e in range(int(coupling["first"]), int(coupling["first"] + coupling["ends"])):
            row[self.model.ends[e]] += self.work.ends["G"][e]
        return row

    def touch(self, free: np.ndarray, inverse: Operator, carry: Callable[[np.ndarray, np.ndarray], None]) -> ContactSolution | None:
        """The quadratic programs of contact and friction: N phi >= -gap/h, so that what is apart may close within the step."""
        if self.encounters is None:
            return None
        h, P = self.options.dt, self.frames()
        speeds = np.abs(np.concatenate([free, self.twist.ravel()]))
        found = self.encounters.rows(reach=4.0 * h * float(speeds.max()) * self._size() + 1e-4)
        if np.any(found.restitution > 0.0):
            who = found.label[int(np.argmax(found.restitution))]
            raise ModelError(f"PaperMaximal: {who} has restitution, which the paper's contact does not have; set it to zero")
        if not len(found.gap) + len(found.dry):
            return None
        limits, which = self.encounters.limits, found.dry_record
        rows = found.dry.reshape(-1, len(free)) @ P
        limits["cap"] = 0.0

        def bearing(solution: ContactSolution, asked: int) -> tuple[np.ndarray, int]:
            carry(solution.velocity, self._pushes(solution))
            limits["eta"][which], limits["beta"][which] = rows @ solution.velocity, solution.dry
            wrong = bear(self.model, self.work, limits, asked, TOLERANCE)
            return np.where(limits["bears"][which] != 0, limits["cap"][which], 0.0), int(wrong)

        friction = 0.0 * found.friction if self.options.contact == "frictionless" else found.friction
        self.problem = ContactProblem(
            free=free, inverse=inverse, normal=found.normal.reshape(-1, len(free)) @ P, bound=-found.gap / h,
            tangent=found.tangent.reshape(-1, 2, len(free)) @ P, friction=friction,
            dry=rows, dry_bound=h * found.dry_bound, bearing=bearing if np.any(limits["bears"]) else None,
        )
        return single_program(self.problem, self.options.edges) if self.options.contact == "qp" else staggered_projections(self.problem)

    def _pushes(self, solution: ContactSolution) -> np.ndarray:
        """(6n,) impulses of contacts on the bodies."""
        problem = self.problem
        return problem.normal.T @ solution.normal + np.einsum("ckn,ck->n", problem.tangent, solution.tangential) + problem.dry.T @ solution.dry

    def _size(self) -> float:
        """How far (m) what may touch lies from its centre of mass, and at least 1."""
        assert self.encounters is not None
        return 1.0 + float(np.max(np.maximum(self.encounters.pairs.size, np.linalg.norm(self.encounters.grounds.contacts["point"], axis=1).max(initial=0.0)), initial=0.0))

    # ---- forces and their derivatives

    def linearise(self) -> Linearised:
        """Forces at the knot with K and D, first for velocities and turns as rows know them (world, body), then for twists."""
        n, velocity = self.count, np.concatenate([self.velocity, np.zeros((1, 6))])
        K, D, M = (np.zeros((n + 1, 6, n + 1, 6)) for _ in range(3))
        extra = np.zeros((n + 1, 6))
        evaluate_loads(self.model, self.work)
        self.work.velocity[:] = velocity
        push_on_bodies(self.model, self.work, velocity, 1)
        push_along_paths(self.model, self.work, velocity)
        self._add_joints(velocity, extra, M, K, D)
        self._add_paths(K, D)
        self._add_loads(velocity, K, D)
        load = (self.work.bodies["load"] + extra)[:-1]
        K, D, M = (matrix[:-1, :, :-1].reshape(6 * n, 6 * n) for matrix in (K, D, M))
        P = self.frames()
        M, Kb, Db = P.T @ M @ P, P.T @ K @ P, P.T @ D @ P
        f = P.T @ load.ravel()
        for i, R in enumerate(self.rotations):
            own, spin, speed = slice(6 * i, 6 * i + 6), self.twist[i, :3], self.twist[i, 3:]
            mass, inertia = float(self.model.bodies["mass"][i]), self.model.bodies["inertia"][i].reshape(3, 3)
            M[own, own] += np.block([[inertia, np.zeros((3, 3))], [np.zeros((3, 3)), mass * np.eye(3)]])
            f[own] -= np.concatenate([np.cross(spin, inertia @ spin), mass * np.cross(spin, speed)])
            # eq. 1.39: derivative of -(omega x J omega, omega x m nu)
            Db[own, own] -= np.block([
                [skew(spin) @ inertia - skew(inertia @ spin), np.zeros((3, 3))],
                [-mass * skew(speed), mass * skew(spin)],
            ])
            # R^T F turns with the body (eq. 1.33), and so does v = R nu for a given nu
            Kb[own.start + 3 : own.stop, own.start : own.start + 3] += skew(R.T @ load[i, :3])
            Kb[:, own.start : own.start + 3] -= (P.T @ D)[:, 6 * i : 6 * i + 3] @ R @ skew(speed)
        return Linearised(f, M, Kb, Db)

    def _add_joints(self, velocity: np.ndarray, extra: np.ndarray, M: np.ndarray, K: np.ndarray, D: np.ndarray) -> None:
        """Springs, dampers, servos and reflected inertias along the free directions."""
        scratch, turned = np.zeros(12), np.zeros((12, 12))
        for joint, at in zip(self.model.joints, self.work.joints):
            ends = [int(joint["parent"]), int(joint["child"])]
            y, C, Rp = joint_at_knot(self.work.bodies, joint)
            if joint["active"]:
                turned[:] = 0.0
                add_directions(turned, joint, at, y, C, Rp, frame_rotation(joint, C), scratch)
                for a in range(2):
                    for b in range(2):
                        K[ends[a], :, ends[b]] += turned[6 * a : 6 * a + 6, 6 * b : 6 * b + 6]
            for k in range(int(joint["locks"]), int(joint["rows"])):
                assert joint["row_kind"][k] == COMPLIANT
                i, row = int(joint["row_direction"][k]), np.zeros_like(extra)
                row[ends[0]] += at["Gp"][k]
                row[ends[1]] += at["Gc"][k]
                rate = float(np.sum(row * velocity))
                servo, servo_damping = servo_at(joint, at, i, rate)
                stiffness = float(joint["servo_stiffness"][i]) if servo_damping != 0.0 or joint["servo_damping"][i] == 0.0 else 0.0
                armature = float(joint["armature"][i])
                force = servo - float(joint["damping"][i]) * rate
                if armature > 0.0:
                    up, uc = velocity[ends[0]], velocity[ends[1]]
                    bias = direction_bias(joint, i, y, C, Rp, *(tuple(u[s]) for u in (up, uc) for s in (slice(3), slice(3, 6))))
                    turning = [row[e, :3] @ np.cross(self.rotations[e] @ velocity[e, 3:], velocity[e, :3]) for e in ends if e < self.count]
                    force -= armature * (bias + sum(turning))
                extra += force * row
                square = np.einsum("ac,bd->acbd", row, row)
                M += armature * square
                D += (servo_damping - float(joint["damping"][i])) * square
                K -= stiffness * square

    def _add_paths(self, K: np.ndarray, D: np.ndarray) -> None:
        """Laws along paths, through their lengths."""
        for coupling, tie in zip(self.model.couplings, self.work.couplings):
            if coupling["law"] != CONSTRAINT:
                _, stiffness, damping, _ = coupling_law(self.work, coupling, tie, float(tie["value"]), float(tie["rate"]))
                row = self.coupling_row(coupling)
                square = np.einsum("ac,bd->acbd", row, row)
                K += stiffness * square
                D += damping * square

    def _add_loads(self, velocity: np.ndarray, K: np.ndarray, D: np.ndarray) -> None:
        """Loads on single bodies; users' laws stay explicit."""
        for load in self.model.loads:
            if load["kind"] != USER_LOAD:
                i = int(load["body"])
                by_pose, by_velocity = np.zeros((6, 6)), np.zeros((6, 6))
                x, R = self.work.bodies["x"][i], self.work.bodies["R"][i]
                add_load_derivatives(by_pose, by_velocity, load, tuple(x), tuple(R), tuple(velocity[i, :3]), tuple(velocity[i, 3:]))
                K[i, :, i] += by_pose
                D[i, :, i] += by_velocity


def skew(a: np.ndarray) -> np.ndarray:
    """[a] with [a] b = a x b (eq. 1.7)."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def _swept(turn: np.ndarray, way: np.ndarray) -> np.ndarray:
    """(n, 3) translations of exp(turn, way), in the frame before: the left Jacobian of each turn times its way."""
    angle = np.linalg.norm(turn, axis=1, keepdims=True)
    small = angle < 1e-4
    safe = np.where(small, 1.0, angle)
    first = np.where(small, 0.5 - angle**2 / 24.0, (1.0 - np.cos(safe)) / safe**2)
    second = np.where(small, 1.0 / 6.0 - angle**2 / 120.0, (safe - np.sin(safe)) / safe**3)
    across = np.cross(turn, way)
    return way + first * across + second * np.cross(turn, across)
