"""A mechanism as record arrays, for the compiled kernels: what is constant (Model) apart from what is scratch (Work).

A ``Model`` is a snapshot of a mechanism: nothing writes to it after it was made. A ``Work`` belongs to one thread; what it
holds before a step never matters, but for where the blocks of its graph lie. States belong to the formulations.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.linalg.schedule import Schedule

F, I = "f8", "i4"

# Kinds of constraint rows.
TRANSLATION, ROTATION, HELIX, DISTANCE_ROW, COMPLIANT = 0, 1, 2, 3, 4
# Kinds of free directions, in the joint table's words.
DIRECTION_KINDS = ("slide", "turn", "first", "second", "ball", "distance")
SLIDE, TURN, FIRST, SECOND, BALL, DISTANCE = range(6)


def fields(kind: str, **shapes: int | tuple[int, ...]) -> list[tuple]:
    """Fields of one kind of number; shape 0 is a single number."""
    return [(name, kind, shape) if shape else (name, kind) for name, shape in shapes.items()]


#: mass (kg), radius of gyration (m), inertia and its inverse (body axes), constant wrench (force world, torque body)
BODY = np.dtype(fields(F, mass=0, length=0, inertia=9, inertia_inverse=9, wrench=6))

JOINT = np.dtype(
    # ``firm``: guards that do not depend on a target; ``active``: springs, inputs or limits push along some direction
    fields(I, parent=0, child=0, rows=0, locks=0, free=0, guards=0, firm=0, active=0, row_kind=6, row_direction=6,
           free_kind=6, free_axis=6, driven=6)
    + fields(
        F, point_parent=3, point_child=3, row_a=(6, 3), row_b=(6, 3), row_offset=6, guard_a=(3, 3), guard_b=(3, 3),
        # laws along the free directions, with the inertia reflected along them
        stiffness=6, rest=6, damping=6, armature=6, pitch=0,
        # G M^-1 G^T of each row at the reference pose: the scale of its compliance
        soft=6,
        # canonical axes and reporting axes in the bodies' frames, rest orientation of a ball joint's springs
        frame_parent=9, frame_child=9, report_frame=9, rest_frame=9,
    )
)

COUPLING = np.dtype(
    fields(I, joint=2, direction=2, body=4, slot=4, bodies=0)
    + fields(F, ratio=0, offset=0, soft=0)
)


class Model(NamedTuple):
    """What does not change in a run: bodies (n + 1, world last), joints, couplings, gravity (3,); indices of the joints that
    are driven, and of those with springs, inputs or limits along their directions.
    """

    bodies: np.ndarray
    joints: np.ndarray
    couplings: np.ndarray
    gravity: np.ndarray
    driven: np.ndarray
    active: np.ndarray


# What every Newton iteration touches comes first in a record, so that it lies together in memory.
BODY_WORK = np.dtype(
    fields(I, node=0, diagonal=0)
    + fields(
        # the iterate (velocities of the interval) with s = sqrt(4/dt^2 - w.w), the pose it leads to, the residual
        F, v=3, w=3, s=0, xn=3, qn=4, Rn=9, r=6,
        # the knot: position, orientation, rotation, left limits of the momenta (world, body), force and torque there,
        # and what the inputs of the step add to them
        x=3, q=4, p=3, l=3, load=6, R=9, push=6,
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

COUPLING_WORK = np.dtype(fields(I, block_cb=4, block_bc=4, node=0, diagonal=0) + fields(F, mu=0, r=0, G=(4, 6)))


class Work(NamedTuple):
    """Scratch of one thread: a record per body (world last), joint and coupling; the solver's blocks, order and vector."""

    bodies: np.ndarray
    joints: np.ndarray
    couplings: np.ndarray
    blocks: np.ndarray
    schedule: Schedule
    vector: np.ndarray
