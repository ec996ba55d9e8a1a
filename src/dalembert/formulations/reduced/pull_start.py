"""The start of a run backwards: from bars of coordinates and rates to those of the poses and velocities that it was made from.

Coordinates and rates are those with which the frames of the tree stand and move as the bodies do, by least squares within each joint (``start.py``).
"""
from __future__ import annotations

from dalembert.formulations.reduced.pull_tree import add_to6, clear_frames, pull_frames
from dalembert.formulations.reduced.tie_equations import factor_dense, solve_dense
from dalembert.kernels import inline, kernel
from dalembert.model.pose import put6
from dalembert.model.tree import POINT
from dalembert.spatial.tuples import add3, cross3, load3, load9, mat_vec
from dalembert.spatial.twists import dot6, load6, scale6, store6, sub6, to_child, to_parent


@inline
def first_of(tree, last):
    """The first node of the joint that ends at a body's node."""
    i = last
    while tree[i].parent >= 0 and tree[tree[i].parent].body < 0:
        i = tree[i].parent
    return i


@kernel
def pull_least_squares(stage, nodes, which, columns, S, order, vector, found):
    """Bars (nodes, 6) of the bodies' twists, in their frames, from those of their rates: what the frames of the tree move by is given.

    ``which``: where the rates stand in the nodes' ``after``. ``columns``, ``S`` (6, 6), ``order``, ``vector`` (6,): scratch. ``pose`` of the nodes is too.
    """
    tree, own = stage.tree, stage.own.nodes
    for i in range(tree.shape[0]):
        nodes[i].pose[:] = 0.0
    for last in range(tree.shape[0] - 1, -1, -1):
        if tree[last].body < 0:
            continue
        count, passed = 0, load6(nodes[last].pose)
        for i in range(first_of(tree, last), last + 1):
            for j in range(tree[i].count):
                column = load6(own[i].S[j])
                for k in range(i + 1, last + 1):
                    column = to_child(load9(own[k].R), load3(own[k].p), column)
                store6(columns[count], column)
                vector[count] = nodes[i].after[which + j] + dot6(column, passed)
                count += 1
        for r in range(count):
            for c in range(count):
                S[r, c] = dot6(load6(columns[r]), load6(columns[c]))
        if count > 0:
            factor_dense(S, order, count)
            solve_dense(S, order, count, vector)
        found[last, :] = 0.0
        for r in range(count):
            add_to6(found[last], scale6(vector[r], load6(columns[r])))
        passed = sub6(passed, load6(found[last]))
        i = last
        while i >= 0 and (i == last or tree[i].body < 0):
            passed = to_parent(load9(own[i].R), load3(own[i].p), passed)
            i = tree[i].parent
        if i >= 0:
            add_to6(nodes[i].pose, passed)


@kernel
def pull_start(stage, bars, nodes, columns, S, order, vector, twists, poses, pose, velocity):
    """Bars (n, 6) of poses and velocities at a start from those in ``after`` of the nodes, which are placed there; adds those of geometry."""
    tree, own = stage.tree, stage.own.nodes
    pull_least_squares(stage, nodes, 3, columns, S, order, vector, twists)
    clear_frames(bars, nodes)
    for i in range(tree.shape[0]):
        for j in range(3):
            nodes[i].x[j] = nodes[i].turn[j] = 0.0
        store6(nodes[i].twist, scale6(-1.0, load6(twists[i])))
    pull_frames(stage, bars, nodes)
    for i in range(tree.shape[0]):
        for j in range(3):
            centred = tree[i].kind == POINT and own[i].chart == 0.0
            nodes[i].after[j] += nodes[i].turn[j] if centred else nodes[i].x[j]
    pull_least_squares(stage, nodes, 0, columns, S, order, vector, poses)
    clear_frames(bars, nodes)
    for i in range(tree.shape[0]):
        store6(nodes[i].pose, scale6(-1.0, load6(poses[i])))
    pull_frames(stage, bars, nodes)
    for i in range(tree.shape[0]):
        body = tree[i].body
        if body < 0:
            continue
        W = load9(own[i].W)
        spin, linear = load6(twists[i])
        turn, place = load6(poses[i])
        put6(velocity[body], mat_vec(W, linear), spin)
        put6(pose[body], mat_vec(W, place), add3(turn, cross3(linear, load3(own[i].V[3:]))))
