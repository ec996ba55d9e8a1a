"""From a pose with velocities to joint coordinates and their rates."""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import ModelError
from dalembert.formulations.engine import Start
from dalembert.formulations.reduced.state import ReducedState, Scratch
from dalembert.formulations.reduced.step import place_knot
from dalembert.formulations.reduced.switching import SMALLEST, best_chart
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.records import Model
from dalembert.model.rotations import coordinates_of, in_node
from dalembert.model.tree import POINT, SPLINE, Tree
from dalembert.spatial.charts import CHARTS, chart_determinant

#: a chart cannot start with a determinant below this
SINGULAR_CHART = 1e-6


def chart_numbers(mechanism: Mechanism, tree: Tree, rotations: str | Mapping[str, str]) -> np.ndarray:
    """(nodes,) the chart of every free rotation, 0 for a rotation vector, as ``Reduced.rotations`` says."""
    numbers = np.zeros(len(tree.nodes), dtype=np.int64)
    places = {node_name(mechanism, tree, int(i)): i for i in np.flatnonzero(tree.nodes["kind"] == POINT)}
    chosen = dict.fromkeys(places, rotations) if isinstance(rotations, str) else rotations
    for name, chart in chosen.items():
        if name not in places:
            raise ModelError(f"Reduced: rotations names {name!r}, which has no free rotation in {mechanism.name!r}; those with one: {', '.join(places) or 'none'}")
        numbers[places[name]] = CHARTS.index(chart) + 1 if chart in CHARTS else 0
    return numbers


def node_name(mechanism: Mechanism, tree: Tree, index: int) -> str:
    """The joint that a node belongs to, or the body of one without a joint."""
    joint = int(tree.nodes["joint"][index])
    if joint >= 0:
        return mechanism.joints[joint].name
    while tree.nodes["body"][index] < 0:
        index += 1
    return mechanism.bodies[int(tree.nodes["body"][index])].name


def beyond(mechanism: Mechanism, tree: Tree, at: np.ndarray) -> str:
    """Joints whose coordinates ``x`` in the records ``at`` of the nodes lie beyond their splines."""
    found = []
    for index in np.flatnonzero(tree.nodes["kind"] == SPLINE):
        node, x = tree.nodes[index], at["x"][index]
        ends, x = node["cells"][: node["count"]], x[: node["count"]]
        if not node["closed"] and (np.any(x < 0.0) or np.any(x > ends)):
            found.append(f"joint {node_name(mechanism, tree, index)!r} would be at {np.round(x, 6).tolist()}, and its spline goes from 0 to {ends.tolist()}")
    return "; ".join(found)


class Starter:
    """Makes states of a tree from poses with velocities."""

    def __init__(self, mechanism: Mechanism, model: Model, tree: Tree, own: Scratch, charts: np.ndarray, switch: bool) -> None:
        self.mechanism, self.model, self.tree, self.own, self.charts, self.switch = mechanism, model, tree, own, charts, switch

    def start(self, start: Start, state: ReducedState) -> None:
        """Write coordinates and rates of all nodes at a pose with velocities.

        Coordinates of joints are the start's own, those of bodies without joints follow from their poses, and
        rates from the relative twist of every chain of nodes, by least squares.
        """
        nodes = self.tree.nodes
        positions = np.vstack([start.position, np.zeros(3)])
        turns = Rotation.from_quat(np.vstack([start.orientation, [1.0, 0.0, 0.0, 0.0]]), scalar_first=True)
        state.nodes["turn"][:, 0] = state.nodes["turn1"][:, 0] = 1.0
        chains = list(self._chains())
        for first, last in chains:
            body = int(nodes["body"][last])
            for i in range(first, last + 1):
                self._place(i, state.nodes[i], start)
            if nodes["joint"][first] < 0:
                state.nodes["q"][first : first + 3, 0] = positions[body]
                self._turn(last, state.nodes[last], turns[body].as_matrix())
        place_knot(self.model, nodes, self.own, state)
        for first, last in chains:
            parent, body = nodes["parent"][first], int(nodes["body"][last])
            above = int(nodes["body"][parent]) if parent >= 0 else -1
            relative, shift = turns[above].inv() * turns[body], turns[above].inv().apply(positions[body] - positions[above])
            up, own = start.velocity[above] if above >= 0 else np.zeros(6), start.velocity[body]
            # relative twist (angular, linear) in the body's frame
            spin = own[3:] - relative.inv().apply(up[3:])
            moved = turns[body].inv().apply(own[:3] - up[:3]) - relative.inv().apply(np.cross(up[3:], shift))
            self._rate(first, last, state, np.concatenate([spin, moved]))

    def _chains(self):
        """First and last nodes between two bodies."""
        first = 0
        for last in np.flatnonzero(self.tree.nodes["body"] >= 0):
            yield first, int(last)
            first = int(last) + 1

    def _place(self, index: int, at: np.ndarray, start: Start) -> None:
        """Coordinates of a joint's node."""
        node = self.tree.nodes[index]
        if node["joint"] < 0 or node["count"] == 0:
            return
        own = start.coordinate[node["joint"], node["direction"] : node["direction"] + node["count"]]
        if node["kind"] == POINT:
            E = Rotation.from_rotvec(own).as_matrix().ravel()
            self._turn(index, at, np.array(in_node(node, tuple(E))).reshape(3, 3))
        else:
            at["q"][: node["count"]] = own
        if node["cells"][0] > 0 and not node["closed"]:
            ends = node["cells"][: node["count"]]
            if np.any(own < -1e-9) or np.any(own > ends + 1e-9):
                raise ModelError(f"joint {self._name(index)!r} starts at {own.tolist()}, beyond its spline, which goes from 0 to {ends.tolist()}")

    def _turn(self, index: int, at: np.ndarray, M: np.ndarray) -> None:
        """Coordinates of a free rotation: itself, or the angles of its chart."""
        node, chart, flat = self.tree.nodes[index], int(self.charts[index]), tuple(M.ravel())
        if chart == 0:
            at["turn"] = Rotation.from_matrix(M).as_quat(scalar_first=True)
            return
        q = coordinates_of(node, chart, (1.0, 0.0, 0.0, 0.0), flat)
        size = chart_determinant(chart, q)
        if self.switch and size <= SMALLEST:
            chart = int(best_chart(node, flat, flat))
            q = coordinates_of(node, chart, (1.0, 0.0, 0.0, 0.0), flat)
        elif size < SINGULAR_CHART:
            best = CHARTS[int(best_chart(node, flat, flat)) - 1]
            raise ModelError(
                f"{self._name(index)!r} starts at the singularity of its chart {CHARTS[chart - 1]!r}, where three angles are no coordinates: "
                f"choose another chart, such as {best!r}, or rotations='exponential', or switch_charts=True"
            )
        at["chart"], at["q"] = chart, q

    def _rate(self, first: int, last: int, state: ReducedState, twist: np.ndarray) -> None:
        """Rates of the nodes between two bodies from their relative twist in the last one's frame."""
        columns, owners = [], []
        R, p = np.eye(3), np.zeros(3)  # of the last frame in the frame at hand
        for i in range(last, first - 1, -1):
            node, at = self.tree.nodes[i], self.own.nodes[i]
            for j in range(int(node["count"])):
                screw = at["S"][j]
                columns.append(np.concatenate([R.T @ screw[:3], R.T @ (screw[3:] + np.cross(screw[:3], p))]))
                owners.append((i, j))
            turn = at["R"].reshape(3, 3)
            R, p = turn @ R, turn @ p + at["p"]
        if not columns:
            return
        rates, _, rank, _ = np.linalg.lstsq(np.array(columns).T, twist, rcond=1e-10)
        if rank < len(columns):
            raise ModelError(f"the coordinates of {self._name(first)!r} are not independent where it starts: two of them move its child alike; start it elsewhere, or leave one out")
        for (i, j), rate in zip(owners, rates):
            state.nodes["v"][i, j] = rate

    def _name(self, index: int) -> str:
        return node_name(self.mechanism, self.tree, index)
