"""The upper body of a character alone, its pelvis led as in a run of the whole: the same torques, and new gestures at a part of the cost."""
from __future__ import annotations

import time as clock

import numpy as np

import dalembert as da
from dalembert.studies.study import Report, study
from dalembert.zoo.character import GESTURES

DT = 0.01


def perform(gestures, duration: float, led_by: da.Trajectory | None = None) -> tuple[da.Trajectory, float]:
    """A run of the whole character, or of its upper body led by such a run, and its processor time."""
    sim = da.Simulation(da.zoo.character(legs=led_by is None), da.Implicit(dt=DT))
    if led_by is not None:
        sim.follow("lead", led_by, "pelvis")
    for name, target in da.zoo.character_motion(gestures=gestures).items():
        if name in sim.mechanism:
            sim.set_target(name, target)
    tick = clock.thread_time()
    return sim.run(duration, progress=False), clock.thread_time() - tick


@study("section 8, upper body", "the upper body alone, led by a full simulation, has the torques of the whole, also after its gestures are changed")
def upper_body(report: Report) -> None:
    duration = 1.0 if report.quick else 4.0
    edited = GESTURES | {name: GESTURES[name]._replace(amplitude=1.5 * GESTURES[name].amplitude, period=0.5 * GESTURES[name].period) for name in GESTURES if "right" in name}
    whole = perform(GESTURES, duration)[0]
    rows, differences, ratio = [], [], 0.0
    axis = report.axes("time / s", "torque of the right shoulder pitch / N m")
    for what, gestures in (("as it was", GESTURES), ("edited", edited)):
        (full, slow), (alone, quick) = perform(gestures, duration), perform(gestures, duration, whole)
        torques = np.array([[run.joint(name).actuation for name in GESTURES] for run in (full, alone)])
        most, apart = np.abs(torques).max(), np.abs(torques[0] - torques[1])[:, 2:].max()
        differences.append(apart / most)
        ratio = slow / quick
        rows.append((what, most, apart, 1e3 * slow, 1e3 * quick, ratio))
        k = list(GESTURES).index("right shoulder pitch")
        axis.plot(full.time, torques[0, k], linewidth=3.0, alpha=0.4, label=f"{what}, whole")
        axis.plot(full.time, torques[1, k], "--", label=f"{what}, upper body")
    report.page(alone)
    report.table(("gestures", "largest torque / N m", "difference / N m", "whole / ms", "upper body / ms", "ratio"), rows)
    report.verdict(max(differences) < 1e-3, f"torques differ by {max(differences):.1e} of the largest; the whole takes {ratio:.1f} times as long")
