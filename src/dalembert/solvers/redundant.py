"""Redundant rows: kept, and solved with a compliance per row whose effect refinement removes (proximal method of multipliers)."""
from __future__ import annotations

from math import floor

from dalembert.kernels import inline

#: compliance of a row relative to its own scale, where a mechanism has loops
COMPLIANCE = 1e-8
#: factors of it to try: poses near a singular one ask for less or more. The answer is the same.
COMPLIANCES = (1.0, 1e-2, 1e-3, 1e-4, 1e2)
#: how often a step that found no solution from any of them is tried again from a place beside that where it got stuck: in a
#: singular pose, branches of the motion meet, and between them Newton has no direction
NUDGES = 3


@inline
def nudge(body, attempt):
    """A number from -0.1 to 0.1 that is another one for every body and attempt, and always the same."""
    share = 0.618034 * (body + 1) + 0.37 * attempt
    return 0.2 * (share - floor(share)) - 0.1
