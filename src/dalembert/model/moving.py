"""Joints without rows while a mechanism is set up: what they let two bodies do, as rows made from their columns.

Their coordinates are known, since no pose tells them: poses keep these joints where they are, velocities stay within their motion. Geometry is that
of the placement's model; the axes of such joints are their frames'.
"""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.mechanism.factors import SPLINE, motion_columns
from dalembert.mechanism.mechanism import JointElement
from dalembert.model.placement import Placement
from dalembert.spatial.splines import locate, twist_between


def relative_twist(placement: Placement, element: JointElement) -> np.ndarray:
    """(6, 12): the twist (angular, linear) of the child's joint frame against the parent's, in the child's joint frame, from the velocities
    (linear world, angular body) of parent and child.
    """
    joint, bodies = placement.model.joints[element.index], placement.work.bodies
    parent, child = bodies[joint["parent"]], bodies[joint["child"]]
    Rp, Rc = parent["R"].reshape(3, 3), child["R"].reshape(3, 3)
    point = child["x"] + Rc @ joint["point_child"]
    frame = joint["frame_child"].reshape(3, 3)
    to_joint = frame.T @ Rc.T
    rows = np.zeros((6, 12))
    rows[:3, 3:6], rows[:3, 9:] = -to_joint @ Rp, frame.T
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


def columns_by_coordinates(placement: Placement, element: JointElement) -> np.ndarray:
    """(freedom, freedom, 6): how the joint's columns change with each of its coordinates (first axis), by sixth-order differences; splines by the piece where it is."""
    pinned, q, h = [], coordinates_of(placement, element).copy(), 1e-2
    for factor in element.type.factors:
        if factor.kind == SPLINE:
            own = slice(factor.direction, factor.direction + factor.count)
            number, q[own] = locate(factor.cells, factor.closed, q[own])
            factor = factor._replace(pieces=(factor.pieces[number],), cells=(1,) * factor.count, closed=False)
        pinned.append(factor)
    return np.array([
        sum(w * (motion_columns(pinned, q + k * h * e) - motion_columns(pinned, q - k * h * e)) for k, w in ((1, 45.0), (2, -9.0), (3, 1.0))) / (60.0 * h)
        for e in np.eye(len(q))
    ])


def held_rows(placement: Placement, element: JointElement) -> tuple[np.ndarray, np.ndarray]:
    """What holds the joint at its coordinates: how far it is off (6,), m and rad, and the gradients (6, 12)."""
    joint, bodies = placement.model.joints[element.index], placement.work.bodies
    frames = []
    for end in ("parent", "child"):
        body, G = bodies[joint[end]], np.eye(4)
        R = body["R"].reshape(3, 3)
        G[:3, :3], G[:3, 3] = R @ joint[f"frame_{end}"].reshape(3, 3), body["x"] + R @ joint[f"point_{end}"]
        frames.append(G)
    wanted = frames[0] @ element.type.motion(coordinates_of(placement, element))
    return twist_between(wanted, frames[1]), relative_twist(placement, element)


def nearest_coordinates(placement: Placement, element: JointElement) -> np.ndarray:
    """(freedom,) at which the joint's motion is nearest to where its bodies stand, to first order in how far they are from those that are known."""
    known = coordinates_of(placement, element)
    off, _ = held_rows(placement, element)
    moved = np.linalg.pinv(columns(placement, element).T) @ off
    found = known + moved
    balls = [i for i, (kind, _) in enumerate(element.type.directions) if kind == "ball"]
    if balls:  # turns in the parent's axes
        found[balls] = (Rotation.from_rotvec(moved[balls]) * Rotation.from_rotvec(known[balls])).as_rotvec()
    return found


def asked_rates(placement: Placement, element: JointElement, rates: Mapping[str, np.ndarray]) -> np.ndarray:
    """(freedom,) rates of the joint's drives, and those that are wished; NaN where there is neither."""
    freedom = element.type.freedom
    driven = placement.model.joints["driven"][element.index, :freedom].astype(bool)
    return np.where(driven, placement.work.joints["rate"][element.index, :freedom], rates.get(element.name, np.full(freedom, np.nan)))


def twist_rows(placement: Placement, element: JointElement, asked: np.ndarray) -> np.ndarray:
    """(rows, 6): what is asked of the joint's relative twist: nothing across its motion, then ``asked`` ones (freedom,) of its rates."""
    S = columns(placement, element).T
    left, size, _ = np.linalg.svd(S)
    across = left[:, np.count_nonzero(size > 1e-10 * size.max(initial=0.0)) :].T
    return np.concatenate([across, np.linalg.pinv(S)[asked]])


def rate_rows(placement: Placement, element: JointElement, rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What keeps velocities within the joint's motion, and those rates (freedom,) that are not NaN: right-hand sides and gradients."""
    asked = ~np.isnan(rate)
    rows = twist_rows(placement, element, asked)
    return np.concatenate([np.zeros(len(rows) - np.count_nonzero(asked)), rate[asked]]), rows @ relative_twist(placement, element)
