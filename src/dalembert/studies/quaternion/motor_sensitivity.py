"""Which two of eight leg motors may be left out: how far a torque at the others moves any body, over the dance, by derivatives of the simulation."""
from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert.studies.quaternion.spared_motors import LEVER
from dalembert.studies.study import Report, study

START = 1.0  # s: the dance has grown to its full size
STIFFNESS = 2000.0  # N m/rad with which a motor holds its place, at its joint
DESIGNS = {"design 1, without motors 1 and 8": (0, 7), "design 2, without motors 5 and 6": (4, 5)}


def pelvis(time: float) -> np.ndarray:
    """Its displacement and rotation vector in the dance."""
    displacement, rotation = da.zoo.dance(time + START)
    return np.concatenate([displacement, Rotation.from_matrix(rotation).as_rotvec()])


def dance(duration: float, dt: float) -> da.Trajectory:
    """The legs with the pelvis led and no motor at all, differentiable."""
    legs = da.zoo.walker_legs(drive=None)
    legs.joint("lead", da.Free(drive="motion"), legs.world, "pelvis", at=legs["pelvis"].position)
    legs.start("lead", pelvis(0.0))
    sim = da.Simulation(legs, da.Implicit(dt=dt, solver="general"))
    sim.set_target("lead", pelvis)
    return sim.run(duration, tape=True, progress=False)


def by_pelvis(run: da.Trajectory, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives along one freedom of the pelvis at each knot: of all poses (N, 6 bodies), of the motors' coordinates (N, 8) as angles."""
    change = run.jvp({"lead.target": np.broadcast_to(unit, (len(run), 6))})
    poses = np.concatenate([change["position"], change["orientation"]], axis=2).reshape(len(run), -1)
    return poses[1:], change["coordinate"][1:, [run.joints.index(name) for name in LEVER], 0] / list(LEVER.values())


@study("figure 12", "of two designs with six motors one passes poses that its motors hardly hold: derivatives show which")
def motor_sensitivity(report: Report) -> None:
    run = dance(0.9, 0.05) if report.quick else dance(4.0, 0.025)
    poses, turns = (np.stack(part, axis=2) for part in zip(*(by_pelvis(run, unit) for unit in report.each(np.eye(6), "derivative"))))

    def sensitivity(left_out: tuple[int, ...]) -> np.ndarray:
        """The largest change of a pose (m or rad) that 1 N m at a motor makes, at each knot."""
        return np.abs(poses @ np.linalg.inv(np.delete(turns, left_out, axis=1))).max(axis=(1, 2)) / STIFFNESS

    axis = report.axes("time / s", "largest change of a pose / mm or mrad for 1 N m")
    curves = {name: sensitivity(left_out) for name, left_out in DESIGNS.items()}
    for name, curve in curves.items():
        axis.semilogy(run.time[1:] + START, 1e3 * curve, label=name)
    ranking = sorted(combinations(range(8), 2), key=lambda pair: sensitivity(pair).max())
    names = list(LEVER)
    report.table(("left out", "least / mm or mrad", "largest"), [(name, 1e3 * c.min(), 1e3 * c.max()) for name, c in curves.items()])
    report.table(("place", "left out", "largest / mm or mrad"), [(place + 1, f"{names[a]}, {names[b]}", 1e3 * sensitivity((a, b)).max()) for place, (a, b) in enumerate(ranking)], name="pairs")
    report.page(run)
    good, bad = curves.values()
    peaks = int(np.sum((bad[1:-1] > bad[:-2]) & (bad[1:-1] > bad[2:]) & (bad[1:-1] > 10.0 * np.median(good))))
    report.verdict(
        good.max() < 2.0 * good.min() and bad.max() > 10.0 * good.max() and (report.quick or peaks >= 3),
        f"design 1 {1e3 * good.min():.2f} to {1e3 * good.max():.2f} mm or mrad for 1 N m, design 2 up to {1e3 * bad.max():.0f}, with {peaks} peaks; best to leave out: {names[ranking[0][0]]} and {names[ranking[0][1]]}",
    )
