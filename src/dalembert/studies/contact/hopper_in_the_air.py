"""A hopper jumps and turns once about (1, 1, 0) in the air, at several step sizes: does its foot ever go into the ground, and does it stand again?"""
from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert.studies.study import Report, study

MOMENTS = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9)  # s, of the figure


@study("figure 6", "a hopper jumps, makes a full turn and lands without its foot ever entering the ground, at every step size")
def hopper_in_the_air(report: Report) -> None:
    steps, duration = ((0.01, 0.004), 2.5) if report.quick else ((0.01, 0.005, 0.002, 0.001, 0.0005), 3.0)
    path, height = report.panels(1, 2, width=11.0, height=4.4)
    rows, held = [], True
    for dt in report.each(steps):
        run = da.Simulation(da.zoo.hopper(), da.Variational(dt=dt)).run(duration, control=da.zoo.hopper_turn(), progress=False)
        foot = run.point("pole", (0.0, 0.0, -0.4))
        ball = run.orientation[:, 0]
        upright = Rotation.from_quat(ball[-1], scalar_first=True).apply((0.0, 0.0, 1.0))[2]
        turned = ball[-1, 0] * ball[0, 0] < -0.99  # the other quaternion of the same attitude
        speed = np.abs(run.velocity[-1]).max()
        rows.append((dt, foot[:, 2].min(), foot[:, 2].max(), "yes" if turned else "no", upright, speed))
        held &= bool(turned and foot[:, 2].min() > -1e-9 and upright > 0.99 and speed < 0.2)
        height.plot(run.time, foot[:, 2], label=f"step {1e3 * dt:g} ms")
    report.page(run)
    for moment in MOMENTS:
        knot = int(np.argmin(abs(run.time - moment)))
        top = run.point("pole", (0.0, 0.0, 0.4))[knot]
        path.plot(*zip(foot[knot, [0, 2]], top[[0, 2]]), color="#BBBBBB")
        path.plot(*run.position[knot, 0, [0, 2]], "o", markersize=12, color="#4477AA")
    path.plot(foot[:, 0], foot[:, 2], linewidth=1.0, color="#EE6677", label="foot")
    path.set(xlabel="x / m", ylabel="z / m", aspect="equal")
    height.set(xlabel="time / s", ylabel="foot above the ground / m")
    report.table(("step / s", "least distance of the foot / m", "largest / m", "full turn", "upright at the end", "speed at the end / m/s"), rows)
    report.verdict(held, f"least distance {min(row[1] for row in rows):.0e} m (paper: 0.0 m) at steps from {1e3 * steps[-1]:g} to {1e3 * steps[0]:g} ms")
