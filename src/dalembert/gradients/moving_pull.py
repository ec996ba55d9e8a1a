"""Joints without rows at a start, backwards: what holds them, and what keeps velocities within their motion (``model/moving.py``), weighted.

Weights are those of the twist of the child's joint frame against the parent's, in the child's joint frame: a moment m and a force f at the child's
joint point c. With all in the world, m . omega + f . u, omega = Omega_c - Omega_p and u = v_c + Omega_c x r - v_p - Omega_p x (c - x_p).
Twists are S q': where they are kept within the columns S(q), a change of q by itself weighs - (m, f) . dS q'.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.formulations.maximal.bars import Bars
from dalembert.mechanism.mechanism import JointElement
from dalembert.model.moving import columns, columns_by_coordinates, relative_twist
from dalembert.model.placement import Placement
from dalembert.simulation.setup import cross


class MovingPull:
    """One such joint where the placement has it; bars of bodies (x, phi) and of the joint's geometry are added to ``bars``."""

    def __init__(self, placement: Placement, element: JointElement, bars: Bars) -> None:
        self.placement, self.element, self.bars = placement, element, bars
        bodies, self.joint = placement.work.bodies, placement.model.joints[element.index]
        self.parent, self.child = int(self.joint["parent"]), int(self.joint["child"])
        self.Rp, self.Rc = (bodies["R"][i].reshape(3, 3) for i in (self.parent, self.child))
        self.frame = self.Rc @ element.frame_child
        self.arm = self.Rc @ self.joint["point_child"]
        self.point = bodies["x"][self.child] + self.arm
        self.from_parent = self.point - bodies["x"][self.parent]

    def _in_world(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.frame @ weights[:3], self.frame @ weights[3:]

    def held(self, weights: np.ndarray) -> np.ndarray:
        """How far it is from where its coordinates say, weighted (6,): the bars (freedom,) of these."""
        m, f = self._in_world(weights)
        bodies = self.bars.bodies
        bodies["x"][self.child] += f
        bodies["phi"][self.child] += self.Rc.T @ (m + cross(self.arm, f))
        bodies["x"][self.parent] -= f
        bodies["phi"][self.parent] -= self.Rp.T @ (m + cross(self.from_parent, f))
        joint = self.bars.joints[self.element.index]
        joint["point_child"] += self.Rc.T @ f
        joint["turn_child"] += self.Rc.T @ m
        joint["point_parent"] -= self.Rp.T @ f
        joint["turn_parent"] -= self.Rp.T @ (m + cross(self.from_parent - self.Rp @ self.joint["point_parent"], f))
        return -columns(self.placement, self.element) @ weights

    def moving(self, weights: np.ndarray, motion: np.ndarray) -> np.ndarray:
        """Its twist (weights (6,)) for a motion (n, 6) of the bodies: the bars (freedom,) of its coordinates, where that is within its columns."""
        self._twist(weights, motion)
        ends = np.concatenate([motion[i] if i < len(motion) else np.zeros(6) for i in (self.parent, self.child)])
        rates = np.linalg.pinv(columns(self.placement, self.element).T) @ (relative_twist(self.placement, self.element) @ ends)
        return -self.by_coordinates(rates) @ weights

    def by_coordinates(self, rates: np.ndarray) -> np.ndarray:
        """(freedom, 6): how its twist at rates (freedom,) changes with its coordinates."""
        return np.einsum("jik,i->jk", columns_by_coordinates(self.placement, self.element), rates)

    def _twist(self, weights: np.ndarray, motion: np.ndarray) -> None:
        m, f = self._in_world(weights)
        vp, wp, vc, wc = (motion[i, part] if i < len(motion) else np.zeros(3) for i in (self.parent, self.child) for part in (slice(0, 3), slice(3, 6)))
        Wp, Wc = self.Rp @ wp, self.Rc @ wc
        round_centre = cross(Wc, self.arm)
        omega, u = Wc - Wp, vc + round_centre - vp - cross(Wp, self.from_parent)
        bodies, joint = self.bars.bodies, self.bars.joints[self.element.index]
        by_point = cross(Wp, f)
        turned = cross(m, omega) + cross(Wc, m) + cross(f, u) + cross(round_centre, f) + cross(self.arm, by_point)
        bodies["x"][self.child] += by_point
        bodies["phi"][self.child] += self.Rc.T @ turned
        bodies["x"][self.parent] -= by_point
        bodies["phi"][self.parent] -= self.Rp.T @ (cross(Wp, m) + cross(Wp, cross(self.from_parent, f)))
        joint["point_child"] += self.Rc.T @ cross(f, omega)
        joint["turn_child"] += self.Rc.T @ (cross(m, omega) + cross(f, u))

    def own_twist(self, rates: np.ndarray, line: np.ndarray, turn: np.ndarray) -> np.ndarray:
        """The joint's own motion at rates (freedom,), weighted along ``line`` and about ``turn`` (world): the bars of its coordinates. ``line`` and ``turn`` stay."""
        spin, slide = (columns(self.placement, self.element).T @ rates).reshape(2, 3)
        turned = self.Rc.T @ (cross(self.frame @ spin, turn) + cross(self.frame @ slide, line))
        self.bars.bodies["phi"][self.child] += turned
        self.bars.joints["turn_child"][self.element.index] += turned
        return self.by_coordinates(rates) @ np.concatenate([self.frame.T @ turn, self.frame.T @ line])


def twist_in_world(placement: Placement, element: JointElement) -> tuple[np.ndarray, np.ndarray]:
    """Linear rates of the child's joint point and angular rates (freedom, 3) of the child in the world, by one of each coordinate."""
    frame = placement.work.bodies["R"][placement.model.joints["child"][element.index]].reshape(3, 3) @ element.frame_child
    S: Any = columns(placement, element)
    return S[:, 3:] @ frame.T, S[:, :3] @ frame.T
