"""Options of the variational formulation: maximal coordinates, symplectic, constraints exact at position level (Variational)."""
from __future__ import annotations

from dataclasses import dataclass
from math import inf, pi, sin
from typing import TYPE_CHECKING

from dalembert.checks import one_of
from dalembert.errors import ModelError
from dalembert.formulations.maximal.checks import check_options
from dalembert.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from dalembert.formulations.variational.engine import VariationalEngine


@dataclass(frozen=True, kw_only=True)
class Variational:
    """Variational integrator with step ``dt`` (s).

    ``tolerance``: largest residual of a step, in m/s (impulses are divided by the body's mass);
    ``max_iterations``: Newton iterations per step; ``max_halvings``: a step without solution is split into up to
    2**max_halvings substeps before ``StepFailure``.

    Contacts: ``cone``: "exact", or "linear" with an even number of ``cone_edges``; ``resting_speed`` (m/s, or rad/s for
    limits): what closes more slowly than this does not bounce; ``impacts``: "limited", Newton's law of restitution as far as impacts create
    no energy, or "newton", his law as it is, which with friction or several impacts at once may create some.
    ``events``: "exact" finds the time of every impact, and of the end of every slide, within its step, which is divided there; ``impacts`` may then also be "sequential":
    what closes at one moment strikes one after the other, as in a cradle.
    """

    dt: float
    tolerance: float = 1e-10
    max_iterations: int = 30
    max_halvings: int = 8
    cone: str = "exact"
    cone_edges: int = 4
    resting_speed: float = 0.01
    impacts: str = "limited"
    events: str | None = None

    def __post_init__(self) -> None:
        check_options(self, impacts=one_of("limited", "newton", "sequential"), events=one_of("exact", None))
        if self.events and self.cone != "exact":
            raise ModelError('Variational: events="exact" takes the exact cone alone')
        if self.impacts == "sequential" and not self.events:
            raise ModelError('Variational: impacts="sequential" needs events="exact", where impacts have a moment of their own')

    @staticmethod
    def turn_error(turn: float) -> float:
        """How far a steady turn of ``turn`` (rad) per step runs ahead of its speed, relative to the angle: its momentum is J sin(turn) / dt."""
        return turn / sin(turn) - 1.0 if turn < 0.5 * pi else inf

    def engine(self, mechanism: Mechanism) -> VariationalEngine:
        """What runs a mechanism in this formulation."""
        if mechanism.touches:
            if self.events:
                from dalembert.formulations.variational.event_engine import EventEngine

                return EventEngine(mechanism, self)
            from dalembert.formulations.variational.contact_engine import ContactEngine

            return ContactEngine(mechanism, self)
        from dalembert.formulations.variational.engine import VariationalEngine

        return VariationalEngine(mechanism, self)
