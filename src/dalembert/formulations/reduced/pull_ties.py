"""Transposed derivatives of ties: joints that close loops, rods, springs between points, gears, paths, constraints.

They are functions of the poses and velocities of bodies, so the pulls of the maximal formulations take them as they are. Forces that
follow laws are put into the bodies' equations: only rows that stay closed have weights of their own.
"""
from __future__ import annotations

from dalembert.forces.couplings import coupling_rate
from dalembert.forces.laws import coupling_law, servo
from dalembert.formulations.maximal.pull_forces import (
    EQUATIONS,
    pull_coupling_rate,
    pull_coupling_value,
    pull_coupling_wrench,
    pull_law,
)
from dalembert.formulations.maximal.pull_joints import (
    pull_at_knot,
    pull_joint_wrench,
    pull_own_numbers,
    pull_rate,
    pull_servo,
    pull_target,
)
from dalembert.formulations.reduced.tie_equations import is_closed
from dalembert.formulations.reduced.ties import CLOSED, KEPT
from dalembert.formulations.reduced.tree_solve import solve_transposed
from dalembert.kernels import inline, kernel
from dalembert.model.pose import joint_at_knot, write_gradients
from dalembert.model.records import CONSTRAINT
from dalembert.model.rows import direction_gradient, row_gradient
from dalembert.spatial.twists import add6, dot6, load6, scale6, store6


@kernel
def hand_on_forces(stage):
    """Write the forces of rows that stay closed to where joints and couplings have theirs."""
    work, rows = stage.work, stage.ties.rows
    for i in range(rows.shape[0]):
        row = rows[i]
        if row.kind == CLOSED:
            work.joints[row.index].mu[row.part] = row.mu
        elif row.kind == KEPT:
            work.couplings[row.index].mu = row.mu


@inline
def bar_of_force(bars, row):
    """The bar of the force of a row that stays closed."""
    return bars.joints[row.index].mu[row.part] if row.kind == CLOSED else bars.couplings[row.index].mu


@kernel
def load_forces(stage, bars):
    """Bars of the unknown forces into the ties' vector. Returns the largest."""
    rows, size = stage.ties.rows, 0.0
    for i in range(rows.shape[0]):
        stage.ties.vector[i] = bar_of_force(bars, rows[i]) if is_closed(rows[i]) else 0.0
        size = max(size, abs(stage.ties.vector[i]))
    return size


@kernel
def store_row_weights(stage, bars):
    """Minus the ties' vector as weights of the rows that stay closed."""
    for i in range(stage.ties.rows.shape[0]):
        row = stage.ties.rows[i]
        if row.kind == CLOSED:
            bars.joints[row.index].b[row.part] = -stage.ties.vector[i]
        elif row.kind == KEPT:
            bars.couplings[row.index].b = -stage.ties.vector[i]


@kernel
def solve_ties_transposed(stage):
    """z (in ``dq``) and the rows' weights (in the ties' vector) with the transposed Newton matrix, from ``g`` and that vector.

    The matrix is [[H, -J^T G^T], [R, D]], and S = D + R H^-1 J^T G^T was factored with it. ``g`` stays.
    """
    solve_tree_transposed(stage)
    take_wrenches(stage)
    solve_dense_transposed(stage.ties.S, stage.ties.order, stage.ties.rows.shape[0], stage.ties.vector)
    clear_variations(stage)
    weigh_variations(stage)
    solve_transposed(stage.tree, stage.own)


@inline
def clear_variations(stage):
    for i in range(stage.own.nodes.shape[0]):
        stage.own.nodes[i].s[:] = 0.0


@inline
def solve_tree_transposed(stage):
    """z of the tree by itself, from ``g``; bars of the wrenches on its nodes in ``e``."""
    clear_variations(stage)
    solve_transposed(stage.tree, stage.own)


@inline
def take_wrenches(stage):
    """Add to the ties' vector what the forces of rows do through the wrenches on the nodes, whose bars are in ``e``."""
    for i in range(stage.ties.rows.shape[0]):
        row = stage.ties.rows[i]
        for e in range(row.first, row.first + row.ends):
            end = stage.ties.ends[e]
            stage.ties.vector[i] -= dot6(load6(end.G), load6(stage.own.nodes[end.node].e))


@inline
def weigh_variations(stage):
    """Add the rows with the weights in the ties' vector to the bars ``s`` of the nodes' variations."""
    vector = stage.ties.vector
    for i in range(stage.ties.rows.shape[0]):
        row = stage.ties.rows[i]
        by_number, by_rate = (-vector[i], 0.0) if is_closed(row) else (row.K * vector[i], row.D * vector[i])
        for e in range(row.first, row.first + row.ends):
            end = stage.ties.ends[e]
            s, G = stage.own.nodes[end.node].s, load6(end.G)
            store6(s, add6(load6(s), scale6(by_number, G)))
            store6(s[6:], add6(load6(s[6:]), scale6(by_rate, G)))


@kernel
def solve_dense_transposed(S, order, n, x):
    """Solve with the transposed of what ``factor_dense`` factored, in place."""
    for i in range(n):
        total = x[i]
        for j in range(i):
            total -= S[j, i] * x[j]
        x[i] = total / S[i, i]
    for i in range(n - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, n):
            total -= S[j, i] * x[j]
        x[i] = total
    for k in range(n - 1, -1, -1):
        if order[k] != k:
            x[k], x[order[k]] = x[order[k]], x[k]


@kernel
def pull_ties(stage, bars):
    """All ties in the equations of bodies with weights ``b`` and velocities ``u``."""
    for i in stage.ties.loops:
        pull_loop(stage, bars, i)
    for i in range(stage.model.couplings.shape[0]):
        pull_tie(stage, bars, i)


@kernel
def pull_loop(stage, bars, index):
    """A joint outside of the tree: its locks are rows, its springs, dampers and servos push."""
    model, work = stage.model, stage.work
    joint, at, bar = model.joints[index], work.joints[index], bars.joints[index]
    y, C, R_parent = joint_at_knot(work.bodies, joint)
    write_gradients(joint, at, joint.rows, y, C, R_parent)
    parent, child = bars.bodies[joint.parent].u, bars.bodies[joint.child].u
    for k in range(joint.locks, joint.rows):
        rate, i = 0.0, joint.row_direction[k]
        for c in range(6):
            rate += at.Gp[k, c] * parent[c] + at.Gc[k, c] * child[c]
        at.mu[k] = -joint.damping[i] * rate
        if joint.follows[i]:
            at.mu[k] += servo(joint, i, at.target[i], at.coordinate[i], rate)[0]
        at.rate[i] = rate
        bar.mu[k] = 0.0
    pull_joint_wrench(model, work, bars, index, 1.0)
    for k in range(joint.locks):
        force, on_parent, on_child = row_gradient(joint, at, k, y, C, R_parent)
        pull_at_knot(bars, index, joint, work.bodies, bar.b[k], force, on_parent, on_child)
        pull_target(bar, joint, at, k, bar.b[k], C)
        pull_own_numbers(bar, joint, at, k, bar.b[k], C)
    for k in range(joint.locks, joint.rows):
        i, weight = joint.row_direction[k], bar.mu[k]
        bar.damping[i] -= weight * at.rate[i]
        by_rate = -weight * joint.damping[i]
        if joint.follows[i]:
            K, D = pull_servo(bar, joint, i, weight, at.target[i], at.coordinate[i], at.rate[i])
            by_rate += weight * D
            force, on_parent, on_child = direction_gradient(joint, i, y, C, R_parent)
            pull_at_knot(bars, index, joint, work.bodies, weight * K, force, on_parent, on_child)
        pull_rate(model, work, bars, index, k, by_rate)


@kernel
def pull_tie(stage, bars, index):
    """A coupling that stays zero, or whose force follows a law."""
    model, work = stage.model, stage.work
    coupling, tie, bar = model.couplings[index], work.couplings[index], bars.couplings[index]
    if coupling.law == CONSTRAINT:
        pull_coupling_wrench(model, work, bars, index, -1.0, EQUATIONS)
        pull_coupling_value(model, work, bars, index, bar.b, False)
        return
    rate = coupling_rate(model, work, index, work.velocity)
    force, K, D, _ = coupling_law(work, coupling, tie, tie.value, rate)
    tie.mu, bar.mu = force, 0.0
    pull_coupling_wrench(model, work, bars, index, -1.0, EQUATIONS)
    weight = bar.mu
    pull_law(bar, coupling, force + tie.input, tie.value, rate, weight)
    pull_coupling_value(model, work, bars, index, weight * K, False)
    pull_coupling_rate(model, work, bars, index, weight * D)
