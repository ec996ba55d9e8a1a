"""The state in joint coordinates: the last two knots; and the scratch of a stage, node by node."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.formulations.implicit.tableaus import MOST_STAGES
from dalembert.formulations.reduced.maps import Maps, no_maps
from dalembert.model.records import F, fields
from dalembert.model.splines import SPLINE_WORK

#: coordinates and rates at the knot and at the knot before it; the chart of a free rotation, or 0: then, in their place, the
#: rotation itself (a quaternion) and its angular velocity in the node's frame
NODE_STATE = np.dtype(fields(F, q=3, v=3, turn=4, q1=3, v1=3, turn1=4, chart=0))
#: unwrapped coordinates and targets held
JOINT_STATE = np.dtype(fields(F, coordinate=6, target=6))

NODE_WORK = np.dtype(
    fields(
        # the iterate with its rates and accelerations, the aggregates of earlier states that they follow from, where a free
        # rotation starts or its chart; what the joint's laws push with; the residual of the node's
        # equation, the search direction, and what turns residuals into displacements (m)
        F, x=3, v=3, a=3, aq=3, av=3, turn=4, chart=0, tau=3, g=3, dq=3, scale=3,
        # placement in the parent node's frame and in the world; twist, acceleration, S q', columns, force that the joint carries,
        # wrench of the loads, all in the node's frame
        R=9, p=3, W=9, place=3, V=6, A=6, Sv=6, S=(3, 6), F=6, load=6,
        # change of the subtree's force with pose, twist and acceleration; how these three change with the coordinates
        L=(3, 6, 6), t=(3, 18), r=(3, 18), B=(3, 6), D=(3, 3), K=(6, 6), C=(6, 6),
        # variation of pose, twist and acceleration; wrench of the right-hand side
        s=18, e=6, u=3, kept=3, kq=(MOST_STAGES, 3), kv=(MOST_STAGES, 3),
    )
)


class ReducedState(NamedTuple):
    """Records over one flat array: nodes, joints, numbers y of coordinate maps; ``clock`` as in ``Implicit``."""

    nodes: np.ndarray
    joints: np.ndarray
    maps: np.ndarray
    clock: np.ndarray


class Scratch(NamedTuple):
    """A stage's own scratch: a record per node and per spline, room for products of blocks, and for stiffness and damping of
    a load (6, 6); coordinate maps.
    """

    nodes: np.ndarray
    splines: np.ndarray
    P: np.ndarray
    K: np.ndarray
    D: np.ndarray
    maps: Maps


def new_scratch(nodes: int, splines: int = 0, maps: Maps | None = None) -> Scratch:
    """Room for stages."""
    return Scratch(
        np.zeros(nodes, NODE_WORK), np.zeros(max(splines, 1), SPLINE_WORK), np.zeros((4, 6, 6)), np.zeros((6, 6)), np.zeros((6, 6)),
        no_maps() if maps is None else maps,
    )
