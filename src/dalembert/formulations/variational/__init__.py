"""The variational formulation: maximal coordinates, symplectic, constraints exact at position level (Variational)."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalembert.errors import ModelError, StepFailure
from dalembert.formulations.maximal import examples
from dalembert.formulations.maximal.engine import Inputs, MaximalEngine, Recording
from dalembert.formulations.variational.equations import NOT_CONVERGED, SINGULAR, SOLVED, TOO_FAST
from dalembert.formulations.variational.step import newton, run_steps
from dalembert.kernels.ahead import Jobs, prepare
from dalembert.mechanism.mechanism import Mechanism


@dataclass(frozen=True, kw_only=True)
class Variational:
    """Variational integrator with step ``dt`` (s).

    ``tolerance``: largest residual of a step, in m/s (impulses are divided by the body's mass);
    ``max_iterations``: Newton iterations per step; ``max_halvings``: a step without solution is split into up to
    2**max_halvings substeps before ``StepFailure``.

    Contacts: ``cone``: "exact", or "linear" with an even number of ``cone_edges``; ``resting_speed`` (m/s, or rad/s for
    limits): what closes more slowly than this does not bounce.
    """

    dt: float
    tolerance: float = 1e-10
    max_iterations: int = 30
    max_halvings: int = 8
    cone: str = "exact"
    cone_edges: int = 4
    resting_speed: float = 0.01

    def __post_init__(self) -> None:
        for name in ("dt", "tolerance"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise ModelError(f"Variational: {name} must be positive and finite, got {value}")
        for name, least in (("max_iterations", 1), ("max_halvings", 0)):
            if getattr(self, name) < least:
                raise ModelError(f"Variational: {name} must be at least {least}, got {getattr(self, name)}")

        if self.cone not in ("exact", "linear"):
            raise ModelError(f"Variational: cone must be 'exact' or 'linear', got {self.cone!r}")
        if self.cone_edges not in range(4, 17, 2):
            raise ModelError(f"Variational: cone_edges must be an even number from 4 to 16, got {self.cone_edges!r}")
        if not (np.isfinite(self.resting_speed) and self.resting_speed >= 0.0):
            raise ModelError(f"Variational: resting_speed must not be negative, got {self.resting_speed}")

    def engine(self, mechanism: Mechanism) -> VariationalEngine:
        """What runs a mechanism in this formulation."""
        if mechanism.touches:
            from dalembert.formulations.contact.engine import ContactEngine

            return ContactEngine(mechanism, self)
        prepare(ahead)
        return VariationalEngine(mechanism, self)

    def reader(self, mechanism: Mechanism) -> VariationalEngine:
        """What reads a recorded run."""
        return VariationalEngine(mechanism, self)


def ahead() -> Jobs:
    """The longest part of a step, and what reads a run."""
    yield newton.part, (examples.records(), *examples.graph(), 0.0, 0.0, 0.0, 0.0, 0)  # type: ignore[attr-defined]
    yield from examples.reading()


class VariationalEngine(MaximalEngine):
    """A mechanism's records, graph and state, stepped by the variational integrator."""

    def __init__(self, mechanism: Mechanism, options: Variational) -> None:
        super().__init__(mechanism, options.dt)
        self.options = options

    def run(self, recording: Recording, inputs: Inputs, first: int, count: int, dt: float) -> int:
        options, system = self.options, self.system
        outcome, done, size = run_steps(
            self.records, system.blocks, system.structure.schedule, system.vector, self.clock, self.base_load,
            recording, inputs, first, count, dt, self.compliance, options.tolerance, options.max_iterations,
        )
        self.outcome = (int(outcome), float(size))
        return int(done)

    def failure(self, time: float) -> StepFailure:
        """The error for the step that ``run`` stopped at."""
        outcome, size = self.outcome
        parts = 1 << self.options.max_halvings
        where = f"the step at t = {time:.6g} s of {self.mechanism.name!r} has no solution with dt = {self.options.dt:g} s or {parts} substeps"
        if outcome == TOO_FAST:
            body, spin = self.fastest_body()
            return StepFailure(
                f"{where}: body {body!r} spins at {spin:.4g} rad/s, more than a substep of {self.options.dt / parts:.3g} s can follow. "
                "Use a smaller dt or more max_halvings."
            )
        reason = {NOT_CONVERGED: "Newton did not converge", SINGULAR: "a pivot block is singular"}.get(outcome, "unknown")
        return StepFailure(f"{where}: {reason}; worst is {self.worst_row()}, residual {size:.3g} m/s. Use a smaller dt, or check the model there.")

    @property
    def solved(self) -> bool:
        return self.outcome[0] == SOLVED
