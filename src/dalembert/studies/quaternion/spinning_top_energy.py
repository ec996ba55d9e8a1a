"""A top on its tip: the pattern that it draws, the energy that each method loses, and whether the tip stays where it is."""
from __future__ import annotations

import dalembert as da
from dalembert.studies.study import Report, study

METHODS = {"bdf1": "BDF1", "sdirk2": "SDIRK2", "bdf2": "BDF2", "pareschi_russo": "Pareschi-Russo", "semi_implicit": "semi-implicit"}
CLOSED = ("bdf1", "sdirk2", "bdf2")


@study("figure 5", "BDF2 loses little energy and keeps the tip; Pareschi-Russo loses less but, like semi-implicit Euler, opens the joint")
def spinning_top_energy(report: Report) -> None:
    dt, duration = (1e-3, 1.0) if report.quick else (1e-4, 10.0)
    trace, energy, gap = report.panels(1, 3, width=13.0, height=4.0)
    lost, opened, rows = {}, {}, []
    for method, name in report.each(METHODS.items()):
        run = da.Simulation(da.zoo.spinning_top(), da.Implicit(dt=dt, method=method)).run(duration, progress=False)
        total, violation = run.energy().total, run.constraint_violation()
        lost[method], opened[method] = abs(total[-1] / total[0] - 1.0), violation.max()
        rows.append((name, 1.0 - total[-1] / total[0], opened[method]))
        every = slice(1, None, 10)
        energy.semilogy(run.time[every], abs(total[every] / total[0] - 1.0))
        gap.semilogy(run.time[every], violation[every].clip(1e-18), label=name)
        if method == "bdf2":
            place = run.body("top").position
            trace.plot(place[every, 0], place[every, 1], linewidth=0.8, color=energy.lines[-1].get_color())
            report.page(run)
    trace.set(xlabel="x / m", ylabel="y / m", aspect="equal")
    energy.set(xlabel="time / s", ylabel="relative change of energy")
    gap.set(xlabel="time / s", ylabel="gap at the tip / m")
    report.table(("method", "energy lost", "gap / m"), rows)
    report.verdict(
        lost["bdf1"] > lost["sdirk2"] > lost["bdf2"] > lost["pareschi_russo"]
        and all(opened[method] < 1e-10 for method in CLOSED) and min(opened["pareschi_russo"], opened["semi_implicit"]) > 1e-10,
        f"energy lost by BDF2 {lost['bdf2']:.1e}, by Pareschi-Russo {lost['pareschi_russo']:.1e}; gaps {opened['bdf2']:.0e} m and {opened['pareschi_russo']:.0e} m",
    )
