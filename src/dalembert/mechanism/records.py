"""A mechanism as record arrays: what the compiled kernels read and write (DESIGN section 6).

``Records`` holds bodies (the world is the last one), joints and couplings. Constant data, the state and the
scratch of a step live side by side, so that a kernel touches one record per element.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

F, I = "f8", "i8"

# Kinds of constraint rows.
TRANSLATION, ROTATION, HELIX, DISTANCE_ROW, COMPLIANT = 0, 1, 2, 3, 4
# Kinds of free directions, in the joint table's words.
DIRECTION_KINDS = ("slide", "turn", "first", "second", "ball", "distance")
SLIDE, TURN, FIRST, SECOND, BALL, DISTANCE = range(6)

BODY = np.dtype(
    [(name, F, shape) if shape else (name, F) for name, shape in dict(
        mass=0, inertia=9, inertia_inverse=9, length=0, force=3, torque=3,
        # state at the knot: position, orientation, left limits of the momenta (world, body)
        x=3, q=4, p=3, l=3,
        # the knot's rotation, the iterate (velocities of the interval) and the pose it leads to
        R=9, v=3, w=3, s=0, xn=3, qn=4, Rn=9,
        # velocities of the last two intervals, for the first guess; force and torque at the knot; the residual
        v_last=3, w_last=3, v_before=3, w_before=3, load=6, r=6,
    ).items()]
    + [("node", I), ("diagonal", I)]
)

JOINT = np.dtype(
    [("parent", I), ("child", I), ("node", I), ("diagonal", I),
     # indices of the blocks (row node, column node): joint/parent, joint/child and their mirror images
     ("block_jp", I), ("block_jc", I), ("block_pj", I), ("block_cj", I),
     ("rows", I), ("locks", I), ("free", I), ("guards", I), ("active", I),
     ("row_kind", I, 6), ("row_direction", I, 6), ("free_kind", I, 6), ("free_axis", I, 6), ("driven", I, 6)]
    + [(name, F, shape) if shape else (name, F) for name, shape in dict(
        point_parent=3, point_child=3, frame_parent=9, frame_child=9,
        row_a=(6, 3), row_b=(6, 3), row_offset=6, guard_a=(3, 3), guard_b=(3, 3), pitch=0,
        stiffness=6, rest=6, damping=6, input=6, target=6, rest_frame=9, report_frame=9,
        # at the knot: coordinates (unwrapped), prescribed rates and accelerations of driven directions,
        # and the gradients of the rows by parent and child
        coordinate=6, rate=6, acceleration=6, Gp=(6, 6), Gc=(6, 6),
        # impulses of the rows, their residuals, the compliance of the proximal method
        mu=6, r=6, compliance=6,
    ).items()]
)

COUPLING = np.dtype(
    [("joint", I, 2), ("direction", I, 2), ("bodies", I), ("body", I, 4), ("slot", I, 4), ("node", I), ("diagonal", I),
     ("block_cb", I, 4), ("block_bc", I, 4)]
    + [("ratio", F), ("offset", F), ("mu", F), ("r", F), ("compliance", F), ("G", F, (4, 6))]
)


class Records(NamedTuple):
    """The arrays that kernels take: bodies (n + 1, world last), joints, couplings, gravity (3,)."""

    bodies: np.ndarray
    joints: np.ndarray
    couplings: np.ndarray
    gravity: np.ndarray
