"""A double pendulum for an hour: the energy of the variational integrator has no trend, Heun's method gains more and more."""
from __future__ import annotations

import numpy as np

import dalembert as da
from dalembert.studies.baselines import double_pendulum
from dalembert.studies.study import Report, study

DT, MINUTE, EVERY = 0.01, 60.0, 20


@study("figure 4a", "over an hour the energy of a double pendulum stays as it is, that of Heun's method grows")
def hour_of_energy(report: Report) -> None:
    minutes = 5 if report.quick else 60
    sim = da.Simulation(da.zoo.double_pendulum(), da.Variational(dt=DT))
    parts = []
    for _ in report.each(range(minutes), "minute"):
        parts.append(sim.run(MINUTE, progress=False).energy().total)
    energies = {"variational": np.concatenate([parts[0][:1], *(part[1:] for part in parts)])[::EVERY]}
    energies["Heun"] = double_pendulum.energy(double_pendulum.heun(round(minutes * MINUTE / DT), DT, EVERY))
    time = np.arange(len(energies["Heun"])) * EVERY * DT / MINUTE
    axis = report.axes("time / min", "energy error / J")
    rows = []
    for method, energy in energies.items():
        error = energy - energies["variational"][0]
        tenth = len(error) // 10
        rows.append((method, np.abs(error).max(), error[:tenth].mean(), error[-tenth:].mean(), np.polyfit(time, error, 1)[0]))
        axis.plot(time, error, label=method)
    axis.set_yscale("symlog", linthresh=0.1)
    report.table(("method", "largest error / J", "mean of the first tenth / J", "of the last / J", "trend / J per minute"), rows)
    (_, largest, first, last, trend), (_, _, _, gained, growing) = rows
    report.verdict(
        largest < 0.3 and abs(last - first) < 0.1 * largest and abs(trend) * minutes < 0.1 * largest and growing * minutes > max(largest, 10.0 * abs(trend) * minutes),
        f"over {minutes} min errors up to {largest:.2g} J with a trend of {trend:.0e} J/min; Heun ends at {gained:.2g} J, {growing:.2g} J/min",
    )
