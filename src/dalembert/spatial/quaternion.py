"""Unit quaternions: Hamilton product, scalar first (w, x, y, z), turning body vectors into world vectors.

Arguments are anything indexable, results are tuples. Rotation vectors are in radians.
"""
from __future__ import annotations

from math import atan2, cos, sin, sqrt

from dalembert.kernels import inline
from dalembert.spatial.tuples import cross3, dot3


@inline
def multiply(p, q):
    """The product p q: first q turns, then p."""
    return (p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3],
            p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2],
            p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1],
            p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0])


@inline
def conjugate(q):
    """The inverse of a unit quaternion."""
    return (q[0], -q[1], -q[2], -q[3])


@inline
def normalize(q):
    """q at unit length, with its sign kept; not finite for q = 0."""
    s = 1.0 / sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    return (s * q[0], s * q[1], s * q[2], s * q[3])


@inline
def rotate(q, v):
    """R(q) v: a body vector in world axes."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    tx = 2.0 * (y * v[2] - z * v[1])
    ty = 2.0 * (z * v[0] - x * v[2])
    tz = 2.0 * (x * v[1] - y * v[0])
    return (v[0] + w * tx + y * tz - z * ty,
            v[1] + w * ty + z * tx - x * tz,
            v[2] + w * tz + x * ty - y * tx)


@inline
def rotate_inverse(q, v):
    """R(q)^T v: a world vector in body axes."""
    return rotate(conjugate(q), v)


@inline
def to_matrix(q):
    """The rotation matrix of a unit quaternion, as a row-major 9-tuple."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    return (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y),
            2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x),
            2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y))


@inline
def from_matrix(R):
    """The unit quaternion, with w >= 0, of a rotation matrix (row-major 9-tuple); divides by the largest component only."""
    trace = R[0] + R[4] + R[8]
    if trace >= R[0] and trace >= R[4] and trace >= R[8]:
        w, x, y, z = 1.0 + trace, R[7] - R[5], R[2] - R[6], R[3] - R[1]
    elif R[0] >= R[4] and R[0] >= R[8]:
        w, x, y, z = R[7] - R[5], 1.0 + R[0] - R[4] - R[8], R[1] + R[3], R[2] + R[6]
    elif R[4] >= R[8]:
        w, x, y, z = R[2] - R[6], R[1] + R[3], 1.0 + R[4] - R[0] - R[8], R[5] + R[7]
    else:
        w, x, y, z = R[3] - R[1], R[2] + R[6], R[5] + R[7], 1.0 + R[8] - R[0] - R[4]
    s = -1.0 if w < 0.0 else 1.0
    return normalize((s * w, s * x, s * y, s * z))


@inline
def exp(phi):
    """The unit quaternion of a rotation vector phi."""
    t = dot3(phi, phi)
    if t < 1e-8:
        s = 0.5 - t * (1.0 / 48.0 - t / 3840.0)
        c = 1.0 - t * (1.0 / 8.0 - t / 384.0)
    else:
        theta = sqrt(t)
        s = sin(0.5 * theta) / theta
        c = cos(0.5 * theta)
    return (c, s * phi[0], s * phi[1], s * phi[2])


@inline
def log(q):
    """The rotation vector of a quaternion, at most pi long and the same for q and -q; the length of q does not matter."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    # half a turn has two rotation vectors: the one whose first nonzero entry is positive is taken
    negative = w < 0.0 or (w == 0.0 and (x < 0.0 or (x == 0.0 and (y < 0.0 or (y == 0.0 and z < 0.0)))))
    sign = -1.0 if negative else 1.0
    w = abs(w)
    n2 = x * x + y * y + z * z
    if n2 < 1e-8 * w * w:
        r = n2 / (w * w)
        s = 2.0 / w * (1.0 - r * (1.0 / 3.0 - r / 5.0))
    else:
        n = sqrt(n2)
        s = 2.0 * atan2(n, w) / n
    s *= sign
    return (s * x, s * y, s * z)


@inline
def _perpendicular(a):
    """A vector at right angles to the unit vector a, of length at least sqrt(2/3)."""
    x, y, z = abs(a[0]), abs(a[1]), abs(a[2])
    if x <= y and x <= z:
        return (0.0, a[2], -a[1])
    if y <= z:
        return (-a[2], 0.0, a[0])
    return (a[1], -a[0], 0.0)


@inline
def between(a, b):
    """The shortest turn of the unit vector a onto the unit vector b; of opposite vectors, any half turn that does it."""
    d = dot3(a, b)
    n = cross3(a, b)
    if d >= 0.0:
        return normalize((1.0 + d, n[0], n[1], n[2]))
    # a is first turned onto -b, which is near, and then by half a turn about an axis at right angles to b
    near = normalize((1.0 - d, -n[0], -n[1], -n[2]))
    if dot3(n, n) < 1e-24:
        n = _perpendicular(b)
    _, x, y, z = normalize((0.0, n[0], n[1], n[2]))
    e = x * b[0] + y * b[1] + z * b[2]
    half_turn = normalize((0.0, x - e * b[0], y - e * b[1], z - e * b[2]))
    return multiply(half_turn, near)
