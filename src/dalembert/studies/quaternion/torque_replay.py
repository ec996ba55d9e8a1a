"""Torques of the legs' drives, shared out in two ways, are played back on force drives with a small correction: is the motion the same?"""
from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

import dalembert as da
from dalembert.studies.quaternion.large_steps import follow
from dalembert.studies.quaternion.spared_motors import LEVER, WEIGHTS
from dalembert.studies.study import Report, study

PAPER = 0.03, 1.44  # degrees, mean and largest error of the drives
STIFFNESS, DAMPING = 400.0, 20.0  # N m/rad, N m s/rad of the correction
DT = 0.01
ANGLES = [*(name for name in LEVER if "knee" not in name), "left knee", "right knee"]


def play_back(dance: da.Trajectory, forces, dt: float) -> tuple[da.Trajectory, float]:
    """The motion under recorded torques, and the share of the correction in them."""
    torques, reached, rates = (CubicSpline(dance.time, np.column_stack(series)) for series in zip(*((forces[n].actuation, dance.joint(n).coordinates, dance.joint(n).rates) for n in LEVER)))
    levers = np.array([1.0 if lever == 1.0 else 0.5 / lever**2 for lever in LEVER.values()])
    shares = []

    def control(sim: da.Simulation) -> dict[str, float]:
        torque = torques(min(sim.time + dt, dance.time[-1]))  # an implicit step takes its forces at its end
        now = np.array([(sim.coordinates(name)[0], sim.rates(name)[0]) for name in LEVER]).T
        correction = levers * (STIFFNESS * (reached(sim.time) - now[0]) + DAMPING * (rates(sim.time) - now[1]))
        shares.append((torque, correction))
        return dict(zip(LEVER, torque + correction))

    run = da.Simulation(da.zoo.walker_legs(drive="force"), da.Implicit(dt=dt)).run(dance.time[-1], control=control, progress=False)
    torque, correction = np.moveaxis(np.array(shares), 1, 0)
    return run, float(np.sqrt(np.mean(correction**2) / np.mean(torque**2)))


@study("figure 10, replay", "torques with all forces alike and with motors spared drive the same motion, played back on force drives")
def torque_replay(report: Report) -> None:
    duration = 0.8 if report.quick else 4.0
    dance = follow(da.zoo.walker_legs(), da.zoo.walker_motion(), da.Implicit(dt=DT), duration)
    sets = {"all forces alike": dance.least_norm(), "motors spared": dance.least_norm(WEIGHTS)}
    axis, rows, means = report.axes("time / s", "mean error of the drives / degrees"), [], []
    for name, dt in report.each([(name, dt) for dt in (DT, 0.5 * DT) for name in sets]):
        run, share = play_back(dance, sets[name], dt)
        every = round(DT / dt)
        errors = np.degrees(np.abs(np.column_stack([run.joint(n).coordinates[::every] - dance.joint(n).coordinates for n in ANGLES])))
        rows.append((name, dt, errors.mean(), errors.max(), share))
        means.append(errors.mean())
        axis.semilogy(dance.time, errors.mean(axis=1).clip(1e-12), label=f"{name}, {dt:g} s")
    axis.axhline(PAPER[0], color="#999999", linestyle="--", label="mean in the paper")
    report.page(run)
    report.table(("torques", "step / s", "mean error / degrees", "largest / degrees", "correction, part of the torque"), [*rows, ("paper", "0.01", *PAPER, "-")])
    report.verdict(max(means) < PAPER[0], f"mean error {max(means):.1e} degrees, largest {max(row[3] for row in rows):.1e} (paper: {PAPER[0]:g} and {PAPER[1]:g})")
