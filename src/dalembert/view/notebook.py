"""What notebooks show: pages of runs below their cells, and short tables of mechanisms and trajectories."""
from __future__ import annotations

import html
import sys
from typing import Any

from dalembert.mechanism.mechanism import Mechanism
from dalembert.simulation.trajectory import Trajectory
from dalembert.view.page import page_text

HEIGHT = 480  # pixels of a page below a cell
LONGEST = 12  # rows of a table


def in_notebook() -> bool:
    """Whether this runs in the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    running = None if shell is None else shell.get_ipython()
    return running is not None and hasattr(running, "kernel")


class InlinePage:
    """The page of a run, for a notebook to show; ``str`` gives its text."""

    def __init__(self, trajectory: Trajectory, fps: float) -> None:
        self._text = page_text(trajectory, fps)
        self._title = trajectory.mechanism

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<page of {self._title!r}, {len(self._text) / 1e3:.0f} kB: a notebook shows it, to_html(path) writes it>"

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self._text)}" style="width: 100%; height: {HEIGHT}px; border: 0" title="{html.escape(self._title)}"></iframe>'


def trajectory_table(trajectory: Trajectory) -> str:
    """A run in a few lines."""
    time = trajectory.time
    rows = {
        "time": f"{time[0]:g} to {time[-1]:g} s, {len(trajectory)} knots" + (", interrupted" if trajectory.interrupted else ""),
        "bodies": _names(trajectory.bodies), "joints": _names(trajectory.joints),
    }
    if trajectory.touching:
        rows["contacts"] = _names(trajectory.touching)
    divided = int((trajectory.substeps > 1).sum())
    if divided:
        rows["divided steps"] = str(divided)
    return _table(f"{trajectory.mechanism}, {trajectory.formulation}", rows)


def mechanism_table(mechanism: Mechanism) -> str:
    """A mechanism in a few lines."""
    rows = {"mass": f"{mechanism.mass:g} kg", "bodies": _names([body.name for body in mechanism.bodies])}
    rows |= {joint.name: f"{type(joint.type).__name__}, {joint.parent.name} to {joint.child.name}" for joint in mechanism.joints[:LONGEST]}
    left = len(mechanism.joints) - LONGEST
    if left > 0:
        rows["..."] = f"{left} more joints"
    return _table(mechanism.name, rows)


def _names(names: Any) -> str:
    shown = ", ".join(names[:LONGEST])
    return f"{len(names)}: {shown}{', ...' if len(names) > LONGEST else ''}" if names else "none"


def _table(title: str, rows: dict[str, str]) -> str:
    lines = "".join(f"<tr><td>{html.escape(name)}</td><td>{html.escape(text)}</td></tr>" for name, text in rows.items())
    return f"<table><caption>{html.escape(title)}</caption>{lines}</table>"
