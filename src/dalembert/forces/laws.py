"""Force laws of one length or angle: force, its derivatives K by the length and D by the rate, and the energy stored.

What pushes, what is differentiated, what is stored and what is reported all come from these functions.
"""
from __future__ import annotations

from dalembert.kernels import inline


@inline
def spring_damper(stiffness, damping, stretch, rate):
    """A linear spring and damper: force (N or N m), K, D, energy (J)."""
    return -stiffness * stretch - damping * rate, -stiffness, -damping, 0.5 * stiffness * stretch * stretch
