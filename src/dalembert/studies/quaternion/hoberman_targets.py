"""Throws of a Hoberman sphere that end in given poses at a given time, found by BFGS with gradients by the adjoint."""
from __future__ import annotations

import numpy as np
from scipy.optimize import OptimizeResult, minimize

import dalembert as da
from dalembert.studies.study import Report, study

SIZE = 0.9  # m, the sphere's diameter at its start
UNKNOWN = ["throw.start_rate", "outer 0.start", "outer 0.start_rate"]
#: throws that reach the targets, which the optimiser does not know: velocity (m/s), spin (rad/s), opening (rad) and its rate
THROWS = {
    "far": (2.0, 0.5, 2.5, 0.0, 1.0, 0.5, 0.10, 0.4),
    "spinning": (1.0, 0.0, 3.0, 0.5, -1.0, 2.0, -0.05, -0.5),
    "closing": (-0.5, 1.5, 2.6, 0.6, 0.3, -1.0, 0.20, 1.0),
}
#: how curved the objective is along each of the unknowns after half a second, roughly
CURVATURE = np.array([0.5] * 3 + [0.125] * 3 + [1.0, 1.0])


class Throw:
    """The mean square of the rods' distances from where they shall be, as a function of the throw."""

    def __init__(self, dt: float, duration: float) -> None:
        sphere = da.zoo.hoberman_sphere(opening=0.9, gravity=(0, 0, -9.81))
        sphere.joint("throw", da.Free(), sphere.world, "rod 0", at=(0, 0, 0))  # holds nothing: its rates are those of the sphere
        self.target = np.zeros((240, 3))
        self.method = da.Variational(dt=dt, tolerance=1e-12)
        self.objective = da.value_and_gradient(sphere, self.method, duration, UNKNOWN, self.loss, setup=lambda sim: sim.set_joint("throw", np.zeros(6)))

    def loss(self, run: da.Trajectory):
        """Its value, and its derivative by positions."""
        miss = run.position[-1] - self.target
        weights = np.zeros_like(run.position)
        weights[-1] = 2.0 * miss / len(miss)
        return np.mean(np.sum(miss**2, axis=1)), {"position": weights}

    def find(self, goal: float, iterations: int) -> tuple[np.ndarray, list[float]]:
        """The throw, and the objective by iteration until the mean square distance is below ``goal`` (m^2)."""
        history = [self.loss(self.objective.run(self.objective.x0))[0]]

        def watch(intermediate_result: OptimizeResult) -> None:
            history.append(intermediate_result.fun)
            if history[-1] < goal:
                raise StopIteration

        found = minimize(self.objective, self.objective.x0, jac=True, method="BFGS", callback=watch, options={"maxiter": iterations, "hess_inv0": np.diag(1.0 / CURVATURE)})
        return found.x, history


@study("figure 13", "with gradients of the simulation a few iterations of BFGS find throws of a Hoberman sphere that meet target poses")
def hoberman_targets(report: Report) -> None:
    throw = Throw(0.2, 0.4) if report.quick else Throw(0.05, 0.5)
    goal, most = ((2e-2 * SIZE) ** 2, 15) if report.quick else ((2e-4 * SIZE) ** 2, 30)
    axis, rows, misses, counts = report.axes("iteration", "objective / m$^2$"), [], [], []
    for name in report.each(list(THROWS)[: 1 if report.quick else None], "target"):
        throw.target = throw.objective.run(np.array(THROWS[name])).position[-1]
        found, history = throw.find(goal, most)
        run = throw.objective.run(found)
        misses.append(np.linalg.norm(run.position[-1] - throw.target, axis=1).max() / SIZE)
        counts.append(len(history) - 1)
        rows.append((name, counts[-1], history[0], history[-1], misses[-1]))
        axis.semilogy(history, "o-", markersize=3, label=name)
    report.page(run)
    report.table(("target", "iterations", "objective at first / m^2", "in the end / m^2", "farthest rod, part of the size"), rows)
    report.verdict(max(row[3] for row in rows) < goal and max(counts) <= most, f"{max(counts)} iterations at the most; the farthest rod is {max(misses):.1e} of the sphere's size from its place")
