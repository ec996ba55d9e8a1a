"""A mechanism as record arrays, for the compiled kernels: what is constant (Model) apart from what is scratch (Work).

A ``Model`` is a snapshot of a mechanism: nothing writes to it after it was made. A ``Work`` belongs to one thread; what it
holds before a step never matters, but for where the blocks of its graph lie. States belong to the formulations.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.linalg.schedule import Schedule

F, I = "f8", "i4"

# Kinds of rows; those with equations of their own are in own_rows.py.
TRANSLATION, ROTATION, COMPLIANT = 0, 1, 2
# Kinds of free directions, in the joint table's words.
DIRECTION_KINDS = ("slide", "turn", "first", "second", "ball", "distance")
SLIDE, TURN, FIRST, SECOND, BALL, DISTANCE = range(6)
#: of a joint without rows: joint coordinates alone know it
MOVING = 6


def fields(number: str, /, **shapes: int | tuple[int, ...]) -> list[tuple]:
    """Fields of one kind of number; shape 0 is a single number."""
    return [(name, number, shape) if shape else (name, number) for name, shape in shapes.items()]


#: mass (kg), radius of gyration (m), inertia (body axes), constant wrench (force world, torque body), inverse of the inertia
BODY = np.dtype(fields(F, mass=0, length=0, inertia=9, wrench=6, inertia_inverse=9))

# What every Newton iteration touches comes first in a record, so that it lies together in memory.
JOINT = np.dtype(
    # ``firm``: guards that do not depend on a target
    fields(I, parent=0, child=0, rows=0, locks=0, free=0, guards=0, firm=0, active=0, row_kind=6, row_direction=6)
    + fields(
        F, point_parent=3, point_child=3, row_a=(6, 3), row_b=(6, 3), row_offset=6,
        # G M^-1 G^T of each row at the reference pose: the scale of its compliance
        soft=6, guard_a=(3, 3), guard_b=(3, 3),
        # canonical axes and reporting axes in the bodies' frames, rest orientation of a ball joint's springs
        frame_parent=9, frame_child=9, report_frame=9, rest_frame=9,
        # laws along the free directions, with the inertia reflected along them
        stiffness=6, rest=6, damping=6, armature=6, pitch=0, servo_stiffness=6, servo_damping=6, servo_bound=6,
    )
    # ``active``: springs, inputs or limits push along some direction; ``driven``: locked to its target; ``follows``: that, or a servo,
    # ``servo_rate``: whose target is a rate
    + fields(I, free_kind=6, free_axis=6, driven=6, follows=6, servo_rate=6)
)

# Kinds of couplings: a number made of the poses of several bodies.
GEAR, PATH, FUNCTION, MAPPED = 0, 1, 2, 3
# What a coupling's number does: it stays zero, or it carries a force by a law.
CONSTRAINT, SPRING, CABLE, USER_LAW = 0, 1, 2, 3

#: ``first`` and ``ends``: its bodies in the list of ends; ``slot``: which of them a gear's joints have as parent and child
COUPLING = np.dtype(
    fields(I, kind=0, law=0, first=0, ends=0, joint=2, direction=2, slot=4, first_point=0, points=0, row=0, first_leg=0, legs=0)
    + fields("i8", function=0, law_function=0)
    + fields(F, ratio=0, offset=0, soft=0, stiffness=0, damping=0, rest=0)
)
#: a point of a path: its place among the coupling's ends (-1 in the world), and where it is on the body
POINT = np.dtype(fields(I, slot=0, body=0) + fields(F, point=3))

#: a coordinate of a joint in a coordinate map, with the places of its bodies among the coupling's ends; of a linear map, its weight
LEG = np.dtype(fields(I, joint=0, direction=0, slot=2) + fields(F, weight=0))

# Kinds of loads: forces on bodies by their own pose and velocity, or by a user's function of several.
POINT_FORCE, DRAG, PENALTY, USER_LOAD = 0, 1, 2, 3
#: ``moving``: depends on velocities; ``numbers``: those of its kind, see forces/bodies.py
LOAD = np.dtype(fields(I, kind=0, body=0, first=0, ends=0, moving=0) + fields("i8", function=0) + fields(F, numbers=12))


class Model(NamedTuple):
    """What does not change in a run: bodies (n + 1, world last), joints, couplings, gravity (3,); indices of the joints that
    follow targets, and of those with springs, inputs or limits along their directions; the bodies of couplings and loads, one
    element after the other; the points of paths; loads; the joint coordinates of maps; what spline joints move by, which a tree
    writes (model/splines.py).
    """

    bodies: np.ndarray
    joints: np.ndarray
    couplings: np.ndarray
    gravity: np.ndarray
    driven: np.ndarray
    active: np.ndarray
    ends: np.ndarray
    points: np.ndarray
    loads: np.ndarray
    legs: np.ndarray
    splines: np.ndarray


BODY_WORK = np.dtype(
    fields(I, node=0, diagonal=0)
    + fields(
        # the iterate (velocities of the interval) with s = sqrt(4/dt^2 - w.w), the pose it leads to, the residual
        F, v=3, w=3, s=0, xn=3, qn=4, Rn=9, r=6,
        # the knot: position, orientation, rotation, left limits of the momenta (world, body), force and torque there,
        # and what the inputs of the step add to them; the part of the momenta that paths gave at the knot
        x=3, q=4, p=3, l=3, load=6, push=6, R=9, along=6,
    )
)

JOINT_WORK = np.dtype(
    # indices of the blocks (row node, column node): joint/parent, joint/child and their mirror images
    fields(I, node=0, diagonal=0, block_jp=0, block_jc=0, block_pj=0, block_cj=0)
    + fields(
        # gradients of the rows by parent and child at the knot; impulses, residuals
        F, Gp=(6, 6), Gc=(6, 6), mu=6, r=6,
        # coordinates at the knot (unwrapped), momenta of reflected inertias there, inputs along the free directions
        coordinate=6, spin=6, input=6,
        # prescribed motion of driven directions, and where it points their rows and guards
        target=6, rate=6, acceleration=6, row_a=(6, 3), row_b=(6, 3), row_offset=6, guard_a=(3, 3), guard_b=(3, 3),
    )
)

#: value at the knot and at the end of the step, rate, change of its impulse with the value, input, impulse, residual
COUPLING_WORK = np.dtype(fields(I, node=0, diagonal=0) + fields(F, value=0, next=0, rate=0, slope=0, input=0, mu=0, r=0))
#: gradient by one body at the knot and at the end of the step; the blocks with it, there and back
END_WORK = np.dtype(fields(I, there=0, back=0) + fields(F, G=6, H=6))


class Work(NamedTuple):
    """Scratch of one thread: a record per body (world last), joint, coupling and end; velocities (n + 1, 6) for loads; room for
    stiffness and damping (12, 12) of an element; what goes to users' functions and comes back; the solver's
    blocks, order and vector.
    """

    bodies: np.ndarray
    joints: np.ndarray
    couplings: np.ndarray
    ends: np.ndarray
    velocity: np.ndarray
    K: np.ndarray
    D: np.ndarray
    given: np.ndarray
    found: np.ndarray
    blocks: np.ndarray
    schedule: Schedule
    vector: np.ndarray
