"""Where a run with contacts has a kink: steps in which something just opens, closes, begins or stops to slide,
or in which restitution was limited.

In the former the slack and the impulse of a node are both as small as the interior point leaves them, and the derivative that it gives lies
between those of both sides.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dalembert.formulations.maximal.touching_tape import TouchingTape

if TYPE_CHECKING:
    from dalembert.formulations.maximal.contact_engine import Section, TouchingEngine

#: a node whose impulse has between this part and all but this part of the say is neither open nor closed
UNDECIDED = 1e-3
#: impulses per weight (m/s) below which nothing is pressed enough to stick
LOOSE = 1e-6
LIMITED = "has a restitution that the work of its impact limits, to a part that derivatives take as given"


class Kink(NamedTuple):
    """What happens in the step from a knot of the tape on."""

    knot: int
    what: str


def _undecided(push: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """Whether neither of two numbers that exclude one another is much larger than the other one."""
    share = push / np.maximum(push + slack, 1e-300)
    return (share > UNDECIDED) & (share < 1.0 - UNDECIDED)


def find_kinks(engine: TouchingEngine, tape: TouchingTape, section: Section) -> list[Kink]:
    """The kinks of a section of a tape."""
    found: list[Kink] = []
    entries = tape.arrays.span[section.begin : section.end]
    knots = tape.knots()[section.begin : section.end]
    kept, contacts = section.kept, section.scene.contacts
    at = np.repeat(knots, entries[:, 1])
    fixed = contacts[kept["index"]]
    push = kept["gamma"] / fixed["weight"]
    for k in np.flatnonzero(_undecided(push, kept["s"])):
        found.append(Kink(int(at[k]), f"contact {engine.labels[int(fixed['owner'][k])]!r} just opens or closes"))
    spare = (fixed["friction"] * kept["gamma"] - np.linalg.norm(kept["beta"], axis=1)) / fixed["weight"]
    rubs = (fixed["friction"] > 0.0) & (push > LOOSE) & (fixed["edges"] == 0)
    for k in np.flatnonzero(rubs & _undecided(np.maximum(spare, 0.0), kept["psi"])):
        found.append(Kink(int(at[k]), f"contact {engine.labels[int(fixed['owner'][k])]!r} just begins or stops to slide"))
    for k in np.flatnonzero((kept["bounced"] != 0) & (kept["granted"] < 1.0)):
        found.append(Kink(int(at[k]), f"contact {engine.labels[int(fixed['owner'][k])]!r} {LIMITED}"))
    limits, rows = section.scene.limits, tape.arrays.limits[section.begin : section.end]
    names = [engine.mechanism.joints[int(limit["joint"])].name for limit in limits]
    for side, end in enumerate(("lower", "upper")):
        near = (rows["awake"][..., side] != 0) & _undecided(rows["gamma"][..., side] / limits["weight"], rows["s"][..., side])
        found += [Kink(int(knots[e]), f"joint {names[i]!r} just reaches or leaves its {end} limit") for e, i in np.argwhere(near)]
    granted = rows["bounced"].any(axis=-1) & (limits["restitution"] > 0.0) & (rows["granted"] < 1.0)
    found += [Kink(int(knots[e]), f"joint {names[i]!r} {LIMITED}") for e, i in np.argwhere(granted)]
    cap, beta, psi = rows["cap"], rows["beta"], rows["psi"]
    rubs = (cap > LOOSE * limits["weight"]) & _undecided(np.maximum(cap - np.abs(beta), 0.0) / limits["weight"], psi)
    found += [Kink(int(knots[e]), f"joint {names[i]!r} just begins or stops to move against its dry friction") for e, i in np.argwhere(rubs)]
    return found
