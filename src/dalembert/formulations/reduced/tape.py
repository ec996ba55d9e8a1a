"""Runs in joint coordinates that remember what derivatives need, stage by stage, and the adjoint pass over them."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.forces.loads import apply_inputs, clear_inputs
from dalembert.formulations.implicit.step import bdf_gamma, history_of
from dalembert.formulations.maximal.pull_joints import add_to3
from dalembert.formulations.maximal.pull_knot import pull_coordinates, pull_kinetic, pull_potential, pull_rates
from dalembert.formulations.reduced.adjoint import open_stage, pull_stage
from dalembert.formulations.reduced.equations import Stage, place_bodies, place_node
from dalembert.formulations.reduced.pull_tree import clear_frames, pull_frames, take_bodies
from dalembert.formulations.reduced.step import (
    accept,
    begin_stage,
    begin_step,
    combine,
    finish,
    keep_stage,
    record,
    try_stage,
    within_splines,
)
from dalembert.kernels import inline, kernel
from dalembert.model.motions import unit3
from dalembert.model.pose import aim_all, evaluate_pose, joint_rates
from dalembert.model.records import F, fields
from dalembert.model.rotations import in_joint, jacobian, rotation
from dalembert.model.tree import POINT, TARGET
from dalembert.solvers.outcomes import BEYOND, SOLVED
from dalembert.spatial import quaternion, so3
from dalembert.spatial.tuples import (
    dot3,
    inverse9,
    load3,
    load4,
    load9,
    mat_t_vec,
    mat_vec,
    neg3,
    scale3,
    store3,
    store4,
)

#: the state before the step (as in ``state.NODE_STATE``), the aggregates of the stage, its solution. Where the end of a step is none of its
#: stages, ``q1`` and ``v1`` are coordinates and rates there, in the step's own coordinates: such a method looks at one knot alone
NODE_TAPE = np.dtype(fields(F, q=3, v=3, turn=4, q1=3, v1=3, turn1=4, chart=0, aq=3, av=3, xs=3, vs=3))
#: what the step's inputs add to the forces; inputs and targets; where there are ties, coordinates before the step, to unwrap against; inputs of
#: paths; forces of ties
BODY_TAPE = np.dtype(fields(F, push=6))
JOINT_TAPE = np.dtype(fields(F, input=6, target=6))
UNWRAP_TAPE = np.dtype(fields(F, coordinate=6))
COUPLING_TAPE = np.dtype(fields(F, input=0))
ROW_TAPE = np.dtype(fields(F, mu=0))


class ReducedTape(NamedTuple):
    """Per stage (first axis): nodes, bodies, joints (twice), couplings, ties; clock and kind as in ``ImplicitTape``."""

    nodes: np.ndarray
    bodies: np.ndarray
    joints: np.ndarray
    unwrap: np.ndarray
    couplings: np.ndarray
    rows: np.ndarray
    clock: np.ndarray
    kind: np.ndarray


def new_tape(nodes: int, bodies: int, joints: int, couplings: int, rows: int, room: int) -> ReducedTape:
    """Room for some stages."""
    return ReducedTape(
        np.zeros((room, nodes), NODE_TAPE), np.zeros((room, bodies), BODY_TAPE), np.zeros((room, joints), JOINT_TAPE),
        np.zeros((room, joints if rows else 0), UNWRAP_TAPE), np.zeros((room, couplings), COUPLING_TAPE), np.zeros((room, rows), ROW_TAPE), np.zeros((room, 2)), np.zeros((room, 3), np.int64),
    )


@kernel
def keep_solved(stage, state, tape, entry, dt, number, count, order):
    """Write a solved stage into the tape."""
    model, work = stage.model, stage.work
    tape.clock[entry, 0], tape.clock[entry, 1] = stage.c, dt
    tape.kind[entry, 0], tape.kind[entry, 1], tape.kind[entry, 2] = number, count, order
    for i in range(stage.tree.shape[0]):
        past, at, kept = state.nodes[i], stage.own.nodes[i], tape.nodes[entry, i]
        kept.chart = past.chart
        store4(kept.turn, load4(past.turn))
        store4(kept.turn1, load4(past.turn1))
        for j in range(3):
            kept.q[j], kept.v[j], kept.q1[j], kept.v1[j] = past.q[j], past.v[j], past.q1[j], past.v1[j]
            kept.aq[j], kept.av[j], kept.xs[j], kept.vs[j] = at.aq[j], at.av[j], at.x[j], at.v[j]
    for i in range(model.bodies.shape[0] - 1):
        for c in range(6):
            tape.bodies[entry, i].push[c] = work.bodies[i].push[c]
    for i in range(model.joints.shape[0]):
        at, kept = work.joints[i], tape.joints[entry, i]
        for k in range(6):
            kept.input[k], kept.target[k] = at.input[k], at.target[k]
    for i in range(tape.unwrap.shape[1]):
        for k in range(6):
            tape.unwrap[entry, i].coordinate[k] = state.joints[i].coordinate[k]
    for i in range(model.couplings.shape[0]):
        tape.couplings[entry, i].input = work.couplings[i].input
    for i in range(stage.ties.rows.shape[0]):
        tape.rows[entry, i].mu = stage.ties.rows[i].mu


@inline
def keep_end(stage, tape, entry):
    """Write the end of a step that is none of its stages beside the last of them."""
    for i in range(stage.tree.shape[0]):
        at, kept = stage.own.nodes[i], tape.nodes[entry, i]
        store3(kept.q1, load3(at.x))
        store3(kept.v1, load3(at.v))


@kernel
def tape_step(model, tree, state, inputs, index, dt, options, work, own, ties, tape, entry):
    """``step``, with its stages written into the tape. Returns (outcome, iterations, residual, stages)."""
    apply_inputs(model, work, inputs, index)
    targets, history = inputs.target[index + 1], history_of(state.clock, dt)
    total, size, stages = 0, 0.0, 1
    if options.multistep == 1 or (options.multistep == 2 and history >= 1.0):
        stage = Stage(model, tree, work, own, ties, bdf_gamma(options.multistep, dt))
        begin_step(stage, state, options.multistep)
        outcome, total, size = try_stage(stage, state, targets, options.multistep == 2 and history >= 1.0, options)
        if outcome != SOLVED:
            return outcome, total, size, 0
        keep_solved(stage, state, tape, entry, dt, 0, 1, options.multistep)
    else:
        tableau, between = options.tableau, inputs.stage[min(index, inputs.stage.shape[0] - 1)]
        stages = tableau.b.shape[0]
        begin_step(Stage(model, tree, work, own, ties, dt), state, 1)
        for number in range(stages):
            stage = Stage(model, tree, work, own, ties, dt * tableau.a[number, number])
            begin_stage(stage, state, tableau.a, number, dt)
            outcome, iterations, size = try_stage(stage, state, between[number], False, options)
            total += iterations
            if outcome != SOLVED:
                return outcome, total, size, 0
            keep_stage(stage, number)
            keep_solved(stage, state, tape, entry + number, dt, number, stages, 0)
        if not tableau.stiffly_accurate:
            combine(Stage(model, tree, work, own, ties, dt), state, tableau.b, dt)
            keep_end(stage, tape, entry + stages - 1)
    if not within_splines(tree, own):
        return BEYOND, total, size, 0
    stage = Stage(model, tree, work, own, ties, dt)
    accept(stage, state, state)
    finish(stage, state, targets, history, dt, state)
    return SOLVED, total, size, stages


@kernel
def tape_steps(model, tree, state, inputs, options, work, own, ties, recording, first, count, dt, tape, entry):
    """``run_steps``, with every stage written into the tape from ``entry`` on. Returns also the entries used."""
    size, used = 0.0, 0
    clear_inputs(model, work)
    for index in range(count):
        outcome, iterations, size, stages = tape_step(model, tree, state, inputs, index, dt, options, work, own, ties, tape, entry + used)
        if outcome != SOLVED:
            return outcome, index, size, used
        used += stages
        recording.substeps[first + index + 1] = 1
        recording.iterations[first + index + 1] = iterations
        record(model, tree, own, state, recording, first + index + 1)
    return SOLVED, count, size, used


@kernel
def recall_stage(stage, tape, entry):
    """Put a taped stage into work and scratch."""
    model, work = stage.model, stage.work
    for i in range(stage.tree.shape[0]):
        at, kept = stage.own.nodes[i], tape.nodes[entry, i]
        at.chart = kept.chart
        store4(at.turn, load4(kept.turn))
        for j in range(3):
            at.aq[j], at.av[j], at.x[j], at.v[j] = kept.aq[j], kept.av[j], kept.xs[j], kept.vs[j]
    for i in range(model.bodies.shape[0] - 1):
        for c in range(6):
            work.bodies[i].push[c] = tape.bodies[entry, i].push[c]
    for i in range(model.joints.shape[0]):
        at, kept = work.joints[i], tape.joints[entry, i]
        for k in range(6):
            at.input[k], at.target[k] = kept.input[k], kept.target[k]
    for i in range(tape.unwrap.shape[1]):
        for k in range(6):
            work.joints[i].coordinate[k] = tape.unwrap[entry, i].coordinate[k]
    for i in range(model.couplings.shape[0]):
        work.couplings[i].input = tape.couplings[entry, i].input
    for i in range(stage.ties.rows.shape[0]):
        stage.ties.rows[i].mu = tape.rows[entry, i].mu
    aim_all(model, work)


# ---- backwards


@inline
def is_vector(node, chart):
    """True for a free rotation by a vector from the last knot."""
    return node.kind == POINT and chart == 0.0


@inline
def turned_rates(x, v, bar):
    """bar . (d J_r(x) v / dx_j)."""
    return (
        dot3(bar, mat_vec(so3.right_jacobian_derivative(x, unit3(0)), v)), dot3(bar, mat_vec(so3.right_jacobian_derivative(x, unit3(1)), v)),
        dot3(bar, mat_vec(so3.right_jacobian_derivative(x, unit3(2)), v)),
    )


@inline
def clear_stage(model, bars, nodes):
    """Bars of one stage: nothing yet."""
    for i in range(nodes.shape[0]):
        bar = nodes[i]
        for j in range(3):
            bar.x[j] = bar.v[j] = bar.a[j] = bar.turn[j] = bar.aq[j] = bar.av[j] = 0.0
    for i in range(model.bodies.shape[0] - 1):
        for c in range(6):
            bars.bodies[i].push[c] = 0.0
    for i in range(model.joints.shape[0]):
        bar = bars.joints[i]
        for k in range(6):
            bar.mu[k] = bar.input[k] = bar.target[k] = 0.0
    for i in range(model.couplings.shape[0]):
        bars.couplings[i].mu = bars.couplings[i].input = 0.0


@kernel
def pull_accept(tree, tape, entry, nodes, last):
    """From bars of the state after a step to those of coordinates and rates at its end, in ``x`` and ``v``, and of the centres.

    ``last``: whether its end is that of the stage.
    """
    for i in range(tree.shape[0]):
        bar, kept = nodes[i], tape.nodes[entry, i]
        q, v = load3(bar.after), load3(bar.after[3:])
        if is_vector(tree[i], kept.chart):
            # turn' = turn exp(x), v' = J_r(x) v
            x, rate = (load3(kept.xs), load3(kept.vs)) if last else (load3(kept.q1), load3(kept.v1))
            add_to3(bar.turn, 1.0, mat_vec(so3.exp_matrix(x), q))
            J = so3.right_jacobian(x)
            add_to3(bar.x, 1.0, turned_rates(x, rate, v))
            q, v = mat_t_vec(J, q), mat_t_vec(J, v)
        add_to3(bar.x, 1.0, q)
        add_to3(bar.v, 1.0, v)


@kernel
def pull_combined(tree, tape, entry, nodes, b, dt, stages):
    """Before the last stage of a step that is not one of its stages: what of its end goes to the knot, and what to the stages."""
    pull_accept(tree, tape, entry, nodes, False)
    for i in range(tree.shape[0]):
        bar, kept = nodes[i], tape.nodes[entry, i]
        if not is_vector(tree[i], kept.chart):
            add_to3(bar.total, 1.0, load3(bar.x))
        add_to3(bar.total, 1.0, load3(bar.turn))
        add_to3(bar.total[3:], 1.0, load3(bar.v))
        for j in range(stages):
            for c in range(3):
                bar.k[j, c] += dt * b[j] * bar.x[c]
                bar.k[j, 3 + c] += dt * b[j] * bar.v[c]
        for c in range(3):
            bar.x[c] = bar.v[c] = bar.turn[c] = 0.0


@kernel
def pull_aggregates(stage, tape, entry, bars, nodes, a, number, dt, order):
    """After a stage: from bars of x, x', x'' to those of the aggregates, and of the states and derivatives that these are made of."""
    first, second = (4.0 / 3.0, -1.0 / 3.0) if order == 2 else (1.0, 0.0)
    c = stage.c
    for i in range(stage.tree.shape[0]):
        node, bar, kept = stage.tree[i], nodes[i], tape.nodes[entry, i]
        if node.driven == TARGET:
            pull_driven(stage, bars, node, stage.own.nodes[i], bar)
        for j in range(3):
            bar.av[j] -= bar.a[j] / c
            bar.aq[j] += -bar.v[j] / c - bar.a[j] / (c * c) if node.driven else bar.x[j]
        add_to3(bar.total, 1.0, load3(bar.turn))
        add_to3(bar.total[3:], first, load3(bar.av))
        for k in range(number):
            for j in range(3):
                bar.k[k, j] += dt * a[number, k] * bar.aq[j]
                bar.k[k, 3 + j] += dt * a[number, k] * bar.av[j]
        if not is_vector(node, kept.chart):
            add_to3(bar.total, first, load3(bar.aq))
            add_to3(bar.older, second, load3(bar.aq))
            add_to3(bar.older[3:], second, load3(bar.av))
        elif order == 2:
            # q1 = log(turn^-1 turn1), v1' = J_r(q1)^-1 v1
            q1 = quaternion.log(quaternion.multiply(quaternion.conjugate(load4(kept.turn)), load4(kept.turn1)))
            back = so3.right_jacobian_inverse(q1)
            v_bar = mat_t_vec(back, scale3(second, load3(bar.av)))
            q_bar = scale3(second, load3(bar.aq))
            turned = turned_rates(q1, mat_vec(back, load3(kept.v1)), v_bar)
            q_bar = (q_bar[0] - turned[0], q_bar[1] - turned[1], q_bar[2] - turned[2])
            add_to3(bar.older[3:], 1.0, v_bar)
            add_to3(bar.older, 1.0, mat_t_vec(back, q_bar))
            add_to3(bar.total, -1.0, mat_t_vec(so3.left_jacobian_inverse(q1), q_bar))


@kernel
def pull_driven(stage, bars, node, at, bar):
    """The coordinates of a driven node by its target, and by where its rotation is centred."""
    c, target = stage.c, bars.joints[node.joint].target[node.direction :]
    h = (
        bar.x[0] + bar.v[0] / c + bar.a[0] / (c * c), bar.x[1] + bar.v[1] / c + bar.a[1] / (c * c),
        bar.x[2] + bar.v[2] / c + bar.a[2] / (c * c),
    )
    if node.kind != POINT:
        for j in range(node.count):
            target[j] += h[j]
        return
    chart = int(at.chart)
    if chart == 0:
        add_to3(bar.turn, -1.0, mat_t_vec(so3.left_jacobian_inverse(load3(at.x)), h))
    turn = mat_t_vec(load9(node.frame), mat_t_vec(inverse9(jacobian(node, chart, at.x)), h))
    if node.backwards:
        turn = neg3(mat_t_vec(in_joint(node, rotation(node, chart, at.turn, at.x)), turn))
    add_to3(target, 1.0, mat_t_vec(so3.right_jacobian(load3(stage.work.joints[node.joint].target[node.direction :])), turn))


@kernel
def pull_steps(stage, tableau, tape, last, bars, nodes, at_knots, knots, pushes, joint_bars, tensions):
    """The adjoint from the end of stage ``last - 1`` back to the first one, with the cotangents in ``after`` and ``older``.

    ``stage``: one of any length. ``knots`` (stages,): the knot that a step begins at, by its first stage, or -1; ``at_knots`` (knots, nodes, 6): the
    cotangents of coordinates and rates there. Writes the bars of inputs and targets per stage. Returns the worst residual of the
    adjoint equations, relative; -1 where one could not be solved.
    """
    model, tree, work, own, ties = stage.model, stage.tree, stage.work, stage.own, stage.ties
    worst = 0.0
    for entry in range(last - 1, -1, -1):
        here = Stage(model, tree, work, own, ties, tape.clock[entry, 0])
        begin_bars(here, tableau, tape, entry, bars, nodes)
        recall_stage(here, tape, entry)
        if not open_stage(here, bars):
            return -1.0
        worst = max(worst, pull_stage(here, bars, nodes))
        end_bars(here, tableau, tape, entry, bars, nodes, at_knots, knots, pushes, joint_bars, tensions)
    return worst


@kernel
def begin_bars(stage, tableau, tape, entry, bars, nodes):
    """Bars of x, x', x'' at the end of a stage, from those of the state after its step and of its derivatives."""
    dt, number, stages, order = tape.clock[entry, 1], tape.kind[entry, 0], tape.kind[entry, 1], tape.kind[entry, 2]
    clear_stage(stage.model, bars, nodes)
    if number == stages - 1:
        for i in range(nodes.shape[0]):
            for k in range(6):
                nodes[i].total[k], nodes[i].older[k] = nodes[i].older[k], 0.0
                for j in range(stages):
                    nodes[i].k[j, k] = 0.0
        if order > 0 or tableau.stiffly_accurate:
            pull_accept(stage.tree, tape, entry, nodes, True)
        else:
            pull_combined(stage.tree, tape, entry, nodes, tableau.b, dt, stages)
    for i in range(nodes.shape[0]):
        bar = nodes[i]
        for j in range(3):
            bar.v[j] += bar.k[number, j]
            bar.a[j] += bar.k[number, 3 + j]


@kernel
def end_bars(stage, tableau, tape, entry, bars, nodes, at_knots, knots, pushes, joint_bars, tensions):
    """From bars of x, x', x'' and of the aggregates to those of what a stage began with, and of its inputs and targets; see ``pull_steps``."""
    model, number = stage.model, tape.kind[entry, 0]
    pull_aggregates(stage, tape, entry, bars, nodes, tableau.a, number, tape.clock[entry, 1], tape.kind[entry, 2])
    for i in range(model.bodies.shape[0] - 1):
        for k in range(6):
            pushes[entry, i, k] = bars.bodies[i].push[k]
    for i in range(model.joints.shape[0]):
        for k in range(6):
            joint_bars[entry, 0, i, k] = bars.joints[i].input[k]
            joint_bars[entry, 1, i, k] = bars.joints[i].target[k]
    for i in range(model.couplings.shape[0]):
        tensions[entry, i] = bars.couplings[i].input
    if number == 0:
        for i in range(nodes.shape[0]):
            for k in range(6):
                nodes[i].after[k] = nodes[i].total[k]
                if knots[entry] >= 0:
                    nodes[i].after[k] += at_knots[knots[entry], i, k]


@kernel
def pull_knots(stage, states, targets, coordinates, cot, bars, nodes, into, rate):
    """What is read at knots with ``states`` (knots, nodes), weighted with ``cot``, by coordinates and rates there: added to ``into`` (knots, nodes, 6)."""
    model, tree, work, own = stage.model, stage.tree, stage.work, stage.own
    for knot in range(states.shape[0]):
        clear_stage(model, bars, nodes)
        clear_frames(bars, nodes)
        for i in range(tree.shape[0]):
            at, state = own.nodes[i], states[knot, i]
            store3(at.x, load3(state.q))
            store3(at.v, load3(state.v))
            store4(at.turn, load4(state.turn))
            at.chart = state.chart
            place_node(model, tree, own, i)
        place_bodies(tree, own.nodes, work)
        for i in range(model.bodies.shape[0] - 1):
            for c in range(6):
                bars.bodies[i].u[c] = work.velocity[i, c]
                bars.bodies[i].du[c] = cot.velocity[knot, i, c]
        for i in range(model.joints.shape[0]):
            for k in range(6):
                work.joints[i].target[k] = targets[knot, i, k]
                work.joints[i].coordinate[k] = coordinates[knot, i, k]
        evaluate_pose(model, work)
        joint_rates(model, work, work.velocity, rate)
        pull_rates(model, work, bars, cot.rate[knot])
        pull_coordinates(model, work, bars, cot.coordinate[knot])
        if cot.energy[knot, 0] != 0.0:
            pull_kinetic(model, work, bars, cot.energy[knot, 0], rate)
        if cot.energy[knot, 1] != 0.0:
            pull_potential(model, work, bars, cot.energy[knot, 1])
        for i in range(model.bodies.shape[0] - 1):
            bar = bars.bodies[i]
            for c in range(3):
                bar.x[c] += cot.position[knot, i, c]
                bar.phi[c] += cot.orientation[knot, i, c]
        take_bodies(stage, bars, nodes)
        pull_frames(stage, bars, nodes)
        for i in range(tree.shape[0]):
            # a knot is where its free rotations are centred
            add_to3(into[knot, i], 1.0, load3(nodes[i].turn) if is_vector(tree[i], states[knot, i].chart) else load3(nodes[i].x))
            add_to3(into[knot, i, 3:], 1.0, load3(nodes[i].v))
