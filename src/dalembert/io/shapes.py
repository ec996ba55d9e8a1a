"""The shapes that the parts of a trajectory's file must have to belong together."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalembert.contact.records import ENTRY
from dalembert.formulations.engine import SHARES
from dalembert.simulation.trajectory import UNITS

NEEDED = ("time", "position", "orientation")
#: axes of series: knots N, bodies B, joints J, couplings C, shares S, events E, iterations I, or a number
SERIES: dict[str, tuple[str | int, ...]] = {
    "time": ("N",), "position": ("N", "B", 3), "orientation": ("N", "B", 4), "velocity": ("N", "B", 3), "angular_velocity": ("N", "B", 3),
    "substeps": ("N",), "iterations": ("N",), "target_correction": ("N",), "potential": ("N",), "coordinate": ("N", "J", 6), "rate": ("N", "J", 6),
    "rate_after": ("N", "J", 6), "actuation": ("N", "J", 6), "violation": ("N", "J", 6), "row_force": ("N", "J", 6), "force": ("N", "J", 3),
    "torque": ("N", "J", 3), "share": ("N", "J", 6, "S"), "coupling": ("N", "C"), "coupling_rate": ("N", "C"), "coupling_force": ("N", "C"),
    "coupling_violation": ("N", "C"), "contact_wrench": ("N", "B", 6), "momentum_after": ("N", "B", 6), "residuals": ("N", "I"),
    "event_time": ("E",), "event_kind": ("E",), "event_position": ("E", "B", 3), "event_orientation": ("E", "B", 4),
}
ROOT: dict[str, tuple[str | int, ...]] = {"freedom": ("J",), "mass": ("B",), "inertia": ("B", 3, 3), "armature": ("J", 6)}
#: whole numbers
WHOLE = ("freedom", "substeps", "iterations", "event_kind")


def check_shapes(content: Mapping[str, Any]) -> None:
    """A ValueError that says which part of a file does not fit."""
    for name in NEEDED:
        if f"series/{name}" not in content:
            raise ValueError(f"it has no {name!r}")
    times = content["series/time"]
    lengths = {name: len(content[f"series/{name}"]) if content[f"series/{name}"].ndim else 0 for name in NEEDED}
    if len(set(lengths.values())) != 1 or not len(times):
        raise ValueError(f"its series differ in length: {lengths}")
    events = content.get("series/event_time", np.zeros(0))
    residuals = content.get("series/residuals", np.zeros((0, 0)))
    sizes = dict(
        N=len(times), B=len(content["bodies"]), J=len(content["joints"]), C=len(content["couplings"]), S=len(SHARES),
        E=len(events) if events.ndim else -1, I=residuals.shape[1] if residuals.ndim == 2 else -1,
    )
    for name, axes in [*((f"series/{n}", axes) for n, axes in SERIES.items()), *ROOT.items()]:
        if name in content:
            expected = tuple(axis if isinstance(axis, int) else sizes[axis] for axis in axes)
            _check(name.removeprefix("series/"), content[name], expected)
    if not (np.diff(times) >= 0.0).all():
        raise ValueError("its times do not grow")
    _check_names(content)


def _check(name: str, values: np.ndarray, shape: tuple[int, ...]) -> None:
    if values.shape != shape or values.dtype.kind not in ("iu" if name in WHOLE else "f"):
        raise ValueError(f"{name!r} has the shape {values.shape} of {values.dtype}, expected {shape} of {'whole' if name in WHOLE else 'real'} numbers")


def _check_names(content: Mapping[str, Any]) -> None:
    """What points from one list into another."""
    freedom, units = content["freedom"], content["coordinate_units"]
    if (freedom < 0).any() or (freedom > 6).any() or int(freedom.sum()) != len(units) or not set(units) <= {"rad", *UNITS.values()}:
        raise ValueError("the units of its coordinates do not fit its joints")
    if not set(content.get("paths", ())) <= set(content["couplings"]):
        raise ValueError("its paths are not among its couplings")
    events = {f"event_{n}" for n in ("time", "kind", "position", "orientation")}
    found = {name for name in events if f"series/{name}" in content}
    if found and found != events:
        raise ValueError(f"its events lack {', '.join(sorted(events - found))}")
    if found and not _within(content["series/event_kind"], len(content.get("happenings", ()))):
        raise ValueError("its events have no names")
    log = content.get("series/contact_log")
    if log is not None:
        if log.ndim != 1 or log.dtype.names != ENTRY.names or any(log.dtype[n] != ENTRY[n] for n in ENTRY.names or ()):
            raise ValueError("its list of contacts has another form")
        if not _within(log["knot"], len(content["series/time"])) or not _within(log["owner"], len(content.get("touching", ()))):
            raise ValueError("its list of contacts does not fit its knots and pairs")


def _within(values: np.ndarray, count: int) -> bool:
    return bool(((values >= 0) & (values < count)).all())
