"""Bars of contacts, limits and dry friction: of their equations, impulses and numbers, and of velocities that they look at."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dalembert.contact.records import CONTACT, Scene
from dalembert.contact.shapes import SLOTS
from dalembert.model.records import F, fields

#: weights ``b`` of a contact's rows, bars of its impulses; of its law and of its features, in the bodies' frames
CONTACT_BAR = np.dtype(fields(
    F, b=3, gamma=0, beta=2, friction=0, restitution=0, point=3, radius=0, axis=3, semi=3, turn=3, offset=0, point_b=3, radius_b=0, axis_b=3,
))
LIMIT_BAR = np.dtype(fields(F, b=3, gamma=2, beta=0, end=2, restitution=0, friction=0))
#: of a round geometry of pairs
ROUND_BAR = np.dtype(fields(F, radius=0, half=0, position=3))


class Touch(NamedTuple):
    """Bars of the nodes of a scene; velocities (n + 1, 6) just after and just before the knot, and what they change by in half a
    step, with their bars; records of the bodies (``x``, ``R``) where rows are taken, and bars of that pose (``x``, ``phi``).
    """

    contacts: np.ndarray
    limits: np.ndarray
    rounds: np.ndarray
    velocity: np.ndarray  # (3, n + 1, 6)
    dvelocity: np.ndarray  # (3, n + 1, 6)
    rows_at: Any
    rows_bar: Any
    field: np.ndarray  # (2, 3, 6) scratch: what the rows of a node are weighed with, by its bodies
    trial: np.ndarray  # scratch: contacts of a pair at another pose


AFTER, BEFORE, FALL = range(3)


def new_touch(scene: Scene, bodies: int, rows_at: Any, rows_bar: Any) -> Touch:
    """Zeros for a scene of ``bodies`` bodies (the world is one more)."""
    return Touch(
        np.zeros(len(scene.contacts), CONTACT_BAR), np.zeros(len(scene.limits), LIMIT_BAR), np.zeros(len(scene.shapes.geometries), ROUND_BAR),
        np.zeros((3, bodies + 1, 6)), np.zeros((3, bodies + 1, 6)), rows_at, rows_bar, np.zeros((2, 3, 6)),
        np.zeros(SLOTS, CONTACT),
    )
