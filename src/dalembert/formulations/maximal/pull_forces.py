"""Transposed derivatives of gears, paths, users' constraints and of loads on bodies.

What comes from a user's function is differenced (fourth order), which needs no more of it than a step does.
"""
from __future__ import annotations

from math import sqrt

from dalembert.forces.bodies import add_load_derivatives, load9_of, load_wrench, user_load
from dalembert.formulations.maximal.pull_joints import (
    add_to3,
    along,
    load6,
    pull_at_end,
    pull_at_knot,
    pull_turning,
    pull_wrench,
    transport,
)
from dalembert.kernels import inline, kernel
from dalembert.kernels.calls import call
from dalembert.model.couplings import add_path_stiffness, coordinate_from, evaluate_coupling, path_point, place
from dalembert.model.frames import relative
from dalembert.model.hessians import add_direction
from dalembert.model.pose import joint_at_knot
from dalembert.model.records import CABLE, DRAG, FUNCTION, GEAR, MAPPED, POINT_FORCE, SPRING, USER_LOAD
from dalembert.model.rows import direction_gradient
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import (
    add3,
    cross3,
    dot3,
    load3,
    load4,
    load9,
    mat_t_vec,
    mat_vec,
    neg3,
    scale3,
    store3,
    store4,
    store9,
    sub3,
)

#: steps of fourth-order differences: of users' functions (m, rad, m/s), and of a load's numbers relative to their size
STEP, PART = 1e-3, 1e-3
ZERO3 = (0.0, 0.0, 0.0)


@inline
def offset_of(n):
    """Where, in steps, and with which weight the four values of a fourth-order difference are taken."""
    return (1.0, -1.0, 2.0, -2.0)[n], (8.0, -8.0, -1.0, 1.0)[n] / 12.0


@inline
def add_pose(bar, at_end, scale, force, torque):
    """Add to the bars of a body's pose at the knot or at the end."""
    if at_end:
        add_to3(bar.xn, scale, force)
        add_to3(bar.phin, scale, torque)
    else:
        add_to3(bar.x, scale, force)
        add_to3(bar.phi, scale, torque)


@kernel
def pull_coupling_value(model, work, bars, index, weight, at_end):
    """The number of a coupling at the knot or at the end, weighted: by poses, points, geometry, ratio and offset."""
    coupling, bar = model.couplings[index], bars.couplings[index]
    if coupling.kind == GEAR:
        bar.offset -= weight
        for side in range(2):
            number = coupling.joint[side]
            joint, at = model.joints[number], work.joints[number]
            x_parent, R_parent = place(work.bodies[joint.parent], at_end)
            x_child, R_child = place(work.bodies[joint.child], at_end)
            y, C = relative(joint, x_parent, R_parent, x_child, R_child)
            force, on_parent, on_child = direction_gradient(joint, coupling.direction[side], y, C, R_parent)
            share = weight if side == 0 else -weight * coupling.ratio
            if side == 1:
                bar.ratio -= weight * coordinate_from(joint, at, coupling.direction[side], y, C)
            if at_end:
                pull_at_end(bars, number, joint, work.bodies, share, force, on_parent, on_child)
            else:
                pull_at_knot(bars, number, joint, work.bodies, share, force, on_parent, on_child)
        return
    if coupling.kind == MAPPED:
        pull_map_value(model, work, bars, index, weight, at_end)
        return
    for e in range(coupling.first, coupling.first + coupling.ends):
        G = work.ends[e].H if at_end else work.ends[e].G
        add_pose(bars.bodies[model.ends[e]], at_end, weight, load3(G), load3(G[3:]))
    if coupling.kind == FUNCTION:
        return
    here, _, Ra = path_point(model, work, coupling, 0, at_end)
    for number in range(1, coupling.points):
        there, _, Rb = path_point(model, work, coupling, number, at_end)
        d = sub3(there, here)
        n = scale3(weight / sqrt(dot3(d, d)), d)
        add_to3(bars.points[coupling.first_point + number - 1].point, -1.0, mat_t_vec(Ra, n))
        add_to3(bars.points[coupling.first_point + number].point, 1.0, mat_t_vec(Rb, n))
        here, Ra = there, Rb


#: which weights a wrench on a body meets: those of its equations, those of its momenta after the step, or velocities
EQUATIONS, MOMENTA, VELOCITIES = 0, 1, 2


@inline
def weights_of(bars, body, which):
    """Six weights of a body."""
    bar = bars.bodies[body]
    if which == EQUATIONS:
        return load6(bar.b)
    if which == VELOCITIES:
        return load6(bar.u)
    # what a path gives at the end is part of the momenta, and is noted besides
    p, along = load6(bar.after[6:]), load6(bar.after[12:])
    return (p[0] + along[0], p[1] + along[1], p[2] + along[2], p[3] + along[3], p[4] + along[4], p[5] + along[5])


@kernel
def pull_coupling_wrench(model, work, bars, index, sign, which):
    """The impulse of a coupling on its bodies, by poses, points, geometry and itself: at the knot, where it stands in their
    equations, or at the end, where it is added to their momenta. ``sign`` is the one with which it does.
    """
    at_end = which == MOMENTA
    total = 0.0
    coupling = model.couplings[index]
    for e in range(coupling.first, coupling.first + coupling.ends):
        weights = weights_of(bars, model.ends[e], which)
        for c in range(6):
            total += weights[c] * (work.ends[e].H[c] if at_end else work.ends[e].G[c])
    bars.couplings[index].mu += sign * total
    pull_coupling_turning(model, work, bars, index, sign * work.couplings[index].mu, which)


@kernel
def pull_coupling_rate(model, work, bars, index, weight):
    """The rate of a coupling at the knot for the velocities ``u``, weighted."""
    coupling = model.couplings[index]
    for e in range(coupling.first, coupling.first + coupling.ends):
        du = bars.bodies[model.ends[e]].du
        for c in range(6):
            du[c] += weight * work.ends[e].G[c]
    pull_coupling_turning(model, work, bars, index, weight, VELOCITIES)


@kernel
def pull_coupling_turning(model, work, bars, index, size, which):
    """How the gradient of a coupling turns: ``size`` times the weights along it, by poses, points and geometry."""
    coupling, bar = model.couplings[index], bars.couplings[index]
    at_end = which == MOMENTA
    if size == 0.0:
        return
    if coupling.kind == GEAR:  # a constraint: at the knot only
        for side in range(2):
            number = coupling.joint[side]
            joint = model.joints[number]
            parent, child = work.bodies[joint.parent], work.bodies[joint.child]
            R_parent = load9(parent.R)
            y, C = relative(joint, load3(parent.x), R_parent, load3(child.x), load9(child.R))
            share = size if side == 0 else -coupling.ratio * size
            force, on_parent, on_child = direction_gradient(joint, coupling.direction[side], y, C, R_parent)
            first, second = weights_of(bars, joint.parent, which), weights_of(bars, joint.child, which)
            if side == 1:
                bar.ratio -= size * along(force, on_parent, on_child, first, second)
            bars.K[:] = 0.0
            add_direction(bars.K, joint, coupling.direction[side], share, y, C, R_parent)
            pull_wrench(
                bars, number, joint, work.bodies, 1.0, first, second, scale3(share, force), scale3(share, on_parent), scale3(share, on_child),
            )
        return
    if coupling.kind == FUNCTION:
        pull_function(model, work, bars, index, size, which)
        return
    if coupling.kind == MAPPED:  # a constraint too
        pull_map_turning(model, work, bars, index, size, which)
        return
    for number in range(coupling.points - 1):
        one, two = model.points[coupling.first_point + number], model.points[coupling.first_point + number + 1]
        here, a, Ra = path_point(model, work, coupling, number, at_end)
        there, b, Rb = path_point(model, work, coupling, number + 1, at_end)
        d = sub3(there, here)
        f = scale3(size / sqrt(dot3(d, d)), d)
        bars.K[:] = 0.0
        add_path_stiffness(bars.K, model, work, coupling, number, size, at_end)
        first, second, g = weights_of(bars, one.body, which), weights_of(bars, two.body, which), bars.pair
        pull_turning(bars.K, g, 1.0, first, second)
        add_pose(bars.bodies[one.body], at_end, 1.0, load3(g), load3(g[3:]))
        add_pose(bars.bodies[two.body], at_end, 1.0, load3(g[6:]), load3(g[9:]))
        turn = bars.idle
        transport(
            bars.points[coupling.first_point + number].point, turn, 1.0, Ra, a, load3(g), load3(g[3:]), neg3(f), ZERO3, load3(first[3:]),
        )
        transport(
            bars.points[coupling.first_point + number + 1].point, turn, 1.0, Rb, b, load3(g[6:]), load3(g[9:]), f, ZERO3, load3(second[3:]),
        )


@kernel
def pull_map_value(model, work, bars, index, weight, at_end):
    """A coordinate less what a map makes of others, weighted."""
    coupling = model.couplings[index]
    evaluate_coupling(model, work, index, at_end)  # leaves the map's slopes
    for k in range(coupling.legs):
        leg = model.legs[coupling.first_leg + k]
        joint = model.joints[leg.joint]
        x_parent, R_parent = place(work.bodies[joint.parent], at_end)
        x_child, R_child = place(work.bodies[joint.child], at_end)
        y, C = relative(joint, x_parent, R_parent, x_child, R_child)
        force, on_parent, on_child = direction_gradient(joint, leg.direction, y, C, R_parent)
        share = weight if k == 0 else -weight * work.found[k]
        if at_end:
            pull_at_end(bars, leg.joint, joint, work.bodies, share, force, on_parent, on_child)
        else:
            pull_at_knot(bars, leg.joint, joint, work.bodies, share, force, on_parent, on_child)


@inline
def flow_along(model, work, bars, leg, which):
    """The weights of two bodies along the coordinate of a map's leg."""
    joint = model.joints[leg.joint]
    y, C, R_parent = joint_at_knot(work.bodies, joint)
    force, on_parent, on_child = direction_gradient(joint, leg.direction, y, C, R_parent)
    return along(force, on_parent, on_child, weights_of(bars, joint.parent, which), weights_of(bars, joint.child, which))


@kernel
def pull_map_turning(model, work, bars, index, size, which):
    """How the gradient of a map turns at the knot: its directions, and its slopes, which are differenced."""
    coupling = model.couplings[index]
    evaluate_coupling(model, work, index, False)
    for k in range(coupling.legs):
        leg = model.legs[coupling.first_leg + k]
        joint = model.joints[leg.joint]
        y, C, R_parent = joint_at_knot(work.bodies, joint)
        force, on_parent, on_child = direction_gradient(joint, leg.direction, y, C, R_parent)
        share = size if k == 0 else -size * work.found[k]
        bars.K[:] = 0.0
        add_direction(bars.K, joint, leg.direction, share, y, C, R_parent)
        pull_wrench(
            bars, leg.joint, joint, work.bodies, 1.0, weights_of(bars, joint.parent, which), weights_of(bars, joint.child, which), scale3(share, force),
            scale3(share, on_parent), scale3(share, on_child),
        )
    if coupling.function == 0:
        return
    for j in range(1, coupling.legs):
        here, bend = work.given[j], 0.0
        for n in range(4):
            step, share = offset_of(n)
            work.given[j] = here + step * STEP
            call(coupling.function, work.given[: coupling.legs], work.found[: coupling.legs])
            for k in range(1, coupling.legs):
                bend += share / STEP * work.found[k] * flow_along(model, work, bars, model.legs[coupling.first_leg + k], which)
        work.given[j] = here
        leg = model.legs[coupling.first_leg + j]
        joint = model.joints[leg.joint]
        y, C, R_parent = joint_at_knot(work.bodies, joint)
        force, on_parent, on_child = direction_gradient(joint, leg.direction, y, C, R_parent)
        pull_at_knot(bars, leg.joint, joint, work.bodies, -size * bend, force, on_parent, on_child)


@inline
def turn_pose(body, at_end, c, size, x, q):
    """Put a body ``size`` beside a pose (x, q), along direction ``c`` of its tangents."""
    step = (size if c % 3 == 0 else 0.0, size if c % 3 == 1 else 0.0, size if c % 3 == 2 else 0.0)
    moved = add3(x, step) if c < 3 else x
    turned = quaternion.multiply(q, quaternion.exp(step)) if c >= 3 else q
    if at_end:
        store3(body.xn, moved)
        store4(body.qn, turned)
        store9(body.Rn, quaternion.to_matrix(turned))
    else:
        store3(body.x, moved)
        store4(body.q, turned)
        store9(body.R, quaternion.to_matrix(turned))


@kernel
def pull_function(model, work, bars, index, weight, which):
    """How the gradient of a user's constraint, weighted, turns with the poses of its bodies: by differences of it."""
    coupling, at_end = model.couplings[index], which == MOMENTA
    for k in range(coupling.first, coupling.first + coupling.ends):
        body, bar = work.bodies[model.ends[k]], bars.bodies[model.ends[k]]
        x = load3(body.xn) if at_end else load3(body.x)
        q = load4(body.qn) if at_end else load4(body.q)
        for c in range(6):
            slope = 0.0
            for n in range(4):
                size, share = offset_of(n)
                turn_pose(body, at_end, c, size * STEP, x, q)
                evaluate_coupling(model, work, index, at_end)
                for e in range(coupling.first, coupling.first + coupling.ends):
                    weights = weights_of(bars, model.ends[e], which)
                    for r in range(6):
                        slope += share / STEP * weights[r] * (work.ends[e].H[r] if at_end else work.ends[e].G[r])
            turn_pose(body, at_end, 0, 0.0, x, q)
            if at_end:
                if c < 3:
                    bar.xn[c] += weight * slope
                else:
                    bar.phin[c - 3] += weight * slope
            elif c < 3:
                bar.x[c] += weight * slope
            else:
                bar.phi[c - 3] += weight * slope
    evaluate_coupling(model, work, index, at_end)


@inline
def pull_law(bar, coupling, force, length, rate, weight):
    """The law of a path, weighted, by its numbers; ``force`` is what it gave without the input."""
    bar.input -= weight
    if coupling.law == SPRING or (coupling.law == CABLE and force != 0.0):
        bar.stiffness -= weight * (length - coupling.rest)
        bar.damping -= weight * rate
        bar.rest += weight * coupling.stiffness


@kernel
def pull_load(model, work, bars, index, scale):
    """A load as it stands, times ``scale`` and with a minus sign, in the equations: by pose, velocities ``u`` and its own numbers."""
    load = model.loads[index]
    if load.kind == USER_LOAD:
        pull_user_load(model, work, bars, load, scale)
        return
    body, bar, numbers = work.bodies[load.body], bars.bodies[load.body], load.numbers
    K, D = work.K, work.D
    K[:6, :6] = 0.0
    D[:6, :6] = 0.0
    x, R, u = load3(body.x), load9_of(body), bar.u
    add_load_derivatives(K, D, load, x, R, load3(u), load3(u[3:]))
    for c in range(6):
        by_pose, by_velocity = 0.0, 0.0
        for r in range(6):
            by_pose -= scale * bar.b[r] * K[r, c]
            by_velocity -= scale * bar.b[r] * D[r, c]
        bar.du[c] += by_velocity
        if c < 3:
            bar.x[c] += by_pose
        else:
            bar.phi[c - 3] += by_pose
    own = bars.loads[index].numbers
    b_lin, b_ang = load3(bar.b), load3(bar.b[3:])
    if load.kind == DRAG:
        own[0] += scale * dot3(b_lin, load3(u))
        own[1] += scale * dot3(b_ang, load3(u[3:]))
        return
    p = load3(numbers)
    if load.kind == POINT_FORCE:
        local = load3(numbers[3:6])
        if numbers[6] != 0.0:
            add_to3(own[3:6], -scale, add3(mat_t_vec(R, b_lin), cross3(b_ang, p)))
            add_to3(own, -scale, cross3(local, b_ang))
        else:
            arm = mat_vec(R, cross3(b_ang, p))
            add_to3(own[3:6], -scale, add3(b_lin, arm))
            add_to3(own, -scale, cross3(mat_t_vec(R, local), b_ang))
        return
    trial = bars.trial[0]
    trial.kind = load.kind
    for c in range(11):
        slope = 0.0
        step = PART * max(abs(numbers[c]), 1e-2)
        for n in range(4):
            size, share = offset_of(n)
            for d in range(12):
                trial.numbers[d] = numbers[d]
            trial.numbers[c] += size * step
            F, T = load_wrench(trial, x, R, load3(u), load3(u[3:]))
            slope += share / step * (dot3(F, b_lin) + dot3(T, b_ang))
        own[c] -= scale * slope


@inline
def weighed(model, work, bars, load, velocity):
    """The wrenches of a user's law, times the weights of the equations that they stand in."""
    user_load(model, work, load, velocity)
    total = 0.0
    for k in range(load.ends):
        b = bars.bodies[model.ends[load.first + k]].b
        for r in range(6):
            total += b[r] * work.found[6 * k + r]
    return total


@kernel
def pull_user_load(model, work, bars, load, scale):
    """A user's law by poses and velocities, by differences of it; the work's velocities are those that it sees."""
    for k in range(load.ends):
        which = model.ends[load.first + k]
        body, bar = work.bodies[which], bars.bodies[which]
        x, q = load3(body.x), load4(body.q)
        for c in range(6):
            slope = 0.0
            for n in range(4):
                size, share = offset_of(n)
                turn_pose(body, False, c, size * STEP, x, q)
                slope += share / STEP * weighed(model, work, bars, load, work.velocity)
            turn_pose(body, False, 0, 0.0, x, q)
            if c < 3:
                bar.x[c] -= scale * slope
            else:
                bar.phi[c - 3] -= scale * slope
        for c in range(6 if load.moving else 0):
            slope, u = 0.0, work.velocity[which, c]
            for n in range(4):
                size, share = offset_of(n)
                work.velocity[which, c] = u + size * STEP
                slope += share / STEP * weighed(model, work, bars, load, work.velocity)
            work.velocity[which, c] = u
            bar.du[c] -= scale * slope
