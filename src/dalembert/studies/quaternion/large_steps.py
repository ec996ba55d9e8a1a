"""The dance of a character at two step sizes, with the semi-implicit scheme and with the implicit one: how far its joints open."""
from __future__ import annotations

import dalembert as da
from dalembert.studies.study import Report, study
from dalembert.view.plots import COLOURS
from dalembert.zoo.drives import DriveMotion

MOMENT = 4.7  # s, that of the paper's picture
STABILISATIONS = (0.0, 0.2, 1.0)


def lively() -> DriveMotion:
    """A faster and larger dance than the usual one."""
    return da.zoo.character_motion(lambda t: da.zoo.dance(t, size=1.5, period=1.0))


def follow(mechanism: da.Mechanism, motion: DriveMotion, formulation: da.Implicit, duration: float) -> da.Trajectory:
    """A run whose drives follow a motion."""
    sim = da.Simulation(mechanism, formulation, energy_bound=None)
    for name, target in motion.items():
        sim.set_target(name, target)
    return sim.run(duration, progress=False)


@study("figure 11", "at steps of 0.1 s the implicit scheme keeps the joints closed to its tolerance; the semi-implicit one opens them visibly, the more the longer the step")
def large_steps(report: Report) -> None:
    duration = 1.5 if report.quick else 9.82
    character, motion = da.zoo.character(), lively()
    cases = {(dt, alpha): da.Implicit(dt=dt, method="semi_implicit", stabilization=alpha) for dt in (0.1, 0.01) for alpha in STABILISATIONS}
    cases |= {(dt, None): da.Implicit(dt=dt) for dt in (0.1, 0.01)}
    axis, worst, rows = report.axes("time / s", "largest violation / m or rad"), {}, []
    for (dt, alpha), formulation in report.each(cases.items()):
        run = follow(character, motion, formulation, duration)
        violation = run.constraint_violation()
        worst[dt, alpha] = violation.max()
        name = "implicit (BDF2)" if alpha is None else f"semi-implicit, {alpha:g}"
        rows.append((name, dt, worst[dt, alpha]))
        colour = COLOURS[3 if alpha is None else STABILISATIONS.index(alpha)]
        axis.semilogy(run.time[1:], violation[1:].clip(1e-17), "-" if dt == 0.1 else ":", color=colour, label=f"{name}, {dt:g} s")
        if (dt, alpha) in ((0.1, 1.0), (0.1, None)):
            report.picture(run, "implicit" if alpha is None else "semi_implicit", time=min(MOMENT, duration))
        if (dt, alpha) == (0.01, None):
            report.page(run)
    report.table(("scheme, stabilisation", "step / s", "largest violation / m or rad"), rows)
    implicit = max(worst[dt, None] for dt in (0.1, 0.01))
    ratios = [worst[0.1, a] / worst[0.01, a] for a in STABILISATIONS]
    report.verdict(
        implicit < 1e-10 and min(worst[0.1, a] for a in STABILISATIONS) > 0.01 and min(ratios) > 3.0,
        f"implicit {implicit:.0e}; semi-implicit at 0.1 s {min(worst[0.1, a] for a in STABILISATIONS):.2g} to {max(worst[0.1, a] for a in STABILISATIONS):.2g} m or rad, "
        f"{min(ratios):.0f} to {max(ratios):.0f} times less at 0.01 s",
    )
