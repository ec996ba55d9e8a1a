"""How wrenches of joints turn with the poses of their bodies, transposed: ``model.turning`` times weights, without its matrix.

For weights ``first`` and ``second`` of the equations of parent and child (6 each, forces before torques), the bars are by the child's position (world;
the parent's is minus that) and by body-frame turns of the parent and of the child.
"""
from __future__ import annotations

from dalembert.kernels import inline, kernel
from dalembert.model.frames import ZERO3
from dalembert.model.records import DISTANCE, SECOND, SLIDE
from dalembert.spatial.tuples import add3, column, cross3, load3, load9, mat_t_vec, mat_vec, neg3, scale3, sub3


@inline
def turn_translation(first, second, A, y, C, Rp, point):
    """A force ``A``, fixed in the parent's frame, at the child's point: F = R_p A, T_p = A x y, T_c = p x C^T A."""
    d = mat_t_vec(Rp, sub3(load3(second), load3(first)))
    by_y = cross3(load3(first[3:]), A)
    by_c = cross3(load3(second[3:]), point)
    parent = add3(cross3(A, d), sub3(cross3(by_y, y), cross3(mat_vec(C, by_c), A)))
    child = sub3(cross3(by_c, mat_t_vec(C, A)), cross3(mat_t_vec(C, by_y), point))
    return mat_vec(Rp, by_y), parent, child


@inline
def turn_rotation(first, second, a, b, C):
    """A rotation row: T_c = a x C^T b, T_p = b x C a. By both turns."""
    on_child, on_parent = cross3(load3(second[3:]), a), cross3(load3(first[3:]), b)
    parent = sub3(cross3(on_parent, mat_vec(C, a)), cross3(mat_vec(C, on_child), b))
    child = sub3(cross3(on_child, mat_t_vec(C, b)), cross3(mat_t_vec(C, on_parent), a))
    return parent, child


@inline
def is_plain(joint, k):
    """Whether a row is along a free direction that ``turn_direction`` knows."""
    return joint.row_direction[k] >= 0 and joint.free_kind[joint.row_direction[k]] != DISTANCE


@kernel
def turn_direction(first, second, joint, i, size, y, C, Rp):
    """A force or torque ``size`` along a free direction, which is no distance: a slide, or a torque fixed in one of the frames."""
    kind, axis = joint.free_kind[i], joint.free_axis[i]
    if kind == SLIDE:
        return turn_translation(first, second, scale3(size, column(load9(joint.frame_parent), axis)), y, C, Rp, load3(joint.point_child))
    if kind == SECOND:  # T_c = c, T_p = -C c
        c, on_parent = scale3(size, column(load9(joint.frame_child), axis)), load3(first[3:])
        return ZERO3, cross3(mat_vec(C, c), on_parent), cross3(mat_t_vec(C, on_parent), c)
    a, on_child = scale3(size, column(load9(joint.frame_parent), axis)), load3(second[3:])  # T_p = -a, T_c = C^T a
    return ZERO3, neg3(cross3(mat_vec(C, on_child), a)), cross3(on_child, mat_t_vec(C, a))
