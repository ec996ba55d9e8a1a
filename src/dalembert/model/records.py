"""A mechanism as record arrays: what the compiled kernels read and write (DESIGN section 6).

``Records`` holds bodies (the world is the last one), joints and couplings. Constant data, the state and the
scratch of a step live side by side, so that a kernel touches one record per element.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

F, I = "f8", "i4"

# Kinds of constraint rows.
TRANSLATION, ROTATION, HELIX, DISTANCE_ROW, COMPLIANT = 0, 1, 2, 3, 4
# Kinds of free directions, in the joint table's words.
DIRECTION_KINDS = ("slide", "turn", "first", "second", "ball", "distance")
SLIDE, TURN, FIRST, SECOND, BALL, DISTANCE = range(6)



def _fields(kind: str, **shapes: int | tuple[int, ...]) -> list[tuple]:
    """Fields of one kind of number; shape 0 is a single number."""
    return [(name, kind, shape) if shape else (name, kind) for name, shape in shapes.items()]


# What every Newton iteration touches comes first in a record, so that it lies together in memory.
BODY = np.dtype(
    _fields(I, node=0, diagonal=0)
    + _fields(
        F, mass=0, length=0, inertia=9,
        # state at the knot: position, orientation, left limits of the momenta (world, body); force and torque there
        x=3, q=4, p=3, l=3, load=6,
        # the iterate (velocities of the interval) with s = sqrt(4/dt^2 - w.w), the pose it leads to, the residual
        v=3, w=3, s=0, xn=3, qn=4, Rn=9, r=6,
        # the knot's rotation, constant loads, velocities of the last three intervals for the first guess
        R=9, inertia_inverse=9, force=3, torque=3, v1=3, w1=3, v2=3, w2=3, v3=3, w3=3,
    )
)

JOINT = np.dtype(
    # indices of the blocks (row node, column node): joint/parent, joint/child and their mirror images
    _fields(I, parent=0, child=0, node=0, diagonal=0, block_jp=0, block_jc=0, block_pj=0, block_cj=0,
            rows=0, locks=0, free=0, guards=0, active=0, row_kind=6, row_direction=6)
    + _fields(
        F, point_parent=3, point_child=3, row_a=(6, 3), row_b=(6, 3), row_offset=6, guard_a=(3, 3), guard_b=(3, 3),
        # gradients of the rows by parent and child at the knot; impulses, residuals, and G M^-1 G^T of
        # each row, the scale of its compliance
        Gp=(6, 6), Gc=(6, 6), mu=6, r=6, soft=6,
        # laws along the free directions; coordinates at the knot (unwrapped); prescribed motion of driven directions
        stiffness=6, rest=6, damping=6, input=6, target=6, coordinate=6, rate=6, acceleration=6, pitch=0,
        # inertia reflected along the free directions, and the left limit of its momentum at the knot
        armature=6, spin=6,
        # canonical axes and reporting axes in the bodies' frames, rest orientation of a ball joint's springs
        frame_parent=9, frame_child=9, report_frame=9, rest_frame=9,
    )
    + _fields(I, free_kind=6, free_axis=6, driven=6)
)

COUPLING = np.dtype(
    _fields(I, joint=2, direction=2, body=4, slot=4, block_cb=4, block_bc=4, bodies=0, node=0, diagonal=0)
    + _fields(F, ratio=0, offset=0, mu=0, r=0, soft=0, G=(4, 6))
)


#: stages that a Runge-Kutta method may have
MOST_STAGES = 6
#: rates of a joint's directions in an implicit step: of the last two states, their aggregate, the iterate, the stages' derivatives
AXLE = np.dtype(_fields(F, r0=6, r1=6, rp=6, r=6, k=(MOST_STAGES, 6)))


class Records(NamedTuple):
    """The arrays that kernels take: bodies (n + 1, world last), joints, couplings, gravity (3,), indices of driven joints,
    and rates of joints with reflected inertia, where a formulation integrates these (none, or as many as joints).
    """

    bodies: np.ndarray
    joints: np.ndarray
    couplings: np.ndarray
    gravity: np.ndarray
    driven: np.ndarray
    axles: np.ndarray
