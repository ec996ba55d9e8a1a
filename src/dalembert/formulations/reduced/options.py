"""Options of the reduced formulation: joint coordinates along spanning trees (RedMax)."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalembert.errors import ModelError
from dalembert.formulations.implicit.tableaus import MULTISTEP, TABLEAUS
from dalembert.formulations.maximal.checks import check_steps
from dalembert.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from dalembert.formulations.engine import Engine

EXPLICIT = ("rk4", "semi_implicit")


@dataclass(frozen=True, kw_only=True)
class Reduced:
    """Joint coordinates with step ``dt`` (s) and ``method``: "bdf1", "bdf2", "sdirk2" or "pareschi_russo", implicit; "rk4",
    "semi_implicit", explicit.

    BDF2 starts with a step of SDIRK2. Free rotations are rotation vectors from the last knot. ``tolerance``: largest residual
    of a step in m/s; ``max_iterations``: Newton iterations per stage; ``max_halvings``: a step without solution is split into up
    to 2**max_halvings steps before ``StepFailure``.
    """

    dt: float
    method: str = "bdf2"
    tolerance: float = 1e-10
    max_iterations: int = 40
    max_halvings: int = 6

    def __post_init__(self) -> None:
        check_steps(self)
        methods = (*MULTISTEP, *TABLEAUS, *EXPLICIT)
        if self.method not in methods:
            raise ModelError(f"Reduced: unknown method {self.method!r}; choose one of {', '.join(methods)}")

    def engine(self, mechanism: Mechanism) -> Engine:
        """What runs a mechanism in this formulation."""
        if self.method in EXPLICIT:
            from dalembert.formulations.reduced.explicit_engine import ExplicitEngine

            return ExplicitEngine(mechanism, self)
        from dalembert.formulations.reduced.engine import ReducedEngine

        return ReducedEngine(mechanism, self)
