"""A character's legs with eight drives for six freedoms: who pushes how much, and is it enough to dance?

The legs follow a dance with motion drives that agree. Their redundant torques are shared out twice: with all forces alike,
and so that the motors are spared. Both sets of torques are then played back on force drives, with a small PD correction,
at the same step and at half of it. Last, steps of a tenth of a second. After figures 10 and 11 of Maloisel et al. (2025).
Draws out/overactuated.png, and writes out/overactuated.html, a page that shows the dance.
"""
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.interpolate import CubicSpline

import dalembert as da
from dalembert import zoo

DT, DURATION = 0.01, 4.0
MOTION = zoo.walker_motion()
#: what turns a drive's force into a torque at its joint: struts act on the knee at 7 cm
LEVER = {name: 0.07 if "knee" in name else 1.0 for name in MOTION}
STIFFNESS, DAMPING = 400.0, 20.0  # N m/rad, N m s/rad


def follow(motion, formulation: da.Implicit, duration: float) -> da.Trajectory:
    sim = da.Simulation(zoo.walker_legs(), formulation)
    for name, target in motion.items():
        sim.set_target(name, target)
    return sim.run(duration)


dance = follow(MOTION, da.Implicit(dt=DT), DURATION)
alike = dance.least_norm()
spared = dance.least_norm({name: [1.0] * 5 + [1e5 * lever**2] for name, lever in LEVER.items()})
reached, rates = (CubicSpline(dance.time, np.column_stack([getattr(dance.joint(n), what) for n in MOTION])) for what in ("coordinates", "rates"))


def effort(forces) -> np.ndarray:
    """Root mean square of each drive, as a torque at its joint."""
    return np.array([lever * np.sqrt(np.mean(forces[name].actuation ** 2)) for name, lever in LEVER.items()])


def play_back(forces, dt: float) -> tuple[da.Trajectory, float]:
    """The motion under recorded torques with a PD correction, and the share of the correction in the torques."""
    torques = CubicSpline(dance.time, np.column_stack([forces[n].actuation for n in MOTION]))
    sim, shares = da.Simulation(zoo.walker_legs(drive="force"), da.Implicit(dt=dt)), []

    def control(sim: da.Simulation) -> dict[str, float]:
        # an implicit step takes its forces at its end
        torque, goal, rate = torques(min(sim.time + dt, DURATION)), reached(sim.time), rates(sim.time)
        answer = {}
        for i, (name, lever) in enumerate(LEVER.items()):
            correction = STIFFNESS * (goal[i] - sim.coordinates(name)[0]) + DAMPING * (rate[i] - sim.rates(name)[0])
            correction *= 1.0 if lever == 1.0 else 0.5 / lever**2
            shares.append((torque[i], correction))
            answer[name] = torque[i] + correction
        return answer

    run = sim.run(DURATION, control=control)
    torque, correction = np.array(shares).T
    return run, float(np.sqrt(np.mean(correction**2) / np.mean(torque**2)))


ANGLES = [*(name for name in MOTION if "knee" not in name), "left knee", "right knee"]


def errors(run: da.Trajectory) -> np.ndarray:
    """(N, 8) degrees by which the turning drives and the knees differ from the dance."""
    every = (len(run) - 1) // (len(dance) - 1)
    return np.degrees(np.abs(np.column_stack([run.joint(n).coordinates[::every] - dance.joint(n).coordinates for n in ANGLES])))


REPLAYS = {("all forces alike", DT): alike, ("motors spared", DT): spared, ("motors spared", DT / 2): spared}
replays = {case: play_back(forces, case[1]) for case, forces in REPLAYS.items()}

lively = zoo.walker_motion(lambda t: zoo.dance(t, size=1.5, period=1.0))
STEPS = {f"semi-implicit, {dt:g} s, stabilisation {a:g}": da.Implicit(dt=dt, method="semi_implicit", stabilization=a) for dt in (0.1, 0.01) for a in (0.0, 0.2, 1.0)}
large = {label: follow(lively, formulation, 4.0) for label, formulation in {**STEPS, "BDF2, 0.1 s": da.Implicit(dt=0.1), "BDF2, 0.01 s": da.Implicit(dt=0.01)}.items()}


def draw() -> Figure:
    figure = Figure(figsize=(11.0, 6.6), layout="constrained")
    (hip, knee), (error, violation) = figure.subplots(2, 2)
    for axis, name, unit in ((hip, "left hip roll", "N m"), (knee, "left knee drive", "N")):
        for label, forces, colour in (("all forces alike", alike, "#CCBB44"), ("motors spared", spared, "#4477AA")):
            axis.plot(dance.time, forces[name].actuation, color=colour, label=label, linewidth=1.5)
        axis.set(title=name, xlabel="time / s", ylabel=unit)
    for ((label, dt), (run, _)), colour in zip(replays.items(), ("#CCBB44", "#4477AA", "#66CCEE")):
        error.plot(dance.time, np.maximum(errors(run).mean(axis=1), 1e-11), color=colour, label=f"{label}, {dt:g} s", linewidth=1.5)
    error.axhline(0.03, color="#333333", linewidth=0.8, linestyle=":", label="mean in the paper")
    error.set(yscale="log", title="torques played back: mean error of the drives", xlabel="time / s", ylabel="degrees")
    for label, run in large.items():
        colour = "#4477AA" if "BDF2" in label else "#CCBB44"
        style = {"0": "-", "0.2": "--", "1": ":"}[label.split()[-1]] if "semi" in label else "-"
        violation.plot(run.time, np.maximum(run.constraint_violation(), 1e-17), style, color=colour, linewidth=1.8 if "0.1 s" in label else 0.8, label=label)
    violation.set(yscale="log", title="large steps: largest gap in a joint", xlabel="time / s", ylabel="m or rad")
    violation.legend(fontsize=6.5, frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.5))
    for axis in figure.axes:
        axis.grid(color="#DDDDDD", linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in (hip, error):
        axis.legend(fontsize=8, frameon=False)
    return figure


Path("out").mkdir(exist_ok=True)
draw().savefig("out/overactuated.png", dpi=100)
dance.to_html("out/overactuated.html")

print(f"effort of the drives: {effort(alike).mean():.1f} N m with all forces alike, {effort(spared).mean():.1f} N m with the motors spared")
for (label, dt), (run, share) in replays.items():
    print(f"played back at {dt:g} s, {label}: mean error {errors(run).mean():.1e}, largest {errors(run).max():.1e} degrees; the correction is {share:.1e} of the torque")
for label, run in large.items():
    print(f"{label}: largest violation {run.constraint_violation().max():.1e} m or rad")
if not (effort(spared).mean() < 0.95 * effort(alike).mean() and all(errors(run).mean() < 0.05 for run, _ in replays.values())):
    raise SystemExit("the torques do not reproduce the dance")
if not all((run.constraint_violation().max() < 1e-10) == ("BDF2" in label) for label, run in large.items()):
    raise SystemExit("joints are not closed as they should be")
