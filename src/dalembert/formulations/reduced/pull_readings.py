"""Transposed derivatives of what the tree itself reads at knots (``knots.py``): for mechanisms with joints that it alone knows.

Coordinates and rates are those of the nodes. What a joint transmits is the force F on its last node at the accelerations a of the knot, weighted with
a twist i there: i . F is the sum, over the bodies that the node carries, of b . (M a - ad(V)^T M V - W) with the twist b that i gives them. So such
twists are added to those of the weights z of the equations g = S . F - tau, by which a follows, M z = -(bars of a), and one pass takes both back.
"""
from __future__ import annotations

from dalembert.forces.ball import rotation_spring
from dalembert.forces.loads import apply_inputs, clear_inputs
from dalembert.formulations.maximal.pull_forces import pull_load
from dalembert.formulations.maximal.pull_joints import add_to3
from dalembert.formulations.maximal.pull_knot import pull_coordinates, pull_kinetic, pull_potential, pull_rates
from dalembert.formulations.reduced.accelerations import accelerate
from dalembert.formulations.reduced.equations import place_bodies, place_node
from dalembert.formulations.reduced.joint_forces import ZERO3, laws_of_ball
from dalembert.formulations.reduced.knots import recall_nodes, turn_rate
from dalembert.formulations.reduced.pull_tree import (
    add_to6,
    clear_frames,
    move_end,
    pull_bodies,
    pull_frames,
    pull_laws,
    take_bodies,
)
from dalembert.formulations.reduced.tape import clear_stage
from dalembert.formulations.reduced.tree_solve import solve
from dalembert.kernels import inline, kernel
from dalembert.model.motions import ZERO6, along, unit3
from dalembert.model.pose import evaluate_pose, put6
from dalembert.model.rotations import in_joint, jacobian, jacobian_derivative, rotation
from dalembert.model.tree import POINT
from dalembert.spatial import so3
from dalembert.spatial.tuples import (
    add3,
    cross3,
    dot3,
    load3,
    load4,
    load9,
    mat_t_mul,
    mat_t_vec,
    mat_vec,
    neg3,
    scale3,
    store3,
    store4,
    sub3,
)
from dalembert.spatial.twists import add6, bracket_t, dot6, load6, store6, to_child, to_parent

# ---- poses, velocities, coordinates, rates, energies


@kernel
def pull_tree_knots(stage, alone, states, targets, coordinates, cot, bars, nodes, into, rate):
    """``tape.pull_knots`` with coordinates, rates and energies along the tree's joints as the tree knows them.

    ``alone``: the model without joints; ``rate``: (joints, 6) scratch. Cotangents of joints that close loops are those of the pose and velocities.
    """
    model, tree, work, own, energy = stage.model, stage.tree, stage.work, stage.own, cot.energy
    for knot in range(states.shape[0]):
        clear_stage(model, bars, nodes)
        clear_frames(bars, nodes)
        put_state(model, tree, own, states[knot])
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
        pull_closing(stage, cot.rate[knot], cot.coordinate[knot], bars, rate)
        if energy[knot, 0] != 0.0:
            pull_kinetic(alone, work, bars, energy[knot, 0], rate)
        if energy[knot, 1] != 0.0:
            pull_potential(alone, work, bars, energy[knot, 1])
        for i in range(model.bodies.shape[0] - 1):
            bar = bars.bodies[i]
            for c in range(3):
                bar.x[c] += cot.position[knot, i, c]
                bar.phi[c] += cot.orientation[knot, i, c]
        take_bodies(stage, bars, nodes)
        pull_frames(stage, bars, nodes)
        for i in range(tree.shape[0]):
            state, found = states[knot, i], into[knot, i]
            # a knot is where its free rotations are centred
            centred = tree[i].kind == POINT and state.chart == 0.0
            add_to3(found, 1.0, load3(nodes[i].turn) if centred else load3(nodes[i].x))
            add_to3(found[3:], 1.0, load3(nodes[i].v))
            if tree[i].joint >= 0:
                pull_own(model, tree[i], own.nodes[i], coordinates[knot], cot.coordinate[knot], cot.rate[knot], energy[knot], bars.joints[tree[i].joint], found)


@kernel
def put_state(model, tree, own, state):
    """Nodes at a state of theirs."""
    for i in range(tree.shape[0]):
        at = own.nodes[i]
        store3(at.x, load3(state[i].q))
        store3(at.v, load3(state[i].v))
        store4(at.turn, load4(state[i].turn))
        at.chart = state[i].chart
        place_node(model, tree, own, i)


@kernel
def pull_closing(stage, rates, coordinates, bars, weights):
    """Rates and coordinates (joints, 6) of joints that close loops, weighted; ``weights`` (joints, 6): scratch."""
    model, work, loops = stage.model, stage.work, stage.ties.loops
    if loops.shape[0] == 0:
        return
    weights[:] = 0.0
    for i in loops:
        for k in range(6):
            weights[i, k] = rates[i, k]
    pull_rates(model, work, bars, weights)
    for i in loops:
        for k in range(6):
            weights[i, k] = coordinates[i, k]
    pull_coordinates(model, work, bars, weights)


@inline
def turned_into(node, E, bar):
    """The bar of an angular velocity in the node's frame from that of the joint's in its parent's axes (``spin_in_parent``)."""
    return mat_vec(load9(node.frame), neg3(bar) if node.backwards else mat_t_vec(E, bar))


@kernel
def pull_own(model, node, at, here, coordinates, rates, energy, bar, found):
    """Coordinates and rates (joints, 6) along a node, and the energies of its rotors and springs, weighted: added to ``found`` (6,) and to the joint's numbers.

    ``here`` (joints, 6): the coordinates, unwrapped.
    """
    joint, first = model.joints[node.joint], node.direction
    if node.kind == POINT:
        pull_own_ball(node, at, joint, here, coordinates, rates, energy, bar, found)
        return
    for j in range(node.count):
        k = first + j
        stretch = at.x[j] - joint.rest[k]
        found[j] += coordinates[node.joint, k] + energy[1] * joint.stiffness[k] * stretch
        found[3 + j] += rates[node.joint, k] + energy[0] * joint.armature[k] * at.v[j]
        bar.armature[k] += 0.5 * energy[0] * at.v[j] * at.v[j]
        bar.stiffness[k] += 0.5 * energy[1] * stretch * stretch
        bar.rest[k] -= energy[1] * joint.stiffness[k] * stretch


@kernel
def pull_own_ball(node, at, joint, here, coordinates, rates, energy, bar, found):
    """The same of a free rotation: coordinates are the rotation vector of the child in the parent, rates its angular velocity in the parent's axes."""
    k, chart = node.direction, int(at.chart)
    E, J, v = in_joint(node, rotation(node, chart, at.turn, at.x)), jacobian(node, chart, at.x), load3(at.v)
    spin = mat_t_vec(load9(node.frame), mat_vec(J, v))
    spin = neg3(spin) if node.backwards else mat_vec(E, spin)
    rate = load3(rates[node.joint, k:])
    if energy[0] != 0.0:
        rate = (
            rate[0] + energy[0] * joint.armature[k] * spin[0], rate[1] + energy[0] * joint.armature[k + 1] * spin[1],
            rate[2] + energy[0] * joint.armature[k + 2] * spin[2],
        )
        for c in range(3):
            bar.armature[k + c] += 0.5 * energy[0] * spin[c] * spin[c]
    turn = mat_t_vec(so3.left_jacobian_inverse(load3(here[node.joint, k:])), load3(coordinates[node.joint, k:]))
    if energy[1] != 0.0:
        rest = load9(node.rest)
        torque, _ = rotation_spring(rest, laws_of_ball(joint, k)[0], E)
        turn = sub3(turn, scale3(energy[1], torque))
        add_to3(bar.rest_turn, energy[1], mat_t_vec(rest, torque))
        phi = so3.log_matrix(mat_t_mul(rest, E))
        for c in range(3):
            bar.stiffness[k + c] += 0.5 * energy[1] * phi[c] * phi[c]
    if not node.backwards:
        turn = add3(turn, cross3(spin, rate))
    add_turn(node, at, turned_into(node, E, turn), turned_into(node, E, rate), found)


@inline
def add_turn(node, at, turn, spin, found):
    """Bars of a free rotation's turn and angular velocity in its own frame as those of coordinates and rates, added to ``found`` (6,)."""
    chart = int(at.chart)
    if chart == 0:
        # at a knot, where it is centred
        add_to3(found, 1.0, turn)
        add_to3(found[3:], 1.0, spin)
    else:
        J, v = jacobian(node, chart, at.x), load3(at.v)
        add_to3(found, 1.0, mat_t_vec(J, turn))
        add_to3(found[3:], 1.0, mat_t_vec(J, spin))
        for j in range(3):
            found[j] += dot3(spin, mat_vec(jacobian_derivative(node, chart, at.x, unit3(j)), v))


# ---- what joints transmit


@kernel
def pull_tree_forces(stage, recording, inputs, first, prescribed, rates, held, states, cot, bars, nodes, twists, into, force_bars):
    """``knots.force_series`` at knots ``first`` on, weighted with ``cot`` (count, joints, 6): added to ``into`` (count, nodes, 6) and to bars by knot.

    ``prescribed`` (joints, 6) per knot: accelerations of driven directions; ``held``: knots at which drives keep their own rates; ``states``
    (count, nodes): by charts of their own; ``twists`` (nodes, 6): scratch. Returns the knot at which a pivot was singular, or -1.
    """
    model, tree, work, own = stage.model, stage.tree, stage.work, stage.own
    given = max(inputs.wrench.shape[0], max(inputs.joint.shape[0], inputs.tension.shape[0]))
    for at_knot in range(cot.shape[0]):
        knot = first + at_knot
        clear_stage(model, bars, nodes)
        clear_inputs(model, work)
        apply_inputs(model, work, inputs, min(knot, max(given - 1, 0)))
        for i in range(work.joints.shape[0]):
            for k in range(6):
                work.joints[i].target[k] = inputs.target[knot, i, k]
        recall_nodes(model, tree, own, recording, knot, rates[knot])
        for i in range(tree.shape[0]):
            if tree[i].driven:
                aim_node(tree[i], own.nodes[i], prescribed[knot, tree[i].joint])
        if not accelerate(stage):
            return knot
        for i in range(model.bodies.shape[0] - 1):
            for c in range(6):
                bars.bodies[i].u[c] = work.velocity[i, c]
        clear_frames(bars, nodes)
        for i in range(tree.shape[0]):
            twists[i, :] = 0.0
            if tree[i].joint >= 0 and tree[i].body >= 0:
                weigh_transmitted(model, work, tree[i], own.nodes[i], cot[at_knot, tree[i].joint], bars, twists[i])
        solve_tree_weights(stage, nodes, twists)
        carry_twists(stage, bars, nodes, twists)
        for i in range(model.loads.shape[0]):
            pull_load(model, work, bars, i, 1.0)
        pull_bodies(stage, bars, nodes)
        pull_laws(stage, bars, nodes)
        pull_frames(stage, bars, nodes)
        for i in range(tree.shape[0]):
            node = tree[i]
            if node.joint >= 0 and node.body >= 0:
                # such a twist is given in the body's frame, and does not move with the joint on the body
                move_end(bars, model.joints[node.joint], node.joint, node.backwards == 0, 1.0, bracket_t(load6(twists[i]), load6(nodes[i].virtual)))
            take_node(node, own.nodes[i], states[at_knot, i], nodes[i], held[at_knot], into[at_knot, i], force_bars, at_knot)
        for i in range(model.bodies.shape[0] - 1):
            for c in range(6):
                force_bars.push[at_knot, i, c] += bars.bodies[i].push[c]
        for i in range(model.joints.shape[0]):
            for k in range(6):
                force_bars.input[at_knot, i, k] += bars.joints[i].input[k]
                force_bars.target[at_knot, i, k] += bars.joints[i].target[k]
        for i in range(model.couplings.shape[0]):
            force_bars.tension[at_knot, i] += bars.couplings[i].input
    return -1


@inline
def aim_node(node, at, wanted):
    """Second derivatives of a driven node's coordinates from accelerations (6,) along its joint."""
    if node.kind == POINT:
        E = in_joint(node, rotation(node, 0, at.turn, at.x))
        store3(at.a, turn_rate(node, E, load3(wanted[node.direction :])))
    else:
        for j in range(node.count):
            at.a[j] = wanted[node.direction + j]


@inline
def weigh_transmitted(model, work, node, at, cot, bars, twist):
    """``knots.transmit`` weighted with ``cot`` (6,): the twist that weighs the force on the node; adds bars of poses and of the joint's geometry."""
    joint, bar = model.joints[node.joint], bars.joints[node.joint]
    parent, child = work.bodies[joint.parent], work.bodies[joint.child]
    Rp, Rc, frame, point = load9(parent.R), load9(child.R), load9(joint.report_frame), load3(joint.point_child)
    moment, push = load6(at.F)
    f, t = mat_vec(frame, load3(cot)), mat_vec(frame, load3(cot[3:]))
    on_parent, on_child = bars.bodies[joint.parent], bars.bodies[joint.child]
    if node.backwards:
        shift = mat_t_vec(Rp, sub3(load3(child.x), load3(parent.x)))
        arm = add3(shift, mat_t_vec(Rp, mat_vec(Rc, point)))
        moment = sub3(moment, cross3(arm, push))
        store6(twist, (neg3(t), neg3(add3(f, cross3(arm, t)))))
        moved = cross3(push, t)
        turned = add3(cross3(f, push), cross3(t, moment))
        add_to3(bar.turn_parent, -1.0, turned)
        on_child_body = mat_t_vec(Rc, mat_vec(Rp, moved))
        add_to3(bar.point_child, 1.0, on_child_body)
        add_to3(on_child.phi, 1.0, cross3(point, on_child_body))
        add_to3(on_child.x, 1.0, mat_vec(Rp, moved))
        add_to3(on_parent.x, -1.0, mat_vec(Rp, moved))
        add_to3(on_parent.phi, 1.0, cross3(moved, arm))
        return
    moment = sub3(moment, cross3(point, push))
    fb, tb = mat_t_vec(Rc, mat_vec(Rp, f)), mat_t_vec(Rc, mat_vec(Rp, t))
    store6(twist, (tb, add3(fb, cross3(point, tb))))
    turned = add3(cross3(push, fb), cross3(moment, tb))
    add_to3(on_child.phi, 1.0, turned)
    back = neg3(mat_t_vec(Rp, mat_vec(Rc, turned)))
    add_to3(on_parent.phi, 1.0, back)
    add_to3(bar.turn_parent, 1.0, back)
    add_to3(bar.point_child, 1.0, cross3(tb, push))


@kernel
def solve_tree_weights(stage, nodes, twists):
    """Weights z of the equations that accelerations follow from, where forces are weighted by ``twists``: M z = -(bars of a). Needs ``accelerate`` before."""
    tree, own = stage.tree, stage.own.nodes
    for i in range(tree.shape[0]):
        node, at, bar = tree[i], own[i], nodes[i]
        carried = load6(twists[i])
        if node.parent >= 0:
            carried = add6(carried, to_child(load9(at.R), load3(at.p), load6(nodes[node.parent].b)))
        store6(bar.b, carried)
        turn, shift = carried
        store6(bar.acceleration, (mat_vec(load9(node.inertia), turn), scale3(node.mass, shift)))
    for i in range(tree.shape[0] - 1, -1, -1):
        node, at, bar = tree[i], own[i], nodes[i]
        F = load6(bar.acceleration)
        for j in range(node.count):
            at.g[j] = dot6(load6(at.S[j]), F)
        if node.parent >= 0:
            add_to6(nodes[node.parent].acceleration, to_parent(load9(at.R), load3(at.p), F))
    for i in range(tree.shape[0]):
        own[i].e[:] = 0.0
    solve(tree, stage.own)
    for i in range(tree.shape[0]):
        bar = nodes[i]
        store6(bar.acceleration, ZERO6)
        for j in range(0 if tree[i].driven else tree[i].count):
            bar.z[j] = -own[i].dq[j]


@kernel
def carry_twists(stage, bars, nodes, twists):
    """``pull_tree.carry_weights``, with twists (nodes, 6) added to those of the weights."""
    tree, own = stage.tree, stage.own
    for i in range(tree.shape[0]):
        node, at, bar = tree[i], own.nodes[i], nodes[i]
        given = add6(along(node, at, own.splines[node.spline], bar.z), load6(twists[i]))
        store6(bar.Sz, given)
        if node.parent >= 0:
            given = add6(given, to_child(load9(at.R), load3(at.p), load6(nodes[node.parent].b)))
        store6(bar.b, given)
        if node.body >= 0:
            put6(bars.bodies[node.body].b, mat_vec(load9(at.W), given[1]), given[0])


@inline
def take_node(node, at, state, bar, held, found, force_bars, knot):
    """Bars of a node's coordinates, rates and accelerations as those of its state, and of what drives prescribe."""
    k = node.direction
    if node.kind == POINT:
        E = in_joint(node, rotation(node, 0, at.turn, at.x))
        spin, turn = load3(bar.v), load3(bar.turn)
        if node.driven and not held:
            # v = F E^T rate, or -F rate, as the drive prescribes it; so with a
            turn = add3(turn, pull_turn_rate(node, E, spin, load3(at.v), force_bars.rate[knot, node.joint, k:]))
            spin = ZERO3
        if node.driven:
            turn = add3(turn, pull_turn_rate(node, E, load3(bar.a), load3(at.a), force_bars.acceleration[knot, node.joint, k:]))
        at.chart = state.chart
        if state.chart != 0.0:
            store3(at.x, load3(state.q))
            store3(at.v, load3(state.v))
        add_turn(node, at, turn, spin, found)
        return
    add_to3(found, 1.0, load3(bar.x))
    if node.driven and not held:
        for j in range(node.count):
            force_bars.rate[knot, node.joint, k + j] += bar.v[j]
    else:
        add_to3(found[3:], 1.0, load3(bar.v))
    if node.driven:
        for j in range(node.count):
            force_bars.acceleration[knot, node.joint, k + j] += bar.a[j]


@inline
def pull_turn_rate(node, E, bar, value, rate_bar):
    """``knots.turn_rate``, weighted: adds to the bar (3,) of what is in the parent's axes, and returns that of the node's turn."""
    local = mat_t_vec(load9(node.frame), bar)
    if node.backwards:
        add_to3(rate_bar, -1.0, local)
        return ZERO3
    add_to3(rate_bar, 1.0, mat_vec(E, local))
    # E exp(turn)^T: a turn in the node's frame turns what is seen there by its opposite
    return cross3(bar, value)
