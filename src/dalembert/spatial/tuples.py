"""Small vectors and 3x3 matrices as tuples, which Numba keeps in registers.

Arguments are anything indexable (tuples or arrays), results are tuples. A 3x3 matrix is a row-major 9-tuple.
"""
from __future__ import annotations

from math import sqrt

from dalembert.kernels import inline

# vectors

@inline
def add3(a, b):
    """a + b."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@inline
def sub3(a, b):
    """a - b."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@inline
def scale3(s, a):
    """s a."""
    return (s * a[0], s * a[1], s * a[2])


@inline
def neg3(a):
    """-a."""
    return (-a[0], -a[1], -a[2])


@inline
def dot3(a, b):
    """a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inline
def cross3(a, b):
    """a x b."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@inline
def norm3(a):
    """The Euclidean length of a."""
    return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


# matrices

@inline
def mat_vec(R, v):
    """R v."""
    return (R[0] * v[0] + R[1] * v[1] + R[2] * v[2],
            R[3] * v[0] + R[4] * v[1] + R[5] * v[2],
            R[6] * v[0] + R[7] * v[1] + R[8] * v[2])


@inline
def mat_t_vec(R, v):
    """R^T v."""
    return (R[0] * v[0] + R[3] * v[1] + R[6] * v[2],
            R[1] * v[0] + R[4] * v[1] + R[7] * v[2],
            R[2] * v[0] + R[5] * v[1] + R[8] * v[2])


@inline
def mat_mul(A, B):
    """A B."""
    return (A[0] * B[0] + A[1] * B[3] + A[2] * B[6], A[0] * B[1] + A[1] * B[4] + A[2] * B[7], A[0] * B[2] + A[1] * B[5] + A[2] * B[8],
            A[3] * B[0] + A[4] * B[3] + A[5] * B[6], A[3] * B[1] + A[4] * B[4] + A[5] * B[7], A[3] * B[2] + A[4] * B[5] + A[5] * B[8],
            A[6] * B[0] + A[7] * B[3] + A[8] * B[6], A[6] * B[1] + A[7] * B[4] + A[8] * B[7], A[6] * B[2] + A[7] * B[5] + A[8] * B[8])


@inline
def mat_t_mul(A, B):
    """A^T B."""
    return (A[0] * B[0] + A[3] * B[3] + A[6] * B[6], A[0] * B[1] + A[3] * B[4] + A[6] * B[7], A[0] * B[2] + A[3] * B[5] + A[6] * B[8],
            A[1] * B[0] + A[4] * B[3] + A[7] * B[6], A[1] * B[1] + A[4] * B[4] + A[7] * B[7], A[1] * B[2] + A[4] * B[5] + A[7] * B[8],
            A[2] * B[0] + A[5] * B[3] + A[8] * B[6], A[2] * B[1] + A[5] * B[4] + A[8] * B[7], A[2] * B[2] + A[5] * B[5] + A[8] * B[8])


@inline
def mat_mul_t(A, B):
    """A B^T."""
    return (A[0] * B[0] + A[1] * B[1] + A[2] * B[2], A[0] * B[3] + A[1] * B[4] + A[2] * B[5], A[0] * B[6] + A[1] * B[7] + A[2] * B[8],
            A[3] * B[0] + A[4] * B[1] + A[5] * B[2], A[3] * B[3] + A[4] * B[4] + A[5] * B[5], A[3] * B[6] + A[4] * B[7] + A[5] * B[8],
            A[6] * B[0] + A[7] * B[1] + A[8] * B[2], A[6] * B[3] + A[7] * B[4] + A[8] * B[5], A[6] * B[6] + A[7] * B[7] + A[8] * B[8])


@inline
def transpose(A):
    """A^T."""
    return (A[0], A[3], A[6], A[1], A[4], A[7], A[2], A[5], A[8])


@inline
def add9(A, B):
    """A + B."""
    return (A[0] + B[0], A[1] + B[1], A[2] + B[2], A[3] + B[3], A[4] + B[4], A[5] + B[5], A[6] + B[6], A[7] + B[7], A[8] + B[8])


@inline
def scale9(s, A):
    """s A."""
    return (s * A[0], s * A[1], s * A[2], s * A[3], s * A[4], s * A[5], s * A[6], s * A[7], s * A[8])


@inline
def skew(v):
    """The matrix [v]x with [v]x a = v x a."""
    return (0.0, -v[2], v[1],
            v[2], 0.0, -v[0],
            -v[1], v[0], 0.0)


@inline
def outer3(a, b):
    """a b^T."""
    return (a[0] * b[0], a[0] * b[1], a[0] * b[2],
            a[1] * b[0], a[1] * b[1], a[1] * b[2],
            a[2] * b[0], a[2] * b[1], a[2] * b[2])


@inline
def diagonal9(d):
    """The diagonal matrix of a 3-vector."""
    return (d[0], 0.0, 0.0,
            0.0, d[1], 0.0,
            0.0, 0.0, d[2])


@inline
def row(R, k):
    """Row k of R."""
    return (R[3 * k], R[3 * k + 1], R[3 * k + 2])


@inline
def column(R, k):
    """Column k of R."""
    return (R[k], R[k + 3], R[k + 6])


@inline
def inverse9(A):
    """A^-1 by cofactors; not finite when A is singular."""
    c0 = A[4] * A[8] - A[5] * A[7]
    c1 = A[5] * A[6] - A[3] * A[8]
    c2 = A[3] * A[7] - A[4] * A[6]
    s = 1.0 / (A[0] * c0 + A[1] * c1 + A[2] * c2)
    return (s * c0, s * (A[2] * A[7] - A[1] * A[8]), s * (A[1] * A[5] - A[2] * A[4]),
            s * c1, s * (A[0] * A[8] - A[2] * A[6]), s * (A[2] * A[3] - A[0] * A[5]),
            s * c2, s * (A[1] * A[6] - A[0] * A[7]), s * (A[0] * A[4] - A[1] * A[3]))


@inline
def sym_inverse(A):
    """A^-1 of a symmetric A, of which the upper triangle is read; the result is symmetric to the last bit."""
    c0 = A[4] * A[8] - A[5] * A[5]
    c1 = A[2] * A[5] - A[1] * A[8]
    c2 = A[1] * A[5] - A[2] * A[4]
    s = 1.0 / (A[0] * c0 + A[1] * c1 + A[2] * c2)
    xy, xz, yz = s * c1, s * c2, s * (A[1] * A[2] - A[0] * A[5])
    return (s * c0, xy, xz,
            xy, s * (A[0] * A[8] - A[2] * A[2]), yz,
            xz, yz, s * (A[0] * A[4] - A[1] * A[1]))


# between arrays and tuples

@inline
def load3(a):
    """The first 3 entries of an array."""
    return (a[0], a[1], a[2])


@inline
def load4(a):
    """The first 4 entries of an array."""
    return (a[0], a[1], a[2], a[3])


@inline
def load9(a):
    """The first 9 entries of a flat array."""
    return (a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8])


@inline
def store3(a, v):
    """a[:3] = v."""
    a[0] = v[0]; a[1] = v[1]; a[2] = v[2]


@inline
def store4(a, v):
    """a[:4] = v."""
    a[0] = v[0]; a[1] = v[1]; a[2] = v[2]; a[3] = v[3]


@inline
def store9(a, v):
    """a[:9] = v, for a flat array."""
    a[0] = v[0]; a[1] = v[1]; a[2] = v[2]
    a[3] = v[3]; a[4] = v[4]; a[5] = v[5]
    a[6] = v[6]; a[7] = v[7]; a[8] = v[8]
