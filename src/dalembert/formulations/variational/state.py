"""The state of the variational integrator: pose and left limits of the momenta at a knot, and what the next guess starts from."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.kernels import kernel
from dalembert.model.records import F, fields
from dalembert.spatial.tuples import load3, load4, store3, store4

#: position, orientation, momenta just before the knot (world, body) and the part of them that paths gave at the knot, velocities
#: of the last three intervals
BODY_STATE = np.dtype(fields(F, x=3, q=4, p=3, l=3, along=6, v1=3, w1=3, v2=3, w2=3, v3=3, w3=3))
#: unwrapped coordinates, momenta of reflected inertias just before the knot, targets held
JOINT_STATE = np.dtype(fields(F, coordinate=6, spin=6, target=6))


class VariationalState(NamedTuple):
    """Records over one flat array. ``clock``: length of the interval before (zero at a start), how many of that length lie
    behind, and the order of the guess that has served best.
    """

    bodies: np.ndarray
    joints: np.ndarray
    clock: np.ndarray


@kernel
def recall(model, work, state):
    """Put the state's knot into the work, without impulses."""
    for i in range(model.bodies.shape[0] - 1):
        body, past = work.bodies[i], state.bodies[i]
        store3(body.x, load3(past.x))
        store4(body.q, load4(past.q))
        store3(body.p, load3(past.p))
        store3(body.l, load3(past.l))
        store3(body.along, load3(past.along))
        store3(body.along[3:], load3(past.along[3:]))
    for i in range(model.joints.shape[0]):
        joint, at, past = model.joints[i], work.joints[i], state.joints[i]
        for k in range(joint.rows):
            at.mu[k] = 0.0
        for k in range(joint.free):
            at.coordinate[k] = past.coordinate[k]
        if joint.rows > joint.locks:
            for k in range(joint.free):
                at.spin[k] = past.spin[k]
    for i in range(model.couplings.shape[0]):
        work.couplings[i].mu = 0.0
