"""A trotting quadruped: the distance of each foot from the ground, from the poses of the calves, over stance and swing."""
from __future__ import annotations

import dalembert as da
from dalembert.studies.study import Report, study
from dalembert.zoo.quadruped import FOOT, LEGS, SEGMENT, WALKING

PAPER = 1.5e-9  # m, the least distance of all feet


@study("figure 8", "no foot of a walking quadruped enters the ground")
def quadruped_feet(report: Report) -> None:
    dt, duration = (0.005, 1.0) if report.quick else (0.001, 5.0)
    sim = da.Simulation(da.zoo.quadruped(gait=WALKING), da.Variational(dt=dt))
    run = sim.run(duration, control=da.zoo.leg_controller(), progress=False if report.quiet else None)
    axis, rows, least, swing = report.axes("time / s", "distance of the foot from the ground / m"), [], [], []
    for leg in LEGS:
        distance = run.point(f"{leg} calf", (0.0, 0.0, 0.12 - SEGMENT))[:, 2] - FOOT
        least.append(distance.min())
        swing.append(distance.max())
        rows.append((leg, distance.min(), distance.max(), float((distance < 1e-6).mean())))
        axis.plot(run.time, distance, linewidth=2.0 if leg == "front right" else 0.8, label=leg)
    walked = run.body("trunk").position[-1, 0]
    report.page(run)
    report.table(("foot", "least distance / m", "largest / m", "part of the time on the ground"), rows)
    report.verdict(min(least) > -1e-9 and min(swing) > 0.005 and walked > 0.2, f"least distance {min(least):.1e} m (paper: {PAPER:.1e} m), swings up to {max(swing):.3f} m; it walked {walked:.2f} m")
