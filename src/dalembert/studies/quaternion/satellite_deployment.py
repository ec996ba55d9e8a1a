"""A satellite in free flight unfolds its solar wing by seven drives that share one freedom."""
from __future__ import annotations

import numpy as np

import dalembert as da
from dalembert.studies.study import Report, study

DT, MOMENTS = 0.033, (0.0, 0.4, 0.55, 1.0)  # s; parts of the deployment in the pictures


@study("figure 8", "an overactuated mechanism with passive freedoms is simulated as any other: the drives are followed, loops stay closed, momentum is kept")
def satellite_deployment(report: Report) -> None:
    duration = (60 if report.quick else 303) * DT
    satellite, motion = da.zoo.solar_panel_satellite(), da.zoo.deployment(duration=duration)
    sim = da.Simulation(satellite, da.Implicit(dt=DT))
    found = sim.redundancy()
    for joint, target in motion.items():
        sim.set_target(joint, target)
    run = sim.run(duration, progress=False)
    uniform, spared = run.least_norm(), run.least_norm(drive_weight=1e5)
    momentum = run.momentum()
    size = max(1.0, np.linalg.norm(np.array([b.mass for b in satellite.bodies])[:, None] * run.velocity, axis=2).sum(axis=1).max())
    drift = max(np.abs(momentum.linear).max(), np.abs(momentum.angular - momentum.angular[0]).max()) / size
    missed = max(abs(run.joint(joint).coordinates[-1] - target(run.time[-1])) for joint, target in motion.items())
    turned = np.degrees(2.0 * np.arccos(np.clip(np.abs(run.body("bus").orientation[:, 0]), 0.0, 1.0)))
    axis, bus = report.panels(1, 2, width=11.0, height=4.2)
    rows = []
    for joint in motion:
        rows.append((joint, *(np.sqrt(np.mean(forces[joint].actuation ** 2)) for forces in (uniform, spared))))
        axis.plot(run.time, spared[joint].actuation, label=joint)
    axis.set(xlabel="time / s", ylabel="torque, motors spared / N m")
    bus.plot(run.time, turned)
    bus.set(xlabel="time / s", ylabel="turn of the bus / degrees")
    report.page(run)
    for k, part in enumerate(MOMENTS[1:2] if report.quick else MOMENTS):
        report.picture(run, f"at_{k}", time=part * duration, azimuth=-70, elevation=20)
    report.table(("drive", "torque, all forces alike / N m", "torque, motors spared / N m"), rows)
    violation = run.constraint_violation().max()
    report.verdict(
        found.driven_rows == 7 and found.driven_rank == 1 and found.freedom == 6 and missed < 1e-9 and violation < 1e-9 and drift < 1e-2,
        f"{found.driven_rows} drives for {found.driven_rank} freedom and {found.freedom} passive ones; drives missed by {missed:.0e} rad, loops open by {violation:.0e}, momentum kept to {drift:.0e} of what moves",
    )
