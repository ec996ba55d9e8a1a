"""A strand of point masses and springs that hangs on a pendulum: deformable and rigid bodies in one system."""
from __future__ import annotations

import numpy as np

import dalembert as da
from dalembert.studies.study import Report, study

FORMULATIONS = {"Variational": da.Variational, "Implicit": da.Implicit, "Reduced": da.Reduced}


@study("section 2.7", "a mass-spring strand on a rigid pendulum moves as one system: energy errors fall with the square of the step in every formulation")
def strand_energy(report: Report) -> None:
    duration, steps = (0.4, (0.002, 0.001)) if report.quick else (1.0, (0.002, 0.001, 0.0005, 0.00025))
    left, right = report.panels(1, 2, width=11.0, height=4.2)
    rows, orders, ends = [], [], []
    for name, formulation in report.each(FORMULATIONS.items()):
        worst = []
        for dt in steps:
            run = da.Simulation(da.zoo.strand_pendulum(), formulation(dt=dt), energy_bound=None).run(duration, progress=False)
            energy = run.energy().total
            worst.append(np.abs(energy - energy[0]).max())
            rows.append((name, dt, worst[-1], run.strand("tail").tension.max()))
        orders.append(np.log2(worst[-2] / worst[-1]))
        ends.append(run.strand("tail").points[-1])
        left.plot(run.time, energy - energy[0], label=name)
        right.loglog(steps, worst, "o-", label=name)
    report.page(run)
    left.set(xlabel="time / s", ylabel="change of energy / J")
    right.set(xlabel="step / s", ylabel="largest change of energy / J")
    report.table(("formulation", "step / s", "largest change of energy / J", "largest tension / N"), rows)
    apart = max(np.abs(end - ends[0]).max() for end in ends)
    report.verdict(min(orders) > 1.8 and apart < 0.01, f"orders {', '.join(f'{order:.2f}' for order in orders)}; at the smallest step the formulations differ by {apart:.1e} m")
