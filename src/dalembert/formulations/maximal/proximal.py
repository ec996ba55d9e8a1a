"""The adjoint of the proximal method: what a tiny compliance of the constraint rows leaves of the weights of a step's equations.

Newton's matrix is J = J_0 + E with E on the rows' diagonal. For x with J^T x = r, what J_0 lacks is E x, so that the sum of
x, J^-T E x, J^-T E J^-T E x, ... solves with J_0: no more than a multiplication and a solve each.
"""
from __future__ import annotations

from dalembert.kernels import kernel
from dalembert.model.records import COMPLIANT, CONSTRAINT


@kernel
def soften(model, work, compliance, width):
    """The solver's vector x becomes E x; bodies have ``width`` entries. Returns the largest."""
    size = 0.0
    for i in range(model.bodies.shape[0] - 1):
        vector = work.vector[work.bodies[i].node].v
        for c in range(width):
            vector[c] = 0.0
    for i in range(model.joints.shape[0]):
        joint = model.joints[i]
        for k in range(joint.rows):
            vector = work.vector[work.joints[i].node].v
            vector[k] *= compliance * joint.soft[k] if joint.row_kind[k] != COMPLIANT else 0.0
            size = max(size, abs(vector[k]))
    for i in range(model.couplings.shape[0]):
        vector = work.vector[work.couplings[i].node].v
        vector[0] *= compliance * model.couplings[i].soft if model.couplings[i].law == CONSTRAINT else 0.0
        size = max(size, abs(vector[0]))
    return size
