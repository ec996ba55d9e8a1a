"""A pendulum that turns far within a step, hinged and flying free: gaps and errors of the angle after one and ten steps."""
from __future__ import annotations

import numpy as np

import dalembert as da
from dalembert.studies.study import Report, study
from dalembert.view.plots import COLOURS

DT = 0.01
#: label: options, and how it is drawn
METHODS = {
    "BDF2": (dict(), "-"),
    "semi-implicit": (dict(method="semi_implicit", stabilization=0.0), "--"),
    "semi-implicit, stabilised": (dict(method="semi_implicit", stabilization=1.0), ":"),
}


def turned(degrees: float, pinned: bool, **options) -> tuple[np.ndarray, np.ndarray]:
    """Gap (m) and error of the angle (degrees) at ten knots of a pendulum that turns by so much in each step."""
    rate = np.radians(degrees) / DT
    run = da.Simulation(da.zoo.fast_pendulum(rate, pinned=pinned), da.Implicit(dt=DT, **options), energy_bound=None).run(10 * DT, progress=False)
    angle = 2.0 * np.arctan2(run.orientation[:, 0, 2], run.orientation[:, 0, 0])
    error = np.remainder(angle - rate * run.time + np.pi, 2.0 * np.pi) - np.pi
    return run.constraint_violation(), np.degrees(np.abs(error))


@study("figure 6", "the joint of a fast pendulum stays closed however far a step turns, where semi-implicit steps open it")
def fast_pendulum_steps(report: Report) -> None:
    angles = np.array([1.0, 10.0, 30.0, 90.0]) if report.quick else np.array([0.5, 1, 2, 5, 10, 15, 20, 30, 45, 60, 75, 90.0])
    gap, error, free = report.panels(1, 3, width=13.0, height=4.0)
    found, rows = {}, []
    for colour, (label, (options, style)) in zip(COLOURS, report.each(METHODS.items())):
        pinned, flying = (np.array([turned(angle, on, **options) for angle in angles]) for on in (True, False))
        found[label] = pinned, flying
        for knot, width in ((1, 1.0), (10, 2.0)):
            for axis, values in ((gap, pinned[:, 0]), (error, pinned[:, 1]), (free, flying[:, 1])):
                axis.loglog(angles, values[:, knot].clip(1e-17), style, color=colour, linewidth=width, label=f"{label}, {knot} step{'s' * (knot > 1)}" if axis is free else None)
        rows += [(label, angle, *p[0, [1, 10]], *p[1, [1, 10]], f[1, 10]) for angle, p, f in zip(angles, pinned, flying)]
    for axis, name in ((gap, "gap / m"), (error, "error of the angle / degrees"), (free, "the same, no joint / degrees")):
        axis.set(xlabel="turn in a step / degrees", ylabel=name)
    report.table(("method", "turn / degrees", "gap / m, 1 step", "10 steps", "error / degrees, 1 step", "10 steps", "no joint, 10 steps"), rows)
    ours, plain, stable = (found[label][0] for label in METHODS)
    slow = angles <= 30.0  # where an angle has not yet gone round
    held = ours[:, 0].max() < 1e-10 and all((p[:, 0, 1:].min() > 1e-6) and np.all(p[:, 1, 1] < 1e-9) for p in (plain, stable))
    held &= bool(np.all(plain[slow, 1, 10] > ours[slow, 1, 10])) and found["semi-implicit"][1][:, 1].max() < 1e-9
    report.verdict(held, f"largest gap {ours[:, 0].max():.0e} m, of semi-implicit steps at least {min(p[:, 0, 1:].max(axis=1).min() for p in (plain, stable)):.0e} m")
