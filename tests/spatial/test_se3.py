"""Rigid motions against the matrix exponential, finite differences and the identities of the group."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy.linalg import expm

from dalembert.spatial import quaternion, se3

Pose = tuple[np.ndarray, np.ndarray]

twists = arrays(np.float64, 6, elements=st.floats(-1.7, 1.7, allow_subnormal=False))
points = arrays(np.float64, 3, elements=st.floats(-5, 5, allow_subnormal=False))
LINEAR = np.array([0.3, -1.2, 0.7])


def skew(v) -> np.ndarray:
    return np.cross(np.eye(3), v)


def exp(twist) -> Pose:
    return as_pose(se3.exp(np.asarray(twist, dtype=float)))


def as_pose(T) -> Pose:
    return np.array(T[0]), np.array(T[1])


def compose(*poses: Pose) -> Pose:
    result = poses[0]
    for T in poses[1:]:
        result = as_pose(se3.compose(result, T))
    return result


def homogeneous(T: Pose) -> np.ndarray:
    H = np.eye(4)
    H[:3, :3] = np.reshape(quaternion.to_matrix(T[0]), (3, 3))
    H[:3, 3] = T[1]
    return H


def generator(twist) -> np.ndarray:
    H = np.zeros((4, 4))
    H[:3, :3] = skew(twist[:3])
    H[:3, 3] = twist[3:]
    return H


def test_exp_matches_expm(rotation_vectors):
    for phi in rotation_vectors:
        twist = np.concatenate([phi, LINEAR])
        assert_allclose(homogeneous(exp(twist)), expm(generator(twist)), rtol=0, atol=1e-14)


def test_log_undoes_exp(rotation_vectors):
    for phi in rotation_vectors:
        twist = np.concatenate([phi, LINEAR])
        T = exp(twist)
        back = np.array(se3.log(T))
        if np.linalg.norm(phi) < np.pi - 1e-12:
            assert_allclose(back, twist, rtol=1e-13, atol=1e-14)
        assert_allclose(homogeneous(exp(back)), homogeneous(T), rtol=0, atol=1e-14)


@given(twists, twists, points)
def test_composition_is_the_matrix_product(a, b, x):
    S, T = exp(a), exp(b)
    H = homogeneous(S) @ homogeneous(T)
    assert_allclose(homogeneous(compose(S, T)), H, atol=1e-13)
    assert_allclose(homogeneous(as_pose(se3.inverse(S))), np.linalg.inv(homogeneous(S)), atol=1e-13)
    assert_allclose(se3.transform_point(compose(S, T), x), (H @ [*x, 1])[:3], atol=1e-13)
    assert_allclose(se3.inverse_transform_point(S, np.array(se3.transform_point(S, x))), x, atol=1e-13)


@given(twists, twists)
def test_adjoint(a, b):
    T = exp(a)
    conjugated = compose(T, exp(b), as_pose(se3.inverse(T)))
    assert_allclose(homogeneous(exp(se3.adjoint(T) @ b)), homogeneous(conjugated), atol=1e-12)
    assert_allclose(se3.adjoint(T), expm(se3.small_adjoint(a)), atol=1e-12)


@given(twists, twists)
def test_adjoint_is_a_homomorphism(a, b):
    S, T = exp(a), exp(b)
    assert_allclose(se3.adjoint(compose(S, T)), se3.adjoint(S) @ se3.adjoint(T), atol=1e-12)


@given(twists, twists, twists)
def test_power_does_not_depend_on_the_frame(a, twist, wrench):
    T = exp(a)
    assert (se3.coadjoint(T) @ wrench) @ (se3.adjoint(T) @ twist) == pytest.approx(wrench @ twist, abs=1e-11)


def test_a_force_acts_at_an_arm():
    T = (np.array([1.0, 0, 0, 0]), np.array([0, 2.0, 0]))
    assert_allclose(se3.coadjoint(T) @ [0, 0, 0, 0, 0, 1.0], [2, 0, 0, 0, 0, 1])
    assert_allclose(se3.adjoint(T) @ [0, 0, 1.0, 0, 0, 0], [0, 0, 1, 2, 0, 0])


@given(twists, twists)
def test_small_adjoint_is_the_bracket(a, b):
    bracket = generator(a) @ generator(b) - generator(b) @ generator(a)
    assert_allclose(generator(se3.small_adjoint(a) @ b), bracket, atol=1e-14)


def test_jacobians_are_those_of_exp(rotation_vectors):
    h = 4e-3
    weights = {1: 45.0, 2: -9.0, 3: 1.0}
    for phi in rotation_vectors[[1, 6, 10]]:
        twist = np.concatenate([phi, LINEAR])
        back = as_pose(se3.inverse(exp(twist)))
        left, right = np.zeros((2, 6, 6))
        for j, d in enumerate(np.eye(6)):
            for k, w in weights.items():
                for e in (k, -k):
                    moved = exp(twist + e * h * d)
                    left[:, j] += np.sign(e) * w * np.array(se3.log(compose(moved, back))) / (60 * h)
                    right[:, j] += np.sign(e) * w * np.array(se3.log(compose(back, moved))) / (60 * h)
        assert_allclose(se3.left_jacobian(twist), left, rtol=0, atol=1e-12)
        assert_allclose(se3.right_jacobian(twist), right, rtol=0, atol=1e-12)


def test_inverse_jacobians(rotation_vectors):
    for phi in rotation_vectors:
        twist = np.concatenate([phi, LINEAR])
        assert_allclose(se3.left_jacobian(twist) @ se3.left_jacobian_inverse(twist), np.eye(6), rtol=0, atol=1e-14)
        assert_allclose(se3.right_jacobian(twist) @ se3.right_jacobian_inverse(twist), np.eye(6), rtol=0, atol=1e-14)


@given(twists)
def test_jacobian_identities(a):
    assert_allclose(se3.left_jacobian(a), se3.adjoint(exp(a)) @ se3.right_jacobian(a), atol=1e-12)
    assert_allclose(se3.right_jacobian(a), se3.left_jacobian(-a), atol=1e-14)
    assert_allclose(se3.left_jacobian(a) @ a, a, atol=1e-13)
