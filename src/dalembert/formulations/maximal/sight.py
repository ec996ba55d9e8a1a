"""What can be read at the knot of one state: velocities, rates, coordinates, energies."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.forces.loads import potential_energy
from dalembert.formulations.maximal.series import Motion, motion_series, new_motion
from dalembert.kernels import allocating
from dalembert.spatial.tuples import dot3, load3, load9, mat_vec


class Sight(NamedTuple):
    """Room for what ``see`` reads, forces not among it, for which the knot is ``trusted``. ``coordinate`` (joints, 6): before, those to unwrap against; ``energy`` (2,): total and kinetic, J.

    ``prescribed`` (2, 1, joints, 6): rates of driven directions, NaN where they are not known, and accelerations, which do not matter here.
    """

    coordinate: np.ndarray
    prescribed: np.ndarray
    motion: Motion
    trusted: np.ndarray
    energy: np.ndarray


def new_sight(bodies: int, joints: int, couplings: int) -> Sight:
    """Room for one knot."""
    prescribed = np.zeros((2, 1, joints, 6))
    prescribed[0] = np.nan
    return Sight(np.zeros((joints, 6)), prescribed, new_motion(1, bodies, joints, couplings), np.ones(1, bool), np.zeros(2))


@allocating
def see(model, work, compliance, recording, inputs, exact, sight):
    """Read the one knot of a recording, under the inputs of the step that begins there (see ``motion_series``)."""
    for i in range(model.joints.shape[0]):
        for k in range(6):
            work.joints[i].coordinate[k] = sight.coordinate[i, k]
    motion_series(model, work, compliance, recording, inputs, sight.prescribed, sight.motion, exact, sight.trusted)
    kinetic = 0.0
    for i in range(model.bodies.shape[0] - 1):
        fixed, u = model.bodies[i], sight.motion.velocity[0, i]
        v, w = load3(u), load3(u[3:])
        kinetic += 0.5 * (fixed.mass * dot3(v, v) + dot3(w, mat_vec(load9(fixed.inertia), w)))
    for i in range(model.joints.shape[0]):
        for k in range(6):
            sight.coordinate[i, k] = work.joints[i].coordinate[k]
            kinetic += 0.5 * model.joints[i].armature[k] * sight.motion.rate[0, i, k] ** 2
    sight.energy[0] = kinetic + potential_energy(model, work)
    sight.energy[1] = kinetic
