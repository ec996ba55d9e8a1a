"""Three links in a loop: gaps of joints at position level against those of a loop that is closed by accelerations alone."""
from __future__ import annotations

import dalembert as da
from dalembert.studies.baselines.runge_kutta import RungeKutta
from dalembert.studies.study import Report, study

DT = 0.01


@study("figure 7a", "the joints of the variational integrator do not drift, a loop closed by accelerations in Runge-Kutta of order four does")
def constraint_drift(report: Report) -> None:
    compare_drift(report, 5.0 if report.quick else 60.0)


def compare_drift(report: Report, duration: float) -> None:
    """Both integrators on the loop of three links for so many seconds."""
    linkage = da.zoo.three_link_loop()
    run = da.Simulation(linkage, da.Variational(dt=DT)).run(duration, progress=False)
    report.page(run)
    report.say("and the same with Runge-Kutta ...")
    other = RungeKutta(linkage, "rk4", DT).run(round(duration / DT))
    gaps = {"variational": (run.time, run.constraint_violation()), "Runge-Kutta 4": (other.time, other.opening())}
    axis = report.axes("time / s", "constraint violation / m or rad")
    axis.set_yscale("log")
    axis.set_ylim(1e-16, 1.0)
    rows = []
    for method, (time, gap) in gaps.items():
        axis.plot(time[1:], gap[1:].clip(1e-16), label=method)
        rows.append((method, gap[: len(gap) // 10].max(), gap[len(gap) // 2 :].max()))
    report.table(("method", "gap in the first tenth", "gap in the second half"), rows)
    (_, ours_first, ours), (_, first, theirs) = rows
    report.verdict(
        max(ours, ours_first) < 1e-9 and theirs > 3.0 * first and theirs > 1e3 * ours,
        f"after {duration:g} s {ours:.1e}, Runge-Kutta {theirs:.1e}, {theirs / first:.0f} times its gap of the first tenth",
    )
