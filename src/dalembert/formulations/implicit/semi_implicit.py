"""Kernels of semi-implicit Euler with Baumgarte stabilisation (Quaternion, Appendix D): the baseline of the field.

Velocities first, from forces and rows at the start of the step, then poses by the exponential map. Constraints hold at
velocity level only; the fraction ``stabilization`` of what is open is asked back within a step (eq. 49, 50). Redundant rows
that have drifted apart contradict one another: then velocities are a compromise, and the violation shows it.
"""
from __future__ import annotations

from math import isfinite

from dalembert.formulations.maximal.knot import (
    apply_inputs,
    evaluate_knot,
    joint_rates,
    open_amounts,
    project,
    set_targets,
)
from dalembert.kernels import kernel
from dalembert.model.records import COMPLIANT
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import add3, cross3, load3, load4, load9, mat_vec, scale3, store3, store4


@kernel
def run_steps(records, blocks, schedule, vector, clock, base_load, recording, inputs, first, count, dt, stabilization, compliance,
              wanted, velocity, impulse, coupling_impulse, rows, gaps):
    """``count`` steps from knot ``first`` of the recording. Returns (steps done, largest residual of the velocity rows)."""
    bodies, joints, couplings = records.bodies, records.joints, records.couplings
    pull = stabilization / dt
    size = 0.0
    for index in range(count):
        knot = first + index
        apply_inputs(records, base_load, inputs, index)
        set_targets(records, inputs.target[index])
        evaluate_knot(records)
        open_amounts(records, rows, gaps)
        for i in range(joints.shape[0]):
            for k in range(joints[i].rows):
                direction = joints[i].row_direction[k]
                moved = 0.0
                if direction >= 0 and joints[i].row_kind[k] != COMPLIANT:
                    moved = (inputs.target[index + 1, i, direction] - inputs.target[index, i, direction]) / dt
                joints[i].r[k] = moved - pull * rows[i, k]
        for i in range(couplings.shape[0]):
            couplings[i].r = -pull * gaps[i]
        for i in range(bodies.shape[0] - 1):
            body = bodies[i]
            w = mat_vec(load9(body.inertia_inverse), load3(body.l))
            gyro = cross3(w, load3(body.l))
            for c in range(3):
                wanted[i, c] = body.p[c] + dt * body.load[c]
                wanted[i, 3 + c] = body.l[c] + dt * (body.load[3 + c] - gyro[c])
        size = project(records, blocks, schedule, vector, compliance, wanted, dt, 1e-12, velocity, impulse, coupling_impulse)
        if not isfinite(size):
            return index, size
        joint_rates(records, velocity, rows)
        for i in range(joints.shape[0]):
            for k in range(joints[i].free):
                joints[i].spin[k] = joints[i].armature[k] * rows[i, k]
        for i in range(bodies.shape[0] - 1):
            body, u = bodies[i], velocity[i]
            store3(body.x, add3(load3(body.x), scale3(dt, load3(u))))
            turn = quaternion.exp(scale3(dt, load3(u[3:])))
            store4(body.q, quaternion.normalize(quaternion.multiply(load4(body.q), turn)))
            spin = mat_vec(load9(body.inertia), load3(u[3:]))
            for c in range(3):
                body.p[c] = body.mass * u[c]
                body.l[c] = spin[c]
                recording.momentum[knot + 1, i, c] = body.p[c]
                recording.momentum[knot + 1, i, 3 + c] = body.l[c]
            store3(recording.position[knot + 1, i], load3(body.x))
            store4(recording.orientation[knot + 1, i], load4(body.q))
        recording.row_force[knot + 1] = impulse / dt
        recording.coupling_force[knot + 1] = coupling_impulse / dt
        recording.substeps[knot + 1] = 1
        recording.iterations[knot + 1] = 1
        clock[0] = dt
    return count, size
