"""Impulses of rows in the equations of bodies."""
from __future__ import annotations

from dalembert.kernels import inline


@inline
def subtract_impulse(r, G, mu):
    """Subtract the impulse of one row from a residual of six."""
    for c in range(6):
        r[c] -= G[c] * mu


@inline
def subtract_impulses(r, G, mu, rows):
    """Subtract the impulses of a joint's rows. They are summed first: each would wait until the one before is written."""
    f0 = f1 = f2 = f3 = f4 = f5 = 0.0
    for k in range(rows):
        size = mu[k]
        f0 += G[k, 0] * size
        f1 += G[k, 1] * size
        f2 += G[k, 2] * size
        f3 += G[k, 3] * size
        f4 += G[k, 4] * size
        f5 += G[k, 5] * size
    r[0] -= f0
    r[1] -= f1
    r[2] -= f2
    r[3] -= f3
    r[4] -= f4
    r[5] -= f5
