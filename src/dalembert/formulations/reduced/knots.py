"""What can be read off a recorded run by the tree itself: velocities, what every joint transmits, energies; exact and linear in the nodes.

Joints without rows are known to the tree alone. Recordings hold coordinates and rates of all joints; those of bodies without a
joint follow from their poses and momenta.
"""
from __future__ import annotations

from dalembert.forces.ball import rotation_spring
from dalembert.forces.bodies import energy_of_loads
from dalembert.forces.couplings import energy_along_paths
from dalembert.forces.laws import servo, spring_damper
from dalembert.forces.loads import apply_inputs, clear_inputs
from dalembert.formulations.maximal.series import DAMPER, DRIVE, ROTOR, SPRING
from dalembert.formulations.reduced.accelerations import accelerate
from dalembert.formulations.reduced.equations import place_bodies, place_node
from dalembert.formulations.reduced.joint_forces import laws_of_ball, spin_in_parent
from dalembert.kernels import inline, kernel
from dalembert.model.pose import put6
from dalembert.model.rotations import in_joint, in_node, rotation
from dalembert.model.tree import POINT
from dalembert.spatial import quaternion, so3
from dalembert.spatial.tuples import (
    cross3,
    dot3,
    load3,
    load4,
    load9,
    mat_t_vec,
    mat_vec,
    neg3,
    store3,
    store4,
    sub3,
)
from dalembert.spatial.twists import dot6, load6


@inline
def write_joints(tree, own, state, coordinate, rate):
    """Coordinates and rates (joints, 6) of the joints in the tree at a state whose nodes are placed."""
    for i in range(tree.shape[0]):
        node, at = tree[i], own.nodes[i]
        if node.joint < 0:
            continue
        k = node.direction
        for j in range(node.count):
            coordinate[node.joint, k + j] = state.joints[node.joint].coordinate[k + j]
            rate[node.joint, k + j] = at.v[j]
        if node.kind == POINT:
            store3(rate[node.joint, k:], spin_in_parent(node, at, in_joint(node, rotation(node, int(at.chart), at.turn, at.x))))


@inline
def turn_rate(node, E, spin):
    """An angular velocity of a joint's child in the parent's axes, or its rate of change, as that of the node in its own frame."""
    own = neg3(spin) if node.backwards else mat_t_vec(E, spin)
    return mat_vec(load9(node.frame), own)


@kernel
def recall_nodes(model, tree, own, recording, knot, rates):
    """Nodes at a recorded knot, free rotations by themselves; ``rates`` (joints, 6) along the directions of joints."""
    body = 0
    for i in range(tree.shape[0]):
        node, at = tree[i], own.nodes[i]
        at.chart = 0.0
        if node.joint >= 0:
            value, speed = recording.coordinate[knot, node.joint], rates[node.joint]
            k = node.direction
            if node.kind == POINT:
                E = so3.exp_matrix(load3(value[k:]))
                store4(at.turn, quaternion.from_matrix(in_node(node, E)))
                store3(at.x, (0.0, 0.0, 0.0))
                store3(at.v, turn_rate(node, E, load3(speed[k:])))
            else:
                for j in range(node.count):
                    at.x[j], at.v[j] = value[k + j], speed[k + j]
        else:
            last = i
            while tree[last].body < 0:
                last += 1
            body = tree[last].body
            momentum, fixed = recording.momentum[knot, body], model.bodies[body]
            if node.kind == POINT:
                store4(at.turn, load4(recording.orientation[knot, body]))
                store3(at.x, (0.0, 0.0, 0.0))
                store3(at.v, mat_vec(load9(fixed.inertia_inverse), load3(momentum[3:])))
            else:
                line = load3(node.screw[3:])
                at.x[0] = dot3(line, load3(recording.position[knot, body]))
                at.v[0] = dot3(line, load3(momentum)) / fixed.mass
        place_node(model, tree, own, i)


@kernel
def knot_velocities(model, tree, own, recording, knot, velocity):
    """Velocities (n + 1, 6) of the bodies, linear in the world, angular in their frames."""
    recall_nodes(model, tree, own, recording, knot, recording.rate[knot])
    for i in range(tree.shape[0]):
        if tree[i].body >= 0:
            w, v = load6(own.nodes[i].V)
            put6(velocity[tree[i].body], mat_vec(load9(own.nodes[i].W), v), w)


@kernel
def velocity_series(model, tree, own, recording, velocity):
    """``knot_velocities`` of all knots, (N, n + 1, 6)."""
    for knot in range(velocity.shape[0]):
        knot_velocities(model, tree, own, recording, knot, velocity[knot])


@kernel
def potential_series(model, tree, work, own, recording, potential):
    """Energy (N,) of gravity, of springs along coordinates, of paths and of potentials."""
    g = load3(model.gravity)
    for knot in range(potential.shape[0]):
        recall_nodes(model, tree, own, recording, knot, recording.rate[knot])
        place_bodies(tree, own.nodes, work)
        total = energy_along_paths(model, work) + energy_of_loads(model, work, work.velocity)
        for i in range(model.bodies.shape[0] - 1):
            total -= model.bodies[i].mass * dot3(g, load3(work.bodies[i].x))
        for i in range(tree.shape[0]):
            node, at = tree[i], own.nodes[i]
            if node.joint < 0 or not node.acts:
                continue
            joint, k = model.joints[node.joint], node.direction
            if node.kind == POINT:
                E = in_joint(node, rotation(node, 0, at.turn, at.x))
                total += rotation_spring(load9(node.rest), laws_of_ball(joint, k)[0], E)[1]
            else:
                for j in range(node.count):
                    total += spring_damper(joint.stiffness[k + j], 0.0, at.x[j] - joint.rest[k + j], 0.0)[3]
        potential[knot] = total


@kernel
def force_series(stage, recording, inputs, prescribed, rates, motion):
    """What the joints transmit at recorded knots: ``force``, ``torque``, ``actuation`` and ``share`` of ``motion``.

    ``rates`` (N, joints, 6): what the forces are taken for, ``prescribed`` (2, N, joints, 6): accelerations of driven directions in
    its second part. Returns the knot at which a pivot was singular, or -1.
    """
    model, tree, work, own = stage.model, stage.tree, stage.work, stage.own
    given = max(inputs.wrench.shape[0], max(inputs.joint.shape[0], inputs.tension.shape[0]))
    for knot in range(recording.step_before.shape[0]):
        clear_inputs(model, work)
        apply_inputs(model, work, inputs, min(knot, max(given - 1, 0)))
        for i in range(work.joints.shape[0]):
            for k in range(6):
                work.joints[i].target[k] = inputs.target[knot, i, k]
        recall_nodes(model, tree, own, recording, knot, rates[knot])
        for i in range(tree.shape[0]):
            node, at = tree[i], own.nodes[i]
            if node.driven:
                wanted = prescribed[1, knot, node.joint]
                if node.kind == POINT:
                    E = in_joint(node, rotation(node, 0, at.turn, at.x))
                    store3(at.a, turn_rate(node, E, load3(wanted[node.direction :])))
                else:
                    for j in range(node.count):
                        at.a[j] = wanted[node.direction + j]
        if not accelerate(stage):
            return knot
        for i in range(tree.shape[0]):
            node, at = tree[i], own.nodes[i]
            if node.joint < 0:
                continue
            write_shares(model, work, node, at, motion.rate[knot, node.joint], motion.actuation[knot, node.joint], motion.share[knot, node.joint])
            if node.body >= 0:
                transmit(model, work, node, at, motion.force[knot, node.joint], motion.torque[knot, node.joint])
    return -1


@inline
def transmit(model, work, node, at, force, torque):
    """What a joint transmits to its child, at the joint's point, in its frame on the parent, from the wrench on its last node."""
    joint = model.joints[node.joint]
    parent, child = work.bodies[joint.parent], work.bodies[joint.child]
    Rp, Rc, frame = load9(parent.R), load9(child.R), load9(joint.report_frame)
    moment, push = load6(at.F)
    if node.backwards:
        # on the parent, about its centre of mass: the child takes the opposite
        y = mat_t_vec(Rp, sub3(load3(child.x), load3(parent.x)))
        p = mat_t_vec(Rp, mat_vec(Rc, load3(joint.point_child)))
        arm = (y[0] + p[0], y[1] + p[1], y[2] + p[2])
        push, moment = neg3(push), neg3(sub3(moment, cross3(arm, push)))
    else:
        moment = sub3(moment, cross3(load3(joint.point_child), push))
        push, moment = mat_t_vec(Rp, mat_vec(Rc, push)), mat_t_vec(Rp, mat_vec(Rc, moment))
    store3(force, mat_t_vec(frame, push))
    store3(torque, mat_t_vec(frame, moment))


@inline
def write_shares(model, work, node, at, rate, actuation, share):
    """The forces along a node's directions, by what makes them: as ``transmit`` of the maximal formulations reports them."""
    joint, tie, first = model.joints[node.joint], work.joints[node.joint], node.direction
    if node.kind == POINT:
        E = in_joint(node, rotation(node, 0, at.turn, at.x))
        stiffness, _ = laws_of_ball(joint, first)
        push, _ = rotation_spring(load9(node.rest), stiffness, E)
        # the torque about the joint's point on the node, as one on the child in the parent's axes
        moment, force = load6(at.F)
        held = mat_t_vec(load9(node.frame), sub3(moment, cross3(load3(node.centre), force)))
        held = neg3(held) if node.backwards else mat_vec(E, held)
    for j in range(node.count):
        k = first + j
        share[k, DRIVE] = tie.input[k]
        share[k, DAMPER] = -joint.damping[k] * rate[k]
        if node.kind == POINT:
            share[k, SPRING], total = push[j], held[j]
        else:
            share[k, SPRING] = spring_damper(joint.stiffness[k], 0.0, at.x[j] - joint.rest[k], 0.0)[0]
            total = dot6(load6(at.S[j]), load6(at.F))
            if joint.follows[k] and not joint.driven[k]:
                share[k, DRIVE] += servo(joint, k, tie.target[k], at.x[j], rate[k])[0]
            if not node.driven:
                share[k, ROTOR] = -joint.armature[k] * at.a[j]
        if node.driven:
            share[k, DRIVE] = total - share[k, SPRING] - share[k, DAMPER]
        actuation[k] = share[k, DRIVE] + share[k, SPRING] + share[k, DAMPER] + share[k, ROTOR]
