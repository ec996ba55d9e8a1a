"""Rows with equations of their own, on top of the two atomic ones: screws and rods. A new one is an entry in each function here.

``kind``: the row's kind; ``a``: its axis on the parent; ``y``, ``C`` as in ``frames``. The joint that has the row names it in
``Joint.extra``; ``build`` says which numbers of the joint it takes.
"""
from __future__ import annotations

from math import pi
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.kernels import inline, kernel
from dalembert.model.frames import frame_rotation, translation_gradient, turn_angle, unit_distance, unwrap
from dalembert.model.turning import add_distance, add_parent_torque, add_translation
from dalembert.spatial.tuples import add3, cross3, dot3, load3, mat_t_vec, mat_vec, scale3, sub3

if TYPE_CHECKING:
    from dalembert.mechanism.mechanism import JointElement

#: kinds of rows by their joints' word for them; the numbers follow those of records.COMPLIANT
OWN_ROWS = {"helix": 10, "distance": 11}
HELIX, DISTANCE_ROW = OWN_ROWS.values()


def build(element: JointElement) -> tuple[float, float]:
    """The row's constant (the value it keeps) and parameter, from the joint."""
    kind = element.type
    if kind.extra == "helix":
        return 0.0, kind.pitch  # type: ignore[attr-defined]
    if kind.length is not None:  # type: ignore[attr-defined]
        return kind.length, 0.0  # type: ignore[attr-defined]
    ends = [
        body.position + Rotation.from_quat(body.orientation, scalar_first=True).apply(point)
        for body, point in ((element.parent, element.point_parent), (element.child, element.point_child))
    ]
    return float(np.linalg.norm(ends[1] - ends[0])), 0.0


@inline
def own_value(joint, at, kind, a, y, C):
    """What the row keeps at its constant: the advance of a screw less that of its angle, or the distance of two points."""
    if kind == DISTANCE_ROW:
        return unit_distance(joint, y)[1]
    angle = unwrap(turn_angle(frame_rotation(joint, C), 0), at.coordinate[0])
    return dot3(a, sub3(y, load3(joint.point_parent))) - joint.pitch / (2.0 * pi) * angle


@inline
def own_gradient(joint, kind, a, y, C, R_parent):
    """Force on the child (world), torques on parent and child (body frames) of a unit multiplier."""
    if kind == DISTANCE_ROW:
        n, _ = unit_distance(joint, y)
        return translation_gradient(n, y, C, R_parent, load3(joint.point_child))
    force, parent, child = translation_gradient(a, y, C, R_parent, load3(joint.point_child))
    lead = joint.pitch / (2.0 * pi)
    return force, add3(parent, scale3(lead, a)), sub3(child, scale3(lead, mat_t_vec(C, a)))


@kernel
def add_own(K, joint, kind, size, a, y, C, Rp):
    """Second derivative times a multiplier ``size``, added to K (12, 12)."""
    if kind == DISTANCE_ROW:
        n, length = unit_distance(joint, y)
        add_distance(K, size, n, length, y, C, Rp, load3(joint.point_child))
    else:
        add_translation(K, scale3(size, a), y, C, Rp, load3(joint.point_child))
        add_parent_torque(K, scale3(-size * joint.pitch / (2.0 * pi), a), C)


@inline
def own_bias(joint, kind, a, y, y1, y2, C, w_parent, w_child):
    """Second time derivative at constant velocities, from those of ``y``."""
    if kind == DISTANCE_ROW:
        n, length = unit_distance(joint, y)
        along = dot3(n, y1)
        return dot3(n, y2) + (dot3(y1, y1) - along * along) / length
    return dot3(a, y2) + joint.pitch / (2.0 * pi) * dot3(a, cross3(w_parent, mat_vec(C, w_child)))
