"""A mechanism's graph: bodies as nodes, joints as edges with the loops they close, and the pattern of its step matrix."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from dalembert.errors import ModelError
from dalembert.formulations.maximal.graph import build_graph
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.compile import compile_model
from dalembert.model.topology import holds, spanning_tree, tree_order
from dalembert.view.plots import COLOURS, FAINT, INK, _literal, finished, new_figure

LABELLED = 40  # bodies that are named and stand level by level; more would hide one another
SPREAD = 1000  # bodies that are spread by their distances along the graph


def draw_graph(mechanism: Mechanism, path: str | Path | None = None) -> Any:
    """Draw the graph on the left and the pattern on the right; returns the Matplotlib figure."""
    if not mechanism.bodies:
        raise ModelError(f"{mechanism.name!r} has no bodies to draw")
    figure = new_figure(path, 11.0, 5.4)
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    _draw_bodies(left, mechanism)
    _draw_pattern(right, mechanism)
    return finished(figure, mechanism.name, path)


def layout(mechanism: Mechanism) -> tuple[dict[int, tuple[float, float]], set[int]]:
    """Place of each body (-1: the world) and the joints of a spanning tree: small graphs level by level along it."""
    tree = spanning_tree(mechanism)
    if LABELLED < len(mechanism.bodies) <= SPREAD:
        return _spread(mechanism), tree
    children: dict[int, list[int]] = {}
    level = {-1: 0}
    for _, here, there in tree_order(mechanism, tree):
        level[there] = level.setdefault(here, 1) + 1
        children.setdefault(here, []).append(there)
    below = {there for group in children.values() for there in group}
    roots = [b for b in (-1, *range(len(mechanism.bodies))) if b not in below]
    place: dict[int, tuple[float, float]] = {}
    column = 0.0
    todo = [(root, False) for root in reversed(roots)]
    while todo:  # children before their parent, without recursion
        body, ready = todo.pop()
        kids = children.get(body, [])
        if kids and not ready:
            todo.append((body, True))
            todo.extend((kid, False) for kid in reversed(kids))
        elif kids:
            place[body] = float(np.mean([place[k][0] for k in kids])), -float(level.get(body, 1))
        else:
            place[body] = column, -float(level.get(body, 1))
            column += 1.0
    return place, tree


def _spread(mechanism: Mechanism) -> dict[int, tuple[float, float]]:
    """Places whose distances are near those along the graph (classical scaling, the two largest axes)."""
    count = len(mechanism.bodies) + 1  # the world comes last
    ends = np.array([(j.parent.index % count, j.child.index % count) for j in mechanism.joints if holds(j) and j.type.freedom < 6]).reshape(-1, 2)
    steps = shortest_path(coo_array((np.ones(len(ends)), ends.T), shape=(count, count)).tocsr(), directed=False, unweighted=True)
    steps[~np.isfinite(steps)] = 1.2 * steps[np.isfinite(steps)].max() + 1.0
    square = steps**2
    inner = -0.5 * (square - square.mean(axis=0) - square.mean(axis=1)[:, None] + square.mean())
    sizes, axes = np.linalg.eigh(inner)
    places = axes[:, -2:] * np.sqrt(np.maximum(sizes[-2:], 0.0))
    return {(i if i < count - 1 else -1): (float(x), float(y)) for i, (y, x) in enumerate(places)}


def _draw_bodies(axis: Any, mechanism: Mechanism) -> None:
    place, tree = layout(mechanism)
    seen: dict[tuple[int, int], int] = {}
    loops = 0
    for joint in mechanism.joints:
        a, b = joint.parent.index, joint.child.index
        (x, y), (u, v) = place[a], place[b]
        ends = (min(a, b), max(a, b))
        seen[ends] = seen.get(ends, 0) + 1
        closes = joint.index not in tree and holds(joint) and joint.type.freedom < 6
        loops += closes
        soft = not holds(joint) or joint.type.freedom == 6
        bend = 0.18 * seen[ends] if len(place) <= LABELLED and (closes or soft or seen[ends] > 1) else 0.0
        t = np.linspace(0.0, 1.0, 25)
        dx, dy = v - y, -(u - x)
        colour, style = (COLOURS[1], "-") if closes else ((COLOURS[2], ":") if soft else (COLOURS[0], "-"))
        axis.plot(x + t * (u - x) + bend * 4 * t * (1 - t) * dx, y + t * (v - y) + bend * 4 * t * (1 - t) * dy, style, color=colour, linewidth=1.4 if len(place) <= LABELLED else 0.8, zorder=1)
    for gear in mechanism.couplings:
        ends = [np.mean([place[j.parent.index], place[j.child.index]], axis=0) for j in (gear.first, gear.second)]
        axis.plot(*np.array(ends).T, "--", color=COLOURS[3], linewidth=1.2, zorder=1)
    for body, (x, y) in place.items():
        axis.plot(x, y, "s" if body < 0 else "o", color=INK if body < 0 else "white", markeredgecolor=INK, markersize=(9 if body < 0 else 7) if len(place) <= LABELLED else 4, zorder=2)
        if len(place) <= LABELLED:
            name = "world" if body < 0 else mechanism.bodies[body].name
            axis.annotate(_literal(name), (x, y), xytext=(6, 4), textcoords="offset points", fontsize=7.5, color=INK, rotation=20, rotation_mode="anchor",
                          bbox={"boxstyle": "round,pad=0.1", "facecolor": "#ffffffc0", "edgecolor": "none"}, zorder=3)
    lines = [("joint", COLOURS[0], "-"), (f"closes a loop ({loops})", COLOURS[1], "-")]
    lines += [("spring or free joint", COLOURS[2], ":")] if any(not holds(j) or j.type.freedom == 6 for j in mechanism.joints) else []
    lines += [("gear", COLOURS[3], "--")] if mechanism.couplings else []
    for label, colour, style in lines:
        axis.plot([], [], style, color=colour, label=label)
    axis.legend(loc="upper left", bbox_to_anchor=(0.0, -0.02), ncols=len(lines), frameon=False, fontsize=8.5, labelcolor=INK)
    axis.set_axis_off()
    axis.margins(0.12)


def _draw_pattern(axis: Any, mechanism: Mechanism) -> None:
    """Blocks of the step matrix in order of elimination; what its factors add is drawn in another colour."""
    structure = build_graph(compile_model(mechanism)).structure
    order = np.asarray(structure.order)
    pattern = structure.pattern()[np.ix_(order, order)]
    count = len(order)
    size = max(1.0, min(9.0, 250.0 / count)) ** 2
    for value, colour, label in ((1, COLOURS[0], "block"), (2, COLOURS[1], "fill-in")):
        rows, columns = np.nonzero(pattern == value)
        axis.scatter(columns, rows, s=size, marker="s", color=colour, linewidths=0, label=f"{label} ({len(rows)})")
    axis.set(xlim=(-0.5, count - 0.5), ylim=(count - 0.5, -0.5), aspect="equal")
    axis.set_xlabel("node, in order of elimination", color=INK)
    axis.tick_params(colors=INK, labelsize=8)
    for spine in axis.spines.values():
        spine.set_color(FAINT)
    axis.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False, fontsize=8.5, labelcolor=INK)
