"""The stages of BDF and DIRK methods in joint coordinates, as runs with contacts take them."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.contact.records import LASTING_BODY, LASTING_JOINT
from dalembert.formulations.contact_stages import Stages, build_contact_steps
from dalembert.formulations.reduced import step
from dalembert.formulations.reduced.bearing_loads import bear_in_tree
from dalembert.formulations.reduced.contact_tape import keep_encounter
from dalembert.formulations.reduced.encounter import limit_work, solve_encounter
from dalembert.formulations.reduced.equations import Stage, place_bodies, place_node, stage_rates
from dalembert.formulations.reduced.map_equations import follow_combined
from dalembert.formulations.reduced.state import JOINT_STATE, Scratch
from dalembert.formulations.reduced.ties import Ties
from dalembert.kernels import inline, kernel
from dalembert.model.records import Model, Work
from dalembert.spatial import quaternion
from dalembert.spatial.tuples import add3, load3, load4, load9, mat_vec, scale3, store3, store4, store9, sub3

#: of a residual that no factor measures yet, m/s by its own unit
UNKNOWN = 1e200

CONTACT_BODY_STATE = np.dtype(LASTING_BODY)
CONTACT_JOINT_STATE = np.dtype(JOINT_STATE.descr + LASTING_JOINT)


class ContactState(NamedTuple):
    """``ReducedState`` with what lasts of contacts."""

    nodes: np.ndarray
    joints: np.ndarray
    maps: np.ndarray
    bodies: np.ndarray
    clock: np.ndarray


class Parts(NamedTuple):
    """What the stages of a run with contacts are made of; ``knot``: scratch for poses of knots."""

    model: Model
    work: Work
    own: Scratch
    tree: np.ndarray
    ties: Ties
    knot: Scratch


@inline
def problem(parts, gamma, compliance):
    parts.ties.compliance[0] = compliance
    return Stage(parts.model, parts.tree, parts.work, parts.own, parts.ties, gamma)


@inline
def plain(parts, gamma):
    return Stage(parts.model, parts.tree, parts.work, parts.own, parts.ties, gamma)


@inline
def recall(parts, state):
    for i in range(parts.model.joints.shape[0]):
        for k in range(parts.model.joints[i].free):
            parts.work.joints[i].coordinate[k] = state.joints[i].coordinate[k]


@kernel
def recall_pose(parts, state, smooth):
    model, tree, work, nodes = parts.model, parts.tree, parts.work, parts.knot.nodes
    if smooth:
        for i in range(tree.shape[0]):
            at, past = nodes[i], state.nodes[i]
            store3(at.x, load3(past.q1))
            store3(at.v, load3(past.v1))
            store4(at.turn, load4(past.turn1))
            at.chart = past.chart
            place_node(model, tree, parts.knot, i)
        place_bodies(tree, nodes, work)
        for i in range(model.bodies.shape[0] - 1):
            store3(work.bodies[i].v, load3(work.velocity[i]))
            store3(work.bodies[i].w, load3(work.velocity[i, 3:]))
    step.place_knot(model, tree, parts.knot, state)
    place_bodies(tree, nodes, work)
    for i in range(model.bodies.shape[0] - 1):
        body, fixed = work.bodies[i], model.bodies[i]
        v, omega = load3(work.velocity[i]), load3(work.velocity[i, 3:])
        if smooth:
            store3(body.v, scale3(0.5, sub3(v, load3(body.v))))
            store3(body.w, scale3(0.5, sub3(omega, load3(body.w))))
        else:
            store3(body.v, (0.0, 0.0, 0.0))
            store3(body.w, (0.0, 0.0, 0.0))
        store3(body.p, scale3(fixed.mass, sub3(v, load3(body.v))))
        store3(body.l, mat_vec(load9(fixed.inertia), sub3(omega, load3(body.w))))


@kernel
def carry_on(parts, state, dt):
    """The velocities of the knot are those that ``recall_pose`` left."""
    for i in range(parts.model.bodies.shape[0] - 1):
        body, u = parts.work.bodies[i], parts.work.velocity[i]
        turned = quaternion.multiply(load4(body.q), quaternion.exp(scale3(dt, load3(u[3:]))))
        store3(body.xn, add3(load3(body.x), scale3(dt, load3(u))))
        store4(body.qn, turned)
        store9(body.Rn, quaternion.to_matrix(turned))


@inline
def aggregate(parts, state, order):
    step.begin_step(plain(parts, 1.0), state, order)


@inline
def aggregate_stage(parts, state, a, stage, dt):
    step.begin_stage(plain(parts, 1.0), state, a, stage, dt)


@inline
def guess(parts, state, order):
    step.guess(plain(parts, 1.0), state, order == 2)


@kernel
def pose_at_guess(parts, gamma):
    stage_rates(plain(parts, gamma))
    for i in range(parts.tree.shape[0]):
        place_node(parts.model, parts.tree, parts.own, i)
    place_bodies(parts.tree, parts.own.nodes, parts.work)


@inline
def set_targets(parts, targets):
    step.follow_targets(plain(parts, 1.0), targets)


@inline
def clear(parts):
    """Nor does it matter what the pivots of an earlier step were: before the first factor every residual counts as large."""
    for i in range(parts.tree.shape[0]):
        for j in range(parts.tree[i].count):
            parts.own.nodes[i].scale[j] = UNKNOWN
    for i in range(parts.ties.rows.shape[0]):
        parts.ties.rows[i].mu = 0.0
        parts.ties.rows[i].dmu = 0.0
        parts.ties.rows[i].scale = UNKNOWN


@inline
def bear(parts, gamma, scene, again, tolerance):
    return bear_in_tree(plain(parts, gamma), scene.limits, again, tolerance)


@inline
def keep_stage(parts, stage, gamma):
    step.keep_stage(plain(parts, gamma), stage)


@kernel
def combined_end(parts, state, b, dt):
    model, tree, nodes = parts.model, parts.tree, parts.knot.nodes
    for i in range(tree.shape[0]):
        at, past, stage = nodes[i], state.nodes[i], parts.own.nodes[i]
        store4(at.turn, load4(past.turn))
        at.chart = past.chart
        for j in range(3):
            at.x[j] = 0.0 if step.centred(tree[i], past) else past.q[j]
            at.v[j] = 0.0
            for k in range(b.shape[0]):
                at.x[j] += dt * b[k] * stage.kq[k, j]
    follow_combined(nodes, parts.own.maps, state.maps, b, dt)
    for i in range(tree.shape[0]):
        place_node(model, tree, parts.knot, i)
    place_bodies(tree, nodes, parts.work)
    for i in range(parts.model.bodies.shape[0] - 1):
        body = parts.work.bodies[i]
        store3(body.xn, load3(body.x))
        store4(body.qn, load4(body.q))
        store9(body.Rn, load9(body.R))


@inline
def misfits(parts, dt, resting):
    """Never: joints of a tree hold by the coordinates themselves."""
    return False


@inline
def turns_far(parts, state, gamma):
    return step.turns_far(plain(parts, gamma), state) or not step.within_splines(parts.tree, parts.own)


@inline
def accept(parts, state, gamma, after):
    step.accept(plain(parts, gamma), state, after)


@inline
def combine(parts, state, b, dt, after):
    stage = plain(parts, dt)
    step.combine(stage, state, b, dt)
    step.accept(stage, state, after)


@inline
def finish(parts, state, targets, history, dt, after):
    step.finish(plain(parts, dt), state, targets, history, dt, after)


@inline
def record(parts, state, recording, knot):
    step.record(parts.model, parts.tree, parts.knot, state, recording, knot)


@inline
def keep(parts, state, scene, taped, entry, kept, used, gamma, dt, number, count, order, rows):
    return keep_encounter(plain(parts, gamma), state, scene, taped, entry, kept, used, dt, number, count, order, rows)


run_contact_steps = build_contact_steps(
    "contact", __file__, solve=solve_encounter, limit_work=limit_work,
    stages=Stages(
        recall, recall_pose, carry_on, aggregate, aggregate_stage, guess, pose_at_guess, set_targets, problem, clear, bear, keep_stage,
        combined_end, misfits, turns_far, accept, combine, finish, record, keep,
    ),
)
