"""An animatronic figure of 151 bodies gestures: forces and torques in its joints as arrows, and whether they add up to what moves each body."""
from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert.studies.study import Report, study

MOMENTS = (1.6, 2.4)  # s, of the arrows
SHOWN = 60  # of the largest


def joint_loads(figure: da.Mechanism, run: da.Trajectory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, forces on the child and torques on it at every knot in the world, (N, joints, 3) each."""
    points, forces, torques = [], [], []
    for joint in figure.joints:
        series, parent = run.joint(joint.name), joint.parent.index
        turn = Rotation.identity(len(run)) if parent < 0 else Rotation.from_quat(run.orientation[:, parent], scalar_first=True)
        child = run.body(joint.child.name)
        points.append(child.position + Rotation.from_quat(child.orientation, scalar_first=True).apply(joint.point_child))
        forces.append(turn.apply(series.force @ joint.frame_parent.T))
        torques.append(turn.apply(series.torque @ joint.frame_parent.T))
    return tuple(np.stack(values, axis=1) for values in (points, forces, torques))  # type: ignore[return-value]


@study("figure 9", "multipliers are forces and torques: on each body of a figure with 47 loops they add up to its weight and its change of momentum")
def figure_forces(report: Report) -> None:
    dt, duration = (0.01, 1.7) if report.quick else (0.005, 4.0)
    figure = da.zoo.animatronic_figure()
    sim = da.Simulation(figure, da.Implicit(dt=dt))
    for name, target in da.zoo.figure_motion().items():
        sim.set_target(name, target)
    run = sim.run(duration, progress=False)
    points, forces, torques = joint_loads(figure, run)
    masses = np.array([body.mass for body in figure.bodies])
    needed = masses[:, None] * (np.gradient(run.velocity, dt, axis=0, edge_order=2) - np.array(figure.gravity))
    for k, joint in enumerate(figure.joints):
        needed[:, joint.child.index] -= forces[:, k]
        if joint.parent.index >= 0:
            needed[:, joint.parent.index] += forces[:, k]
    inner = slice(3, -3)
    missed, most = np.abs(needed[inner]).max(), np.linalg.norm(forces[inner], axis=2).max()
    moments = [moment for moment in MOMENTS if moment < duration]
    for moment, axis in zip(moments, report.panels(1, len(moments), width=5.5 * len(moments), height=6.5)):
        knot = int(np.argmin(abs(run.time - moment)))
        place = points[knot]
        for at, joint in zip(place, figure.joints):
            end = run.position[knot, joint.child.index]
            axis.plot((at[1], end[1]), (at[2], end[2]), ".-", color="#BBBBBB", markersize=3, linewidth=1.5)
        for values, scale, colour, name in ((forces, 1e-3, "#4477AA", "force, 1 kN = 1 m"), (torques, 5e-3, "#EE6677", "torque, 200 N m = 1 m")):
            sizes = np.linalg.norm(values[knot], axis=1)
            chosen = np.argsort(sizes)[-SHOWN:]
            arrows = scale * values[knot][chosen]
            axis.quiver(place[chosen, 1], place[chosen, 2], arrows[:, 1], arrows[:, 2], angles="xy", scale_units="xy", scale=1.0, width=0.004, color=colour, label=name)
        axis.set(xlabel="y / m", ylabel=f"z / m, at {moment:g} s", aspect="equal")
        report.picture(run, f"at_{moment:g}s".replace(".", "_"), time=moment)
    report.page(run)
    loads = sorted(((np.linalg.norm(forces[:, k], axis=1).max(), np.linalg.norm(torques[:, k], axis=1).max(), joint.name) for k, joint in enumerate(figure.joints)), reverse=True)[:12]
    report.table(("joint", "largest force / N", "largest torque / N m"), [(name, force, torque) for force, torque, name in loads])
    report.verdict(missed < 2e-3 * most and run.constraint_violation().max() < 1e-9, f"forces on a body miss its motion by {missed:.1e} N at the most, of forces up to {most:.0f} N; masses from {masses.min():.1g} to {masses.max():.3g} kg")
