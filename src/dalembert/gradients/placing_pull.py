"""Placings of bodies backwards: how the pose of a start follows from the pose that bodies were given, and from geometry.

A placing moves joints, subtrees carried along, and then closes the rows by the smallest move. Between bodies h and t of the tree whose joint
stays as it is, t keeps its place beside h: dx_t = dx_h + (R_h (phi_h - phi_h')) x (x_t - x_h) + D (dx_t' - dx_h') and
phi_t = phi_t' + R_t^T R_h (phi_h - phi_h'), with primes before the placing and D = R_h R_h'^T. A joint that is moved has all six of its rows and
coordinates given: they say where t is.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.formulations.maximal.bars import Bars
from dalembert.formulations.maximal.pull_knot import pull_row_values
from dalembert.model.assembly import pose_saddle
from dalembert.model.pose import direction_rows
from dalembert.model.topology import place, spanning_tree, tree_order
from dalembert.simulation.placing import Placed


class PlacingPull:
    """The placings of a start (``Beginning``); what geometry gets is added to ``bars``. ``tree``: whether there are no loops."""

    def __init__(self, beginning: Any, bars: Bars, tree: bool) -> None:
        self.beginning, self.bars, self.tree = beginning, bars, tree

    def pull(self, bar: np.ndarray) -> np.ndarray:
        """(n, 6) the cotangent of the first pose from that of the last."""
        beginning = self.beginning
        placement = beginning._rest().placement
        for number, placed in reversed(list(enumerate(beginning.placings))):
            x, q, coordinate, target = placed.after
            placement.work.joints["target"] = target
            placement.put(x, q, coordinate)
            if number == 0 or not self.tree:  # of a tree that was closed once, moved joints open nothing
                bar = self._pull_closing(placed, placement, bar)
            if placed.moved:
                bar = self._pull_moving(placed, placement, bar.copy())
        beginning._rest().placement.evaluate()
        return bar

    def _pull_closing(self, placed: Placed, placement: Any, bar: np.ndarray) -> np.ndarray:
        saddle, G = pose_saddle(placement, placed.held)
        weights, _ = saddle.pull(bar.ravel())
        rows, ties, wishes = self.beginning._by_element(-weights, placed.held)
        pull_row_values(placement.model, placement.work, self.bars, rows, ties, wishes)
        return (bar.ravel() - G.T @ weights).reshape(-1, 6)

    def _pull_moving(self, placed: Placed, placement: Any, bar: np.ndarray) -> np.ndarray:
        mechanism, before, old = placement.mechanism, np.zeros_like(bar), Rotation.from_quat(placed.before[1], scalar_first=True)
        x, turns = zip(*place(mechanism, list(zip(placed.before[0], old)), {name: placed.held[name] for name in placed.moved}))
        x, turns = np.array(x), Rotation.concatenate(turns)
        placement.put(x, turns.as_quat(scalar_first=True))
        R, old_R = turns.as_matrix(), old.as_matrix()
        order = tree_order(mechanism, spanning_tree(mechanism, placed.moved))
        weights, directions = np.zeros((2, len(mechanism.joints), 6))
        for index, here, there in reversed(order):
            if mechanism.joints[index].name in placed.moved:
                on_here = self._pull_joint(placement, index, here, there, bar[there], weights, directions)
                if here >= 0:
                    bar[here] += on_here
                continue
            force, moment = bar[there, :3], bar[there, 3:]
            before[there, 3:] += moment
            if here < 0:
                before[there, :3] += force
                continue
            moved = (R[here] @ old_R[here].T).T @ force
            before[there, :3] += moved
            before[here, :3] -= moved
            turned = R[here].T @ (np.cross(x[there] - x[here], force) + R[there] @ moment)
            before[here, 3:] -= turned
            bar[here, :3] += force
            bar[here, 3:] += turned
        roots = np.setdiff1d(np.arange(len(bar)), [there for *_, there in order])
        before[roots] += bar[roots]
        pull_row_values(placement.model, placement.work, self.bars, weights, np.zeros(len(placement.model.couplings)), directions)
        return before

    @staticmethod
    def _pull_joint(placement: Any, index: int, here: int, there: int, bar: np.ndarray, weights: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """(6,) what a moved joint passes on to the body before it; ``weights`` and ``directions`` (joints, 6) get those of its rows and coordinates."""
        joint, work = placement.model.joints[index], placement.work
        held = [k for k in range(int(joint["locks"])) if joint["row_direction"][k] < 0]
        free = int(joint["free"])
        gradients = np.zeros((free, 12))
        direction_rows(placement.model, work, index, gradients)
        by_parent = np.concatenate([work.joints["Gp"][index, held], gradients[:, :6]])
        by_child = np.concatenate([work.joints["Gc"][index, held], gradients[:, 6:]])
        by_there, by_here = (by_child, by_parent) if there == joint["child"] else (by_parent, by_child)
        found = np.linalg.solve(by_there.T, -bar)
        weights[index, held], directions[index, :free] = found[: len(held)], found[len(held) :]
        return by_here.T @ found
