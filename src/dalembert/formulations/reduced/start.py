"""From a pose with velocities to joint coordinates and their rates."""
from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.formulations.engine import Start
from dalembert.model.tree import AXIS, LINE, POINT, Tree


def start_nodes(tree: Tree, start: Start, state: np.ndarray) -> None:
    """Write coordinates ``q``, ``turn`` and rates ``v`` of the records ``state`` of all nodes at a pose with velocities.

    Coordinates of joints are the start's own; slides of bodies without joints, and free rotations, follow from the poses, and
    rates from the relative twist of every chain of nodes, by least squares.
    """
    nodes = tree.nodes
    positions = np.vstack([start.position, np.zeros(3)])
    turns = Rotation.from_quat(np.vstack([start.orientation, [1.0, 0.0, 0.0, 0.0]]), scalar_first=True)
    state["turn"][:, 0] = 1.0
    first = 0
    while first < len(nodes):
        last = first
        while nodes["body"][last] < 0:
            last += 1
        chain = slice(first, last + 1)
        parent = nodes["parent"][first]
        above = int(nodes["body"][parent]) if parent >= 0 else -1
        body = int(nodes["body"][last])
        relative = turns[above].inv() * turns[body]
        shift = turns[above].inv().apply(positions[body] - positions[above])
        _place_chain(nodes[chain], state[chain], start, relative, shift)
        up = start.velocity[above] if above >= 0 else np.zeros(6)
        own = start.velocity[body]
        # relative twist (angular, linear) in the body's frame
        spin = own[3:] - relative.inv().apply(up[3:])
        moved = turns[body].inv().apply(own[:3] - up[:3]) - relative.inv().apply(np.cross(up[3:], shift))
        _rate_chain(nodes[chain], state[chain], np.concatenate([spin, moved]))
        first = last + 1


def _place_chain(nodes: np.ndarray, state: np.ndarray, start: Start, relative: Rotation, shift: np.ndarray) -> None:
    """Coordinates of the nodes between two bodies whose relative pose is known."""
    R0 = Rotation.from_matrix(nodes[0]["R0"].reshape(3, 3))
    p0 = nodes[0]["p0"]
    for node, at in zip(nodes, state):
        if node["joint"] >= 0 and node["kind"] in (LINE, AXIS):
            at["q"][0] = start.coordinate[node["joint"], node["direction"]]
        elif node["kind"] == POINT:
            at["turn"] = (R0.inv() * relative).as_quat(scalar_first=True)
            at["v"] = 0.0
    if nodes[0]["joint"] < 0:
        offset = R0.inv().apply(shift - p0)
        for k in range(3):
            state[k]["q"][0] = offset[k]


def _rate_chain(nodes: np.ndarray, state: np.ndarray, twist: np.ndarray) -> None:
    """Rates of the nodes between two bodies from their relative twist in the last one's frame."""
    columns, owners = [], []
    R, p = np.eye(3), np.zeros(3)  # of the last frame in the frame at hand
    for node, at in zip(nodes[::-1], state[::-1]):
        if node["kind"] == POINT:
            screws = [np.concatenate([e, np.cross(node["centre"], e)]) for e in np.eye(3)]
        else:
            screws = [node["screw"]] * int(node["count"])
        for j, screw in enumerate(screws):
            columns.append(np.concatenate([R.T @ screw[:3], R.T @ (screw[3:] + np.cross(screw[:3], p))]))
            owners.append((at, j))
        turn, move = _factor(node, at)
        R, p = turn @ R, turn @ p + move
    if not columns:
        return
    rates = np.linalg.lstsq(np.array(columns).T, twist, rcond=None)[0]
    for (at, j), rate in zip(owners, rates):
        at["v"][j] = rate


def _factor(node: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The motion of a node without its fixed placement."""
    if node["kind"] == LINE:
        return np.eye(3), at["q"][0] * node["screw"][3:]
    if node["kind"] == POINT:
        turn = Rotation.from_quat(at["turn"], scalar_first=True).as_matrix()
    elif node["kind"] == AXIS:
        turn = Rotation.from_rotvec(at["q"][0] * node["screw"][:3]).as_matrix()
    else:
        return np.eye(3), np.zeros(3)
    return turn, node["centre"] - turn @ node["centre"] + node["lead"] * at["q"][0] * node["screw"][:3]
