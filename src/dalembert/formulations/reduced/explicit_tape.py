"""Runs by rates of change that remember what derivatives need, and the adjoint of their steps.

Second derivatives a of the coordinates solve the equations g(x, v, a) = 0 of inverse dynamics, whose derivative by a is the inertia M. So with bars of
a, the weights z = -M^-1 (bars of a) of the equations, by the recursion that runs have, take these back to x and v as in ``adjoint``. A free rotation
is there a vector, zero where it stands: then its rates and second derivatives are angular velocities and accelerations. Of a step
the tape holds the state before it: its stages are made again.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dalembert.formulations.engine import Samples
from dalembert.formulations.maximal.pull_joints import add_to3
from dalembert.formulations.maximal.tape import Tape
from dalembert.formulations.reduced.adjoint import pull_equations
from dalembert.formulations.reduced.equations import balance, evaluate_motion
from dalembert.formulations.reduced.explicit import (
    FLOW_STATE,
    RK4,
    attend,
    begin_run,
    begin_step,
    rk4_ahead,
    rk4_moment,
    rk4_stage,
    rk4_weight,
)
from dalembert.formulations.reduced.forward import inverse_inertia, place_flow, placed_dynamics
from dalembert.formulations.reduced.pull_tree import clear_frames
from dalembert.formulations.reduced.state import JOINT_STATE
from dalembert.formulations.reduced.tape import clear_stage
from dalembert.formulations.reduced.ties import DIRECTION, LAW
from dalembert.kernels import inline, kernel
from dalembert.model.motions import ZERO6
from dalembert.model.records import F, fields
from dalembert.model.tree import POINT
from dalembert.spatial import quaternion, so3
from dalembert.spatial.tuples import load3, load4, mat_t_vec, mat_vec, scale3, store3, store4
from dalembert.spatial.twists import store6

#: of a stage, its values and their bars; ``q`` of a free rotation is the bar of a turn in its own frame
STAGE = np.dtype(fields(F, x=3, v=3, turn=4, bar_q=3, bar_v=3, bar_a=3))


class ExplicitArrays(NamedTuple):
    """Per step (first axis): nodes and joints before it, nodes after it."""

    nodes: np.ndarray
    joints: np.ndarray
    end: np.ndarray


class ExplicitTape(Tape):
    """A tape with the inputs of every step."""

    def __init__(self, nodes: int, joints: int, room: int) -> None:
        def arrays(count: int) -> ExplicitArrays:
            return ExplicitArrays(np.zeros((count, nodes), FLOW_STATE), np.zeros((count, joints), JOINT_STATE), np.zeros((count, nodes), FLOW_STATE))

        super().__init__(arrays, room)
        self.samples: list[Samples] = []
        self.dt = 0.0

    def go_back(self, mark: tuple[int, ...]) -> None:
        super().go_back(mark)
        del self.samples[mark[0] :]

    def cut(self, first: int, last: int) -> None:
        self.samples = self.samples[first:last]

    def keep(self, before: Any, samples: Samples, dt: float) -> None:
        """A step is about to be made."""
        self.dt = dt
        self.reserve(1)
        self.arrays.nodes[self.count], self.arrays.joints[self.count] = before.nodes, before.joints
        self.samples.append(samples)


# ---- backwards


@kernel
def pull_motion(flow, stage, bars, nodes):
    """From bars of x, v and a to those of x (``turn`` of free rotations) and v alone, after ``placed_dynamics``; adds those of numbers and inputs.

    Returns what is left of the bars of a, relative; -1 when a number is not finite.
    """
    tree, own, rows, first, left = flow.tree, stage.own.nodes, stage.ties.rows, 0.0, 0.0
    for i in range(tree.shape[0]):
        at, there, answer = own[i], flow.own.nodes[i], flow.own.answers[i]
        at.chart = 0.0
        store4(at.turn, load4(there.turn))
        store3(at.x, (0.0, 0.0, 0.0) if tree[i].kind == POINT else load3(there.x))
        store3(at.v, load3(there.v))
        store3(at.a, load3(there.a))
        store3(answer.f, load3(nodes[i].a))
        store6(answer.e, ZERO6)
        for j in range(tree[i].count):
            first = max(first, abs(nodes[i].a[j]))
    for i in range(rows.shape[0]):
        rows[i].mu = 0.0
    if rows.shape[0] > 0:
        if not evaluate_motion(stage):
            return -1.0
        for i in range(rows.shape[0]):
            if rows[i].kind == DIRECTION or rows[i].kind == LAW:
                rows[i].mu = -rows[i].r  # what the law says
    if not evaluate_motion(stage) or not balance(stage):
        return -1.0
    inverse_inertia(flow)
    clear_frames(bars, nodes)
    for i in range(tree.shape[0]):
        for j in range(tree[i].count):
            nodes[i].z[j] = -flow.own.answers[i].a[j]
    for i in range(stage.model.bodies.shape[0] - 1):
        for c in range(6):
            bars.bodies[i].u[c] = stage.work.velocity[i, c]
    pull_equations(stage, bars, nodes)
    for i in range(tree.shape[0]):
        for j in range(tree[i].count):
            left = max(left, abs(nodes[i].a[j]))
    return left / first if first > 0.0 else 0.0


@inline
def take_inputs(bars, pushes, inputs, targets, tensions):
    """Add the bars of inputs and targets of one moment."""
    for i in range(pushes.shape[0]):
        for c in range(6):
            pushes[i, c] += bars.bodies[i].push[c]
    for i in range(inputs.shape[0]):
        for c in range(6):
            inputs[i, c] += bars.joints[i].input[c]
            targets[i, c] += bars.joints[i].target[c]
    for i in range(tensions.shape[0]):
        tensions[i] += bars.couplings[i].input


@inline
def vector_part(q):
    return q[1], q[2], q[3]


@inline
def times_turn(turn, phi, scale):
    """scale * turn (0, phi)."""
    q = quaternion.multiply(turn, (0.0, phi[0], phi[1], phi[2]))
    return scale * q[0], scale * q[1], scale * q[2], scale * q[3]


@inline
def length_of(q):
    return (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]) ** 0.5


@inline
def pull_turning(at, share, whole):
    """The rate of change turn (0, v/2) of a stage's quaternion, ``share`` of which is part of one with bar ``whole``."""
    seen = quaternion.multiply(quaternion.conjugate(load4(at.turn)), whole)
    add_to3(at.bar_v, 0.5 * share, vector_part(seen))
    v = load3(at.v)
    add_to3(at.bar_q, 0.25 * share, vector_part(quaternion.multiply(seen, (0.0, -v[0], -v[1], -v[2]))))


@kernel
def pull_rk4(flow, stage, state, samples, dt, sums, stages, bars, nodes, pushes, inputs, targets, tensions):
    """The adjoint of a step of the classical Runge-Kutta method. Returns the worst residual, or -1."""
    tree, own, worst = flow.tree, flow.own.nodes, 0.0
    for k in range(4):
        if k > 0:
            attend(flow, samples, 0, rk4_moment(k))
            place_flow(flow)
        for i in range(tree.shape[0]):
            at = stages[k, i]
            store3(at.x, load3(own[i].x))
            store3(at.v, load3(own[i].v))
            store4(at.turn, load4(own[i].turn))
        if not placed_dynamics(flow):
            return -1.0
        rk4_stage(flow, state, k, dt, sums)
    for i in range(tree.shape[0]):
        after = nodes[i].after
        total, begun = sums[i], load4(state.nodes[i].turn)
        for k in range(4):
            at, weight = stages[k, i], rk4_weight(k, dt)
            for j in range(3):
                at.bar_q[j] = 0.0
                at.bar_v[j] = 0.0 if tree[i].kind == POINT else weight * after[j]
                at.bar_a[j] = weight * after[3 + j]
        if tree[i].kind == POINT:
            # the end is a quaternion N over its length, N = turn + the weighted rates of change
            turn = load4(total.turn)
            N = (begun[0] + turn[0], begun[1] + turn[1], begun[2] + turn[2], begun[3] + turn[3])
            whole = times_turn(quaternion.normalize(N), load3(after), 2.0 / length_of(N))
            for k in range(4):
                pull_turning(stages[k, i], rk4_weight(k, dt), whole)
            store3(after, scale3(0.5, vector_part(quaternion.multiply(quaternion.conjugate(begun), whole))))
    for k in range(3, -1, -1):
        clear_stage(stage.model, bars, nodes)
        attend(flow, samples, 0, rk4_moment(k))
        for i in range(tree.shape[0]):
            at, bar = stages[k, i], nodes[i]
            store3(own[i].x, load3(at.x))
            store3(own[i].v, load3(at.v))
            store4(own[i].turn, load4(at.turn))
            store3(bar.v, load3(at.bar_v))
            store3(bar.a, load3(at.bar_a))
            store3(bar.turn if tree[i].kind == POINT else bar.x, load3(at.bar_q))
        place_flow(flow)
        if not placed_dynamics(flow):
            return -1.0
        left = pull_motion(flow, stage, bars, nodes)
        if left < 0.0:
            return -1.0
        worst = max(worst, left)
        take_inputs(bars, pushes, inputs, targets[rk4_moment(k)], tensions)
        for i in range(tree.shape[0]):
            bar, after, before = nodes[i], nodes[i].after, stages[max(k - 1, 0), i]
            ahead = rk4_ahead(k - 1, dt)
            add_to3(after[3:], 1.0, load3(bar.v))
            if k > 0:
                add_to3(before.bar_a, ahead, load3(bar.v))
            if tree[i].kind != POINT:
                add_to3(after, 1.0, load3(bar.x))
                if k > 0:
                    add_to3(before.bar_v, ahead, load3(bar.x))
            elif k == 0:
                add_to3(after, 1.0, load3(bar.turn))
            else:
                begun, rate = load4(state.nodes[i].turn), quaternion.multiply(load4(before.turn), (0.0, before.v[0], before.v[1], before.v[2]))
                share = 0.5 * ahead
                N = (begun[0] + share * rate[0], begun[1] + share * rate[1], begun[2] + share * rate[2], begun[3] + share * rate[3])
                whole = times_turn(quaternion.normalize(N), load3(bar.turn), 2.0 / length_of(N))
                pull_turning(before, ahead, whole)
                add_to3(after, 0.5, vector_part(quaternion.multiply(quaternion.conjugate(begun), whole)))
    return worst


@kernel
def pull_semi_implicit(flow, stage, dt, bars, nodes, pushes, inputs, targets, tensions):
    """The adjoint of a step of semi-implicit Euler from placed nodes. Returns the residual, or -1."""
    tree = flow.tree
    clear_stage(stage.model, bars, nodes)
    if not placed_dynamics(flow):
        return -1.0
    for i in range(tree.shape[0]):
        at, bar = flow.own.nodes[i], nodes[i]
        q, v = load3(bar.after), load3(bar.after[3:])
        store3(bar.v, v)
        if tree[i].kind == POINT:
            # turn' = turn exp(dt v')
            x = (dt * (at.v[0] + dt * at.a[0]), dt * (at.v[1] + dt * at.a[1]), dt * (at.v[2] + dt * at.a[2]))
            add_to3(bar.v, dt, mat_t_vec(so3.right_jacobian(x), q))
            store3(bar.turn, mat_vec(so3.exp_matrix(x), q))
        else:
            add_to3(bar.v, dt, q)
            store3(bar.x, q)
        store3(bar.a, scale3(dt, load3(bar.v)))
    left = pull_motion(flow, stage, bars, nodes)
    take_inputs(bars, pushes, inputs, targets[0], tensions)
    for i in range(tree.shape[0]):
        bar = nodes[i]
        store3(bar.after, load3(bar.turn) if tree[i].kind == POINT else load3(bar.x))
        store3(bar.after[3:], load3(bar.v))
    return left


@kernel
def pull_step(flow, stage, state, samples, method, dt, sums, stages, bars, nodes, pushes, inputs, targets, tensions):
    """From bars of the state after a step, in ``after`` of the nodes, to those of the state before it; adds those of inputs and targets by moment."""
    begin_run(flow, state)
    begin_step(flow, samples, 0)
    if method == RK4:
        return pull_rk4(flow, stage, state, samples, dt, sums, stages, bars, nodes, pushes, inputs, targets, tensions)
    return pull_semi_implicit(flow, stage, dt, bars, nodes, pushes, inputs, targets, tensions)
