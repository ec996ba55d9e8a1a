"""A T-handle that flips in free flight: the energy that each method loses."""
from __future__ import annotations

import dalembert as da
from dalembert.studies.study import Report, study

METHODS = {"bdf1": "BDF1", "sdirk2": "SDIRK2", "bdf2": "BDF2", "pareschi_russo": "Pareschi-Russo"}


@study("figure 4", "BDF2 loses far less energy than BDF1 and SDIRK2, and Pareschi-Russo least after its start")
def t_handle_energy(report: Report) -> None:
    duration = 1.0 if report.quick else 10.0
    axis = report.axes("time / s", "energy lost / part of it")
    axis.set_yscale("log")
    lost, rows = {}, []
    for method, name in report.each(METHODS.items()):
        sim = da.Simulation(da.zoo.t_handle(), da.Implicit(dt=1e-3, method=method))
        sim.set_velocity("handle", angular=(0.1, 0.1, 15.0))
        run = sim.run(duration, progress=False)
        energy = run.energy().total
        loss = 1.0 - energy / energy[0]
        lost[method] = abs(loss[-1] - loss[100])
        rows.append((name, loss[-1], lost[method], run.constraint_violation().max()))
        axis.plot(run.time[1:], abs(loss[1:]), label=name)
        if method == "bdf2":
            report.page(run)
    report.table(("method", "energy lost", "of it after 0.1 s", "violation / m"), rows)
    report.verdict(
        lost["bdf1"] > lost["sdirk2"] > 10.0 * lost["bdf2"] > 10.0 * lost["pareschi_russo"],
        f"lost after 0.1 s: {', '.join(f'{name} {lost[method]:.1e}' for method, name in METHODS.items())}",
    )
