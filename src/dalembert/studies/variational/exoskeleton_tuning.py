"""An arm in an exoskeleton moves as wanted: gains that are too high for a spastic elbow, and gains that are not (Algorithm 8).

The paper tunes by hand; here the scale of all gains is halved in between until the torque just stays below its limit.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

import dalembert as da
from dalembert.studies.study import Report, study

PATIENTS = ("healthy", "spastic")
LIMIT = 5.0  # N m at the elbow


class Session(NamedTuple):
    """A run of the rehabilitation task: elbow torque (N m), largest error of the exoskeleton's elbow (rad), part of the wanted range that the arm's
    elbow goes through, and how well it goes along with what is wanted."""

    run: da.Trajectory
    torque: np.ndarray
    error: float
    reach: float
    correlation: float


def session(patient: str, scale: float, dt: float, duration: float) -> Session:
    """The task with a patient and scaled gains."""
    sim = da.Simulation(da.zoo.exoskeleton(patient=patient, scale=scale), da.Variational(dt=dt))
    for motor, torque in da.zoo.exoskeleton_tracking(scale=scale).items():
        sim.set_input(motor, torque)
    run = sim.run(duration, progress=False)
    wanted = np.array([da.zoo.exoskeleton_aims(float(time))[1] for time in run.time])
    motor, elbow = run.joint("elbow"), run.joint("arm elbow").coordinates
    return Session(run, motor.actuation, float(np.abs(motor.coordinates - wanted).max()), float(np.ptp(elbow) / np.ptp(wanted)), float(np.corrcoef(elbow, wanted)[0, 1]))


def tuned_scale(report: Report, dt: float, duration: float, rounds: int) -> float:
    """The largest scale of the gains at which the spastic elbow stays below the limit, by bisection."""
    low, high = 0.05, 1.0
    for _ in report.each(range(rounds), "round"):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.abs(session("spastic", middle, dt, duration).torque).max() < LIMIT else (low, middle)
    return low


@study("figure 14", "gains that suit a healthy arm exceed the elbow's torque limit with a spastic one; tuned in simulation, both stay below it and the motion is kept")
def exoskeleton_tuning(report: Report) -> None:
    dt, duration, rounds = (0.01, 2.0 * np.pi, 5) if report.quick else (0.002, 4.0 * np.pi, 8)
    scale = tuned_scale(report, dt, duration, rounds)
    rows, peaks, kept = [], {}, True
    for axis, (gains, title) in zip(report.panels(1, 2, width=10.0), ((1.0, "original gains"), (scale, f"gains scaled by {scale:.2f}"))):
        for patient in PATIENTS:
            found = session(patient, gains, dt, duration)
            peaks[patient, title] = float(np.abs(found.torque).max())
            axis.plot(found.run.time, found.torque, label=patient)
            rows.append((patient, gains, peaks[patient, title], LIMIT, found.error, found.reach, found.correlation, found.run.constraint_violation().max()))
            kept &= found.correlation > 0.95 and found.reach > 0.6
            if patient == "spastic" and gains == scale:
                report.page(found.run)
        for side in (-LIMIT, LIMIT):
            axis.axhline(side, color="0.5", linestyle="--")
        axis.set(xlabel=f"time / s, {title}", ylabel="elbow torque / N m")
    report.table(("patient", "scale", "largest torque / N m", "limit / N m", "error of the elbow / rad", "part of the range", "correlation", "violation / m"), rows)
    healthy, spastic, healthy_tuned, spastic_tuned = peaks.values()
    report.verdict(
        healthy < LIMIT < spastic and max(healthy_tuned, spastic_tuned) < LIMIT and bool(kept),
        f"healthy {healthy:.2f} N m and spastic {spastic:.2f} N m; with gains scaled by {scale:.2f} {healthy_tuned:.2f} and {spastic_tuned:.2f} N m, "
        f"the spastic elbow still goes through {rows[3][5]:.0%} of its range with a correlation of {rows[3][6]:.3f}",
    )
