"""A watch on the energy of runs that nothing puts energy into: it must not rise."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import EnergyWarning
from dalembert.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from dalembert.simulation.simulation import Simulation
    from dalembert.simulation.trajectory import Trajectory

#: m, by which a mechanism may rise in silence
LEAST = 1e-6
#: all knots of a run are looked at up to this one, then one of so many
EVERY, APART = 128, 4
#: part of the bound from which a rise at a glance is looked at closely
NEAR = 0.8


def looked_at(count: int) -> np.ndarray:
    """The knots of a run, of which there are ``count``, at which its energy is looked at: the same on every machine."""
    return np.unique(np.concatenate([np.arange(min(count, EVERY)), np.arange(EVERY, count, APART), [count - 1]]))


def is_passive(mechanism: Mechanism) -> bool:
    """True when no element can put energy in, or hold some that the energy does not count."""
    return not (
        any(joint.type.follows for joint in mechanism.joints) or mechanism.wrenches
        or any(force.follows for force in mechanism.point_forces) or any(law.function is not None for law in mechanism.force_laws)
        or any(path.law is not None for path in mechanism.paths) or any(ground.velocity.any() for ground in mechanism.grounds)
        or any(law.stiffness is not None for law in (*mechanism.grounds, *mechanism.obstacles, *mechanism.pair_laws.values()))
    )


class EnergyWatch:
    """Compares the energy of a run with that of its start, and with how much of it moves about."""

    def __init__(self, simulation: Simulation, controlled: bool) -> None:
        self.passive = not controlled and not simulation.pushed and is_passive(simulation.mechanism)
        mechanism = simulation.mechanism
        self.floor = LEAST * mechanism.mass * max(float(np.linalg.norm(mechanism.gravity)), 1.0)
        #: kinetic and potential energy at knots, nearly, at little cost
        self.glance: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None

    def report(self, run: Trajectory, dt: float, bound: float | None) -> None:
        """Warn of a rise beyond the bound; of what hardly moves, rounding and rest, nothing is said."""
        if not self.passive or bound is None or len(run) < 2:
            return
        if self.glance is not None:
            rise, moves = rises(*self.glance(looked_at(len(run))))
            if rise <= NEAR * bound * moves or rise <= NEAR * self.floor:
                return
        energy = run.energy()
        rise, moves = rises(energy.kinetic, energy.potential)
        if rise > bound * moves and rise > self.floor:
            warnings.warn(
                f"the energy of {run.mechanism!r} rose by {rise:.3g} J, {rise / moves:.0%} of the {moves:.3g} J that move about in the run, "
                f"though nothing puts any in: dt = {dt:g} s is too long for this motion. Use a smaller dt, or another energy_bound.",
                EnergyWarning, stacklevel=5,
            )


def rises(kinetic: np.ndarray, potential: np.ndarray) -> tuple[float, float]:
    """By how much the sum rises above its first value at most, and how much moves about: the kinetic energy, or what the potential one changes by."""
    total, potential = kinetic + potential, potential - potential[0]
    return float(np.max(total - total[0])), float(max(np.max(kinetic), np.max(np.abs(potential))))
