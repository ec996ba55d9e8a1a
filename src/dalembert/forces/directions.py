"""Elements along the free directions of a joint: springs and inputs, summed into one force per direction."""
from __future__ import annotations

from dalembert.forces.ball import add_ball_spring, ball_spring
from dalembert.forces.laws import servo, spring_damper
from dalembert.kernels import inline, kernel
from dalembert.model.frames import frame_rotation
from dalembert.model.hessians import add_direction, write_direction
from dalembert.model.pose import joint_at_knot
from dalembert.model.records import BALL
from dalembert.model.rows import direction_gradient
from dalembert.spatial.tuples import load9, mat_t_vec, mat_vec, neg3

ZERO3 = (0.0, 0.0, 0.0)


@inline
def spring(joint, at, i):
    """Force, stiffness K and energy of the spring along a direction; a ball's three belong to ``ball_spring``."""
    if joint.free_kind[i] == BALL:
        return 0.0, 0.0, 0.0
    force, K, _, energy = spring_damper(joint.stiffness[i], 0.0, at.coordinate[i] - joint.rest[i], 0.0)
    return force, K, energy


@inline
def servo_at(joint, at, i, rate):
    """Force of the servo along a direction at the knot for a rate there, and its change D with the rate; zero where there is none."""
    if joint.driven[i] or not joint.follows[i]:
        return 0.0, 0.0
    force, _, D, _ = servo(joint, i, at.target[i], at.coordinate[i], rate)
    return force, D


@inline
def usual_rate(joint, at, i):
    """The rate for which it is judged whether a servo is within its bound at the knot: rest, or where its target is a rate, the rate expected."""
    return at.rate[i] if joint.servo_rate[i] else 0.0


@inline
def resistance(joint, at, i):
    """What resists the rate along a direction at the knot: its damper, and a servo that is within its bound at its usual rate."""
    return joint.damping[i] - servo_at(joint, at, i, usual_rate(joint, at, i))[1]


@inline
def drive_at_rest(joint, at, i):
    """Force of the servo along a direction at the knot if its rate were zero, ``resistance`` times which it loses with the rate."""
    usual = usual_rate(joint, at, i)
    force, D = servo_at(joint, at, i, usual)
    return force - D * usual


@inline
def push(body, scale, force, torque):
    """Add ``scale`` times a force and a torque to a body's load."""
    load = body.load
    load[0] += scale * force[0]
    load[1] += scale * force[1]
    load[2] += scale * force[2]
    load[3] += scale * torque[0]
    load[4] += scale * torque[1]
    load[5] += scale * torque[2]


@kernel
def push_along_joints(model, work):
    """Add springs and inputs along the free directions to the loads of both bodies; driven directions are locked."""
    for index in model.active:
        joint = model.joints[index]
        at = work.joints[index]
        parent, child = work.bodies[joint.parent], work.bodies[joint.child]
        y, C, R_parent = joint_at_knot(work.bodies, joint)
        for i in range(joint.free):
            if joint.driven[i]:
                continue
            if joint.free_kind[i] == BALL and joint.free_axis[i] == 0:
                local, _ = ball_spring(joint, i, frame_rotation(joint, C))
                torque = mat_vec(load9(joint.frame_parent), local)
                push(parent, -1.0, ZERO3, torque)
                push(child, 1.0, ZERO3, mat_t_vec(C, torque))
            force, on_parent, on_child = direction_gradient(joint, i, y, C, R_parent)
            size = at.input[i] + spring(joint, at, i)[0]
            push(parent, size, neg3(force), on_parent)
            push(child, size, force, on_child)


@kernel
def energy_along_joints(model, work):
    """Energy of all springs of the joints, in J."""
    energy = 0.0
    for index in model.active:
        joint = model.joints[index]
        _, C, _ = joint_at_knot(work.bodies, joint)
        for i in range(joint.free):
            energy += spring(joint, work.joints[index], i)[2]
            if joint.free_kind[i] == BALL and joint.free_axis[i] == 0:
                energy += ball_spring(joint, i, frame_rotation(joint, C))[1]
    return energy


@kernel
def add_directions(K, joint, at, y, C, Rp, E, gradient):
    """How the wrenches of springs and inputs change with the pose: the force times the direction's turning, plus K g g^T.

    ``gradient`` (12,) is scratch.
    """
    for i in range(joint.free):
        if joint.driven[i]:
            continue
        if joint.free_kind[i] == BALL and joint.free_axis[i] == 0:
            add_ball_spring(K, joint, i, E, C)
        force, stiffness, _ = spring(joint, at, i)
        if stiffness != 0.0:
            write_direction(gradient, joint, i, y, C, Rp)
            for r in range(12):
                for c in range(12):
                    K[r, c] += stiffness * gradient[r] * gradient[c]
        size = at.input[i] + force
        if size != 0.0:
            add_direction(K, joint, i, size, y, C, Rp)
