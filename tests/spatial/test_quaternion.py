"""Quaternions against scipy's Rotation, and the identities of the group."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

from dalembert.spatial import quaternion

vectors = arrays(np.float64, 3, elements=st.floats(-10, 10, allow_subnormal=False))
unit_vectors = vectors.filter(lambda v: np.linalg.norm(v) > 1e-3).map(lambda v: v / np.linalg.norm(v))
units = arrays(np.float64, 4, elements=st.floats(-1, 1, allow_subnormal=False)).filter(
    lambda q: np.linalg.norm(q) > 1e-3).map(lambda q: q / np.linalg.norm(q))


def scipy_rotation(q) -> Rotation:
    return Rotation.from_quat(np.asarray(q), scalar_first=True)


def array(values) -> np.ndarray:
    return np.array(values, dtype=float)


def test_exp_matches_scipy(rotation_vectors):
    for phi in rotation_vectors:
        expected = Rotation.from_rotvec(phi).as_quat(scalar_first=True)
        assert_allclose(quaternion.exp(phi), expected, rtol=1e-14, atol=3e-16)


def test_log_undoes_exp(rotation_vectors):
    for phi in rotation_vectors:
        q = array(quaternion.exp(phi))
        back = array(quaternion.log(q))
        assert np.linalg.norm(back) <= np.pi * (1 + 4e-16)
        if np.linalg.norm(phi) > np.pi - 1e-12 and phi @ back < 0:
            back = -back
        assert_allclose(back, phi, rtol=1e-13, atol=1e-15 * float(np.linalg.norm(phi)))


def test_log_ignores_sign_and_length(rotation_vectors):
    for phi in rotation_vectors:
        q = array(quaternion.exp(phi))
        assert quaternion.log(q) == quaternion.log(-q)
        assert_allclose(quaternion.log(3.0 * q), quaternion.log(q), rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("v", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, -0.8, 0), (0, 0.6, -0.8)])
def test_a_half_turn_has_one_log(v):
    q = np.array([0.0, *v])
    expected = np.pi * np.array(v)
    assert_allclose(quaternion.log(q), expected, rtol=1e-15)
    assert_allclose(quaternion.log(-q), expected, rtol=1e-15)
    q[0] = -0.0
    assert_allclose(quaternion.log(q), expected, rtol=1e-15)


def test_matrix_and_back(rotation_vectors):
    for phi in rotation_vectors:
        q = array(quaternion.exp(phi))
        R = array(quaternion.to_matrix(q))
        assert_allclose(R.reshape(3, 3), scipy_rotation(q).as_matrix(), rtol=0, atol=1e-15)
        back = array(quaternion.from_matrix(R))
        assert back[0] >= 0
        assert_allclose(back * np.sign(back @ q), q, rtol=0, atol=5e-16)
        # a rotation smaller than the rounding of 1 survives in the off-diagonal entries
        if np.linalg.norm(phi) < 3:
            assert_allclose(quaternion.log(back), phi, rtol=1e-12, atol=1e-15 * float(np.linalg.norm(phi)))


@given(units, units, vectors)
def test_products_and_rotations(p, q, v):
    P, Q = scipy_rotation(p), scipy_rotation(q)
    assert_allclose((P * Q).as_matrix().ravel(), quaternion.to_matrix(quaternion.multiply(p, q)), atol=1e-14)
    assert_allclose(quaternion.rotate(q, v), Q.apply(v), atol=1e-13)
    assert_allclose(quaternion.rotate_inverse(q, v), Q.inv().apply(v), atol=1e-13)
    assert_allclose(quaternion.rotate_inverse(q, array(quaternion.rotate(q, v))), v, atol=1e-13)
    assert_allclose(quaternion.multiply(q, array(quaternion.conjugate(q))), (1, 0, 0, 0), atol=1e-14)


@given(units, units, units)
def test_products_associate(p, q, r):
    left = quaternion.multiply(array(quaternion.multiply(p, q)), r)
    right = quaternion.multiply(p, array(quaternion.multiply(q, r)))
    assert_allclose(left, right, atol=1e-14)


@given(units)
def test_exp_undoes_log(q):
    back = array(quaternion.exp(array(quaternion.log(q))))
    assert abs(back @ q) == pytest.approx(1.0, abs=1e-14)
    assert_allclose(scipy_rotation(back).as_matrix(), scipy_rotation(q).as_matrix(), atol=2e-14)


@given(vectors)
def test_exp_of_long_vectors_is_unit(phi):
    assert np.linalg.norm(quaternion.exp(phi)) == pytest.approx(1.0, abs=1e-14)


@given(units, st.floats(1e-100, 1e100))
def test_normalize(q, length):
    assert_allclose(quaternion.normalize(q * length), q, atol=1e-14)


def test_normalize_of_zero_is_not_finite():
    assert not np.isfinite(quaternion.normalize(np.zeros(4))).any()
    assert not np.isfinite(quaternion.log(np.zeros(4))).any()


def assert_turns(a, b):
    q = array(quaternion.between(a, b))
    assert np.linalg.norm(q) == pytest.approx(1.0, abs=1e-15)
    assert_allclose(quaternion.rotate(q, a), b, rtol=0, atol=2e-15)
    angle = 2 * np.arctan2(np.linalg.norm(b - a), np.linalg.norm(a + b))
    assert np.linalg.norm(quaternion.log(q)) == pytest.approx(angle, abs=1e-11)


@given(unit_vectors, unit_vectors)
def test_between_random_vectors(a, b):
    assert_turns(a, b)


@pytest.mark.parametrize("tilt", [0.0, 1e-300, 1e-16, 1e-13, 1e-12, 1e-8, 1e-4])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_between_equal_and_opposite_vectors(tilt, sign):
    rng = np.random.default_rng(3)
    for a in [*np.eye(3), *(v / np.linalg.norm(v) for v in rng.normal(size=(20, 3)))]:
        b = sign * a + tilt * rng.normal(size=3)
        assert_turns(a, b / np.linalg.norm(b))
