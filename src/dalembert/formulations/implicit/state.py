"""The state of the implicit methods, the last two knots; and a stage's own scratch."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.formulations.implicit.tableaus import MOST_STAGES
from dalembert.kernels import inline
from dalembert.linalg.compact import without
from dalembert.linalg.schedule import Schedule
from dalembert.model.pose import put6
from dalembert.model.records import COMPLIANT, F, Model, fields
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import load3, load4, load9, mat_vec, scale3, store3, store4

#: position, orientation, linear velocity and w = q' at the knot, and those at the knot before it
BODY_STATE = np.dtype(fields(F, x=3, q=4, v=3, w=4, x1=3, q1=4, v1=3, w1=4))
#: unwrapped coordinates, targets held, rates of reflected inertias at the knot and at the knot before it
JOINT_STATE = np.dtype(fields(F, coordinate=6, target=6, rate=6, rate1=6))

#: a body in a stage: the aggregate of earlier states, the iterate with its angular velocity, the residual of its
#: quaternion's length, and the derivatives at the stages of the step
BODY_STAGE = np.dtype(fields(
    F, xp=3, qp=4, vp=3, wp=4, v=3, w=4, spin=3, unit=0,
    kx=(MOST_STAGES, 3), kq=(MOST_STAGES, 4), kv=(MOST_STAGES, 3), kw=(MOST_STAGES, 4),
))
#: the same of the rates of a joint's reflected inertias
AXLE = np.dtype(fields(F, rp=6, r=6, k=(MOST_STAGES, 6)))


class ImplicitState(NamedTuple):
    """Records over one flat array. Quaternions are as the additive update leaves them, of length one but for its error.

    ``clock``: length of the step before (zero at a start), how many of that length lie behind, and the length of the next step
    chosen by its error, as a fraction.
    """

    bodies: np.ndarray
    joints: np.ndarray
    clock: np.ndarray


class Scratch(NamedTuple):
    """A stage's own scratch: bodies, axles (one per joint where some inertia is reflected, none otherwise), blocks
    between joined bodies (joints, 2), and room for second derivatives (12, 12) and a direction (12,).

    ``counted`` (joints,): whose coordinates the equations ask for. Those of others are known once a stage is solved.
    ``loose``: the schedule without blocks between bodies, which are zero where no force turns with the pose; ``is_loose`` (1,): whether the
    last Jacobian was such.
    """

    bodies: np.ndarray
    axles: np.ndarray
    edges: np.ndarray
    K: np.ndarray
    direction: np.ndarray
    counted: np.ndarray
    loose: Schedule
    is_loose: np.ndarray


def new_scratch(bodies: int, axles: int, edges: np.ndarray, schedule: Schedule) -> Scratch:
    """Room for stages on a graph, with the coordinates of all joints."""
    return Scratch(
        np.zeros(bodies, BODY_STAGE), np.zeros(axles, AXLE), edges, np.zeros((12, 12)), np.zeros(12), np.ones(len(edges), bool),
        without(schedule, edges[edges >= 0]), np.zeros(1, bool),
    )


def counted_joints(model: Model) -> np.ndarray:
    """(joints,) whose coordinates the equations of a stage ask for: by springs, inputs, servos, drives, rows of their own, or couplings."""
    joints = model.joints
    own = np.any((joints["row_kind"] > COMPLIANT) & (np.arange(6) < joints["rows"][:, None]), axis=1)
    return (joints["active"] != 0) | np.any(joints["follows"] != 0, axis=1) | own | (len(model.couplings) > 0)


@inline
def inverse(q):
    """q^-1 of any quaternion."""
    n = 1.0 / (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    return (n * q[0], -n * q[1], -n * q[2], -n * q[3])


@inline
def recall(model, work, state):
    """Coordinates of the knot, to unwrap those of the stages against."""
    for i in range(model.joints.shape[0]):
        for k in range(model.joints[i].free):
            work.joints[i].coordinate[k] = state.joints[i].coordinate[k]


@inline
def record(model, state, recording, knot):
    """Write the state into the recording: the pose, and the momenta with omega = 2 vec(q^-1 q')."""
    recording.step_before[knot] = state.clock[0]
    for i in range(model.bodies.shape[0] - 1):
        body, fixed = state.bodies[i], model.bodies[i]
        a = quaternion.multiply(inverse(load4(body.q)), load4(body.w))
        spin = mat_vec(load9(fixed.inertia), (2.0 * a[1], 2.0 * a[2], 2.0 * a[3]))
        store3(recording.position[knot, i], load3(body.x))
        store4(recording.orientation[knot, i], quaternion.normalize(load4(body.q)))
        put6(recording.momentum[knot, i], scale3(fixed.mass, load3(body.v)), spin)
