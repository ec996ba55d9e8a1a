"""Heun's method for ``da.zoo.double_pendulum`` in two angles: plain numbers, so that an hour of it takes seconds."""
from __future__ import annotations

from math import cos, pi, sin

import numpy as np

#: links of 1 m and 1 kg, radius 0.05 m: inertia about the own centre, kg m^2
LENGTH, MASS, GRAVITY, INERTIA = 1.0, 1.0, 9.81, (3.0 * 0.05**2 + 1.0) / 12.0
NEAR = INERTIA + 1.25 * MASS * LENGTH**2
FAR = INERTIA + 0.25 * MASS * LENGTH**2
TIE = 0.5 * MASS * LENGTH**2
WEIGHT = MASS * GRAVITY * LENGTH

State = tuple[float, float, float, float]


def accelerations(a: float, b: float, u: float, w: float) -> tuple[float, float]:
    """Of the angles a and b of the two links from hanging, at rates u and w."""
    c, s = TIE * cos(a - b), TIE * sin(a - b)
    f, g = -s * w * w - 1.5 * WEIGHT * sin(a), s * u * u - 0.5 * WEIGHT * sin(b)
    below = NEAR * FAR - c * c
    return (FAR * f - c * g) / below, (NEAR * g - c * f) / below


def energy(state: np.ndarray) -> np.ndarray:
    """(N,) of states (N, 4): kinetic and potential, zero at the height of the pivot, J."""
    a, b, u, w = state.T
    return 0.5 * (NEAR * u * u + FAR * w * w) + TIE * np.cos(a - b) * u * w - WEIGHT * (1.5 * np.cos(a) + 0.5 * np.cos(b))


def heun(steps: int, h: float, every: int = 1) -> np.ndarray:
    """States (N, 4) at every so many steps of ``h`` (s), from the horizontal at rest."""
    a = b = 0.5 * pi
    u = w = 0.0
    kept: list[State] = [(a, b, u, w)]
    for k in range(1, steps + 1):
        du, dw = accelerations(a, b, u, w)
        u1, w1 = u + h * du, w + h * dw
        eu, ew = accelerations(a + h * u, b + h * w, u1, w1)
        a, b = a + 0.5 * h * (u + u1), b + 0.5 * h * (w + w1)
        u, w = u + 0.5 * h * (du + eu), w + 0.5 * h * (dw + ew)
        if k % every == 0:
            kept.append((a, b, u, w))
    return np.array(kept)
