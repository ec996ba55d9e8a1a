"""The adjoint of an interval of the variational integrator: from the cotangent of the state after it to that of the state before.

With equations F(u, y) = 0 in the unknowns u = (v, omega, mu) and the next state S(u, y), the weights b of the equations solve
F_u^T b = -S_u^T ybar', and the bars are S^T ybar' + F^T b (``maximal.weights``).
"""
from __future__ import annotations

from dalembert.forces.laws import coupling_law
from dalembert.formulations.maximal.pull_forces import (
    EQUATIONS,
    MOMENTA,
    pull_coupling_value,
    pull_coupling_wrench,
    pull_law,
    pull_load,
)
from dalembert.formulations.maximal.pull_joints import (
    add_to3,
    pull_at_end,
    pull_at_knot,
    pull_joint_wrench,
    pull_rate,
    pull_rows,
    pull_servo,
)
from dalembert.formulations.maximal.pull_knot import add_outer
from dalembert.formulations.maximal.weights import build_refinement, load_forces
from dalembert.formulations.variational.equations import (
    coordinate_moved,
    jacobian,
    mean_velocity,
    momentum_derivative,
    residual,
    rotate_gradient,
)
from dalembert.kernels import kernel
from dalembert.linalg import clear, factor
from dalembert.model.frames import relative
from dalembert.model.pose import joint_at_knot, put6
from dalembert.model.records import CONSTRAINT
from dalembert.model.rows import direction_gradient
from dalembert.spatial.tuples import (
    add3,
    cross3,
    dot3,
    load3,
    load9,
    mat_t_vec,
    mat_vec,
    scale3,
    store3,
    sub3,
)

#: most passes of refinement
PASSES = 12


@kernel
def pull_accept(interval, bars):
    """The next state by unknowns and poses: adds S^T ybar', with ybar' in ``after``."""
    model, work, dt = interval.model, interval.work, interval.dt
    half = 0.5 * dt
    for i in range(model.bodies.shape[0] - 1):
        body, fixed, bar = work.bodies[i], model.bodies[i], bars.bodies[i]
        x, phi, p, l = load3(bar.after), load3(bar.after[3:]), load3(bar.after[6:]), load3(bar.after[9:])
        add_to3(bar.xn, 1.0, x)
        add_to3(bar.phin, 1.0, phi)
        add_to3(bar.v, fixed.mass, p)
        bar.mass += dot3(load3(body.v), p)
        w = load3(body.w)
        J = load9(fixed.inertia)
        Jw = mat_vec(J, w)
        # l' = dt/2 (s J w - w x J w): transposed derivative, and by the inertia
        a = sub3(scale3(body.s, l), cross3(l, w))
        add_to3(bar.w, half, sub3(mat_t_vec(J, a), scale3(dot3(Jw, l) / body.s, w)))
        add_to3(bar.w, -half, cross3(Jw, l))
        add_outer(bar.inertia, half, a, w)
    for i in range(model.joints.shape[0]):
        joint, at, bar = model.joints[i], work.joints[i], bars.joints[i]
        for k in range(joint.locks, joint.rows):
            direction = joint.row_direction[k]
            if joint.armature[direction] > 0.0:
                moved = coordinate_moved(work.bodies, joint, at, direction)
                bar.armature[direction] += bar.after[direction] * moved / dt
                pull_moved(model, work, bars, i, direction, bar.after[direction] * joint.armature[direction] / dt, -1.0)
    for i in range(model.couplings.shape[0]):
        if model.couplings[i].law != CONSTRAINT:
            pull_coupling_wrench(model, work, bars, i, 1.0, MOMENTA)
    chain(interval, bars, False)


@kernel
def pull_moved(model, work, bars, index, direction, weight, before):
    """Coordinate of a direction at the end, weighted, and ``before`` times that the one at the knot."""
    joint = model.joints[index]
    parent, child = work.bodies[joint.parent], work.bodies[joint.child]
    Rp = load9(parent.Rn)
    y, C = relative(joint, load3(parent.xn), Rp, load3(child.xn), load9(child.Rn))
    force, on_parent, on_child = direction_gradient(joint, direction, y, C, Rp)
    pull_at_end(bars, index, joint, work.bodies, weight, force, on_parent, on_child)
    y, C, Rp = joint_at_knot(work.bodies, joint)
    force, on_parent, on_child = direction_gradient(joint, direction, y, C, Rp)
    pull_at_knot(bars, index, joint, work.bodies, before * weight, force, on_parent, on_child)


@kernel
def pull_equations(interval, bars):
    """Adds F^T b, with the weights in ``b``."""
    model, work, dt, h = interval.model, interval.work, interval.dt, interval.h
    bodies = work.bodies
    g = load3(model.gravity)
    for i in range(model.bodies.shape[0] - 1):
        fixed, bar = model.bodies[i], bars.bodies[i]
        b = load3(bar.b)
        bar.mass += dot3(load3(bodies[i].v), b) - h * dot3(g, b)
        add_to3(bars.gravity, -h * fixed.mass, b)
        for c in range(6):
            bar.wrench[c] -= h * bar.b[c]
            bar.push[c] -= h * bar.b[c]
    for i in range(model.joints.shape[0]):
        joint, at, bar = model.joints[i], work.joints[i], bars.joints[i]
        pull_joint_wrench(model, work, bars, i, h)
        if joint.rows == 0:
            continue
        parent, child = bodies[joint.parent], bodies[joint.child]
        Rp = load9(parent.Rn)
        y, C = relative(joint, load3(parent.xn), Rp, load3(child.xn), load9(child.Rn))
        force, on_parent, on_child = pull_rows(bar, joint, at, 1.0 / dt, y, C, Rp)
        pull_at_end(bars, i, joint, bodies, 1.0, force, on_parent, on_child)
        for k in range(joint.locks, joint.rows):
            pull_law_row(interval, bars, i, k)
    for i in range(model.couplings.shape[0]):
        pull_coupling(interval, bars, i)
    for i in range(model.loads.shape[0]):
        pull_load(model, work, bars, i, h)
    chain(interval, bars, True)


@kernel
def pull_law_row(interval, bars, index, k):
    """A compliant row: mu + h d rate + a moved/dt - spin - h servo."""
    model, work, dt, h = interval.model, interval.work, interval.dt, interval.h
    joint, at, bar = model.joints[index], work.joints[index], bars.joints[index]
    direction, b = joint.row_direction[k], bar.b[k]
    bar.mu[k] += b
    bar.damping[direction] += b * h * pull_rate(model, work, bars, index, k, b * h * joint.damping[direction])
    moved = coordinate_moved(work.bodies, joint, at, direction)
    # the row reads the spin also where a direction has none: its bar goes nowhere then
    bar.armature[direction] += b * moved / dt
    if joint.armature[direction] > 0.0 or joint.follows[direction]:
        bar.before[direction] -= b
        weight = b * joint.armature[direction] / dt
        pull_moved(model, work, bars, index, direction, weight, -1.0)
    if joint.follows[direction]:
        K, D = pull_servo(bar, joint, direction, -b * h, at.target[direction], at.coordinate[direction] + moved, moved / dt)
        weight = -b * h * (K + D / dt)
        if weight != 0.0:
            pull_moved(model, work, bars, index, direction, weight, b * h * D / dt / weight)


@kernel
def pull_coupling(interval, bars, index):
    """A coupling: open over dt, or impulse less that of its law at the mean of both ends."""
    model, work, dt = interval.model, interval.work, interval.dt
    coupling, tie, bar = model.couplings[index], work.couplings[index], bars.couplings[index]
    pull_coupling_wrench(model, work, bars, index, -1.0, EQUATIONS)
    if coupling.law == CONSTRAINT:
        pull_coupling_value(model, work, bars, index, bar.b / dt, True)
        return
    length, rate = 0.5 * (tie.value + tie.next), (tie.next - tie.value) / dt
    force, K, D, _ = coupling_law(work, coupling, tie, length, rate)
    bar.mu += bar.b
    weight = -0.5 * dt * bar.b
    pull_law(bar, coupling, force + tie.input, length, rate, weight)
    pull_coupling_value(model, work, bars, index, weight * (0.5 * K + D / dt), True)
    pull_coupling_value(model, work, bars, index, weight * (0.5 * K - D / dt), False)


@kernel
def chain(interval, bars, weighed):
    """From bars of mean velocities and of the pose at the end to those of unknowns and of the state before; with ``weighed`` also
    the momenta in the bodies' equations.
    """
    model, work, dt = interval.model, interval.work, interval.dt
    half = 0.5 * dt
    for i in range(model.bodies.shape[0] - 1):
        body, fixed, bar = work.bodies[i], model.bodies[i], bars.bodies[i]
        linear = load3(bar.du)
        angular = mat_vec(load9(fixed.inertia_inverse), load3(bar.du[3:]))
        w = load3(body.w)
        after = scale3(0.5, angular)
        add_to3(bar.before[6:], 0.5 / fixed.mass, linear)
        add_to3(bar.before[9:], 0.5, angular)
        add_to3(bar.before[12:], -0.5 / fixed.mass, linear)
        add_to3(bar.before[15:], -0.5, angular)
        add_to3(bar.v, 0.5, linear)
        bar.mass -= 0.5 * dot3(sub3(load3(body.p), load3(body.along)), linear) / (fixed.mass * fixed.mass)
        add_outer(bar.inertia, -1.0, angular, load3(bar.u[3:]))
        if weighed:
            b, torque = load3(bar.b), load3(bar.b[3:])
            add_to3(bar.before[6:], -1.0, b)
            add_to3(bar.before[9:], -1.0, torque)
            add_to3(bar.v, fixed.mass, b)
            after = add3(after, torque)
        D = momentum_derivative(body, fixed, dt)
        add_to3(bar.w, 1.0, mat_t_vec(D, after))
        add_outer(bar.inertia, half, add3(scale3(body.s, after), cross3(after, w)), w)
        x, phi = load3(bar.xn), load3(bar.phin)
        add_to3(bar.x, 1.0, x)
        add_to3(bar.v, dt, x)
        add_to3(bar.phi, 1.0, mat_t_vec(load9(body.R), mat_vec(load9(body.Rn), phi)))
        add_to3(bar.w, dt, rotate_gradient(phi, w, body.s, dt))
        zero = (0.0, 0.0, 0.0)
        put6(bar.du, zero, zero)
        store3(bar.xn, zero)
        store3(bar.phin, zero)


@kernel
def load_unknowns(interval, bars):
    """Bars of the unknowns into the solver's vector. Returns the largest."""
    model, work, size = interval.model, interval.work, 0.0
    for i in range(model.bodies.shape[0] - 1):
        vector, bar = work.vector[work.bodies[i].node].v, bars.bodies[i]
        for c in range(3):
            vector[c], vector[3 + c] = bar.v[c], bar.w[c]
            size = max(size, max(abs(bar.v[c]), abs(bar.w[c])))
    return load_forces(model, work, bars, size)


refine = build_refinement("interval", __file__, width=6, passes=PASSES, load=load_unknowns, pull=pull_equations)


@kernel
def open_interval(interval, bars):
    """Evaluate the equations at the solution in the work, factor Newton's matrix there, and note the mean velocities.

    Needs the knot evaluated before. Returns False when that cannot be done.
    """
    model, work = interval.model, interval.work
    _, fine = residual(interval)
    if not fine:
        return False
    clear(work.blocks, work.schedule)
    jacobian(interval)
    if factor(work.blocks, work.schedule) >= 0:
        return False
    for i in range(model.bodies.shape[0] - 1):
        linear, angular = mean_velocity(work.bodies[i], model.bodies[i], interval.dt)
        put6(bars.bodies[i].u, linear, angular)
        put6(work.velocity[i], linear, angular)
    return True


@kernel
def pull_interval(interval, bars):
    """From the cotangent ``after`` of the next state to that of the state ``before`` (momenta) and of the pose at the knot (x, phi).

    Needs ``open_interval`` before, and bars of the step that are zero. Returns what is left of the unknowns' bars, relative.
    """
    pull_accept(interval, bars)
    return refine(interval, bars)
