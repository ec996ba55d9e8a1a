"""The adjoint of a stage of the BDF and DIRK methods (Quaternion eq. 38 to 44), from bars of its end to those of what it started from.

Unknowns u = (v, w, mu) with x = x_p + gamma v, q = q_p + gamma w. The weights b of the stage's equations solve F_u^T b = -(bars of u),
in Newton's own unknowns (dv, e), dw = q e (``maximal.weights``).
"""
from __future__ import annotations

from dalembert.forces.couplings import coupling_rate
from dalembert.forces.laws import coupling_law
from dalembert.formulations.implicit.equations import add4, count_others, jacobian, residual
from dalembert.formulations.implicit.state import inverse
from dalembert.formulations.maximal.pull_forces import (
    EQUATIONS,
    pull_coupling_rate,
    pull_coupling_value,
    pull_coupling_wrench,
    pull_law,
    pull_load,
)
from dalembert.formulations.maximal.pull_joints import (
    add_to3,
    pull_at_knot,
    pull_joint_wrench,
    pull_rate,
    pull_rows,
    pull_servo,
)
from dalembert.formulations.maximal.pull_knot import add_outer
from dalembert.formulations.maximal.weights import build_refinement, load_forces
from dalembert.kernels import inline, kernel
from dalembert.linalg import clear, factor
from dalembert.model.pose import joint_at_knot, put6
from dalembert.model.records import CONSTRAINT
from dalembert.model.rows import direction_gradient
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import add3, cross3, dot3, load3, load4, load9, mat_t_vec, mat_vec, scale3, store3

#: most passes of refinement
PASSES = 40


@inline
def add_to4(target, scale, v):
    """target += scale v."""
    target[0] += scale * v[0]
    target[1] += scale * v[1]
    target[2] += scale * v[2]
    target[3] += scale * v[3]


@inline
def pull_spin(q, a, s_bar, spin_bar):
    """Bars of w and q from those of a = q^-1 w = (s, omega/2): da = q^-1 dw - (q^-1 dq) a."""
    bar = (s_bar, 2.0 * spin_bar[0], 2.0 * spin_bar[1], 2.0 * spin_bar[2])
    turned = quaternion.conjugate(inverse(q))
    by_q = quaternion.multiply(turned, quaternion.multiply(bar, quaternion.conjugate(a)))
    return quaternion.multiply(turned, bar), (-by_q[0], -by_q[1], -by_q[2], -by_q[3])


@inline
def pull_turn(q, phi_bar):
    """Bar of q from that of its body-frame tangent, phi = 2 vec(q^-1 dq)."""
    bar = (0.0, 2.0 * phi_bar[0], 2.0 * phi_bar[1], 2.0 * phi_bar[2])
    return quaternion.multiply(quaternion.conjugate(inverse(q)), bar)


@kernel
def pull_stage_equations(stage, bars):
    """Adds F^T b, with the weights in ``b``: to the bars of unknowns (v, w), of the pose (x, phi), of velocities, and ``before``."""
    model, work, gamma = stage.model, stage.work, stage.gamma
    g = load3(model.gravity)
    for i in range(model.bodies.shape[0] - 1):
        fixed, bar, iterate = model.bodies[i], bars.bodies[i], stage.own.bodies[i]
        b, t = load3(bar.b), load3(bar.b[3:])
        v, vp = load3(iterate.v), load3(iterate.vp)
        add_to3(bar.v, fixed.mass, b)
        add_to3(bar.before[7:], -fixed.mass, b)
        bar.mass += dot3(v, b) - dot3(vp, b) - gamma * dot3(g, b)
        add_to3(bars.gravity, -gamma * fixed.mass, b)
        for c in range(6):
            bar.wrench[c] -= gamma * bar.b[c]
            bar.push[c] -= gamma * bar.b[c]
        w = load4(iterate.w)
        q = add4(load4(iterate.qp), w, gamma)
        back = inverse(q)
        turned = quaternion.conjugate(back)
        a = quaternion.multiply(back, w)
        c = quaternion.multiply(back, add4(w, load4(iterate.wp), -1.0))
        J = load9(fixed.inertia)
        omega = (2.0 * a[1], 2.0 * a[2], 2.0 * a[3])
        Jw = mat_vec(J, omega)
        Jt = scale3(2.0, mat_t_vec(J, t))
        # 2 J vec(c)
        c_bar = (0.0, Jt[0], Jt[1], Jt[2])
        by_w = quaternion.multiply(turned, c_bar)
        add_to4(bar.w, 1.0, by_w)
        add_to4(bar.before[10:], -1.0, by_w)
        add_to4(bar.before[3:], -1.0, quaternion.multiply(turned, quaternion.multiply(c_bar, quaternion.conjugate(c))))
        add_outer(bar.inertia, 2.0, t, (c[1], c[2], c[3]))
        # gamma (omega x J omega + 2 s J omega)
        across = cross3(t, omega)
        spin_bar = add3(cross3(Jw, t), mat_t_vec(J, add3(across, scale3(2.0 * a[0], t))))
        by_w, by_q = pull_spin(q, a, 2.0 * gamma * dot3(t, Jw), scale3(gamma, spin_bar))
        add_to4(bar.w, 1.0, by_w)
        add_to4(bar.before[3:], 1.0, by_q)
        add_outer(bar.inertia, gamma, add3(across, scale3(2.0 * a[0], t)), omega)
        add_to4(bar.before[3:], 2.0 * bar.b[6] / gamma, q)
    for i in range(model.joints.shape[0]):
        joint, at, bar = model.joints[i], work.joints[i], bars.joints[i]
        pull_joint_wrench(model, work, bars, i, gamma)
        if joint.rows == 0:
            continue
        y, C, Rp = joint_at_knot(work.bodies, joint)
        force, on_parent, on_child = pull_rows(bar, joint, at, 1.0 / gamma, y, C, Rp)
        pull_at_knot(bars, i, joint, work.bodies, 1.0, force, on_parent, on_child)
        for k in range(joint.locks, joint.rows):
            pull_stage_law(stage, bars, i, k)
    for i in range(model.couplings.shape[0]):
        pull_stage_coupling(stage, bars, i)
    for i in range(model.loads.shape[0]):
        pull_load(model, work, bars, i, gamma)
    chain_stage(stage, bars)


@kernel
def pull_stage_law(stage, bars, index, k):
    """A compliant row: mu + (gamma d + a) rate - a rate_p - gamma servo."""
    model, work, gamma = stage.model, stage.work, stage.gamma
    joint, at, bar = model.joints[index], work.joints[index], bars.joints[index]
    direction, b = joint.row_direction[k], bar.b[k]
    armature = joint.armature[direction]
    bar.mu[k] += b
    rate = 0.0
    parent, child = bars.bodies[joint.parent], bars.bodies[joint.child]
    for c in range(6):
        rate += at.Gp[k, c] * parent.u[c] + at.Gc[k, c] * child.u[c]
    weight = b * (gamma * joint.damping[direction] + armature)
    if joint.follows[direction]:
        K, D = pull_servo(bar, joint, direction, -b * gamma, at.target[direction], at.coordinate[direction], rate)
        weight -= b * gamma * D
        y, C, Rp = joint_at_knot(work.bodies, joint)
        force, on_parent, on_child = direction_gradient(joint, direction, y, C, Rp)
        pull_at_knot(bars, index, joint, work.bodies, -b * gamma * K, force, on_parent, on_child)
    pull_rate(model, work, bars, index, k, weight)
    bar.damping[direction] += b * gamma * rate
    if armature > 0.0:
        rp = stage.own.axles[index].rp[direction]
        bar.armature[direction] += b * (rate - rp)
        bar.before[direction] -= b * armature


@kernel
def pull_stage_coupling(stage, bars, index):
    """A coupling: open over gamma, or impulse less that of its law."""
    model, work, gamma = stage.model, stage.work, stage.gamma
    coupling, tie, bar = model.couplings[index], work.couplings[index], bars.couplings[index]
    pull_coupling_wrench(model, work, bars, index, -1.0, EQUATIONS)
    if coupling.law == CONSTRAINT:
        pull_coupling_value(model, work, bars, index, bar.b / gamma, False)
        return
    rate = coupling_rate(model, work, index, work.velocity)
    force, K, D, _ = coupling_law(work, coupling, tie, tie.value, rate)
    bar.mu += bar.b
    weight = -gamma * bar.b
    pull_law(bar, coupling, force + tie.input, tie.value, rate, weight)
    pull_coupling_value(model, work, bars, index, weight * K, False)
    pull_coupling_rate(model, work, bars, index, weight * D)


@kernel
def chain_stage(stage, bars):
    """From bars of velocities, of the pose (x, phi) and of q to those of unknowns and of the aggregate (``before``: x, q, v, w)."""
    gamma = stage.gamma
    zero = (0.0, 0.0, 0.0)
    for i in range(stage.model.bodies.shape[0] - 1):
        bar, iterate = bars.bodies[i], stage.own.bodies[i]
        w = load4(iterate.w)
        q = add4(load4(iterate.qp), w, gamma)
        a = quaternion.multiply(inverse(q), w)
        add_to3(bar.v, 1.0, load3(bar.du))
        by_w, by_q = pull_spin(q, a, 0.0, load3(bar.du[3:]))
        add_to4(bar.w, 1.0, by_w)
        add_to4(bar.before[3:], 1.0, by_q)
        add_to4(bar.before[3:], 1.0, pull_turn(q, load3(bar.phi)))
        # x = x_p + gamma v, q = q_p + gamma w; what is in ``before`` already was passed on by earlier passes
        x = load3(bar.x)
        add_to3(bar.before, 1.0, x)
        add_to3(bar.v, gamma, x)
        for c in range(4):
            bar.w[c] += gamma * (bar.before[3 + c] - bar.passed[c])
            bar.passed[c] = bar.before[3 + c]
        put6(bar.du, zero, zero)
        store3(bar.x, zero)
        store3(bar.phi, zero)


@kernel
def load_unknowns(stage, bars):
    """Bars of the unknowns, those of w as those of e, into the solver's vector. Returns the largest."""
    model, work, size = stage.model, stage.work, 0.0
    for i in range(model.bodies.shape[0] - 1):
        vector, bar, iterate = work.vector[work.bodies[i].node].v, bars.bodies[i], stage.own.bodies[i]
        q = add4(load4(iterate.qp), load4(iterate.w), stage.gamma)
        e = quaternion.multiply(quaternion.conjugate(q), load4(bar.w))
        for c in range(3):
            vector[c], vector[3 + c] = bar.v[c], e[1 + c]
            size = max(size, max(abs(bar.v[c]), abs(vector[3 + c])))
        vector[6] = e[0]
        size = max(size, abs(e[0]))
    return load_forces(model, work, bars, size)


refine = build_refinement("stage", __file__, width=7, passes=PASSES, load=load_unknowns, pull=pull_stage_equations)


@kernel
def open_stage(stage, bars):
    """Evaluate the equations at the solution in work and scratch, factor Newton's matrix there, note the velocities. False when singular."""
    model, work = stage.model, stage.work
    _, fine = residual(stage)
    if not fine:
        return False
    count_others(model, work, stage.own)
    clear(work.blocks, work.schedule)
    jacobian(stage)
    if factor(work.blocks, work.schedule) >= 0:
        return False
    for i in range(model.bodies.shape[0] - 1):
        iterate, bar = stage.own.bodies[i], bars.bodies[i]
        put6(bar.u, load3(iterate.v), load3(iterate.spin))
        put6(work.velocity[i], load3(iterate.v), load3(iterate.spin))
    return True


@inline
def pull_axles(stage, bars):
    """Rates of axles at the end of the stage, with their bars in the joints' ``after``."""
    model, work = stage.model, stage.work
    for i in range(stage.own.axles.shape[0]):
        joint, bar = model.joints[i], bars.joints[i]
        for k in range(joint.locks, joint.rows):
            direction = joint.row_direction[k]
            if joint.armature[direction] > 0.0 and bar.after[direction] != 0.0:
                pull_rate(model, work, bars, i, k, bar.after[direction])


@kernel
def pull_stage(stage, bars):
    """From bars of v, w, of the end's pose (x; q in ``before``) and of axles' rates (joints' ``after``) to those of the aggregate, ``before``.

    Needs ``open_stage`` before. Returns what is left of the unknowns' bars, relative.
    """
    pull_axles(stage, bars)
    chain_stage(stage, bars)
    return refine(stage, bars)
