"""Nodes that follow coordinate maps: q = phi(y), q' = Phi y', q'' = Phi y'' + Phi' y' (RedMax eq. 2.88), and their part of Newton.

The equations of such nodes are summed to those of y by Phi^T. A y is a row of the ties whose unknown moves nodes instead of
pushing them: column k of the Newton matrix is what the tree answers to the motion that dy_k gives the nodes, with

    dq = Phi_k,   dq' = Phi_k / c + Phi_k' ,   dq'' = Phi_k / c^2 + 2 Phi_k' / c + (d Phi_k) y'',   Phi_k' = (d Phi_k) y',

and the curvature (d Phi)^T g. The third derivative of phi is left to the iteration.
"""
from __future__ import annotations

from dalembert.formulations.reduced.joint_forces import direction_force
from dalembert.formulations.reduced.tree_solve import block_times
from dalembert.kernels import inline, kernel
from dalembert.kernels.calls import call
from dalembert.model.tree import LINE
from dalembert.spatial.tuples import load3, load9
from dalembert.spatial.twists import add6, bracket, dot6, load6, scale6, store6, sub6, to_child

ZERO6 = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


@inline
def slope_at(maps, record, i, k):
    """d(q_i)/d(y_k)."""
    return maps.numbers[record.first_number + record.entries + i * record.count + k]


@inline
def curvature_at(maps, record, i, k, l):
    """d2(q_i)/d(y_k)d(y_l)."""
    n, m = record.entries, record.count
    return maps.numbers[record.first_number + n * (1 + m) + (i * m + k) * m + l]


@kernel
def follow_maps(nodes, maps):
    """Coordinates, rates and accelerations of the nodes that follow maps, from y, y' and y''."""
    for index in range(maps.maps.shape[0]):
        record = maps.maps[index]
        n, m, first = record.entries, record.count, record.first_number
        if record.function != 0:
            for k in range(m):
                maps.given[k] = maps.own[record.first + k].y
            call(record.function, maps.given[:m], maps.numbers[first : first + n * (1 + m + m * m)])
        else:
            for i in range(n):
                maps.numbers[first + i] = maps.offset[record.first_entry + i]
                for k in range(m):
                    maps.numbers[first + i] += slope_at(maps, record, i, k) * maps.own[record.first + k].y
        for i in range(n):
            at = nodes[maps.nodes[record.first_entry + i]]
            at.x[0] = maps.numbers[first + i]
            at.v[0] = 0.0
            at.a[0] = 0.0
            for k in range(m):
                own = maps.own[record.first + k]
                at.v[0] += slope_at(maps, record, i, k) * own.v
                at.a[0] += slope_at(maps, record, i, k) * own.a
                for l in range(m):
                    at.a[0] += curvature_at(maps, record, i, k, l) * own.v * maps.own[record.first + l].v


@kernel
def stage_maps(stage):
    """y and y'' of the iterate by the stage rule from its rates, and the nodes that follow."""
    own, c = stage.own.maps.own, stage.c
    for k in range(own.shape[0]):
        own[k].y = own[k].ay + c * own[k].v
        own[k].a = (own[k].v - own[k].av) / c
    follow_maps(stage.own.nodes, stage.own.maps)


@kernel
def map_residuals(stage):
    """Residuals of the rows of y: those of their nodes, summed by the slopes."""
    maps, nodes, rows = stage.own.maps, stage.own.nodes, stage.ties.rows
    for index in range(maps.maps.shape[0]):
        record = maps.maps[index]
        for k in range(record.count):
            total = 0.0
            for i in range(record.entries):
                total += slope_at(maps, record, i, k) * nodes[maps.nodes[record.first_entry + i]].g[0]
            rows[row_of(stage, record.first + k)].r = total


@inline
def row_of(stage, number):
    """The row of a number y: they are the last ones."""
    return stage.ties.rows.shape[0] - stage.own.maps.own.shape[0] + number


@inline
def clear_motion(stage):
    """No motion of the nodes that follow maps."""
    maps, nodes = stage.own.maps, stage.own.nodes
    for i in maps.nodes:
        at = nodes[i]
        at.dq[0] = 0.0
        at.u[1] = 0.0
        at.u[2] = 0.0
        for k in range(18):
            at.t[0, k] = 0.0


@kernel
def add_motion(stage, number, size):
    """Let a number y change by ``size`` more: q, q', q'' of its nodes into ``dq``, ``u[1]`` and ``u[2]``, their columns into ``t``."""
    maps, nodes, tree, c = stage.own.maps, stage.own.nodes, stage.tree, stage.c
    record = map_of(maps, number)
    k = number - record.first
    for i in range(record.entries):
        node, at = tree[maps.nodes[record.first_entry + i]], nodes[maps.nodes[record.first_entry + i]]
        slope, rate, second = slope_at(maps, record, i, k), 0.0, 0.0
        for l in range(record.count):
            rate += curvature_at(maps, record, i, k, l) * maps.own[record.first + l].v
            second += curvature_at(maps, record, i, k, l) * maps.own[record.first + l].a
        at.dq[0] += size * slope
        at.u[1] += size * (slope / c + rate)
        at.u[2] += size * (slope / (c * c) + 2.0 * rate / c + second)
        V, Sv, S = load6(at.V), load6(at.Sv), load6(at.S[0])
        carried = ZERO6
        if node.parent >= 0:
            carried = to_child(load9(at.R), load3(at.p), load6(nodes[node.parent].A))
        X, own = scale6(at.dq[0], S), scale6(at.u[1], S)
        twist = add6(bracket(sub6(V, Sv), X), own)
        change = add6(add6(bracket(carried, X), scale6(at.u[2], S)), sub6(bracket(V, own), bracket(Sv, twist)))
        store6(at.t[0], X)
        store6(at.t[0][6:], twist)
        store6(at.t[0][12:], change)


@inline
def map_of(maps, number):
    """The map of a number y."""
    found = 0
    while number >= maps.maps[found].first + maps.maps[found].count:
        found += 1
    return maps.maps[found]


@kernel
def map_response(stage, number):
    """What the residual of a number y changes by with the variations of the nodes, but for the change of its slopes."""
    maps, nodes, tree = stage.own.maps, stage.own.nodes, stage.tree
    record, total = map_of(maps, number), 0.0
    for i in range(record.entries):
        node, at = tree[maps.nodes[record.first_entry + i]], nodes[maps.nodes[record.first_entry + i]]
        s = at.s
        dF = add6(add6(block_times(at.L[0], load6(s)), block_times(at.L[1], load6(s[6:]))), block_times(at.L[2], load6(s[12:])))
        change = dot6(load6(at.S[0]), add6(dF, load6(at.e)))
        joint = stage.model.joints[node.joint]
        _, K, D = direction_force(joint, stage.work.joints[node.joint], node.direction, at.x[0], at.v[0])
        change += joint.armature[node.direction] * at.u[2] - K * at.dq[0] - D * at.u[1]
        total += slope_at(maps, record, i, number - record.first) * change
    return total


@kernel
def add_curvature(stage):
    """Add (d Phi)^T g to the Schur complement; g of the nodes in ``kept``. Notes the scale of the rows."""
    maps, nodes, S, rows = stage.own.maps, stage.own.nodes, stage.ties.S, stage.ties.rows
    for index in range(maps.maps.shape[0]):
        record = maps.maps[index]
        for k in range(record.count):
            row = row_of(stage, record.first + k)
            reach = 0.0
            for i in range(record.entries):
                place = maps.nodes[record.first_entry + i]
                for l in range(record.count):
                    S[row, row_of(stage, record.first + l)] += curvature_at(maps, record, i, k, l) * nodes[place].kept[0]
                node = stage.tree[place]
                reach = max(reach, abs(slope_at(maps, record, i, k)) * (1.0 if node.kind == LINE else node.length))
            rows[row].scale = reach / (abs(S[row, row]) * stage.c) if S[row, row] != 0.0 else 0.0


@kernel
def map_floor(stage):
    """The residual of the rows of y that rounding alone can cause, in m/s."""
    maps, nodes, rows, size = stage.own.maps, stage.own.nodes, stage.ties.rows, 0.0
    for index in range(maps.maps.shape[0]):
        record = maps.maps[index]
        for k in range(record.count):
            total = 0.0
            for i in range(record.entries):
                at = nodes[maps.nodes[record.first_entry + i]]
                part = abs(at.tau[0])
                for j in range(6):
                    part += abs(at.S[0, j] * at.F[j])
                total += part * abs(slope_at(maps, record, i, k))
            size = max(size, total * rows[row_of(stage, record.first + k)].scale)
    return 1e-14 * stage.tree.shape[0] * size


# ---- steps


@kernel
def begin_maps(maps, past, first, second):
    """Aggregates of the last two knots."""
    for k in range(maps.own.shape[0]):
        own = maps.own[k]
        own.ay = first * past[k].y + second * past[k].y1
        own.av = first * past[k].v + second * past[k].v1


@kernel
def begin_stage_maps(maps, past, a, index, dt):
    """Aggregates of the knot and of the earlier stages' derivatives."""
    for k in range(maps.own.shape[0]):
        own = maps.own[k]
        own.ay, own.av = past[k].y, past[k].v
        for j in range(index):
            own.ay += dt * a[index, j] * own.kq[j]
            own.av += dt * a[index, j] * own.kv[j]


@kernel
def guess_maps(maps, past, extrapolate):
    for k in range(maps.own.shape[0]):
        own = maps.own[k]
        own.v = 3.0 * own.av - 2.0 * past[k].v if extrapolate else past[k].v


@kernel
def keep_stage_maps(maps, index):
    for k in range(maps.own.shape[0]):
        own = maps.own[k]
        own.kq[index], own.kv[index] = own.v, own.a


@kernel
def combine_maps(nodes, maps, past, b, dt):
    """y and y' at the end of a step that is no stage, and the nodes that follow."""
    for k in range(maps.own.shape[0]):
        own = maps.own[k]
        own.y, own.v = past[k].y, past[k].v
        for j in range(b.shape[0]):
            own.y += dt * b[j] * own.kq[j]
            own.v += dt * b[j] * own.kv[j]
    follow_maps(nodes, maps)


@kernel
def follow_combined(nodes, maps, past, b, dt):
    """Nodes where ``combine_maps`` would put them; y and y' of the stage stay."""
    for k in range(maps.own.shape[0]):
        maps.own[k].kept_y, maps.own[k].kept_v = maps.own[k].y, maps.own[k].v
    combine_maps(nodes, maps, past, b, dt)
    for k in range(maps.own.shape[0]):
        maps.own[k].y, maps.own[k].v = maps.own[k].kept_y, maps.own[k].kept_v


@kernel
def accept_maps(maps, past, after):
    """The numbers of the scratch are the next knot."""
    for k in range(maps.own.shape[0]):
        own = maps.own[k]
        y, v = past[k].y, past[k].v
        after[k].y1, after[k].v1 = y, v
        after[k].y, after[k].v = own.y, own.v
        own.low, own.high = min(own.low, own.y), max(own.high, own.y)
