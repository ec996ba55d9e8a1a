"""Kernels for ODE solvers with steps of their own: between a state, the solver's vector, and its rate of change; impacts at limits."""
from __future__ import annotations

import numpy as np

from dalembert.forces.loads import apply_inputs
from dalembert.formulations.reduced.closing import (
    answer_rows,
    close_loops,
    factor_closed,
    is_closed,
    jump,
    rates_of_change,
)
from dalembert.formulations.reduced.explicit import (
    JUMP,
    follow,
    keep,
    keep_coordinates,
    keep_turns,
    recall,
    turning,
    write_knot,
)
from dalembert.formulations.reduced.forward import inverse_inertia, place_flow, placed_dynamics
from dalembert.formulations.reduced.joint_forces import direction_force
from dalembert.formulations.reduced.step import within_splines
from dalembert.kernels import inline, kernel
from dalembert.model.motions import ZERO6
from dalembert.model.tree import POINT
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import load4, store3, store4
from dalembert.spatial.twists import dot6, load6, store6


def lay_out(tree: np.ndarray) -> tuple[np.ndarray, int]:
    """(nodes, 2): where coordinates and rates of each node begin in the vector, and its length; free rotations are quaternions."""
    positions = np.where(tree["kind"] == POINT, 4, tree["count"])
    first, rates = np.cumsum(positions) - positions, np.cumsum(tree["count"]) - tree["count"]
    return np.stack([first, positions.sum() + rates], axis=1).astype(np.int64), int(positions.sum() + tree["count"].sum())


@inline
def unpack(flow, layout, y):
    """Put a vector into the nodes."""
    for i in range(flow.tree.shape[0]):
        node, at, first, rate = flow.tree[i], flow.own.nodes[i], layout[i, 0], layout[i, 1]
        if node.kind == POINT:
            store4(at.turn, quaternion.normalize(load4(y[first:])))
        else:
            for j in range(node.count):
                at.x[j] = y[first + j]
        for j in range(node.count):
            at.v[j] = y[rate + j]


@inline
def pack(flow, layout, y):
    """The vector of the nodes."""
    for i in range(flow.tree.shape[0]):
        node, at, first, rate = flow.tree[i], flow.own.nodes[i], layout[i, 0], layout[i, 1]
        if node.kind == POINT:
            store4(y[first:], load4(at.turn))
        else:
            for j in range(node.count):
                y[first + j] = at.x[j]
        for j in range(node.count):
            y[rate + j] = at.v[j]


@kernel
def arrive(flow, layout, samples, y):
    """Nodes placed at a vector, under inputs and targets."""
    unpack(flow, layout, y)
    apply_inputs(flow.model, flow.work, samples, 0)
    if samples.motion.shape[0] > 0:
        follow(flow, samples.motion[0, 0])
    place_flow(flow)


@kernel
def rate_of_change(flow, layout, samples, y, dy):
    """The rate of change of the vector. Returns False when it is not finite."""
    arrive(flow, layout, samples, y)
    if not rates_of_change(flow, 0.0):
        return False
    for i in range(flow.tree.shape[0]):
        node, at, first, rate = flow.tree[i], flow.own.nodes[i], layout[i, 0], layout[i, 1]
        if node.kind == POINT:
            store4(dy[first:], turning(load4(at.turn), at.v))
        else:
            for j in range(node.count):
                dy[first + j] = at.v[j]
        for j in range(node.count):
            dy[rate + j] = at.a[j]
    return True


@kernel
def begin(flow, layout, samples, state, y):
    """The vector of a state; driven rates that jump push the rest, and loops are closed."""
    recall(flow, state)
    for i in flow.ties.loops:
        for k in range(6):
            flow.work.joints[i].coordinate[k] = state.joints[i].coordinate[k]
    apply_inputs(flow.model, flow.work, samples, 0)
    place_flow(flow)
    if samples.motion.shape[0] > 0 and follow(flow, samples.motion[0, 0]) > JUMP:
        jump(flow)
    pack(flow, layout, y)


@kernel
def end(flow, layout, samples, y, state, dt, recording, knot):
    """The state and the record of a knot that a vector is at; loops are closed there. Returns what stays open, m or rad, infinite beyond a spline."""
    arrive(flow, layout, samples, y)
    gap = close_loops(flow) if flow.closed else 0.0
    if flow.model.splines.shape[0] > 1 and not within_splines(flow.tree, flow.own):
        gap = np.inf
    keep(flow, state)
    keep_turns(flow, state)
    state.clock[0] = dt
    keep_coordinates(flow, state, samples)
    write_knot(flow, state, recording, knot)
    return gap


@kernel
def limit_force(flow, layout, samples, y, i):
    """What the end of a direction that is held there pushes with, N or N m."""
    arrive(flow, layout, samples, y)
    if not rates_of_change(flow, 0.0):
        return np.nan
    node, at = flow.tree[i], flow.own.nodes[i]
    laws = direction_force(flow.model.joints[node.joint], flow.work.joints[node.joint], node.direction, at.x[0], at.v[0])[0]
    return at.tau[0] - laws


@kernel
def bounce(flow, layout, samples, y, i, place, restitution):
    """An impact at an end: the rate of a direction turns round, the rest answers as its inertia and its loops say; ``y`` is changed.

    ``place``: where the end is, m or rad.
    """
    arrive(flow, layout, samples, y)
    if not placed_dynamics(flow):
        return
    rank = factor_closed(flow) if flow.closed else 0
    nodes, answers, ties = flow.own.nodes, flow.own.answers, flow.ties
    for k in range(flow.tree.shape[0]):
        store6(answers[k].e, ZERO6)
        store3(answers[k].f, (0.0, 0.0, 0.0))
        store3(answers[k].a, (0.0, 0.0, 0.0))
    answers[i].f[0] = 1.0
    inverse_inertia(flow)
    for k in range(flow.tree.shape[0]):
        store3(nodes[k].a, (answers[k].a[0], answers[k].a[1], answers[k].a[2]))
    if flow.closed:
        for r in range(ties.rows.shape[0]):
            ties.vector[r] = 0.0
            if is_closed(ties.rows[r]):
                for e in range(ties.rows[r].first, ties.rows[r].first + ties.rows[r].ends):
                    ties.vector[r] -= dot6(load6(ties.ends[e].G), load6(answers[ties.ends[e].node].A))
        answers[i].f[0] = 0.0
        answer_rows(flow, rank)
        for k in range(flow.tree.shape[0]):
            for j in range(flow.tree[k].count):
                nodes[k].a[j] += answers[k].a[j]
    impulse = -(1.0 + restitution) * nodes[i].v[0] / nodes[i].a[0]
    nodes[i].x[0] = place
    for k in range(flow.tree.shape[0]):
        if not flow.tree[k].driven:
            for j in range(flow.tree[k].count):
                nodes[k].v[j] += impulse * nodes[k].a[j]
    if restitution == 0.0:
        nodes[i].v[0] = 0.0
    pack(flow, layout, y)
