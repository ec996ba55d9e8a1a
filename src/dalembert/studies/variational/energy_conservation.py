"""The energy of a double pendulum without friction: bounded in the variational integrator, growing in Heun's method."""
from __future__ import annotations

import numpy as np

import dalembert as da
from dalembert.studies.baselines import double_pendulum
from dalembert.studies.study import Report, study

DT = 0.01


@study("figure 7b", "the energy error of the variational integrator stays bounded, Heun's method puts energy in")
def energy_conservation(report: Report) -> None:
    duration = 200.0 if report.quick else 1000.0
    pendulum = da.zoo.double_pendulum()
    run = da.Simulation(pendulum, da.Variational(dt=DT)).run(duration, progress=False)
    report.page(run)
    other = double_pendulum.energy(double_pendulum.heun(len(run) - 1, DT))
    swing = 2.0 * 9.81 * 2.0  # J between hanging and upright
    axis = report.axes("time / s", "energy error / J")
    trends, rows = {}, []
    for method, time, energy in (("variational", run.time, run.energy().total), ("Heun", run.time, other)):
        error = energy - energy[0]
        first, last = (np.abs(part).max() for part in np.array_split(error, 2))
        trends[method] = np.polyfit(time, error, 1)[0] * duration
        axis.plot(time, error, label=method)
        rows.append((method, first, last, trends[method], last / swing))
    axis.set_yscale("symlog", linthresh=0.1)
    report.table(("method", "largest error, first half / J", "second half / J", "trend over the run / J", "part of the pendulum's energy"), rows)
    (_, first, last, *_), (_, _, theirs, *_) = rows
    report.verdict(
        last < 2.0 * first and abs(trends["variational"]) < 0.5 * first and trends["Heun"] > max(10.0 * abs(trends["variational"]), 0.5 * first),
        f"over {duration:g} s at most {max(first, last):.2g} J with a trend of {trends['variational']:.1e} J, Heun {theirs:.2g} J with one of {trends['Heun']:.2g} J",
    )
