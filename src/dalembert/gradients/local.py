"""A mechanism at a state: inertia, forces, and how forces change with poses and velocities, in the bodies' own motions.

What rigid contacts do is not part of it.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from dalembert.forces.bodies import add_load_derivatives, push_on_bodies, user_load
from dalembert.forces.couplings import push_along_paths
from dalembert.forces.loads import apply_inputs, clear_inputs, evaluate_loads
from dalembert.formulations.engine import Inputs
from dalembert.gradients.curved import (
    DIFFERENCE,
    STENCIL,
    Laws,
    Numbers,
    body_columns,
    difference_poses,
    laws_at,
    numbers_at,
)
from dalembert.kernels import kernel
from dalembert.model.assembly import mass_blocks
from dalembert.model.placement import Placement
from dalembert.model.records import USER_LOAD
from dalembert.spatial.tuples import load3, load9


class Local(NamedTuple):
    """Inertia, forces and their changes at a state; n bodies, everything by their 6 n motions.

    ``velocity`` (6 n,): linear (world), angular (body axes). ``mass``: bodies alone; ``inertia``: with what rotors add along the
    free directions. ``force`` (6 n,): all but what constraints do, gyroscopic torques and those of rotors included. ``K`` and
    ``D``: changes of the forces with poses and with velocities, but for the part of rotors, whose ``armature`` (directions,)
    is left to the caller.
    """

    velocity: np.ndarray
    mass: np.ndarray
    inertia: np.ndarray
    armature: np.ndarray
    force: np.ndarray
    K: np.ndarray
    D: np.ndarray
    numbers: Numbers
    laws: Laws


@kernel
def all_forces(model, work, inputs, velocity):
    """Forces on all bodies into their ``load``: all but those of dampers and servos along joints. Needs the pose evaluated."""
    clear_inputs(model, work)
    apply_inputs(model, work, inputs, 0)
    evaluate_loads(model, work)
    push_along_paths(model, work, velocity)
    push_on_bodies(model, work, velocity, 1)


@kernel
def load_changes(model, work, velocity, K, D):
    """K and D (loads, 6, 6) of the loads on single bodies."""
    for i in range(model.loads.shape[0]):
        load = model.loads[i]
        if load.kind != USER_LOAD:
            body, u = work.bodies[load.body], velocity[load.body]
            add_load_derivatives(K[i], D[i], load, load3(body.x), load9(body.R), load3(u), load3(u[3:]))


@kernel
def call_load(model, work, index, velocity):
    """Call one user's law; wrenches end in ``work.found``."""
    user_load(model, work, model.loads[index], velocity)


def local_at(placement: Placement, velocity: np.ndarray, inputs: Inputs) -> Local:
    """The mechanism at the placement's pose, which must have been evaluated, with velocities (6 n,) and inputs."""
    model, work, (count, _, _) = placement.model, placement.work, placement.sizes
    given = np.zeros((count + 1, 6))
    given[:count] = velocity.reshape(-1, 6)
    all_forces(model, work, inputs, given)
    numbers = numbers_at(placement)
    laws = laws_at(placement, numbers, velocity)
    armature = model.joints["armature"][np.arange(6) < model.joints["free"][:, None]]
    armature = np.where(model.joints["driven"][np.arange(6) < model.joints["free"][:, None]] != 0, 0.0, armature)
    mass = np.asarray(block_diag(*mass_blocks(model)))
    g = numbers.directions.gradient()
    inertia = mass + (g.T * armature) @ g
    spin, gyroscopic = _gyroscopic(model.bodies["inertia"][:-1].reshape(-1, 3, 3), velocity.reshape(-1, 6)[:, 3:])
    force = work.bodies["load"][:-1].ravel() + g.T @ (laws.resisting - armature * numbers.directions.bending(velocity))
    force.reshape(-1, 6)[:, 3:] -= spin
    K, D = laws.balls.copy(), np.zeros_like(mass)
    for curved, law in ((numbers.directions, laws.directions), (numbers.paths, laws.paths)):
        gradient = curved.gradient()
        K += curved.contract(law[:, 0]) + gradient.T @ (law[:, 1, None] * gradient + law[:, 2, None] * curved.left(velocity))
        D += gradient.T @ (law[:, 2, None] * gradient)
    _add_loads(placement, given, K, D)
    for body, part in enumerate(gyroscopic):
        D[6 * body + 3 : 6 * body + 6, 6 * body + 3 : 6 * body + 6] -= part
    return Local(velocity, mass, inertia, armature, force, K, D, numbers, laws)


def _gyroscopic(inertia: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """w x I w (n, 3) and its change (n, 3, 3) with w."""
    momentum = np.einsum("nij,nj->ni", inertia, w)
    return np.cross(w, momentum), cross_matrix(w) @ inertia - cross_matrix(momentum)


def cross_matrix(a: np.ndarray) -> np.ndarray:
    """(n, 3, 3) with [a] b = a x b."""
    matrix = np.zeros((len(a), 3, 3))
    matrix[:, 0, 1], matrix[:, 0, 2], matrix[:, 1, 2] = -a[:, 2], a[:, 1], -a[:, 0]
    return matrix - matrix.transpose(0, 2, 1)


def _add_loads(placement: Placement, velocity: np.ndarray, K: np.ndarray, D: np.ndarray) -> None:
    """Add K and D of loads on bodies for velocities (n + 1, 6); those of users' laws by differences."""
    model, work = placement.model, placement.work
    stiffness, damping = np.zeros((len(model.loads), 6, 6)), np.zeros((len(model.loads), 6, 6))
    load_changes(model, work, velocity, stiffness, damping)
    for index, load in enumerate(model.loads):
        if load["kind"] != USER_LOAD:
            own = slice(6 * load["body"], 6 * load["body"] + 6)
            K[own, own] += stiffness[index]
            D[own, own] += damping[index]
            continue
        bodies = model.ends[load["first"] : load["first"] + load["ends"]]
        own = np.ix_(body_columns(bodies), body_columns(bodies))
        count = 6 * len(bodies)

        def wrench(index: int = index, count: int = count) -> np.ndarray:
            call_load(model, work, index, velocity)
            return work.found[:count].copy()

        K[own] += difference_poses(placement, bodies, wrench)
        if load["moving"]:
            slopes = np.zeros((count, count))
            for column, (body, c) in enumerate((body, c) for body in bodies for c in range(6)):
                before = velocity[body, c]
                size = DIFFERENCE * max(1.0, abs(before))
                for steps, weight in STENCIL:
                    velocity[body, c] = before + steps * size
                    slopes[:, column] += weight / size * wrench()
                velocity[body, c] = before
            D[own] += slopes
