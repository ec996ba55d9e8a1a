"""The Jacobians of SO(3): against their definition, their series in high precision and finite differences."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from dalembert.spatial import quaternion, so3

vectors = arrays(np.float64, 3, elements=st.floats(-3, 3, allow_subnormal=False))
STEP = 4e-3


def array(values) -> np.ndarray:
    return np.array(values, dtype=float)


def matrix(values) -> np.ndarray:
    return np.reshape(values, (3, 3))


def derivative(function: Callable[[float], np.ndarray]) -> np.ndarray:
    """The derivative at 0 by central differences of sixth order: error about 1e-13 for smooth functions of size 1."""
    weights = {1: 45.0, 2: -9.0, 3: 1.0}
    return sum((w * (function(k * STEP) - function(-k * STEP)) for k, w in weights.items()), np.zeros(())) / (60 * STEP)


def jacobian_by_series(phi: np.ndarray) -> np.ndarray:
    """J_l = integral of exp(s [phi]) over s in (0, 1), read off one matrix exponential of twice the size."""
    K = np.cross(np.eye(3), phi)
    return expm(np.block([[K, np.eye(3)], [np.zeros((3, 6))]]))[:3, 3:]


def test_exp_matches_scipy(rotation_vectors):
    for phi in rotation_vectors:
        assert_allclose(matrix(so3.exp_matrix(phi)), Rotation.from_rotvec(phi).as_matrix(), rtol=0, atol=1e-15)
        assert_allclose(so3.exp_matrix(phi), quaternion.to_matrix(array(quaternion.exp(phi))), rtol=0, atol=1e-15)


def test_log_undoes_exp(rotation_vectors):
    for phi in rotation_vectors:
        angle = np.linalg.norm(phi)
        back = array(so3.log_matrix(array(so3.exp_matrix(phi))))
        if angle > np.pi - 1e-12 and phi @ back < 0:
            back = -back
        assert_allclose(back, phi, rtol=1e-12, atol=1e-15 if angle < 3 else 2e-15)


def test_left_jacobian_matches_its_integral(rotation_vectors):
    for phi in rotation_vectors:
        assert_allclose(matrix(so3.left_jacobian(phi)), jacobian_by_series(phi), rtol=0, atol=5e-15)


def perturb(phi: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rotation vectors of exp(phi + d) exp(-phi) and of exp(-phi) exp(phi + d)."""
    moved, back = quaternion.exp(phi + d), quaternion.exp(-phi)
    return array(quaternion.log(quaternion.multiply(moved, back))), array(quaternion.log(quaternion.multiply(back, moved)))


def test_jacobians_are_those_of_exp(rotation_vectors):
    for phi in rotation_vectors:
        for k, d in enumerate(np.eye(3)):
            left, right = derivative(lambda e, d=d, phi=phi: np.array(perturb(phi, e * d)))
            assert_allclose(matrix(so3.left_jacobian(phi))[:, k], left, rtol=0, atol=1e-12)
            assert_allclose(matrix(so3.right_jacobian(phi))[:, k], right, rtol=0, atol=1e-12)


def test_inverses(rotation_vectors):
    for phi in rotation_vectors:
        assert_allclose(matrix(so3.left_jacobian(phi)) @ matrix(so3.left_jacobian_inverse(phi)), np.eye(3), rtol=0, atol=2e-15)
        assert_allclose(matrix(so3.right_jacobian(phi)) @ matrix(so3.right_jacobian_inverse(phi)), np.eye(3), rtol=0, atol=2e-15)


@pytest.mark.parametrize("angle", [3.5, 5.0, 6.0])
def test_inverses_beyond_half_a_turn(angle, directions):
    for phi in angle * directions:
        assert_allclose(matrix(so3.left_jacobian(phi)) @ matrix(so3.left_jacobian_inverse(phi)), np.eye(3), rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", ["left_jacobian", "right_jacobian", "left_jacobian_inverse", "right_jacobian_inverse"])
def test_derivatives(name, rotation_vectors, directions):
    function = getattr(so3, name)
    rate = getattr(so3, f"{name}_derivative")
    for phi in rotation_vectors:
        for d in directions[[0, 4, 9, 10]]:
            expected = derivative(lambda e, d=d, phi=phi: array(function(phi + e * d)))
            assert_allclose(rate(phi, d), expected, rtol=0, atol=1e-12)


def test_series_and_closed_forms_meet():
    """Coefficients computed on both sides of the switch at |phi| = 1 agree to rounding."""
    below, above = np.nextafter(1.0, 0.0), 1.0
    for coefficient in (so3._abc, so3._abc_rates, so3._e, so3._e_rate):
        assert_allclose(coefficient(below), coefficient(above), rtol=3e-14)


@given(vectors)
def test_group_identities(phi):
    R = matrix(so3.exp_matrix(phi))
    J = matrix(so3.left_jacobian(phi))
    assert_allclose(R @ R.T, np.eye(3), atol=1e-14)
    assert_allclose(so3.exp_matrix(-phi), R.T.ravel(), atol=1e-14)
    assert_allclose(J, R @ matrix(so3.right_jacobian(phi)), atol=1e-14)
    assert_allclose(so3.right_jacobian(phi), so3.left_jacobian(-phi), atol=1e-15)
    assert_allclose(J @ phi, phi, atol=1e-14)
    assert_allclose(matrix(so3.left_jacobian_inverse(phi)) @ phi, phi, atol=1e-13)


@given(vectors, vectors)
def test_exp_is_equivariant(phi, psi):
    Q = matrix(so3.exp_matrix(psi))
    assert_allclose(matrix(so3.exp_matrix(Q @ phi)), Q @ matrix(so3.exp_matrix(phi)) @ Q.T, atol=1e-14)
    assert_allclose(matrix(so3.left_jacobian(Q @ phi)), Q @ matrix(so3.left_jacobian(phi)) @ Q.T, atol=1e-14)
