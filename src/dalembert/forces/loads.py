"""All forces on the bodies at a knot, and the energy that they store."""
from __future__ import annotations

from dalembert.forces.bodies import energy_of_loads, push_on_bodies
from dalembert.forces.couplings import energy_along_paths
from dalembert.forces.directions import energy_along_joints, push_along_joints
from dalembert.kernels import inline, kernel
from dalembert.spatial.tuples import dot3, load3


@inline
def load_bodies(model, work):
    """Write gravity, constant wrenches and inputs of the bodies into their ``load``: force (world) and torque (body axes)."""
    g = load3(model.gravity)
    for i in range(model.bodies.shape[0] - 1):
        body, fixed = work.bodies[i], model.bodies[i]
        for c in range(3):
            body.load[c] = fixed.mass * g[c] + fixed.wrench[c] + body.push[c]
            body.load[3 + c] = fixed.wrench[3 + c] + body.push[3 + c]


@kernel
def evaluate_loads(model, work):
    """Write force (world) and torque (body axes) on every body into its ``load``. Needs ``evaluate_pose`` before.

    All but what depends on velocities, and paths.
    """
    load_bodies(model, work)
    push_along_joints(model, work)
    if model.loads.shape[0] > 0:
        push_on_bodies(model, work, work.velocity, 0)


@kernel
def potential_energy(model, work):
    """Energy of gravity, springs, paths and potentials at the knot, in J. Needs ``evaluate_pose`` before."""
    g = load3(model.gravity)
    energy = 0.0
    for i in range(model.bodies.shape[0] - 1):
        energy -= model.bodies[i].mass * dot3(g, load3(work.bodies[i].x))
    return energy + energy_along_joints(model, work) + energy_along_paths(model, work) + energy_of_loads(model, work, work.velocity)


@kernel
def clear_inputs(model, work):
    """Nothing is left of the inputs of earlier steps."""
    for i in range(model.bodies.shape[0] - 1):
        for c in range(6):
            work.bodies[i].push[c] = 0.0
    for i in range(model.joints.shape[0]):
        for k in range(6):
            work.joints[i].input[k] = 0.0
    for i in range(model.couplings.shape[0]):
        work.couplings[i].input = 0.0


@kernel
def apply_inputs(model, work, inputs, index):
    """Give bodies, joints and paths their inputs of one step. Needs ``clear_inputs`` before the first one."""
    if inputs.wrench.shape[0] > 0:
        for i in range(model.bodies.shape[0] - 1):
            for c in range(6):
                work.bodies[i].push[c] = inputs.wrench[index, i, c]
    if inputs.joint.shape[0] > 0:
        for i in model.active:
            for k in range(model.joints[i].free):
                work.joints[i].input[k] = inputs.joint[index, i, k]
    if inputs.tension.shape[0] > 0:
        for i in range(model.couplings.shape[0]):
            work.couplings[i].input = inputs.tension[index, i]
