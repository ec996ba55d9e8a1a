"""Numbers of poses with their first and second derivatives: constraint rows, free directions of joints, lengths of paths.

All are numbers of the poses of a few bodies. Columns of matrices are the bodies' six motions each: position (world) and rotation
(body axes). A second derivative H says how a gradient g turns with the pose, dg = H dy; it need not be symmetric, because
rotations are no coordinates.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.forces.ball import add_ball_spring
from dalembert.forces.directions import spring
from dalembert.forces.laws import coupling_law, servo
from dalembert.kernels import kernel
from dalembert.model.couplings import add_path_stiffness, evaluate_coupling
from dalembert.model.frames import frame_rotation
from dalembert.model.hessians import add_direction, add_row, write_direction
from dalembert.model.placement import Placement
from dalembert.model.pose import joint_at_knot
from dalembert.model.records import BALL, CONSTRAINT, FUNCTION, GEAR, PATH, Model

#: part of a body's reach (or rad) by which it is moved to difference what has no derivative of its own
DIFFERENCE = 1e-3
#: fourth-order central differences: displacements in steps, weights
STENCIL = ((-2.0, 1.0 / 12.0), (-1.0, -2.0 / 3.0), (1.0, 2.0 / 3.0), (2.0, -1.0 / 12.0))


class Bundle(NamedTuple):
    """Numbers of as many bodies each: which number (k,), its columns (k, w), gradient (k, w), second derivative (k, w, w)."""

    number: np.ndarray
    columns: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray


@dataclass(frozen=True)
class Curved:
    """``count`` numbers of the poses of ``bodies`` bodies; columns beyond theirs are the world's, and are left out."""

    count: int
    bodies: int
    bundles: tuple[Bundle, ...]

    @property
    def width(self) -> int:
        return 6 * self.bodies

    def _rows(self, parts: Callable[[Bundle], np.ndarray]) -> np.ndarray:
        """(count, 6 n) from each bundle's (k, w)."""
        matrix = np.zeros((self.count, self.width + 6))
        for bundle in self.bundles:
            np.add.at(matrix, (bundle.number[:, None], bundle.columns), parts(bundle))
        return matrix[:, : self.width]

    def gradient(self) -> np.ndarray:
        """(count, 6 n)."""
        return self._rows(lambda bundle: bundle.gradient)

    def left(self, a: np.ndarray) -> np.ndarray:
        """(count, 6 n): a^T H, the change of g . a with the pose, for motions a (6 n,)."""
        a = self._padded(a)
        return self._rows(lambda bundle: np.einsum("kr,krc->kc", a[bundle.columns], bundle.hessian))

    def right(self, a: np.ndarray) -> np.ndarray:
        """(count, 6 n): H a, the change of g along motions a (6 n,)."""
        a = self._padded(a)
        return self._rows(lambda bundle: np.einsum("krc,kc->kr", bundle.hessian, a[bundle.columns]))

    def bending(self, a: np.ndarray) -> np.ndarray:
        """(count,): a^T H a, the second time derivative at constant velocities a (6 n,)."""
        a, values = self._padded(a), np.zeros(self.count)
        for bundle in self.bundles:
            part = a[bundle.columns]
            np.add.at(values, bundle.number, np.einsum("kr,krc,kc->k", part, bundle.hessian, part))
        return values

    def contract(self, weights: np.ndarray) -> np.ndarray:
        """(6 n, 6 n): the sum of weights (count,) times H: how forces of these sizes turn with the pose."""
        matrix = np.zeros((self.width + 6, self.width + 6))
        for bundle in self.bundles:
            np.add.at(matrix, (bundle.columns[:, :, None], bundle.columns[:, None, :]), weights[bundle.number, None, None] * bundle.hessian)
        return matrix[: self.width, : self.width]

    def chosen(self, numbers: np.ndarray) -> Curved:
        """Some of them, in that order."""
        place = np.full(self.count, -1)
        place[numbers] = np.arange(len(numbers))
        bundles = []
        for bundle in self.bundles:
            kept = place[bundle.number] >= 0
            bundles.append(Bundle(place[bundle.number[kept]], bundle.columns[kept], bundle.gradient[kept], bundle.hessian[kept]))
        return Curved(len(numbers), self.bodies, tuple(bundles))

    def _padded(self, a: np.ndarray) -> np.ndarray:
        return np.concatenate([a, np.zeros(6)])


class Numbers(NamedTuple):
    """The numbers of a mechanism at a pose.

    ``rows``: constraints, those of joints in their order, then couplings. ``directions``: free directions of all joints, one
    after the other. ``paths``: lengths of paths and cables.
    """

    rows: Curved
    directions: Curved
    paths: Curved


class Laws(NamedTuple):
    """Forces along directions and paths, with what changes them: force, K, D, (count, 3) each; springs of free rotations (6 n, 6 n).

    ``resisting``: (count,) the part along directions that dampers and servos have.
    """

    directions: np.ndarray
    paths: np.ndarray
    resisting: np.ndarray
    balls: np.ndarray


@kernel
def curve_joints(model, work, rows, free, gradient):
    """Second derivatives (joints, 6, 12, 12) of rows and free directions, and gradients (joints, 6, 12) of the latter."""
    for i in range(model.joints.shape[0]):
        joint, at = model.joints[i], work.joints[i]
        y, C, Rp = joint_at_knot(work.bodies, joint)
        for k in range(joint.locks):
            add_row(rows[i, k], joint, at, k, 1.0, y, C, Rp)
        for k in range(joint.free):
            add_direction(free[i, k], joint, k, 1.0, y, C, Rp)
            write_direction(gradient[i, k], joint, k, y, C, Rp)


@kernel
def joint_laws(model, work, rates, laws, resisting, balls):
    """Forces along free directions for rates (joints, 6): (joints, 6, 3) force, K, D; the part of dampers and servos (joints, 6).

    ``balls`` (joints, 12, 12): how springs of free rotations change with the poses. Driven directions carry no force.
    """
    for i in range(model.joints.shape[0]):
        joint, at = model.joints[i], work.joints[i]
        _, C, _ = joint_at_knot(work.bodies, joint)
        for k in range(joint.free):
            if joint.driven[k]:
                continue
            if joint.free_kind[k] == BALL and joint.free_axis[k] == 0:
                add_ball_spring(balls[i], joint, k, frame_rotation(joint, C), C)
            force, K, _ = spring(joint, at, k)
            motor, motor_K, motor_D = 0.0, 0.0, 0.0
            if joint.follows[k]:
                motor, motor_K, motor_D, _ = servo(joint, k, at.target[k], at.coordinate[k], rates[i, k])
            resisting[i, k] = motor - joint.damping[k] * rates[i, k]
            laws[i, k, 0] = at.input[k] + force + resisting[i, k]
            laws[i, k, 1] = K + motor_K
            laws[i, k, 2] = motor_D - joint.damping[k]


@kernel
def curve_paths(model, work, hessian):
    """Second derivatives (points, 12, 12) of the parts of paths, each at its first point; by the bodies of both its points."""
    for i in range(model.couplings.shape[0]):
        coupling = model.couplings[i]
        if coupling.kind == PATH:
            for number in range(coupling.points - 1):
                add_path_stiffness(hessian[coupling.first_point + number], model, work, coupling, number, 1.0, False)


@kernel
def path_laws(model, work, rates, laws):
    """Forces along paths for rates (couplings,): (couplings, 3) force, K, D."""
    for i in range(model.couplings.shape[0]):
        coupling, tie = model.couplings[i], work.couplings[i]
        if coupling.law != CONSTRAINT:
            force, K, D, _ = coupling_law(work, coupling, tie, tie.value, rates[i])
            laws[i, 0] = force
            laws[i, 1] = K
            laws[i, 2] = D


@kernel
def evaluate_one(model, work, index):
    """Value and gradient of one coupling."""
    evaluate_coupling(model, work, index, False)


def body_columns(bodies: np.ndarray) -> np.ndarray:
    """(..., 6 k) columns of bodies (..., k)."""
    bodies = np.asarray(bodies)
    return (6 * bodies[..., None] + np.arange(6)).reshape(*bodies.shape[:-1], 6 * bodies.shape[-1])


def numbers_at(placement: Placement) -> Numbers:
    """Rows, directions and paths at the placement's pose, which must have been evaluated."""
    model, work, count = placement.model, placement.work, placement.sizes[0]
    joints = model.joints
    rows, free = np.zeros((len(joints), 6, 12, 12)), np.zeros((len(joints), 6, 12, 12))
    gradient = np.zeros((len(joints), 6, 12))
    curve_joints(model, work, rows, free, gradient)
    columns = body_columns(np.stack([joints["parent"], joints["child"]], axis=1))
    locked, freed = (np.nonzero(np.arange(6) < joints[name][:, None]) for name in ("locks", "free"))
    gradients = np.concatenate([work.joints["Gp"], work.joints["Gc"]], axis=2)
    directions = Curved(len(freed[0]), count, (Bundle(np.arange(len(freed[0])), columns[freed[0]], gradient[freed], free[freed]),))
    constraints = [Bundle(np.arange(len(locked[0])), columns[locked[0]], gradients[locked], rows[locked])]
    paths: list[Bundle] = []
    segments = np.zeros((len(model.points), 12, 12))
    curve_paths(model, work, segments)
    for index, coupling in enumerate(model.couplings):
        first, ends = int(coupling["first"]), int(coupling["ends"])
        H = np.zeros((6 * ends, 6 * ends))
        if coupling["kind"] == GEAR:
            for side, weight in enumerate((1.0, -float(coupling["ratio"]))):
                part = free[coupling["joint"][side], coupling["direction"][side]]
                _add_parts(H, weight * part, coupling["slot"][2 * side : 2 * side + 2])
        elif coupling["kind"] == FUNCTION:
            H = _differenced_rows(placement, index, first, ends)
        else:
            slots = model.points["slot"][coupling["first_point"] : coupling["first_point"] + coupling["points"]]
            for number in range(len(slots) - 1):
                _add_parts(H, segments[coupling["first_point"] + number], slots[number : number + 2])
        kept, start = (constraints, len(locked[0])) if coupling["law"] == CONSTRAINT else (paths, 0)
        number = np.array([start + len(kept) - (1 if kept is constraints else 0)])
        G = work.ends["G"][first : first + ends].ravel()
        kept.append(Bundle(number, body_columns(model.ends[first : first + ends])[None], G[None].copy(), H[None]))
    return Numbers(
        Curved(len(locked[0]) + len(constraints) - 1, count, tuple(constraints)), directions, Curved(len(paths), count, tuple(paths)),
    )


def _add_parts(H: np.ndarray, part: np.ndarray, slots: np.ndarray) -> None:
    """Add a (12, 12) matrix of two bodies at their places among a coupling's ends; -1 is the world."""
    for a, row in enumerate(slots):
        for b, column in enumerate(slots):
            if row >= 0 and column >= 0:
                H[6 * row : 6 * row + 6, 6 * column : 6 * column + 6] += part[6 * a : 6 * a + 6, 6 * b : 6 * b + 6]


def _differenced_rows(placement: Placement, index: int, first: int, ends: int) -> np.ndarray:
    """(6 e, 6 e) second derivative of a user's constraint, by differences of its gradient."""
    model, work = placement.model, placement.work

    def gradient() -> np.ndarray:
        evaluate_one(model, work, index)
        return work.ends["G"][first : first + ends].ravel().copy()

    return difference_poses(placement, model.ends[first : first + ends], gradient)


def reaches(model: Model) -> np.ndarray:
    """(n,) how far each body reaches, m: its radius of gyration, or the way from its centre of mass to a joint."""
    lengths = model.bodies["length"].copy()
    for end in ("parent", "child"):
        np.maximum.at(lengths, model.joints[end], np.linalg.norm(model.joints[f"point_{end}"], axis=1))
    np.maximum.at(lengths, model.points["body"], np.linalg.norm(model.points["point"], axis=1))
    return lengths[:-1]


def difference_poses(placement: Placement, bodies: np.ndarray, function: Callable[[], np.ndarray]) -> np.ndarray:
    """(values, 6 e) differences of what a function reads off the work's poses, by the motions of some bodies."""
    records, lengths = placement.work.bodies, reaches(placement.model)
    columns = []
    for body in bodies:
        x, q = records["x"][body].copy(), records["q"][body].copy()
        for c in range(6):
            size = DIFFERENCE * (float(lengths[body]) if c < 3 else 1.0)
            slope = np.zeros(0)
            for steps, weight in STENCIL:
                if c < 3:
                    records["x"][body, c] = x[c] + steps * size
                else:
                    records["q"][body] = turned(q, steps * size * np.eye(3)[c - 3])
                slope = weight / size * function() + (slope if slope.size else 0.0)
                records["x"][body], records["q"][body] = x, q
            columns.append(slope)
    function()
    return np.stack(columns, axis=1)


def turned(q: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Unit quaternions (..., 4) turned by rotation vectors (..., 3) about body axes."""
    return (Rotation.from_quat(q, scalar_first=True) * Rotation.from_rotvec(phi)).as_quat(scalar_first=True)


def laws_at(placement: Placement, numbers: Numbers, velocity: np.ndarray) -> Laws:
    """Forces along directions and paths at the placement's pose for velocities (6 n,)."""
    model, work, (count, joints, couplings) = placement.model, placement.work, placement.sizes
    free = np.arange(6) < model.joints["free"][:, None]
    rates, laws, resisting = np.zeros((joints, 6)), np.zeros((joints, 6, 3)), np.zeros((joints, 6))
    balls = np.zeros((joints, 12, 12))
    rates[free] = numbers.directions.gradient() @ velocity
    joint_laws(model, work, rates, laws, resisting, balls)
    pulling = model.couplings["law"] != CONSTRAINT
    path_rates, path_forces = np.zeros(couplings), np.zeros((couplings, 3))
    path_rates[pulling] = numbers.paths.gradient() @ velocity
    path_laws(model, work, path_rates, path_forces)
    columns = body_columns(np.stack([model.joints["parent"], model.joints["child"]], axis=1))
    zero = np.zeros((joints, 12))
    springs = Curved(joints, count, (Bundle(np.arange(joints), columns, zero, balls),)).contract(np.ones(joints))
    return Laws(laws[free], path_forces[pulling], resisting[free], springs)
