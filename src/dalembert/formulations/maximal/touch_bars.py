"""Bars of contacts, limits and dry friction: of their equations, impulses and numbers, and of velocities that they look at."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dalembert.contact.records import Scene
from dalembert.model.records import F, fields

#: weights ``b`` of a contact's rows, bars of its impulses; of its law and of its features, in the bodies' frames
CONTACT_BAR = np.dtype(fields(
    F, b=3, gamma=0, beta=2, friction=0, restitution=0, point=3, radius=0, axis=3, semi=3, turn=3, offset=0, point_b=3, radius_b=0, axis_b=3, belt=3, share=2,
))
#: of bearings: bars of bounds and of the four numbers of their geometry, and with what a bound is weighed
LIMIT_BAR = np.dtype(fields(F, b=3, gamma=2, beta=0, end=2, restitution=0, friction=0, cap=0, seed=0, bearing=4))
#: of a shape of pairs: its place in its body, radius, half length, semi-axes or half sizes (m)
GEOMETRY_BAR = np.dtype(fields(F, radius=0, half=0, semi=3, position=3))

#: of a pose: world, body
POSE_BAR = np.dtype(fields(F, x=3, phi=3))


class Touch(NamedTuple):
    """Bars of the nodes of a scene; velocities (n + 1, 6) just after and just before the knot, and what they change by in half a
    step, with their bars; records of the bodies (``x``, ``R``) where rows are taken and where features were found, and bars of those poses (``x``, ``phi``).
    """

    contacts: np.ndarray
    limits: np.ndarray
    geometries: np.ndarray
    velocity: np.ndarray  # (3, n + 1, 6)
    dvelocity: np.ndarray  # (3, n + 1, 6)
    rows_at: Any
    rows_bar: Any
    found_at: Any
    found_bar: Any
    field: np.ndarray  # (2, 3, 6) scratch: what the rows of a node are weighed with, by its bodies
    middle: np.ndarray  # (2,) scratch: bars of the poses of two bodies elsewhere
    pair: np.ndarray  # (2,) scratch: bars of the shapes of a pair
    codes: np.ndarray  # (4,) scratch: planes that meet in a point
    bounds: np.ndarray  # (k + 3, k) scratch: of the k bounds of bearings


AFTER, BEFORE, FALL = range(3)


def new_touch(scene: Scene, bodies: int, rows: tuple[Any, Any], found: tuple[Any, Any]) -> Touch:
    """Zeros for a scene of ``bodies`` bodies (the world is one more). ``rows``, ``found``: poses with their bars."""
    borne = int(np.count_nonzero(scene.limits["bears"]))
    return Touch(
        np.zeros(len(scene.contacts), CONTACT_BAR), np.zeros(len(scene.limits), LIMIT_BAR), np.zeros(len(scene.shapes.geometries), GEOMETRY_BAR),
        np.zeros((3, bodies + 1, 6)), np.zeros((3, bodies + 1, 6)), *rows, *found, np.zeros((2, 3, 6)), np.zeros(2, POSE_BAR), np.zeros(2, GEOMETRY_BAR),
        np.zeros(4, np.int64), np.zeros((borne + 3, borne)),
    )
