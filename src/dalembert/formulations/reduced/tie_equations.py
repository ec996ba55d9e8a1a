"""Values, gradients, residuals and forces of the ties at an iterate, and their part of Newton's direction."""
from __future__ import annotations

from math import isfinite, sqrt

from dalembert.forces.ball import ball_spring
from dalembert.forces.couplings import coupling_rate
from dalembert.forces.laws import coupling_law, spring_damper
from dalembert.formulations.reduced.joint_forces import direction_force
from dalembert.formulations.reduced.map_equations import (
    add_curvature,
    add_motion,
    clear_motion,
    map_response,
)
from dalembert.formulations.reduced.ties import ACROSS_JOINT, ACROSS_PATH, CLOSED, DIRECTION, KEPT, LAW, MOVED
from dalembert.formulations.reduced.tree_solve import solve, solve_part
from dalembert.kernels import inline, kernel
from dalembert.model.couplings import evaluate_coupling, path_point
from dalembert.model.frames import frame_rotation
from dalembert.model.pose import joint_at_knot, write_gradients
from dalembert.model.records import BALL
from dalembert.model.rows import consistent, coordinates, direction_gradient, row_value
from dalembert.spatial.tuples import add3, cross3, dot3, load3, load9, mat_t_vec, mat_vec, neg3, scale3, sub3
from dalembert.spatial.twists import add6, dot6, load6, scale6, store6

#: cosine below which a joint counts as flipped
FLIP = 0.3


@inline
def put_end(stage, end, force, torque):
    """A gradient by one body, force in the world and torque in its frame, into the node's frame."""
    W = load9(stage.own.nodes[end.node].W)
    store6(end.G, (torque, mat_t_vec(W, force)))


@kernel
def pair_gradient(stage, row, force, on_parent, on_child):
    """Gradients of a row between a joint's two bodies."""
    ends = stage.ties.ends
    for e in range(row.first, row.first + row.ends):
        if ends[e].slot == 0:
            put_end(stage, ends[e], neg3(force), on_parent)
        else:
            put_end(stage, ends[e], force, on_child)


@kernel
def number_rate(stage, row):
    """Rate of a row's number for the twists of its nodes."""
    total = 0.0
    for e in range(row.first, row.first + row.ends):
        end = stage.ties.ends[e]
        total += dot6(load6(end.G), load6(stage.own.nodes[end.node].V))
    return total


@kernel
def evaluate_ties(stage):
    """Numbers, gradients and residuals of all rows, and their forces onto the loads of the nodes.

    Returns False when a joint is flipped or a number is not finite. Needs the loads of the nodes before.
    """
    model, work, ties = stage.model, stage.work, stage.ties
    for i in ties.loops:
        joint, at = model.joints[i], work.joints[i]
        y, C, R_parent = joint_at_knot(work.bodies, joint)
        if joint.free > 0:
            coordinates(joint, y, C, at.coordinate)
        write_gradients(joint, at, joint.locks, y, C, R_parent)
        if not consistent(joint, at, C, FLIP):
            return False
    for i in range(ties.rows.shape[0]):
        row = ties.rows[i]
        if row.kind == MOVED:
            continue
        if row.kind == CLOSED:
            evaluate_closed(stage, row)
        elif row.kind == DIRECTION:
            evaluate_direction(stage, row)
        elif row.kind == KEPT or row.kind == LAW:
            evaluate_tie(stage, row)
        else:
            evaluate_across(stage, row)
            continue
        if not isfinite(row.r):
            return False
        for e in range(row.first, row.first + row.ends):
            load = stage.own.nodes[ties.ends[e].node].load
            store6(load, add6(load6(load), scale6(row.mu, load6(ties.ends[e].G))))
    return True


@kernel
def evaluate_closed(stage, row):
    """A row of a joint that closes a loop."""
    joint, at = stage.model.joints[row.index], stage.work.joints[row.index]
    y, C, _ = joint_at_knot(stage.work.bodies, joint)
    row.r = row_value(joint, at, row.part, y, C)
    for e in range(row.first, row.first + row.ends):
        end = stage.ties.ends[e]
        G = at.Gp[row.part] if end.slot == 0 else at.Gc[row.part]
        put_end(stage, end, load3(G), load3(G[3:]))


@kernel
def evaluate_direction(stage, row):
    """A direction with laws of a joint outside of the tree."""
    joint, at = stage.model.joints[row.index], stage.work.joints[row.index]
    y, C, R_parent = joint_at_knot(stage.work.bodies, joint)
    force, on_parent, on_child = direction_gradient(joint, row.part, y, C, R_parent)
    pair_gradient(stage, row, force, on_parent, on_child)
    found, row.K, row.D = direction_force(joint, at, row.part, at.coordinate[row.part], number_rate(stage, row))
    if joint.free_kind[row.part] == BALL:
        # the springs of a free rotation act together: those of the directions by themselves only lead Newton
        axis = joint.free_axis[row.part]
        torque, _ = ball_spring(joint, row.part - axis, frame_rotation(joint, C))
        alone, _, _, _ = spring_damper(joint.stiffness[row.part], 0.0, at.coordinate[row.part] - joint.rest[row.part], 0.0)
        found += torque[axis] - alone
    row.r = row.mu - found


@kernel
def evaluate_tie(stage, row):
    """A gear, a path or a user's function."""
    model, work = stage.model, stage.work
    coupling, tie = model.couplings[row.index], work.couplings[row.index]
    evaluate_coupling(model, work, row.index, False)
    for e in range(row.first, row.first + row.ends):
        end = stage.ties.ends[e]
        G = work.ends[coupling.first + end.slot].G
        put_end(stage, end, load3(G), load3(G[3:]))
    if row.kind == KEPT:
        row.r = tie.value
        return
    tie.rate = coupling_rate(model, work, row.index, work.velocity)
    found, row.K, row.D, _ = coupling_law(work, coupling, tie, tie.value, tie.rate)
    row.r = row.mu - found


@inline
def line_of(stage, row):
    """The two points of a line in the world, and the points on their bodies."""
    model, work = stage.model, stage.work
    if row.kind == ACROSS_PATH:
        coupling = model.couplings[row.index]
        here, a, _ = path_point(model, work, coupling, row.part, False)
        there, b, _ = path_point(model, work, coupling, row.part + 1, False)
        return here, a, there, b
    joint = model.joints[row.index]
    parent, child = work.bodies[joint.parent], work.bodies[joint.child]
    a, b = load3(joint.point_parent), load3(joint.point_child)
    here = add3(load3(parent.x), mat_vec(load9(parent.R), a))
    return here, a, add3(load3(child.x), mat_vec(load9(child.R), b)), b


@kernel
def evaluate_across(stage, row):
    """One of two directions across a line: the force along it turns with the line, by force over length."""
    here, a, there, b = line_of(stage, row)
    d = sub3(there, here)
    length = sqrt(dot3(d, d))
    u = scale3(1.0 / length, d)
    # of the axes, the one that lies least along the line makes the first direction across
    axis = (1.0, 0.0, 0.0)
    if abs(u[1]) < abs(u[0]) and abs(u[1]) <= abs(u[2]):
        axis = (0.0, 1.0, 0.0)
    elif abs(u[2]) < abs(u[0]):
        axis = (0.0, 0.0, 1.0)
    n = cross3(u, axis)
    n = scale3(1.0 / sqrt(dot3(n, n)), n)
    if row.side == 1:
        n = cross3(u, n)
    for e in range(row.first, row.first + row.ends):
        end = stage.ties.ends[e]
        W = load9(stage.own.nodes[end.node].W)
        point, sign = (a, -1.0) if end.slot == 0 else (b, 1.0)
        local = scale3(sign, mat_t_vec(W, n))
        store6(end.G, (cross3(point, local), local))
    row.r, row.D = 0.0, 0.0
    row.K = stage.ties.rows[row.source].mu / length


@kernel
def tie_stiffness(stage):
    """Add to the nodes' K how the torques of forces along lines change as their bodies turn: p x (f x xi)."""
    for i in range(stage.ties.rows.shape[0]):
        row = stage.ties.rows[i]
        if row.side != 0 or not (row.kind == ACROSS_JOINT or row.kind == ACROSS_PATH):
            continue
        here, a, there, b = line_of(stage, row)
        d = sub3(there, here)
        force = scale3(stage.ties.rows[row.source].mu / sqrt(dot3(d, d)), d)
        for e in range(row.first, row.first + row.ends):
            end = stage.ties.ends[e]
            at = stage.own.nodes[end.node]
            point, sign = (a, -1.0) if end.slot == 0 else (b, 1.0)
            f = mat_t_vec(load9(at.W), scale3(sign, force))
            # [p][f] = f p^T - (p . f) I
            along = dot3(point, f)
            for r in range(3):
                for c in range(3):
                    at.K[r, c] += f[r] * point[c]
                at.K[r, r] -= along


@kernel
def tie_size(stage):
    """The largest residual of the ties as a velocity, m/s."""
    size = 0.0
    for i in range(stage.ties.rows.shape[0]):
        row = stage.ties.rows[i]
        if is_closed(row):
            size = max(size, abs(row.r) / stage.c)
        else:
            size = max(size, abs(row.r) * row.scale)
    return size


@kernel
def tie_floor(stage):
    """The residual of the ties that the rounding of poses alone can cause, m/s: springs multiply it by their stiffness.

    After hours of turning it is the rounding of the angle.
    """
    size = 0.0
    for i in range(stage.ties.rows.shape[0]):
        row = stage.ties.rows[i]
        lost = 0.0
        for e in range(row.first, row.first + row.ends):
            end = stage.ties.ends[e]
            place = load3(stage.own.nodes[end.node].place)
            torque, force = load6(end.G)
            lost += 2e-15 * (sqrt(dot3(force, force)) * sqrt(dot3(place, place)) + sqrt(dot3(torque, torque)))
            node, at = stage.tree[end.node], stage.own.nodes[end.node]
            for j in range(node.count):
                lost += 5e-16 * abs(at.x[j] * dot6(load6(at.S[j]), load6(end.G)))
        if row.kind == CLOSED or row.kind == KEPT:
            size = max(size, lost / stage.c)
        else:
            size = max(size, (abs(row.K) + abs(row.D) / stage.c) * lost * row.scale)
    return size


@inline
def clear_wrenches(stage):
    for i in range(stage.tree.shape[0]):
        stage.own.nodes[i].e[:] = 0.0


@inline
def add_wrench(stage, row, size):
    """Take ``size`` times a row off the wrenches of the right-hand side."""
    for e in range(row.first, row.first + row.ends):
        end = stage.ties.ends[e]
        wrench = stage.own.nodes[end.node].e
        store6(wrench, add6(load6(wrench), scale6(-size, load6(end.G))))


@inline
def clear_pushes(stage):
    """No wrenches and no motion on the right-hand side."""
    clear_wrenches(stage)
    clear_motion(stage)


@inline
def push_row(stage, row, size):
    """Put ``size`` times a row's unknown on the right-hand side: a wrench on its bodies, or the motion of nodes."""
    if row.kind == MOVED:
        add_motion(stage, row.index, size)
    else:
        add_wrench(stage, row, size)


@inline
def row_response(stage, row):
    """What a row's number, and its rate, change by with the variations of the nodes."""
    number, rate = 0.0, 0.0
    for e in range(row.first, row.first + row.ends):
        end = stage.ties.ends[e]
        s, G = stage.own.nodes[end.node].s, load6(end.G)
        number += dot6(G, load6(s))
        rate += dot6(G, load6(s[6:]))
    return number, rate


@inline
def is_closed(row):
    """Whether a row's number stays zero, rather than that its force follows a law."""
    return row.kind == CLOSED or row.kind == KEPT


@inline
def answer(row, number, rate):
    """The left-hand side of a row's equation, without its own force."""
    if is_closed(row):
        return number
    return -row.K * number - row.D * rate


@inline
def response(stage, row):
    """The left-hand side of a row's equation for the variations of the nodes, without its own unknown."""
    if row.kind == MOVED:
        return map_response(stage, row.index)
    number, rate = row_response(stage, row)
    return answer(row, number, rate)


@inline
def keep_residuals(nodes):
    for k in range(nodes.shape[0]):
        for j in range(3):
            nodes[k].kept[j] = nodes[k].g[j]


@inline
def restore_residuals(nodes):
    for k in range(nodes.shape[0]):
        for j in range(3):
            nodes[k].g[j] = nodes[k].kept[j]


@kernel
def factor_ties(stage):
    """Form and factor the Schur complement of the ties. Needs the factored tree. Returns False when it is singular."""
    rows, S, reach = stage.ties.rows, stage.ties.S, stage.ties.reach
    nodes = stage.own.nodes
    keep_residuals(nodes)
    for k in range(nodes.shape[0]):
        nodes[k].g[:] = 0.0
        nodes[k].s[:] = 0.0
    S[:] = 0.0
    clear_pushes(stage)
    for i in range(rows.shape[0]):
        push_row(stage, rows[i], 1.0)
        touched = reach.trees[reach.first_tree[i] : reach.first_tree[i + 1]]
        for t in touched:
            solve_part(stage.tree, stage.own, reach.nodes[reach.first_node[t] : reach.first_node[t + 1]])
        for t in touched:
            for j in reach.rows[reach.first_row[t] : reach.first_row[t + 1]]:
                S[j, i] = response(stage, rows[j])
        if rows[i].kind != MOVED:
            rows[i].scale = abs(row_response(stage, rows[i])[0]) / stage.c
        for t in touched:
            for k in reach.nodes[reach.first_node[t] : reach.first_node[t + 1]]:
                nodes[k].e[:] = 0.0
                nodes[k].s[:] = 0.0
        if rows[i].kind == MOVED:
            clear_motion(stage)
    for i in range(rows.shape[0]):
        row = rows[i]
        if is_closed(row):
            S[i, i] += stage.ties.compliance[0] * row.soft * stage.c * stage.c
        elif row.kind != MOVED:
            S[i, i] += 1.0
    add_curvature(stage)
    restore_residuals(nodes)
    return factor_dense(S, stage.ties.order, rows.shape[0])


@kernel
def tie_direction(stage, pull):
    """Newton's direction of nodes and ties; ``pull``: draws redundant forces towards zero."""
    rows, vector = stage.ties.rows, stage.ties.vector
    clear_pushes(stage)
    solve(stage.tree, stage.own)
    for i in range(rows.shape[0]):
        row = rows[i]
        vector[i] = row.r - response(stage, row)
        if pull and is_closed(row):
            vector[i] += stage.ties.compliance[0] * row.soft * stage.c * stage.c * row.mu
    solve_dense(stage.ties.S, stage.ties.order, rows.shape[0], vector)
    clear_pushes(stage)
    for i in range(rows.shape[0]):
        rows[i].dmu = vector[i]
        push_row(stage, rows[i], vector[i])
    solve(stage.tree, stage.own)


@kernel
def factor_dense(S, order, n):
    """LU with partial pivoting in place, of the first ``n`` rows and columns; columns without entries are skipped. Returns False when a pivot vanishes."""
    for k in range(n):
        best, at = abs(S[k, k]), k
        for i in range(k + 1, n):
            if abs(S[i, k]) > best:
                best, at = abs(S[i, k]), i
        order[k] = at
        if not best > 0.0:
            return False
        if at != k:
            for j in range(n):
                S[k, j], S[at, j] = S[at, j], S[k, j]
        pivot = 1.0 / S[k, k]
        # rows of strands and chains of loops meet few others: the pivot's row ends early
        last = n
        while last > k + 1 and S[k, last - 1] == 0.0:
            last -= 1
        for i in range(k + 1, n):
            if S[i, k] != 0.0:
                S[i, k] *= pivot
                share = S[i, k]
                for j in range(k + 1, last):
                    S[i, j] -= share * S[k, j]
    return True


@kernel
def solve_dense(S, order, n, x):
    """Solve with the factors of ``factor_dense``, in place."""
    for k in range(n):
        if order[k] != k:
            x[k], x[order[k]] = x[order[k]], x[k]
    for i in range(n):
        total = x[i]
        for j in range(i):
            total -= S[i, j] * x[j]
        x[i] = total
    for i in range(n - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, n):
            total -= S[i, j] * x[j]
        x[i] = total / S[i, i]
