"""Integration methods compared: how they keep energy and joints on a T-handle, a spinning top and a fast pendulum.

The experiments of figures 4 to 6 of Maloisel et al., "A Versatile Quaternion-based Constrained Rigid Body Dynamics"
(2025), with the variational integrator beside them. Draws out/methods.png.
"""
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import dalembert as da
from dalembert import zoo

COLOURS = {
    "BDF1": "#BBBBBB", "SDIRK2": "#228833", "BDF2": "#4477AA", "Pareschi-Russo": "#EE6677", "semi-implicit": "#CCBB44", "Variational": "#333333",
}


def methods(dt: float) -> dict[str, da.Implicit | da.Variational]:
    names = {"BDF1": "bdf1", "SDIRK2": "sdirk2", "BDF2": "bdf2", "Pareschi-Russo": "pareschi_russo", "semi-implicit": "semi_implicit"}
    return {**{label: da.Implicit(dt=dt, method=method) for label, method in names.items()}, "Variational": da.Variational(dt=dt)}


def run_all(mechanism: da.Mechanism, dt: float, duration: float) -> dict[str, da.Trajectory]:
    return {label: da.Simulation(mechanism, formulation).run(duration) for label, formulation in methods(dt).items()}


def energy_change(run: da.Trajectory) -> np.ndarray:
    energy = run.energy().total
    return energy / energy[0] - 1.0


def pendulum(degrees: float, pinned: bool = True, **options) -> tuple[np.ndarray, np.ndarray]:
    """Violation (m) and error of the angle (degrees) over ten steps, each of which turns the pendulum by ``degrees``."""
    dt, rate = 0.01, np.radians(degrees) / 0.01
    run = da.Simulation(zoo.fast_pendulum(rate, pinned=pinned), da.Implicit(dt=dt, **options)).run(10 * dt)
    angle = 2 * np.arctan2(run.orientation[:, 0, 2], run.orientation[:, 0, 0])
    error = np.remainder(angle - rate * run.time + np.pi, 2 * np.pi) - np.pi
    return run.constraint_violation(), np.degrees(np.abs(error))


handle = zoo.t_handle()
handle.start("handle", angular=(0.1, 0.1, 15.0))
handles = run_all(handle, 1e-3, 10.0)
tops = run_all(zoo.spinning_top(), 1e-3, 3.0)
turns = np.geomspace(1.0, 60.0, 13)
SCHEMES = {"BDF2": dict(), "semi-implicit": dict(method="semi_implicit", stabilization=0.2), "not stabilised": dict(method="semi_implicit", stabilization=0.0)}
pinned, free = ({label: [pendulum(turn, held, **options) for turn in turns] for label, options in SCHEMES.items()} for held in (True, False))


def draw() -> Figure:
    figure = Figure(figsize=(13.5, 6.2), layout="constrained")
    (energy, spin, top, path), (gap, hinge, error, flight) = figure.subplots(2, 4)
    for axis, runs, title in ((energy, handles, "T-handle"), (top, tops, "spinning top")):
        for label, run in runs.items():
            axis.plot(run.time, np.maximum(np.abs(energy_change(run)), 1e-13), color=COLOURS[label], label=label, linewidth=1.4)
        axis.set(yscale="log", title=f"{title}: energy", xlabel="time / s", ylabel="relative change")
    for label in ("SDIRK2", "BDF2", "Variational"):
        spin.plot(handles[label].time, handles[label].angular_velocity[:, 0, 2], color=COLOURS[label], linewidth=1.2)
    spin.set(title="T-handle: spin about its middle axis", xlabel="time / s", ylabel="rad/s")
    end = tops["BDF2"].point("top", (0, 0, 0.03))
    path.plot(end[:, 0], end[:, 1], color=COLOURS["BDF2"], linewidth=0.9)
    path.set(title="spinning top: path of its end", xlabel="x / m", ylabel="y / m", aspect="equal")
    for label, run in tops.items():
        gap.plot(run.time, np.maximum(run.constraint_violation(), 1e-18), color=COLOURS[label], linewidth=1.2)
    gap.set(yscale="log", title="spinning top: gap at the tip", xlabel="time / s", ylabel="m")
    for axis, runs, what in ((hinge, pinned, 0), (error, pinned, 1), (flight, free, 1)):
        for (label, series), style in zip(runs.items(), ("-", "-", "--")):
            for steps, width in ((1, 0.8), (10, 1.8)):
                values = [max(pair[what][steps], 1e-18) for pair in series]
                axis.plot(turns, values, style, color=COLOURS[label if label == "BDF2" else "semi-implicit"], linewidth=width, label=f"{label}, {steps} step{'s' * (steps > 1)}")
        axis.set(xscale="log", yscale="log", xlabel="degrees per step", ylabel="degrees" if what else "m")
    hinge.set_title("fast pendulum: gap at the hinge")
    error.set_title("fast pendulum: error of its angle")
    flight.set_title("the same without a hinge")
    energy.legend(fontsize=7, loc="lower right", bbox_to_anchor=(1.0, 0.22), frameon=False)
    hinge.legend(fontsize=7, loc="center right", frameon=False)
    for axis in figure.axes:
        axis.title.set_fontsize(10)
        axis.grid(color="#DDDDDD", linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    return figure


Path("out").mkdir(exist_ok=True)
draw().savefig("out/methods.png", dpi=100)

print(f"{'':16} {'T-handle, 10 s':>16} {'top, 3 s':>10} {'gap at the tip':>15}")
lost = {label: (abs(energy_change(handles[label])[-1]), abs(energy_change(tops[label])[-1])) for label in handles}
opened = {label: run.constraint_violation().max() for label, run in tops.items()}
for label, (handle_loss, top_loss) in lost.items():
    print(f"{label:16} {handle_loss:16.1e} {top_loss:10.1e} {opened[label]:13.1e} m")

ranked = all(lost["BDF1"][k] > lost["SDIRK2"][k] > 10 * lost["BDF2"][k] > 10 * lost["Pareschi-Russo"][k] > 10 * lost["Variational"][k] for k in (0, 1))
closed = all(opened[label] < 1e-10 for label in ("BDF1", "SDIRK2", "BDF2", "Variational")) and all(v.max() < 1e-10 for v, _ in pinned["BDF2"])
if not (ranked and closed and opened["semi-implicit"] > opened["Pareschi-Russo"] > 1e-6):
    raise SystemExit("the methods do not rank as in the paper")
