"""Steps by rates of change in joint coordinates, whole runs in one kernel: the classical Runge-Kutta method, semi-implicit and
linearly implicit Euler, and the paper's baselines for loops, with rows at the level of rates or of accelerations (eq. 2.105, 2.106).

A step is made of rates of change at moments of it (forward dynamics in linear time). Free rotations are quaternions there,
with angular velocities, so that there is no chart. Loops are closed at the level of accelerations and brought back after a step,
but in the baselines, which only pull (Baumgarte, eq. 1.97).
"""
from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from dalembert.forces.loads import apply_inputs, clear_inputs
from dalembert.formulations.reduced.closing import close_loops, jump, rates_of_change
from dalembert.formulations.reduced.forward import place_flow
from dalembert.formulations.reduced.joint_forces import spin_in_parent
from dalembert.formulations.reduced.linearly_implicit import SoftScratch, linearly_implicit_accelerations
from dalembert.formulations.reduced.step import within_splines
from dalembert.kernels import inline, kernel
from dalembert.model.frames import ball_vector
from dalembert.model.pose import put6
from dalembert.model.records import F, fields
from dalembert.model.rotations import in_joint, in_node
from dalembert.model.rows import aim
from dalembert.model.tree import POINT, TARGET
from dalembert.spatial import quaternion, so3
from dalembert.spatial.tuples import add3, dot3, load3, load4, load9, mat_vec, scale3, store3, store4
from dalembert.spatial.twists import load6

#: coordinates and rates at the knot; of a free rotation, its quaternion and its angular velocity in the node's frame
FLOW_STATE = np.dtype(fields(F, q=3, v=3, turn=4))
#: the weighted rates of change of the stages so far
SUM = np.dtype(fields(F, q=2, turn=4, v=3))
#: rates of driven directions that change by more than this at a knot (m/s or rad/s) give the rest a push
JUMP = 1e-9
#: how far loops may be open after a step, m or rad
LARGEST_GAP = 1e-9
#: m/s or rad/s: a step that ends with larger rates has gone off
LARGEST_RATE = 1e8
#: a step of linearly implicit Euler in which a body turns by more than this (rad), and the kinetic energy grows by more than this part, is too long: it takes
#: what depends on the square of velocities as it was
TURN, GROWTH = 0.05, 0.02
#: fractions of a step that the methods look at
FRACTIONS = {"rk4": (0.0, 0.5, 1.0)}
RK4, SEMI_IMPLICIT, LINEARLY_IMPLICIT, KKT_VELOCITY, KKT_ACCELERATION = range(5)


class StepOptions(NamedTuple):
    """Which method, the part of what is open in a loop that the baselines ask back within a step, and whether steps that are too long end the run."""

    method: int
    stabilization: float
    watched: bool


class StepScratch(NamedTuple):
    """Sums of stages (a record per node), and derivatives of forces."""

    sums: np.ndarray
    soft: SoftScratch


class FlowState(NamedTuple):
    """Records over one flat array. ``clock``: length of the step before, and room for the engine."""

    nodes: np.ndarray
    joints: np.ndarray
    clock: np.ndarray


@inline
def recall(flow, state):
    """Put the state's knot into the nodes."""
    for i in range(flow.tree.shape[0]):
        at, past = flow.own.nodes[i], state.nodes[i]
        at.x[0], at.x[1] = past.q[0], past.q[1]
        store3(at.v, load3(past.v))
        store4(at.turn, load4(past.turn))


@inline
def keep(flow, state):
    """Coordinates and rates of the nodes are the state's."""
    for i in range(flow.tree.shape[0]):
        at, new = flow.own.nodes[i], state.nodes[i]
        new.q[0], new.q[1] = at.x[0], at.x[1]
        store3(new.v, load3(at.v))
        store4(new.turn, load4(at.turn))


@kernel
def follow(flow, motion):
    """Put driven directions where their targets are, with rates and second derivatives; ``motion`` (3, joints, 6).

    Leaves the changes of their rates in the answers, and returns the largest. Servos and driven loops take their targets.
    """
    model, work, largest = flow.model, flow.work, 0.0
    for i in model.driven:
        at = work.joints[i]
        for k in range(model.joints[i].free):
            at.target[k] = motion[0, i, k]
            at.rate[k] = motion[1, i, k]
            at.acceleration[k] = motion[2, i, k]
        aim(model.joints[i], at)
    for i in range(flow.tree.shape[0]):
        node, at, answer = flow.tree[i], flow.own.nodes[i], flow.own.answers[i]
        if node.driven != TARGET or node.joint < 0:
            continue
        before = load3(at.v)
        k = node.direction
        if node.kind == POINT:
            turn_to(node, at, load3(motion[0, node.joint, k:]), load3(motion[1, node.joint, k:]), load3(motion[2, node.joint, k:]))
        else:
            for j in range(node.count):
                at.x[j], at.v[j], at.a[j] = motion[0, node.joint, k + j], motion[1, node.joint, k + j], motion[2, node.joint, k + j]
        for j in range(node.count):
            answer.a[j] = at.v[j] - before[j]
            largest = max(largest, abs(answer.a[j]))
    return largest


@inline
def turn_to(node, at, phi, rate, acceleration):
    """A free rotation at a rotation vector that moves: quaternion, angular velocity and acceleration in the node's frame."""
    store4(at.turn, quaternion.from_matrix(in_node(node, so3.exp_matrix(phi))))
    frame = load9(node.frame)
    if node.backwards:
        # the inverse rotation turns by the same angular velocity, negated, in the parent's axes
        J, dJ, sign = so3.left_jacobian(phi), so3.left_jacobian_derivative(phi, rate), -1.0
    else:
        J, dJ, sign = so3.right_jacobian(phi), so3.right_jacobian_derivative(phi, rate), 1.0
    store3(at.v, scale3(sign, mat_vec(frame, mat_vec(J, rate))))
    store3(at.a, scale3(sign, mat_vec(frame, add3(mat_vec(J, acceleration), mat_vec(dJ, rate)))))


@inline
def attend(flow, samples, index, moment):
    """Inputs and targets at a moment of a step. Returns the largest change of a driven rate."""
    if samples.per > 0:
        apply_inputs(flow.model, flow.work, samples, index * samples.per + moment)
    elif moment == 0:
        apply_inputs(flow.model, flow.work, samples, index)
    if samples.motion.shape[0] > 0:
        return follow(flow, samples.motion[index, moment])
    return 0.0


@inline
def turning(turn, w):
    """Rate of change of a quaternion for an angular velocity in its own frame."""
    return quaternion.multiply(turn, (0.0, 0.5 * w[0], 0.5 * w[1], 0.5 * w[2]))


@kernel
def rk4_step(flow, state, samples, index, dt, sums):
    """One step of the classical Runge-Kutta method from placed nodes at the knot. Returns False when a number is not finite."""
    for stage in range(4):
        if stage > 0:
            attend(flow, samples, index, rk4_moment(stage))
            place_flow(flow)
        if not rates_of_change(flow, 0.0):
            return False
        rk4_stage(flow, state, stage, dt, sums)
    return True


@inline
def rk4_moment(stage):
    """Which of the method's fractions of a step a stage looks at."""
    return 0 if stage == 0 else 2 if stage == 3 else 1


@inline
def rk4_weight(stage, dt):
    """How much a stage's rates of change count."""
    return dt / 3.0 if stage == 1 or stage == 2 else dt / 6.0


@inline
def rk4_ahead(stage, dt):
    """How far the stage after this one lies from the knot."""
    return dt if stage == 2 else 0.5 * dt


@inline
def rk4_stage(flow, state, stage, dt, sums):
    """From the rates of change of a stage to the next one, or to the end of the step."""
    tree, nodes = flow.tree, flow.own.nodes
    weight, ahead, last = rk4_weight(stage, dt), rk4_ahead(stage, dt), stage == 3
    for i in range(tree.shape[0]):
        node, at, past, total = tree[i], nodes[i], state.nodes[i], sums[i]
        if node.kind == POINT:
            rate = turning(load4(at.turn), at.v)
            turn = (0.0, 0.0, 0.0, 0.0) if stage == 0 else load4(total.turn)
            turn = (turn[0] + weight * rate[0], turn[1] + weight * rate[1], turn[2] + weight * rate[2], turn[3] + weight * rate[3])
            store4(total.turn, turn)
            step = turn if last else (ahead * rate[0], ahead * rate[1], ahead * rate[2], ahead * rate[3])
            q = load4(past.turn)
            store4(at.turn, quaternion.normalize((q[0] + step[0], q[1] + step[1], q[2] + step[2], q[3] + step[3])))
            for j in range(3):
                total.v[j] = (0.0 if stage == 0 else total.v[j]) + weight * at.a[j]
                at.v[j] = past.v[j] + (total.v[j] if last else ahead * at.a[j])
            continue
        for j in range(node.count):
            q = (0.0 if stage == 0 else total.q[j]) + weight * at.v[j]
            v = (0.0 if stage == 0 else total.v[j]) + weight * at.a[j]
            total.q[j] = q
            total.v[j] = v
            at.x[j] = past.q[j] + (q if last else ahead * at.v[j])
            at.v[j] = past.v[j] + (v if last else ahead * at.a[j])


@inline
def move_semi_implicitly(flow, dt):
    """Rates by the second derivatives, then coordinates by the new rates."""
    for i in range(flow.tree.shape[0]):
        node, at = flow.tree[i], flow.own.nodes[i]
        if node.kind == POINT:
            for j in range(3):
                at.v[j] += dt * at.a[j]
            turn = quaternion.multiply(load4(at.turn), quaternion.exp(scale3(dt, load3(at.v))))
            store4(at.turn, quaternion.normalize(turn))
            continue
        for j in range(node.count):
            at.v[j] += dt * at.a[j]
            at.x[j] += dt * at.v[j]


@inline
def goes_off(flow):
    """Whether rates have grown beyond all measure, or are no numbers."""
    for i in range(flow.tree.shape[0]):
        for j in range(3):
            if not abs(flow.own.nodes[i].v[j]) < LARGEST_RATE:
                return True
    return False


@inline
def motion_of(flow):
    """Kinetic energy (J) of the bodies of placed nodes, and how fast the fastest turns (rad/s)."""
    kinetic, fastest = 0.0, 0.0
    for i in range(flow.tree.shape[0]):
        node = flow.tree[i]
        if node.body >= 0:
            w, v = load6(flow.own.nodes[i].V)
            kinetic += 0.5 * (node.mass * dot3(v, v) + dot3(w, mat_vec(load9(node.inertia), w)))
            fastest = max(fastest, dot3(w, w))
    return kinetic, sqrt(fastest)


@inline
def end_step(flow, samples, index, state, dt, project):
    """Targets at the end, loops, and the new state. Returns what stays open of the loops, m or rad, infinite beyond a spline."""
    attend(flow, samples, index, samples.motion.shape[1] - 1)
    size = 0.0
    if flow.closed and project:
        size = close_loops(flow)
    else:
        place_flow(flow)
    if flow.model.splines.shape[0] > 1 and not within_splines(flow.tree, flow.own):
        return np.inf
    keep(flow, state)
    keep_turns(flow, state)
    state.clock[0] = dt
    return size


@inline
def begin_step(flow, samples, index):
    """Inputs at the start of a step; driven rates that jump push the rest."""
    if attend(flow, samples, index, 0) > JUMP:
        jump(flow)
    elif samples.motion.shape[0] > 0:
        place_flow(flow)


@kernel
def run_steps(flow, state, samples, options, own, recording, first, count, dt):
    """``count`` steps from knot ``first`` of the recording, which already holds that knot. ``samples`` start at that knot.

    Returns (steps done, what stayed open of the loops in the last one).
    """
    size, method = 0.0, options.method
    pull = options.stabilization / dt if method >= KKT_VELOCITY else 0.0
    begin_run(flow, state)
    watched = options.watched and method == LINEARLY_IMPLICIT
    before = motion_of(flow)[0]
    for index in range(count):
        begin_step(flow, samples, index)
        if method == RK4:
            if samples.motion.shape[0] > 0:
                keep(flow, state)  # a jump has changed rates
            fine = rk4_step(flow, state, samples, index, dt, own.sums)
        elif method in (LINEARLY_IMPLICIT, KKT_VELOCITY):
            fine = linearly_implicit_accelerations(flow, own.soft, dt, pull)
        else:
            fine = rates_of_change(flow, pull)
        if not fine:
            return index, np.nan
        if method != RK4:
            move_semi_implicitly(flow, dt)
        if goes_off(flow):
            return index, np.nan
        size = end_step(flow, samples, index, state, dt, method < KKT_VELOCITY)
        if not size < LARGEST_GAP:
            return index, size
        if watched:
            kinetic, fastest = motion_of(flow)
            if fastest * dt > TURN and kinetic > (1.0 + GROWTH) * before:
                return index, np.nan
            before = kinetic
        note(flow, state, recording, first + index + 1)
    keep_coordinates(flow, state, samples)
    return count, size


@inline
def begin_run(flow, state):
    """Nodes placed at the state's knot, without inputs; joints that close loops begin with its coordinates."""
    clear_inputs(flow.model, flow.work)
    recall(flow, state)
    for i in flow.ties.loops:
        for k in range(6):
            flow.work.joints[i].coordinate[k] = state.joints[i].coordinate[k]
    place_flow(flow)


@inline
def note(flow, state, recording, knot):
    """Write a knot that a step ended at."""
    recording.substeps[knot] = 1
    recording.iterations[knot] = 1
    write_knot(flow, state, recording, knot)


@kernel
def write_knot(flow, state, recording, knot):
    """Poses and momenta of placed nodes into the recording, and coordinates and rates of their joints."""
    recording.step_before[knot] = state.clock[0]
    for i in range(flow.tree.shape[0]):
        node, at = flow.tree[i], flow.own.nodes[i]
        if node.joint >= 0 and node.kind != POINT:
            for j in range(node.count):
                recording.coordinate[knot, node.joint, node.direction + j] = at.x[j]
                recording.rate[knot, node.joint, node.direction + j] = at.v[j]
        elif node.joint >= 0:
            E = in_joint(node, quaternion.to_matrix(load4(at.turn)))
            store3(recording.coordinate[knot, node.joint, node.direction :], load3(state.joints[node.joint].coordinate[node.direction :]))
            store3(recording.rate[knot, node.joint, node.direction :], spin_in_parent(node, at, E))
        if node.body < 0:
            continue
        W = load9(at.W)
        w, v = load6(at.V)
        store3(recording.position[knot, node.body], load3(at.place))
        store4(recording.orientation[knot, node.body], quaternion.from_matrix(W))
        put6(recording.momentum[knot, node.body], scale3(node.mass, mat_vec(W, v)), mat_vec(load9(node.inertia), w))


@kernel
def record(flow, state, recording, knot):
    """Write the state into the recording."""
    recall(flow, state)
    place_flow(flow)
    write_knot(flow, state, recording, knot)


@inline
def keep_turns(flow, state):
    """Rotation vectors of joints that turn freely go on from the last knot's."""
    for i in range(flow.tree.shape[0]):
        node = flow.tree[i]
        if node.kind == POINT and node.joint >= 0:
            k = node.direction
            E = in_joint(node, quaternion.to_matrix(load4(flow.own.nodes[i].turn)))
            coordinate = state.joints[node.joint].coordinate
            store3(coordinate[k:], ball_vector(E, load3(coordinate[k:])))


@kernel
def keep_coordinates(flow, state, samples):
    """Coordinates and targets of the joints at the state's knot."""
    for i in range(flow.tree.shape[0]):
        node = flow.tree[i]
        if node.joint >= 0 and node.kind != POINT:
            for j in range(node.count):
                state.joints[node.joint].coordinate[node.direction + j] = state.nodes[i].q[j]
    for i in flow.ties.loops:
        for k in range(flow.model.joints[i].free):
            state.joints[i].coordinate[k] = flow.work.joints[i].coordinate[k]
    if samples.motion.shape[0] > 0:
        last = samples.motion[samples.motion.shape[0] - 1, samples.motion.shape[1] - 1, 0]
        for i in flow.model.driven:
            for k in range(flow.model.joints[i].free):
                if flow.model.joints[i].follows[k]:
                    state.joints[i].target[k] = last[i, k]
