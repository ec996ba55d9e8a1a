"""Trajectories for spreadsheets and scripts: CSV with one row per knot, NPZ with one array per series."""
from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from dalembert.io.whole import write_whole
from dalembert.simulation.trajectory import Trajectory


def save_csv(trajectory: Trajectory, path: Path) -> None:
    """Time, poses, velocities, joint coordinates and rates, paths, energies; names and units in the header. Numbers are exact."""
    columns: list[tuple[str, np.ndarray]] = [("time [s]", trajectory.time)]
    for i, name in enumerate(trajectory.bodies):
        columns += [(f"{name}.position.{a} [m]", trajectory.position[:, i, k]) for k, a in enumerate("xyz")]
        columns += [(f"{name}.orientation.{a}", trajectory.orientation[:, i, k]) for k, a in enumerate("wxyz")]
        columns += [(f"{name}.velocity.{a} [m/s]", trajectory.velocity[:, i, k]) for k, a in enumerate("xyz")]
        columns += [(f"{name}.angular_velocity.{a} [rad/s]", trajectory.angular_velocity[:, i, k]) for k, a in enumerate("xyz")]
    for name, units in zip(trajectory.joints, trajectory.coordinate_units):
        joint = trajectory.joint(name)
        for word, values, per in (("coordinate", joint.coordinates, ""), ("rate", joint.rates, "/s")):
            values = values.reshape(len(trajectory), -1)
            columns += [(f"{name}.{word}.{k} [{unit}{per}]", values[:, k]) for k, unit in enumerate(units)]
    for name in trajectory.paths:
        line = trajectory.path(name)
        columns += [(f"{name}.length [m]", line.length), (f"{name}.rate [m/s]", line.rate), (f"{name}.tension [N]", line.tension)]
    energy = trajectory.energy()
    columns += [("energy.kinetic [J]", energy.kinetic), ("energy.potential [J]", energy.potential)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([name for name, _ in columns])
    writer.writerows([[repr(float(v)) for v in row] for row in np.stack([values for _, values in columns], axis=1)])
    with write_whole(path) as temporary:
        temporary.write_text(text.getvalue(), encoding="utf-8")


def save_npz(trajectory: Trajectory, path: Path) -> None:
    """All series as arrays, with the names of bodies and joints."""
    for names, _ in trajectory._providers:
        for name in names:
            trajectory._get(name)
    arrays = dict(trajectory._values, bodies=np.array(trajectory.bodies), joints=np.array(trajectory.joints), mass=trajectory.mass, inertia=trajectory.inertia)
    with write_whole(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
