"""A joint's two frames: where the child's point lies, how the frames are turned, angles that go on beyond a turn.

Throughout, ``y`` is the child's joint point seen from the parent's centre of mass, in the parent's frame, and
``C = R_parent^T R_child``; ``joint`` is a record of the model.
"""
from __future__ import annotations

from math import atan2, pi

from dalembert.kernels import inline
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import (
    add3,
    cross3,
    dot3,
    load3,
    load9,
    mat_mul,
    mat_t_mul,
    mat_t_vec,
    mat_vec,
    norm3,
    scale3,
    sub3,
)

ZERO3 = (0.0, 0.0, 0.0)


@inline
def relative(joint, x_parent, R_parent, x_child, R_child):
    """``y`` and ``C`` of a joint at a pose of its two bodies."""
    C = mat_t_mul(R_parent, R_child)
    y = add3(mat_t_vec(R_parent, sub3(x_child, x_parent)), mat_vec(C, load3(joint.point_child)))
    return y, C


@inline
def translation_gradient(a, y, C, R_parent, point_child):
    """Gradient of ``a . R_parent^T d`` for a direction ``a`` fixed in the parent (Quaternion eq. 17, 18)."""
    return mat_vec(R_parent, a), cross3(a, y), cross3(point_child, mat_t_vec(C, a))


@inline
def frame_rotation(joint, C):
    """Orientation of the child's canonical frame in the parent's."""
    return mat_t_mul(load9(joint.frame_parent), mat_mul(C, load9(joint.frame_child)))


@inline
def unwrap(angle, previous):
    """The value of ``angle`` modulo a turn that lies nearest to ``previous``."""
    return angle + 2.0 * pi * round((previous - angle) / (2.0 * pi))


@inline
def entry(E, r, c) -> float:
    """Element of a 9-tuple by run-time indices."""
    rows = ((E[0], E[1], E[2]), (E[3], E[4], E[5]), (E[6], E[7], E[8]))
    return rows[r][c]  # pyright: ignore[reportReturnType]


@inline
def unit_distance(joint, y):
    """Vector from the parent's point to the child's, in the parent's frame: direction and length."""
    d = sub3(y, load3(joint.point_parent))
    length = norm3(d)
    return scale3(1.0 / length, d), length


@inline
def turn_angle(E, axis):
    """Angle about a canonical axis, from both of the other two (never from a dot product)."""
    j = (axis + 1) % 3
    k = (axis + 2) % 3
    return atan2(entry(E, k, j) - entry(E, j, k), entry(E, j, j) + entry(E, k, k))


@inline
def ball_vector(E, previous):
    """Rotation vector of ``E``, of all its full-turn equivalents the one nearest to ``previous``."""
    phi = quaternion.log(quaternion.from_matrix(E))
    angle = norm3(phi)
    axis = scale3(1.0 / angle, phi) if angle > 1e-9 else ZERO3
    if angle <= 1e-9:
        size = norm3(previous)
        if size > 1e-9:
            axis = scale3(1.0 / size, previous)
    turns = round((dot3(axis, previous) - angle) / (2.0 * pi))
    return add3(phi, scale3(2.0 * pi * turns, axis))
