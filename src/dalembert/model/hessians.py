"""Second derivatives of joint rows and forces: how the wrenches on both bodies change with their poses (``turning``)."""
from __future__ import annotations

from dalembert.kernels import kernel
from dalembert.model.frames import unit_distance
from dalembert.model.own_rows import add_own
from dalembert.model.records import DISTANCE, ROTATION, SECOND, SLIDE, TRANSLATION
from dalembert.model.rows import direction_gradient
from dalembert.model.turning import (
    add_child_torque,
    add_distance,
    add_parent_torque,
    add_rotation,
    add_rotations,
    add_translation,
)
from dalembert.spatial.tuples import add3, add9, column, load3, load9, outer3, scale3


@kernel
def add_direction(K, joint, i, size, y, C, Rp):
    """A force or torque ``size`` along a free direction."""
    kind = joint.free_kind[i]
    axis = joint.free_axis[i]
    if kind == SLIDE:
        add_translation(K, scale3(size, column(load9(joint.frame_parent), axis)), y, C, Rp, load3(joint.point_child))
    elif kind == DISTANCE:
        n, length = unit_distance(joint, y)
        add_distance(K, size, n, length, y, C, Rp, load3(joint.point_child))
    elif kind == SECOND:
        add_child_torque(K, scale3(size, column(load9(joint.frame_child), axis)), C)
    else:
        add_parent_torque(K, scale3(size, column(load9(joint.frame_parent), axis)), C)


@kernel
def add_row(K, joint, at, k, size, y, C, Rp):
    """A constraint or compliant row with multiplier ``size``."""
    if joint.row_direction[k] >= 0:
        add_direction(K, joint, joint.row_direction[k], size, y, C, Rp)
        return
    kind = joint.row_kind[k]
    if kind == TRANSLATION:
        add_translation(K, scale3(size, load3(joint.row_a[k])), y, C, Rp, load3(joint.point_child))
    elif kind == ROTATION:
        add_rotation(K, size, load3(joint.row_a[k]), load3(joint.row_b[k]), C)
    else:
        add_own(K, joint, kind, size, load3(joint.row_a[k]), y, C, Rp)


@kernel
def add_rows(K, joint, at, multipliers, scale, y, C, Rp):
    """All rows of a joint, with ``scale`` times their multipliers: translations are one force, rotations one sum of axes."""
    A = (0.0, 0.0, 0.0)
    M = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    turns = False
    for k in range(joint.rows):
        kind, size = joint.row_kind[k], scale * multipliers[k]
        if joint.row_direction[k] >= 0 or kind > ROTATION:
            add_row(K, joint, at, k, size, y, C, Rp)
        elif kind == TRANSLATION:
            A = add3(A, scale3(size, load3(joint.row_a[k])))
        else:
            turns = True
            M = add9(M, outer3(scale3(size, load3(joint.row_a[k])), load3(joint.row_b[k])))
    add_translation(K, A, y, C, Rp, load3(joint.point_child))
    if turns:
        add_rotations(K, M, C)


@kernel
def write_direction(gradient, joint, i, y, C, Rp):
    """Gradient (12,) of a free direction by parent and child."""
    force, parent, child = direction_gradient(joint, i, y, C, Rp)
    for c in range(3):
        gradient[c] = -force[c]
        gradient[3 + c] = parent[c]
        gradient[6 + c] = force[c]
        gradient[9 + c] = child[c]
