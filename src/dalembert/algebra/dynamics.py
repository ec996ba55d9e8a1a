"""Equations of motion M(q) a + b(q, v) = tau of the tree: inverse, forward and hybrid dynamics with exact derivatives."""
from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dalembert.algebra import inertia, inverse
from dalembert.algebra.configurations import VECTORS
from dalembert.algebra.forward import hybrid_dynamics, inverse_products
from dalembert.algebra.kinematics import Kinematics
from dalembert.checks import checked, numbers
from dalembert.errors import ModelError
from dalembert.formulations.reduced.forward import Flow, new_flow
from dalembert.formulations.reduced.ties import no_ties
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.compile import new_work


class InverseDerivatives(NamedTuple):
    """Derivatives (n, n) of inverse dynamics: ``dtau_dq`` along the tangent, ``dtau_dv``, ``dtau_da`` (the mass matrix)."""

    dtau_dq: np.ndarray
    dtau_dv: np.ndarray
    dtau_da: np.ndarray


class ForwardDerivatives(NamedTuple):
    """Derivatives (n, n) of forward dynamics: ``da_dq`` along the tangent, ``da_dv``, ``da_dtau`` (the inverse mass matrix)."""

    da_dq: np.ndarray
    da_dv: np.ndarray
    da_dtau: np.ndarray


class HybridDerivatives(NamedTuple):
    """Derivatives (n, n) of hybrid dynamics, rows of what is given zero: ``da_dq`` and ``dtau_dq`` along the tangent, ``da_dv``, ``dtau_dv``."""

    da_dq: np.ndarray
    da_dv: np.ndarray
    dtau_dq: np.ndarray
    dtau_dv: np.ndarray


class Dynamics(Kinematics):
    """Forces ``tau`` do work on the rates: N along distances, N m along angles, the torque in the parent's axes at free rotations.

    Gravity acts, and the inertia of rotors (``armature``) counts; springs, dampers and loads of the mechanism do not act:
    ``passive_forces`` are what they push with, to be added to ``tau``.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        super().__init__(mechanism)
        self._work = new_work(self._model)
        self._work.bodies["node"][:-1] = self._forest.node_of
        self._flow = Flow(self._model, self._tree, self._work, new_flow(self._tree), no_ties(), False, False, False)
        self._gravity, self._still = np.array(self._model.gravity), np.zeros(3)
        for i in np.flatnonzero(self._tree["count"] == 2):
            self._flow.own.nodes["extra"][i, 3] = self._rotors[self._tree["dof"][i] + 1]

    # ---- inverse dynamics

    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
        """tau (n,) that accelerations ``a`` take."""
        self._put(q, v, a)
        return self._inverse(self._gravity)

    def bias_forces(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """b (n,): gravity, Coriolis and centrifugal forces, "nonlinear effects"; tau = M a + b."""
        self._put(q, v)
        return self._inverse(self._gravity)

    def gravity_forces(self, q: ArrayLike) -> np.ndarray:
        """(n,): what holds the mechanism still, "generalized gravity"."""
        self._put(q)
        return self._inverse(self._gravity)

    def _inverse(self, gravity: np.ndarray) -> np.ndarray:
        tau = np.zeros(self.size)
        self._enter(inverse.inverse_dynamics, gravity, self._rotors, self._tree, self._nodes, tau)
        return tau

    def inverse_dynamics_derivatives(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> InverseDerivatives:
        """Exact derivatives of ``inverse_dynamics``."""
        return self._derivatives(q, v, a, self._gravity)

    def inverse_dynamics_product(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, dq: ArrayLike, dv: ArrayLike, da: ArrayLike,
    ) -> np.ndarray:
        """What tau (n,) changes by along a direction, in linear time."""
        self._put(q, v, a)
        self._inverse(self._gravity)
        change = np.zeros(self.size)
        inverse.vary(self._rotors, self._tree, self._scratch, self._vector(dq, "dq"), self._vector(dv, "dv"), self._vector(da, "da"), change)
        return change

    def bias_forces_derivatives(self, q: ArrayLike, v: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives (n, n) of ``bias_forces`` by the tangent of q, and by v."""
        return self._derivatives(q, v, self._zero, self._gravity)[:2]

    def gravity_forces_derivatives(self, q: ArrayLike) -> np.ndarray:
        """Derivative (n, n) of ``gravity_forces`` by the tangent of q."""
        return self._derivatives(q, self._zero, self._zero, self._gravity)[0]

    def _derivatives(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, gravity: np.ndarray) -> InverseDerivatives:
        self._put(q, v, a)
        self._inverse(gravity)
        by_q, by_v, by_a = np.zeros((3, self.size, self.size))
        inverse.inverse_derivatives(self._rotors, self._tree, self._scratch, np.zeros((2, self.size)), np.zeros(len(self._tree), bool), by_q, by_v, by_a)
        return InverseDerivatives(by_q.T, by_v.T, by_a.T)

    # ---- inertia

    def mass_matrix(self, q: ArrayLike) -> np.ndarray:
        """M (n, n), with the inertia of rotors."""
        self._put(q)
        return self._inertia()

    def _inertia(self) -> np.ndarray:
        M = np.zeros((self.size, self.size))
        self._enter(inertia.mass_matrix, self._rotors, self._tree, self._nodes, np.zeros((6, 6)), M)
        return M

    def mass_matrix_derivatives(self, q: ArrayLike) -> np.ndarray:
        """(n, n, n): derivative of ``mass_matrix`` by the tangent of q, which is the last index."""
        columns = [self._derivatives(q, self._zero, unit, self._still).dtau_dq for unit in np.eye(self.size)]
        return np.stack(columns, axis=1) if columns else np.zeros((0, 0, 0))

    def kinetic_energy_derivatives(self, q: ArrayLike, v: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives (n,) of ``kinetic_energy`` by the tangent of q, and by v (the momenta M v)."""
        rates = self._vector(v, "v")
        by_q, _, M = self._derivatives(q, self._zero, rates, self._still)
        return 0.5 * rates @ by_q, M @ rates

    def coriolis_forces(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """(n,): ``bias_forces`` without gravity."""
        self._put(q, v)
        return self._inverse(self._still)

    def inverse_mass_matrix(self, q: ArrayLike) -> np.ndarray:
        """M^-1 (n, n), without M."""
        return self.inverse_mass_product(q, np.eye(self.size))

    def inverse_mass_product(self, q: ArrayLike, x: ArrayLike) -> np.ndarray:
        """M^-1 x for a vector (n,) or for columns (n, m), each in linear time (RedMax Algorithm 10)."""
        columns = numbers()(x, "x")
        if columns.ndim not in (1, 2) or columns.shape[0] != self.size:
            raise ModelError(f"x must have the shape ({self.size},) or ({self.size}, m), got {columns.shape}")
        self._put(q)
        self._hybrid(self._zero.copy(), self._zero.copy())
        return self._products(columns)

    def _products(self, columns: np.ndarray) -> np.ndarray:
        """M^-1 times columns where ``_hybrid`` was called, nothing prescribed."""
        wide = np.ascontiguousarray(columns.reshape(self.size, -1))
        found = np.zeros_like(wide)
        inverse_products(self._flow, self._nodes, wide, found)
        return found.reshape(columns.shape)

    # ---- forward dynamics

    def forward_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> np.ndarray:
        """Accelerations a (n,) under ``tau``, in linear time (RedMax Algorithm 9, articulated bodies)."""
        return self.hybrid_dynamics(q, v, tau, self._zero)[0]

    @checked(**VECTORS)
    def hybrid_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, a: ArrayLike, prescribed: Iterable[str] = (),
    ) -> tuple[np.ndarray, np.ndarray]:
        """All accelerations and forces (a, tau), each (n,), when those of some directions are given, in linear time.

        ``prescribed``: joints (or bodies without a joint) whose accelerations are those of ``a``, with the forces that this
        takes as a result; or names of single directions. Of all others ``tau`` is given and the acceleration found.
        """
        given, forces = self._vector(a, "a"), self._vector(tau, "tau")
        held = self._prescribed(prescribed)
        self._put(q, v)
        found = np.where(held, given, 0.0)
        self._tree["driven"] = held[np.minimum(self._tree["dof"], max(self.size - 1, 0))] & (self._tree["count"] > 0) if self.size else 0
        try:
            self._hybrid(forces, found)
        finally:
            self._tree["driven"] = 0
        return found, forces

    def _hybrid(self, tau: np.ndarray, a: np.ndarray) -> None:
        """Fill in forces of prescribed directions and accelerations of the others, where ``_put`` was called."""
        self._enter(hybrid_dynamics, self._flow, self._nodes, tau, a)

    def _prescribed(self, names: Iterable[str]) -> np.ndarray:
        """(n,): which directions are prescribed."""
        held = np.zeros(self.size, dtype=bool)
        for name in names:
            if name in self.names:
                held[self.names.index(name)] = True
            else:
                held[self.slot(name)] = True
        for own in self._rotations():
            if held[own].any() and not held[own].all():
                raise ModelError(f"the three directions {', '.join(self.names[own])} of a free rotation are prescribed together, or none of them is")
        return held

    @checked(**VECTORS)
    def hybrid_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, a: ArrayLike, prescribed: Iterable[str] = (),
    ) -> HybridDerivatives:
        """Exact derivatives of ``hybrid_dynamics``."""
        names = [prescribed] if isinstance(prescribed, str) else list(prescribed)
        held = self._prescribed(names)
        found, _ = self.hybrid_dynamics(q, v, tau, a, names)
        by_q, by_v, M = self._derivatives(q, v, found, self._gravity)
        moved = [np.zeros((self.size, self.size)) for _ in range(2)]
        forced = [np.zeros((self.size, self.size)) for _ in range(2)]
        for change, force, by in zip(moved, forced, (by_q, by_v)):
            change[~held] = -np.linalg.solve(M[np.ix_(~held, ~held)], by[~held])
            force[held] = by[held] + M[np.ix_(held, ~held)] @ change[~held]
        return HybridDerivatives(*moved, *forced)

    def forward_dynamics_derivatives(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> ForwardDerivatives:
        """Exact derivatives of ``forward_dynamics``: -M^-1 times those of inverse dynamics at the accelerations found."""
        a = self.forward_dynamics(q, v, tau)
        by_q, by_v, _ = self._derivatives(q, v, a, self._gravity)
        found = self._products(np.hstack([-by_q, -by_v, np.eye(self.size)]))
        return ForwardDerivatives(*np.hsplit(found, 3))

    # ---- parameters

    @property
    def inertial_parameters(self) -> np.ndarray:
        """(10 bodies,): mass, first moment (3), inertia xx, xy, yy, xz, yz, zz of each, about its origin, the centre of mass."""
        bodies = self._model.bodies[:-1]
        entries = bodies["inertia"][:, [0, 1, 4, 2, 5, 8]]
        return np.hstack([bodies["mass"][:, None], np.zeros((len(bodies), 3)), entries]).ravel()

    def inverse_dynamics_regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
        """Y (n, 10 bodies) with tau = Y ``inertial_parameters`` (+ armature times a), "joint torque regressor".

        It is the derivative of ``inverse_dynamics`` by the parameters, which it is linear in.
        """
        self._put(q, v, a)
        Y = np.zeros((self.size, 10 * len(self.mechanism.bodies)))
        inertia.regressor(self._gravity, self._tree, self._nodes, Y)
        return Y
