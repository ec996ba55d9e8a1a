"""Joints without rows while a mechanism is set up: what they let two bodies do, as rows made from their columns.

Their coordinates are known, since no pose tells them: poses keep these joints where they are, velocities stay within their motion.
"""
from __future__ import annotations

import numpy as np

from dalembert.mechanism.mechanism import JointElement
from dalembert.model.placement import Placement
from dalembert.spatial.splines import twist_between


def relative_twist(placement: Placement, element: JointElement) -> np.ndarray:
    """(6, 12): the twist (angular, linear) of the child's joint frame against the parent's, in the child's joint frame, from the velocities
    (linear world, angular body) of parent and child.
    """
    joint, bodies = placement.model.joints[element.index], placement.work.bodies
    parent, child = bodies[joint["parent"]], bodies[joint["child"]]
    Rp, Rc = parent["R"].reshape(3, 3), child["R"].reshape(3, 3)
    point = child["x"] + Rc @ element.point_child
    to_joint = element.frame_child.T @ Rc.T
    rows = np.zeros((6, 12))
    rows[:3, 3:6], rows[:3, 9:] = -to_joint @ Rp, element.frame_child.T
    rows[3:, :3], rows[3:, 6:9] = -to_joint, to_joint
    # v + w x r = v - [r] w, in the world
    rows[3:, 3:6], rows[3:, 9:] = to_joint @ _skew(point - parent["x"]) @ Rp, -to_joint @ _skew(point - child["x"]) @ Rc
    return rows


def _skew(v: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def coordinates_of(placement: Placement, element: JointElement) -> np.ndarray:
    """(freedom,) as they are known."""
    return placement.work.joints["coordinate"][element.index, : element.type.freedom]


def columns(placement: Placement, element: JointElement) -> np.ndarray:
    """(freedom, 6) of the joint at its coordinates."""
    return element.type.motion_columns(coordinates_of(placement, element))


def held_rows(placement: Placement, element: JointElement) -> tuple[np.ndarray, np.ndarray]:
    """What holds the joint at its coordinates: how far it is off (6,), m and rad, and the gradients (6, 12)."""
    joint, bodies = placement.model.joints[element.index], placement.work.bodies
    frames = []
    for end, axes, point in (("parent", element.frame_parent, element.point_parent), ("child", element.frame_child, element.point_child)):
        body, G = bodies[joint[end]], np.eye(4)
        R = body["R"].reshape(3, 3)
        G[:3, :3], G[:3, 3] = R @ axes, body["x"] + R @ point
        frames.append(G)
    wanted = frames[0] @ element.type.motion(coordinates_of(placement, element))
    return twist_between(wanted, frames[1]), relative_twist(placement, element)


def rate_rows(placement: Placement, element: JointElement, rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What keeps velocities within the joint's motion, and those rates (freedom,) that are not NaN: right-hand sides and gradients."""
    S, twist = columns(placement, element).T, relative_twist(placement, element)
    left, size, _ = np.linalg.svd(S)
    across = left[:, np.count_nonzero(size > 1e-10 * size.max(initial=0.0)) :].T
    asked = ~np.isnan(rate)
    along = np.linalg.pinv(S)[asked]
    return np.concatenate([np.zeros(len(across)), rate[asked]]), np.concatenate([across, along]) @ twist
