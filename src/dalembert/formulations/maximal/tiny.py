"""Cotangents that have died away: what joints hold decays from step to step, and numbers below the normal ones take a processor many times as long."""
from __future__ import annotations

from dalembert.kernels import inline

#: a cotangent this small is none; products of two are normal numbers still
TINY = 1e-150


@inline
def alive(value):
    """A number, or zero for one that has died away."""
    return value if abs(value) > TINY else 0.0
