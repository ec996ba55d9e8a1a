"""Velocities and accelerations that satisfy the joints at a knot, and the forces that go with them.

Both solve one linear system on the mechanism's graph, [[M, -G^T], [G, E]], with E the tiny compliance of the proximal
method (DESIGN section 5).
"""
from __future__ import annotations

import numpy as np

from dalembert.forces.couplings import coupling_rate
from dalembert.forces.directions import drive_at_rest, resistance, servo_at
from dalembert.forces.loads import evaluate_loads
from dalembert.kernels import kernel
from dalembert.linalg import clear, factor, solve
from dalembert.model.bias import bias, coupling_bias, direction_bias
from dalembert.model.pose import evaluate_pose, joint_at_knot, put6
from dalembert.model.records import COMPLIANT, CONSTRAINT
from dalembert.model.rows import row_axes
from dalembert.spatial.tuples import cross3, load3, load9, mat_vec, scale3

#: refinements go on while each leaves less than this part of what rows miss, and so many at most: near a singular pose they are slow, and what they stop at is rounding
SLOW, PATIENCE = 0.95, 100

@kernel
def evaluate_knot(model, work):
    """Everything that follows from the pose: rotations, coordinates, row gradients, forces."""
    evaluate_pose(model, work)
    evaluate_loads(model, work)


@kernel
def clear_impulses(model, work):
    """No impulses: what redundant rows then get does not depend on what came before."""
    for i in range(model.joints.shape[0]):
        for k in range(model.joints[i].rows):
            work.joints[i].mu[k] = 0.0
    for i in range(model.couplings.shape[0]):
        work.couplings[i].mu = 0.0


@kernel
def knot_matrix(model, work, compliance, lag):
    """Write and factor [[M, -G^T], [G, E]] at the knot; a compliant row reads mu + (lag d + a) (G v) = 0. Returns -1 or a node."""
    bodies, joints, couplings = work.bodies, work.joints, work.couplings
    world = bodies.shape[0] - 1
    clear(work.blocks, work.schedule)
    for i in range(world):
        body, fixed = bodies[i], model.bodies[i]
        D = work.blocks[body.diagonal].M
        for r in range(6):
            for c in range(6):
                D[r, c] = 0.0
        for r in range(3):
            D[r, r] = fixed.mass
            for c in range(3):
                D[3 + r, 3 + c] = fixed.inertia[3 * r + c]
    for i in range(joints.shape[0]):
        joint, at = model.joints[i], joints[i]
        if joint.rows == 0:
            continue
        S = work.blocks[at.diagonal].M
        for k in range(joint.rows):
            for c in range(joint.rows):
                S[k, c] = 0.0
            weight = 1.0
            S[k, k] = compliance * joint.soft[k]
            if joint.row_kind[k] == COMPLIANT:
                S[k, k] = 1.0
                weight = lag * resistance(joint, at, joint.row_direction[k]) + joint.armature[joint.row_direction[k]]
            for c in range(6):
                if joint.parent != world:
                    work.blocks[at.block_jp].M[k, c] = weight * at.Gp[k, c]
                    work.blocks[at.block_pj].M[c, k] = -at.Gp[k, c]
                if joint.child != world:
                    work.blocks[at.block_jc].M[k, c] = weight * at.Gc[k, c]
                    work.blocks[at.block_cj].M[c, k] = -at.Gc[k, c]
    for i in range(couplings.shape[0]):
        coupling, tie = model.couplings[i], couplings[i]
        holds = coupling.law == CONSTRAINT
        work.blocks[tie.diagonal].M[0, 0] = compliance * coupling.soft if holds else 1.0
        for e in range(coupling.first, coupling.first + coupling.ends):
            end = work.ends[e]
            for c in range(6):
                work.blocks[end.there].M[0, c] = end.G[c] if holds else 0.0
                work.blocks[end.back].M[c, 0] = -end.G[c] if holds else 0.0
    return factor(work.blocks, work.schedule)


@kernel
def knot_residual(model, work, wanted, velocity, impulse, coupling_impulse, lag):
    """Right-hand side of the knot system minus its product with (velocity, impulse), compliance left out.

    ``wanted``: (n, 6) momenta; a row asks for the rate in ``at.r``, a coupling for that in ``tie.r``. Returns the
    largest row residual.
    """
    bodies, joints, couplings = work.bodies, work.joints, work.couplings
    world = bodies.shape[0] - 1
    for i in range(world):
        body, fixed = bodies[i], model.bodies[i]
        r = work.vector[body.node].v
        u = velocity[i]
        for c in range(3):
            r[c] = wanted[i, c] - fixed.mass * u[c]
            r[3 + c] = wanted[i, 3 + c]
            for d in range(3):
                r[3 + c] -= fixed.inertia[3 * c + d] * u[3 + d]
    worst = 0.0
    for i in range(joints.shape[0]):
        joint, at = model.joints[i], joints[i]
        for k in range(joint.rows):
            flow = 0.0
            for c in range(6):
                flow += at.Gp[k, c] * velocity[joint.parent, c] + at.Gc[k, c] * velocity[joint.child, c]
                if joint.parent != world:
                    work.vector[bodies[joint.parent].node].v[c] += at.Gp[k, c] * impulse[i, k]
                if joint.child != world:
                    work.vector[bodies[joint.child].node].v[c] += at.Gc[k, c] * impulse[i, k]
            r = work.vector[at.node].v
            direction = joint.row_direction[k]
            if joint.row_kind[k] == COMPLIANT:
                push = at.spin[direction] + lag * drive_at_rest(joint, at, direction)
                r[k] = push - impulse[i, k] - (lag * resistance(joint, at, direction) + joint.armature[direction]) * flow
            else:
                r[k] = at.r[k] - flow
                worst = max(worst, abs(r[k]))
    for i in range(couplings.shape[0]):
        coupling, tie = model.couplings[i], couplings[i]
        if coupling.law != CONSTRAINT:
            work.vector[tie.node].v[0] = 0.0
            continue
        flow = coupling_rate(model, work, i, velocity)
        for e in range(coupling.first, coupling.first + coupling.ends):
            for c in range(6):
                work.vector[bodies[model.ends[e]].node].v[c] += work.ends[e].G[c] * coupling_impulse[i]
        work.vector[tie.node].v[0] = tie.r - flow
        worst = max(worst, abs(tie.r - flow))
    return worst


@kernel
def add_solution(model, work, velocity, impulse, coupling_impulse):
    """Add a solution of the knot system to velocities and impulses."""
    bodies, joints, couplings = work.bodies, work.joints, work.couplings
    for i in range(bodies.shape[0] - 1):
        for c in range(6):
            velocity[i, c] += work.vector[bodies[i].node].v[c]
    for i in range(joints.shape[0]):
        for k in range(model.joints[i].rows):
            impulse[i, k] += work.vector[joints[i].node].v[k]
    for i in range(couplings.shape[0]):
        coupling_impulse[i] += work.vector[couplings[i].node].v[0]


@kernel
def expect_targets(model, work):
    """Servos whose targets are rates are expected to be at these, and so within their bounds."""
    for i in model.driven:
        joint, at = model.joints[i], work.joints[i]
        for direction in range(joint.free):
            if joint.servo_rate[direction]:
                at.rate[direction] = at.target[direction]


@kernel
def expect_rates(model, work, velocity):
    """Such servos are expected to go at the rates of velocities (n + 1, 6). Returns whether that puts one beyond its bound or within."""
    changed = False
    for i in model.driven:
        joint, at = model.joints[i], work.joints[i]
        for k in range(joint.locks, joint.rows):
            direction = joint.row_direction[k]
            if joint.servo_rate[direction]:
                flow, before = 0.0, resistance(joint, at, direction)
                for c in range(6):
                    flow += at.Gp[k, c] * velocity[joint.parent, c] + at.Gc[k, c] * velocity[joint.child, c]
                at.rate[direction] = flow
                changed = changed or resistance(joint, at, direction) != before
    return changed


@kernel
def project(model, work, compliance, wanted, lag, tolerance, velocity, impulse, coupling_impulse):
    """Velocities (n + 1, 6) nearest to the momenta ``wanted`` in the mass metric that satisfy every row.

    The proximal iteration repeats the solve until the rows hold to ``tolerance``. Needs ``evaluate_knot`` before.
    Returns the largest row residual, NaN when the factorisation failed.
    """
    bodies = work.bodies
    for i in range(bodies.shape[0] - 1):
        linear = scale3(1.0 / model.bodies[i].mass, load3(wanted[i]))
        put6(velocity[i], linear, mat_vec(load9(model.bodies[i].inertia_inverse), load3(wanted[i, 3:])))
    impulse[:] = 0.0
    coupling_impulse[:] = 0.0
    expect_targets(model, work)
    worst = np.nan
    for _ in range(4):
        if knot_matrix(model, work, compliance, lag) >= 0:
            return np.nan
        worst = refine(model, work, wanted, lag, tolerance, velocity, impulse, coupling_impulse)
        if not expect_rates(model, work, velocity):
            break
    return worst


@kernel
def refine(model, work, wanted, lag, tolerance, velocity, impulse, coupling_impulse):
    """The proximal iteration of ``project`` with the factored matrix. Returns the largest row residual."""
    worst = np.inf
    for _ in range(PATIENCE):
        before = worst
        worst = knot_residual(model, work, wanted, velocity, impulse, coupling_impulse, lag)
        if before < np.inf and (not worst > tolerance or worst > SLOW * before):
            return worst
        solve(work.blocks, work.schedule, work.vector)
        add_solution(model, work, velocity, impulse, coupling_impulse)
    return worst


@kernel
def accelerate(model, work, compliance, velocity, impulse, coupling_impulse, factored, wanted, acceleration):
    """Joint forces at the knot for given velocities (n + 1, 6).

    The acceleration-level system G a = -G' v + prescribed. Needs ``evaluate_knot`` before. ``factored``: its matrix is that
    of a projection without lag just made. ``wanted``, ``acceleration``: room for (n + 1, 6).
    """
    bodies, joints, couplings = work.bodies, work.joints, work.couplings
    world = bodies.shape[0] - 1
    if not factored and knot_matrix(model, work, compliance, 0.0) >= 0:
        return False
    for i in range(world):
        body, fixed = bodies[i], model.bodies[i]
        w = load3(velocity[i, 3:])
        gyroscopic = cross3(w, mat_vec(load9(fixed.inertia), w))
        for c in range(3):
            wanted[i, c] = body.load[c]
            wanted[i, 3 + c] = body.load[3 + c] - gyroscopic[c]
    for i in range(joints.shape[0]):
        joint, at = model.joints[i], joints[i]
        y, C, Rp = joint_at_knot(bodies, joint)
        up = velocity[joint.parent]
        uc = velocity[joint.child]
        vp, wp, vc, wc = load3(up), load3(up[3:]), load3(uc), load3(uc[3:])
        for k in range(joint.rows):
            direction = joint.row_direction[k]
            if joint.row_kind[k] == COMPLIANT:
                flow = 0.0
                for c in range(6):
                    flow += at.Gp[k, c] * up[c] + at.Gc[k, c] * uc[c]
                at.spin[direction] = -joint.damping[direction] * flow + servo_at(joint, at, direction, flow)[0]
                if joint.armature[direction] > 0.0:
                    at.spin[direction] -= joint.armature[direction] * direction_bias(joint, direction, y, C, Rp, vp, wp, vc, wc)
            elif direction >= 0:
                at.r[k] = at.acceleration[direction] - direction_bias(joint, direction, y, C, Rp, vp, wp, vc, wc)
            else:
                a, b = row_axes(joint, at, k)
                at.r[k] = -bias(joint, int(joint.row_kind[k]), 0, a, b, y, C, Rp, vp, wp, vc, wc)
    for i in range(couplings.shape[0]):
        couplings[i].r = -coupling_bias(model, work, i, velocity) if model.couplings[i].law == CONSTRAINT else 0.0
    acceleration[:] = 0.0
    impulse[:] = 0.0
    coupling_impulse[:] = 0.0
    # the residual of the bodies' equations is refined too: with the tiny compliance, rounding of the factors shows in the forces
    # and near a singular pose every solve takes away but a part of what is left
    worst = np.inf
    for attempt in range(PATIENCE):
        before = worst
        worst = knot_residual(model, work, wanted, acceleration, impulse, coupling_impulse, 0.0)
        if attempt > 2 and not worst < SLOW * before:
            break
        solve(work.blocks, work.schedule, work.vector)
        add_solution(model, work, acceleration, impulse, coupling_impulse)
    return True
