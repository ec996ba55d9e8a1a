"""Placings of bodies backwards: how the pose of a start follows from the pose that bodies were given, and from geometry.

A placing moves joints, subtrees carried along, and then closes the rows by the smallest move. Between bodies h and t of the tree whose joint
stays as it is, t keeps its place beside h: dx_t = dx_h + (R_h (phi_h - phi_h')) x (x_t - x_h) + D (dx_t' - dx_h') and
phi_t = phi_t' + R_t^T R_h (phi_h - phi_h'), with primes before the placing and D = R_h R_h'^T. A joint that is moved has all six of its rows and
coordinates given: they say where t is.

A step that closes rows has W s + G^T m = 0 and G s = -g. With W h + G^T n = b and G h = 0 for a cotangent b of s, poses and geometry get
-n^T dg - n^T dG s - m^T dG h, wishes w of the rows g = c - w get n, and the metric -h^T dW s.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.formulations.maximal.bars import Bars
from dalembert.formulations.maximal.pull_knot import pull_row_rates, pull_row_values
from dalembert.gradients.moving_pull import MovingPull
from dalembert.gradients.placing_push import largest_turn, step_solved, turn_maps
from dalembert.model.assembly import Closing, coordinate_errors, pose_saddle
from dalembert.model.moving import relative_twist
from dalembert.model.pose import direction_rows
from dalembert.model.topology import place, spanning_tree, tree_order
from dalembert.simulation.placing import Placed, Wishes
from dalembert.spatial import so3


class PlacingPull:
    """The placings of a start (``Beginning``); what geometry gets is added to ``bars``. ``tree``: whether there are no loops."""

    def __init__(self, beginning: Any, bars: Bars, tree: bool) -> None:
        self.beginning, self.bars, self.tree = beginning, bars, tree
        self.sizes = np.zeros(len(beginning.position))
        self.wishes = np.zeros((len(beginning.placings), len(beginning.model.joints), 6))

    def wishes_since(self, name: str) -> np.ndarray:
        """(joints, 6) bars of wished coordinates, as rates, from the placing on that moved a joint last."""
        at = max(i for i, placed in enumerate(self.beginning.placings) if name in placed.moved)
        return self.wishes[at:].sum(axis=0)

    def pull(self, bar: np.ndarray) -> np.ndarray:
        """(n, 6) the cotangent of the first pose from that of the last."""
        beginning = self.beginning
        placement = beginning._rest().placement
        for number, placed in reversed(list(enumerate(beginning.placings))):
            x, q, coordinate, target = placed.after
            placement.work.joints["target"] = target
            placement.put(x, q, coordinate)
            if number == 0 or not self.tree:  # of a tree that was closed once, moved joints open nothing
                bar = self._pull_closing(placed, placement, bar, self.wishes[number])
            for closing in reversed(placed.way):
                placement.put(closing.position, closing.orientation, coordinate)
                bar = self._pull_step(placed, placement, closing, bar, self.wishes[number])
            if placed.moved:
                bar = self._pull_moving(placed, placement, bar.copy(), self.wishes[number])
        beginning._rest().placement.evaluate()
        return bar

    def _pull_closing(self, placed: Placed, placement: Any, bar: np.ndarray, wished: np.ndarray) -> np.ndarray:
        saddle, G = pose_saddle(placement, placed.held)
        weights, _ = saddle.pull(bar.ravel())
        rows, ties, wishes = self.beginning._by_element(-weights, placed.held)
        pull_row_values(placement.model, placement.work, self.bars, rows, ties, wishes)
        for element, weight in self.beginning.moving_weights(-weights):
            wished[element.index, : element.type.freedom] += MovingPull(placement, element, self.bars).held(weight)
        self._take_pose()
        self._to_wishes(placement, rows, wishes, wished)
        return (bar.ravel() - G.T @ weights).reshape(-1, 6)

    def _pull_step(self, placed: Placed, placement: Any, closing: Closing, bar: np.ndarray, wished: np.ndarray) -> np.ndarray:
        """(n, 6) the cotangent of the pose before a step from that after it."""
        saddle, _, multipliers = step_solved(placement, placed.held, closing)
        before, along = turn_maps(closing.part * closing.step[:, 3:])
        by = closing.part * np.concatenate([bar[:, :3], np.einsum("nij,ni->nj", along, bar[:, 3:])], axis=1)
        if closing.part < 1.0:
            at = largest_turn(closing)
            by[at] -= np.sum(by * closing.step) / closing.step[at]
        weights, motion = saddle.pull(by.ravel(), rounds=1)
        motion = motion.reshape(-1, 6)
        self.sizes -= np.sum(motion[:, 3:] * closing.step[:, 3:], axis=1)
        model, work = placement.model, placement.work
        for moved, forces in ((closing.step, weights), (motion, multipliers)):
            pull_row_rates(model, work, self.bars, np.ascontiguousarray(moved), *self.beginning._by_element(-forces, placed.held))
        rows, ties, wishes = self.beginning._by_element(-weights, placed.held)
        by_pose, by_wish = self._about_missed(placement, placed.held, wishes)
        pull_row_values(model, work, self.bars, rows, ties, by_pose)
        self._to_wishes(placement, rows, by_wish, wished)
        return np.concatenate([bar[:, :3], np.einsum("nij,ni->nj", before, bar[:, 3:])], axis=1) + self._take_pose()

    def _take_pose(self) -> np.ndarray:
        """(n, 6) what bars of bodies were given, which are empty then."""
        bodies = self.bars.bodies
        found = np.concatenate([bodies["x"][:-1], bodies["phi"][:-1]], axis=1)
        bodies["x"], bodies["phi"] = 0.0, 0.0
        return found

    def _about_missed(self, placement: Any, held: Wishes, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights (joints, 6) of wished coordinates as those of poses and of wishes: they differ where a free rotation is missed by a turn."""
        by_pose, by_wish = weights.copy(), weights.copy()
        for name, wish in held.items():
            element = placement.mechanism[name]
            balls = [i for i, (kind, _) in enumerate(element.type.directions) if kind == "ball"]
            if balls:
                missed = tuple(coordinate_errors(placement, element, wish)[balls])
                own = weights[element.index, balls]
                by_pose[element.index, balls] = np.array(so3.left_jacobian_inverse(missed)).reshape(3, 3).T @ own
                by_wish[element.index, balls] = np.array(so3.right_jacobian_inverse(missed)).reshape(3, 3).T @ own
        return by_pose, by_wish

    @staticmethod
    def _to_wishes(placement: Any, rows: np.ndarray, wishes: np.ndarray, wished: np.ndarray) -> None:
        """Rows are coordinates minus what was wished, or minus targets."""
        wished -= wishes
        for index, joint in enumerate(placement.model.joints):
            for k in range(int(joint["locks"])):
                if joint["row_direction"][k] >= 0:
                    wished[index, joint["row_direction"][k]] -= rows[index, k]

    def _pull_moving(self, placed: Placed, placement: Any, bar: np.ndarray, wished: np.ndarray) -> np.ndarray:
        mechanism, before, old = placement.mechanism, np.zeros_like(bar), Rotation.from_quat(placed.before[1], scalar_first=True)
        x, turns = zip(*place(mechanism, list(zip(placed.before[0], old)), placed.moved))
        x, turns = np.array(x), Rotation.concatenate(turns)
        placement.put(x, turns.as_quat(scalar_first=True))
        R, old_R = turns.as_matrix(), old.as_matrix()
        order = tree_order(mechanism, spanning_tree(mechanism, placed.moved))
        weights, directions = np.zeros((2, len(mechanism.joints), 6))
        for index, here, there in reversed(order):
            if mechanism.joints[index].name in placed.moved:
                on_here = self._pull_joint(placement, index, there, bar[there], weights, directions, wished)
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
        self._take_pose()
        wished -= directions
        return before

    def _pull_joint(
        self, placement: Any, index: int, there: int, bar: np.ndarray, weights: np.ndarray, directions: np.ndarray, wished: np.ndarray,
    ) -> np.ndarray:
        """(6,) what a moved joint passes on to the body before it; ``weights`` and ``directions`` (joints, 6) get those of its rows and coordinates,
        ``wished`` the bars of coordinates that no pose tells.
        """
        joint, work = placement.model.joints[index], placement.work
        element = placement.mechanism.joints[index]
        if not element.type.has_rows:
            twist = relative_twist(placement, element)
            by_there, by_here = (twist[:, 6:], twist[:, :6]) if there == joint["child"] else (twist[:, :6], twist[:, 6:])
            found = np.linalg.solve(by_there.T, -bar)
            wished[index, : int(joint["free"])] += MovingPull(placement, element, self.bars).held(found)
            return by_here.T @ found
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
