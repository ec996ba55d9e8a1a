"""Transposed derivatives of a tree: from bars of what its frames do to those of coordinates, rates, accelerations and geometry.

With weights z of the equations g = S . F - tau of a stage, sum z g is, over the bodies, b . (M a - ad(V)^T M V - W) less z tau, where
b = A b_parent + S z is the twist that the weights would give each frame. So poses, twists V, accelerations a and these twists b are all that
the equations are made of, and one pass from the leaves to the roots takes the bars of the four back to x, x' and x''. A frame
that is moved by a twist D before a node's own motion changes the four below it by

    D,   ad(V - S q') D,   ad(A a_parent) D - ad(S q') ad(V - S q') D,   ad(b - S z) D,

whether the parent's end of a joint is moved on its body, a rotation is centred elsewhere, or its coordinate changes.
"""
from __future__ import annotations

from math import pi

import numpy as np

from dalembert.formulations.implicit.tableaus import MOST_STAGES
from dalembert.formulations.maximal.pull_joints import add_to3, pull_ball, pull_servo
from dalembert.formulations.maximal.pull_knot import add_outer
from dalembert.formulations.reduced.joint_forces import ZERO3, ball_torque, direction_force, spin_in_parent, varied_ball
from dalembert.kernels import inline, kernel
from dalembert.model.motions import along, along_derivative, along_rate, rate_derivative, unit3
from dalembert.model.pose import put6
from dalembert.model.records import F, fields
from dalembert.model.rotations import in_joint, jacobian, rotation
from dalembert.model.tree import AXIS, FOLLOWER, POINT, SPLINE
from dalembert.spatial import so3
from dalembert.spatial.tuples import (
    add3,
    cross3,
    dot3,
    load3,
    load9,
    mat_t_vec,
    mat_vec,
    neg3,
    scale3,
    sub3,
)
from dalembert.spatial.twists import add6, bracket_t, dot6, load6, store6, sub6, to_child, to_parent

#: weights z of a node's equations, the twist b that they give it, S z; bars of its frame's pose (a twist of it), of its
#: twist, acceleration and b, of x, x', x'', of where a rotation is centred, of the aggregates; of the coordinates and rates at the knot after the step,
#: at the knot before it, at both of these and of the stages' derivatives
NODE_BAR = np.dtype(fields(
    F, z=3, b=6, Sz=6, pose=6, twist=6, acceleration=6, virtual=6, x=3, v=3, a=3, turn=3, aq=3, av=3, after=6, total=6, older=6, k=(MOST_STAGES, 6),
))


@inline
def add_to6(target, X):
    """target += X."""
    store6(target, add6(load6(target), X))


@kernel
def clear_frames(bars, nodes):
    """No bars of what frames and bodies do, and no weights."""
    for i in range(nodes.shape[0]):
        bar = nodes[i]
        for c in range(6):
            bar.b[c] = bar.Sz[c] = bar.pose[c] = bar.twist[c] = bar.acceleration[c] = bar.virtual[c] = 0.0
        for c in range(3):
            bar.z[c] = 0.0
    for i in range(bars.bodies.shape[0]):
        body = bars.bodies[i]
        for c in range(3):
            body.x[c] = body.phi[c] = 0.0
        for c in range(6):
            body.du[c] = body.b[c] = 0.0


@kernel
def carry_weights(stage, bars, nodes):
    """b of all frames from the weights z, and of the bodies: linear in the world, angular in their own frames."""
    tree, own = stage.tree, stage.own
    for i in range(tree.shape[0]):
        node, at, bar = tree[i], own.nodes[i], nodes[i]
        Sz = along(node, at, own.splines[node.spline], bar.z)
        store6(bar.Sz, Sz)
        if node.parent >= 0:
            Sz = add6(Sz, to_child(load9(at.R), load3(at.p), load6(nodes[node.parent].b)))
        store6(bar.b, Sz)
        if node.body >= 0:
            put6(bars.bodies[node.body].b, mat_vec(load9(at.W), Sz[1]), Sz[0])


@kernel
def pull_bodies(stage, bars, nodes):
    """b . (M a - ad(V)^T M V - W) of all bodies; their loads' own derivatives are in the bars of the bodies' poses and velocities."""
    model, tree, own = stage.model, stage.tree, stage.own
    g = load3(model.gravity)
    for i in range(tree.shape[0]):
        node, at, bar = tree[i], own.nodes[i], nodes[i]
        if node.body < 0:
            continue
        body = bars.bodies[node.body]
        t, l = load6(bar.b)
        w, v = load6(at.V)
        a, b = load6(at.A)
        J, m = load9(node.inertia), node.mass
        h, across = mat_vec(J, w), cross3(t, w)
        moved = add3(b, cross3(w, v))
        store6(bar.acceleration, (mat_vec(J, t), scale3(m, l)))
        turning = add3(cross3(h, t), mat_vec(J, across))
        store6(bar.twist, (add3(turning, scale3(m, cross3(v, l))), scale3(m, cross3(l, w))))
        torque, force = load6(at.load)
        store6(bar.virtual, (sub3(add3(mat_vec(J, a), cross3(w, h)), torque), sub3(scale3(m, moved), force)))
        # weights of forces in the world turn with the body
        store6(bar.pose, (cross3(force, l), ZERO3))
        body.mass += dot3(l, moved) - dot3(g, load3(body.b))
        add_outer(body.inertia, 1.0, t, a)
        add_outer(body.inertia, 1.0, across, w)
        add_to3(bars.gravity, -model.bodies[node.body].mass, load3(body.b))
        for c in range(6):
            body.wrench[c] -= body.b[c]
            body.push[c] -= body.b[c]
    take_bodies(stage, bars, nodes)


@kernel
def take_bodies(stage, bars, nodes):
    """Add bars of the bodies' poses and velocities (in the world) to those of their frames."""
    tree, own = stage.tree, stage.own
    for i in range(tree.shape[0]):
        node, at, bar = tree[i], own.nodes[i], nodes[i]
        if node.body < 0:
            continue
        body, W = bars.bodies[node.body], load9(at.W)
        along_velocity = mat_t_vec(W, load3(body.du))
        turned = add3(load3(body.phi), cross3(load3(at.V[3:]), along_velocity))
        add_to6(bar.pose, (turned, mat_t_vec(W, load3(body.x))))
        add_to6(bar.twist, (load3(body.du[3:]), along_velocity))


@kernel
def pull_laws(stage, bars, nodes):
    """-z tau: springs, dampers, servos, rotors and inputs along the coordinates, by these and by their own numbers."""
    model, tree, own, work = stage.model, stage.tree, stage.own.nodes, stage.work
    for i in range(tree.shape[0]):
        node, at, bar = tree[i], own[i], nodes[i]
        if node.joint < 0 or node.count == 0 or (node.driven != 0 and node.driven != FOLLOWER):
            continue
        joint, tie, mine = model.joints[node.joint], work.joints[node.joint], bars.joints[node.joint]
        if node.kind == POINT:
            pull_ball_laws(stage, node, at, bar, joint, mine)
            continue
        for j in range(node.count):
            k, weight = node.direction + j, -bar.z[j]
            _, K, D = direction_force(joint, tie, k, at.x[j], at.v[j])
            bar.x[j] += weight * K
            bar.v[j] += weight * D
            bar.a[j] -= weight * joint.armature[k]
            mine.stiffness[k] -= weight * (at.x[j] - joint.rest[k])
            mine.rest[k] += weight * joint.stiffness[k]
            mine.damping[k] -= weight * at.v[j]
            mine.armature[k] -= weight * at.a[j]
            mine.input[k] += weight
            if joint.follows[k]:
                pull_servo(mine, joint, k, weight, tie.target[k], at.x[j], at.v[j])


@kernel
def pull_ball_laws(stage, node, at, bar, joint, mine):
    """The same of a free rotation: tau = J^T T, with T the torque of its spring, damper and input on the node."""
    k, chart = node.direction, int(at.chart)
    E = in_joint(node, rotation(node, chart, at.turn, at.x))
    J, torque = jacobian(node, chart, at.x), ball_torque(stage, node, at)
    z = load3(bar.z)
    for j in range(3):
        bar.x[j] -= dot3(z, varied_ball(node, at, joint, E, J, torque, ZERO3, unit3(j), ZERO3))
        bar.v[j] -= dot3(z, varied_ball(node, at, joint, E, J, torque, ZERO3, ZERO3, unit3(j)))
        if chart == 0:
            moved = mat_t_vec(so3.exp_matrix(load3(at.x)), unit3(j))
            bar.turn[j] -= dot3(z, varied_ball(node, at, joint, E, J, torque, moved, ZERO3, ZERO3))
    local = mat_t_vec(load9(node.frame), neg3(mat_vec(J, z)))
    weight = neg3(local) if node.backwards else mat_vec(E, local)
    spin = spin_in_parent(node, at, E)
    for c in range(3):
        mine.damping[k + c] -= weight[c] * spin[c]
        mine.input[k + c] += weight[c]
    pull_ball(mine, joint, k, E, weight)


@inline
def move_end(bars, joint, index, of_child, sign, wrench):
    """Bars of a joint's point and axes on a body from that of a twist (body axes, about its centre of mass) that moves them."""
    bar, (turn, force) = bars.joints[index], wrench
    if of_child:
        add_to3(bar.point_child, sign, force)
        add_to3(bar.turn_child, sign, add3(turn, cross3(force, load3(joint.point_child))))
    else:
        add_to3(bar.point_parent, sign, force)
        add_to3(bar.turn_parent, sign, add3(turn, cross3(force, load3(joint.point_parent))))


@kernel
def pull_frames(stage, bars, nodes):
    """From bars of the frames' poses, twists, accelerations and b to those of x, x', x'' and of the joints' geometry."""
    model, tree, own = stage.model, stage.tree, stage.own
    for i in range(tree.shape[0] - 1, -1, -1):
        node, at, bar = tree[i], own.nodes[i], nodes[i]
        spline = own.splines[node.spline]
        R, p = load9(at.R), load3(at.p)
        V, Sv = load6(at.V), load6(at.Sv)
        pose, twist, acceleration, virtual = load6(bar.pose), load6(bar.twist), load6(bar.acceleration), load6(bar.virtual)
        if node.body >= 0 and node.joint >= 0:
            moved = add6(add6(pose, bracket_t(V, twist)), add6(bracket_t(load6(at.A), acceleration), bracket_t(load6(bar.b), virtual)))
            move_end(bars, model.joints[node.joint], node.joint, node.backwards == 0, -1.0, moved)
        twist = sub6(twist, bracket_t(Sv, acceleration))
        before = add6(pose, add6(bracket_t(sub6(V, Sv), twist), bracket_t(sub6(load6(bar.b), load6(bar.Sz)), virtual)))
        if node.parent >= 0:
            before = add6(before, bracket_t(to_child(R, p, load6(own.nodes[node.parent].A)), acceleration))
        along_rate_bar = add6(twist, bracket_t(V, acceleration))
        for j in range(node.count):
            S = load6(at.S[j])
            bar.x[j] += dot6(S, before)
            bar.v[j] += dot6(S, along_rate_bar)
            bar.a[j] += dot6(S, acceleration)
            if node.kind == POINT or node.kind == SPLINE:
                first = along_derivative(node, at, spline, j, at.v)
                change = add6(along_derivative(node, at, spline, j, at.a), rate_derivative(node, at, spline, j, at.v))
                bar.x[j] += dot6(first, along_rate_bar) + dot6(change, acceleration) + dot6(along_derivative(node, at, spline, j, bar.z), virtual)
                bar.v[j] += dot6(add6(first, along_rate(node, at, spline, unit3(j))), acceleration)
        if node.kind == POINT and at.chart == 0.0:
            turned = add3(before[0], cross3(before[1], load3(node.centre)))
            add_to3(bar.turn, 1.0, mat_vec(so3.exp_matrix(load3(at.x)), turned))
        elif node.kind == AXIS and node.lead != 0.0:
            w = load3(node.screw)
            slid = at.x[0] * dot3(w, before[1]) + at.v[0] * dot3(w, along_rate_bar[1]) + at.a[0] * dot3(w, acceleration[1])
            bars.joints[node.joint].pitch += (slid + bar.z[0] * dot3(w, virtual[1])) / (2.0 * pi)
        if node.joint >= 0 and (node.parent < 0 or tree[node.parent].body >= 0):
            move_end(bars, model.joints[node.joint], node.joint, node.backwards != 0, 1.0, to_parent(R, p, before))
        if node.parent >= 0:
            above = nodes[node.parent]
            add_to6(above.pose, to_parent(R, p, pose))
            add_to6(above.twist, to_parent(R, p, twist))
            add_to6(above.acceleration, to_parent(R, p, acceleration))
            add_to6(above.virtual, to_parent(R, p, virtual))
