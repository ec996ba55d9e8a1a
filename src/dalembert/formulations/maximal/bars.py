"""Cotangents ("bars") of everything that a step in maximal coordinates is made of: what an adjoint pass adds to.

The equations of a step are r(z, p) = 0 in primitives z: poses at the knot and at the end, velocities that dampers see,
impulses. With weights ``b`` of the equations, a pull adds b . dr/dz and b . dr/dp to the bars of z and of the model's numbers p.
Rotations are body-frame tangents throughout.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.model.records import LOAD, F, Model, fields

#: weights of the equations ``b`` (six, and that of a quaternion's length); velocities that dampers see, ``u``, with bars ``du``;
#: bars of the pose at the knot (x, phi) and at the end (xn, phin), of the unknowns (v, w); of the state before and after the
#: step; of the model's numbers and of what the step's inputs add
BODY_BAR = np.dtype(fields(
    F, b=7, u=6, du=6, kept_u=6, kept_du=6, x=3, phi=3, xn=3, phin=3, v=3, w=4, before=18, after=18, passed=4, mass=0, inertia=9, wrench=6, push=6,
))
#: weights of the rows, bars of their impulses, of geometry (points and turns of the frames, body axes) and laws, of the inputs and
#: targets of the step, of momenta (or rates) of reflected inertias before and after it
JOINT_BAR = np.dtype(fields(
    F, b=6, mu=6, point_parent=3, point_child=3, turn_parent=3, turn_child=3, turn_report=3, stiffness=6, rest=6, damping=6, armature=6,
    servo_stiffness=6, servo_damping=6, servo_bound=6, pitch=0, length=0, rest_turn=3, input=6, target=6, before=6, after=6,
))
COUPLING_BAR = np.dtype(fields(F, b=0, mu=0, ratio=0, offset=0, stiffness=0, damping=0, rest=0, input=0))
POINT_BAR = np.dtype(fields(F, point=3))
LOAD_BAR = np.dtype(fields(F, numbers=12))


class Bars(NamedTuple):
    """Bars per body (world last), joint, coupling, point of a path, load, and of gravity (3,); room for second derivatives."""

    bodies: np.ndarray
    joints: np.ndarray
    couplings: np.ndarray
    points: np.ndarray
    loads: np.ndarray
    gravity: np.ndarray
    K: np.ndarray  # (12, 12)
    pair: np.ndarray  # (12,)
    idle: np.ndarray  # (3,) turns of points of paths, which have no axes
    trial: np.ndarray  # (1,) a load with other numbers


def new_bars(model: Model) -> Bars:
    """Zeros."""
    return Bars(
        np.zeros(len(model.bodies), BODY_BAR), np.zeros(len(model.joints), JOINT_BAR), np.zeros(len(model.couplings), COUPLING_BAR),
        np.zeros(len(model.points), POINT_BAR), np.zeros(len(model.loads), LOAD_BAR), np.zeros(3), np.zeros((12, 12)), np.zeros(12),
        np.zeros(3), np.zeros(1, LOAD),
    )
