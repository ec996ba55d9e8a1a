"""Pictures of a run: energies, joint coordinates and rates, phase portraits, joint forces, constraint violation, contacts.

Figures are made without Matplotlib's global state: they need no display, and many threads may draw at once.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.errors import MissingExtraError, ModelError
from dalembert.io.whole import write_whole
from dalembert.simulation.trajectory import Trajectory

#: "bright" of Paul Tol's colour schemes, told apart by colour-blind readers and in print
COLOURS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377")
STYLES = ("-", "--", ":", "-.")
INK, FAINT = "#333333", "#DDDDDD"
WIDTH, HEIGHT = 6.4, 4.4  # inches
RESOLUTION = 200  # dots per inch of written pictures
SCREEN = 110  # dots per inch in notebooks
LONGEST_LEGEND = 18  # lines
LONGEST_ROW = 70  # characters
#: violations are drawn no lower than this, so that an exact zero has a place on the logarithmic axis
LOWEST_VIOLATION = 1e-17
LOWEST_GAP = 1e-15  # m: what is closed more tightly, and penetrations, are drawn there
NOISE = 1e-9  # of the other panel: less is rounding


def plot_trajectory(trajectory: Trajectory, what: str = "energy", *, path: str | Path | None = None, names: Sequence[str] | None = None) -> Any:
    """Draw one of ``PLOTS`` over time and return the Matplotlib figure.

    ``names``: joints to show (of gaps: bodies, grounds or pairs), all by default; ``path``: also write the picture there, in
    the format of its ending.
    """
    if what not in PLOTS:
        raise ModelError(f"cannot plot {what!r}; choose from: {', '.join(PLOTS)}")
    chosen = [names] if isinstance(names, str) else None if names is None else list(names)
    figure = new_figure(path)
    PLOTS[what](figure, trajectory, chosen if what == "gaps" else _joints(trajectory, chosen))
    if not figure.axes[-1].get_xlabel():
        figure.axes[-1].set_xlabel("time / s", color=INK)
    return finished(figure, trajectory.mechanism, path)


def _energy(figure: Any, trajectory: Trajectory, joints: list[str] | None) -> None:
    if joints is not None:
        raise ModelError('names= chooses joints, and an energy belongs to the whole mechanism: leave it out for "energy"')
    energy = trajectory.energy()
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2.2, 1))
    _lines(above, trajectory.time, [("kinetic", energy.kinetic), ("potential", energy.potential)])
    above.plot(trajectory.time, energy.total, color=INK, label="total")
    below.plot(trajectory.time, energy.total - energy.total[0], color=INK)
    finish_axis(above, "energy / J")
    finish_axis(below, "total $-$ start / J")
    add_legend(above)


def _by_unit(trajectory: Trajectory, joints: list[str] | None, series: str) -> list[tuple[str, list[tuple[str, np.ndarray]]]]:
    """Lines (name, values) of "coordinates" or "rates", in a panel per unit."""
    shown = trajectory.joints if joints is None else joints
    lines: dict[str, list[tuple[str, np.ndarray]]] = {"rad": [], "m": []}
    for name in shown:
        units = trajectory.coordinate_units[trajectory.joints.index(name)]
        values = getattr(trajectory.joint(name), series).reshape(len(trajectory), -1)
        for k, unit in enumerate(units):
            lines[unit].append((name if len(units) == 1 else f"{name} [{k}]", values[:, k]))
    panels = [(unit, drawn) for unit, drawn in lines.items() if drawn]
    if not panels:
        raise ModelError(f"none of these joints has a coordinate to plot: {', '.join(shown) or 'there are no joints'}")
    return panels


def _coordinates(figure: Any, trajectory: Trajectory, joints: list[str] | None) -> None:
    panels = _by_unit(trajectory, joints, "coordinates")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axis, (unit, drawn) in zip(axes, panels):
        _lines(axis, trajectory.time, drawn)
        finish_axis(axis, f"{'angle' if unit == 'rad' else 'distance'} / {unit}")
        _hush(axis)
        add_legend(axis, panels=len(panels))


def _velocities(figure: Any, trajectory: Trajectory, joints: list[str] | None) -> None:
    panels = _by_unit(trajectory, joints, "rates")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axis, (unit, drawn) in zip(axes, panels):
        _lines(axis, trajectory.time, drawn)
        finish_axis(axis, f"{'angular rate' if unit == 'rad' else 'rate'} / {unit}/s")
        _hush(axis)
        add_legend(axis, panels=len(panels))


def _phase(figure: Any, trajectory: Trajectory, joints: list[str] | None) -> None:
    panels = _by_unit(trajectory, joints, "coordinates")
    rates = dict(_by_unit(trajectory, joints, "rates"))
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (unit, drawn) in zip(axes, panels):
        for k, ((name, values), (_, speeds)) in enumerate(zip(drawn, rates[unit])):
            colour = COLOURS[k % len(COLOURS)]
            axis.plot(values, speeds, color=colour, linestyle=STYLES[k // len(COLOURS) % len(STYLES)], label=_literal(name))
            axis.plot(values[:1], speeds[:1], "o", color=colour, markersize=4)
        axis.set_xlabel(f"{'angle' if unit == 'rad' else 'distance'} / {unit}", color=INK)
        finish_axis(axis, f"rate / {unit}/s")
        add_legend(axis, panels=len(panels))


def _forces(figure: Any, trajectory: Trajectory, joints: list[str] | None) -> None:
    series = [trajectory.joint(name) for name in (trajectory.joints if joints is None else joints)]
    if not series:
        raise ModelError(f"{trajectory.mechanism!r} has no joints, and so no joint forces to plot")
    above, below = figure.subplots(2, 1, sharex=True)
    _lines(above, trajectory.time, [(s.name, np.linalg.norm(s.force, axis=1)) for s in series])
    _lines(below, trajectory.time, [(s.name, np.linalg.norm(s.torque, axis=1)) for s in series])
    finish_axis(above, "joint force / N")
    finish_axis(below, "joint torque / N m")
    largest = max(_largest(above), _largest(below))
    for axis in (above, below):
        if _largest(axis) < NOISE * largest:  # rounding: not worth a scale of its own
            axis.set_ylim(-0.05, 1.0)
    add_legend(above, shared_by=figure)


def _violation(figure: Any, trajectory: Trajectory, joints: list[str] | None) -> None:
    axis = figure.subplots()
    if joints is None:
        lines = [("largest", trajectory.constraint_violation())]
    else:
        rows = np.abs(trajectory._get("violation")).max(axis=2, initial=0.0)
        lines = [(name, rows[:, trajectory.joints.index(name)]) for name in joints]
    _lines(axis, trajectory.time, [(name, np.maximum(values, LOWEST_VIOLATION)) for name, values in lines])
    axis.set_yscale("log")
    finish_axis(axis, "constraint violation / m or rad")
    if joints is not None:
        add_legend(axis)


def _gaps(figure: Any, trajectory: Trajectory, names: list[str] | None) -> None:
    from dalembert.view.arrows import acting_rows

    series = trajectory.contacts()
    if names is not None:
        parts = [series.of(name) for name in names]
        shown = list(dict.fromkeys(int(pair) for part in parts for pair in part.pair))
    else:
        shown = sorted({int(pair) for pair in series.pair})
    if not shown:
        raise ModelError(f"nothing in {trajectory.mechanism!r} came near anything: there are no gaps to plot")
    acting = acting_rows(series)
    gaps, forces = [], []
    for pair in shown:
        near, here = series.pair == pair, acting[series.pair[acting] == pair]
        gap, force = np.full(len(trajectory), np.nan), np.zeros(len(trajectory))
        np.fmin.at(gap, series.knot[near], series.gap[near])
        np.add.at(force, series.knot[here] - 1, series.normal_force[here])
        force[-1] = np.nan  # no step begins there
        gaps.append((series.names[pair], np.where(gap > LOWEST_GAP, gap, np.where(np.isnan(gap), np.nan, LOWEST_GAP))))
        forces.append((series.names[pair], force))
    above, below = figure.subplots(2, 1, sharex=True)
    _lines(above, trajectory.time, gaps)
    _lines(below, trajectory.time, forces)
    above.set_yscale("log")
    finish_axis(above, "gap / m")
    finish_axis(below, "normal force / N")
    add_legend(above, shared_by=figure)


PLOTS: dict[str, Callable[[Any, Trajectory, list[str] | None], None]] = {
    "energy": _energy, "coordinates": _coordinates, "forces": _forces, "violation": _violation,
    "velocities": _velocities, "phase": _phase, "gaps": _gaps,
}


def new_figure(path: str | Path | None = None, width: float = WIDTH, height: float = HEIGHT) -> Any:
    """A figure (inches) that can be written to ``path``."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("plots need Matplotlib: pip install dalembert[plot]") from None

    class ShownFigure(Figure):
        """A figure that notebooks show, whatever their backend."""

        def _repr_png_(self) -> bytes:
            picture = BytesIO()
            self.savefig(picture, format="png", dpi=SCREEN)
            return picture.getvalue()

    figure = ShownFigure(figsize=(width, height), layout="constrained")
    known = figure.canvas.get_supported_filetypes()
    if path is not None and Path(path).suffix and Path(path).suffix[1:].lower() not in known:
        raise ModelError(f"cannot write a picture to {path}: choose an ending from {', '.join(sorted(known))}")
    return figure


def finished(figure: Any, title: str, path: str | Path | None = None) -> Any:
    """The figure with its title, written to ``path``; text in a PDF or SVG stays text."""
    from matplotlib import rc_context

    figure.suptitle(_literal(title), x=0.015, ha="left", fontsize=11, fontweight="bold", color=INK)
    figure.align_ylabels()
    if path is not None:
        place = Path(path) if Path(path).suffix else Path(f"{path}.png")
        picture = BytesIO()
        with rc_context({"pdf.fonttype": 42, "svg.fonttype": "none"}):
            figure.savefig(picture, dpi=RESOLUTION, format=place.suffix[1:].lower())
        with write_whole(place) as temporary:
            temporary.write_bytes(picture.getvalue())
    return figure


def _joints(trajectory: Trajectory, chosen: list[str] | None) -> list[str] | None:
    if chosen is None:
        return None
    unknown = [name for name in chosen if name not in trajectory.joints]
    if unknown or not chosen:
        found = ", ".join(repr(n) for n in unknown) or "no name"
        raise ModelError(f"names= got {found}; the joints of {trajectory.mechanism!r} are: {', '.join(trajectory.joints)}")
    return chosen


def _lines(axis: Any, time: np.ndarray, lines: list[tuple[str, np.ndarray]]) -> None:
    for k, (name, values) in enumerate(lines):
        style = STYLES[k // len(COLOURS) % len(STYLES)]
        axis.plot(time, values, color=COLOURS[k % len(COLOURS)], linestyle=style, label=_literal(name))


def finish_axis(axis: Any, label: str) -> None:
    """Thin lines, a quiet grid, no box; powers of ten instead of long numbers."""
    for line in axis.lines:
        line.set(linewidth=1.4, solid_capstyle="round", solid_joinstyle="round")
    axis.set_ylabel(label, color=INK)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color(INK)
    axis.grid(color=FAINT, linewidth=0.6)
    axis.set_axisbelow(True)
    axis.tick_params(colors=INK, labelsize=9)
    axis.margins(x=0.01)
    if axis.get_yscale() == "linear":
        axis.ticklabel_format(axis="y", scilimits=(-3, 4), useMathText=True, useOffset=False)
        axis.yaxis.get_offset_text().set_horizontalalignment("right")  # beside the legend, not under it


def _hush(axis: Any) -> None:
    """Give rounding about zero no scale of its own."""
    if _largest(axis) < 1e-3 * NOISE:
        axis.set_ylim(-1.0, 1.0)


def _largest(axis: Any) -> float:
    """The largest value drawn."""
    return max((float(np.abs(line.get_ydata()).max()) for line in axis.lines), default=0.0)


def add_legend(axis: Any, *, shared_by: Any = None, panels: int = 1) -> None:
    """Above the plot for a few lines, beside it for many; one that would be too long says how many lines it leaves out.

    ``shared_by``: the figure, where one legend serves all its panels; ``panels``: how many with a legend share the height.
    """
    handles, labels = axis.get_legend_handles_labels()
    style = {"frameon": False, "fontsize": 9, "labelcolor": INK, "borderaxespad": 0.2, "handlelength": 1.6}
    if sum(len(label) + 6 for label in labels) < LONGEST_ROW:
        axis.legend(handles, labels, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(handles), **style)
        return
    longest = LONGEST_LEGEND if panels == 1 else LONGEST_LEGEND // panels - 2
    if len(handles) > longest:
        labels = [*labels[:longest], f"and {len(handles) - longest} more"]
        handles = [*handles[:longest], axis.plot([], [], linestyle="")[0]]
    if shared_by is None:
        axis.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.0, 1.02), **style)
    else:
        shared_by.legend(handles, labels, loc="outside right upper", **style)


def _literal(name: str) -> str:
    """A name that Matplotlib prints as it is: no formulas, and not left out of legends for its first character."""
    name = name.replace("$", r"\$")
    return f"\N{ZERO WIDTH SPACE}{name}" if name.startswith("_") else name
