"""A stage with contacts, limits and dry friction in maximal coordinates: what its nodes need to know of it, and its guesses."""
from __future__ import annotations

from dalembert.contact.impacts import build_granting
from dalembert.contact.nodes import build_nodes
from dalembert.formulations.implicit.equations import (
    add4,
    balance,
    flow,
    jacobian,
    load_vector,
    move,
    relative_rate,
    restart,
    rounding_floor,
    spin_derivative,
    subtract_impulse,
    turn,
    unit,
)
from dalembert.formulations.implicit.state import inverse
from dalembert.formulations.maximal.sizes import measure
from dalembert.kernels import inline, kernel
from dalembert.solvers.interior_point import build_interior_point, on_graph
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import add3, dot3, load3, load4, load9, mat_vec, scale3, store3, store4, store9, sub3

#: largest part of their energy that velocities after an impact may have across the joints
MISFIT = 5e-4


@kernel
def balance_at_end(stage):
    """The equations of a stage, with its pose where nodes look for the end of a step."""
    size, fine = balance(stage)
    for i in range(stage.work.bodies.shape[0] - 1):
        body = stage.work.bodies[i]
        store3(body.xn, load3(body.x))
        store4(body.qn, load4(body.q))
        store9(body.Rn, load9(body.R))
    return size, fine


@inline
def velocity(stage, i):
    """At the end of the stage."""
    return load3(stage.own.bodies[i].v), load3(stage.own.bodies[i].spin)


@inline
def velocity_terms(stage, i):
    """A = 1 - gamma q^-1 w of ``spin_derivative``."""
    gamma = stage.gamma
    a = relative_rate(stage.own.bodies[i], gamma)
    return (1.0 - gamma * a[0], -gamma * a[1], -gamma * a[2], -gamma * a[3])


@inline
def rate_gradient(stage, i, A, row, out):
    """Gradient of the rate along a row at the end of the stage."""
    g = (row[3], row[4], row[5])
    for c in range(3):
        out[c] = row[c]
    for c in range(4):
        out[3 + c] = dot3(g, spin_derivative(A, unit(c))[1])


@inline
def end_gradient(stage, i, row, out):
    """Gradient of what changes by ``row`` with the pose at the end, over gamma."""
    for c in range(3):
        out[c] = row[c]
        out[3 + c] = 2.0 * row[3 + c]
    out[6] = 0.0


@inline
def push(stage, i, row, impulse):
    """An impulse along a row, off the body's residual."""
    subtract_impulse(stage.work.bodies[i].r, row, impulse)


nodes = build_nodes(
    "nodes", __file__, unknowns=7, velocity=velocity, velocity_terms=velocity_terms, rate_gradient=rate_gradient, end_gradient=end_gradient,
    push=push,
)
interior_point = build_interior_point(
    "interior_point", __file__, nodes=nodes, linear=on_graph("interior_point", __file__, nodes=nodes, jacobian=jacobian, load_vector=load_vector, turn=turn),
    residual=balance_at_end, measure=measure, restart=restart, move=move, floor=rounding_floor,
)
solve_encounter = interior_point.solve
limit_work = build_granting("limit_work", __file__, velocity=velocity, falls=True, tree=False)


@inline
def angular_velocity(q, w):
    """omega = 2 vec(q^-1 q')."""
    a = quaternion.multiply(inverse(q), w)
    return (2.0 * a[1], 2.0 * a[2], 2.0 * a[3])


@kernel
def recall_pose(model, work, state, smooth):
    """Put the knot's pose and the momenta just before it into the work.

    After a ``smooth`` step these are means over it, as impacts may lie anywhere in the next one; ``v`` and ``w`` of the work
    are what velocities change by in half a step.
    """
    for i in range(model.bodies.shape[0] - 1):
        body, past, fixed = work.bodies[i], state.bodies[i], model.bodies[i]
        store3(body.x, load3(past.x))
        store4(body.q, quaternion.normalize(load4(past.q)))
        v, omega = load3(past.v), angular_velocity(load4(past.q), load4(past.w))
        if smooth:
            store3(body.v, scale3(0.5, sub3(v, load3(past.v1))))
            store3(body.w, scale3(0.5, sub3(omega, angular_velocity(load4(past.q1), load4(past.w1)))))
        else:
            store3(body.v, (0.0, 0.0, 0.0))
            store3(body.w, (0.0, 0.0, 0.0))
        store3(body.p, scale3(fixed.mass, sub3(v, load3(body.v))))
        store3(body.l, mat_vec(load9(fixed.inertia), sub3(omega, load3(body.w))))


@inline
def along_row(model, own, i, row):
    """(rate of body ``i`` along a row of a joint at the end of the stage, inverse of its mass there)."""
    fixed, body = model.bodies[i], own.bodies[i]
    turned = mat_vec(load9(fixed.inertia_inverse), load3(row[3:]))
    return flow(row, body), dot3(load3(row), load3(row)) / fixed.mass + dot3(load3(row[3:]), turned)


@kernel
def misfits(model, work, own, dt, resting):
    """Whether the velocities at the end of an impact have more than the part ``MISFIT`` of their energy across the joints, which allow none there.

    Those of backward Euler are means over the step, and fit the joints in its middle: the steps that follow would turn what does not fit into
    motion that joints do allow. That of a fall over the step, and of the speed ``resting`` (m/s), count as energy besides: what is at rest has none but rounding.
    """
    world, g = work.bodies.shape[0] - 1, load3(model.gravity)
    across = 0.0
    for i in range(model.joints.shape[0]):
        joint, at = model.joints[i], work.joints[i]
        for k in range(joint.locks):
            if joint.row_direction[k] < 0:  # what is driven moves
                rate, inverse_mass = along_row(model, own, joint.child, at.Gc[k])
                if joint.parent != world:
                    other, more = along_row(model, own, joint.parent, at.Gp[k])
                    rate += other
                    inverse_mass += more
                across += 0.5 * rate * rate / inverse_mass
    kinetic = 0.0
    for i in range(world):
        fixed, body = model.bodies[i], own.bodies[i]
        v, w = load3(body.v), load3(body.spin)
        least = dt * dt * dot3(g, g) + resting * resting
        kinetic += 0.5 * (fixed.mass * (dot3(v, v) + least) + dot3(w, mat_vec(load9(fixed.inertia), w)))
    return across > MISFIT * kinetic


@inline
def put_end(body, x, q):
    """Put a pose where nodes look for the end of a step."""
    turned = quaternion.normalize(q)
    store3(body.xn, x)
    store4(body.qn, turned)
    store9(body.Rn, quaternion.to_matrix(turned))


@kernel
def carry_on(work, state, dt):
    """The end pose of a step with the velocities of the knot."""
    for i in range(state.bodies.shape[0]):
        past = state.bodies[i]
        put_end(work.bodies[i], add3(load3(past.x), scale3(dt, load3(past.v))), add4(load4(past.q), load4(past.w), dt))


@kernel
def pose_at_guess(work, own, gamma):
    """The pose that the guess leads to, into the work: its error is of the second order."""
    for i in range(own.bodies.shape[0]):
        body, iterate = work.bodies[i], own.bodies[i]
        store3(body.x, add3(load3(iterate.xp), scale3(gamma, load3(iterate.v))))
        store4(body.q, quaternion.normalize(add4(load4(iterate.qp), load4(iterate.w), gamma)))
        store9(body.R, quaternion.to_matrix(load4(body.q)))


@kernel
def combined_end(state, b, dt, work, own):
    """Put the end pose of a method that is not stiffly accurate where contacts look for it."""
    for i in range(own.bodies.shape[0]):
        body, past = own.bodies[i], state.bodies[i]
        x, q = load3(past.x), load4(past.q)
        for j in range(b.shape[0]):
            k, turned = body.kx[j], body.kq[j]
            s = dt * b[j]
            x = (x[0] + s * k[0], x[1] + s * k[1], x[2] + s * k[2])
            q = (q[0] + s * turned[0], q[1] + s * turned[1], q[2] + s * turned[2], q[3] + s * turned[3])
        put_end(work.bodies[i], x, q)
