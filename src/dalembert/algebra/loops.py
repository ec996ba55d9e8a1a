"""Closed loops: rows that the tree leaves out, rates and Jacobians that respect them, constrained dynamics.

Rows may be redundant: ranks are decided by singular values, and multipliers are those of least norm.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cholesky, qr, solve_triangular

from dalembert.algebra.configurations import VECTORS
from dalembert.algebra.dynamics import Dynamics
from dalembert.algebra.rows import evaluate_outside, loop_bias, loop_rows, passive_forces
from dalembert.checks import checked, whole
from dalembert.errors import AssemblyError, ModelError
from dalembert.formulations.reduced.equations import Stage
from dalembert.formulations.reduced.ties import CLOSED, KEPT, build_ties
from dalembert.mechanism.mechanism import Body, Mechanism
from dalembert.model.compile_forces import coupling_names
from dalembert.model.functions import watched
from dalembert.model.records import BALL

#: singular values below this part of the largest count as none
RANK = 1e-10
#: loops count as closed, m or rad
CLOSE = 1e-12
#: a set of equations counts as met when this part of its right-hand side is left
MET = 1e-8


class Loops(Dynamics):
    """Loops are cut at joints outside of the spanning tree; their rows, and those of gears, coordinate maps and constraints, are in
    ``loop_names``.

    With G the ``loop_jacobian``: G v = 0, G a = -``loop_bias``, M a + b = tau + G^T lambda. Targets of motion drives are no rows.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        super().__init__(mechanism)
        ties = build_ties(self.mechanism, self._model, self._forest)
        self._stage = Stage(self._model, self._tree, self._work, self._scratch, ties, 1.0)
        rows, names = ties.rows, coupling_names(self.mechanism)
        kept: list[int] = []
        labels: list[str] = []
        for i, row in enumerate(rows):
            index, part = int(row["index"]), int(row["part"])
            if row["kind"] == CLOSED and self._model.joints["row_direction"][index, part] < 0:
                kept.append(i)
                labels.append(f"{self.mechanism.joints[index].name}[{part}]")
            elif row["kind"] == KEPT:
                kept.append(i)
                labels.append(names[index])
        self._chosen = np.array(kept, dtype=np.int64)
        #: the rows that loops, gears and constraints add to the tree
        self.loop_names = tuple(labels)

    # ---- rows

    def loop_jacobian(self, q: ArrayLike) -> np.ndarray:
        """G (rows, n): derivative of ``loop_error`` along the tangent."""
        return self._rows(q, None)[1]

    def loop_error(self, q: ArrayLike) -> np.ndarray:
        """How far the rows are open, m or rad."""
        return self._rows(q, None)[0]

    def loop_bias(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """G' v (rows,): second time derivatives of the rows when no rate changes."""
        self._rows(q, v)
        found = np.zeros(len(self.loop_names))
        with watched(self.mechanism):
            loop_bias(self._stage, self._chosen, found)
        return found

    def _rows(self, q: ArrayLike, v: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
        """Errors and Jacobian of the rows; leaves everything evaluated at (q, v)."""
        self._outside(q, v)
        values, G = np.zeros(len(self.loop_names)), np.zeros((len(self.loop_names), self.size))
        with watched(self.mechanism):
            loop_rows(self._stage, self._chosen, values, G)
        return values, G

    def _outside(self, q: ArrayLike, v: ArrayLike | None) -> None:
        """Place the tree and evaluate what is not part of it."""
        self._put(q, v)
        given = np.asarray(q, dtype=float)
        joints = self._work.joints
        joints["coordinate"], joints["target"] = self._placement.work.joints["coordinate"], self._placement.work.joints["target"]
        for node in self._tree[(self._tree["joint"] >= 0) & (self._tree["count"] > 0)]:
            first, count = int(node["direction"]), int(node["count"])
            joints["coordinate"][node["joint"], first : first + count] = given[node["dof"] : node["dof"] + count]
        with watched(self.mechanism):
            evaluate_outside(self._stage)

    @checked(**VECTORS, most=whole("a whole number from 1", least=1))
    def close_loops(self, q: ArrayLike, *, most: int = 50) -> np.ndarray:
        """The configuration with closed loops that Gauss-Newton steps lead to from ``q``. Raises AssemblyError if none is found."""
        here = self._vector(q, "q")
        error, G = self._rows(here, None)
        for _ in range(most):
            size = np.abs(error).max(initial=0.0)
            if size <= CLOSE:
                return here
            step = -np.linalg.lstsq(G, error, rcond=RANK)[0]
            step *= min(1.0, 0.5 / max(np.abs(step).max(), 1e-300))
            there = self.integrate(here, step)
            error, G = self._rows(there, None)
            if np.abs(error).max() >= size and size < 1e-9:
                return here
            here = there
        worst = self.loop_names[int(np.argmax(np.abs(error)))]
        raise AssemblyError(f"the loops of {self.mechanism.name!r} do not close from this q: row {worst!r} stays open by {np.abs(error).max():.3g}; start nearer")

    # ---- rates

    def project_rates(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """The rates nearest to ``v``, in the metric of the mass matrix, that keep the loops closed."""
        return self._nearest(q, self._vector(v, "v"), np.zeros(len(self.loop_names)))

    def project_accelerations(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
        """The accelerations nearest to ``a``, in the metric of the mass matrix, that keep the loops closed at rates ``v``."""
        return self._nearest(q, self._vector(a, "a"), -self.loop_bias(q, v))

    def _nearest(self, q: ArrayLike, x: np.ndarray, right: np.ndarray) -> np.ndarray:
        """x with G x = right, changed as little as possible."""
        L = cholesky(self.mass_matrix(q), lower=True)
        U, sizes, V = _factors(solve_triangular(L, self.loop_jacobian(q).T, lower=True))
        z = L.T @ x
        z += U @ ((V.T @ right) / sizes - U.T @ z)
        return solve_triangular(L.T, z)

    def independent_coordinates(self, q: ArrayLike) -> tuple[str, ...]:
        """Names of coordinates whose rates determine all others at ``q``, by a QR factorisation with pivots."""
        G = self.loop_jacobian(q)
        if not len(G):
            return self.names
        _, R, order = _pivoted(G)
        pivots = np.abs(np.diag(R))
        rank = int(np.count_nonzero(pivots > RANK * max(pivots[0], 1e-300)))
        return tuple(self.names[i] for i in sorted(order[rank:]))

    @checked(**VECTORS)
    def rate_map(self, q: ArrayLike, independent: Iterable[str] | None = None) -> np.ndarray:
        """N (n, f) with v = N v_independent for rates that keep the loops closed; ``independent``: names of f directions or joints.

        Raises ModelError where those do not determine all rates, or are not independent.
        """
        G = self.loop_jacobian(q)
        names = list(self.independent_coordinates(q) if independent is None else self._directions(independent))
        chosen = [self.names.index(name) for name in names]
        rest = [i for i in range(self.size) if i not in chosen]
        N = np.zeros((self.size, len(chosen)))
        N[chosen, np.arange(len(chosen))] = 1.0
        if not rest:
            if len(G) and np.abs(G).max() > 0.0:
                raise ModelError(f"the rates of {', '.join(names)} are not independent at this q: the loops tie them")
            return N
        sizes = np.linalg.svd(G[:, rest], compute_uv=False) if len(G) else np.zeros(0)
        held = int(np.count_nonzero(sizes > RANK * sizes[0])) if len(sizes) else 0
        if held < len(rest):
            raise ModelError(f"the rates of {', '.join(names) or 'nothing'} do not determine all others at this q: {len(rest) - held} more are free")
        N[rest] = -np.linalg.lstsq(G[:, rest], G[:, chosen], rcond=RANK)[0]
        left = np.abs(G @ N).max(initial=0.0)
        if left > MET * np.abs(G).max():
            raise ModelError(f"the rates of {', '.join(names)} are not independent at this q: the loops tie them (they would open by {left:.3g} per unit)")
        return N

    def _directions(self, names: Iterable[str]) -> list[str]:
        """Names of single directions for names of directions or joints."""
        return [single for name in names for single in ((name,) if name in self.names else self.names[self.slot(name)])]

    @checked(**VECTORS)
    def consistent_body_jacobians(
        self, q: ArrayLike, bodies: Sequence[Body | str] | None = None, independent: Iterable[str] | None = None,
    ) -> np.ndarray:
        """(bodies, 6, f): velocities of centres of mass per independent rate, loops kept closed; linear then angular, world axes.

        All right-hand sides at once: one factorisation for all bodies and rates. ``bodies``: all of them if not given.
        """
        N = self.rate_map(q, independent)
        chosen = range(len(self.mechanism.bodies)) if bodies is None else [self._body(body) for body in bodies]
        return self.body_jacobians(q)[list(chosen)] @ N

    # ---- dynamics

    def constrained_forward_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations (n,) under ``tau`` with the loops closed, and the multipliers (rows,) of least norm that do it."""
        forces = self._vector(tau, "tau") - self.bias_forces(q, v)
        right = -self.loop_bias(q, v)
        L = cholesky(self.mass_matrix(q), lower=True)
        U, sizes, V = _factors(solve_triangular(L, self.loop_jacobian(q).T, lower=True))
        z = solve_triangular(L, forces, lower=True)
        change = (V.T @ right) / sizes - U.T @ z
        return solve_triangular(L.T, z + U @ change), V @ (change / sizes)

    @checked(**VECTORS)
    def constrained_inverse_dynamics(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, actuated: Iterable[str] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Forces tau (n,) and multipliers (rows,) for accelerations ``a`` that keep the loops closed; the least norm of both.

        ``actuated``: names of the directions or joints that can push, all if not given. Raises ModelError where ``a`` opens the
        loops, or where those that are actuated cannot cause it.
        """
        given, right = self._vector(a, "a"), self.loop_bias(q, v)
        G = self.loop_jacobian(q)
        opened = np.abs(G @ given + right).max(initial=0.0)
        if opened > MET * max(1.0, np.abs(right).max(initial=0.0), np.abs(given).max(initial=0.0)):
            raise ModelError(f"a opens the loops by {opened:.3g} m/s^2 or rad/s^2: take project_accelerations(q, v, a)")
        wanted = self.inverse_dynamics(q, v, given)
        chosen = list(range(self.size)) if actuated is None else [self.names.index(name) for name in self._directions(actuated)]
        both = np.hstack([np.eye(self.size)[:, chosen], G.T])
        found = np.linalg.lstsq(both, wanted, rcond=RANK)[0]
        missing = wanted - both @ found
        if np.abs(missing).max(initial=0.0) > MET * max(1.0, np.abs(wanted).max(initial=0.0)):
            worst = self.names[int(np.argmax(np.abs(missing)))]
            raise ModelError(f"what is actuated cannot cause these accelerations: {np.abs(missing).max():.3g} is missing along {worst!r}")
        tau = np.zeros(self.size)
        tau[chosen] = found[: len(chosen)]
        return tau, found[len(chosen) :]

    # ---- what the mechanism itself pushes with

    def passive_forces(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """(n,): springs, dampers, servos at their first targets, wrenches and loads along the rates; to be added to ``tau``."""
        self._outside(q, v)
        for index in self._stage.ties.loops:
            joint = self._model.joints[index]
            ball = joint["free_kind"] == BALL
            if np.any(joint["stiffness"][ball] > 0.0) or np.any(joint["damping"][ball] > 0.0):
                raise ModelError(
                    f"joint {self.mechanism.joints[index].name!r} closes a loop and has springs or dampers of a free rotation: "
                    "passive_forces takes those at joints of the tree (build this joint earlier)")
        tau = np.zeros(self.size)
        with watched(self.mechanism):
            passive_forces(self._stage, tau)
        return tau


def _factors(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, sizes, V of the part of Y = U diag(sizes) V^T that has a rank."""
    if not Y.size:
        return np.zeros((Y.shape[0], 0)), np.zeros(0), np.zeros((Y.shape[1], 0))
    U, sizes, V = np.linalg.svd(Y, full_matrices=False)
    rank = int(np.count_nonzero(sizes > RANK * max(sizes[0], 1e-300)))
    return U[:, :rank], sizes[:rank], V[:rank].T


def _pivoted(G: np.ndarray) -> Any:
    """QR with pivots, the largest columns first."""
    return qr(G, mode="economic", pivoting=True)
