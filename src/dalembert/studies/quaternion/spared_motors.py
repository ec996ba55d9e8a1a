"""Eight leg drives for six freedoms of a dancing character: their torques when all forces weigh alike, and when the motors are spared.

In the paper all forces alike take 63 % more torque than motors spared. That number is no property of the method: N and N m weigh alike, so
it depends on the unit of length, and on what the two redundant combinations of drives are, so on the legs and on the dance. In this character they press the legs against
one another through the hip rolls; the knees, ankles and hip pitches carry the weight, of which no choice of weights can relieve them.
"""
from __future__ import annotations

import numpy as np

import dalembert as da
from dalembert.studies.quaternion.large_steps import follow
from dalembert.studies.study import Report, study

PAPER = 0.63
#: what turns a drive's force into a torque at its joint: struts act on the knee at 7 cm
LEVER = {name: 0.07 if "knee" in name else 1.0 for name in da.zoo.walker_motion()}
WEIGHTS = {name: [1.0] * 5 + [1e5 * lever**2] for name, lever in LEVER.items()}
#: other legs and dances: spacing of the legs in m, size and period (s) of the dance
OTHERS = {"as above": (0.24, 1.0, 2.0), "legs wider apart": (0.36, 1.0, 2.0), "legs closer": (0.16, 1.0, 2.0), "livelier dance": (0.24, 1.5, 1.0), "livelier dance, legs closer": (0.16, 1.5, 1.0)}
#: rows of the joints that the character has: forces and torques
ROWS = {"Fixed": "fffttt", "Revolute": "ffftt", "Prismatic": "ffttt", "Universal": "ffft", "Spherical": "fff"}


def alike(mechanism: da.Mechanism, unit: float) -> dict[str, list[float]]:
    """Weights for which forces and torques count alike when lengths are in ``unit`` (m)."""
    weights = {}
    for joint in mechanism.joints:
        kind = type(joint.type).__name__
        rows = ROWS[kind] + ("" if "motion" not in joint.type.drive else "f" if kind == "Prismatic" else "t")  # type: ignore[operator]
        weights[joint.name] = [1.0 if row == "f" else unit**-2 for row in rows]
    return weights


def effort(forces) -> np.ndarray:
    """(8,) root mean square of each drive, as a torque at its joint (N m)."""
    return np.array([lever * np.sqrt(np.mean(forces[name].actuation ** 2)) for name, lever in LEVER.items()])


def more(spacing: float, size: float, period: float) -> np.ndarray:
    """(8,) by how much of itself the torque of each drive is larger with all forces alike, for other legs or another dance."""
    design = da.zoo.WalkerDesign(spacing=spacing)
    character = da.zoo.character(design)
    motion = da.zoo.character_motion(lambda time: da.zoo.dance(time, size=size, period=period), design)
    run = follow(character, motion, da.Implicit(dt=0.04), 4.0)
    return effort(run.least_norm(alike(character, 1.0))) / effort(run.least_norm(WEIGHTS)) - 1.0


@study("figure 10", "weights of the least norm spare the motors of an overactuated character: with all forces alike they need more torque for the same motion")
def spared_motors(report: Report) -> None:
    dt, duration = (0.02, 2.0) if report.quick else (0.02, 9.82)
    character = da.zoo.character()
    run = follow(character, da.zoo.character_motion(), da.Implicit(dt=dt), duration)
    spared, naive = run.least_norm(WEIGHTS), run.least_norm(alike(character, 1.0))
    few, many = effort(spared), effort(naive)
    report.table(("drive", "all forces alike / N m", "motors spared / N m", "more by"), [(n, a, s, f"{a / s - 1.0:+.0%}") for n, a, s in zip(LEVER, many, few)])
    units = (0.01, 1.0, 100.0) if report.quick else (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
    by_unit = {unit: effort(run.least_norm(alike(character, unit), knots=np.arange(0, len(run), 4))) for unit in report.each(units, "unit")}
    sampled = effort(run.least_norm(WEIGHTS, knots=np.arange(0, len(run), 4)))
    rows = [(unit, values.mean() / sampled.mean() - 1.0, (values / sampled).mean() - 1.0, (values / sampled).max() - 1.0) for unit, values in by_unit.items()]
    report.table(("unit of length / m", "mean torque more by", "mean of the drives' shares", "the most of a drive"), rows, name="by_unit")
    others = {} if report.quick else {name: more(*case) for name, case in report.each(OTHERS.items(), "character")}
    if others:
        report.table(("legs and dance", "mean of the drives' shares", "the most of a drive"), [(name, values.mean(), values.max()) for name, values in others.items()], name="others")
    torque, share = report.panels(1, 2, width=11.0, height=4.2)
    for name, forces in (("all forces alike", naive), ("motors spared", spared)):
        torque.plot(run.time, forces["left hip roll"].actuation, label=name)
    torque.set(xlabel="time / s", ylabel="torque of the left hip roll / N m")
    share.semilogx(units, [100.0 * row[2] for row in rows], "o-", label="here")
    share.axhline(100.0 * PAPER, color="#999999", linestyle="--", label="paper")
    share.set(xlabel="unit of length / m", ylabel="torque more than with motors spared / %")
    report.page(run)
    hips = [k for k, name in enumerate(LEVER) if "roll" in name]
    rest = np.delete(many / few - 1.0, hips)
    report.verdict(
        many.mean() > 1.05 * few.mean(),
        f"all forces alike take {(many / few).mean() - 1.0:.0%} more on average over the drives (paper: {PAPER:.0%}): the hip rolls {(many / few)[hips].mean() - 1.0:.0%}, the six drives that carry the weight "
        f"{rest.min():+.0%} to {rest.max():+.0%}; by the unit of length {min(r[2] for r in rows):+.0%} to {max(r[2] for r in rows):+.0%}"
        + (f", by legs and dance {min(v.mean() for v in others.values()):+.0%} to {max(v.mean() for v in others.values()):+.0%}" if others else ""),
    )
