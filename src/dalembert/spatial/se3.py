"""Rigid motions. A pose is (quaternion, translation) and maps child coordinates to parent coordinates, x -> R x + p.

A twist is six numbers (angular, linear); a wrench, its dual, is (torque, force). Angular comes first everywhere.
exp(twist) is the matrix exponential of [[ [angular]x, linear ], [ 0, 0 ]]: following the constant twist, seen from the moving
frame or from the fixed one alike, for unit time. With xi a twist and d a small one,

    exp(xi + d) = exp(J_l(xi) d) exp(xi) = exp(xi) exp(J_r(xi) d)        J_r(xi) = J_l(-xi)
    adjoint(T) xi: the twist xi of the child frame, written in the parent frame;  T exp(xi) T^-1 = exp(adjoint(T) xi)
    coadjoint(T) = adjoint(T)^-T: the same for wrenches

A twist is a rotation vector in dual numbers, angular + eps linear, so that the lower left blocks of the Jacobians are the
directional derivatives of the Jacobians of SO(3). The functions that return 6x6 arrays allocate them.
"""
from __future__ import annotations

import numpy as np

from dalembert.kernels import allocating
from dalembert.spatial import quaternion, so3
from dalembert.spatial.tuples import add3, mat_mul, mat_vec, neg3, skew, sub3


@allocating
def compose(S, T):
    """The pose S T: first T, then S."""
    return quaternion.multiply(S[0], T[0]), add3(quaternion.rotate(S[0], T[1]), S[1])


@allocating
def inverse(T):
    """The pose T^-1."""
    q = quaternion.conjugate(T[0])
    return q, neg3(quaternion.rotate(q, T[1]))


@allocating
def transform_point(T, x):
    """R x + p: a point of the child frame in parent coordinates."""
    return add3(quaternion.rotate(T[0], x), T[1])


@allocating
def inverse_transform_point(T, x):
    """R^T (x - p): a point of the parent frame in child coordinates."""
    return quaternion.rotate_inverse(T[0], sub3(x, T[1]))


@allocating
def exp(twist):
    """The pose reached by a twist (angular, linear) in unit time."""
    angular = (twist[0], twist[1], twist[2])
    linear = (twist[3], twist[4], twist[5])
    return quaternion.exp(angular), mat_vec(so3.left_jacobian(angular), linear)


@allocating
def log(T):
    """The twist, as a 6-tuple with an angular part at most pi long, whose exponential is the pose T."""
    angular = quaternion.log(T[0])
    linear = mat_vec(so3.left_jacobian_inverse(angular), T[1])
    return (angular[0], angular[1], angular[2], linear[0], linear[1], linear[2])


@allocating
def _blocks(diagonal, corner):
    """[[diagonal, 0], [corner, diagonal]] as a (6, 6) array."""
    M = np.zeros((6, 6))
    for i in range(3):
        for j in range(3):
            M[i, j] = M[i + 3, j + 3] = diagonal[3 * i + j]
            M[i + 3, j] = corner[3 * i + j]
    return M


@allocating
def adjoint(T):
    """[[R, 0], [[p] R, R]], (6, 6): twists of the child frame to the parent frame."""
    R = quaternion.to_matrix(T[0])
    return _blocks(R, mat_mul(skew(T[1]), R))


@allocating
def coadjoint(T):
    """[[R, [p] R], [0, R]], (6, 6): wrenches of the child frame to the parent frame."""
    return adjoint(inverse(T)).T.copy()


@allocating
def small_adjoint(twist):
    """ad = [[ [angular], 0 ], [ [linear], [angular] ]], (6, 6): the Lie bracket, and the derivative of adjoint(exp(s twist)) at s = 0."""
    return _blocks(skew(twist[:3]), skew(twist[3:6]))


@allocating
def left_jacobian(twist):
    """J_l(twist), (6, 6)."""
    angular, linear = twist[:3], twist[3:6]
    return _blocks(so3.left_jacobian(angular), so3.left_jacobian_derivative(angular, linear))


@allocating
def right_jacobian(twist):
    """J_r(twist), (6, 6)."""
    angular, linear = twist[:3], twist[3:6]
    return _blocks(so3.right_jacobian(angular), so3.right_jacobian_derivative(angular, linear))


@allocating
def left_jacobian_inverse(twist):
    """J_l(twist)^-1, (6, 6)."""
    angular, linear = twist[:3], twist[3:6]
    return _blocks(so3.left_jacobian_inverse(angular), so3.left_jacobian_inverse_derivative(angular, linear))


@allocating
def right_jacobian_inverse(twist):
    """J_r(twist)^-1, (6, 6)."""
    angular, linear = twist[:3], twist[3:6]
    return _blocks(so3.right_jacobian_inverse(angular), so3.right_jacobian_inverse_derivative(angular, linear))
