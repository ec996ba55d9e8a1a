"""Runs with contacts in joint coordinates that remember what derivatives need, and how a taped stage is put back.

The rows of contacts are taken at a pose of their own (``contact_stages``): the knot's, or that of the stage's first guess. Both are poses of
the tree, found again from the coordinates and rates on the tape.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.contact.kept import KEPT_LIMIT, guess_from_kept, keep_again, keep_nodes, recall_nodes
from dalembert.contact.nodes import Encounter
from dalembert.formulations.contact_stages import AFTER_SMOOTH, BY_ONE, BY_TWO
from dalembert.formulations.implicit.contact_tape import place_rows
from dalembert.formulations.maximal.touch_bars import BEFORE, FALL
from dalembert.formulations.reduced.encounter import interior_point
from dalembert.formulations.reduced.equations import Stage, place_node
from dalembert.formulations.reduced.tape import UNWRAP_TAPE, keep_solved, new_tape, recall_stage
from dalembert.kernels import kernel
from dalembert.model.pose import put6
from dalembert.model.tree import POINT
from dalembert.solvers.outcomes import SOLVED
from dalembert.spatial.tuples import load3, load4, load9, mat_vec, store3, store4, store9
from dalembert.spatial.twists import load6

relax = interior_point.relax


class ContactReducedTape(NamedTuple):
    """``ReducedTape`` with limits, where an entry's contacts stand in the log, and where their rows are taken."""

    nodes: np.ndarray
    bodies: np.ndarray
    joints: np.ndarray
    unwrap: np.ndarray
    couplings: np.ndarray
    rows: np.ndarray
    clock: np.ndarray
    kind: np.ndarray
    limits: np.ndarray
    span: np.ndarray
    rows_at: np.ndarray


def new_contact_tape(nodes: int, rows: int, bodies: int, joints: int, couplings: int, limits: int, room: int) -> ContactReducedTape:
    """Room for some stages."""
    plain = new_tape(nodes, bodies, joints, couplings, rows, room)._replace(unwrap=np.zeros((room, joints), UNWRAP_TAPE))
    return ContactReducedTape(*plain, np.zeros((room, limits), KEPT_LIMIT), np.zeros((room, 2), np.int64), np.zeros(room, np.int64))


@kernel
def keep_encounter(stage, state, scene, tape, entry, kept, used, dt, number, count, order, rows_at):
    """Write a solved stage into the tape, its contacts into the log; returns the log's new length."""
    keep_solved(stage, state, tape, entry, dt, number, count, order)
    tape.rows_at[entry] = rows_at
    return keep_nodes(scene, kept, used, tape.span[entry], tape.limits[entry])


def keep_ends(tape: ContactReducedTape, tree: np.ndarray, b: np.ndarray, first: int, last: int) -> None:
    """Write where DIRK steps end that end with none of their stages beside the last of these, as ``tape.keep_end`` does."""
    kind, stages = tape.kind[first:last], len(b)
    ends = first + np.flatnonzero((kind[:, 2] == 0) & (kind[:, 0] == stages - 1))
    vector = (tree["kind"] == POINT) & (tape.nodes["chart"][ends] == 0.0)
    dt = tape.clock[ends, 1][:, None, None]
    q, v = np.where(vector[..., None], 0.0, tape.nodes["q"][ends]), tape.nodes["v"][ends].copy()
    for number, weight in enumerate(b):
        stage = tape.nodes[ends - (stages - 1 - number)]
        q += dt * weight * stage["vs"]
        v += dt * weight * (stage["vs"] - stage["av"]) / tape.clock[ends - (stages - 1 - number), 0][:, None, None]
    tape.nodes["q1"][ends], tape.nodes["v1"][ends] = q, v


# ---- a taped stage


@kernel
def place_past(model, tree, knot, past, older):
    """Place a scratch at the knot before a step, or at the one before that; ``past``: what a tape has of it."""
    for i in range(tree.shape[0]):
        at, kept = knot.nodes[i], past[i]
        store3(at.x, load3(kept.q1) if older else load3(kept.q))
        store3(at.v, load3(kept.v1) if older else load3(kept.v))
        store4(at.turn, load4(kept.turn1) if older else load4(kept.turn))
        at.chart = kept.chart
        place_node(model, tree, knot, i)


@kernel
def place_guess(stage, knot, past, two):
    """Place a scratch where the first guess of a stage leads, by the rates of one knot or of ``two``."""
    for i in range(stage.tree.shape[0]):
        at, mine = knot.nodes[i], stage.own.nodes[i]
        at.chart = mine.chart
        store4(at.turn, load4(mine.turn))
        for j in range(3):
            at.v[j] = 3.0 * mine.av[j] - 2.0 * past[i].v[j] if two else past[i].v[j]
            at.x[j] = mine.x[j] if stage.tree[i].driven else mine.aq[j] + stage.c * at.v[j]
        place_node(stage.model, stage.tree, knot, i)


@kernel
def write_velocities(tree, nodes, out):
    """Velocities (n, 6) of the bodies from their nodes."""
    for i in range(tree.shape[0]):
        if tree[i].body >= 0:
            w, v = load6(nodes[i].V)
            put6(out[tree[i].body], mat_vec(load9(nodes[i].W), v), w)


@kernel
def write_pose(tree, nodes, bodies):
    """Poses of the bodies from their nodes."""
    for i in range(tree.shape[0]):
        if tree[i].body >= 0:
            at = bodies[tree[i].body]
            store3(at.x, load3(nodes[i].place))
            store9(at.R, load9(nodes[i].W))


@kernel
def stand(stage, knot, past, rows_at, touch):
    """The poses where features were found and where rows are taken, the latter in the scratch ``knot`` too, and the velocities that restitution looks at."""
    model, tree, nodes, velocity = stage.model, stage.tree, knot.nodes, touch.velocity
    if rows_at == AFTER_SMOOTH:
        place_past(model, tree, knot, past, True)
        write_velocities(tree, nodes, velocity[FALL])
    place_past(model, tree, knot, past, False)
    write_velocities(tree, nodes, velocity[BEFORE])
    write_pose(tree, nodes, touch.found_at)
    for i in range(model.bodies.shape[0] - 1):
        for c in range(6):
            fall = 0.5 * (velocity[BEFORE, i, c] - velocity[FALL, i, c]) if rows_at == AFTER_SMOOTH else 0.0
            velocity[FALL, i, c] = fall
            velocity[BEFORE, i, c] -= fall
    if rows_at in (BY_ONE, BY_TWO):
        place_guess(stage, knot, past, rows_at == BY_TWO)
    write_pose(tree, nodes, touch.rows_at)


@kernel
def recall_encounter(stage, knot, scene, tape, kept, begin, entry, touch):
    """Put a taped stage into work, scratch and scene; ``begin``: where ``kept`` begins in the log."""
    recall_stage(stage, tape, entry)
    stand(stage, knot, tape.nodes[entry], tape.rows_at[entry], touch)
    recall_nodes(scene, kept, tape.span[entry, 0] - begin, tape.span[entry, 1], tape.limits[entry])
    place_rows(stage.model, stage.work, scene, touch.rows_at)


@kernel
def relax_stages(stage, knot, scene, tape, kept, begin, first, last, touch, kappa, tolerance, iterations):
    """Solve the stages of a tape again with products ``kappa``, each from what it began with. Returns an entry that failed, or -1."""
    for entry in range(first, last):
        c = tape.clock[entry, 0]
        here = Stage(stage.model, stage.tree, stage.work, stage.own, stage.ties, c)
        recall_encounter(here, knot, scene, tape, kept, begin, entry, touch)
        guess_from_kept(scene)
        if relax(Encounter(here, scene, c), kappa, tolerance, iterations) != SOLVED:
            return entry
        for i in range(here.tree.shape[0]):
            for j in range(3):
                tape.nodes[entry, i].xs[j] = here.own.nodes[i].x[j]
                tape.nodes[entry, i].vs[j] = here.own.nodes[i].v[j]
        for i in range(here.ties.rows.shape[0]):
            tape.rows[entry, i].mu = here.ties.rows[i].mu
        keep_again(scene, kept, tape.span[entry, 0] - begin, tape.span[entry, 1], tape.limits[entry])
    return -1
