"""The adjoint of stages with contacts, limits and dry friction in joint coordinates.

It is that of ``adjoint`` with the rows of the nodes among the equations: bodies feel them as impulses over c, along rows at a pose of their
own, whose bars go through the tree to the coordinates that it stands at.
"""
from __future__ import annotations

from dalembert.contact.nodes import Encounter
from dalembert.formulations.contact_stages import AFTER_SMOOTH, BY_ONE, BY_TWO
from dalembert.formulations.maximal.lasting import pull_forces_at_knot, put_momenta, resting_at
from dalembert.formulations.maximal.pull_contacts import (
    add_node_weights,
    clear_node_weights,
    clear_touch,
    load_nodes,
    pull_nodes,
)
from dalembert.formulations.maximal.pull_forces import pull_load
from dalembert.formulations.maximal.pull_joints import add_to3
from dalembert.formulations.maximal.pull_pairs import fold_pairs
from dalembert.formulations.maximal.touch_bars import AFTER, BEFORE, FALL
from dalembert.formulations.reduced.adjoint import PASSES, SMALL, SMALL_FORCE, load_unknowns
from dalembert.formulations.reduced.contact_tape import place_past, recall_encounter
from dalembert.formulations.reduced.encounter import factorise, is_awake, measure, motion_to_end, rows_of
from dalembert.formulations.reduced.encounter import nodes as kernels
from dalembert.formulations.reduced.equations import Stage
from dalembert.formulations.reduced.pull_ties import (
    clear_variations,
    hand_on_forces,
    pull_ties,
    solve_dense_transposed,
    solve_tree_transposed,
    store_row_weights,
    take_wrenches,
    weigh_variations,
)
from dalembert.formulations.reduced.pull_tree import (
    add_to6,
    carry_weights,
    clear_frames,
    pull_bodies,
    pull_frames,
    pull_laws,
    take_bodies,
)
from dalembert.formulations.reduced.tape import begin_bars, end_bars, is_vector
from dalembert.formulations.reduced.tree_solve import solve_transposed
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import add3, cross3, load3, load9, mat_t_vec
from dalembert.spatial.twists import dot6, load6

node_residual = kernels.residual


@kernel
def open_encounter(stage, scene, bars, touch):
    """Evaluate the equations at the solution, factor Newton's matrix there, note the velocities. False when singular."""
    encounter = Encounter(stage, scene, stage.c)
    if not motion_to_end(stage)[1] or not node_residual(encounter)[1] or not measure(stage)[1]:
        return False
    if not factorise(encounter):
        return False
    for i in range(stage.model.bodies.shape[0] - 1):
        for c in range(6):
            bars.bodies[i].u[c] = touch.velocity[AFTER, i, c] = stage.work.velocity[i, c]
    hand_on_forces(stage)
    return True


# ---- weights


@inline
def column_weight(stage, body, block, k):
    """What one unknown of a node does through its column's wrench on a body, whose bar is in ``e``."""
    at, M = stage.own.nodes[stage.work.bodies[body].node], stage.work.blocks[block].M
    force = mat_t_vec(load9(at.W), (M[0, k], M[1, k], M[2, k]))
    return dot6(((M[3, k], M[4, k], M[5, k]), force), load6(at.e)) / stage.c


@inline
def take_node(stage, record, place):
    """``take_wrenches`` of a node's three unknowns."""
    for k in range(3):
        if record.block_an >= 0:
            stage.ties.vector[place + k] += column_weight(stage, record.a, record.block_an, k)
        if record.block_bn >= 0:
            stage.ties.vector[place + k] += column_weight(stage, record.b, record.block_bn, k)


@inline
def row_weight(M, x, place, c):
    """Minus the entry of a body's number in a node's rows, weighed."""
    return -(M[0, c] * x[place] + M[1, c] * x[place + 1] + M[2, c] * x[place + 2])


@inline
def weigh_body(stage, body, block, place):
    """``encounter.write_variation`` backwards, with a node's rows weighed by the ties' vector."""
    at, M, x = stage.own.nodes[stage.work.bodies[body].node], stage.work.blocks[block].M, stage.ties.vector
    W = load9(at.W)
    moved = mat_t_vec(W, (row_weight(M, x, place, 0), row_weight(M, x, place, 1), row_weight(M, x, place, 2)))
    turned = (row_weight(M, x, place, 3), row_weight(M, x, place, 4), row_weight(M, x, place, 5))
    sped = mat_t_vec(W, (row_weight(M, x, place, 6), row_weight(M, x, place, 7), row_weight(M, x, place, 8)))
    spun = (row_weight(M, x, place, 9), row_weight(M, x, place, 10), row_weight(M, x, place, 11))
    add_to6(at.s, (add3(turned, cross3(load3(at.V[3:]), sped)), moved))
    add_to6(at.s[6:], (spun, sped))


@inline
def weigh_node(stage, record, place):
    """``weigh_variations`` of a node's rows."""
    if record.block_na >= 0:
        weigh_body(stage, record.a, record.block_na, place)
    if record.block_nb >= 0:
        weigh_body(stage, record.b, record.block_nb, place)


@kernel
def solve_encounter_transposed(stage, scene):
    """z (in ``dq``) and weights of the rows of ties (in their vector) and nodes (in the work's) with the transposed Newton matrix, from
    ``g`` and these vectors.
    """
    x, vector = stage.ties.vector, stage.work.vector
    contacts, limits, first, count = scene.contacts, scene.limits, stage.ties.rows.shape[0], rows_of(stage, scene)
    second = count - 3 * limits.shape[0]
    solve_tree_transposed(stage)
    take_wrenches(stage)
    place = first
    for i in range(contacts.shape[0]):
        if is_awake(contacts[i]):
            for k in range(3):
                x[place + k] = vector[contacts[i].node].v[k]
            take_node(stage, contacts[i], place)
            place += 3
    for i in range(limits.shape[0]):
        for k in range(3):
            x[second + 3 * i + k] = vector[limits[i].node].v[k]
        take_node(stage, limits[i], second + 3 * i)
    solve_dense_transposed(stage.ties.S, stage.ties.order, count, x)
    clear_variations(stage)
    weigh_variations(stage)
    place = first
    for i in range(contacts.shape[0]):
        if is_awake(contacts[i]):
            weigh_node(stage, contacts[i], place)
            for k in range(3):
                vector[contacts[i].node].v[k] = x[place + k]
            place += 3
    for i in range(limits.shape[0]):
        weigh_node(stage, limits[i], second + 3 * i)
        for k in range(3):
            vector[limits[i].node].v[k] = x[second + 3 * i + k]
    solve_transposed(stage.tree, stage.own)


# ---- a stage


@kernel
def pull_encounter_equations(stage, scene, bars, touch, nodes):
    """``adjoint.pull_equations`` with the rows of the nodes, and what they push."""
    carry_weights(stage, bars, nodes)
    if stage.ties.rows.shape[0] > 0:
        pull_ties(stage, bars)
    for i in range(stage.model.loads.shape[0]):
        pull_load(stage.model, stage.work, bars, i, 1.0)
    scale_weights(bars, 1.0 / stage.c)  # forces are impulses over c
    pull_nodes(scene, stage.model, stage.work.bodies, bars, touch, stage.c, stage.c)
    scale_weights(bars, stage.c)
    for i in range(stage.model.bodies.shape[0] - 1):
        bar = bars.bodies[i]
        for c in range(6):
            bar.du[c] += touch.dvelocity[AFTER, i, c]
            touch.dvelocity[AFTER, i, c] = 0.0
        for c in range(3):
            bar.x[c] += bar.xn[c]
            bar.phi[c] += bar.phin[c]
            bar.xn[c] = bar.phin[c] = 0.0
    pull_bodies(stage, bars, nodes)
    pull_laws(stage, bars, nodes)
    pull_frames(stage, bars, nodes)


@inline
def scale_weights(bars, scale):
    """Weights of the bodies' equations in another unit."""
    for i in range(bars.bodies.shape[0]):
        for c in range(6):
            bars.bodies[i].b[c] *= scale


@kernel
def pull_encounter(stage, scene, bars, touch, nodes):
    """``adjoint.pull_stage`` of a stage with contacts, after ``open_encounter``. Returns what is left of the unknowns' bars, relative."""
    moved, forced = load_unknowns(stage, bars, nodes)
    pressed = load_nodes(scene, stage.work, touch)
    first, first_force, first_press = moved, forced, pressed
    for attempt in range(PASSES):
        if not (moved > SMALL * first or forced > SMALL_FORCE * first_force or pressed > SMALL * first_press):
            break
        before, before_force, before_press = moved, forced, pressed
        clear_frames(bars, nodes)
        clear_node_weights(touch)
        solve_encounter_transposed(stage, scene)
        store_row_weights(stage, bars)
        add_node_weights(scene, stage.work, touch)
        for i in range(nodes.shape[0]):
            for j in range(3):
                nodes[i].z[j] = -stage.own.nodes[i].dq[j] if j < stage.tree[i].count else 0.0
        pull_encounter_equations(stage, scene, bars, touch, nodes)
        moved, forced = load_unknowns(stage, bars, nodes)
        pressed = load_nodes(scene, stage.work, touch)
        if attempt == 0:
            first_force, first_press = max(first_force, forced), max(first_press, pressed)
        elif not (moved < 0.5 * before or forced < 0.5 * before_force or pressed < 0.5 * before_press):
            break
    return moved / first if first > 0.0 else 0.0


# ---- where rows are taken


@kernel
def pull_pose(stage, bars, seen):
    """From bars of bodies' poses and velocities to those of the coordinates and rates that the scratch of ``stage`` stands at."""
    for i in range(seen.shape[0]):
        for j in range(3):
            seen[i].x[j] = seen[i].v[j] = seen[i].a[j] = seen[i].turn[j] = 0.0
    take_bodies(stage, bars, seen)
    pull_frames(stage, bars, seen)


@kernel
def pull_where_found(there, knot, tape, entry, bars, touch, nodes, seen):
    """From bars of the knot's pose, where features of pairs were found, to those of its coordinates, if there are any."""
    model, tree = there.model, there.tree
    some = False
    clear_frames(bars, seen)
    for i in range(model.bodies.shape[0] - 1):
        bar, found = bars.bodies[i], touch.found_bar[i]
        for k in range(3):
            some = some or found.x[k] != 0.0 or found.phi[k] != 0.0
            bar.x[k], bar.phi[k] = found.x[k], found.phi[k]
            found.x[k] = found.phi[k] = 0.0
        for k in range(6):
            bar.du[k] = 0.0
    if not some:
        return
    place_past(model, tree, knot, tape.nodes[entry], False)
    pull_pose(there, bars, seen)
    for i in range(tree.shape[0]):
        got = seen[i]
        add_to3(nodes[i].total, 1.0, load3(got.turn) if is_vector(tree[i], tape.nodes[entry, i].chart) else load3(got.x))


@kernel
def pull_where_rows_are(stage, knot, tape, entry, bars, touch, nodes, seen):
    """From bars of the poses where rows are taken and features were found, and of the velocities that restitution looks at, to those of what a stage began with.

    The scratch ``knot`` stands where rows are taken.
    """
    model, tree, c, rows_at = stage.model, stage.tree, stage.c, tape.rows_at[entry]
    guess = rows_at in (BY_ONE, BY_TWO)
    there = Stage(model, tree, stage.work, knot, stage.ties, c)
    clear_frames(bars, seen)
    for i in range(model.bodies.shape[0] - 1):
        bar, at, found = bars.bodies[i], touch.rows_bar[i], touch.found_bar[i]
        for k in range(3):
            bar.x[k], bar.phi[k] = at.x[k], at.phi[k]
            at.x[k] = at.phi[k] = 0.0
            if not guess:
                bar.x[k] += found.x[k]
                bar.phi[k] += found.phi[k]
                found.x[k] = found.phi[k] = 0.0
        for k in range(6):
            before, fall = touch.dvelocity[BEFORE, i, k], touch.dvelocity[FALL, i, k]
            bar.du[k] = 0.5 * (before + fall) if rows_at == AFTER_SMOOTH else 0.0 if guess else before
    pull_pose(there, bars, seen)
    for i in range(tree.shape[0]):
        bar, got = nodes[i], seen[i]
        x = load3(got.x)
        if not guess:
            add_to3(bar.total, 1.0, load3(got.turn) if is_vector(tree[i], tape.nodes[entry, i].chart) else x)
            add_to3(bar.total[3:], 1.0, load3(got.v))
            continue
        add_to3(bar.turn, 1.0, load3(got.turn))
        if tree[i].driven:
            add_to3(bar.x, 1.0, x)
            continue
        add_to3(bar.aq, 1.0, x)
        if rows_at == BY_TWO:
            add_to3(bar.av, 3.0 * c, x)
        add_to3(bar.total[3:], -2.0 * c if rows_at == BY_TWO else c, x)
    if guess:
        pull_where_found(there, knot, tape, entry, bars, touch, nodes, seen)
    if rows_at != AFTER_SMOOTH:
        return
    place_past(model, tree, knot, tape.nodes[entry], True)
    clear_frames(bars, seen)
    for i in range(model.bodies.shape[0] - 1):
        for k in range(6):
            bars.bodies[i].du[k] = 0.5 * (touch.dvelocity[BEFORE, i, k] - touch.dvelocity[FALL, i, k])
    pull_pose(there, bars, seen)
    for i in range(tree.shape[0]):
        got = seen[i]
        add_to3(nodes[i].older, 1.0, load3(got.turn) if is_vector(tree[i], tape.nodes[entry, i].chart) else load3(got.x))
        add_to3(nodes[i].older[3:], 1.0, load3(got.v))


@kernel
def pull_contact_steps(
    stage, knot, scene, tableau, tape, kept, begin, first, last, bars, touch, nodes, seen, exerting, exerted, along, resting, at_knots, knots,
    pushes, joint_bars, tensions,
):
    """``tape.pull_steps`` from the end of stage ``last - 1`` back to the beginning of stage ``first``.

    ``begin``: where ``kept`` begins in the log; ``knot``, ``seen``: scratch and bars of the tree at other poses. ``exerting`` (stages,): at
    which bars ``exerted`` (knots, n + 1, 6) on bodies and ``along`` (knots, joints, 6) directions a stage's nodes exert something, or -1.
    """
    model, tree, work, own, ties = stage.model, stage.tree, stage.work, stage.own, stage.ties
    worst = 0.0
    for entry in range(last - 1, first - 1, -1):
        here = Stage(model, tree, work, own, ties, tape.clock[entry, 0])
        begin_bars(here, tableau, tape, entry, bars, nodes)
        clear_touch(touch)
        recall_encounter(here, knot, scene, tape, kept, begin, entry, touch)
        if not open_encounter(here, scene, bars, touch):
            return -1.0
        if exerting[entry] >= 0:
            put_momenta(model, work, touch)
            pull_forces_at_knot(
                model, work, scene, touch, 1.0 / here.c, exerted[exerting[entry]], along[exerting[entry]], resting_at(tape.rows_at[entry], resting),
            )
        worst = max(worst, pull_encounter(here, scene, bars, touch, nodes))
        fold_pairs(scene, touch)
        pull_where_rows_are(here, knot, tape, entry, bars, touch, nodes, seen)
        end_bars(here, tableau, tape, entry, bars, nodes, at_knots, knots, pushes, joint_bars, tensions)
    return worst
