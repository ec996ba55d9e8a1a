"""Placings of bodies forwards: how the pose of a start changes with numbers of its mechanism, or with a coordinate that was asked for.

A placing moves joints, subtrees carried along, and then closes the rows step by step. The tree, and the equations of each step, W s + G^T m = 0 and G s = -g, are
differenced (sixth order) along the change; at the end, rows that are open by the change alone are closed by the smallest move.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.formulations.maximal.forward import OFFSETS
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.assembly import Closing, pose_equations, pose_saddle, row_values
from dalembert.model.placement import Placement
from dalembert.model.topology import place
from dalembert.simulation.placing import Placed, Wishes
from dalembert.simulation.setup import Setup
from dalembert.spatial import so3


def turns_of(orientation: np.ndarray) -> Rotation:
    return Rotation.from_quat(orientation, scalar_first=True)


def put_at(
    placement: Placement, position: np.ndarray, orientation: np.ndarray, coordinate: np.ndarray, target: np.ndarray, pose: np.ndarray | None = None,
) -> None:
    """Put bodies at a pose, or at one with a tangent (n, 6) added."""
    if pose is not None:
        position = position + pose[:, :3]
        orientation = (turns_of(orientation) * Rotation.from_rotvec(pose[:, 3:])).as_quat(scalar_first=True)
    placement.work.joints["target"] = target
    placement.put(position, orientation, coordinate)


def step_solved(placement: Placement, held: Wishes, closing: Closing) -> tuple[Any, Any, np.ndarray]:
    """The system of a step that closed loops at its beginning, where the placement is, its rows, and the multipliers of the step."""
    saddle, G = pose_saddle(placement, held, closing.damping)
    _, multipliers = saddle.solve(np.zeros(saddle.count), -row_values(placement, held), rounds=1)
    return saddle, G, multipliers


def largest_turn(closing: Closing) -> tuple[int, int]:
    """Body and entry of a step by which it was shortened."""
    body, axis = np.unravel_index(int(np.argmax(np.abs(closing.step[:, 3:]))), closing.step[:, 3:].shape)
    return int(body), 3 + int(axis)


def turn_maps(turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, 3, 3) of turns q exp(turn): how they pass on a tangent of q, and how they change with the turn."""
    return Rotation.from_rotvec(-turn).as_matrix(), np.array([np.array(so3.right_jacobian(tuple(one))).reshape(3, 3) for one in turn])


class PlacingPush:
    """Tangents of the placings of a start (``Beginning``).

    ``beside``: set-ups of the mechanisms at the offsets of differences of length ``step``; ``owner``: the joint whose wish changes along ``change`` with them, if one does.
    """

    def __init__(self, beginning: Any, beside: list[Setup], step: float, owner: str = "", change: np.ndarray | None = None) -> None:
        self.beginning, self.beside, self.step = beginning, beside, step
        self.owner, self.change = owner, change

    def push(self, pose: np.ndarray) -> np.ndarray:
        """(n, 6) the tangent of the last pose from that of the first."""
        placings = self.beginning.placings
        set_at = max((i for i, placed in enumerate(placings) if self.owner in placed.moved), default=len(placings))
        for number, placed in enumerate(placings):
            pose = self._placed(placed, pose, number >= set_at)
        self.beginning._rest().placement.evaluate()
        return pose

    def _placed(self, placed: Placed, pose: np.ndarray, asked: bool) -> np.ndarray:
        if placed.moved:
            trees = [
                self._moved(setup.mechanism, placed.before, self._wished(placed.moved, offset, asked), offset * self.step * pose)
                for setup, (offset, _) in zip(self.beside, OFFSETS)
            ]
            middle = self._moved(self.beginning.mechanism, placed.before, placed.moved, np.zeros_like(pose))
            pose = np.asarray(sum(
                weight / self.step * np.concatenate([x - middle[0], (middle[1].inv() * R).as_rotvec()], axis=1) for (x, R), (_, weight) in zip(trees, OFFSETS)
            ))
        for closing in placed.way:
            pose = self._stepped(placed, closing, pose, asked)
        x, q, coordinate, target = placed.after
        opened = 0.0
        for setup, (offset, weight) in zip(self.beside, OFFSETS):
            put_at(setup.placement, x, q, self._coordinates(coordinate, offset, asked), self._targets(target, offset, asked), offset * self.step * pose)
            opened = opened + weight / self.step * row_values(setup.placement, self._wished(placed.held, offset, asked))
        here = self.beginning._rest().placement
        put_at(here, x, q, coordinate, target)
        saddle, _ = pose_saddle(here, placed.held)
        return pose + saddle.step(-np.asarray(opened), rounds=50).reshape(-1, 6)

    def _stepped(self, placed: Placed, closing: Closing, pose: np.ndarray, asked: bool) -> np.ndarray:
        """(n, 6) the tangent of the pose after a step that closed loops."""
        (_, _, coordinate, target), whole = placed.after, closing.step.ravel()
        here = self.beginning._rest().placement
        put_at(here, closing.position, closing.orientation, coordinate, target)
        saddle, _, multipliers = step_solved(here, placed.held, closing)
        change = 0.0
        for setup, (offset, weight) in zip(self.beside, OFFSETS):
            known = self._coordinates(coordinate, offset, asked)
            put_at(setup.placement, closing.position, closing.orientation, known, self._targets(target, offset, asked), offset * self.step * pose)
            left = pose_equations(setup.placement, self._wished(placed.held, offset, asked), whole, multipliers)
            change = change + weight / self.step * np.concatenate(left)
        change = np.asarray(change)
        by = saddle.solve(-change[: whole.size], -change[whole.size :], rounds=1)[0].reshape(-1, 6)
        part = closing.part
        if part < 1.0:
            at = largest_turn(closing)
            by = by - closing.step * (by[at] / closing.step[at])
        before, along = turn_maps(part * closing.step[:, 3:])
        turned = np.einsum("nij,nj->ni", before, pose[:, 3:]) + np.einsum("nij,nj->ni", along, part * by[:, 3:])
        return np.concatenate([pose[:, :3] + part * by[:, :3], turned], axis=1)

    def _wished(self, wishes: Wishes, offset: float, asked: bool) -> Wishes:
        if not asked or self.change is None or self.owner not in wishes:
            return wishes
        return {**wishes, self.owner: wishes[self.owner] + offset * self.step * self.change}

    def _coordinates(self, coordinate: np.ndarray, offset: float, asked: bool) -> np.ndarray:
        """(joints, 6) with that of the joint whose wish changes, where no pose tells it."""
        if not asked or self.change is None or self.beginning.mechanism[self.owner].type.has_rows:
            return coordinate
        known, index = coordinate.copy(), self.beginning.mechanism[self.owner].index
        known[index, : len(self.change)] += offset * self.step * self.change
        return known

    def _targets(self, target: np.ndarray, offset: float, asked: bool) -> np.ndarray:
        if not asked or self.change is None:
            return target
        element, moved = self.beginning.mechanism[self.owner], target.copy()
        driven = self.beginning.model.joints["driven"][element.index, : len(self.change)] != 0
        moved[element.index, : len(self.change)][driven] += offset * self.step * self.change[driven]
        return moved

    @staticmethod
    def _moved(mechanism: Mechanism, before: tuple[np.ndarray, np.ndarray], moved: Wishes, pose: np.ndarray) -> tuple[np.ndarray, Rotation]:
        """Positions and orientations after joints were moved from a pose with a tangent added."""
        turned = turns_of(before[1]) * Rotation.from_rotvec(pose[:, 3:])
        x, R = zip(*place(mechanism, list(zip(before[0] + pose[:, :3], turned)), moved))
        return np.array(x), Rotation.concatenate(R)
