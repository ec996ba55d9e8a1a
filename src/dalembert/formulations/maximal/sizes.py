"""How large the residuals of a step problem are, in m/s: of any problem with ``model`` and ``work``."""
from __future__ import annotations

from math import isfinite

from dalembert.kernels import inline, kernel
from dalembert.model.records import SLIDE


@inline
def body_size(body, fixed):
    """A body's residual in m/s."""
    r = body.r
    linear = max(abs(r[0]), max(abs(r[1]), abs(r[2]))) / fixed.mass
    angular = max(abs(r[3]), max(abs(r[4]), abs(r[5]))) / (fixed.mass * fixed.length)
    return linear + angular if not isfinite(linear + angular) else max(linear, angular)


@inline
def row_size(model, joint, at, k):
    """The residual of a joint's row along a free direction in m/s: by the child's inertia and the row's own, its armature's."""
    direction, child = joint.row_direction[k], model.bodies[joint.child]
    arm = 1.0 if joint.free_kind[direction] == SLIDE else child.length
    return abs(at.r[k]) / (child.mass * arm + joint.armature[direction] / arm)


@kernel
def body_sizes(problem):
    """Largest residual of any body in m/s, False when one is not finite."""
    size = 0.0
    for i in range(problem.work.bodies.shape[0] - 1):
        own = body_size(problem.work.bodies[i], problem.model.bodies[i])
        if not isfinite(own):
            return 0.0, False
        size = max(size, own)
    return size, True


@kernel
def measure(problem):
    """Size (m/s) of the bodies' residuals in their present place, and of dampers, which steps shortened by cones leave open."""
    model, work = problem.model, problem.work
    size, fine = body_sizes(problem)
    for i in range(model.joints.shape[0]):
        joint = model.joints[i]
        for k in range(joint.locks, joint.rows):
            size = max(size, row_size(model, joint, work.joints[i], k))
    return size, fine
