"""The springs of a free rotation: a potential of the rotation vector from the rest orientation."""
from __future__ import annotations

from dalembert.kernels import inline, kernel
from dalembert.model.turning import add_block, add_parent_torque
from dalembert.spatial import quaternion, so3
from dalembert.spatial.tuples import (
    add3,
    column,
    dot3,
    load3,
    load9,
    mat_mul,
    mat_mul_t,
    mat_t_mul,
    mat_vec,
    neg3,
    transpose,
)


@inline
def ball_spring(joint, first, E):
    """Torque on the child of a ball joint's springs, in the parent's canonical frame, and their energy."""
    return rotation_spring(load9(joint.rest_frame), load3(joint.stiffness[first:]), E)


@inline
def rotation_spring(rest, K, E):
    """Torque of springs with stiffnesses K (N m/rad) on what is turned by ``E``, in the frame it is turned in, and their energy.

    The energy is phi^T K phi / 2 with phi = log(rest^T E); phi' = J_l^-1(phi) omega gives the torque -J_r^-1(phi) K phi.
    """
    phi = quaternion.log(quaternion.from_matrix(mat_t_mul(rest, E)))
    moment = (K[0] * phi[0], K[1] * phi[1], K[2] * phi[2])
    energy = 0.5 * dot3(moment, phi)
    return mat_vec(rest, neg3(mat_vec(so3.right_jacobian_inverse(phi), moment))), energy


@kernel
def add_ball_spring(K, joint, first, E, C):
    """How the wrenches of ``ball_spring`` change with the poses of both bodies."""
    rest = load9(joint.rest_frame)
    frame = mat_mul(load9(joint.frame_parent), rest)
    phi = quaternion.log(quaternion.from_matrix(mat_t_mul(rest, E)))
    stiffness = (joint.stiffness[first], joint.stiffness[first + 1], joint.stiffness[first + 2])
    moment = (stiffness[0] * phi[0], stiffness[1] * phi[1], stiffness[2] * phi[2])
    inverse = so3.right_jacobian_inverse(phi)
    to_phi = so3.left_jacobian_inverse(phi)
    # D: change of the torque, in the rest frame, with a rotation of the child in that frame
    columns = (
        _ball_column(phi, moment, stiffness, inverse, column(to_phi, 0)),
        _ball_column(phi, moment, stiffness, inverse, column(to_phi, 1)),
        _ball_column(phi, moment, stiffness, inverse, column(to_phi, 2)),
    )
    D = transpose((*columns[0], *columns[1], *columns[2]))
    D = mat_mul(frame, mat_mul_t(D, frame))
    add_parent_torque(K, mat_vec(frame, neg3(mat_vec(inverse, moment))), C)
    DC = mat_mul(D, C)
    add_block(K, 3, 9, -1.0, DC)
    add_block(K, 3, 3, 1.0, D)
    add_block(K, 9, 9, 1.0, mat_t_mul(C, DC))
    add_block(K, 9, 3, -1.0, mat_t_mul(C, D))


@inline
def rotation_spring_change(rest, K, E, turned):
    """How the torque of ``rotation_spring`` changes when E turns on by a small ``turned`` in its own frame."""
    phi = quaternion.log(quaternion.from_matrix(mat_t_mul(rest, E)))
    moment, inverse = (K[0] * phi[0], K[1] * phi[1], K[2] * phi[2]), so3.right_jacobian_inverse(phi)
    return mat_vec(rest, _ball_column(phi, moment, K, inverse, mat_vec(inverse, turned)))


@inline
def _ball_column(phi, moment, stiffness, inverse, dphi):
    turned = mat_vec(so3.right_jacobian_inverse_derivative(phi, dphi), moment)
    stretched = mat_vec(inverse, (stiffness[0] * dphi[0], stiffness[1] * dphi[1], stiffness[2] * dphi[2]))
    return neg3(add3(turned, stretched))
