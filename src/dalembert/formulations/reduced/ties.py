"""What ties bodies together besides the tree: joints that close loops, rods, springs between points, gears, paths, constraints.

Each is a number made of the poses of some bodies, with a force along it as an unknown: a number that stays zero, or one whose
force follows a law of the number and its rate. Forces along a line between two points also turn with it: two more
numbers across the line carry that change. All are rows of a dense Schur complement over solves with the tree.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.errors import ModelError
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.own_rows import DISTANCE_ROW
from dalembert.model.records import BALL, CONSTRAINT, DISTANCE, PATH, F, I, Model, fields
from dalembert.model.tree import Tree

#: kinds of rows: a joint's row that stays closed; a direction of such a joint with laws; a coupling that stays zero; one with a
#: law; across the line between the points of a joint, of a path
CLOSED, DIRECTION, KEPT, LAW, ACROSS_JOINT, ACROSS_PATH = range(6)

#: ``index``: joint or coupling; ``part``: row, direction, or first point of a segment; ``first`` and ``ends``: its bodies;
#: ``side``: which of the two numbers across a line; ``source``: the row whose force turns
ROW = np.dtype(
    fields(I, kind=0, index=0, part=0, first=0, ends=0, side=0, source=0)
    # residual, change of the force with number and rate, scale of the residual as a velocity per force, force, direction
    + fields(F, r=0, K=0, D=0, scale=0, soft=0, mu=0, dmu=0)
)
#: the node of a body that a row acts on, and the row's gradient in the node's frame (torque, force)
END = np.dtype(fields(I, node=0, slot=0) + fields(F, G=6))


class Ties(NamedTuple):
    """Rows, their ends, joints outside of the tree, the Schur complement with its right-hand side (and room for contacts),
    ``compliance`` (1,) of rows that stay closed, relative to their own scale, and whether the next direction is to ``pull`` (1,)
    redundant forces towards zero.
    """

    rows: np.ndarray
    ends: np.ndarray
    loops: np.ndarray
    S: np.ndarray
    order: np.ndarray
    vector: np.ndarray
    compliance: np.ndarray
    pull: np.ndarray


def build_ties(mechanism: Mechanism, model: Model, tree: Tree) -> Ties:
    """The rows of a mechanism that its tree leaves out."""
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
            if joint["driven"][k] or joint["free_kind"][k] == BALL or (not joint["active"] and joint["damping"][k] == 0.0):
                continue
            row = add(DIRECTION, index, k, pair)
            if joint["free_kind"][k] == DISTANCE:
                for side in range(2):
                    add(ACROSS_JOINT, index, k, pair, side, row)
    for index, coupling in enumerate(model.couplings):
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
    size = len(rows)
    return Ties(
        np.array(rows, ROW) if rows else np.zeros(0, ROW), np.array(ends, END) if ends else np.zeros(0, END), tree.loops,
        np.zeros((size, size)), np.zeros(size, np.int64), np.zeros(size), np.zeros(1), np.zeros(1),
    )


def no_ties() -> Ties:
    """Of a tree alone."""
    return Ties(np.zeros(0, ROW), np.zeros(0, END), np.zeros(0, np.int64), np.zeros((0, 0)), np.zeros(0, np.int64), np.zeros(0), np.zeros(1), np.zeros(1))
