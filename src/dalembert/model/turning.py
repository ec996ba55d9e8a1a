"""How the wrenches of forces on two bodies turn with their poses: the parts that second derivatives of rows are made of.

``K`` is (12, 12): its rows are force and torque on the parent, then on the child; its columns are the parent's
position and body-frame rotation, then the child's. ``y``, ``C`` as in ``frames``. With [a] the cross-product matrix,

    dy = R_p^T (dx_c - dx_p) + [y] dphi_p - C [p_c] dphi_c,      d(C^T a) = [C^T a] dphi_c - C^T [a] dphi_p,
    d(C c) = [C c] dphi_p - C [c] dphi_c.
"""
from __future__ import annotations

from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import (
    add9,
    mat_mul,
    mat_mul_t,
    mat_t_mul,
    mat_t_vec,
    mat_vec,
    outer3,
    scale3,
    scale9,
    skew,
    transpose,
)

IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


@inline
def add_block(K, row, col, scale, A):
    """Add ``scale * A`` (a 9-tuple) to a 3x3 block of ``K``."""
    K[row, col] += scale * A[0]
    K[row, col + 1] += scale * A[1]
    K[row, col + 2] += scale * A[2]
    K[row + 1, col] += scale * A[3]
    K[row + 1, col + 1] += scale * A[4]
    K[row + 1, col + 2] += scale * A[5]
    K[row + 2, col] += scale * A[6]
    K[row + 2, col + 1] += scale * A[7]
    K[row + 2, col + 2] += scale * A[8]


@kernel
def add_translation(K, A, y, C, Rp, point):
    """A force ``A``, fixed in the parent's frame, at the child's point: F = R_p A, T_p = A x y, T_c = p x C^T A."""
    cross_A = skew(A)
    turn = mat_mul(Rp, cross_A)
    add_block(K, 6, 3, -1.0, turn)
    add_block(K, 0, 3, 1.0, turn)
    pull = mat_mul_t(cross_A, Rp)
    add_block(K, 3, 6, 1.0, pull)
    add_block(K, 3, 0, -1.0, pull)
    add_block(K, 3, 3, 1.0, mat_mul(cross_A, skew(y)))
    arm = skew(point)
    add_block(K, 3, 9, -1.0, mat_mul(cross_A, mat_mul(C, arm)))
    add_block(K, 9, 9, 1.0, mat_mul(arm, skew(mat_t_vec(C, A))))
    add_block(K, 9, 3, -1.0, mat_mul(arm, mat_t_mul(C, cross_A)))


@kernel
def add_distance(K, size, n, length, y, C, Rp, point):
    """A force ``size`` along the unit vector ``n`` between the points: that of a fixed direction, and its turning."""
    add_translation(K, scale3(size, n), y, C, Rp, point)
    P = scale9(size / length, add9(IDENTITY, scale9(-1.0, outer3(n, n))))
    to_x = mat_mul_t(P, Rp)
    to_p = mat_mul(P, skew(y))
    to_c = scale9(-1.0, mat_mul(P, mat_mul(C, skew(point))))
    arm = mat_mul_t(skew(point), C)
    back = scale9(-1.0, skew(y))
    for sign, col, D in ((1.0, 6, to_x), (-1.0, 0, to_x), (1.0, 3, to_p), (1.0, 9, to_c)):
        force = mat_mul(Rp, D)
        add_block(K, 6, col, sign, force)
        add_block(K, 0, col, -sign, force)
        add_block(K, 3, col, sign, mat_mul(back, D))
        add_block(K, 9, col, sign, mat_mul(arm, D))


@kernel
def add_parent_torque(K, a, C):
    """A torque ``a`` fixed in the parent's frame: T_p = -a, T_c = C^T a."""
    add_block(K, 9, 9, 1.0, skew(mat_t_vec(C, a)))
    add_block(K, 9, 3, -1.0, mat_t_mul(C, skew(a)))


@kernel
def add_child_torque(K, c, C):
    """A torque ``c`` fixed in the child's frame: T_c = c, T_p = -C c."""
    add_block(K, 3, 9, 1.0, mat_mul(C, skew(c)))
    add_block(K, 3, 3, -1.0, skew(mat_vec(C, c)))


@kernel
def add_rotation(K, size, a, b, C):
    """A rotation row: T_c = size a x C^T b, T_p = size b x C a."""
    cross_a = scale9(size, skew(a))
    cross_b = scale9(size, skew(b))
    add_block(K, 9, 9, 1.0, mat_mul(cross_a, skew(mat_t_vec(C, b))))
    add_block(K, 9, 3, -1.0, mat_mul(cross_a, mat_t_mul(C, skew(b))))
    add_block(K, 3, 3, 1.0, mat_mul(cross_b, skew(mat_vec(C, a))))
    add_block(K, 3, 9, -1.0, mat_mul(cross_b, mat_mul(C, skew(a))))


@kernel
def add_rotations(K, M, C):
    """Rotation rows together, with M the sum of size a b^T: by [u][v] = v u^T - (u . v) 1 and [u] C = C [C^T u], each block is a product of matrices."""
    N = mat_t_mul(C, transpose(M))
    P = mat_mul(C, M)
    trace = scale9(-(N[0] + N[4] + N[8]), IDENTITY)
    on_child, on_parent = add9(N, trace), add9(P, trace)
    add_block(K, 9, 9, 1.0, on_child)
    add_block(K, 9, 3, -1.0, mat_mul_t(on_child, C))
    add_block(K, 3, 3, 1.0, on_parent)
    add_block(K, 3, 9, -1.0, mat_mul(on_parent, C))
