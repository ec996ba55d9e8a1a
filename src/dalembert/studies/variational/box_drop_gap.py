"""A cube dropped on the ground: how far it sinks in, here and in MuJoCo."""
from __future__ import annotations

import numpy as np

import dalembert as da
from dalembert.studies.baselines.mujoco import box_drop, load_mujoco
from dalembert.studies.study import Report, study

DT, HALF = 0.01, 0.25
#: metres above the ground, of the paper
PAPER = {"variational": 43e-6, "MuJoCo": -0.027}


@study("figure 7d", "a dropped box does not sink into the ground, with MuJoCo's default contacts it does by centimetres")
def box_drop_gap(report: Report) -> None:
    heights = (0.4,) if report.quick else (0.2, 0.4, 0.6, 0.8, 1.0)
    mujoco = load_mujoco()
    axis = report.axes("time / s", "height of the box above the ground / m")
    rows = []
    for height in report.each(heights):
        run = da.Simulation(da.zoo.box_drop(height=height), da.Variational(dt=DT)).run(1.0, progress=False)
        ours = run.body("box").position[:, 2] - HALF
        model, data = box_drop(DT, height)
        theirs = [height]
        for _ in range(len(run) - 1):
            mujoco.mj_step(model, data)
            theirs.append(float(data.qpos[2]) - HALF)
        if height == 0.4:
            report.page(run)
            axis.plot(run.time, ours, label="variational")
            axis.plot(run.time, theirs, label="MuJoCo")
            axis.axhline(0.0, color="0.6")
        rows.append((height, ours.min(), PAPER["variational"] if height == 0.4 else "", np.min(theirs), PAPER["MuJoCo"] if height == 0.4 else ""))
    report.table(("drop / m", "least height / m", "paper's", "MuJoCo's / m", "paper's MuJoCo"), rows)
    least, sunk = min(row[1] for row in rows), max(row[3] for row in rows)
    report.verdict(least > -1e-8 and sunk < -0.001 and min(row[3] for row in rows) < -0.02, f"least height {least:.1e} m, in MuJoCo {min(row[3] for row in rows):.3f} to {sunk:.3f} m")
