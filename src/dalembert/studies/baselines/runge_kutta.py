"""Explicit Runge-Kutta-Munthe-Kaas methods in joint coordinates; loops at the level of accelerations, without stabilisation.

What the Variational paper compares with: the simulator RigidBodyDynamics.jl with methods of order one (Euler), two (Heun) and four.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import dalembert as da

#: coefficients (a, b) of explicit tables
TABLES: dict[str, tuple[tuple[tuple[float, ...], ...], tuple[float, ...]]] = {
    "euler": (((),), (1.0,)),
    "heun": (((), (1.0,)), (0.5, 0.5)),
    "rk4": (((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)), (1 / 6, 1 / 3, 1 / 3, 1 / 6)),
}


@dataclass(frozen=True)
class Motion:
    """Knots of a run: ``time`` (N,), coordinates ``q`` and rates ``v`` (N, n) as ``da.Algebra`` has them."""

    algebra: da.Algebra
    time: np.ndarray
    q: np.ndarray
    v: np.ndarray

    def energy(self) -> np.ndarray:
        """(N,): kinetic and potential, J."""
        return np.array([self.algebra.kinetic_energy(q, v) + self.algebra.potential_energy(q) for q, v in zip(self.q, self.v)])

    def opening(self) -> np.ndarray:
        """(N,): how far loops are open, m or rad."""
        return np.array([np.abs(self.algebra.loop_error(q)).max() for q in self.q])


class RungeKutta:
    """One mechanism and one table; ``step`` goes from (q, v) to the next knot."""

    def __init__(self, mechanism: da.Mechanism, method: str, dt: float) -> None:
        self.algebra, self.dt, (self.a, self.b) = da.Algebra(mechanism), dt, TABLES[method]
        self.start = self.algebra.state(da.Simulation(mechanism, da.Reduced(dt=dt)))
        turning = [self.algebra.slot(j.name) for j in mechanism.joints if isinstance(j.type, da.Spherical) and f"{j.name}[0]" in self.algebra.names]
        self.balls = np.array([np.arange(own.start, own.stop) for own in turning], dtype=int).reshape(-1, 3)
        self.accelerate = self._with_loops if len(self.algebra.loop_names) else self._of_a_tree
        self.passive = any(np.any(law) for j in mechanism.joints for law in (j.type.stiffness, j.type.damping))

    def _tau(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.algebra.passive_forces(q, v) if self.passive else np.zeros(self.algebra.size)

    def _of_a_tree(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.algebra.forward_dynamics(q, v, self._tau(q, v))

    def _with_loops(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.algebra.constrained_forward_dynamics(q, v, self._tau(q, v))[0]

    def _turning(self, turn: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Rates of the tangents of free rotations: v - [turn, v]/2 + [turn, [turn, v]]/12, enough for order four."""
        if not len(self.balls):
            return v
        w, rates = turn[self.balls], v.copy()
        bent = np.cross(w, v[self.balls])
        rates[self.balls] += np.cross(w, bent) / 12.0 - 0.5 * bent
        return rates

    def step(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One step of ``dt``: Munthe-Kaas, stages in the tangent space at q."""
        ways: list[np.ndarray] = []
        gains: list[np.ndarray] = []
        for row in self.a:
            turn = self.dt * sum((c * way for c, way in zip(row, ways)), np.zeros_like(v))
            rate = v + self.dt * sum((c * gain for c, gain in zip(row, gains)), np.zeros_like(v))
            gains.append(self.accelerate(self.algebra.integrate(q, turn), rate))
            ways.append(self._turning(turn, rate))
        turn = sum((c * way for c, way in zip(self.b, ways)), np.zeros_like(v))
        return self.algebra.integrate(q, turn, self.dt), v + self.dt * sum((c * gain for c, gain in zip(self.b, gains)), np.zeros_like(v))

    def run(self, steps: int, every: int = 1, stop: Callable[[np.ndarray, np.ndarray], bool] = lambda q, v: not np.isfinite(v).all()) -> Motion:
        """``steps`` steps, of which each ``every``-th knot is kept; ends before that where ``stop`` says so."""
        q, v = self.start
        kept = [(0.0, q, v)]
        for k in range(1, steps + 1):
            q, v = self.step(q, v)
            if stop(q, v):
                break
            if k % every == 0:
                kept.append((k * self.dt, q, v))
        return Motion(self.algebra, *(np.array(column) for column in zip(*kept)))
