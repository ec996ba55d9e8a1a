"""Pendulums of three scales over a half swing, for steps over three orders of magnitude: iterations and the final angle."""
from __future__ import annotations

import numpy as np
from scipy.special import ellipk

import dalembert as da
from dalembert.studies.study import Report, study
from dalembert.zoo.links import slender_rod_between

SCALES = {1.0: "-", 0.5: "--", 0.1: ":"}


def scaled_pendulum(scale: float) -> tuple[da.Mechanism, float]:
    """A slender rod of mass s and length s^2, horizontal, and the seconds of its half swing from there (not those of a small one)."""
    length = scale**2
    pendulum = da.Mechanism(f"pendulum of scale {scale:g}")
    rod = slender_rod_between(pendulum, "rod", (0, 0, 0), (length, 0, 0), mass=scale)
    pendulum.joint("hinge", da.Revolute(axis="y"), pendulum.world, rod)
    return pendulum, 2.0 * float(ellipk(0.5)) * np.sqrt(2.0 * length / (3.0 * 9.81))


@study("figure 11", "pendulums of all scales are simulated over the whole range of steps, more accurately as the step falls")
def scaled_pendulums(report: Report) -> None:
    counts = (20, 100, 1000) if report.quick else (20, 50, 100, 300, 1000, 3000, 10_000, 30_000)
    left, right = report.panels(1, 2, width=9.0)
    rows, held = [], True
    for scale, line in report.each(SCALES.items()):
        pendulum, half = scaled_pendulum(scale)
        found = []
        for count in counts:
            run = da.Simulation(pendulum, da.Variational(dt=half / count)).run(half, progress=False)
            error = abs(float(run.joint("hinge").coordinates[-1]) - np.pi)  # the horizontal on the other side
            found.append((scale, half / count / scale, run.iterations[1:].mean(), error, int(run.substeps[1:].max())))
        rows += found
        steps, iterations, errors = (np.array([row[k] for row in found]) for k in (1, 2, 3))
        left.semilogx(steps, iterations, line, label=f"s = {scale:g}")
        right.loglog(steps, errors, line, label=f"s = {scale:g}")
        best = int(np.argmin(errors))
        held &= bool(errors[best] < 1e-5 and np.all(errors[best:] < 1e-6 + 30.0 * errors[best]) and all(row[4] == 1 for row in found))
    left.set(xlabel="step / s, divided by s", ylabel="mean number of iterations")
    right.set(xlabel="step / s, divided by s", ylabel="error of the final angle / rad")
    report.table(("scale", "step by scale / s", "iterations", "error / rad", "substeps"), rows)
    errors = [row[3] for row in rows if row[1] == min(r[1] for r in rows if r[0] == row[0])]
    report.verdict(
        held, f"largest error at the smallest step {max(errors):.1e} rad; {min(r[2] for r in rows):.1f} to {max(r[2] for r in rows):.1f} iterations, no step divided"
    )
