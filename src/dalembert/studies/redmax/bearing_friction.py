"""A door on one long hinge whose friction follows from the load that the hinge carries, against the closed form."""
from __future__ import annotations

import numpy as np

import dalembert as da
from dalembert.studies.study import Report, study

FORMULATIONS = {"Variational": da.Variational, "Implicit": da.Implicit, "Reduced": da.Reduced}
WEIGHT, WIDTH, RATE = 30.0 * 9.81, 0.9, 0.2  # N, m, rad/s of da.zoo.rubbing_door
#: of its bearing: friction (radius of the hinge on the tilting moment / its length + radius of the collar on the weight)
TORQUE = 0.2 * (2.0 * 0.01 * WEIGHT * 0.5 * WIDTH / 1.5 + 0.008 * WEIGHT)
INERTIA = 30.0 * (WIDTH**2 + 0.04**2) / 12.0 + 30.0 * (0.5 * WIDTH) ** 2


@study("section 2.11", "friction in proportion to the load of a joint brings a door to rest where the closed form does, and it stays there")
def bearing_friction(report: Report) -> None:
    steps = (0.01,) if report.quick else (0.02, 0.01, 0.005, 0.0025)
    stop = RATE * INERTIA / TORQUE
    time = np.linspace(0.0, 1.25 * stop, 200)
    axis = report.axes("time / s", "rate of the door / rad/s")
    axis.plot(time, np.maximum(RATE - TORQUE / INERTIA * time, 0.0), color="#999999", linewidth=4.0, alpha=0.5, label="closed form")
    rows, missed, creep = [], [], []
    for name, formulation in report.each(FORMULATIONS.items()):
        for dt in steps:
            run = da.Simulation(da.zoo.rubbing_door(), formulation(dt=dt)).run(1.25 * stop, progress=False)
            hinge = run.joint("hinge")
            miss, late = hinge.coordinates[-1] - 0.5 * RATE * stop, np.abs(hinge.rates[run.time > stop + 0.05]).max()
            rows.append((name, dt, hinge.coordinates[-1], 0.5 * RATE * stop, miss, late))
            missed.append(abs(miss))
            creep.append(late)
        axis.plot(run.time, hinge.rates, "--", label=name)
    report.page(run)
    report.table(("formulation", "step / s", "angle at rest / rad", "closed form / rad", "difference", "rate afterwards / rad/s"), rows)
    bound = 0.5 * RATE * max(steps)  # half a step at the first rate
    report.verdict(max(missed) < bound and max(creep) < 1e-6, f"stops within {max(missed):.0e} rad of {0.5 * RATE * stop:.4f} rad, then creeps by less than {max(creep):.0e} rad/s")
