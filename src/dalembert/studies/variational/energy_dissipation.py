"""A damped pendulum with large steps: what is lost, against the exact motion and Euler's method."""
from __future__ import annotations

import warnings

import numpy as np

import dalembert as da
from dalembert.errors import TurnWarning
from dalembert.studies.baselines.runge_kutta import RungeKutta
from dalembert.studies.study import Report, study

DT = 0.1


@study("figure 7c", "the variational integrator dissipates as the damper does, explicit Euler far too little")
def energy_dissipation(report: Report) -> None:
    duration = 5.0 if report.quick else 20.0
    pendulum = da.zoo.pendulum()
    pendulum.change("joint 1", damping=0.5)
    exact = da.Simulation(pendulum, da.Reduced(dt=DT, method="DOP853")).run(duration, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TurnWarning)  # large steps are what it is about
        run = da.Simulation(pendulum, da.Variational(dt=DT)).run(duration, progress=False)
    other = RungeKutta(pendulum, "euler", DT).run(round(duration / DT))
    report.page(run)
    energies = {"exact": exact.energy().total, "variational": run.energy().total, "Euler": other.energy()}
    bottom = -0.5 * 9.81  # J, hanging at rest
    axis = report.axes("time / s", "energy / J")
    errors, rows = {}, []
    for method, energy in energies.items():
        axis.plot(exact.time[: len(energy)], energy, label=method, **({"color": "0.6", "linewidth": 4} if method == "exact" else {}))
        errors[method] = np.abs(energy - energies["exact"][: len(energy)])
        rows.append((method, errors[method].max(), errors[method].mean(), energy[-1] - bottom))
    report.table(("method", "largest error / J", "mean error / J", "left at the end / J"), rows)
    report.verdict(
        errors["variational"].max() < 0.1 * errors["Euler"].max() and rows[1][3] < 1.5 * rows[0][3] + 0.02,
        f"error at most {errors['variational'].max():.2g} J, Euler {errors['Euler'].max():.2g} J; after {duration:g} s {rows[1][3]:.2g} J are left of {rows[0][3]:.2g} J, with Euler {rows[2][3]:.2g} J",
    )
