"""Poses, Jacobians of points on bodies with their derivatives, centroidal momentum, energies."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dalembert.algebra.configurations import Configurations
from dalembert.algebra.motion import body_jacobians, body_poses, gather_wrenches, point_jacobian
from dalembert.checks import numbers, shown, vector
from dalembert.errors import ModelError
from dalembert.mechanism.mechanism import Body, Mechanism

#: what a Jacobian's rows are: velocity of the point and angular velocity, in world axes; both in body axes; the twist at the
#: world's origin
FRAMES = ("local_world_aligned", "local", "world")


class Poses(NamedTuple):
    """Of all bodies: ``position`` (bodies, 3) of the centres of mass, ``orientation`` (bodies, 4), ``velocity`` and ``acceleration``
    (bodies, 6), linear then angular, all in world axes.
    """

    position: np.ndarray
    orientation: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray


class Kinematics(Configurations):
    """Where bodies are and how they move. Every derivative by ``q`` is one along the tangent, as rates are.

    Centre of mass, momentum and potential energy are those of the bodies that can move: what is fixed to the world is left out.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        super().__init__(mechanism)
        moves = np.zeros(len(self._tree), dtype=bool)
        for i, node in enumerate(self._tree):
            moves[i] = node["count"] > 0 or (node["parent"] >= 0 and moves[node["parent"]])
        self._rotors = np.zeros(self.size)
        for node in self._tree[self._tree["joint"] >= 0]:
            first, count = int(node["direction"]), int(node["count"])
            if count:
                self._rotors[node["dof"] : node["dof"] + count] = self._model.joints["armature"][node["joint"], first : first + count]
        self._mass = np.where(moves[self._forest.node_of], self._model.bodies["mass"][:-1], 0.0)

    @property
    def mass(self) -> float:
        """Of all bodies that can move, kg."""
        return float(self._mass.sum())

    def forward_kinematics(self, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None) -> Poses:
        """Poses, velocities and accelerations of all bodies."""
        self._put(q, v, a)
        return self._poses()

    def _poses(self) -> Poses:
        count = len(self.mechanism.bodies)
        position, rotation, velocity, acceleration = np.zeros((count, 3)), np.zeros((count, 9)), np.zeros((count, 6)), np.zeros((count, 6))
        body_poses(self._tree, self._nodes, position, rotation, velocity, acceleration)
        orientation = Rotation.from_matrix(rotation.reshape(-1, 3, 3)).as_quat(scalar_first=True)
        return Poses(position, orientation, velocity, acceleration)

    # ---- Jacobians

    def body_jacobian(
        self, body: Body | str, q: ArrayLike, point: ArrayLike = (0.0, 0.0, 0.0), frame: str = "local_world_aligned",
    ) -> np.ndarray:
        """Jacobian (6, n) of a ``point`` of a body (m, from its centre of mass, body axes): linear rows, then angular ones.

        ``frame``: "local_world_aligned" (world axes, at the point), "local" (body axes) or "world" (at the world's origin).
        """
        return self._jacobian(body, q, None, point, frame)[0]

    def body_jacobian_rate(
        self, body: Body | str, q: ArrayLike, v: ArrayLike, point: ArrayLike = (0.0, 0.0, 0.0), frame: str = "local_world_aligned",
    ) -> np.ndarray:
        """Time derivative (6, n) of ``body_jacobian`` at rates ``v``."""
        return self._jacobian(body, q, v, point, frame)[1]

    def body_jacobian_derivatives(
        self, body: Body | str, q: ArrayLike, point: ArrayLike = (0.0, 0.0, 0.0), frame: str = "local_world_aligned",
    ) -> np.ndarray:
        """(6, n, n): derivative of ``body_jacobian`` by the tangent of q, which is the last index."""
        return np.stack([self._jacobian(body, q, unit, point, frame)[1] for unit in np.eye(self.size)], axis=-1) if self.size else np.zeros((6, 0, 0))

    def _jacobian(self, body: Body | str, q: ArrayLike, v: ArrayLike | None, point: ArrayLike, frame: str) -> tuple[np.ndarray, np.ndarray]:
        if not isinstance(frame, str) or frame not in FRAMES:
            raise ModelError(f"a Jacobian's frame is one of {', '.join(FRAMES)}; got {shown(frame)}")
        node = int(self._forest.node_of[self._body(body)])
        local = vector(point, 3, f"point on {shown(body)}")
        self._put(q, v)
        at = self._nodes[node]
        R = at["W"].reshape(3, 3)
        spin = R @ at["V"][:3]
        P, P_rate = at["place"] + R @ local, R @ (at["V"][3:] + np.cross(at["V"][:3], local))
        if frame == "world":
            P, P_rate = np.zeros(3), np.zeros(3)
        J, J_rate = np.zeros((6, self.size)), np.zeros((6, self.size))
        point_jacobian(self._tree, self._scratch, node, P, P_rate, J, J_rate)
        if frame == "local":
            for rows in (slice(0, 3), slice(3, 6)):
                J_rate[rows] = R.T @ (J_rate[rows] - np.cross(spin, J[rows], axisb=0, axisc=0))
                J[rows] = R.T @ J[rows]
        return J, J_rate

    def body_jacobians(self, q: ArrayLike) -> np.ndarray:
        """(bodies, 6, n): the Jacobians of all centres of mass, world axes."""
        self._put(q)
        return self._jacobians()[0]

    def _jacobians(self) -> tuple[np.ndarray, np.ndarray]:
        J, J_rate = np.zeros((2, len(self.mechanism.bodies), 6, self.size))
        body_jacobians(self._tree, self._scratch, J, J_rate)
        return J, J_rate

    def jacobian_product(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """J v (bodies, 6) of all centres of mass, without the Jacobians, in linear time (RedMax Algorithm 5)."""
        return self.forward_kinematics(q, v).velocity

    def jacobian_rate_product(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """J' v (bodies, 6): accelerations of all centres of mass when no rate changes (RedMax Algorithm 5)."""
        return self.forward_kinematics(q, v).acceleration

    def jacobian_transpose_product(self, q: ArrayLike, wrenches: ArrayLike) -> np.ndarray:
        """J^T y (n,) for wrenches (bodies, 6) at the centres of mass, force then torque, world axes (RedMax Algorithm 6)."""
        bodies = self.mechanism.bodies
        given = numbers()(wrenches, "wrenches")
        if given.shape != (len(bodies), 6):
            raise ModelError(f"wrenches must have the shape ({len(bodies)}, 6), a force and a torque for each body, got {given.shape}")
        self._put(q)
        turned, tau = np.zeros((len(self._tree), 6)), np.zeros(self.size)
        for body in bodies:
            node = self._forest.node_of[body.index]
            R = self._nodes["W"][node].reshape(3, 3)
            turned[node] = np.concatenate([given[body.index, 3:] @ R, given[body.index, :3] @ R])
        gather_wrenches(self._tree, self._nodes, turned, tau)
        return tau

    # ---- the whole mechanism

    @property
    def _total(self) -> float:
        """The mass that averages are over."""
        if not self.mass > 0.0:
            raise ModelError(f"no body of {self.mechanism.name!r} can move: it has no centre of mass to speak of")
        return self.mass

    def center_of_mass(self, q: ArrayLike) -> np.ndarray:
        """(3,) m, world."""
        return self._mass @ self.forward_kinematics(q).position / self._total

    def center_of_mass_jacobian(self, q: ArrayLike) -> np.ndarray:
        """(3, n)."""
        return np.einsum("b,bcn->cn", self._mass, self.body_jacobians(q)[:, :3]) / self._total

    def centroidal_momentum(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """(6,): linear momentum, then angular momentum about the centre of mass, world axes. Rotors have none."""
        return self.centroidal_momentum_matrix(q) @ self._vector(v, "v")

    def centroidal_momentum_matrix(self, q: ArrayLike) -> np.ndarray:
        """A (6, n) with h = A v."""
        return self._centroidal(q, None)[0]

    def centroidal_momentum_matrix_rate(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """Time derivative (6, n) of the matrix: h' = A a + A' v."""
        return self._centroidal(q, v)[1]

    def centroidal_momentum_derivatives(self, q: ArrayLike, v: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives (6, n) of the centroidal momentum by the tangent of q, and by v."""
        rates = self._vector(v, "v")
        turned = [self._centroidal(q, unit)[1] @ rates for unit in np.eye(self.size)]
        return np.array(turned).reshape(self.size, 6).T, self.centroidal_momentum_matrix(q)

    def _centroidal(self, q: ArrayLike, v: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
        """The centroidal momentum matrix and its time derivative."""
        self._put(q, v)
        J, J_rate = self._jacobians()
        poses, bodies = self._poses(), self._model.bodies[:-1]
        mass = self._mass
        R = Rotation.from_quat(poses.orientation, scalar_first=True).as_matrix()
        inertia = R @ bodies["inertia"].reshape(-1, 3, 3) @ R.transpose(0, 2, 1)
        spin = _skew(poses.velocity[:, 3:])
        inertia_rate = spin @ inertia - inertia @ spin
        arm = _skew(poses.position - mass @ poses.position / self._total)
        arm_rate = _skew(poses.velocity[:, :3] - mass @ poses.velocity[:, :3] / self._total)
        linear, linear_rate = mass[:, None, None] * J[:, :3], mass[:, None, None] * J_rate[:, :3]
        angular = inertia @ J[:, 3:] + arm @ linear
        angular_rate = inertia_rate @ J[:, 3:] + inertia @ J_rate[:, 3:] + arm_rate @ linear + arm @ linear_rate
        return np.vstack([linear.sum(0), angular.sum(0)]), np.vstack([linear_rate.sum(0), angular_rate.sum(0)])

    # ---- energies

    def potential_energy(self, q: ArrayLike) -> float:
        """Energy of gravity, J, zero at the world's origin. Its derivative is ``gravity_forces``."""
        return -float(self._mass @ self.forward_kinematics(q).position @ self._model.gravity)

    def kinetic_energy(self, q: ArrayLike, v: ArrayLike) -> float:
        """Energy of motion, rotors included, J."""
        rates = self._vector(v, "v")
        poses, bodies = self.forward_kinematics(q, rates), self._model.bodies[:-1]
        spin = np.einsum("bi,bij->bj", poses.velocity[:, 3:], Rotation.from_quat(poses.orientation, scalar_first=True).as_matrix())
        turning = np.einsum("bi,bij,bj->", spin, bodies["inertia"].reshape(-1, 3, 3), spin)
        rotors = np.sum(self._rotors * rates**2)
        return 0.5 * float(np.sum(bodies["mass"][:, None] * poses.velocity[:, :3] ** 2) + turning + rotors)


def _skew(w: np.ndarray) -> np.ndarray:
    """[w] of vectors (m, 3)."""
    result = np.zeros((len(w), 3, 3))
    result[:, 2, 1], result[:, 0, 2], result[:, 1, 0] = w.T
    return result - result.transpose(0, 2, 1)
