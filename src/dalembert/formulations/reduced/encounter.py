"""A stage with contacts, limits and dry friction in joint coordinates: what its nodes need to know of it, and how it is solved.

To the nodes a body has twelve unknowns: what its pose (position in the world, rotation in its frame) and its velocities change
by. These are the tree's variations, so that contacts, with the ties, are rows of the dense Schur complement over
solves with the tree.
"""
from __future__ import annotations

from dalembert.contact.impacts import build_granting
from dalembert.contact.nodes import build_nodes
from dalembert.formulations.reduced.equations import (
    balance,
    evaluate_motion,
    load_derivatives,
    rounding_floor,
    size_of,
    stage_rates,
)
from dalembert.formulations.reduced.map_equations import add_curvature
from dalembert.formulations.reduced.step import move, restart
from dalembert.formulations.reduced.tie_equations import (
    clear_pushes,
    factor_dense,
    is_closed,
    keep_residuals,
    push_row,
    response,
    restore_residuals,
    row_response,
    solve_dense,
    tie_stiffness,
)
from dalembert.formulations.reduced.ties import MOVED
from dalembert.formulations.reduced.tree_solve import factor, solve
from dalembert.kernels import inline, kernel
from dalembert.solvers.interior_point import Linear, build_interior_point
from dalembert.spatial.tuples import (
    add3,
    cross3,
    load3,
    load4,
    load9,
    mat_t_vec,
    mat_vec,
    scale3,
    store3,
    store4,
    store9,
)
from dalembert.spatial.twists import add6, load6, store6

#: unknowns of a body, to the nodes
BODY = 12


@kernel
def motion_to_end(stage):
    """Poses and loads at the iterate, the pose where nodes look for the end of a step. Sizes follow with ``measure``."""
    stage_rates(stage)
    fine = evaluate_motion(stage)
    if fine:
        for i in range(stage.work.bodies.shape[0] - 1):
            body = stage.work.bodies[i]
            store3(body.xn, load3(body.x))
            store4(body.qn, load4(body.q))
            store9(body.Rn, load9(body.R))
    return 0.0, fine


@kernel
def measure(stage):
    """The equations of the nodes, when all that pushes is in their loads."""
    fine = balance(stage)
    return (size_of(stage), True) if fine else (0.0, False)


@inline
def velocity(stage, i):
    """At the end of the stage."""
    u = stage.work.velocity[i]
    return load3(u), load3(u[3:])


@inline
def velocity_terms(stage, i):
    return 0.0


@inline
def rate_gradient(stage, i, terms, row, out):
    """Gradient of the rate along a row at the end of the stage."""
    for c in range(6):
        out[c] = 0.0
        out[6 + c] = row[c]


@inline
def end_gradient(stage, i, row, out):
    """Gradient of what changes by ``row`` with the pose at the end, over c."""
    for c in range(6):
        out[c] = row[c] / stage.c
        out[6 + c] = 0.0


@inline
def push(stage, i, row, impulse):
    """An impulse along a row, onto the load of the body's node."""
    at = stage.own.nodes[stage.work.bodies[i].node]
    size = impulse / stage.c
    store6(at.load, add6(load6(at.load), (
        scale3(size, (row[3], row[4], row[5])), mat_t_vec(load9(at.W), scale3(size, (row[0], row[1], row[2]))),
    )))


nodes = build_nodes(
    "nodes", __file__, unknowns=BODY, velocity=velocity, velocity_terms=velocity_terms, rate_gradient=rate_gradient, end_gradient=end_gradient,
    push=push,
)
node_jacobian = nodes.jacobian


@inline
def write_variation(at, out):
    """A body's twelve unknowns from the variations of its node."""
    W = load9(at.W)
    turned, moved = load6(at.s)
    spun, sped = load6(at.s[6:])
    store3(out, mat_vec(W, moved))
    store3(out[3:], turned)
    store3(out[6:], mat_vec(W, add3(sped, cross3(turned, load3(at.V[3:])))))
    store3(out[9:], spun)


@inline
def add_column(stage, body, block, k, size):
    """Add ``size`` times one column of a node's block to the wrenches on a body."""
    at = stage.own.nodes[stage.work.bodies[body].node]
    M, share = stage.work.blocks[block].M, size / stage.c
    force = (share * M[0, k], share * M[1, k], share * M[2, k])
    torque = (share * M[3, k], share * M[4, k], share * M[5, k])
    store6(at.e, add6(load6(at.e), (torque, mat_t_vec(load9(at.W), force))))


@kernel
def push_node(stage, record, k, size):
    """Add ``size`` times one unknown of a node to the wrenches of the right-hand side."""
    if record.block_an >= 0:
        add_column(stage, record.a, record.block_an, k, size)
    if record.block_bn >= 0:
        add_column(stage, record.b, record.block_bn, k, size)


@kernel
def node_response(stage, record, out):
    """What the three rows of a node change by with the variations of its bodies."""
    work = stage.work
    out[0], out[1], out[2] = 0.0, 0.0, 0.0
    for side in range(2):
        block, body = (record.block_na, record.a) if side == 0 else (record.block_nb, record.b)
        if block < 0:
            continue
        index = work.bodies[body].node
        d = work.vector[index].v
        write_variation(stage.own.nodes[index], d)
        M = work.blocks[block].M
        for r in range(3):
            for c in range(12):
                out[r] += M[r, c] * d[c]


@inline
def is_awake(record):
    """A contact that takes part."""
    return record.awake != 0


@inline
def rows_of(stage, scene):
    """Rows of the Schur complement: of ties, of contacts that take part, of limits, in this order."""
    count = stage.ties.rows.shape[0] + 3 * scene.limits.shape[0]
    for i in range(scene.contacts.shape[0]):
        if is_awake(scene.contacts[i]):
            count += 3
    return count


@kernel
def respond(encounter, column):
    """One column of the Schur complement: what all rows answer to the variations of the tree."""
    stage, scene = encounter.step, encounter.scene
    rows, S = stage.ties.rows, stage.ties.S
    for j in range(rows.shape[0]):
        S[j, column] = response(stage, rows[j])
        if j == column and rows[j].kind != MOVED:
            rows[j].scale = abs(row_response(stage, rows[j])[0]) / stage.c
    place, out = rows.shape[0], scene.scratch
    for j in range(scene.contacts.shape[0]):
        if is_awake(scene.contacts[j]):
            node_response(stage, scene.contacts[j], out)
            for r in range(3):
                S[place + r, column] = out[r]
            place += 3
    for j in range(scene.limits.shape[0]):
        node_response(stage, scene.limits[j], out)
        for r in range(3):
            S[place + 3 * j + r, column] = out[r]


@kernel
def factorise(encounter):
    """Factor the tree, and the Schur complement of ties, contacts and limits."""
    stage, scene = encounter.step, encounter.scene
    rows, S, work = stage.ties.rows, stage.ties.S, stage.work
    load_derivatives(stage)
    if rows.shape[0] > 0:
        tie_stiffness(stage)
    node_jacobian(encounter)
    if not factor(stage):
        return False
    keep_residuals(stage.own.nodes)
    for i in range(stage.own.nodes.shape[0]):
        stage.own.nodes[i].g[:] = 0.0
    count = rows_of(stage, scene)
    for i in range(count):
        for j in range(count):
            S[i, j] = 0.0
    for i in range(rows.shape[0]):
        clear_pushes(stage)
        push_row(stage, rows[i], 1.0)
        solve(stage.tree, stage.own)
        respond(encounter, i)
        if is_closed(rows[i]):
            S[i, i] += stage.ties.compliance[0] * rows[i].soft * stage.c * stage.c
        elif rows[i].kind != MOVED:
            S[i, i] += 1.0
    add_curvature(stage)
    place = rows.shape[0]
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if not is_awake(contact):
            continue
        for k in range(3):
            clear_pushes(stage)
            push_node(stage, contact, k, 1.0)
            solve(stage.tree, stage.own)
            respond(encounter, place + k)
            for r in range(3):
                S[place + r, place + k] += work.blocks[contact.diagonal].M[r, k]
        place += 3
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for k in range(3):
            clear_pushes(stage)
            push_node(stage, limit, k, 1.0)
            solve(stage.tree, stage.own)
            respond(encounter, place + k)
            for r in range(3):
                S[place + r, place + k] += work.blocks[limit.diagonal].M[r, k]
        place += 3
    restore_residuals(stage.own.nodes)
    return factor_dense(S, stage.ties.order, count)


@kernel
def load(encounter, second):
    """The nodes of the tree hold their residuals; whether redundant forces are drawn towards zero."""
    encounter.step.ties.pull[0] = 1.0 if second else 0.0


@kernel
def solve_encounter_system(encounter):
    """Directions of the tree, of the ties, and of contacts and limits, whose residuals are in the work's vector."""
    stage, scene = encounter.step, encounter.scene
    rows, x, vector = stage.ties.rows, stage.ties.vector, stage.work.vector
    out = scene.scratch
    clear_pushes(stage)
    solve(stage.tree, stage.own)
    for i in range(rows.shape[0]):
        row = rows[i]
        x[i] = row.r - response(stage, row)
        if stage.ties.pull[0] > 0.0 and is_closed(row):
            x[i] += stage.ties.compliance[0] * row.soft * stage.c * stage.c * row.mu
    place = rows.shape[0]
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if is_awake(contact):
            node_response(stage, contact, out)
            for r in range(3):
                x[place + r] = vector[contact.node].v[r] - out[r]
            place += 3
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        node_response(stage, limit, out)
        for r in range(3):
            x[place + r] = vector[limit.node].v[r] - out[r]
        place += 3
    solve_dense(stage.ties.S, stage.ties.order, rows_of(stage, scene), x)
    clear_pushes(stage)
    for i in range(rows.shape[0]):
        rows[i].dmu = x[i]
        push_row(stage, rows[i], x[i])
    place = rows.shape[0]
    for i in range(scene.contacts.shape[0]):
        contact = scene.contacts[i]
        if not is_awake(contact):
            continue
        for k in range(3):
            vector[contact.node].v[k] = x[place + k]
            push_node(stage, contact, k, x[place + k])
        place += 3
    for i in range(scene.limits.shape[0]):
        limit = scene.limits[i]
        for k in range(3):
            vector[limit.node].v[k] = x[place + k]
            push_node(stage, limit, k, x[place + k])
        place += 3
    solve(stage.tree, stage.own)
    for i in range(stage.tree.shape[0]):
        if stage.tree[i].body >= 0:
            write_variation(stage.own.nodes[i], vector[i].v)


@kernel
def keep(stage):
    """The direction stays where ``solve`` left it."""


interior_point = build_interior_point(
    "interior_point", __file__, nodes=nodes, linear=Linear(factorise, load, solve_encounter_system, keep), residual=motion_to_end, measure=measure,
    restart=restart, move=move, floor=rounding_floor,
)
solve_encounter = interior_point.solve
limit_work = build_granting("limit_work", __file__, velocity=velocity, falls=True, tree=True)
