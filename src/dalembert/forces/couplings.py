"""Forces along paths, at a knot."""
from __future__ import annotations

from dalembert.forces.laws import coupling_law
from dalembert.kernels import inline, kernel
from dalembert.model.records import CONSTRAINT


@inline
def coupling_rate(model, work, index, velocity):
    """Rate of a coupling's number for velocities (n + 1, 6), by its gradient at the knot."""
    rate = 0.0
    coupling = model.couplings[index]
    for e in range(coupling.first, coupling.first + coupling.ends):
        for c in range(6):
            rate += work.ends[e].G[c] * velocity[model.ends[e], c]
    return rate


@kernel
def push_along_paths(model, work, velocity):
    """Add the forces of all paths to the loads of their bodies, and note each path's force in ``mu``."""
    for i in range(model.couplings.shape[0]):
        coupling, tie = model.couplings[i], work.couplings[i]
        if coupling.law == CONSTRAINT:
            continue
        tie.rate = coupling_rate(model, work, i, velocity)
        tie.mu = coupling_law(work, coupling, tie, tie.value, tie.rate)[0]
        for e in range(coupling.first, coupling.first + coupling.ends):
            load = work.bodies[model.ends[e]].load
            for c in range(6):
                load[c] += work.ends[e].G[c] * tie.mu


@kernel
def energy_along_paths(model, work):
    """Energy of all paths, in J."""
    energy = 0.0
    for i in range(model.couplings.shape[0]):
        coupling, tie = model.couplings[i], work.couplings[i]
        if coupling.law != CONSTRAINT:
            energy += coupling_law(work, coupling, tie, tie.value, 0.0)[3]
    return energy
