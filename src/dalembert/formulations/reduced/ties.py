"""What ties bodies together besides the tree: joints that close loops, rods, springs between points, gears, paths, constraints.

Each is a number made of the poses of some bodies, with a force along it as an unknown: a number that stays zero, or one whose
force follows a law of the number and its rate. Forces along a line between two points also turn with it: two more
numbers across the line carry that change. All are rows of a dense Schur complement over solves with the tree.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.errors import ModelError
from dalembert.formulations.reduced.maps import Maps
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.own_rows import DISTANCE_ROW
from dalembert.model.records import CONSTRAINT, DISTANCE, MAPPED, PATH, F, I, Model, fields
from dalembert.model.tree import Tree

#: kinds of rows: a joint's row that stays closed; a direction of such a joint with laws; a coupling that stays zero; one with a
#: law; across the line between the points of a joint, of a path; a number y of a coordinate map, which moves nodes
CLOSED, DIRECTION, KEPT, LAW, ACROSS_JOINT, ACROSS_PATH, MOVED = range(7)

#: ``index``: joint, coupling or number y; ``part``: row, direction, or first point of a segment; ``first`` and ``ends``: its bodies;
#: ``side``: which of the two numbers across a line; ``source``: the row whose force turns
ROW = np.dtype(
    fields(I, kind=0, index=0, part=0, first=0, ends=0, side=0, source=0)
    # residual, change of the force with number and rate, scale of the residual as a velocity per force, force, direction
    + fields(F, r=0, K=0, D=0, scale=0, soft=0, mu=0, dmu=0)
)
#: the node of a body that a row acts on, and the row's gradient in the node's frame (torque, force)
END = np.dtype(fields(I, node=0, slot=0) + fields(F, G=6))


class Reach(NamedTuple):
    """Which trees rows act on, so that a row's column is solved for on its own trees alone. Lists one after the other, with where
    each begins: nodes of a tree from the root outwards, trees of a row, rows of a tree.
    """

    first_node: np.ndarray
    nodes: np.ndarray
    first_tree: np.ndarray
    trees: np.ndarray
    first_row: np.ndarray
    rows: np.ndarray


class Ties(NamedTuple):
    """Rows, their ends, joints outside of the tree, the Schur complement with its right-hand side (and room for contacts),
    ``compliance`` (1,) of rows that stay closed, relative to their own scale, and whether the next direction is to ``pull`` (1,)
    redundant forces towards zero; which trees the rows act on.
    """

    rows: np.ndarray
    ends: np.ndarray
    loops: np.ndarray
    S: np.ndarray
    order: np.ndarray
    vector: np.ndarray
    compliance: np.ndarray
    pull: np.ndarray
    reach: Reach


def build_ties(mechanism: Mechanism, model: Model, tree: Tree, maps: Maps | None = None) -> Ties:
    """The rows of a mechanism that its tree leaves out, and those of the numbers y of its coordinate ``maps`` at the end."""
    rows: list[np.ndarray] = []
    ends: list[np.ndarray] = []
    world = len(model.bodies) - 1

    def add(kind: int, index: int, part: int, bodies: list[int], side: int = 0, source: int = -1, soft: float = 0.0) -> int:
        row = np.zeros((), ROW)
        row["kind"], row["index"], row["part"], row["side"], row["source"], row["soft"] = kind, index, part, side, source, soft
        row["first"] = len(ends)
        for slot, body in enumerate(bodies):
            if body != world:
                end = np.zeros((), END)
                end["node"], end["slot"] = tree.node_of[body], slot
                ends.append(end)
        row["ends"] = len(ends) - int(row["first"])
        rows.append(row)
        return len(rows) - 1

    for index in tree.loops:
        joint, name = model.joints[index], mechanism.joints[index].name
        pair = [int(joint["parent"]), int(joint["child"])]
        if np.any(joint["armature"] > 0.0):
            raise ModelError(
                f"Reduced: joint {name!r} closes a loop and reflects the inertia of a rotor, which needs a joint of the tree; "
                "cut the loop at another joint (build that one later)")
        for k in range(int(joint["locks"])):
            row = add(CLOSED, index, k, pair, soft=float(joint["soft"][k]))
            if joint["row_kind"][k] == DISTANCE_ROW:
                for side in range(2):
                    add(ACROSS_JOINT, index, k, pair, side, row)
        for k in range(int(joint["free"])):
            if joint["driven"][k] or (not joint["active"] and joint["damping"][k] == 0.0):
                continue
            row = add(DIRECTION, index, k, pair)
            if joint["free_kind"][k] == DISTANCE:
                for side in range(2):
                    add(ACROSS_JOINT, index, k, pair, side, row)
    for index, coupling in enumerate(model.couplings):
        if coupling["kind"] == MAPPED and maps is not None:
            continue
        first, count = int(coupling["first"]), int(coupling["ends"])
        bodies = [int(body) for body in model.ends[first : first + count]]
        kept = coupling["law"] == CONSTRAINT
        row = add(KEPT if kept else LAW, index, 0, bodies, soft=float(coupling["soft"]))
        if coupling["kind"] == PATH:
            points = model.points[int(coupling["first_point"]) :][: int(coupling["points"])]
            for number in range(len(points) - 1):
                pair = [int(points[number + k]["body"]) for k in range(2)]
                if pair[0] != pair[1]:
                    for side in range(2):
                        add(ACROSS_PATH, index, number, pair, side, row)
    for index in range(0 if maps is None else len(maps.own)):
        add(MOVED, index, 0, [])
    size = len(rows)
    records, places = np.array(rows, ROW) if rows else np.zeros(0, ROW), np.array(ends, END) if ends else np.zeros(0, END)
    return Ties(
        records, places, tree.loops, np.zeros((size, size)), np.zeros(size, np.int64), np.zeros(size), np.zeros(1), np.zeros(1),
        _reach(tree, records, places, maps),
    )


def _reach(tree: Tree, rows: np.ndarray, ends: np.ndarray, maps: Maps | None) -> Reach:
    """Nodes and rows by trees."""
    owner = np.zeros(len(tree.nodes), np.int64)
    count = 0
    for i, node in enumerate(tree.nodes):
        owner[i] = owner[node["parent"]] if node["parent"] >= 0 else count
        count += node["parent"] < 0
    trees: list[list[int]] = []
    for row in rows:
        if row["kind"] == MOVED:
            assert maps is not None
            record = next(m for m in maps.maps if m["first"] <= row["index"] < m["first"] + m["count"])
            nodes = maps.nodes[record["first_entry"] : record["first_entry"] + record["entries"]]
        else:
            nodes = ends["node"][row["first"] : row["first"] + row["ends"]]
        trees.append(sorted({int(owner[node]) for node in nodes}))
    acting: list[list[int]] = [[] for _ in range(count)]
    for row, touched in enumerate(trees):
        for index in touched:
            acting[index].append(row)
    return Reach(*_listed([np.flatnonzero(owner == index).tolist() for index in range(count)]), *_listed(trees), *_listed(acting))


def _listed(lists: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Where each list begins (and the last one ends), and all of them one after the other."""
    return np.cumsum([0, *map(len, lists)]).astype(np.int64), np.array([item for part in lists for item in part], np.int64)


def no_ties() -> Ties:
    """Of a tree alone."""
    return Ties(np.zeros(0, ROW), np.zeros(0, END), np.zeros(0, np.int64), np.zeros((0, 0)), np.zeros(0, np.int64), np.zeros(0), np.zeros(1), np.zeros(1), no_reach())


def no_reach() -> Reach:
    """Of no rows and no trees."""
    nothing = np.zeros(1, np.int64), np.zeros(0, np.int64)
    return Reach(*nothing, *nothing, *nothing)
