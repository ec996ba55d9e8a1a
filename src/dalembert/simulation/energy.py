"""A watch on the energy of runs that nothing puts energy into: it must not rise."""
from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import EnergyWarning
from dalembert.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from dalembert.simulation.simulation import Simulation

#: m, by which a mechanism may rise in silence
LEAST = 1e-6
#: looks come after 1, 2, 3, 4, 6, 8, 12, 16, 24, ... steps, and at last after so many more each
FAR = 512


def next_look(done: int) -> int:
    """The number of steps of a run after which its energy is looked at next: the same on every machine."""
    if done < 4:
        return done + 1
    apart = min(1 << (done.bit_length() - 2), FAR)
    return (done // apart + 1) * apart


def is_passive(mechanism: Mechanism) -> bool:
    """True when no element can put energy in, or hold some that the energy does not count."""
    return not (
        any(joint.type.follows for joint in mechanism.joints) or mechanism.wrenches
        or any(force.follows for force in mechanism.point_forces) or any(law.function is not None for law in mechanism.force_laws)
        or any(path.law is not None for path in mechanism.paths)
    )


class EnergyWatch:
    """Compares the energy of a run with that of its start, and with how much of it moves about."""

    def __init__(self, simulation: Simulation, controlled: bool) -> None:
        self.passive = not controlled and not simulation.pushed and is_passive(simulation.mechanism)
        self.rise = self.range = 0.0
        mechanism = simulation.mechanism
        self.floor = LEAST * mechanism.mass * max(float(np.linalg.norm(mechanism.gravity)), 1.0)
        if self.passive:
            self.start, self.kinetic = simulation.energies()
            self.range = self.kinetic

    def look(self, simulation: Simulation) -> None:
        """Note the energy of the current knot."""
        if self.passive:
            total, kinetic = simulation.energies()
            self.rise = max(self.rise, total - self.start)
            self.range = max(self.range, kinetic, abs(total - kinetic - (self.start - self.kinetic)))

    def report(self, name: str, dt: float, bound: float | None) -> None:
        """Warn of a rise beyond the bound; of what hardly moves, rounding and rest, nothing is said."""
        if self.passive and bound is not None and self.rise > bound * self.range and self.rise > self.floor:
            warnings.warn(
                f"the energy of {name!r} rose by {self.rise:.3g} J, {self.rise / self.range:.0%} of the {self.range:.3g} J that move about in the run, "
                f"though nothing puts any in: dt = {dt:g} s is too long for this motion. Use a smaller dt, or another energy_bound.",
                EnergyWarning, stacklevel=5,
            )
