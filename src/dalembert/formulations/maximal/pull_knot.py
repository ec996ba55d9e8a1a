"""Transposed derivatives of what is read at a knot: rates, coordinates, energy, and velocities that follow by projection."""
from __future__ import annotations

import numpy as np

from dalembert.forces.ball import ball_spring
from dalembert.forces.bodies import load9_of, push_on_bodies, user_load
from dalembert.forces.directions import resistance, servo_at, spring, usual_rate
from dalembert.forces.laws import coupling_law
from dalembert.forces.loads import evaluate_loads
from dalembert.formulations.maximal.knot import knot_matrix, project
from dalembert.formulations.maximal.pull_forces import (
    EQUATIONS,
    STEP,
    offset_of,
    pull_coupling_rate,
    pull_coupling_value,
    pull_coupling_wrench,
    pull_load,
    turn_pose,
)
from dalembert.formulations.maximal.pull_joints import (
    add_to3,
    pull_at_knot,
    pull_direction_rate,
    pull_joint_wrench,
    pull_own_numbers,
    pull_rate,
    pull_servo,
    pull_wrench,
)
from dalembert.kernels import inline, kernel
from dalembert.linalg import solve_transposed
from dalembert.model.frames import frame_rotation
from dalembert.model.hessians import add_direction
from dalembert.model.pose import joint_at_knot, put6
from dalembert.model.records import (
    BALL,
    CABLE,
    COMPLIANT,
    CONSTRAINT,
    DISTANCE,
    DRAG,
    POINT_FORCE,
    SLIDE,
    SPRING,
    USER_LOAD,
)
from dalembert.model.rows import direction_gradient, row_gradient
from dalembert.spatial import so3
from dalembert.spatial.tuples import (
    add3,
    cross3,
    dot3,
    load3,
    load4,
    load9,
    mat_t_mul,
    mat_t_vec,
    mat_vec,
    scale3,
)

ZERO3 = (0.0, 0.0, 0.0)
#: most passes of refinement
PASSES = 20


@inline
def add_outer(target, scale, a, b):
    """target (9,) += scale a b^T."""
    for r in range(3):
        for c in range(3):
            target[3 * r + c] += scale * a[r] * b[c]


@kernel
def pull_coordinates(model, work, bars, coordinate):
    """Coordinates (joints, 6) at the knot, weighted."""
    for i in range(model.joints.shape[0]):
        joint, at = model.joints[i], work.joints[i]
        if joint.free == 0:
            continue
        y, C, Rp = joint_at_knot(work.bodies, joint)
        for k in range(joint.free):
            weight = coordinate[i, k]
            if joint.free_kind[k] == BALL:
                first = k - joint.free_axis[k]
                turned = so3.left_jacobian_inverse(load3(at.coordinate[first:]))
                weight = mat_t_vec(turned, load3(coordinate[i, first:]))[joint.free_axis[k]]
            if weight != 0.0:
                force, on_parent, on_child = direction_gradient(joint, k, y, C, Rp)
                pull_at_knot(bars, i, joint, work.bodies, weight, force, on_parent, on_child)


@kernel
def pull_rates(model, work, bars, rate):
    """Rates (joints, 6) along the free directions for the velocities ``u``, weighted."""
    for i in range(model.joints.shape[0]):
        for k in range(model.joints[i].free):
            if rate[i, k] != 0.0:
                pull_direction_rate(model, work, bars, i, k, rate[i, k])


@kernel
def pull_kinetic(model, work, bars, weight, rate):
    """The kinetic energy of the velocities ``u``, with that of reflected inertias at rates (joints, 6)."""
    for i in range(model.bodies.shape[0] - 1):
        fixed, bar = model.bodies[i], bars.bodies[i]
        v, w = load3(bar.u), load3(bar.u[3:])
        bar.mass += 0.5 * weight * dot3(v, v)
        add_outer(bar.inertia, 0.5 * weight, w, w)
        add_to3(bar.du, weight * fixed.mass, v)
        add_to3(bar.du[3:], weight, mat_vec(load9(fixed.inertia), w))
    for i in range(model.joints.shape[0]):
        for k in range(model.joints[i].free):
            bars.joints[i].armature[k] += 0.5 * weight * rate[i, k] * rate[i, k]
            if model.joints[i].armature[k] > 0.0:
                pull_direction_rate(model, work, bars, i, k, weight * model.joints[i].armature[k] * rate[i, k])


@kernel
def pull_potential(model, work, bars, weight):
    """The potential energy at the knot, weighted."""
    g = load3(model.gravity)
    for i in range(model.bodies.shape[0] - 1):
        x, mass, bar = load3(work.bodies[i].x), model.bodies[i].mass, bars.bodies[i]
        add_to3(bar.x, -weight * mass, g)
        add_to3(bars.gravity, -weight * mass, x)
        bar.mass -= weight * dot3(g, x)
    for i in range(model.joints.shape[0]):  # also those without springs, for the stiffness that they might have
        joint, at, bar = model.joints[i], work.joints[i], bars.joints[i]
        y, C, Rp = joint_at_knot(work.bodies, joint)
        for k in range(joint.free):
            force, on_parent, on_child = direction_gradient(joint, k, y, C, Rp)
            if joint.free_kind[k] != BALL:
                stretch = at.coordinate[k] - joint.rest[k]
                bar.stiffness[k] += 0.5 * weight * stretch * stretch
                bar.rest[k] -= weight * joint.stiffness[k] * stretch
                pull_at_knot(bars, i, joint, work.bodies, -weight * spring(joint, at, k)[0], force, on_parent, on_child)
            elif joint.free_axis[k] == 0:
                pull_ball_energy(model, work, bars, i, k, weight, y, C, Rp)
    for i in range(model.couplings.shape[0]):
        coupling, tie, bar = model.couplings[i], work.couplings[i], bars.couplings[i]
        if coupling.law == CONSTRAINT:
            continue
        force = coupling_law(work, coupling, tie, tie.value, 0.0)[0] + tie.input
        pull_coupling_value(model, work, bars, i, -weight * force, False)
        stretch = tie.value - coupling.rest
        if coupling.law == SPRING or (coupling.law == CABLE and stretch > 0.0):
            bar.stiffness += 0.5 * weight * stretch * stretch
            bar.rest -= weight * coupling.stiffness * stretch
    for i in range(model.loads.shape[0]):
        pull_load_energy(model, work, bars, i, weight)


@kernel
def pull_ball_energy(model, work, bars, index, first, weight, y, C, Rp):
    """The energy of a ball joint's springs: its gradient is minus their torque."""
    joint, bar = model.joints[index], bars.joints[index]
    E = frame_rotation(joint, C)
    torque, _ = ball_spring(joint, first, E)
    for c in range(3):
        force, on_parent, on_child = direction_gradient(joint, first + c, y, C, Rp)
        pull_at_knot(bars, index, joint, work.bodies, -weight * torque[c], force, on_parent, on_child)
    rest = load9(joint.rest_frame)
    # turning the rest orientation (in its own axes) by psi is turning E by -rest psi
    add_to3(bar.rest_turn, weight, mat_t_vec(rest, torque))
    phi = so3.log_matrix(mat_t_mul(rest, E))
    for c in range(3):
        bar.stiffness[first + c] += 0.5 * weight * phi[c] * phi[c]


@kernel
def pull_load_energy(model, work, bars, index, weight):
    """The energy of a load: point forces along the world's axes, penalty springs, users' potentials (differenced)."""
    load = model.loads[index]
    if load.kind == DRAG:
        return
    if load.kind == USER_LOAD:
        for k in range(load.ends):
            which = model.ends[load.first + k]
            body, bar = work.bodies[which], bars.bodies[which]
            x, q = load3(body.x), load4(body.q)
            for c in range(6):
                slope = 0.0
                for n in range(4):
                    size, share = offset_of(n)
                    turn_pose(body, False, c, size * STEP, x, q)
                    user_load(model, work, load, work.velocity)
                    slope += share / STEP * work.found[6 * load.ends]
                turn_pose(body, False, 0, 0.0, x, q)
                if c < 3:
                    bar.x[c] += weight * slope
                else:
                    bar.phi[c - 3] += weight * slope
        return
    body, bar, numbers, own = work.bodies[load.body], bars.bodies[load.body], load.numbers, bars.loads[index].numbers
    p, R, along = load3(numbers), load9_of(body), load3(numbers[3:6])
    X = add3(load3(body.x), mat_vec(R, p))
    if load.kind == POINT_FORCE:
        if numbers[6] != 0.0:
            return
        force = scale3(-weight, along)
        add_to3(own[3:6], -weight, X)
    else:
        depth = min(dot3(along, X) - numbers[6], 0.0)
        force = scale3(weight * numbers[7] * depth, along)
        add_to3(own[3:6], weight * numbers[7] * depth, X)
        own[6] -= weight * numbers[7] * depth
        own[7] += 0.5 * weight * depth * depth
    local = mat_t_vec(R, force)
    add_to3(bar.x, 1.0, force)
    add_to3(bar.phi, 1.0, cross3(p, local))
    add_to3(own, 1.0, local)


@kernel
def project_knot(model, work, compliance, half, momentum, rates, velocity, wanted, impulse, coupling_impulse):
    """Velocities (n + 1, 6) at a knot from left limits of the momenta (n, 6), as ``motion_series`` finds them; impulses end in the work.

    ``rates`` (joints, 6): of driven directions. ``velocity`` holds the left limits before, and the knot's after.
    """
    push_on_bodies(model, work, velocity, 1)
    for i in range(model.bodies.shape[0] - 1):
        for c in range(6):
            wanted[i, c] = momentum[i, c] + half * work.bodies[i].load[c]
    for i in range(model.joints.shape[0]):
        for k in range(model.joints[i].rows):
            direction = model.joints[i].row_direction[k]
            work.joints[i].r[k] = rates[i, direction] if direction >= 0 else 0.0
    for i in range(model.couplings.shape[0]):
        work.couplings[i].r = 0.0
    project(model, work, compliance, wanted, half, 1e-13, velocity, impulse, coupling_impulse)
    for i in range(model.joints.shape[0]):
        for k in range(model.joints[i].rows):
            work.joints[i].mu[k] = impulse[i, k]
    for i in range(model.couplings.shape[0]):
        work.couplings[i].mu = coupling_impulse[i]
    evaluate_loads(model, work)


@kernel
def pull_project(model, work, bars, compliance, half, left, rate_bars):
    """From bars ``du`` of projected velocities ``u`` to bars of the momenta ``before``, of pose and inputs.

    Needs ``project_knot`` before. ``left`` (n + 1, 6): velocities just before the knot; adds to ``rate_bars`` (joints, 6), those
    of the rates of driven directions.
    """
    if knot_matrix(model, work, compliance, half) >= 0:
        return -1.0
    for i in range(model.bodies.shape[0] - 1):
        put6(bars.bodies[i].b, ZERO3, ZERO3)
    for i in range(model.joints.shape[0]):
        for k in range(model.joints[i].rows):
            bars.joints[i].b[k] = 0.0
    for i in range(model.couplings.shape[0]):
        bars.couplings[i].b = 0.0
    size = weigh_knot(model, work, bars, half)
    pull_knot_equations(model, work, bars, half, left, rate_bars)
    for i in range(model.bodies.shape[0] - 1):
        put6(bars.bodies[i].du, ZERO3, ZERO3)
    return size


@kernel
def weigh_knot(model, work, bars, lag):
    """Weights ``b`` of the equations of the knot, from the bars ``du`` and ``mu`` of its velocities and forces; refined with the exact product.

    The matrix is factored with that ``lag``. Needs no weights before; returns what is left of the bars, relative.
    """
    bodies, world = work.bodies, model.bodies.shape[0] - 1
    before, largest, size = np.inf, 0.0, 0.0
    for attempt in range(PASSES):
        size = 0.0
        for i in range(world):
            fixed, b, vector = model.bodies[i], bars.bodies[i].b, work.vector[bodies[i].node].v
            turned = mat_t_vec(load9(fixed.inertia), load3(b[3:]))
            du = bars.bodies[i].du
            for c in range(3):
                vector[c], vector[3 + c] = du[c] + fixed.mass * b[c], du[3 + c] + turned[c]
        for i in range(model.joints.shape[0]):
            joint, at, bar = model.joints[i], work.joints[i], bars.joints[i]
            first, second = bars.bodies[joint.parent].b, bars.bodies[joint.child].b
            for k in range(joint.rows):
                own = joint.row_kind[k] == COMPLIANT
                weight = bar.b[k]
                if own:
                    weight *= lag * resistance(joint, at, joint.row_direction[k]) + joint.armature[joint.row_direction[k]]
                total = bar.mu[k] + (bar.b[k] if own else 0.0)
                for c in range(6):
                    total -= at.Gc[k, c] * second[c]
                    work.vector[bodies[joint.child].node].v[c] += weight * at.Gc[k, c]
                    if joint.parent != world:
                        total -= at.Gp[k, c] * first[c]
                        work.vector[bodies[joint.parent].node].v[c] += weight * at.Gp[k, c]
                work.vector[at.node].v[k] = total
                size = max(size, abs(total))
        for i in range(model.couplings.shape[0]):
            coupling, bar = model.couplings[i], bars.couplings[i]
            total = bar.mu
            if coupling.law == CONSTRAINT:
                for e in range(coupling.first, coupling.first + coupling.ends):
                    which = model.ends[e]
                    if which != world:
                        for c in range(6):
                            total -= work.ends[e].G[c] * bars.bodies[which].b[c]
                            work.vector[bodies[which].node].v[c] += bar.b * work.ends[e].G[c]
            else:
                total = 0.0
            work.vector[work.couplings[i].node].v[0] = total
            size = max(size, abs(total))
        for i in range(world):
            for c in range(6):
                size = max(size, abs(work.vector[bodies[i].node].v[c]))
        largest = max(largest, size) if attempt <= 1 else largest
        if not size > 1e-14 * largest or (attempt > 1 and not size < 0.5 * before):
            break
        before = size
        solve_transposed(work.blocks, work.schedule, work.vector)
        for i in range(world):
            for c in range(6):
                bars.bodies[i].b[c] -= work.vector[bodies[i].node].v[c]
        for i in range(model.joints.shape[0]):
            for k in range(model.joints[i].rows):
                bars.joints[i].b[k] -= work.vector[work.joints[i].node].v[k]
        for i in range(model.couplings.shape[0]):
            bars.couplings[i].b -= work.vector[work.couplings[i].node].v[0]
    return size / largest if largest > 0.0 else 0.0


@kernel
def pull_knot_equations(model, work, bars, half, left, rate_bars):
    """M u - momentum - half load - G^T mu = 0; G u = rates; mu + (half d + a) rate - spin - half servo = 0; weighted with ``b``."""
    g = load3(model.gravity)
    for i in range(model.bodies.shape[0] - 1):
        fixed, bar = model.bodies[i], bars.bodies[i]
        b, torque = load3(bar.b), load3(bar.b[3:])
        v, w = load3(bar.u), load3(bar.u[3:])
        add_to3(bar.du, fixed.mass, b)
        add_to3(bar.du[3:], 1.0, mat_t_vec(load9(fixed.inertia), torque))
        bar.mass += dot3(v, b) - half * dot3(g, b)
        add_outer(bar.inertia, 1.0, torque, w)
        add_to3(bars.gravity, -half * fixed.mass, b)
        for c in range(6):
            bar.before[6 + c] -= bar.b[c]
            bar.wrench[c] -= half * bar.b[c]
            bar.push[c] -= half * bar.b[c]
    for i in range(model.joints.shape[0]):
        joint, at, bar = model.joints[i], work.joints[i], bars.joints[i]
        pull_joint_wrench(model, work, bars, i, half)
        for k in range(joint.rows):
            direction, b = joint.row_direction[k], bar.b[k]
            if joint.row_kind[k] != COMPLIANT:
                pull_rate(model, work, bars, i, k, b)
                if direction >= 0:
                    rate_bars[i, direction] -= b
                continue
            weight = b * (half * resistance(joint, at, direction) + joint.armature[direction])
            rate = pull_rate(model, work, bars, i, k, weight)
            bar.mu[k] += b
            bar.damping[direction] += b * half * rate
            bar.armature[direction] += b * rate
            bar.before[direction] -= b
            if joint.follows[direction]:
                usual = usual_rate(joint, at, direction)
                _, D = servo_at(joint, at, direction, usual)
                if D != 0.0:
                    bar.servo_damping[direction] += b * half * (rate - usual)
                K, _ = pull_servo(bar, joint, direction, -b * half, at.target[direction], at.coordinate[direction], usual)
                y, C, Rp = joint_at_knot(work.bodies, joint)
                force, on_parent, on_child = direction_gradient(joint, direction, y, C, Rp)
                pull_at_knot(bars, i, joint, work.bodies, -b * half * K, force, on_parent, on_child)
    for i in range(model.couplings.shape[0]):
        if model.couplings[i].law == CONSTRAINT:
            pull_coupling_wrench(model, work, bars, i, -1.0, EQUATIONS)
            pull_coupling_rate(model, work, bars, i, bars.couplings[i].b)
    if model.loads.shape[0] > 0 and half > 0.0:
        pull_left_loads(model, work, bars, half, left)


@kernel
def pull_left_loads(model, work, bars, half, left):
    """Loads at the velocities ``left`` just before the knot, in place of ``u``."""
    world = model.bodies.shape[0] - 1
    for i in range(world):
        bar = bars.bodies[i]
        for c in range(6):
            bar.kept_u[c], bar.kept_du[c] = bar.u[c], bar.du[c]
            bar.u[c] = work.velocity[i, c] = left[i, c]
            bar.du[c] = 0.0
    for i in range(model.loads.shape[0]):
        pull_load(model, work, bars, i, half)
    for i in range(world):
        fixed, bar = model.bodies[i], bars.bodies[i]
        linear, angular = load3(bar.du), mat_vec(load9(fixed.inertia_inverse), load3(bar.du[3:]))
        add_to3(bar.before[6:], 1.0 / fixed.mass, linear)
        add_to3(bar.before[9:], 1.0, angular)
        bar.mass -= dot3(load3(left[i]), linear) / fixed.mass
        add_outer(bar.inertia, -1.0, angular, load3(left[i, 3:]))
        for c in range(6):
            bar.u[c], bar.du[c] = bar.kept_u[c], bar.kept_du[c]


@kernel
def pull_start_rates(model, work, bars, rates, bare):
    """Momenta of reflected inertias at a start, weighted with the joints' ``after``: armature times rates (joints, 6); or rates, ``bare``."""
    for i in range(model.joints.shape[0]):
        joint, bar = model.joints[i], bars.joints[i]
        for k in range(joint.free):
            if bar.after[k] != 0.0 and bare:
                pull_direction_rate(model, work, bars, i, k, bar.after[k])
            elif bar.after[k] != 0.0:
                bar.armature[k] += bar.after[k] * rates[i, k]
                pull_direction_rate(model, work, bars, i, k, bar.after[k] * joint.armature[k])


@kernel
def pull_row_rates(model, work, bars, motion, rows, ties, directions):
    """Rates of joint rows (joints, 6), couplings and directions (joints, 6) for a motion (n, 6) at the pose in the work, weighted."""
    for i in range(model.bodies.shape[0] - 1):
        for c in range(6):
            bars.bodies[i].u[c] = motion[i, c]
    for i in range(model.joints.shape[0]):
        for k in range(model.joints[i].locks):
            pull_rate(model, work, bars, i, k, rows[i, k])
        for k in range(model.joints[i].free):
            if directions[i, k] != 0.0:
                pull_direction_rate(model, work, bars, i, k, directions[i, k])
    for i in range(model.couplings.shape[0]):
        if ties[i] != 0.0:
            pull_coupling_rate(model, work, bars, i, ties[i])
    for i in range(model.bodies.shape[0] - 1):
        put6(bars.bodies[i].du, ZERO3, ZERO3)


@kernel
def pull_twist(model, work, bars, index, rates, line, turn):
    """A joint's own motion at rates (6,): its slides along ``line`` (world) and its turns about ``turn`` (the child's axes), weighted."""
    joint, child = model.joints[index], bars.bodies[model.joints[index].child]
    y, C, Rp = joint_at_knot(work.bodies, joint)
    zero = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for k in range(joint.free):
        force, on_parent, on_child = direction_gradient(joint, k, y, C, Rp)
        slides = joint.free_kind[k] == SLIDE or joint.free_kind[k] == DISTANCE
        second = (line[0], line[1], line[2], 0.0, 0.0, 0.0) if slides else (0.0, 0.0, 0.0, turn[0], turn[1], turn[2])
        bars.K[:] = 0.0
        add_direction(bars.K, joint, k, rates[k], y, C, Rp)
        pull_wrench(
            bars, index, joint, work.bodies, 1.0, zero, second, scale3(rates[k], force), scale3(rates[k], on_parent), scale3(rates[k], on_child),
        )
        if not slides:
            add_to3(child.phi, rates[k], cross3(on_child, load3(turn)))


@kernel
def pull_row_values(model, work, bars, rows, ties, directions):
    """Values of joint rows (joints, 6), couplings and coordinates (joints, 6) at the pose in the work, weighted."""
    for i in range(model.joints.shape[0]):
        joint, at = model.joints[i], work.joints[i]
        y, C, Rp = joint_at_knot(work.bodies, joint)
        for k in range(joint.locks):
            force, on_parent, on_child = row_gradient(joint, at, k, y, C, Rp)
            pull_at_knot(bars, i, joint, work.bodies, rows[i, k], force, on_parent, on_child)
            pull_own_numbers(bars.joints[i], joint, at, k, rows[i, k], C)
        for k in range(joint.free):
            if directions[i, k] != 0.0:
                force, on_parent, on_child = direction_gradient(joint, k, y, C, Rp)
                pull_at_knot(bars, i, joint, work.bodies, directions[i, k], force, on_parent, on_child)
    for i in range(model.couplings.shape[0]):
        if ties[i] != 0.0:
            pull_coupling_value(model, work, bars, i, ties[i], False)
