"""The tuple algebra against NumPy."""
from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose

from dalembert.spatial import tuples as tp

A, B = np.random.default_rng(0).normal(size=(2, 3, 3))
a, b = np.random.default_rng(1).normal(size=(2, 3))
S = A @ A.T
AS_ARRAY = pytest.param(lambda x: np.ravel(x), id="array")
AS_TUPLE = pytest.param(lambda x: tuple(np.ravel(x).tolist()), id="tuple")

CASES = {
    "add3": (tp.add3, (a, b), a + b),
    "sub3": (tp.sub3, (a, b), a - b),
    "neg3": (tp.neg3, (a,), -a),
    "dot3": (tp.dot3, (a, b), a @ b),
    "cross3": (tp.cross3, (a, b), np.cross(a, b)),
    "norm3": (tp.norm3, (a,), np.linalg.norm(a)),
    "mat_vec": (tp.mat_vec, (A, a), A @ a),
    "mat_t_vec": (tp.mat_t_vec, (A, a), A.T @ a),
    "mat_mul": (tp.mat_mul, (A, B), A @ B),
    "mat_t_mul": (tp.mat_t_mul, (A, B), A.T @ B),
    "mat_mul_t": (tp.mat_mul_t, (A, B), A @ B.T),
    "transpose": (tp.transpose, (A,), A.T),
    "add9": (tp.add9, (A, B), A + B),
    "skew": (tp.skew, (a,), np.cross(np.eye(3), a)),
    "outer3": (tp.outer3, (a, b), np.outer(a, b)),
    "diagonal9": (tp.diagonal9, (a,), np.diag(a)),
    "inverse9": (tp.inverse9, (A,), np.linalg.inv(A)),
    "sym_inverse": (tp.sym_inverse, (S,), np.linalg.inv(S)),
    "load3": (tp.load3, (a,), a),
    "load9": (tp.load9, (A,), A),
}


@pytest.mark.parametrize("convert", [AS_ARRAY, AS_TUPLE])
@pytest.mark.parametrize("name", CASES)
def test_matches_numpy(name, convert):
    function, arguments, expected = CASES[name]
    result = function(*(convert(x) for x in arguments))
    assert isinstance(result, tuple if np.ndim(expected) else float)
    assert_allclose(result, np.ravel(expected) if np.ndim(expected) else expected, rtol=1e-11, atol=1e-14)


def test_skew_is_the_cross_product():
    assert_allclose(np.reshape(tp.skew(a), (3, 3)) @ b, np.cross(a, b), atol=1e-15)


def test_scales():
    assert_allclose(tp.scale3(2.5, a), 2.5 * a)
    assert_allclose(tp.scale9(2.5, A.ravel()), 2.5 * A.ravel())


@pytest.mark.parametrize("k", range(3))
def test_rows_and_columns(k):
    assert tp.row(A.ravel(), k) == tuple(A[k])
    assert tp.column(A.ravel(), k) == tuple(A[:, k])


def test_a_singular_matrix_has_no_finite_inverse():
    assert not np.isfinite(tp.inverse9(np.ones(9))).any()
    assert not np.isfinite(tp.sym_inverse(np.ones(9))).any()


def test_stores_and_loads_of_record_fields():
    dtype = np.dtype([("v", "f8", 3), ("q", "f8", 4), ("R", "f8", 9)])
    records = np.zeros(2, dtype)

    @njit
    def fill(records):
        r = records[1]
        tp.store3(r.v, (1.0, 2.0, 3.0))
        tp.store4(r.q, (1.0, 2.0, 3.0, 4.0))
        tp.store9(r.R, tp.diagonal9(tp.load3(r.v)))
        return tp.load4(r.q), tp.load9(r.R)

    q, R = fill(records)
    assert q == (1, 2, 3, 4)
    assert R == (1, 0, 0, 0, 2, 0, 0, 0, 3)
    assert records["v"][1].tolist() == [1, 2, 3]
    assert not records["v"][0].any()
