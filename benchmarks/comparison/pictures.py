"""The pictures of the benchmarks: time per step, and error by cost."""
from __future__ import annotations

from pathlib import Path
from typing import Any

from dalembert.view.plots import COLOURS, INK, finish_axis, finished, new_figure

#: colour and marker of each simulator
LOOK = dict(zip(("dalembert", "MuJoCo", "Pinocchio", "Drake", "Exudyn", "PyBullet"), zip((COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[3], COLOURS[5], COLOURS[4]), "os^Dvx")))


def draw_speed(results: list[dict[str, Any]], path: Path) -> None:
    """Microseconds per step, a row per problem; of each simulator its fastest method, and ``Variational`` of ours filled."""
    figure = new_figure(path, width=8.0, height=0.34 * len(results) + 1.6)
    axis = figure.subplots()
    for place, result in enumerate(results):
        for name, (colour, marker) in LOOK.items():
            timed = [row for row in result["rows"] if row["simulator"] == name and "us" in row]
            for row in timed if name == "dalembert" else timed[:1]:
                filled = row["method"] == "Variational" or name != "dalembert"
                axis.plot(row["us"], place, marker, color=colour, markersize=7 if filled else 5, fillstyle="full" if filled else "none", alpha=1.0 if filled else 0.7)
    for name, (colour, marker) in LOOK.items():
        axis.plot([], [], marker, color=colour, label=name if name != "dalembert" else "dalembert, Variational")
    axis.plot([], [], "o", color=COLOURS[0], fillstyle="none", markersize=5, label="dalembert, others")
    axis.set_xscale("log")
    finish_axis(axis, "")
    axis.set_yticks(range(len(results)), [result["problem"] for result in results])
    axis.invert_yaxis()
    axis.set_xlabel("microseconds per step", color=INK)
    axis.grid(True, axis="y", color="#EEEEEE")
    axis.legend(frameon=False, fontsize=8, ncols=4, loc="lower center", bbox_to_anchor=(0.45, 1.0))
    finished(figure, "", path)


def draw_work_precision(results: list[dict[str, Any]], path: Path) -> None:
    """A panel per problem: error by milliseconds, a line per method; the best one of each simulator is drawn strong and named."""
    from benchmarks.comparison.work_precision import ERROR

    columns = min(3, len(results))
    lines = -(-len(results) // columns)
    figure = new_figure(path, width=4.2 * columns, height=3.9 * lines)
    panels = list(figure.subplots(lines, columns, squeeze=False).flat)
    for axis, result in zip(panels, results):
        _draw_panel(axis, result, ERROR)
    for axis in panels[len(results):]:
        axis.set_axis_off()
    finished(figure, "", path)


def _draw_panel(axis: Any, result: dict[str, Any], at: float) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    finish_axis(axis, "error at the end / m")  # before there are lines: theirs are of two widths
    for name, (colour, marker) in LOOK.items():
        curves = [c for c in result["curves"] if c["simulator"] == name and c.get("points")]
        reached = [c for c in curves if c.get("at_error")]
        best = min(reached, key=lambda c: c["at_error"]["ms"]) if reached else curves[0] if curves else None
        for curve in curves:
            strong = curve is best
            xs, ys = [p["ms"] for p in curve["points"]], [max(p["error"], 1e-12) for p in curve["points"]]
            axis.plot(xs, ys, marker + "-", color=colour, markersize=4 if strong else 2.5, linewidth=1.6 if strong else 0.6, alpha=1.0 if strong else 0.35,
                      label=f"{name} {curve['method']}" if strong else None, zorder=3 if strong else 2)
    axis.axhline(at, color=INK, linewidth=0.8, linestyle=":")
    axis.set_ylim(1e-9, 3.0)
    axis.set_title(result["problem"], fontsize=10, color=INK)
    axis.set_xlabel("processor time / ms", color=INK)
    axis.legend(frameon=False, fontsize=6.5, loc="lower left")
