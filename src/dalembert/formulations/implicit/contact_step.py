"""The stages of BDF and DIRK methods in maximal coordinates, as runs with contacts take them."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.contact.bearing import bear
from dalembert.contact.kept import keep_nodes
from dalembert.contact.records import LASTING_BODY, LASTING_JOINT
from dalembert.formulations.contact_stages import Stages, build_contact_steps
from dalembert.formulations.implicit import step
from dalembert.formulations.implicit.encounter import (
    carry_on,
    combined_end,
    limit_work,
    misfits,
    pose_at_guess,
    recall_pose,
    solve_encounter,
)
from dalembert.formulations.implicit.equations import Stage
from dalembert.formulations.implicit.state import BODY_STATE, JOINT_STATE, Scratch, recall, record
from dalembert.formulations.implicit.tape import keep_solved
from dalembert.formulations.maximal.knot import clear_impulses
from dalembert.kernels import inline, kernel
from dalembert.model.pose import set_targets
from dalembert.model.records import Model, Work
from dalembert.spatial.tuples import load3, load4, store3, store4

CONTACT_BODY_STATE = np.dtype(BODY_STATE.descr + LASTING_BODY)
CONTACT_JOINT_STATE = np.dtype(JOINT_STATE.descr + LASTING_JOINT)


class Parts(NamedTuple):
    """What the stages of a run with contacts are made of."""

    model: Model
    work: Work
    own: Scratch


@inline
def recall_(parts, state):
    recall(parts.model, parts.work, state)


@inline
def recall_pose_(parts, state, smooth):
    recall_pose(parts.model, parts.work, state, smooth)


@inline
def carry_on_(parts, state, dt):
    carry_on(parts.work, state, dt)


@inline
def aggregate(parts, state, order):
    step.aggregate_bdf(state, parts.own, order)


@inline
def aggregate_stage(parts, state, a, stage, dt):
    step.aggregate_stage(state, parts.own, a, stage, dt)


@inline
def guess_(parts, state, order):
    step.guess(state, parts.own, order)


@inline
def pose_at_guess_(parts, gamma):
    pose_at_guess(parts.work, parts.own, gamma)


@inline
def set_targets_(parts, targets):
    set_targets(parts.model, parts.work, targets)


@inline
def problem(parts, gamma, compliance):
    return Stage(parts.model, parts.work, parts.own, gamma, compliance)


@inline
def clear(parts):
    clear_impulses(parts.model, parts.work)


@inline
def bear_(parts, gamma, scene, again, tolerance):
    return bear(parts.model, parts.work, scene.limits, again, tolerance)


@inline
def keep_stage(parts, stage, gamma):
    step.keep_stage(parts.own, stage, gamma)


@inline
def combined_end_(parts, state, b, dt):
    combined_end(state, b, dt, parts.work, parts.own)


@inline
def misfits_(parts, dt, resting):
    return misfits(parts.model, parts.work, parts.own, dt, resting)


@inline
def turns_far(parts, state, gamma):
    return step.turns_far(state, parts.own, gamma)


@inline
def accept(parts, state, gamma, after):
    step.accept(state, parts.own, gamma, after)


@inline
def combine(parts, state, b, dt, after):
    step.combine(state, parts.own, b, dt, after)


@inline
def finish(parts, state, targets, history, dt, after):
    step.finish(parts.model, targets, history, dt, parts.work, after)


@inline
def record_(parts, state, recording, knot):
    record(parts.model, state, recording, knot)


@kernel
def keep(parts, state, scene, taped, entry, kept, used, gamma, dt, number, count, order, rows):
    """Write a solved stage into the tape, its contacts into the log; returns the log's new length."""
    keep_solved(parts.model, state, parts.work, parts.own, taped, entry, gamma, dt, number, count, order)
    taped.rows[entry] = rows
    for i in range(parts.own.bodies.shape[0]):
        past, older = state.bodies[i], taped.older[entry, i]
        store4(older.q, load4(past.q1))
        store3(older.v, load3(past.v1))
        store4(older.w, load4(past.w1))
    return keep_nodes(scene, kept, used, taped.span[entry], taped.limits[entry])


run_contact_steps = build_contact_steps(
    "contact", __file__, solve=solve_encounter, limit_work=limit_work,
    stages=Stages(
        recall_, recall_pose_, carry_on_, aggregate, aggregate_stage, guess_, pose_at_guess_, set_targets_, problem, clear, bear_, keep_stage,
        combined_end_, misfits_, turns_far, accept, combine, finish, record_, keep,
    ),
)
