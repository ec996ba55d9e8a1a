"""A tendon over many points bends a finger against springs in its joints, until tension and springs balance."""
from __future__ import annotations

import numpy as np

import dalembert as da
from dalembert.studies.study import Report, study

FORMULATIONS = {"Variational": da.Variational, "Implicit": da.Implicit, "Reduced": da.Reduced}
STIFFNESS, LEVER, GAP = 0.02, 0.008, 0.004  # N m/rad; m below the joints' axes; m from an axis to the guides beside it


def torque(tension: float, angle: float) -> float:
    """Of the tendon about a joint, in closed form: between two guides, one on each side of the axis."""
    radius, opening = np.hypot(GAP, LEVER), np.pi - 2.0 * np.arctan(LEVER / GAP)
    return tension * radius * np.cos(0.5 * (opening - angle))


@study("section 1.9.10", "a cable routed over several bodies only pulls, and comes to rest where its tension balances the springs of the joints")
def cable_tension(report: Report) -> None:
    pulls = (0.006,) if report.quick else (-0.002, 0.002, 0.004, 0.006, 0.008)
    axis, rows, missed, least = report.axes("time / s", "tension / N"), [], [], 0.0
    for pull in report.each(pulls):
        for name, formulation in FORMULATIONS.items():
            finger = da.zoo.cable_finger(stiffness=STIFFNESS, lever=LEVER, pull=pull, damping=2e-3)
            run = da.Simulation(finger, formulation(dt=0.0025 if report.quick else 0.001)).run(3.0, progress=False)
            tension = run.path("tendon").tension
            angles = [run.joint(joint).coordinates[-1] for joint in ("knuckle", "middle", "end")]
            miss = max(abs(STIFFNESS * angle - torque(tension[-1], angle)) for angle in angles) / (STIFFNESS * max(*angles, 1e-3))
            rows.append((1e3 * pull, name, tension[-1], *np.degrees(angles), miss))
            missed.append(miss)
            least = min(least, tension.min())
            if name == "Reduced":
                axis.semilogy(run.time[1:], tension[1:].clip(1e-2), label=f"pulled in by {1e3 * pull:g} mm")
                report.page(run)
    report.table(("pulled in / mm", "formulation", "tension / N", "knuckle / degrees", "middle", "end", "imbalance, relative"), rows)
    slack = all(row[2] == 0.0 for row in rows if row[0] < 0.0)
    report.verdict(max(missed) < 1e-6 and least >= 0.0 and slack, f"imbalance {max(missed):.0e}, least tension {least:g} N")
