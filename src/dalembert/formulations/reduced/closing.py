"""Loops in explicit methods: closed at the level of accelerations, and brought back in position and rate after a step.

With rows G of the ties that stay closed and answers of the tree's inertia in linear time (RedMax section 2.12, eq. 2.129 to 2.131),

    (G M^-1 G^T) lambda = -(G a* + G' v)        and        M dv = G^T lambda.

Rows that follow from others are left out: a Cholesky factorisation picks its pivots.
"""
from __future__ import annotations

from math import isfinite, sqrt

from dalembert.formulations.reduced.forward import inverse_inertia, place_flow, placed_dynamics
from dalembert.formulations.reduced.ties import CLOSED, KEPT
from dalembert.kernels import inline, kernel
from dalembert.model.bias import bias, coupling_bias, direction_bias
from dalembert.model.motions import ZERO6
from dalembert.model.pose import joint_at_knot
from dalembert.model.rows import row_axes
from dalembert.model.tree import POINT
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import add3, cross3, dot3, load3, load4, load9, mat_t_vec, store3, store4
from dalembert.spatial.twists import add6, dot6, load6, scale6, store6

#: pivots below this part of their row's own are of rows that follow from others
RANK = 1e-9
#: how far rows may be open after a step, m or rad, and how often a pose is corrected
OPEN, TRIES = 1e-12, 12


@inline
def is_closed(row):
    """True for rows that stay closed."""
    return row.kind == CLOSED or row.kind == KEPT


@inline
def takes_part(row):
    """True for rows whose forces are unknown: those that stay closed, and laws that a method takes at the end of its step."""
    return is_closed(row) or row.scale > 0.0


@kernel
def factor_closed(flow):
    """Form and factor G M^-1 G^T of the rows that take part, with their ``scale`` on the diagonal; others have a row of the unit matrix."""
    rows, ends, S = flow.ties.rows, flow.ties.ends, flow.ties.S
    answers = flow.own.answers
    for i in range(answers.shape[0]):
        for j in range(3):
            answers[i].f[j] = 0.0
            answers[i].a[j] = 0.0
    for i in range(rows.shape[0]):
        for j in range(rows.shape[0]):
            S[i, j] = 0.0
        S[i, i] = 1.0
    for i in range(rows.shape[0]):
        if not takes_part(rows[i]):
            continue
        for k in range(answers.shape[0]):
            store6(answers[k].e, ZERO6)
        push_row(flow, rows[i], 1.0)
        inverse_inertia(flow)
        for j in range(rows.shape[0]):
            if takes_part(rows[j]):
                total = 0.0
                for e in range(rows[j].first, rows[j].first + rows[j].ends):
                    total += dot6(load6(ends[e].G), load6(answers[ends[e].node].A))
                S[j, i] = total
        S[i, i] += rows[i].scale
    for i in range(rows.shape[0]):
        flow.ties.vector[i] = max(S[i, i], rows[i].soft)  # a row between bodies that cannot move has nothing but rounding
    return factor_semidefinite(S, flow.ties.order, flow.ties.vector)


@inline
def push_row(flow, row, size):
    """Add ``size`` times a row to the wrenches of the answers."""
    for e in range(row.first, row.first + row.ends):
        end = flow.ties.ends[e]
        wrench = flow.own.answers[end.node].e
        store6(wrench, add6(load6(wrench), scale6(size, load6(end.G))))


@kernel
def answer_rows(flow, rank):
    """Answers to the forces along the rows that take part that make their numbers change by ``vector``, which becomes these forces."""
    rows, vector = flow.ties.rows, flow.ties.vector
    solve_semidefinite(flow.ties.S, flow.ties.order, rank, vector)
    for k in range(flow.own.answers.shape[0]):
        store6(flow.own.answers[k].e, ZERO6)
    for i in range(rows.shape[0]):
        if takes_part(rows[i]):
            push_row(flow, rows[i], vector[i])
    inverse_inertia(flow)


@kernel
def row_flow(flow, row):
    """Rate of a row's number, less that of the target which it follows."""
    total = 0.0
    for e in range(row.first, row.first + row.ends):
        end = flow.ties.ends[e]
        total += dot6(load6(end.G), load6(flow.own.nodes[end.node].V))
    if row.kind == CLOSED:
        direction = flow.model.joints[row.index].row_direction[row.part]
        if direction >= 0:
            total -= flow.work.joints[row.index].rate[direction]
    return total


@kernel
def row_acceleration(flow, row):
    """Second time derivative of a row's number for the accelerations of the nodes, less that of its target."""
    model, work, nodes = flow.model, flow.work, flow.own.nodes
    total, g = 0.0, load3(model.gravity)
    for e in range(row.first, row.first + row.ends):
        end = flow.ties.ends[e]
        at = nodes[end.node]
        w, v = load6(at.V)
        turning, moving = load6(at.A)
        # the frame's acceleration carries -g; that of a point fixed in the world's axes has w x v besides
        moving = add3(add3(moving, mat_t_vec(load9(at.W), g)), cross3(w, v))
        torque, force = load6(end.G)
        total += dot3(torque, turning) + dot3(force, moving)
    if row.kind == KEPT:
        return total + coupling_bias(model, work, row.index, work.velocity)
    joint, at = model.joints[row.index], work.joints[row.index]
    y, C, Rp = joint_at_knot(work.bodies, joint)
    up, uc = work.velocity[joint.parent], work.velocity[joint.child]
    vp, wp, vc, wc = load3(up), load3(up[3:]), load3(uc), load3(uc[3:])
    direction = joint.row_direction[row.part]
    if direction >= 0:
        return total + direction_bias(joint, direction, y, C, Rp, vp, wp, vc, wc) - at.acceleration[direction]
    a, b = row_axes(joint, at, row.part)
    return total + bias(joint, int(joint.row_kind[row.part]), 0, a, b, y, C, Rp, vp, wp, vc, wc)


@kernel
def rates_of_change(flow, pull):
    """Second derivatives of all nodes after ``place_flow``, loops included. Returns False when one is not finite.

    ``pull`` (1/s): Baumgarte's alpha and beta for what is open of a loop (RedMax eq. 1.97).
    """
    if not placed_dynamics(flow):
        return False
    if not flow.closed:
        return True
    rows, vector = flow.ties.rows, flow.ties.vector
    rank = factor_closed(flow)
    for i in range(rows.shape[0]):
        vector[i] = 0.0
        if is_closed(rows[i]):
            vector[i] = -row_acceleration(flow, rows[i])
            if pull > 0.0:
                vector[i] -= 2.0 * pull * row_flow(flow, rows[i]) + pull * pull * rows[i].r
    answer_rows(flow, rank)
    size = 0.0
    for i in range(rows.shape[0]):
        if is_closed(rows[i]):
            rows[i].mu = vector[i]
    for i in range(flow.tree.shape[0]):
        node, at, answer = flow.tree[i], flow.own.nodes[i], flow.own.answers[i]
        store6(at.A, add6(load6(at.A), load6(answer.A)))
        for j in range(node.count):
            if node.driven:
                at.tau[j] += answer.held[j]
            else:
                at.a[j] += answer.a[j]
                size += abs(at.a[j])
    return isfinite(size)


@kernel
def close_loops(flow):
    """Bring coordinates and rates back onto the closed rows, the nearest way in the mass metric. Returns what stays open, m or rad.

    Leaves the nodes placed. Needs forces that are finite, but none of them matters.
    """
    rows, vector = flow.ties.rows, flow.ties.vector
    worst = 0.0
    for attempt in range(TRIES):
        place_flow(flow)
        if not placed_dynamics(flow):
            return 1e300
        rank, before = factor_closed(flow), worst
        worst = 0.0
        for i in range(rows.shape[0]):
            vector[i] = -rows[i].r if is_closed(rows[i]) else 0.0
            worst = max(worst, abs(vector[i]))
        if worst < OPEN or (attempt > 2 and worst > 0.5 * before):
            close_rates(flow, rank)
            return worst
        answer_rows(flow, rank)
        for i in range(flow.tree.shape[0]):
            if not flow.tree[i].driven:
                shift_node(flow.tree[i], flow.own.nodes[i], flow.own.answers[i].a)
    return worst


@inline
def shift_node(node, at, change):
    """Move a node's coordinates by ``change``; of a free rotation, turn by it."""
    if node.kind == POINT:
        turn = quaternion.multiply(load4(at.turn), quaternion.exp(load3(change)))
        store4(at.turn, quaternion.normalize(turn))
        return
    for j in range(node.count):
        at.x[j] += change[j]


@kernel
def jump(flow):
    """Give the free directions the impulse of driven ones whose rates have just changed by their answers' ``a``. Needs placed nodes.

    Momentum along the free directions stays what it was, and loops stay closed.
    """
    if not placed_dynamics(flow):
        return
    for i in range(flow.tree.shape[0]):
        store6(flow.own.answers[i].e, ZERO6)
        store3(flow.own.answers[i].f, (0.0, 0.0, 0.0))
    inverse_inertia(flow)
    add_rates(flow)
    place_flow(flow)
    if flow.closed:
        close_rates(flow, factor_closed(flow))


@kernel
def close_rates(flow, rank):
    """Bring rates back onto the closed rows. Needs the factored rows; leaves the nodes placed."""
    rows, vector = flow.ties.rows, flow.ties.vector
    for i in range(rows.shape[0]):
        vector[i] = -row_flow(flow, rows[i]) if is_closed(rows[i]) else 0.0
    answer_rows(flow, rank)
    add_rates(flow)
    place_flow(flow)


@inline
def add_rates(flow):
    """Add the answers to the rates of the free directions."""
    for i in range(flow.tree.shape[0]):
        node, at, answer = flow.tree[i], flow.own.nodes[i], flow.own.answers[i]
        if not node.driven:
            for j in range(node.count):
                at.v[j] += answer.a[j]


@kernel
def factor_semidefinite(S, order, sizes):
    """Cholesky with pivots on the diagonal, in place in the lower part. Returns the rank.

    ``order``: which row was taken for each pivot; ``sizes``: what the rows' pivots are measured by, overwritten.
    """
    n = S.shape[0]
    for k in range(n):
        best, at = 0.0, k
        for i in range(k, n):
            if S[i, i] > best * sizes[i]:
                best, at = S[i, i] / sizes[i], i
        if not best > RANK:
            return k
        order[k] = at
        if at != k:
            sizes[k], sizes[at] = sizes[at], sizes[k]
            for j in range(n):
                S[k, j], S[at, j] = S[at, j], S[k, j]
            for j in range(n):
                S[j, k], S[j, at] = S[j, at], S[j, k]
        pivot = sqrt(S[k, k])
        S[k, k] = pivot
        for i in range(k + 1, n):
            S[i, k] /= pivot
        for i in range(k + 1, n):
            for j in range(k + 1, i + 1):
                S[i, j] -= S[i, k] * S[j, k]
                S[j, i] = S[i, j]
    return n


@kernel
def solve_semidefinite(S, order, rank, x):
    """Solve with the factors of ``factor_semidefinite``, in place; zero for rows beyond the rank."""
    for k in range(rank):
        x[k], x[order[k]] = x[order[k]], x[k]
    for k in range(rank):
        total = x[k]
        for j in range(k):
            total -= S[k, j] * x[j]
        x[k] = total / S[k, k]
    for k in range(rank - 1, -1, -1):
        total = x[k]
        for j in range(k + 1, rank):
            total -= S[j, k] * x[j]
        x[k] = total / S[k, k]
    for k in range(rank, x.shape[0]):
        x[k] = 0.0
    for k in range(rank - 1, -1, -1):
        x[k], x[order[k]] = x[order[k]], x[k]
